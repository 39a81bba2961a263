//! Content codings of a body, undone piece by piece.
//!
//! We ask for `identity`, but proxies compress all the same. Whoever reads the body asks for the
//! next piece, and at most [`PIECE`] bytes are decoded for it: what a coding would unfold into is
//! never in memory at once, and the bounds that hold for plain bodies hold for it unchanged. The
//! windows are bounded, too: 32 KiB for gzip and deflate (RFC 1951), 16 MiB for br (RFC 7932, not
//! its large variant), 8 MiB for zstd (RFC 9659).
//!
//! What has been flushed by the sender comes out at once, so that a compressed stream is passed on
//! event by event.

use std::fmt;

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};
use bytes::{Buf, Bytes};
use flate2::{Decompress, FlushDecompress, Status};
use http::HeaderMap;
use http::header::CONTENT_ENCODING;
use zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer};

/// The most that is decoded in one step.
const PIECE: usize = 16 * 1024;

/// More codings than this on one body are no answer but an attack. Our choice; two have been seen.
const MOST_CODINGS: usize = 4;

/// The largest zstd window, as a power of two: 8 MiB, which RFC 9659 sets as the bound of this
/// coding.
const ZSTD_WINDOW_LOG: u32 = 23;

/// The zlib and gzip window, as a power of two: the largest there is.
const DEFLATE_WINDOW_LOG: u8 = 15;

/// The body is in a coding that we do not know, or in too many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unknown;

/// Why nothing more can be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Broken {
    /// The bytes are not what the coding says.
    Garbled,
    /// They end before the coding does.
    Cut,
}

/// What the codings give next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Given {
    /// Decoded bytes, never empty.
    Piece(Bytes),
    /// Nothing before more is put in.
    Hungry,
    /// The body is whole.
    End,
}

/// The codings of one body, being undone.
pub(crate) struct Codings {
    /// The coding that was applied last, and so is undone first, stands last.
    layers: Vec<Layer>,
    source: Source,
    /// Where one step is decoded.
    room: Box<[u8]>,
}

/// What has arrived and was not decoded yet.
#[derive(Default)]
struct Source {
    bytes: Bytes,
    ended: bool,
}

struct Layer {
    coder: Coder,
    input: Bytes,
    /// Whether the last step filled the room, so that there may be more without further input.
    full: bool,
    place: Place,
}

/// Where a layer stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// No byte was read.
    Before,
    Inside,
    /// The coding said that it is over.
    Behind,
}

enum Coder {
    Gzip(Decompress),
    /// zlib, as the standard says, or bare deflate, as some servers understood it; the first byte
    /// tells.
    Deflate(Option<Decompress>),
    Brotli(Box<BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>>),
    Zstd(DCtx<'static>),
}

/// One step of a coder.
struct Step {
    read: usize,
    written: usize,
    over: bool,
}

impl Codings {
    /// The codings that the headers name; `None` where the body can be read as it is.
    pub(crate) fn named(headers: &HeaderMap) -> Result<Option<Self>, Unknown> {
        let mut layers = Vec::new();
        for value in headers.get_all(CONTENT_ENCODING) {
            let named = value.to_str().map_err(|_| Unknown)?.split(',');
            for name in named.map(str::trim) {
                if name.is_empty() || name.eq_ignore_ascii_case("identity") {
                    continue;
                }
                if layers.len() == MOST_CODINGS {
                    return Err(Unknown);
                }
                layers.push(Layer::new(Coder::named(name).ok_or(Unknown)?));
            }
        }
        if layers.is_empty() {
            return Ok(None);
        }
        Ok(Some(Self {
            layers,
            source: Source::default(),
            room: vec![0; PIECE].into(),
        }))
    }

    /// Takes what has arrived. Only when the last answer was [`Given::Hungry`].
    pub(crate) fn put(&mut self, bytes: Bytes) {
        self.source.bytes = bytes;
    }

    /// Nothing more will arrive.
    pub(crate) fn end(&mut self) {
        self.source.ended = true;
    }

    /// The next decoded piece.
    pub(crate) fn next(&mut self) -> Result<Given, Broken> {
        given(&mut self.layers, &mut self.source, &mut self.room)
    }
}

impl fmt::Debug for Codings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Codings")
            .field("layers", &self.layers.len())
            .finish_non_exhaustive()
    }
}

/// What the first of `layers` gives, fed by those behind it.
fn given(layers: &mut [Layer], source: &mut Source, room: &mut [u8]) -> Result<Given, Broken> {
    let Some((layer, behind)) = layers.split_first_mut() else {
        return Ok(source.take());
    };
    loop {
        if layer.input.is_empty() && !layer.full {
            match given(behind, source, room)? {
                Given::Piece(bytes) => layer.input = bytes,
                Given::Hungry => return Ok(Given::Hungry),
                // A body without a byte has no coding either.
                Given::End if layer.place == Place::Inside => return Err(Broken::Cut),
                Given::End => return Ok(Given::End),
            }
        }
        if layer.place == Place::Behind && !layer.opens_again() {
            // What follows the end of a coding is padding; it is read and thrown away.
            layer.input.clear();
            continue;
        }
        let written = layer.step(room)?;
        if written > 0 {
            return Ok(Given::Piece(Bytes::copy_from_slice(&room[..written])));
        }
    }
}

impl Source {
    fn take(&mut self) -> Given {
        if !self.bytes.is_empty() {
            Given::Piece(std::mem::take(&mut self.bytes))
        } else if self.ended {
            Given::End
        } else {
            Given::Hungry
        }
    }
}

impl Layer {
    fn new(coder: Coder) -> Self {
        Self {
            coder,
            input: Bytes::new(),
            full: false,
            place: Place::Before,
        }
    }

    /// Whether what follows the end begins the coding anew: a gzip file may have several members
    /// (RFC 1952, 2.2), a zstd body several frames (RFC 8878, 3).
    fn opens_again(&mut self) -> bool {
        let again = match &self.coder {
            Coder::Gzip(_) => self.input.first() == Some(&0x1f),
            Coder::Zstd(_) => self.input.first().is_some_and(|byte| *byte != 0),
            Coder::Deflate(_) | Coder::Brotli(_) => false,
        };
        if again {
            if let Coder::Gzip(coder) = &mut self.coder {
                *coder = Decompress::new_gzip(DEFLATE_WINDOW_LOG);
            }
            self.place = Place::Inside;
        }
        again
    }

    /// Decodes into `room`; how much was written.
    fn step(&mut self, room: &mut [u8]) -> Result<usize, Broken> {
        let step = self.coder.step(&self.input, room).ok_or(Broken::Garbled)?;
        self.input.advance(step.read);
        self.full = step.written == room.len() && !step.over;
        self.place = if step.over {
            Place::Behind
        } else {
            Place::Inside
        };
        if step.read == 0 && step.written == 0 && !step.over && !self.input.is_empty() {
            // A coder that neither reads nor writes would never end.
            return Err(Broken::Garbled);
        }
        Ok(step.written)
    }
}

impl Coder {
    fn named(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            // RFC 9110, 8.4.1.3: the second is the first.
            "gzip" | "x-gzip" => Some(Self::Gzip(Decompress::new_gzip(DEFLATE_WINDOW_LOG))),
            "deflate" => Some(Self::Deflate(None)),
            "br" => {
                let alloc = StandardAlloc::default;
                let state = BrotliState::new_strict(alloc(), alloc(), alloc());
                Some(Self::Brotli(Box::new(state)))
            }
            "zstd" => {
                let mut coder = DCtx::try_create()?;
                coder
                    .set_parameter(DParameter::WindowLogMax(ZSTD_WINDOW_LOG))
                    .ok()?;
                Some(Self::Zstd(coder))
            }
            _ => None,
        }
    }

    /// Decodes as much of `input` as there is room for; `None` where it makes no sense.
    fn step(&mut self, input: &[u8], room: &mut [u8]) -> Option<Step> {
        match self {
            Self::Gzip(coder) => inflate(coder, input, room),
            Self::Deflate(coder) => {
                // The low half of a zlib header's first byte names its method, 8 (RFC 1950, 2.2).
                // No encoder opens bare deflate so.
                let is_zlib = input.first().is_none_or(|first| first & 0x0f == 8);
                let coder = coder.get_or_insert_with(|| Decompress::new(is_zlib));
                inflate(coder, input, room)
            }
            Self::Brotli(state) => {
                let (mut unread, mut read) = (input.len(), 0);
                let (mut unwritten, mut written, mut total) = (room.len(), 0, 0);
                let result = BrotliDecompressStream(
                    &mut unread,
                    &mut read,
                    input,
                    &mut unwritten,
                    &mut written,
                    room,
                    &mut total,
                    state,
                );
                let over = match result {
                    BrotliResult::ResultSuccess => true,
                    BrotliResult::NeedsMoreInput | BrotliResult::NeedsMoreOutput => false,
                    BrotliResult::ResultFailure => return None,
                };
                Some(Step {
                    read,
                    written,
                    over,
                })
            }
            Self::Zstd(coder) => {
                let mut from = InBuffer::around(input);
                let mut to = OutBuffer::around(room);
                let left = coder.decompress_stream(&mut to, &mut from).ok()?;
                Some(Step {
                    read: from.pos(),
                    written: to.pos(),
                    over: left == 0,
                })
            }
        }
    }
}

fn inflate(coder: &mut Decompress, input: &[u8], room: &mut [u8]) -> Option<Step> {
    let before = (coder.total_in(), coder.total_out());
    let status = coder.decompress(input, room, FlushDecompress::Sync).ok()?;
    let moved = |total: u64, before: u64| usize::try_from(total - before).ok();
    Some(Step {
        read: moved(coder.total_in(), before.0)?,
        written: moved(coder.total_out(), before.1)?,
        over: status == Status::StreamEnd,
    })
}

#[cfg(test)]
mod tests;

//! Bytes in, blocks out: where one event ends and the next begins.
//!
//! A block ends at a blank line. Lines end in CR, LF or CRLF, so a chunk that ends in CR leaves
//! open whether an LF follows. The block is complete either way and is given out at once; a late
//! LF then opens the next frame's bytes, where blank lines mean nothing. Blank lines between
//! blocks belong to the block they precede; a chunk with nothing else is a frame by itself, so
//! that no byte waits for a sender who is only keeping the line open.
//!
//! Each byte is looked at twice: once for the end of the block, once for its fields. A block that
//! lies in one chunk is a slice of it; one that spans chunks is copied once.

use std::collections::VecDeque;
use std::fmt;

use backstop_units::ByteCount;
use bytes::Bytes;
use memchr::memchr2;

use crate::error::Error;
use crate::frame::{BOM, Frame};

/// Cuts a `text/event-stream` body into [`Frame`]s.
///
/// [`push`](Self::push) a chunk, call [`next`](Self::next) until it has no more; when the input
/// has ended, call [`finish`](Self::finish) until it has no more. The same bytes give the same
/// events however they are cut into chunks.
pub struct Framer {
    limit: ByteCount,
    /// The block begun in earlier chunks.
    partial: Vec<u8>,
    /// The chunk being read, then those after it.
    chunk: Bytes,
    later: VecDeque<Bytes>,
    scan: Scan,
    opens_stream: bool,
    overrun: bool,
}

impl Framer {
    /// The most bytes in one block unless told otherwise: 8 MiB, which leaves room for an image or
    /// a block of encrypted reasoning in a single event.
    pub const DEFAULT_LIMIT: ByteCount = ByteCount::mib(8);

    /// A framer that refuses blocks longer than `limit`. Blank lines before the block do not count.
    #[must_use]
    pub fn new(limit: ByteCount) -> Self {
        Self {
            limit,
            partial: Vec::new(),
            chunk: Bytes::new(),
            later: VecDeque::new(),
            scan: Scan {
                bom: Bom::Matched(0),
                ..Scan::BETWEEN
            },
            opens_stream: true,
            overrun: false,
        }
    }

    /// Takes the next bytes of the stream.
    pub fn push(&mut self, chunk: Bytes) {
        if self.overrun || chunk.is_empty() {
            return;
        }
        if self.chunk.is_empty() && self.later.is_empty() {
            self.chunk = chunk;
        } else {
            self.later.push_back(chunk);
        }
    }

    /// The next frame that is complete, or `None` until more bytes are pushed.
    ///
    /// # Errors
    /// [`Error::TooLong`] when a block outgrows the limit; every later call says so again.
    #[expect(
        clippy::should_implement_trait,
        reason = "None is no end: more may be pushed"
    )]
    pub fn next(&mut self) -> Result<Option<Frame>, Error> {
        if self.overrun {
            return Err(Error::TooLong { limit: self.limit });
        }
        loop {
            if self.chunk.is_empty() {
                let Some(chunk) = self.later.pop_front() else {
                    return Ok(None);
                };
                self.chunk = chunk;
            }
            let end = self.scan.block_end(&self.chunk);
            if self.scan.length > self.limit.as_len() {
                return Err(self.give_up());
            }
            if let Some(end) = end {
                self.scan = Scan::BETWEEN;
                let tail = self.chunk.split_to(end);
                return Ok(Some(self.frame(tail, true)));
            }
            let rest = std::mem::take(&mut self.chunk);
            if self.scan.is_between() {
                return Ok(Some(self.frame(rest, true)));
            }
            self.partial.extend_from_slice(&rest);
        }
    }

    /// The frames still inside when no byte will follow: complete ones first, then the last block
    /// without its blank line, then `None`.
    ///
    /// # Errors
    /// As for [`next`](Self::next).
    pub fn finish(&mut self) -> Result<Option<Frame>, Error> {
        if let Some(frame) = self.next()? {
            return Ok(Some(frame));
        }
        if self.partial.is_empty() {
            return Ok(None);
        }
        self.scan = Scan::BETWEEN;
        Ok(Some(self.frame(Bytes::new(), false)))
    }

    /// The frame that `tail` completes.
    fn frame(&mut self, tail: Bytes, terminated: bool) -> Frame {
        let raw = if self.partial.is_empty() {
            tail
        } else {
            let mut whole = std::mem::take(&mut self.partial);
            whole.extend_from_slice(&tail);
            Bytes::from(whole)
        };
        let opens_stream = std::mem::replace(&mut self.opens_stream, false);
        Frame::read(raw, opens_stream, terminated)
    }

    fn give_up(&mut self) -> Error {
        self.overrun = true;
        self.partial = Vec::new();
        self.chunk = Bytes::new();
        self.later = VecDeque::new();
        Error::TooLong { limit: self.limit }
    }
}

impl Default for Framer {
    fn default() -> Self {
        Self::new(Self::DEFAULT_LIMIT)
    }
}

impl fmt::Debug for Framer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Framer")
            .field("limit", &self.limit)
            .field("partial_bytes", &self.partial.len())
            .field("overrun", &self.overrun)
            .finish_non_exhaustive()
    }
}

/// What the scan remembers from one byte to the next, so that no byte is scanned again.
struct Scan {
    bom: Bom,
    /// Where in the block the next byte falls.
    at: Place,
    /// Bytes of the block so far, without blank lines before it and without an LF that completes
    /// its last CRLF: the same number for every cut into chunks.
    length: usize,
}

#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// Only blank lines so far.
    Between,
    /// Inside a line.
    Line,
    /// A line has ended in LF.
    LineStart,
    /// A line has ended in CR; an LF would belong to it.
    AfterCr,
}

/// How much of a byte order mark was seen at the start of the stream.
#[derive(Clone, Copy, PartialEq)]
enum Bom {
    /// So many bytes, and nothing else yet.
    Matched(usize),
    /// The question is settled.
    Settled,
}

impl Scan {
    const BETWEEN: Self = Self {
        bom: Bom::Settled,
        at: Place::Between,
        length: 0,
    };

    /// Whether the bytes so far hold no part of a block.
    fn is_between(&self) -> bool {
        self.at == Place::Between && self.bom == Bom::Settled
    }

    /// The length of the shortest prefix of `bytes` that completes the block, if one does.
    fn block_end(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut next = self.skip_bom(bytes);
        while let Some(&byte) = bytes.get(next) {
            match (self.at, byte) {
                (Place::Line, _) => {
                    let rest = &bytes[next..];
                    let Some(end) = memchr2(b'\n', b'\r', rest) else {
                        self.length += rest.len();
                        return None;
                    };
                    self.at = if rest[end] == b'\r' {
                        Place::AfterCr
                    } else {
                        Place::LineStart
                    };
                    self.length += end + 1;
                    next += end + 1;
                }
                (Place::Between, b'\n' | b'\r') => next += 1,
                (Place::AfterCr, b'\n') => {
                    self.at = Place::LineStart;
                    self.length += 1;
                    next += 1;
                }
                (Place::LineStart | Place::AfterCr, b'\n' | b'\r') => {
                    self.length += 1;
                    let crlf = byte == b'\r' && bytes.get(next + 1) == Some(&b'\n');
                    return Some(next + 1 + usize::from(crlf));
                }
                (Place::Between | Place::LineStart | Place::AfterCr, _) => self.at = Place::Line,
            }
        }
        None
    }

    /// Reads over a byte order mark at the start of the stream; answers where content begins.
    fn skip_bom(&mut self, bytes: &[u8]) -> usize {
        let mut next = 0;
        while let (Bom::Matched(seen), Some(&byte)) = (self.bom, bytes.get(next)) {
            if byte == BOM[seen] {
                next += 1;
                self.bom = Bom::Matched(seen + 1);
                if seen + 1 == BOM.len() {
                    self.bom = Bom::Settled;
                }
            } else {
                self.bom = Bom::Settled;
                if seen > 0 {
                    self.at = Place::Line;
                    self.length = seen;
                }
            }
        }
        next
    }
}

#[cfg(test)]
mod tests;

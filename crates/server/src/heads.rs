//! Watches the bytes of an HTTP/1.1 connection for heads that frame a request in two ways.
//!
//! hyper settles a request with both a `content-length` and a `transfer-encoding` in favour of the
//! second and drops the first, so nobody behind it can see that there were two (RFC 9112, 6.3, lets it,
//! and calls it an attack). The same goes for a line that ends without a carriage return. Here the
//! bytes are followed from request to request, just far enough to tell where heads begin:
//!
//! ```text
//! connection = *( head body )
//! head       = *( line CRLF ) CRLF        line = request-line / name ":" value
//! body       = *OCTET of content-length, or chunks
//! chunks     = *( hex [ ";" ext ] CRLF octets CRLF ) "0" [ ";" ext ] CRLF *( line CRLF ) CRLF
//! ```
//!
//! What cannot be followed (HTTP/2, an endless head, a chunk without a size) is let be: hyper refuses it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use memchr::memchr;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The longest head that is followed; a longer one is refused elsewhere.
const LONGEST: usize = 64 * 1024;

/// Whether a connection has shown a head that can be read in two ways. Shared between the bytes of a
/// connection and the requests read from them; it is never taken back.
#[derive(Debug, Clone, Default)]
pub(crate) struct Doubt(Arc<AtomicBool>);

impl Doubt {
    /// Whether there is any.
    pub(crate) fn is_there(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A stream of bytes whose heads are followed.
pub(crate) struct Followed<I> {
    io: I,
    heads: Heads,
    doubt: Doubt,
}

impl<I> Followed<I> {
    pub(crate) fn new(io: I, doubt: Doubt) -> Self {
        Self {
            io,
            heads: Heads::new(),
            doubt,
        }
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for Followed<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.io).poll_read(cx, buf);
        if let Poll::Ready(Ok(())) = read
            && self.heads.read(&buf.filled()[before..]).is_err()
        {
            self.doubt.0.store(true, Ordering::Relaxed);
        }
        read
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for Followed<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

/// How far into the connection's bytes one is.
#[derive(Debug)]
pub(crate) struct Heads {
    state: State,
    /// The part of a line whose end has not come.
    line: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Head {
        read: usize,
        framed: Framed,
    },
    Body(u64),
    ChunkSize,
    /// The octets of a chunk and the line end behind them.
    Chunk(u64),
    Trailers {
        read: usize,
    },
    /// Nothing more is looked at.
    Over,
}

/// What a head says so far about its body.
#[derive(Debug, Clone, Copy, Default)]
struct Framed {
    length: Option<u64>,
    coded: bool,
    /// Its first line has come.
    begun: bool,
}

/// A head that says two things.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ambiguous;

impl Heads {
    pub(crate) const fn new() -> Self {
        Self {
            state: State::Head {
                read: 0,
                framed: Framed {
                    length: None,
                    coded: false,
                    begun: false,
                },
            },
            line: Vec::new(),
        }
    }

    /// Takes in the next bytes of the connection.
    ///
    /// # Errors
    /// When a head in them can be read in two ways. Nothing is looked at from then on.
    pub(crate) fn read(&mut self, mut bytes: &[u8]) -> Result<(), Ambiguous> {
        while !bytes.is_empty() {
            match self.state {
                State::Over => return Ok(()),
                State::Body(left) | State::Chunk(left) => {
                    let here = left.min(bytes.len() as u64);
                    bytes = &bytes[usize::try_from(here).unwrap_or(bytes.len())..];
                    let left = left - here;
                    self.state = match self.state {
                        State::Chunk(_) if left == 0 => State::ChunkSize,
                        State::Chunk(_) => State::Chunk(left),
                        _ if left == 0 => State::head(),
                        _ => State::Body(left),
                    };
                }
                State::Head { .. } | State::ChunkSize | State::Trailers { .. } => {
                    let Some(end) = memchr(b'\n', bytes) else {
                        if self.line.len() + bytes.len() > LONGEST {
                            self.end();
                        } else {
                            self.line.extend_from_slice(bytes);
                        }
                        return Ok(());
                    };
                    let (rest, next) = (&bytes[..end], &bytes[end + 1..]);
                    bytes = next;
                    if self.line.is_empty() {
                        self.line(rest)?;
                    } else {
                        let mut line = std::mem::take(&mut self.line);
                        line.extend_from_slice(rest);
                        self.line(&line)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// A whole line, without its line feed.
    fn line(&mut self, line: &[u8]) -> Result<(), Ambiguous> {
        let Some(line) = line.strip_suffix(b"\r") else {
            self.end();
            return Err(Ambiguous);
        };
        self.state = match self.state {
            // Line ends before a request are skipped (RFC 9112, 2.2).
            State::Head { framed, .. } if !framed.begun && line.is_empty() => State::head(),
            State::Head { framed, .. } if !framed.begun && line.starts_with(b"PRI * HTTP/2") => {
                State::Over
            }
            State::Head { framed, .. } if line.is_empty() => match framed {
                Framed { coded: true, .. } => State::ChunkSize,
                Framed {
                    length: Some(length @ 1..),
                    ..
                } => State::Body(length),
                _ => State::head(),
            },
            State::Head { read, framed } => match framed.with(line) {
                Some(Ok(framed)) if read + line.len() <= LONGEST => State::Head {
                    read: read + line.len(),
                    framed,
                },
                Some(Err(ambiguous)) => {
                    self.end();
                    return Err(ambiguous);
                }
                _ => State::Over,
            },
            State::ChunkSize => match chunk_size(line) {
                Some(0) => State::Trailers { read: 0 },
                Some(size) => State::Chunk(size.saturating_add(2)),
                None => State::Over,
            },
            State::Trailers { .. } if line.is_empty() => State::head(),
            State::Trailers { read } if read + line.len() <= LONGEST => State::Trailers {
                read: read + line.len(),
            },
            _ => State::Over,
        };
        Ok(())
    }

    fn end(&mut self) {
        self.state = State::Over;
        self.line = Vec::new();
    }
}

impl State {
    fn head() -> Self {
        Self::Head {
            read: 0,
            framed: Framed::default(),
        }
    }
}

impl Framed {
    /// With one more line of the head; `None` where it cannot be followed.
    fn with(mut self, line: &[u8]) -> Option<Result<Self, Ambiguous>> {
        if !std::mem::replace(&mut self.begun, true) {
            return Some(Ok(self));
        }
        let colon = memchr(b':', line)?;
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"content-length") {
            let length = std::str::from_utf8(value).ok()?.parse().ok()?;
            self.length = Some(length);
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            self.coded = true;
        }
        if self.coded && self.length.is_some() {
            return Some(Err(Ambiguous));
        }
        Some(Ok(self))
    }
}

/// The size before a chunk, its extensions left out.
fn chunk_size(line: &[u8]) -> Option<u64> {
    let digits = match memchr(b';', line) {
        Some(end) => &line[..end],
        None => line,
    };
    u64::from_str_radix(std::str::from_utf8(digits.trim_ascii()).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GET: &str = "GET / HTTP/1.1\r\nhost: h\r\n\r\n";
    const POST: &str = "POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\n\r\n\r\n";
    const CHUNKED: &str = "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n\
                           4;x=y\r\na\n\nb\r\n0\r\nx: y\r\n\r\n";
    const BOTH: &str =
        "POST / HTTP/1.1\r\ncontent-length: 4\r\nTransfer-Encoding : chunked\r\n\r\n";
    const BOTH_TURNED: &str =
        "POST / HTTP/1.1\r\ntransfer-encoding:chunked\r\nContent-length:4\r\n\r\n";
    const BARE: &str = "GET / HTTP/1.1\nhost: h\r\n\r\n";

    fn read_in(pieces: &[&[u8]]) -> Result<(), Ambiguous> {
        let mut heads = Heads::new();
        pieces.iter().try_for_each(|piece| heads.read(piece))
    }

    #[test]
    fn a_head_is_found_behind_every_kind_of_body() {
        let both = BOTH.replace(" :", ":");
        for before in ["", GET, POST, CHUNKED, "\r\n"] {
            for (request, verdict) in [
                (GET, Ok(())),
                (POST, Ok(())),
                (CHUNKED, Ok(())),
                (both.as_str(), Err(Ambiguous)),
                (BOTH_TURNED, Err(Ambiguous)),
                (BARE, Err(Ambiguous)),
            ] {
                let bytes = [before, before, request].concat();
                assert_eq!(read_in(&[bytes.as_bytes()]), verdict, "{bytes}");
            }
        }
    }

    #[test]
    fn what_only_looks_like_a_head_is_none() {
        for bytes in [
            // In a body, in HTTP/2, after what cannot be followed.
            "POST / HTTP/1.1\r\ncontent-length: 8\r\n\r\nGET /\n\nx".to_owned(),
            format!("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n{BARE}"),
            format!("POST / HTTP/1.1\r\ncontent-length: x\r\n\r\n{BARE}"),
            format!(
                "POST / HTTP/1.1\r\nx: {}\r\n\r\n{BARE}",
                "x".repeat(LONGEST)
            ),
        ] {
            assert_eq!(read_in(&[bytes.as_bytes()]), Ok(()), "{bytes:.80}");
        }
    }

    proptest! {
        #[test]
        fn splits_change_nothing(
            requests in proptest::collection::vec(0_usize..5, 1..5),
            cuts in proptest::collection::vec(any::<usize>(), 0..6),
        ) {
            let kinds = [GET, POST, CHUNKED, BOTH_TURNED, BARE];
            let bytes: String = requests.iter().map(|kind| kinds[*kind]).collect();
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts
                .windows(2)
                .map(|pair| &bytes.as_bytes()[pair[0]..pair[1]])
                .collect();
            let whole = read_in(&[bytes.as_bytes()]);
            prop_assert_eq!(whole.is_err(), requests.iter().any(|kind| *kind >= 3));
            prop_assert_eq!(read_in(&pieces), whole);
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = read_in(&[&bytes]);
        }
    }
}

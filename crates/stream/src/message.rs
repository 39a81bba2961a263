//! Binary frames in and out: `application/vnd.amazon.eventstream`.
//!
//! A frame is `length u32 | length of headers u32 | crc32 of both u32 | headers | payload | crc32 of
//! all before u32`, big endian (smithy.io/2.0/aws/amazon-eventstream.html). The prelude is checked
//! as soon as it is there, so that a damaged length is noticed at once rather than waited for.

use std::fmt;

use aws_smithy_eventstream::frame::{read_message_from, write_message_to};
use aws_smithy_types::event_stream::{Header, HeaderValue, Message};
use backstop_units::ByteCount;
use bytes::{BufMut, Bytes, BytesMut};

use crate::error::Error;
use crate::frame::Frame;

/// Two lengths and their checksum.
const PRELUDE: usize = 12;
/// What a frame without headers and payload takes: a prelude and the checksum at the end.
const EMPTY: usize = PRELUDE + 4;

/// Cuts a body of binary frames into [`Frame`]s.
///
/// [`push`](Self::push) a chunk, call [`next`](Self::next) until it has no more; when the input
/// has ended, call [`finish`](Self::finish) until it has no more. The same bytes give the same
/// frames however they are cut into chunks.
pub struct MessageFramer {
    buffer: BytesMut,
    /// Why the stream cannot be read on.
    broken: Option<Error>,
}

impl MessageFramer {
    /// The most bytes in one frame (as the format's own documents say).
    pub const LIMIT: ByteCount = ByteCount::mib(16);
    /// The most bytes of headers in one frame (as the format's own documents say).
    pub const HEADERS_LIMIT: ByteCount = ByteCount::kib(128);

    /// Takes the next bytes of the stream.
    pub fn push(&mut self, chunk: &[u8]) {
        if self.broken.is_none() {
            self.buffer.extend_from_slice(chunk);
        }
    }

    /// The next frame that is complete, or `None` until more bytes are pushed.
    ///
    /// # Errors
    /// [`Error::TooLong`] for a frame beyond the limits, [`Error::Corrupt`] for one that is not what
    /// its checksums say; every later call says so again.
    #[expect(
        clippy::should_implement_trait,
        reason = "None is no end: more may be pushed"
    )]
    pub fn next(&mut self) -> Result<Option<Frame>, Error> {
        if let Some(error) = self.broken {
            return Err(error);
        }
        let next = self.cut();
        if let Err(error) = next {
            self.broken = Some(error);
            self.buffer = BytesMut::new();
        }
        next
    }

    /// The frames still inside when no byte will follow: complete ones first, then the stump of a cut
    /// one, then `None`.
    ///
    /// # Errors
    /// As for [`next`](Self::next).
    pub fn finish(&mut self) -> Result<Option<Frame>, Error> {
        if let Some(frame) = self.next()? {
            return Ok(Some(frame));
        }
        if self.buffer.is_empty() {
            return Ok(None);
        }
        let stump = self.buffer.split().freeze();
        Ok(Some(Frame::of_message(stump, Vec::new(), 0..0, false)))
    }

    fn cut(&mut self) -> Result<Option<Frame>, Error> {
        let Some(prelude) = self.buffer.first_chunk::<PRELUDE>() else {
            return Ok(None);
        };
        let (length, headers) = lengths(*prelude)?;
        if self.buffer.len() < length {
            return Ok(None);
        }
        let raw = self.buffer.split_to(length).freeze();
        let message = read_message_from(&raw[..]).map_err(|_| Error::Corrupt)?;
        let text = |header: &Header| {
            let value = header.value().as_string().ok()?;
            Some((header.name().as_str().to_owned(), value.as_str().to_owned()))
        };
        let texts = message.headers().iter().filter_map(text).collect();
        let payload = PRELUDE + headers..length - 4;
        Ok(Some(Frame::of_message(raw, texts, payload, true)))
    }
}

/// The lengths of a whole frame and of its headers, as its prelude gives them.
fn lengths(prelude: [u8; PRELUDE]) -> Result<(usize, usize), Error> {
    let [a, b, c, d, e, f, g, h, sum @ ..] = prelude;
    if crc32fast::hash(&prelude[..8]) != u32::from_be_bytes(sum) {
        return Err(Error::Corrupt);
    }
    let wide = |bytes| usize::try_from(u32::from_be_bytes(bytes)).unwrap_or(usize::MAX);
    let (length, headers) = (wide([a, b, c, d]), wide([e, f, g, h]));
    for (size, limit) in [
        (length, MessageFramer::LIMIT),
        (headers, MessageFramer::HEADERS_LIMIT),
    ] {
        if size > limit.as_len() {
            return Err(Error::TooLong { limit });
        }
    }
    if length < EMPTY + headers {
        return Err(Error::Corrupt);
    }
    Ok((length, headers))
}

impl fmt::Debug for MessageFramer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageFramer")
            .field("buffered_bytes", &self.buffer.len())
            .field("broken", &self.broken)
            .finish()
    }
}

impl Default for MessageFramer {
    fn default() -> Self {
        Self {
            buffer: BytesMut::new(),
            broken: None,
        }
    }
}

/// Appends one binary frame with text headers. `out` must be able to grow, as `Vec<u8>` and
/// `BytesMut` are.
///
/// # Panics
/// When a header or the payload is larger than the format can say: 255 bytes for a name, 32 KiB for
/// a value, 4 GiB for the payload.
pub fn write_message(
    out: &mut impl BufMut,
    headers: &[(&'static str, &'static str)],
    payload: Vec<u8>,
) {
    let headers = headers
        .iter()
        .map(|(name, value)| Header::new(*name, HeaderValue::String((*value).into())))
        .collect();
    let message = Message::new_from_parts(headers, Bytes::from(payload));
    write_message_to(&message, out).expect("our own headers are short");
}

#[cfg(test)]
mod tests;

//! The ways in which streams are cut into events on the wire.

use bytes::Bytes;

use crate::array::ArrayFramer;
use crate::error::Error;
use crate::frame::Frame;
use crate::framer::Framer;
use crate::message::MessageFramer;

/// How a stream is cut into events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Framing {
    /// `text/event-stream`.
    #[default]
    Events,
    /// One JSON array, an entry an event.
    JsonArray,
    /// `application/vnd.amazon.eventstream`: binary frames with lengths and checksums.
    Messages,
}

/// A stream under the knife, in whichever framing.
#[derive(Debug)]
pub enum Cutter {
    /// Of `text/event-stream`.
    Events(Framer),
    /// Of a JSON array.
    JsonArray(ArrayFramer),
    /// Of binary frames.
    Messages(MessageFramer),
}

impl Cutter {
    /// A fresh one for a stream in this framing.
    #[must_use]
    pub fn new(framing: Framing) -> Self {
        match framing {
            Framing::Events => Self::Events(Framer::default()),
            Framing::JsonArray => Self::JsonArray(ArrayFramer::default()),
            Framing::Messages => Self::Messages(MessageFramer::default()),
        }
    }

    /// Takes the next bytes of the stream.
    pub fn push(&mut self, chunk: Bytes) {
        match self {
            Self::Events(framer) => framer.push(chunk),
            Self::JsonArray(framer) => framer.push(&chunk),
            Self::Messages(framer) => framer.push(&chunk),
        }
    }

    /// The next frame that is complete, or `None` until more bytes are pushed.
    ///
    /// # Errors
    /// A frame outgrows the limit, or cannot be one.
    #[expect(
        clippy::should_implement_trait,
        reason = "None is no end: more may be pushed"
    )]
    pub fn next(&mut self) -> Result<Option<Frame>, Error> {
        match self {
            Self::Events(framer) => framer.next(),
            Self::JsonArray(framer) => framer.next(),
            Self::Messages(framer) => framer.next(),
        }
    }

    /// The frames still inside when no byte will follow, then `None`.
    ///
    /// # Errors
    /// As for [`next`](Self::next).
    pub fn finish(&mut self) -> Result<Option<Frame>, Error> {
        match self {
            Self::Events(framer) => framer.finish(),
            Self::JsonArray(framer) => framer.finish(),
            Self::Messages(framer) => framer.finish(),
        }
    }
}

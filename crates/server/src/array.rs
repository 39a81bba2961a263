//! A stream told as one JSON array, for callers of Google's dialect who do not ask for events.
//!
//! The journey writes events, as for everyone; here each becomes an entry. The array is closed when
//! the stream is over: whether the answer was whole, its last entry says.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use backstop_stream::Framer;
use bytes::Bytes;
use http_body::{Body, Frame};

use crate::outlet::AnswerBody;

/// The body of a response whose events become the entries of an array.
pub(crate) struct ArrayBody {
    events: AnswerBody,
    framer: Framer,
    /// Whether an entry was written.
    begun: bool,
    ended: bool,
}

impl ArrayBody {
    /// An array of the events of `events`.
    pub(crate) fn of(events: AnswerBody) -> Self {
        Self {
            events,
            framer: Framer::default(),
            begun: false,
            ended: false,
        }
    }

    /// As [`Body::poll_frame`].
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let mut out = Vec::new();
        while out.is_empty() {
            if self.ended {
                return Poll::Ready(None);
            }
            match ready!(Pin::new(&mut self.events).poll_frame(cx)) {
                Some(Ok(frame)) => {
                    if let Ok(bytes) = frame.into_data() {
                        self.framer.push(bytes);
                    }
                    self.entries(&mut out, false);
                }
                _ => {
                    self.ended = true;
                    self.entries(&mut out, true);
                    out.extend_from_slice(if self.begun { b"]" } else { b"[]" });
                }
            }
        }
        Poll::Ready(Some(Ok(Frame::data(out.into()))))
    }

    /// The entries that have come together; `last`: no more will.
    fn entries(&mut self, out: &mut Vec<u8>, last: bool) {
        loop {
            let frame = match self.framer.next() {
                Ok(None) if last => self.framer.finish(),
                next => next,
            };
            let Ok(Some(frame)) = frame else { return };
            if frame.data().is_empty() {
                continue;
            }
            let begun = std::mem::replace(&mut self.begun, true);
            out.extend_from_slice(if begun { b",\r\n" } else { b"[" });
            out.extend_from_slice(frame.data());
        }
    }
}

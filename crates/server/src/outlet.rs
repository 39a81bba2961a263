//! How a journey hands bytes to its caller: a small slot between the journey's own future and the
//! response body that drives it.
//!
//! No task is spawned. Until the head is there the request's handler polls the journey; from then
//! on the response body does. When the caller hangs up, hyper drops whichever of the two it holds,
//! and with it the journey, its upstream connection and its guards. A caller that reads slowly
//! stops the journey at the slot's bound.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Response, response};
use http_body::{Body, Frame, SizeHint};

use crate::array::ArrayBody;

/// Bytes that may wait for a caller before its journey stops reading from the provider.
const SLOT_BYTES: usize = 64 * 1024;

/// The journey's side: a head once, then bytes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outlet(Arc<Mutex<Slot>>);

#[derive(Debug, Default)]
struct Slot {
    head: Option<response::Parts>,
    waiting: VecDeque<Bytes>,
    size: usize,
    /// The last bytes that were handed over.
    tail: [u8; 3],
}

impl Outlet {
    /// Gives the response's head: from now on the caller has a status.
    pub(crate) fn open(&self, head: response::Parts) {
        self.slot().head = Some(head);
    }

    /// Hands over bytes, waiting while the caller is behind.
    pub(crate) async fn send(&self, bytes: Bytes) {
        poll_fn(|_| {
            if self.slot().size < SLOT_BYTES {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
        self.push(bytes);
    }

    /// Hands over bytes without waiting, for the last ones of a stream.
    pub(crate) fn push(&self, bytes: Bytes) {
        if bytes.is_empty() {
            return;
        }
        let mut slot = self.slot();
        for byte in &bytes[bytes.len().saturating_sub(3)..] {
            let [_, second, third] = slot.tail;
            slot.tail = [second, third, *byte];
        }
        slot.size += bytes.len();
        slot.waiting.push_back(bytes);
    }

    /// Completes a line end that a broken stream was cut in: after CR LF CR the blank line is there
    /// by the rules of event streams, but not for clients that look for CR LF CR LF.
    pub(crate) fn end_line(&self) {
        let tail = self.slot().tail;
        if tail == *b"\r\n\r" {
            self.push(Bytes::from_static(b"\n"));
        }
    }

    fn take(&self) -> Option<Bytes> {
        let mut slot = self.slot();
        let bytes = slot.waiting.pop_front()?;
        slot.size -= bytes.len();
        Some(bytes)
    }

    fn slot(&self) -> MutexGuard<'_, Slot> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A journey in flight. It answers with a whole response, or opens its outlet and answers nothing.
type InFlight = Pin<Box<dyn Future<Output = Option<Response<Bytes>>> + Send>>;

/// The body of a caller's response.
pub struct AnswerBody(Inner);

enum Inner {
    Whole(Option<Bytes>),
    Streaming {
        journey: Option<InFlight>,
        outlet: Outlet,
    },
    Array(Box<ArrayBody>),
}

impl AnswerBody {
    /// A body that is already there.
    pub(crate) const fn whole(bytes: Bytes) -> Self {
        Self(Inner::Whole(Some(bytes)))
    }

    /// The same, a stream of events told as one array.
    pub(crate) fn into_array(self) -> Self {
        match self.0 {
            Inner::Streaming { .. } => Self(Inner::Array(Box::new(ArrayBody::of(self)))),
            _ => self,
        }
    }

    /// Whether it comes piece by piece.
    pub(crate) const fn is_stream(&self) -> bool {
        !matches!(self.0, Inner::Whole(_))
    }
}

impl std::fmt::Debug for AnswerBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match &self.0 {
            Inner::Whole(_) => "AnswerBody(whole)",
            Inner::Streaming { .. } => "AnswerBody(streaming)",
            Inner::Array(_) => "AnswerBody(array)",
        })
    }
}

/// Runs a journey until the caller can be given a status.
pub(crate) async fn respond(mut journey: InFlight, outlet: Outlet) -> Response<AnswerBody> {
    let begun = poll_fn(|cx| match journey.as_mut().poll(cx) {
        Poll::Ready(Some(answer)) => Poll::Ready(Begun::Whole(answer)),
        Poll::Ready(None) => Poll::Ready(Begun::Over),
        Poll::Pending if outlet.slot().head.is_some() => Poll::Ready(Begun::Running),
        Poll::Pending => Poll::Pending,
    })
    .await;
    let journey = match begun {
        Begun::Whole(answer) => return answer.map(AnswerBody::whole),
        Begun::Over => None,
        Begun::Running => Some(journey),
    };
    let head = outlet.slot().head.take();
    let mut response = Response::new(());
    if let Some(head) = head {
        response = Response::from_parts(head, ());
    }
    response.map(|()| AnswerBody(Inner::Streaming { journey, outlet }))
}

/// How far a journey had come when the caller could be given a status.
enum Begun {
    /// It is over, with a whole response.
    Whole(Response<Bytes>),
    /// It is over, and all of its stream is in the outlet.
    Over,
    /// Its stream has begun.
    Running,
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.0 {
            Inner::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Inner::Array(array) => array.poll(cx),
            Inner::Streaming { journey, outlet } => {
                if let Some(bytes) = outlet.take() {
                    return Poll::Ready(Some(Ok(Frame::data(bytes))));
                }
                if let Some(running) = journey
                    && running.as_mut().poll(cx).is_ready()
                {
                    *journey = None;
                }
                match outlet.take() {
                    Some(bytes) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
                    None if journey.is_none() => Poll::Ready(None),
                    None => Poll::Pending,
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Inner::Whole(bytes) => bytes.as_ref().is_none_or(Bytes::is_empty),
            Inner::Streaming { .. } | Inner::Array(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Inner::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Inner::Streaming { .. } | Inner::Array(_) => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_end_that_was_cut_is_completed() {
        for (pieces, want) in [
            (&["data: a\r\n\r"][..], "data: a\r\n\r\n"),
            (&["data: a\r", "\n", "\r"], "data: a\r\n\r\n"),
            (&["data: a\r\n\r\n"], "data: a\r\n\r\n"),
            (&["data: a\r\r"], "data: a\r\r"),
            (&["data: a\n\n"], "data: a\n\n"),
            (&[], ""),
        ] {
            let outlet = Outlet::default();
            for piece in pieces {
                outlet.push(Bytes::from(*piece));
            }
            outlet.end_line();
            let mut out = Vec::new();
            while let Some(bytes) = outlet.take() {
                out.extend_from_slice(&bytes);
            }
            assert_eq!(String::from_utf8_lossy(&out), want);
        }
    }
}

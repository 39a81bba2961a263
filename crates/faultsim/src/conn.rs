//! One connection, byte by byte, with an eye on the peer.
//!
//! Whatever the simulator does on a connection (wait, write, hang), it reads at the same time:
//! the peer's close is noticed when it happens, and bytes of a next request are kept. An end of
//! input counts as the peer's hang-up, as it does for HTTP servers at large.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::sync::watch;
use tokio::time::Instant;

/// How many bytes of a next request are kept while an answer is written. Beyond it the
/// connection is no longer read, and no longer watched, until the answer is out.
const AHEAD: usize = 1 << 20;

/// How and when a peer closed its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerClose {
    /// When the simulator saw it.
    pub at: Instant,
    /// How it was done.
    pub how: CloseKind,
}

/// The two ways a peer leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseKind {
    /// An orderly end of its bytes (FIN).
    Fin,
    /// A reset, or any other broken connection.
    Reset,
}

pub(crate) struct Conn<I> {
    io: I,
    input: BytesMut,
    closed: Option<PeerClose>,
    notice: watch::Sender<Option<PeerClose>>,
}

impl<I: AsyncRead + AsyncWrite + Unpin> Conn<I> {
    pub(crate) fn new(io: I, notice: watch::Sender<Option<PeerClose>>) -> Self {
        Self {
            io,
            input: BytesMut::new(),
            closed: None,
            notice,
        }
    }

    pub(crate) const fn io(&self) -> &I {
        &self.io
    }

    pub(crate) const fn closed(&self) -> Option<PeerClose> {
        self.closed
    }

    /// The bytes read and not yet taken.
    pub(crate) fn input(&self) -> &[u8] {
        &self.input
    }

    /// Takes the first `count` bytes of the input.
    pub(crate) fn take(&mut self, count: usize) -> Bytes {
        self.input.split_to(count).freeze()
    }

    /// Reads more input: how many bytes came.
    pub(crate) async fn fill(&mut self) -> Result<usize, PeerClose> {
        poll_fn(|cx| self.poll_input(cx)).await
    }

    /// Waits until `when`.
    pub(crate) async fn wait_until(&mut self, when: Instant) -> Result<(), PeerClose> {
        let mut alarm = pin!(tokio::time::sleep_until(when));
        poll_fn(|cx| {
            if let Poll::Ready(closed) = self.poll_closed(cx) {
                return Poll::Ready(Err(closed));
            }
            alarm.as_mut().poll(cx).map(Ok)
        })
        .await
    }

    /// Writes all of `bytes`.
    pub(crate) async fn write(&mut self, mut bytes: &[u8]) -> Result<(), PeerClose> {
        poll_fn(|cx| {
            loop {
                if let Poll::Ready(closed) = self.poll_closed(cx) {
                    return Poll::Ready(Err(closed));
                }
                let wrote = if bytes.is_empty() {
                    ready!(Pin::new(&mut self.io).poll_flush(cx)).map(|()| 0)
                } else {
                    ready!(Pin::new(&mut self.io).poll_write(cx, bytes))
                };
                match wrote {
                    Err(_) => return Poll::Ready(Err(self.lost(CloseKind::Reset))),
                    Ok(_) if bytes.is_empty() => return Poll::Ready(Ok(())),
                    Ok(0) => return Poll::Ready(Err(self.lost(CloseKind::Reset))),
                    Ok(count) => bytes = &bytes[count..],
                }
            }
        })
        .await
    }

    /// Waits until the peer closes, throwing away what it sends.
    pub(crate) async fn peer_close(&mut self) -> PeerClose {
        poll_fn(|cx| {
            loop {
                self.input.clear();
                if let Some(closed) = self.closed {
                    return Poll::Ready(closed);
                }
                if let Err(closed) = ready!(self.poll_input(cx)) {
                    return Poll::Ready(closed);
                }
            }
        })
        .await
    }

    /// Ends our side of the connection in good order.
    pub(crate) async fn end(&mut self) {
        let _ = self.io.shutdown().await;
    }

    fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<PeerClose> {
        loop {
            if let Some(closed) = self.closed {
                return Poll::Ready(closed);
            }
            if self.input.len() >= AHEAD {
                return Poll::Pending;
            }
            if let Err(closed) = ready!(self.poll_input(cx)) {
                return Poll::Ready(closed);
            }
        }
    }

    fn poll_input(&mut self, cx: &mut Context<'_>) -> Poll<Result<usize, PeerClose>> {
        if let Some(closed) = self.closed {
            return Poll::Ready(Err(closed));
        }
        let mut space = [0; 16 * 1024];
        let mut space = ReadBuf::new(&mut space);
        let read: io::Result<()> = ready!(Pin::new(&mut self.io).poll_read(cx, &mut space));
        Poll::Ready(match read {
            Err(_) => Err(self.lost(CloseKind::Reset)),
            Ok(()) if space.filled().is_empty() => Err(self.lost(CloseKind::Fin)),
            Ok(()) => {
                self.input.extend_from_slice(space.filled());
                Ok(space.filled().len())
            }
        })
    }

    /// Records that the peer is gone. The first sighting stands.
    fn lost(&mut self, how: CloseKind) -> PeerClose {
        let closed = *self.closed.get_or_insert_with(|| PeerClose {
            at: Instant::now(),
            how,
        });
        self.notice.send_replace(Some(closed));
        closed
    }
}

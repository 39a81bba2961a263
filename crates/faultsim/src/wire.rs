//! An in-memory stream that, unlike tokio's duplex, can be reset.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};

/// How much it holds in each direction before its writer waits.
const CAPACITY: usize = 64 * 1024;

/// One end of an in-memory connection. Dropping it is an orderly close; after [`Wire::reset`] the
/// other end reads what was sent before, then fails with `ConnectionReset`.
#[derive(Debug)]
pub struct Wire {
    io: DuplexStream,
    /// Set by either end; once set, the connection is broken for both.
    reset: Arc<AtomicBool>,
}

impl Wire {
    /// Both ends of a new connection.
    #[must_use]
    pub fn pair() -> (Self, Self) {
        let (near, far) = tokio::io::duplex(CAPACITY);
        let reset = Arc::new(AtomicBool::new(false));
        (
            Self {
                io: near,
                reset: Arc::clone(&reset),
            },
            Self { io: far, reset },
        )
    }

    /// Breaks the connection, as a TCP reset does.
    pub fn reset(self) {
        self.arm_reset();
    }

    /// Makes the coming drop a reset.
    pub(crate) fn arm_reset(&self) {
        self.reset.store(true, Ordering::Release);
    }

    fn broken(&self) -> bool {
        self.reset.load(Ordering::Acquire)
    }

    fn checked<T>(&self, done: io::Result<T>) -> io::Result<T> {
        done.map_err(|error| if self.broken() { reset_error() } else { error })
    }
}

fn reset_error() -> io::Error {
    io::ErrorKind::ConnectionReset.into()
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        space: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = space.filled().len();
        let wanted = space.remaining() > 0;
        let read = ready!(Pin::new(&mut self.io).poll_read(cx, space));
        let ended = read.is_ok() && wanted && space.filled().len() == before;
        Poll::Ready(if ended && self.broken() {
            Err(reset_error())
        } else {
            read
        })
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let wrote = ready!(Pin::new(&mut self.io).poll_write(cx, bytes));
        Poll::Ready(self.checked(wrote))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn a_close_is_an_end_and_a_reset_is_an_error() {
        for reset in [false, true] {
            let (mut near, mut far) = Wire::pair();
            far.write_all(b"last words").await.unwrap();
            if reset {
                far.reset();
            } else {
                drop(far);
            }
            let mut seen = Vec::new();
            let end = near.read_to_end(&mut seen).await;
            assert_eq!(seen, b"last words");
            assert_eq!(end.is_err(), reset);
            let kind = near.write_all(b"x").await.unwrap_err().kind();
            let want = if reset {
                io::ErrorKind::ConnectionReset
            } else {
                io::ErrorKind::BrokenPipe
            };
            assert_eq!(kind, want);
        }
    }
}

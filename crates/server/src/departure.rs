//! A connection whose peer is seen to leave, also behind bytes that nobody has read yet.
//!
//! While a request runs, hyper watches for the end of its input only as long as it holds no unread
//! bytes. One line end after a body, or the next request sent early, and a caller's hang-up would
//! go unseen until something is written. So what lies behind the request is read ahead here, into
//! a small buffer, and an end behind it breaks the connection off; the journey goes with it. A
//! request whose caller has left before it is read, as one that waited long for a place may have,
//! never comes to its first attempt.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// How much is read ahead. Our choice: a request or two. A caller who sends more than this behind a
/// running request is seen to leave only when something is written.
const AHEAD: usize = 16 * 1024;

/// A stream of bytes that notices its peer's end while its reader rests.
///
/// It looks when it is flushed, which hyper does in every turn of a connection, and behind whatever
/// it has read.
pub(crate) struct Watched<I> {
    io: I,
    ahead: BytesMut,
}

impl<I> Watched<I> {
    pub(crate) fn new(io: I) -> Self {
        Self {
            io,
            ahead: BytesMut::new(),
        }
    }
}

impl<I: AsyncRead + Unpin> Watched<I> {
    /// Reads ahead what has arrived. An error once the peer has left.
    fn look(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        let mut found = false;
        while self.ahead.len() < AHEAD {
            let mut space = [0; 1024];
            let mut space = ReadBuf::new(&mut space);
            match Pin::new(&mut self.io).poll_read(cx, &mut space) {
                Poll::Pending => break,
                Poll::Ready(Err(error)) => return Err(error),
                Poll::Ready(Ok(())) if space.filled().is_empty() => {
                    return Err(io::Error::new(
                        io::ErrorKind::ConnectionAborted,
                        "the caller left",
                    ));
                }
                Poll::Ready(Ok(())) => {
                    self.ahead.extend_from_slice(space.filled());
                    found = true;
                }
            }
        }
        if found {
            // The reader waits for the socket, and what it waits for is here now.
            cx.waker().wake_by_ref();
        }
        Ok(())
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for Watched<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.ahead.is_empty() {
            let before = buf.filled().len();
            let read = Pin::new(&mut self.io).poll_read(cx, buf);
            let some = buf.filled().len() > before && buf.remaining() > 0;
            if some
                && matches!(read, Poll::Ready(Ok(())))
                && let Err(left) = self.look(cx)
            {
                buf.set_filled(before);
                return Poll::Ready(Err(left));
            }
            return read;
        }
        let count = self.ahead.len().min(buf.remaining());
        buf.put_slice(&self.ahead[..count]);
        self.ahead.advance(count);
        Poll::Ready(Ok(()))
    }
}

impl<I: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Watched<I> {
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
        let flushed = Pin::new(&mut self.io).poll_flush(cx);
        self.look(cx)?;
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    #[tokio::test]
    async fn an_end_behind_unread_bytes_is_seen() {
        let (near, mut far) = duplex(64);
        let mut near = Watched::new(near);
        far.write_all(b"next").await.expect("room");
        near.flush().await.expect("the peer is there");
        drop(far);
        let error = near.flush().await.expect_err("the peer is gone");
        assert_eq!(error.kind(), io::ErrorKind::ConnectionAborted);
    }

    #[tokio::test]
    async fn a_request_whose_caller_has_left_is_not_read() {
        let (near, mut far) = duplex(64);
        let mut near = Watched::new(near);
        far.write_all(b"request").await.expect("room");
        drop(far);
        let error = near.read(&mut [0; 64]).await.expect_err("the peer is gone");
        assert_eq!(error.kind(), io::ErrorKind::ConnectionAborted);
    }

    #[tokio::test]
    async fn what_was_read_ahead_is_read_in_order() {
        let (near, mut far) = duplex(64);
        let mut near = Watched::new(near);
        let mut read = Vec::new();
        for piece in ["one ", "two ", "three"] {
            far.write_all(piece.as_bytes()).await.expect("room");
            near.flush().await.expect("the peer is there");
            let mut some = [0; 3];
            let count = near.read(&mut some).await.expect("bytes");
            read.extend_from_slice(&some[..count]);
        }
        drop(far);
        near.read_to_end(&mut read).await.expect("the rest");
        assert_eq!(read, b"one two three");
    }

    #[tokio::test]
    async fn no_more_is_read_ahead_than_fits() {
        let (near, mut far) = duplex(4 * AHEAD);
        let mut near = Watched::new(near);
        far.write_all(&vec![7; 3 * AHEAD]).await.expect("room");
        drop(far);
        near.flush().await.expect("its end is not in sight");
        assert!(near.ahead.len() < 2 * AHEAD);
        let mut read = vec![0; 3 * AHEAD];
        near.read_exact(&mut read).await.expect("all of it");
        assert!(read.iter().all(|byte| *byte == 7));
    }
}

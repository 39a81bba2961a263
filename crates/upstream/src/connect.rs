//! From an authority to a ready connection, with a memory of its own.
//!
//! The connector dials, wraps TLS round it where the scheme asks for it, and hands hyper a
//! [`Tracked`] stream. Its [`Lineage`] travels with the connection through the pool and answers the
//! questions the pool keeps to itself: when was it opened, has it been used, did bytes move.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use http::Uri;
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;
use tower_service::Service;

use crate::dial::{BoxIo, Dial, Io};
use crate::failure::NotConnected;

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type Connecting<T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send>>;

/// What hyper's client calls for each new connection.
#[derive(Clone)]
pub(crate) struct Connector {
    https: HttpsConnector<Dialer>,
}

impl Connector {
    pub(crate) fn new(dial: Arc<dyn Dial>, tls: ClientConfig) -> Self {
        Self {
            https: HttpsConnector::from((Dialer(dial), Arc::new(tls))),
        }
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Tracked>;
    type Error = NotConnected;
    type Future = Connecting<Self::Response, NotConnected>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), NotConnected>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connecting = self.https.call(uri);
        Box::pin(async move {
            match connecting.await {
                Ok(stream) => Ok(TokioIo::new(Tracked::new(stream))),
                Err(error) => Err(match error.downcast::<NotDialled>() {
                    Ok(refused) => NotConnected::dialling(&refused.0),
                    Err(error) => NotConnected::securing(&*error),
                }),
            }
        })
    }
}

/// The history of one connection, shared by everyone who ever used it.
#[derive(Debug)]
pub(crate) struct Lineage {
    opened: Instant,
    uses: AtomicUsize,
    /// Whether any byte was ever written.
    wrote: AtomicBool,
    /// Whether bytes arrived after the last write.
    answered: AtomicBool,
}

impl Lineage {
    /// Books one use. The answer: was it new to the caller that began waiting at `since`? A
    /// connection opened earlier by somebody who then did not need it has been idle in the pool,
    /// and may be as stale as a used one.
    pub(crate) fn enter(&self, since: Instant) -> bool {
        let earlier = self.uses.fetch_add(1, Ordering::Relaxed);
        earlier == 0 && self.opened >= since
    }

    pub(crate) fn opened(&self) -> Instant {
        self.opened
    }

    pub(crate) fn wrote(&self) -> bool {
        self.wrote.load(Ordering::Relaxed)
    }

    pub(crate) fn answered(&self) -> bool {
        self.answered.load(Ordering::Relaxed)
    }
}

/// A connection as hyper sees it: clear text inside or outside TLS, with its lineage.
pub(crate) struct Tracked {
    stream: Stream,
    is_h2: bool,
    lineage: Arc<Lineage>,
}

enum Stream {
    Plain(Plain),
    Tls(Box<tokio_rustls::client::TlsStream<TokioIo<TokioIo<Plain>>>>),
}

impl Tracked {
    fn new(stream: MaybeHttpsStream<TokioIo<Plain>>) -> Self {
        let is_h2 = stream.connected().is_negotiated_h2();
        let stream = match stream {
            MaybeHttpsStream::Http(io) => Stream::Plain(io.into_inner()),
            MaybeHttpsStream::Https(io) => Stream::Tls(Box::new(io.into_inner())),
        };
        let lineage = Lineage {
            opened: Instant::now(),
            uses: AtomicUsize::new(0),
            wrote: AtomicBool::new(false),
            answered: AtomicBool::new(false),
        };
        Self {
            stream,
            is_h2,
            lineage: Arc::new(lineage),
        }
    }

    fn io(&mut self) -> Pin<&mut dyn Io> {
        match &mut self.stream {
            Stream::Plain(io) => Pin::new(io),
            Stream::Tls(io) => Pin::new(io),
        }
    }

    fn before_write(&self) {
        self.lineage.answered.store(false, Ordering::Relaxed);
    }

    fn after_write(&self, result: &Poll<io::Result<usize>>) {
        if matches!(result, Poll::Ready(Ok(1..))) {
            self.lineage.wrote.store(true, Ordering::Relaxed);
        }
    }
}

impl Connection for Tracked {
    fn connected(&self) -> Connected {
        let connected = Connected::new().extra(Arc::clone(&self.lineage));
        if self.is_h2 {
            connected.negotiated_h2()
        } else {
            connected
        }
    }
}

impl AsyncRead for Tracked {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let result = self.io().poll_read(cx, buf);
        if buf.filled().len() > before {
            self.lineage.answered.store(true, Ordering::Relaxed);
        }
        result
    }
}

impl AsyncWrite for Tracked {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.before_write();
        let result = self.io().poll_write(cx, buf);
        self.after_write(&result);
        result
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.before_write();
        let result = self.io().poll_write_vectored(cx, bufs);
        self.after_write(&result);
        result
    }

    fn is_write_vectored(&self) -> bool {
        match &self.stream {
            Stream::Plain(io) => io.is_write_vectored(),
            Stream::Tls(io) => io.is_write_vectored(),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io().poll_shutdown(cx)
    }
}

/// The innermost step: a dialled stream, before TLS.
#[derive(Clone)]
struct Dialer(Arc<dyn Dial>);

/// Marks an error of the dialling step, since the TLS step speaks in `io::Error` as well.
#[derive(Debug, thiserror::Error)]
#[error("no connection was opened")]
struct NotDialled(#[source] io::Error);

impl Service<Uri> for Dialer {
    type Response = TokioIo<Plain>;
    type Error = BoxError;
    type Future = Connecting<Self::Response, BoxError>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let host = uri.host().unwrap_or_default();
        let bare = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
            .unwrap_or(host);
        let is_https = uri.scheme() == Some(&http::uri::Scheme::HTTPS);
        let port = uri.port_u16().unwrap_or(if is_https { 443 } else { 80 });
        let dialling = self.0.dial(bare, port);
        Box::pin(async move {
            match dialling.await {
                Ok(io) => Ok(TokioIo::new(Plain(io))),
                Err(error) => Err(NotDialled(error).into()),
            }
        })
    }
}

struct Plain(BoxIo);

impl Connection for Plain {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl AsyncRead for Plain {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for Plain {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

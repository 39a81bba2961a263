//! The listener: connections in, requests to the gateway, and an end in bounded time.

use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinSet, yield_now};
use tokio::time::{sleep, timeout};

use crate::departure::Watched;
use crate::gateway::Gateway;
use crate::handle::handle;
use crate::heads::{Doubt, Followed};
use crate::stall::Impatient;
use crate::tls::Tls;

/// Streams one HTTP/2 connection may have open at once.
const H2_STREAMS: u32 = 100;

/// The largest list of request headers over HTTP/2, and the read buffer over HTTP/1.
const HEADER_BYTES: u32 = 64 * 1024;

/// What a listener allows its peers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Connections at once; more wait in the kernel's queue. Default 10,000.
    pub connections: usize,
    /// From the connection to its first byte. Default 15 s.
    pub first_byte: Duration,
    /// From the first byte of a request to the end of its headers. Default 15 s. It bounds an idle
    /// keep-alive connection as well.
    pub headers: Duration,
    /// How long a caller may leave its answer unread before its connection is broken off. Default
    /// 60 s. Over HTTP/2 it bounds the connection, not a single stream.
    pub stall: Duration,
    /// After the signal to stop: how long requests in flight may go on. Default 30 s.
    pub drain: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            connections: 10_000,
            first_byte: Duration::from_secs(15),
            headers: Duration::from_secs(15),
            stall: Duration::from_secs(60),
            drain: Duration::from_secs(30),
        }
    }
}

/// Serves `listener` until `stop` is ready, then closes it, lets requests in flight end within the
/// drain window, and closes what is left.
///
/// # Errors
/// When the listener itself fails in a way that waiting does not mend.
pub async fn serve(
    listener: TcpListener,
    gateway: Arc<Gateway>,
    limits: ConnectionLimits,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    serve_over(listener, None, gateway, limits, stop).await
}

/// The same, over TLS where there is some.
///
/// # Errors
/// As [`serve`].
pub async fn serve_over(
    listener: TcpListener,
    tls: Option<Tls>,
    gateway: Arc<Gateway>,
    limits: ConnectionLimits,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let (draining, drain) = watch::channel(false);
    let places = Arc::new(Semaphore::new(limits.connections));
    let mut connections = JoinSet::new();
    let mut stop = pin!(stop);
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut stop => break,
            Some(_) = connections.join_next() => continue,
            accepted = accept(&listener, &places) => accepted,
        };
        let (stream, place) = match accepted {
            Ok(accepted) => accepted,
            Err(error) if is_passing(&error) => {
                tracing::warn!(%error, "cannot accept a connection; trying again in a moment");
                sleep(Duration::from_millis(50)).await;
                continue;
            }
            Err(error) => return Err(error),
        };
        let (gateway, drain, tls) = (Arc::clone(&gateway), drain.clone(), tls.clone());
        connections.spawn(async move {
            let _ = stream.set_nodelay(true);
            if let Ok(true) = timeout(limits.first_byte, has_spoken(&stream)).await {
                match tls {
                    None => serve_connection(stream, gateway, limits, drain).await,
                    Some(tls) => {
                        let shaken = timeout(limits.headers, tls.acceptor().accept(stream)).await;
                        match shaken {
                            Ok(Ok(stream)) => {
                                serve_connection(stream, gateway, limits, drain).await;
                            }
                            Ok(Err(error)) => tracing::debug!(%error, "no TLS with a peer"),
                            Err(_) => tracing::debug!("a peer was too slow with its TLS"),
                        }
                    }
                }
            }
            drop(place);
        });
    }
    drop(listener);
    gateway.begin_drain();
    draining.send_replace(true);
    let all_done = async { while connections.join_next().await.is_some() {} };
    if timeout(limits.drain, all_done).await.is_err() {
        tracing::warn!(
            connections = connections.len(),
            "the drain window is over; closing what is left"
        );
    }
    connections.shutdown().await;
    Ok(())
}

/// Waits for the first byte; false when the peer left without one.
///
/// A new socket counts as readable until somebody has looked (tokio saves itself the question), so
/// its readiness alone says nothing. The turn given away lets the runtime hear first what the kernel
/// has to tell of the socket: also that the peer is gone again, if it waited long for its place.
async fn has_spoken(stream: &TcpStream) -> bool {
    yield_now().await;
    matches!(stream.peek(&mut [0]).await, Ok(1))
}

type Accepted = (TcpStream, tokio::sync::OwnedSemaphorePermit);

async fn accept(listener: &TcpListener, places: &Arc<Semaphore>) -> io::Result<Accepted> {
    let place = Arc::clone(places)
        .acquire_owned()
        .await
        .map_err(|_| io::Error::other("the listener was closed"))?;
    let (stream, _) = listener.accept().await?;
    Ok((stream, place))
}

/// Serves one connection, over any stream of bytes, until its peer leaves or the drain ends it.
pub async fn serve_connection<I>(
    io: I,
    gateway: Arc<Gateway>,
    limits: ConnectionLimits,
    mut drain: watch::Receiver<bool>,
) where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let doubt = Doubt::default();
    let doubted = doubt.clone();
    let service = service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
        let gateway = Arc::clone(&gateway);
        if doubted.is_there() {
            request.extensions_mut().insert(doubted.clone());
        }
        async move { Ok::<_, Infallible>(handle(gateway, request).await) }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.headers)
        .max_buf_size(HEADER_BYTES as usize);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(H2_STREAMS)
        .max_header_list_size(HEADER_BYTES)
        .keep_alive_interval(Duration::from_secs(30))
        .keep_alive_timeout(Duration::from_secs(20));
    let io = Watched::new(Followed::new(Impatient::new(io, limits.stall), doubt));
    let mut connection = pin!(builder.serve_connection(TokioIo::new(io), service));
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = begun(&mut drain) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// Ready once the drain has begun.
async fn begun(drain: &mut watch::Receiver<bool>) {
    // The sender lives as long as the listener; without one there is nothing to wait for.
    let _ = drain.wait_for(|draining| *draining).await;
}

/// Trouble of one connection, or a shortage that passes; not the listener's end.
fn is_passing(error: &io::Error) -> bool {
    const EMFILE: i32 = 24;
    const ENFILE: i32 = 23;
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
            | io::ErrorKind::OutOfMemory
    ) || matches!(error.raw_os_error(), Some(EMFILE | ENFILE))
}

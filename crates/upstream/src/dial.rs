//! How a byte stream to a host is opened: TCP by default, anything else in tests.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// A byte stream in both directions.
pub trait Io: AsyncRead + AsyncWrite + Send + Unpin + 'static {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin + 'static> Io for T {}

/// Any byte stream.
pub type BoxIo = Box<dyn Io>;

/// A byte stream being opened. Dropping it gives up.
pub type Dialing = Pin<Box<dyn Future<Output = io::Result<BoxIo>> + Send>>;

/// Opens byte streams to hosts. A name that cannot be resolved is reported by an error that wraps
/// [`Unresolved`] (`Unresolved.into()`), so that it is told apart from a refused connection.
pub trait Dial: Send + Sync + 'static {
    /// Opens a stream to `host` (a DNS name or an IP address without brackets) at `port`.
    fn dial(&self, host: &str, port: u16) -> Dialing;
}

/// The name of the host led to no address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the host name could not be resolved")]
pub struct Unresolved;

impl From<Unresolved> for io::Error {
    fn from(unresolved: Unresolved) -> Self {
        Self::new(io::ErrorKind::NotFound, unresolved)
    }
}

/// Opens TCP connections: the system's resolver, its addresses in its order, no delay for small
/// writes.
#[derive(Debug, Clone)]
pub struct TcpDial {
    /// After how much silence the kernel starts to probe the peer, and how often it repeats that.
    /// Default 60 s (our choice), well below the minutes after which a NAT gateway forgets a silent
    /// connection: a long answer that is computed in silence survives, and a peer that vanished is
    /// noticed. `None` sends no probes.
    pub keepalive: Option<Duration>,
}

impl Default for TcpDial {
    fn default() -> Self {
        Self {
            keepalive: Some(Duration::from_secs(60)),
        }
    }
}

impl Dial for TcpDial {
    fn dial(&self, host: &str, port: u16) -> Dialing {
        let host = host.to_owned();
        let keepalive = self.keepalive;
        Box::pin(async move {
            let stream = connect(&host, port).await?;
            stream.set_nodelay(true)?;
            if let Some(every) = keepalive {
                let keepalive = TcpKeepalive::new().with_time(every).with_interval(every);
                SockRef::from(&stream).set_tcp_keepalive(&keepalive)?;
            }
            Ok(Box::new(stream) as BoxIo)
        })
    }
}

async fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    let addresses = match tokio::net::lookup_host((host, port)).await {
        Ok(addresses) => addresses,
        Err(error) => {
            tracing::debug!(kind = ?error.kind(), "name resolution failed");
            return Err(Unresolved.into());
        }
    };
    let mut last = Unresolved.into();
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

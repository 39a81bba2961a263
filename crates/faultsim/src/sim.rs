//! The simulator: a provider at an address or at the end of an in-memory stream.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::Error;
use crate::attempt::Attempt;
use crate::desk::Desk;
use crate::door::Entrance;
use crate::log::Observer;
use crate::receive::Broken;
use crate::script::{Script, Step};
use crate::wire::Wire;

/// A simulated provider. Dropping it ends its listener and every connection at once.
///
/// Its time is tokio's, so a paused clock moves it. Its methods that serve need a tokio runtime.
pub struct Sim {
    desk: Arc<Desk>,
    entrance: Arc<Entrance>,
    tasks: Mutex<JoinSet<()>>,
    address: Mutex<Option<SocketAddr>>,
}

/// A way in which what happened differs from what was scripted.
#[derive(Debug)]
pub enum Deviation {
    /// An attempt found no step.
    Unexpected(Attempt),
    /// A step was not used up.
    LeftOver {
        /// Its index, from 0.
        step: usize,
        /// How often it was still due.
        times: u32,
    },
    /// Something came that is no request.
    Broken(Broken),
}

impl Sim {
    /// A provider without an address, for in-memory streams or a later [`Sim::listen`].
    #[must_use]
    pub fn new(script: Script) -> Self {
        Self::with(script, None)
    }

    /// The same, telling `observer` what happens.
    #[must_use]
    pub fn observed(script: Script, observer: Observer) -> Self {
        Self::with(script, Some(observer))
    }

    fn with(script: Script, observer: Option<Observer>) -> Self {
        Self {
            entrance: Arc::new(Entrance::new(script.door)),
            desk: Arc::new(Desk::new(script, observer)),
            tasks: Mutex::new(JoinSet::new()),
            address: Mutex::new(None),
        }
    }

    /// A provider that listens, as on `127.0.0.1:0`.
    ///
    /// # Errors
    /// [`Error::Listen`] when the address cannot be had.
    pub async fn bind(address: &str, script: Script) -> Result<Self, Error> {
        let sim = Self::new(script);
        sim.listen(address).await?;
        Ok(sim)
    }

    /// Starts to listen, and says where.
    ///
    /// # Errors
    /// [`Error::Listen`] when the address cannot be had.
    pub async fn listen(&self, address: &str) -> Result<SocketAddr, Error> {
        let refused = |source| Error::Listen {
            address: address.to_owned(),
            source,
        };
        let listener = TcpListener::bind(address).await.map_err(refused)?;
        let local = listener.local_addr().map_err(refused)?;
        self.spawn(accept(
            listener,
            Arc::clone(&self.desk),
            Arc::clone(&self.entrance),
        ));
        *self.address.lock().unwrap_or_else(PoisonError::into_inner) = Some(local);
        Ok(local)
    }

    /// Where it listens.
    ///
    /// # Panics
    /// When it does not.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        let address = *self.address.lock().unwrap_or_else(PoisonError::into_inner);
        address.expect("only a simulator that listens has an address")
    }

    /// `http://HOST:PORT` (`https` where the door wants TLS), the base URL for Anthropic clients;
    /// OpenAI clients want `/v1` after it.
    ///
    /// # Panics
    /// When it does not listen.
    #[must_use]
    pub fn url(&self) -> String {
        let scheme = if self.entrance.door().is_secure() {
            "https"
        } else {
            "http"
        };
        format!("{scheme}://{}", self.address())
    }

    /// The certificate, in PEM, of the authority that callers must trust to come in by TLS; empty
    /// where the door is plain.
    #[must_use]
    pub fn authority(&self) -> &str {
        self.entrance.authority()
    }

    /// Serves one connection over any stream. A scripted reset is a plain close there, since
    /// streams at large cannot be reset: see [`Sim::connect`].
    pub fn serve_connection<I>(&self, io: I)
    where
        I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (desk, entrance) = (Arc::clone(&self.desk), Arc::clone(&self.entrance));
        self.spawn(async move { entrance.serve(io, |_: &I| {}, desk).await });
    }

    /// A new in-memory connection to it. Resets work as on a socket.
    #[must_use]
    pub fn connect(&self) -> Wire {
        let (near, far) = Wire::pair();
        let (desk, entrance) = (Arc::clone(&self.desk), Arc::clone(&self.entrance));
        self.spawn(async move { entrance.serve(far, Wire::arm_reset, desk).await });
        near
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }

    /// When it was made; times in logs count from here.
    #[must_use]
    pub fn started(&self) -> Instant {
        self.desk.started()
    }

    /// The attempts it remembers, in order of arrival.
    #[must_use]
    pub fn attempts(&self) -> Vec<Attempt> {
        self.desk.attempts()
    }

    /// The `seq`-th attempt, from 1.
    ///
    /// # Panics
    /// When it has not arrived, or is no longer remembered.
    #[must_use]
    pub fn attempt(&self, seq: u64) -> Attempt {
        let found = self
            .attempts()
            .into_iter()
            .find(|attempt| attempt.seq() == seq);
        found.unwrap_or_else(|| panic!("no attempt {seq} among {}", self.attempt_count()))
    }

    /// How many attempts have arrived.
    #[must_use]
    pub fn attempt_count(&self) -> u64 {
        *self.desk.seen().borrow()
    }

    /// How many connections were opened.
    #[must_use]
    pub fn connection_count(&self) -> u64 {
        self.desk.connections()
    }

    /// Waits until at least `count` attempts have arrived: all it remembers.
    pub async fn wait_for_attempts(&self, count: u64) -> Vec<Attempt> {
        let mut seen = self.desk.seen();
        let _ = seen.wait_for(|seen| *seen >= count).await;
        self.attempts()
    }

    /// Attempts that found no step.
    #[must_use]
    pub fn unexpected(&self) -> Vec<Attempt> {
        self.attempts()
            .into_iter()
            .filter(Attempt::is_unexpected)
            .collect()
    }

    /// Everything that differs from the script so far: unexpected attempts, steps left over,
    /// broken requests.
    #[must_use]
    pub fn deviations(&self) -> Vec<Deviation> {
        let unexpected = self.unexpected().into_iter().map(Deviation::Unexpected);
        let left = self.desk.left_over().into_iter();
        let left = left.map(|(step, times)| Deviation::LeftOver { step, times });
        let broken = self.broken_requests().into_iter().map(Deviation::Broken);
        unexpected.chain(left).chain(broken).collect()
    }

    /// What came that was no request.
    #[must_use]
    pub fn broken_requests(&self) -> Vec<Broken> {
        self.desk.broken_requests()
    }

    /// Adds a step at the end of the script.
    pub fn push(&self, step: Step) {
        self.desk.push(step);
    }

    /// Replaces the script: a provider falls ill, or heals. Attempts already answered, and the
    /// counts that conditions look at, go on.
    pub fn set_script(&self, script: Script) {
        self.desk.set_script(script);
    }
}

async fn accept(listener: TcpListener, desk: Arc<Desk>, entrance: Arc<Entrance>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let _ = stream.set_nodelay(true);
                    let (desk, entrance) = (Arc::clone(&desk), Arc::clone(&entrance));
                    connections
                        .spawn(async move { entrance.serve(stream, arm_reset, desk).await });
                }
                // Out of descriptors, most likely: give connections time to end.
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            },
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
        }
    }
}

fn arm_reset(stream: &TcpStream) {
    let _ = stream.set_zero_linger();
}

#[cfg(test)]
mod tests;

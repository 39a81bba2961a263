//! The server under test, in the test's own runtime.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use backstop_config::{Snapshot, read};
use backstop_faultsim::Sim;
use backstop_ledger::{JourneyRecord, Ledger};
use backstop_server::{Chance, Clock, ConnectionLimits, Gateway, Hook, Parts, Reloader, serve};
use backstop_state::{Limits, State};
use backstop_telemetry::Metrics;
use backstop_units::Roll;
use backstop_upstream::{Options, Upstream};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tracing::subscriber::DefaultGuard;

use crate::client::{Answer, Call};
use crate::page::Page;
use crate::patience::{soon, until};
use crate::sources::{CANARY, Sources};

/// A running gateway. Keys and channels of equal rank are taken in their listed order.
///
/// Dropping it stops it, and fails the test if a key is in its log or its ledger.
pub struct TestGateway {
    address: SocketAddr,
    gateway: Arc<Gateway>,
    reloader: Reloader,
    sources: Sources,
    version: u64,
    stop: Option<oneshot::Sender<()>>,
    server: JoinSet<io::Result<()>>,
    page: Page,
    _log: DefaultGuard,
}

impl TestGateway {
    /// Starts the gateway that `config` (TOML, or JSON when it opens with a brace) describes. The
    /// address of each simulator is in the variable `<NAME>_URL`; the keys are in
    /// `OPENAI_KEY_1` and the like ([`secret`](crate::secret)).
    ///
    /// # Panics
    /// When the configuration is refused.
    pub async fn start(config: &str, sims: &[(&str, &Sim)]) -> Self {
        let upstream = Upstream::new(Options::default()).expect("the default client");
        Self::with_upstream(config, sims, upstream).await
    }

    /// The same with a client of the test's own making.
    ///
    /// # Panics
    /// When the configuration is refused.
    pub async fn with_upstream(config: &str, sims: &[(&str, &Sim)], upstream: Upstream) -> Self {
        Self::launch(config, sims, upstream, Vec::new()).await
    }

    /// The same with hooks that have a say in every journey.
    ///
    /// # Panics
    /// When the configuration is refused.
    pub async fn with_hooks(
        config: &str,
        sims: &[(&str, &Sim)],
        hooks: Vec<Arc<dyn Hook>>,
    ) -> Self {
        let upstream = Upstream::new(Options::default()).expect("the default client");
        Self::launch(config, sims, upstream, hooks).await
    }

    async fn launch(
        config: &str,
        sims: &[(&str, &Sim)],
        upstream: Upstream,
        hooks: Vec<Arc<dyn Hook>>,
    ) -> Self {
        let (page, log) = Page::open();
        let sources = Sources::new(sims);
        let snapshot = Arc::new(snapshot(config, &sources, 1));
        let limits = ConnectionLimits {
            connections: snapshot.limits.connections,
            first_byte: snapshot.server.head,
            headers: snapshot.server.head,
            drain: snapshot.server.drain,
            stall: snapshot.server.stall,
        };
        let (gateway, reloader) = Gateway::new(parts(snapshot, upstream, hooks));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("a bound socket");
        let (stop, stopped) = oneshot::channel::<()>();
        let mut server = JoinSet::new();
        let served = Arc::clone(&gateway);
        server.spawn(async move {
            let stopped = async move {
                let _ = stopped.await;
            };
            serve(listener, served, limits, stopped).await
        });
        Self {
            address,
            gateway,
            reloader,
            sources,
            version: 1,
            stop: Some(stop),
            server,
            page,
            _log: log,
        }
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// `http://HOST:PORT`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A request to be made.
    #[must_use]
    pub fn call(&self, method: &str, path: &str) -> Call {
        Call::new(self.address, method, path)
    }

    /// A JSON request to be made, with the trail asked for.
    #[must_use]
    pub fn post(&self, path: &str, body: impl Into<Vec<u8>>) -> Call {
        self.call("POST", path)
            .header("content-type", "application/json")
            .header("x-backstop-trail", "1")
            .body(body)
    }

    /// Asks as an OpenAI client does.
    pub async fn chat(&self, body: Value) -> Answer {
        self.post("/v1/chat/completions", body.to_string())
            .send()
            .await
    }

    /// Asks as an Anthropic client does.
    pub async fn messages(&self, body: Value) -> Answer {
        self.post("/v1/messages", body.to_string()).send().await
    }

    /// Asks for a page.
    pub async fn get(&self, path: &str) -> Answer {
        self.call("GET", path).send().await
    }

    /// Puts another configuration in force.
    ///
    /// # Panics
    /// When it is refused.
    pub fn reload(&mut self, config: &str) {
        self.version += 1;
        let next = snapshot(config, &self.sources, self.version);
        self.reloader.swap(&Arc::new(next));
    }

    /// The record of a journey that has ended or is about to.
    ///
    /// # Panics
    /// When it does not end.
    pub async fn record(&self, request_id: &str) -> JourneyRecord {
        let ledger = self.gateway.ledger();
        until("the journey's record", || ledger.find(request_id)).await
    }

    /// How many journeys have ended.
    #[must_use]
    pub fn journeys(&self) -> u64 {
        self.gateway.ledger().written()
    }

    /// From now on it tells load balancers to stay away.
    pub fn begin_drain(&self) {
        self.gateway.begin_drain();
    }

    /// Tells it to stop, as a signal does.
    pub fn stop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
    }

    /// Waits until it has stopped.
    ///
    /// # Panics
    /// When it does not, or fails.
    pub async fn stopped(&mut self) {
        let ended = soon("the server's end", self.server.join_next()).await;
        let served = ended.expect("one server").expect("no panic in the server");
        served.expect("a server that ends well");
    }

    /// What it logged so far, at every level.
    #[must_use]
    pub fn log(&self) -> String {
        self.page.text()
    }
}

impl Drop for TestGateway {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- the gateway's log ---\n{}", self.log());
            return;
        }
        assert!(!self.log().contains(CANARY), "a key in the log");
        for record in self.gateway.ledger().latest(usize::MAX) {
            assert!(
                !record.to_json().to_string().contains(CANARY),
                "a key in the ledger"
            );
            assert!(!format!("{record:?}").contains(CANARY), "a key in Debug");
        }
    }
}

/// A gateway's parts for tests: keys and channels of equal rank are taken in their listed order.
pub(crate) fn parts(
    snapshot: Arc<Snapshot>,
    upstream: Upstream,
    hooks: Vec<Arc<dyn Hook>>,
) -> Parts {
    Parts {
        state: State::new(Limits::default()),
        upstream,
        metrics: Arc::new(Metrics::new()),
        ledger: Ledger::new(snapshot.limits.kept_journeys),
        clock: Clock::start(),
        chance: Chance::fixed(Roll::LOWEST),
        hooks,
        snapshot,
    }
}

fn snapshot(config: &str, sources: &Sources, version: u64) -> Snapshot {
    let name = if config.trim_start().starts_with('{') {
        "config.json"
    } else {
        "backstop.toml"
    };
    match read(Path::new(name), config, sources, version) {
        Ok(snapshot) => snapshot,
        Err(refused) => panic!("the configuration is refused: {refused}"),
    }
}

//! The house in which a scenario plays: the real server between a caller and simulated providers,
//! in the runtime of whoever plays it.
//!
//! Connections are streams in memory, on a clock that may be paused. Where an ending needs a real
//! socket (a reset, a connection closed while idle) all of them are loopback sockets, in real time.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use backstop_config::{Snapshot, Sources, read};
use backstop_faultsim::{Script, Sim, Wire};
use backstop_server::{ConnectionLimits, Gateway, Reloader, serve, serve_connection};
use backstop_state::State;
use backstop_telemetry::Metrics;
use backstop_upstream::{BoxIo, Dial, Dialing, Options, Unresolved, Upstream};
use serde_json::{Map, Value};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::subscriber::DefaultGuard;

use super::data::{Provider, Scenario};
use super::settings::{host, secret, toml, variable};
use crate::gateway::parts;
use crate::page::Page;

/// A running house.
pub(crate) struct Stage {
    /// When it opened; scenarios count from here.
    pub(crate) start: Instant,
    pub(crate) sims: Vec<(String, Arc<Sim>)>,
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) state: Arc<State>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) page: Page,
    /// The configurations, in the order in which they come into force.
    snapshots: Vec<Arc<Snapshot>>,
    reloader: Reloader,
    entrance: Entrance,
    tasks: Mutex<JoinSet<()>>,
    _stop: watch::Sender<bool>,
}

/// How callers come in.
enum Entrance {
    Memory {
        limits: ConnectionLimits,
        places: Arc<Semaphore>,
        drain: watch::Receiver<bool>,
    },
    Loopback(std::net::SocketAddr),
}

/// Whether a scenario's endings need real sockets.
pub(crate) fn needs_sockets(scenario: &Scenario) -> bool {
    let mut steps = scenario.upstreams.iter().flat_map(|u| &u.script);
    steps.any(|step| step["then"] == "reset" || step.get("close_idle_after_ms").is_some())
}

impl Stage {
    /// Opens the house. The log of this thread is kept as long as the guard lives.
    ///
    /// # Errors
    /// When the scenario's settings or scripts cannot be had.
    pub(crate) async fn open(scenario: &Scenario) -> Result<(Arc<Self>, DefaultGuard), String> {
        let (page, log) = Page::open();
        let real = needs_sockets(scenario);
        let sources = Secrets::of(scenario);
        let versions = 1..=scenario.gateway.actions.len() + 1;
        let snapshots = versions.map(|version| snapshot(scenario, &sources, version));
        let snapshots: Vec<Arc<Snapshot>> = snapshots.collect::<Result<_, _>>()?;
        let mut sims = Vec::new();
        for upstream in &scenario.upstreams {
            let sim = Sim::new(script(scenario, upstream)?);
            if real {
                sim.listen("127.0.0.1:0").await.map_err(|e| e.to_string())?;
            }
            sims.push((upstream.name.clone(), Arc::new(sim)));
        }
        let dial = Wires {
            hosts: sims
                .iter()
                .map(|(name, sim)| (host(name), Arc::clone(sim)))
                .collect(),
            unresolved: scenario
                .upstreams
                .iter()
                .filter(|upstream| upstream.door.as_deref() == Some("unresolved"))
                .map(|upstream| host(&upstream.name))
                .collect(),
            refused: scenario
                .upstreams
                .iter()
                .filter(|upstream| upstream.door.as_deref() == Some("refused"))
                .map(|upstream| host(&upstream.name))
                .collect(),
            real,
        };
        let trusted: Vec<&str> = sims.iter().map(|(_, sim)| sim.authority()).collect();
        let options = Options {
            extra_ca: trusted.concat().into_bytes(),
            ..Options::default()
        };
        let upstream = Upstream::with_dial(options, Arc::new(dial));
        let upstream = upstream.map_err(|error| error.to_string())?;
        let parts = parts(Arc::clone(&snapshots[0]), upstream, Vec::new());
        let (state, metrics) = (Arc::clone(&parts.state), Arc::clone(&parts.metrics));
        let start = Instant::now();
        let (gateway, reloader) = Gateway::new(parts);
        let (stop, drain) = watch::channel(false);
        let limits = ConnectionLimits {
            connections: snapshots[0].limits.connections,
            stall: snapshots[0].server.stall,
            ..ConnectionLimits::default()
        };
        let mut tasks = JoinSet::new();
        let entrance = if real {
            let listener = TcpListener::bind("127.0.0.1:0").await;
            let listener = listener.map_err(|error| error.to_string())?;
            let address = listener.local_addr().map_err(|error| error.to_string())?;
            let served = Arc::clone(&gateway);
            tasks.spawn(async move {
                let _ = serve(listener, served, limits, std::future::pending()).await;
            });
            Entrance::Loopback(address)
        } else {
            Entrance::Memory {
                limits,
                places: Arc::new(Semaphore::new(limits.connections)),
                drain,
            }
        };
        let stage = Self {
            start,
            sims,
            gateway,
            state,
            metrics,
            page,
            snapshots,
            reloader,
            entrance,
            tasks: Mutex::new(tasks),
            _stop: stop,
        };
        Ok((Arc::new(stage), log))
    }

    /// A caller's end of a new connection to the gateway.
    pub(crate) async fn connect(&self) -> io::Result<BoxIo> {
        match &self.entrance {
            Entrance::Loopback(address) => Ok(Box::new(TcpStream::connect(address).await?)),
            Entrance::Memory {
                limits,
                places,
                drain,
            } => {
                let (near, far) = Wire::pair();
                let (gateway, limits) = (Arc::clone(&self.gateway), *limits);
                let (places, drain) = (Arc::clone(places), drain.clone());
                let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
                tasks.spawn(async move {
                    // As the listener does: a connection waits until there is a place for it.
                    let _place = places.acquire_owned().await;
                    serve_connection(far, gateway, limits, drain).await;
                });
                Ok(Box::new(near))
            }
        }
    }

    /// Puts the next configuration in force; `action` counts from 0.
    pub(crate) fn reload(&self, action: usize) {
        if let Some(next) = self.snapshots.get(action + 1) {
            self.reloader.swap(next);
        }
    }

    /// The provider called `name`.
    pub(crate) fn sim(&self, name: &str) -> Option<&Arc<Sim>> {
        let found = self.sims.iter().find(|(known, _)| known == name);
        found.map(|(_, sim)| sim)
    }
}

fn snapshot(
    scenario: &Scenario,
    sources: &Secrets,
    version: usize,
) -> Result<Arc<Snapshot>, String> {
    let text = toml(scenario, version)?;
    let snapshot = read(Path::new("backstop.toml"), &text, sources, version as u64);
    snapshot
        .map(Arc::new)
        .map_err(|refused| format!("the configuration is refused: {refused}\n{text}"))
}

/// Doors that the dialling never comes to.
const UNREACHED: [&str; 2] = ["unresolved", "refused"];

/// The simulator's script: the steps as typed, with the keys' values where they are named.
///
/// A step that is for a reused connection shows what the others say of closing: the far end is gone,
/// and its farewell is not seen before something is written.
fn script(scenario: &Scenario, upstream: &Provider) -> Result<Script, String> {
    let unseen = upstream.script.iter().any(|step| {
        step["on"]
            .as_str()
            .is_some_and(|words| words.contains("reused"))
    });
    let mut steps = upstream.script.clone();
    for step in steps.iter_mut().filter_map(Value::as_object_mut) {
        if unseen {
            step.remove("close_idle_after_ms");
        }
    }
    let mut text = Value::Array(steps).to_string();
    let keys = scenario.upstreams.iter().flat_map(|u| &u.keys);
    for key in keys {
        text = text.replace(&format!("SECRET({key})"), &secret(key));
    }
    let steps: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let labels = upstream.keys.iter();
    let labels: Map<String, Value> = labels
        .map(|key| (key.clone(), secret(key).into()))
        .collect();
    let mut whole = serde_json::json!({ "keys": labels, "script": steps, "keep_alive": false });
    if let Some(door) = upstream
        .door
        .as_deref()
        .filter(|door| !UNREACHED.contains(door))
    {
        whole["door"] = door.into();
    }
    Script::from_json(&whole.to_string())
        .map_err(|error| format!("the script of {}: {error}", upstream.name))
}

/// The environment: every key of the scenario.
struct Secrets(HashMap<String, String>);

impl Secrets {
    fn of(scenario: &Scenario) -> Self {
        let keys = scenario.upstreams.iter().flat_map(|u| &u.keys);
        Self(keys.map(|key| (variable(key), secret(key))).collect())
    }
}

impl Sources for Secrets {
    fn env(&self, name: &str) -> Option<String> {
        self.0.get(name).cloned()
    }

    fn file(&self, _: &Path) -> io::Result<String> {
        Err(io::ErrorKind::NotFound.into())
    }
}

/// Hosts that are simulators.
struct Wires {
    hosts: HashMap<String, Arc<Sim>>,
    /// Names that lead nowhere.
    unresolved: HashSet<String>,
    /// Names whose port has no listener.
    refused: HashSet<String>,
    real: bool,
}

impl Dial for Wires {
    fn dial(&self, host: &str, _: u16) -> Dialing {
        if self.unresolved.contains(host) {
            return Box::pin(async { Err(Unresolved.into()) });
        }
        let sim = self
            .hosts
            .get(host)
            .filter(|_| !self.refused.contains(host));
        let sim = sim.map(Arc::clone);
        let real = self.real;
        Box::pin(async move {
            let sim = sim.ok_or(io::ErrorKind::ConnectionRefused)?;
            Ok(if real {
                let stream = TcpStream::connect(sim.address()).await?;
                stream.set_nodelay(true)?;
                Box::new(stream) as BoxIo
            } else {
                Box::new(sim.connect())
            })
        })
    }
}

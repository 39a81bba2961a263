//! One gateway under a configuration that chance has written, before three providers.

use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use backstop_config::read;
use backstop_faultsim::{Attempt, Dialect, Script, Sim, Step, When};
use backstop_ledger::JourneyRecord;
use backstop_ledger::Ledger;
use backstop_server::{Chance, Clock, ConnectionLimits, Gateway, Parts, serve};
use backstop_state::{Limits, State};
use backstop_telemetry::Metrics;
use backstop_upstream::{Options, Upstream};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::dice::Dice;
use crate::sources::Sources;

/// The providers and what they speak.
pub(crate) const PROVIDERS: [(&str, Dialect); 3] = [
    ("a", Dialect::OpenAi),
    ("b", Dialect::Anthropic),
    ("c", Dialect::OpenAi),
];

/// The routes that every scene has.
pub(crate) const ROUTES: [&str; 6] = ["solo", "pair", "cross", "other", "flex", "mix"];

/// Attempts of one request that have acts of their own: the most that a route of ours allows.
pub(crate) const ATTEMPTS: u32 = 8;

/// A gateway and its providers.
pub(crate) struct Scene {
    pub(crate) address: SocketAddr,
    pub(crate) clock: Clock,
    pub(crate) gateway: Arc<Gateway>,
    state: Arc<State>,
    sims: Vec<Sim>,
    _server: JoinSet<io::Result<()>>,
}

/// An attempt and the provider that saw it.
pub(crate) struct Sighting {
    pub(crate) provider: usize,
    pub(crate) number: Option<u32>,
    pub(crate) attempt: Attempt,
}

impl Scene {
    /// Starts everything. `config` finds the providers' addresses in `env.A_URL` and the like.
    pub(crate) async fn start(config: &str, seed: u64) -> Self {
        let mut sims = Vec::new();
        for (name, _) in PROVIDERS {
            let script = (1..=3).fold(Script::new(), |script, number| {
                script.key(format!("{name}-{number}"), key(name, number))
            });
            sims.push(Sim::bind("127.0.0.1:0", script).await.expect("a free port"));
        }
        let named: Vec<(&str, &Sim)> = PROVIDERS.iter().map(|(name, _)| *name).zip(&sims).collect();
        let snapshot = match read(Path::new("soak.toml"), config, &Sources::new(&named), 1) {
            Ok(snapshot) => Arc::new(snapshot),
            Err(refused) => panic!("the configuration is refused: {refused}\n{config}"),
        };
        let limits = ConnectionLimits {
            connections: snapshot.limits.connections,
            ..ConnectionLimits::default()
        };
        let state = State::new(Limits::default());
        let clock = Clock::start();
        let (gateway, _) = Gateway::new(Parts {
            state: Arc::clone(&state),
            upstream: Upstream::new(Options::default()).expect("the default client"),
            metrics: Arc::new(Metrics::new()),
            ledger: Ledger::new(snapshot.limits.kept_journeys),
            clock,
            chance: Chance::seeded(seed),
            hooks: Vec::new(),
            snapshot,
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("a bound socket");
        let mut server = JoinSet::new();
        let served = Arc::clone(&gateway);
        server.spawn(serve(listener, served, limits, std::future::pending()));
        Self {
            address,
            clock,
            gateway,
            state,
            sims,
            _server: server,
        }
    }

    /// Teaches every provider what it does with attempt `number` of the request `id`.
    pub(crate) fn teach(&self, id: &str, number: u32, mut step: impl FnMut(Dialect) -> Step) {
        for (sim, (_, dialect)) in self.sims.iter().zip(PROVIDERS) {
            let header = vec![
                ("x-request-id".to_owned(), id.to_owned()),
                ("x-backstop-attempt".to_owned(), number.to_string()),
            ];
            let when = When {
                header,
                ..When::default()
            };
            sim.push(step(dialect).when(when).always());
        }
    }

    /// The attempts of one request that providers saw, by arrival.
    pub(crate) fn sightings(&self, id: &str) -> Vec<Sighting> {
        let mut seen: Vec<Sighting> = Vec::new();
        for (provider, sim) in self.sims.iter().enumerate() {
            let attempts = sim.attempts().into_iter();
            let own = attempts.filter(|attempt| attempt.header("x-request-id") == Some(id));
            seen.extend(own.map(|attempt| {
                Sighting {
                    provider,
                    number: attempt
                        .header("x-backstop-attempt")
                        .and_then(|number| number.parse().ok()),
                    attempt,
                }
            }));
        }
        seen.sort_by_key(|sighting| sighting.attempt.arrived());
        seen
    }

    /// The record of a journey; `None` when there is none within `patience`.
    pub(crate) async fn record(&self, id: &str, patience: Duration) -> Option<JourneyRecord> {
        let until = Instant::now() + patience;
        loop {
            let found = self.gateway.ledger().find(id);
            if found.is_some() || Instant::now() > until {
                return found;
            }
            sleep(Duration::from_millis(1)).await;
        }
    }

    /// What was taken and not given back, once all journeys have ended.
    pub(crate) fn leaks(&self) -> Vec<String> {
        let mut leaks = Vec::new();
        for view in self.state.channels(self.clock.now()) {
            if view.in_flight > 0 {
                leaks.push(format!("{}: {} permits are out", view.id, view.in_flight));
            }
            if matches!(
                view.breaker,
                backstop_breaker::State::HalfOpen { probing: true }
            ) {
                leaks.push(format!("{}: the probe's place is taken", view.id));
            }
        }
        leaks
    }
}

/// A provider's key.
fn key(provider: &str, number: u64) -> String {
    format!("soak-{provider}-{number}")
}

/// How a scene is configured, beside its routes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting {
    /// The longest a provider may be silent, in milliseconds.
    pub(crate) patience_ms: u64,
    /// The first wait before a retry, in milliseconds.
    pub(crate) backoff_ms: u64,
    /// Callers that are served at one time.
    pub(crate) connections: u64,
}

/// A configuration with all routes, retries on, everything else as it comes.
pub(crate) fn config(dice: &mut Dice, setting: Setting) -> String {
    let Setting {
        patience_ms,
        backoff_ms,
        connections,
    } = setting;
    let mut text = format!("[limits]\nkept_journeys = 500\nconnections = {connections}\n");
    if dice.one_in(5) {
        let _ = writeln!(text, "[server]\nkeepalive_ms = {}", dice.between(100, 200));
    }
    for (name, dialect) in PROVIDERS {
        provider(dice, &mut text, name, dialect, patience_ms, backoff_ms);
    }
    let choices = ["priority", "weighted", "least_latency", "least_busy"];
    let _ = writeln!(
        text,
        r#"
[defaults]
max_attempts = {ATTEMPTS}
min_attempt_ms = {min_attempt}
{commit}

[routes]
solo = "a/m"
pair = ["a/m", "c/m"]
cross = ["a/m", "b/m"]
other = ["b/m", "a/m"]

[routes.flex]
groups = [{{ channels = ["a/m"] }}]
substitutions = [{{ channel = "b/n" }}, {{ channel = "c/n" }}]

[routes.mix]
groups = [{{ channels = ["a/m", "b/m", "c/m"], choice = "{choice}" }}]
"#,
        min_attempt = dice.between(1, 60),
        commit = commit(dice),
        choice = dice.pick(&choices),
    );
    text
}

fn provider(
    dice: &mut Dice,
    text: &mut String,
    name: &str,
    dialect: Dialect,
    patience_ms: u64,
    backoff_ms: u64,
) {
    let kind = match dialect {
        Dialect::OpenAi => "openai",
        Dialect::Anthropic => "anthropic",
        Dialect::Bedrock => unreachable!("the soak plays in the two dialects of lines"),
    };
    let keys: Vec<String> = (1..=dice.between(1, 3))
        .map(|n| format!("{{ name = \"{name}-{n}\", value = \"{}\" }}", key(name, n)))
        .collect();
    let breaker = if dice.one_in(2) {
        "{ enabled = false }".to_owned()
    } else {
        let failures = dice.between(2, 6);
        format!(
            "{{ failures = {failures}, open_ms = {}, max_open_ms = 200 }}",
            dice.between(5, 60)
        )
    };
    let _ = writeln!(
        text,
        r#"
[providers.{name}]
kind = "{kind}"
base_url = "env.{variable}_URL"
keys = [{keys}]
verified = {verified}
breaker = {breaker}

[providers.{name}.network_config]
max_retries = {retries}
retry_backoff_initial = {backoff_ms}
retry_backoff_max = {longest}
jitter = "{jitter}"
hold_refused_keys = false
retry_budget = {{ ratio = {ratio}, per_second = 10, credit = {credit} }}

[providers.{name}.timeouts]
connect_ms = 2000
headers_ms = {patience_ms}
first_output_ms = {patience_ms}
idle_ms = {patience_ms}
"#,
        variable = name.to_ascii_uppercase(),
        keys = keys.join(", "),
        verified = dice.one_in(2),
        retries = dice.between(1, 3),
        longest = backoff_ms * 4,
        jitter = dice.pick(&["proportional", "full"]),
        ratio = dice.pick(&["0.2", "10"]),
        credit = dice.pick(&[10, 1000]),
    );
}

fn commit(dice: &mut Dice) -> &'static str {
    dice.pick(&[
        "",
        "",
        "commit = \"complete\"",
        "commit = { window_ms = 8 }",
        "commit = { window_tokens = 6 }",
    ])
}

/// The commit rule that a caller asks for, where it asks for one.
pub(crate) fn commit_header(dice: &mut Dice) -> Option<&'static str> {
    dice.pick(&[
        None,
        None,
        None,
        Some("first_output"),
        Some("complete"),
        Some("window=5"),
        Some("window_tokens=4"),
    ])
}

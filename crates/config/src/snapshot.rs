//! One configuration as requests see it: built once, never changed.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use backstop_admission::{Price, Register};
use backstop_policy::{Channel, CommitChoice, Lossy, OnRefusal, Route, RouteLimits, single};
use backstop_providers::Provider;
use backstop_units::{ByteCount, ChannelId, GroupName, ModelName, ProviderId, RouteName, Secret};

use crate::fault::nearest;

/// One configuration. A request takes it once and keeps it to its end; a reload makes another.
///
/// What must outlive it (breaker history, key holds, budgets) is kept elsewhere, by id:
/// [`channel_ids`](Self::channel_ids) and [`diff`](crate::diff) say which ids go on.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// Counts the configurations of this process; stands in every record.
    pub version: u64,
    /// A fingerprint of the file's text, without any secret. Equal text, equal hash.
    pub hash: u64,
    /// Where it was read.
    pub origin: Origin,
    /// Where callers are heard.
    pub server: ServerParams,
    /// What callers see of us over TLS; `None` for plain HTTP.
    pub tls: Option<TlsFiles>,
    /// The files that values were read from, each once.
    pub files: Vec<PathBuf>,
    /// The bounds of the process.
    pub limits: Limits,
    /// When answers carry the trail.
    pub trail: TrailChoice,
    /// What becomes of sessions.
    pub session: SessionParams,
    /// Where the evidence of requests is kept on disk; `None`: in memory alone.
    pub ledger: Option<LedgerParams>,
    /// The providers by name.
    pub providers: HashMap<ProviderId, Arc<Provider>>,
    /// The configured routes by name.
    pub routes: HashMap<RouteName, Arc<Route>>,
    /// Who may ask; empty when everybody on this machine may.
    pub callers: Register,
    /// What models cost, by `provider/model`.
    pub prices: HashMap<String, Price>,
    /// For each provider, the channel that any of its models gets when no route says more.
    pub(crate) patterns: HashMap<ProviderId, Arc<Channel>>,
    /// Every channel of a route, once.
    pub(crate) channels: HashMap<ChannelId, Arc<Channel>>,
    /// What holds for a request on `provider/model`.
    pub(crate) defaults: Defaults,
}

/// Where a configuration was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// In this file.
    File(PathBuf),
    /// In the well-known variables of the environment: there was no file.
    Environment,
}

/// Where callers are heard, and how long they are waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerParams {
    /// Address and port; loopback. Default `127.0.0.1:8080`. Port 0 takes any.
    pub listen: SocketAddr,
    /// After a signal to stop: how long answers in flight may go on. Default 30 s.
    pub drain: Duration,
    /// How long a caller may take to send a request's head. Default 15 s.
    pub head: Duration,
    /// How long a request's body may pause. Default 30 s.
    pub body_idle: Duration,
    /// How long a caller may leave its answer unread. Default 60 s.
    pub stall: Duration,
    /// How often a waiting caller of a stream gets a comment. Default: never.
    pub keepalive: Option<Duration>,
}

impl Default for ServerParams {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8080)),
            drain: Duration::from_secs(30),
            head: Duration::from_secs(15),
            body_idle: Duration::from_secs(30),
            stall: Duration::from_secs(60),
            keepalive: None,
        }
    }
}

/// A certificate chain with its key, both as PEM text.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    /// The chain, leaf first.
    pub certificate: String,
    /// Its key.
    pub private_key: Secret,
}

impl PartialEq for TlsFiles {
    fn eq(&self, other: &Self) -> bool {
        self.certificate == other.certificate && self.private_key.is(other.private_key.expose())
    }
}

/// The bounds of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The largest request body. Default 32 MiB.
    pub body_bytes: ByteCount,
    /// All request bodies held at one time; beyond it new requests are turned away. Default
    /// 512 MiB.
    pub buffered_bytes: ByteCount,
    /// The largest answer of a provider that is not a stream. Default 64 MiB.
    pub answer_bytes: ByteCount,
    /// Connections of callers at one time. Default 10,000.
    pub connections: usize,
    /// How many `provider/model` names that no route lists keep live state. Default 1,024.
    pub minted_channels: usize,
    /// How many ended requests keep their trail in memory. Default 1,000.
    pub kept_journeys: usize,
    /// Of how many responses that providers keep it is remembered who made them. Default 100,000,
    /// about 300 bytes each.
    pub kept_responses: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: ByteCount::mib(32),
            buffered_bytes: ByteCount::mib(512),
            answer_bytes: ByteCount::mib(64),
            connections: 10_000,
            minted_channels: 1024,
            kept_journeys: 1000,
            kept_responses: 100_000,
        }
    }
}

/// Where the evidence of requests is kept on disk, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerParams {
    /// The folder.
    pub path: PathBuf,
    /// Whether a record is on the disk before the attempt that it announces is sent. Default: it
    /// survives the process, not the machine.
    pub survives_power: bool,
    /// How long journeys are kept. Default 30 days.
    pub retention: Duration,
    /// The most they take on disk. Default 1 GiB.
    pub max_bytes: ByteCount,
    /// Whether new requests are refused while records cannot be written. Default: they are served.
    pub closed_on_failure: bool,
}

impl LedgerParams {
    /// A ledger in this folder, everything else by default.
    #[must_use]
    pub const fn at(path: PathBuf) -> Self {
        Self {
            path,
            survives_power: false,
            retention: Duration::from_secs(30 * 24 * 60 * 60),
            max_bytes: ByteCount::mib(1024),
            closed_on_failure: false,
        }
    }
}

/// What becomes of requests that a caller ties together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionParams {
    /// When the key that served a session before is refused. Default: it stays and gets the error.
    pub on_refusal: OnRefusal,
    /// How many sessions are remembered, about half a KiB each; the least recently used make room.
    /// Default 10,000; 0 turns sessions off.
    pub capacity: usize,
}

impl Default for SessionParams {
    fn default() -> Self {
        Self {
            on_refusal: OnRefusal::Stay,
            capacity: 10_000,
        }
    }
}

/// When answers carry the trail of attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TrailChoice {
    /// When the caller asks for it. The default.
    #[default]
    OnRequest,
    /// Always.
    Always,
}

/// What holds for routes that say nothing else, and for `provider/model`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Defaults {
    pub(crate) limits: RouteLimits,
    pub(crate) commit: CommitChoice,
    pub(crate) lossy: Lossy,
}

/// What a caller's `model` stands for.
#[derive(Debug, Clone)]
pub enum Resolved {
    /// A route of the configuration.
    Configured(Arc<Route>),
    /// `provider/model`: a route of one channel, made for this request. A caller can make up any
    /// number of such names, so what is remembered about them must be bounded.
    Minted(Arc<Route>),
}

impl Resolved {
    /// The route, however it came about.
    #[must_use]
    pub fn route(&self) -> &Arc<Route> {
        match self {
            Self::Configured(route) | Self::Minted(route) => route,
        }
    }
}

/// Longer names than this stand for nothing.
const LONGEST_NAME: usize = 256;

impl Snapshot {
    /// What `model` stands for: a route of that name, else `provider/model`, split at the first
    /// slash (the model may hold more of them). A bare model name stands for nothing unless a
    /// route is called so: guessing the provider from it would be a silent choice.
    #[must_use]
    pub fn resolve(&self, model: &str) -> Option<Resolved> {
        if let Some(route) = self.routes.get(model) {
            return Some(Resolved::Configured(Arc::clone(route)));
        }
        let channel = self.channel(model)?;
        Some(Resolved::Minted(Arc::new(Route {
            name: RouteName::new(model),
            groups: vec![single(GroupName::new("direct"), channel)],
            substitutions: Vec::new(),
            limits: self.defaults.limits,
            commit: self.defaults.commit,
            lossy: self.defaults.lossy,
        })))
    }

    /// The route, or the provider before the slash, that someone who typed `model` most likely
    /// meant; `None` when none is near.
    #[must_use]
    pub fn nearest(&self, model: &str) -> Option<String> {
        let routes = self.routes.keys().map(RouteName::as_str);
        match model.split_once('/') {
            None => nearest(model, routes),
            Some((provider, rest)) => {
                let providers = self.providers.keys().map(ProviderId::as_str);
                nearest(provider, providers).map(|provider| format!("{provider}/{rest}"))
            }
        }
    }

    /// The channel that `provider/model` names, over all the provider's keys: for a direct request,
    /// and for each entry of a caller's `fallbacks`. `None` when there is no such provider, or the
    /// rest cannot be a model's name.
    #[must_use]
    pub fn channel(&self, label: &str) -> Option<Arc<Channel>> {
        let (provider, model) = label.split_once('/')?;
        let pattern = self.patterns.get(provider)?;
        if !is_model(model) {
            return None;
        }
        let model = ModelName::new(model);
        let id = ChannelId::new(&pattern.provider, &model, &[]);
        // A channel that a route describes is the same one by id, so it keeps what is said there.
        let pattern = self.channels.get(&id).unwrap_or(pattern);
        Some(Arc::new(Channel {
            id,
            model,
            priority: 0,
            weight: 1.0,
            ..Channel::clone(pattern)
        }))
    }

    /// The ids of every channel that a route lists, for keeping what is known about them.
    pub fn channel_ids(&self) -> impl Iterator<Item = &ChannelId> {
        self.channels.keys()
    }

    /// The channel as a route lists it.
    #[must_use]
    pub fn listed(&self, channel: &ChannelId) -> Option<&Arc<Channel>> {
        self.channels.get(channel)
    }

    /// Whether a route lists the channel.
    #[must_use]
    pub fn lists(&self, channel: &ChannelId) -> bool {
        self.channels.contains_key(channel)
    }

    /// Every channel that a route lists, once.
    pub fn channels(&self) -> impl Iterator<Item = &Arc<Channel>> {
        self.channels.values()
    }
}

/// Whether a text can name a model: not empty, not endless, no blanks or control characters.
pub(crate) fn is_model(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= LONGEST_NAME
        && !name.chars().any(|c| c.is_control() || c.is_whitespace())
}

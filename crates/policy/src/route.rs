//! Routes, groups, channels: the operator's plan for a name, as the snapshot holds it.

use std::sync::Arc;
use std::time::Duration;

use backstop_backoff::{Backoff, BudgetParams};
use backstop_chat::Capabilities;
use backstop_classifier::Class;
use backstop_keypool::{Key, Pool};
use backstop_units::{ChannelId, GroupName, KeyId, ModelName, ProviderId, RouteName, Tokens};

/// What a caller's `model` stands for: ordered groups of the same contract and, separately, the
/// other models an operator permits in their place.
#[derive(Debug, Clone)]
pub struct Route {
    /// The name callers put in `model`.
    pub name: RouteName,
    /// Groups in the order they are tried. All serve the same contract.
    pub groups: Vec<Group>,
    /// Other models that may answer instead, in order. Never used unless listed here.
    pub substitutions: Vec<Substitution>,
    /// The bounds of one request on this route.
    pub limits: RouteLimits,
    /// When a stream's first bytes may go to the caller.
    pub commit: CommitChoice,
    /// What happens to a request field that a channel's dialect cannot carry.
    pub lossy: Lossy,
}

/// Channels that serve the same contract, with the rule that orders them.
#[derive(Debug, Clone)]
pub struct Group {
    /// Names the group in plans and records.
    pub name: GroupName,
    /// How the order inside the group is chosen for each request.
    pub choice: Choice,
    /// The channels, as configured.
    pub channels: Vec<Arc<Channel>>,
    /// Requests that may come to the group in any minute; absent without a limit. A full group makes
    /// the next one eligible.
    pub requests_per_minute: Option<u32>,
}

/// How the channels of a group are ordered for one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Choice {
    /// Lowest `priority` first; equal priorities by weight. The default.
    #[default]
    Priority,
    /// By weight alone; weight 0 is drained.
    Weighted,
    /// Of two drawn by weight, the one with the shorter expected wait.
    LeastLatency,
    /// Fewest attempts in flight first; equals by weight.
    LeastBusy,
}

/// A provider's model over all or some of its keys: the smallest thing a route can choose.
#[derive(Debug, Clone)]
pub struct Channel {
    /// Identity across reloads.
    pub id: ChannelId,
    /// The provider that serves it.
    pub provider: ProviderId,
    /// The model as the provider names it.
    pub model: ModelName,
    /// The keys it may use; empty: all of the provider's keys that serve the model.
    pub keys: Vec<KeyId>,
    /// Lower is tried first under [`Choice::Priority`]. Default 0.
    pub priority: u32,
    /// Share among equals. Default 1; 0 drains the channel.
    pub weight: f64,
    /// What the channel can carry: its dialect's abilities, narrowed or widened by configuration.
    pub contract: Capabilities,
    /// Whether the operator holds evidence that the contract works here end to end; a malformed
    /// answer elsewhere may only be followed up on such a channel. Default false.
    pub verified: bool,
    /// The keys of the provider.
    pub pool: Arc<Pool>,
    /// How failures are repeated here.
    pub retry: RetryTerms,
    /// When the channel's circuit opens.
    pub breaker: backstop_breaker::Params,
    /// The clocks of one attempt.
    pub clocks: Clocks,
}

/// How often and after what wait an attempt is repeated on the same channel.
#[derive(Debug, Clone)]
pub struct RetryTerms {
    /// Budgeted retries after the first attempt. Default 0. Not the number of sends: see
    /// [`RouteLimits::max_attempts`].
    pub max_retries: u32,
    /// The wait before each of them.
    pub backoff: Backoff,
    /// The channel's share of retries across all requests.
    pub budget: BudgetParams,
    /// Whether a provider's retry hint lengthens the wait, or is only written down.
    pub hint: HintUse,
}

/// What a provider's own retry hint does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HintUse {
    /// The wait on the same key is the longer of hint and formula. The default.
    #[default]
    Honour,
    /// The hint is recorded and changes nothing.
    Record,
}

/// The separate clocks of one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clocks {
    /// Name lookup, TCP and TLS together. Default 5 s.
    pub connect: Duration,
    /// From the request handed to a connection to the response's headers. Default 300 s, since an
    /// answer that is not streamed sends its headers when it is ready.
    pub headers: Duration,
    /// From the start of the attempt to the first meaningful output of a stream. Default 300 s.
    pub first_output: Duration,
    /// Between bytes from the provider once headers have come. Default 60 s.
    pub idle: Duration,
}

impl Default for Clocks {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            headers: Duration::from_secs(300),
            first_output: Duration::from_secs(300),
            idle: Duration::from_secs(60),
        }
    }
}

/// A model that an operator permits in the place of the route's own.
#[derive(Debug, Clone)]
pub struct Substitution {
    /// Who answers.
    pub channel: Arc<Channel>,
    /// The classes that may lead here; empty: every class that the decision table lets through.
    pub on: Vec<Class>,
    /// Whether a refusal by content policy may lead here. Default false.
    pub on_content_policy: bool,
}

/// The bounds of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteLimits {
    /// Wall clock from acceptance to the end, waits included. Default 600 s, the official SDKs' own
    /// patience.
    pub deadline: Duration,
    /// Sends over all channels and keys, key walks included. Default 12.
    pub max_attempts: u32,
    /// Sends on the first group; `None`: bounded by `max_attempts` alone.
    pub max_attempts_primary: Option<u32>,
    /// Sends after the first group was left; `None`: bounded by `max_attempts` alone.
    pub max_attempts_fallback: Option<u32>,
    /// An attempt other than the first starts only with at least this much time left. Default
    /// 250 ms.
    pub min_attempt: Duration,
}

impl Default for RouteLimits {
    fn default() -> Self {
        Self {
            deadline: Duration::from_secs(600),
            max_attempts: 12,
            max_attempts_primary: None,
            max_attempts_fallback: None,
            min_attempt: Duration::from_millis(250),
        }
    }
}

/// When a stream's held events go to the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CommitChoice {
    /// At the first meaningful output. The default.
    #[default]
    FirstOutput,
    /// After output was held for a while, for streams that die young: a time since the first
    /// output, a number of output tokens (roughly counted), or whichever is reached first. With
    /// neither it is [`FirstOutput`](Self::FirstOutput).
    Window {
        /// The longest time.
        wait: Option<Duration>,
        /// The number of tokens that commits.
        tokens: Option<Tokens>,
    },
    /// When the whole answer is there; it is then replayed as a stream.
    Complete,
}

/// What happens to a field the target dialect cannot carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Lossy {
    /// The channel is not eligible for the request. The default.
    #[default]
    Refuse,
    /// The field is dropped, with a warning in `extra_fields`.
    Drop,
}

impl Channel {
    /// The declared context window, where the operator gave one.
    #[must_use]
    pub const fn context_window(&self) -> Option<Tokens> {
        self.contract.context_window
    }

    /// The keys that may serve the channel's model; none at a keyless provider.
    pub fn serving_keys(&self) -> impl Iterator<Item = &KeyId> {
        self.pool
            .keys()
            .iter()
            .filter(|key| key.serves(&self.model))
            .map(Key::id)
            .filter(|id| self.keys.is_empty() || self.keys.contains(id))
    }

    /// Whether `key` is one the channel may use.
    #[must_use]
    pub fn has_key(&self, key: &KeyId) -> bool {
        self.serving_keys().any(|id| id == key)
    }

    /// The channel's own subset of its provider's keys, where it has one.
    #[must_use]
    pub fn subset(&self) -> Option<&[KeyId]> {
        (!self.keys.is_empty()).then_some(&self.keys)
    }

    /// `provider/model`, as sentences and headers show it.
    #[must_use]
    pub fn label(&self) -> String {
        format!("{}/{}", self.provider, self.model)
    }
}

//! The file as typed: one schema for both spellings.
//!
//! Nothing is required here and unknown names are refused; what must be there, and what it means,
//! is the checked stage's to say. The doc of each field is the reference: meaning, unit, default.

mod amount;
mod caller;
mod key;
mod short;

use std::collections::BTreeMap;

pub(crate) use amount::{Millis, Size, Span, Whole};
pub(crate) use caller::{RawCaller, RawMay, RawPrice};
pub(crate) use key::{RawAws, RawEntra, RawKey};
use serde::Deserialize;
pub(crate) use short::{RawChannelEntry, RawCommit, RawKeyEntry, RawRouteEntry, RawWindow};

/// A whole configuration.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Raw {
    /// Where callers are heard, and how long they are waited for.
    pub(crate) server: Option<RawServer>,
    /// The bounds of the process.
    pub(crate) limits: Option<RawLimits>,
    /// When answers carry the trail of attempts: `"on_request"` (default; the caller sends
    /// `x-backstop-trail: 1`) or `"always"`.
    pub(crate) trail: Option<RawTrail>,
    /// What becomes of requests that a caller ties together with `x-backstop-session`.
    pub(crate) session: Option<RawSession>,
    /// The API accounts, by the name that `provider/model` uses.
    pub(crate) providers: Option<BTreeMap<String, RawProvider>>,
    /// What holds for every route that says nothing else, and for `provider/model`.
    pub(crate) defaults: Option<RawBounds>,
    /// The names callers may put in `model`, beside `provider/model`.
    pub(crate) routes: Option<BTreeMap<String, RawRouteEntry>>,
    /// Who may ask. Without any, everybody on this machine may, and nobody else.
    pub(crate) callers: Option<BTreeMap<String, RawCaller>>,
    /// Where the evidence of requests is kept. Without it: in memory, and nothing is written.
    pub(crate) ledger: Option<RawLedger>,
    /// What models cost, by `"provider/model"`: for budgets and the ledger.
    pub(crate) prices: Option<BTreeMap<String, RawPrice>>,
}

/// `server`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawServer {
    /// Address and port. Default `127.0.0.1:8080`. Only loopback, as long as callers need no key.
    pub(crate) listen: Option<String>,
    /// After a signal to stop: how long streams in flight may go on. Default 30000.
    pub(crate) drain_ms: Option<Millis>,
    /// How long a caller may take to send a request's head. Default 15000.
    pub(crate) head_ms: Option<Millis>,
    /// How long a request's body may pause. Default 30000.
    pub(crate) body_idle_ms: Option<Millis>,
    /// How long a caller may leave its answer unread. Default 60000.
    pub(crate) stall_ms: Option<Millis>,
    /// A comment to a waiting caller of a stream this often. Default: none. It fixes the status at
    /// 200 before the outcome is known.
    pub(crate) keepalive_ms: Option<Millis>,
    /// The certificate callers see. Default: none, plain HTTP.
    pub(crate) tls: Option<RawTls>,
}

/// `server.tls`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawTls {
    /// The chain in PEM, leaf first: `file.PATH` or `env.NAME`. Required.
    pub(crate) certificate: Option<String>,
    /// Its key in PEM: `file.PATH` or `env.NAME`. Required.
    pub(crate) private_key: Option<String>,
}

/// `limits`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawLimits {
    /// The largest request body. A number of bytes, or `"32MiB"` (default).
    pub(crate) body_bytes: Option<Size>,
    /// All request bodies held at one time. Default `"512MiB"`.
    pub(crate) buffered_bytes: Option<Size>,
    /// The largest answer of a provider that is not a stream. Default `"64MiB"`.
    pub(crate) answer_bytes: Option<Size>,
    /// Connections of callers at one time. Default 10000.
    pub(crate) connections: Option<Whole>,
    /// How many `provider/model` names that no route lists keep live state. Default 1024.
    pub(crate) minted_channels: Option<Whole>,
    /// How many ended requests keep their trail in memory. Default 1000.
    pub(crate) kept_journeys: Option<Whole>,
    /// Of how many responses that providers keep it is remembered which channel and key made them.
    /// Default 100000, about 300 bytes each; the least recently used make room.
    pub(crate) kept_responses: Option<Whole>,
}

/// `session`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawSession {
    /// When the key that served a session before is refused: `"stay"` (default; the request gets
    /// that error at once) or `"move"` (it goes on, and the session is bound to what serves it).
    pub(crate) on_refusal: Option<RawOnRefusal>,
    /// How many sessions are remembered; the least recently used make room. Default 10000. 0 turns
    /// sessions off.
    pub(crate) capacity: Option<Whole>,
}

/// `on_refusal`.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RawOnRefusal {
    Stay,
    Move,
}

/// `ledger`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawLedger {
    /// The folder, from the configuration's own where it is relative. Default: `backstop` in the
    /// folder for states, `$STATE_DIRECTORY` (as systemd sets it), `$XDG_STATE_HOME/backstop` or
    /// `$HOME/.local/state/backstop`. May be `env.NAME`.
    pub(crate) path: Option<String>,
    /// What a record survives: `"process"` (default; its process, however it ends), `"power"` (the
    /// machine too; each send waits for the disk) or `"memory"` (nothing is written).
    pub(crate) durability: Option<RawDurability>,
    /// How many days journeys are kept. Default 30.
    pub(crate) retention_days: Option<Whole>,
    /// The most they take on disk; the oldest make room. Default `"1GiB"`.
    pub(crate) max_bytes: Option<Size>,
    /// While records cannot be written: `"open"` (default; requests are served, what is lost is
    /// counted) or `"closed"` (new requests are refused).
    pub(crate) on_failure: Option<RawOnFailure>,
}

/// `durability`.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RawDurability {
    Process,
    Power,
    Memory,
}

/// `on_failure`.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RawOnFailure {
    Open,
    Closed,
}

/// `trail`.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RawTrail {
    OnRequest,
    Always,
}

/// `providers.<name>`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawProvider {
    /// Which kind of provider this is: a name we know, or `"custom"`. Default: the provider's own
    /// name when we know it, else `"custom"`.
    pub(crate) kind: Option<String>,
    /// Where it is. Default: the kind's public address; for `azure`, which has none,
    /// `AZURE_OPENAI_ENDPOINT`. With or without `/v1`; an address that
    /// ends in `/chat/completions` or `/messages` is taken as it stands. May be `env.NAME`.
    pub(crate) base_url: Option<String>,
    /// `custom` only: the known provider whose wire it speaks. Default `"openai"`-compatible.
    pub(crate) resembles: Option<String>,
    /// `vertex` only: the cloud project that pays. Default: that of the first key's credentials
    /// file, else `GOOGLE_CLOUD_PROJECT`. May be `env.NAME`.
    pub(crate) project: Option<String>,
    /// `vertex` only: where the cloud computes, such as `us-central1`, or `global`. Default:
    /// `GOOGLE_CLOUD_LOCATION`. May be `env.NAME`.
    pub(crate) location: Option<String>,
    /// `bedrock` only: where AWS computes, such as `us-east-1`. Default: that of the first key's
    /// profile, else `AWS_REGION`, else `AWS_DEFAULT_REGION`. May be `env.NAME`.
    pub(crate) region: Option<String>,
    /// `azure` only: a date such as `2024-10-21` for deployments in the path, or `"v1"`. Default:
    /// `OPENAI_API_VERSION`, else `"v1"`. May be `env.NAME`.
    pub(crate) api_version: Option<String>,
    /// Plain `http://` to a host outside is refused unless this is true. Default false.
    pub(crate) allow_plain_http: Option<bool>,
    /// The keys. Default: the kind's well-known variable, such as `OPENAI_API_KEY`. Kinds that
    /// answer without a key may have none.
    pub(crate) keys: Option<Vec<RawKeyEntry>>,
    /// Whose credentials it is shown: `"keys"` (default) or `"caller"`: the caller's own token for it,
    /// which no other provider ever gets. The caller's key for the gateway then comes in
    /// `x-backstop-auth`.
    pub(crate) credentials: Option<RawCredentials>,
    /// Retries and the waits before them.
    pub(crate) network_config: Option<RawNetwork>,
    /// Headers that go out with every request. Values may be `env.NAME` or `file.PATH`.
    pub(crate) extra_headers: Option<BTreeMap<String, String>>,
    /// The clocks of one attempt.
    pub(crate) timeouts: Option<RawTimeouts>,
    /// When channels of this provider are left alone for a while.
    pub(crate) breaker: Option<RawBreaker>,
    /// What its models cannot do, such as `{ images = false }`.
    pub(crate) contract: Option<RawContract>,
    /// The context window of its models, in tokens. Default: not declared.
    pub(crate) context_window: Option<Whole>,
    /// That its contract was seen to hold end to end: only such a channel is tried after another
    /// one's malformed answer. Default false.
    pub(crate) verified: Option<bool>,
}

/// `providers.<name>.network_config`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawNetwork {
    /// Retries after the first attempt, per channel. Default 0. Not the number of sends: walking
    /// past a refused key is free, and `max_attempts` of the route bounds all sends together.
    pub(crate) max_retries: Option<u32>,
    /// The first wait. Milliseconds, or `"500ms"` (default).
    pub(crate) retry_backoff_initial: Option<Span>,
    /// The longest wait. Milliseconds, or `"5s"` (default).
    pub(crate) retry_backoff_max: Option<Span>,
    /// How waits are spread: `"proportional"` (default; 0.8 to 1.2 of the formula) or `"full"`
    /// (nothing to all of it).
    pub(crate) jitter: Option<RawJitter>,
    /// A provider's own hint: `"honour"` (default; wait at least that long) or `"record"` (write it
    /// down only).
    pub(crate) retry_hint: Option<RawHint>,
    /// How much all requests on one channel may retry together.
    pub(crate) retry_budget: Option<RawBudget>,
    /// Whether a refused key stays out for later requests too. Default true.
    pub(crate) hold_refused_keys: Option<bool>,
}

/// `credentials`.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RawCredentials {
    Keys,
    Caller,
}

/// `jitter`.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RawJitter {
    Proportional,
    Full,
}

/// `retry_hint`.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RawHint {
    Honour,
    Record,
}

/// `retry_budget`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawBudget {
    /// Retries earned by each request. Default 0.2.
    pub(crate) ratio: Option<f64>,
    /// Retries earned by each second. Default 1.
    pub(crate) per_second: Option<f64>,
    /// Retries there from the start, and the most that are saved up. Default 10.
    pub(crate) credit: Option<f64>,
}

/// `timeouts`, all in milliseconds.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawTimeouts {
    /// Name lookup, TCP and TLS together. Default 5000.
    pub(crate) connect_ms: Option<Millis>,
    /// Until the answer's headers. Default 300000: an answer that is not streamed sends them when
    /// it is ready.
    pub(crate) headers_ms: Option<Millis>,
    /// Until a stream's first meaningful output. Default 300000.
    pub(crate) first_output_ms: Option<Millis>,
    /// Between bytes once headers have come. Default 60000.
    pub(crate) idle_ms: Option<Millis>,
}

/// `breaker`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawBreaker {
    /// Whether there is one. Default true.
    pub(crate) enabled: Option<bool>,
    /// Opens after this many failures in a row. Default 5.
    pub(crate) failures: Option<u32>,
    /// Opens below this share of successes, 0 to 1. Default 0.5.
    pub(crate) success_ratio: Option<f64>,
    /// Judges the share on no fewer samples. Default 20.
    pub(crate) min_samples: Option<u32>,
    /// How far back samples count. Default 30000.
    pub(crate) window_ms: Option<Millis>,
    /// Stays open this long before a probe. Default 5000.
    pub(crate) open_ms: Option<Millis>,
    /// And this much longer after each failed probe, 1 to 10. Default 1.5.
    pub(crate) growth: Option<f64>,
    /// Up to this. Default 60000.
    pub(crate) max_open_ms: Option<Millis>,
}

/// `contract`: what a channel can carry, below what its dialect can. Each is true by default, where
/// the dialect has it.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawContract {
    pub(crate) streaming: Option<bool>,
    pub(crate) tools: Option<bool>,
    pub(crate) parallel_tools: Option<bool>,
    pub(crate) provider_tools: Option<bool>,
    pub(crate) json_schema: Option<bool>,
    pub(crate) json_object: Option<bool>,
    pub(crate) images: Option<bool>,
    pub(crate) image_urls: Option<bool>,
    pub(crate) audio: Option<bool>,
    pub(crate) files: Option<bool>,
    pub(crate) many_choices: Option<bool>,
    pub(crate) logprobs: Option<bool>,
    pub(crate) reasoning: Option<bool>,
    pub(crate) embeddings: Option<bool>,
    pub(crate) many_inputs: Option<bool>,
    pub(crate) token_inputs: Option<bool>,
    pub(crate) count_tokens: Option<bool>,
}

/// `routes.<name>`, in full.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawRoute {
    /// The groups, in the order they are tried. All serve the same contract. Required.
    pub(crate) groups: Option<Vec<RawGroup>>,
    /// Other models that may answer instead, in order; every use is disclosed. Default none.
    pub(crate) substitutions: Option<Vec<RawSubstitution>>,
    /// Wall clock of one request, waits included. Default 600000.
    pub(crate) deadline_ms: Option<Millis>,
    /// Sends over all channels and keys. Default 12.
    pub(crate) max_attempts: Option<u32>,
    /// Sends on the first group. Default: only `max_attempts` bounds them.
    pub(crate) max_attempts_primary: Option<u32>,
    /// Sends after the first group. Default: only `max_attempts` bounds them.
    pub(crate) max_attempts_fallback: Option<u32>,
    /// No further attempt starts with less time left. Default 250.
    pub(crate) min_attempt_ms: Option<Millis>,
    /// When a stream's first bytes go out: `"first_output"` (default), `"complete"`, or
    /// `{ window_ms = …, window_tokens = … }`: after the first output hold for so long, or until so
    /// many tokens, whichever is first; one of the two is enough.
    pub(crate) commit: Option<RawCommit>,
    /// A field that a channel's dialect cannot carry: `"refuse"` (default; the channel is left out)
    /// or `"drop"`.
    pub(crate) lossy: Option<RawLossy>,
}

/// `defaults`: the same fields as in a route, with the same meaning.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawBounds {
    pub(crate) deadline_ms: Option<Millis>,
    pub(crate) max_attempts: Option<u32>,
    pub(crate) max_attempts_primary: Option<u32>,
    pub(crate) max_attempts_fallback: Option<u32>,
    pub(crate) min_attempt_ms: Option<Millis>,
    pub(crate) commit: Option<RawCommit>,
    pub(crate) lossy: Option<RawLossy>,
}

impl RawRoute {
    /// The fields that `defaults` has too.
    pub(crate) fn bounds(&self) -> RawBounds {
        RawBounds {
            deadline_ms: self.deadline_ms,
            max_attempts: self.max_attempts,
            max_attempts_primary: self.max_attempts_primary,
            max_attempts_fallback: self.max_attempts_fallback,
            min_attempt_ms: self.min_attempt_ms,
            commit: self.commit,
            lossy: self.lossy,
        }
    }
}

/// `lossy`.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RawLossy {
    Refuse,
    Drop,
}

/// `routes.<name>.groups[]`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawGroup {
    /// The name in plans and trails. Default `group-<n>`, from 1.
    pub(crate) name: Option<String>,
    /// How its channels are ordered: `"priority"` (default; lowest first, equals by weight),
    /// `"weighted"` (by weight alone), `"least_latency"` (the shorter expected wait of two drawn by
    /// weight) or `"least_busy"` (fewest attempts in flight, equals by weight).
    pub(crate) choice: Option<RawChoice>,
    /// Requests that may come to it in any minute; a full group makes the next one eligible. Default
    /// no limit.
    pub(crate) requests_per_minute: Option<Whole>,
    /// Its channels: `"provider/model"`, or a table. Required.
    pub(crate) channels: Option<Vec<RawChannelEntry>>,
}

/// `choice`.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RawChoice {
    Priority,
    Weighted,
    LeastLatency,
    LeastBusy,
}

/// `routes.<name>.groups[].channels[]`, in full.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawChannel {
    /// The name of a provider. Required.
    pub(crate) provider: Option<String>,
    /// The model as that provider names it. Required.
    pub(crate) model: Option<String>,
    /// Names of the provider's keys. Default: all that serve the model.
    pub(crate) keys: Option<Vec<String>>,
    /// Lower is tried first. Default 0.
    pub(crate) priority: Option<u32>,
    /// Share among equals. Default 1; 0 drains it.
    pub(crate) weight: Option<f64>,
    /// Over the provider's.
    pub(crate) contract: Option<RawContract>,
    /// Over the provider's, in tokens.
    pub(crate) context_window: Option<Whole>,
    /// Over the provider's.
    pub(crate) max_retries: Option<u32>,
    /// Over the provider's.
    pub(crate) verified: Option<bool>,
}

/// `routes.<name>.substitutions[]`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawSubstitution {
    /// Who answers: `"provider/model"`, or a table as in a group. Required.
    pub(crate) channel: Option<RawChannelEntry>,
    /// The classes of failure that may lead here. Default: all that permit a substitution.
    pub(crate) on: Option<Vec<String>>,
    /// Whether a refusal by content policy may lead here. Default false.
    pub(crate) on_content_policy: Option<bool>,
    /// The model's context window, in tokens: needed to be tried after a request that was too long.
    pub(crate) context_window: Option<Whole>,
}

//! Callers and prices as typed.

use serde::Deserialize;

use super::Whole;

/// `callers.<name>`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawCaller {
    /// Its keys: `sha256:…` as `backstop keys new` prints it, or `env.NAME` or `file.PATH` of a key.
    /// Two while one replaces the other. Required.
    pub(crate) keys: Option<Vec<String>>,
    /// The routes it may name. Default `["*"]`, all.
    pub(crate) routes: Option<Vec<String>>,
    /// The providers that may serve it, whatever a route or its own `fallbacks` say. Default
    /// `["*"]`, all.
    pub(crate) providers: Option<Vec<String>>,
    /// Whether it may name `provider/model` instead of a route. Default true.
    pub(crate) direct: Option<bool>,
    /// What it may ask for besides: `"fallbacks"` of its own, `"substitutions"` (other models among
    /// them), `"pin_keys"`. Default none.
    pub(crate) may: Option<Vec<RawMay>>,
    /// Requests in any minute. Default no limit.
    pub(crate) requests_per_minute: Option<Whole>,
    /// Tokens in any minute, prompts and answers. Default no limit.
    pub(crate) tokens_per_minute: Option<Whole>,
    /// Requests at one time. Default no limit.
    pub(crate) in_flight: Option<Whole>,
    /// US dollars in a day (UTC). Counts what `prices` names. Default no limit.
    pub(crate) usd_per_day: Option<f64>,
    /// US dollars in a month (UTC). Default no limit.
    pub(crate) usd_per_month: Option<f64>,
    /// From when on its keys are refused, as `"2027-01-31T00:00:00Z"`. Default never.
    pub(crate) expires: Option<String>,
}

/// `may`.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RawMay {
    Fallbacks,
    Substitutions,
    PinKeys,
}

/// `prices."provider/model"`: US dollars for a million tokens.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawPrice {
    /// Of the prompt. Required.
    pub(crate) input: Option<f64>,
    /// Of the answer, reasoning included. Required.
    pub(crate) output: Option<f64>,
    /// Of prompt tokens read from the provider's cache. Default: as `input`.
    pub(crate) cache_read: Option<f64>,
    /// Of prompt tokens written to it. Default: as `input`.
    pub(crate) cache_write: Option<f64>,
}

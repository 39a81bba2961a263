//! Why a request is not admitted.

use std::time::Duration;

/// The gateway's own refusal: never an attempt, never retried around.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// Callers need a key, and none was presented.
    #[error("no key was presented")]
    NoKey,
    /// No caller has the key that was presented.
    #[error("the key is not known")]
    UnknownKey,
    /// Its caller's time is over.
    #[error("the key has expired")]
    Expired,
    /// The route is not among the caller's.
    #[error("this route is not open to this caller")]
    Route,
    /// The caller may name routes only.
    #[error("this caller may name routes only, not `provider/model`")]
    Direct,
    /// The provider is not among the caller's, or none of the route's providers is.
    #[error("this provider is not open to this caller")]
    Provider,
    /// The caller may not name `fallbacks`, or none to other models.
    #[error("this caller may not name these fallbacks")]
    Fallbacks,
    /// The caller may not pin a key.
    #[error("this caller may not choose a key")]
    PinnedKey,
    /// So many requests a minute are all it may send.
    #[error("the caller's limit of requests a minute is reached")]
    Requests {
        /// When one is admitted again; `None` when never.
        retry_after: Option<Duration>,
    },
    /// So many tokens a minute are all it may use.
    #[error("the caller's limit of tokens a minute is reached")]
    Tokens {
        /// When as many are free; `None` when it asks for more than the whole allowance.
        retry_after: Option<Duration>,
    },
    /// So many requests at one time are all it may have.
    #[error("the caller's limit of requests at one time is reached")]
    InFlight,
    /// Its budget is spent.
    #[error("the caller's budget for this {period} is spent")]
    Money {
        /// Which budget.
        period: Period,
        /// When the next one begins.
        retry_after: Duration,
    },
}

/// How long a budget lasts, by the calendar in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Period {
    /// From midnight to midnight.
    Day,
    /// From the first of a month to the next.
    Month,
}

impl std::fmt::Display for Period {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Day => "day",
            Self::Month => "month",
        })
    }
}

impl Denied {
    /// A stable word for programs, logs and metrics.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NoKey => "caller_key_missing",
            // One word for both: a caller learns nothing about which keys once were.
            Self::UnknownKey | Self::Expired => "caller_key_invalid",
            Self::Route => "route_not_allowed",
            Self::Direct => "direct_not_allowed",
            Self::Provider => "provider_not_allowed",
            Self::Fallbacks => "fallbacks_not_allowed",
            Self::PinnedKey => "pinned_key_not_allowed",
            Self::Requests { .. } => "caller_requests_limit",
            Self::Tokens { .. } => "caller_tokens_limit",
            Self::InFlight => "caller_concurrency_limit",
            Self::Money { .. } => "caller_budget_exceeded",
        }
    }

    /// When the same request may be admitted; `None` when waiting is of no known use.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Requests { retry_after } | Self::Tokens { retry_after } => *retry_after,
            Self::Money { retry_after, .. } => Some(*retry_after),
            _ => None,
        }
    }
}

//! The routing log: sentences of fixed shape, with category and status only.
//!
//! A provider's message never enters here, since providers echo keys, tokens and user input.

use std::fmt;

use backstop_classifier::Verdict;

/// A failure as the routing log may name it: its class and an HTTP status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Category {
    class: &'static str,
    status: u16,
}

impl Category {
    /// The category of a classified failure. Where no response came, the status is the one the
    /// gateway itself would answer with.
    #[must_use]
    pub fn of(verdict: &Verdict) -> Self {
        Self {
            class: verdict.class.name(),
            status: recorded_status(verdict),
        }
    }
}

/// The status a failure is booked under: the provider's own where it tells the failure, else the
/// one that means the same. An error inside a 200 is booked under what it says.
#[must_use]
pub fn recorded_status(verdict: &Verdict) -> u16 {
    use backstop_classifier::{Class, Kind};
    match (verdict.class, verdict.status) {
        (Class::Timeout, _) => 504,
        (Class::Cancelled, _) => 499,
        (_, Some(status @ 300..)) => status,
        (Class::RateLimit | Class::Quota, _) => 429,
        (Class::ModelAccess | Class::ModelGone, _) => 404,
        (Class::RegionBlocked, _) => 403,
        (Class::Credential, _) if verdict.kind == Some(Kind::ContentPolicy) => 403,
        (Class::CallerFault, _) => 400,
        (Class::Transient, Some(_)) => 503,
        _ => 502,
    }
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} HTTP {}", self.class, self.status)
    }
}

/// How loudly a sentence is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// The journey goes on, or ended well.
    Info,
    /// Something configured could not be used.
    Warn,
    /// The journey, or a part of it, ended badly.
    Error,
}

/// One transition of a journey. `to` is always `provider/model`; `place` and `of` count fallbacks,
/// `n` and `of` retries; `category` is the failure that led here.
#[allow(missing_docs, reason = "the fields have one meaning each, said above")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sentence {
    /// The primary is spent and fallbacks follow.
    PrimaryFailed {
        to: String,
        category: Category,
        fallbacks: usize,
    },
    /// A fallback is about to be tried.
    TryingFallback {
        place: usize,
        of: usize,
        to: String,
        category: Option<Category>,
    },
    /// A permitted other model is about to be tried.
    TryingSubstitution {
        place: usize,
        of: usize,
        to: String,
        category: Option<Category>,
    },
    /// A fallback names a provider that is not configured.
    FallbackSkipped { to: String },
    /// A fallback answered.
    ServedByFallback { to: String, place: usize, of: usize },
    /// A permitted other model answered.
    ServedBySubstitution { to: String, place: usize, of: usize },
    /// The chain stops at a fallback although others are left: a hook, the request's own bounds, or
    /// a failure that may not be followed up.
    FallbackHalted { to: String, category: Category },
    /// Every fallback failed; the primary's error goes to the caller.
    FallbacksExhausted { of: usize, category: Category },
    /// The next attempt on a channel goes out with another key.
    RetryRotated {
        n: u32,
        of: u32,
        to: String,
        category: Category,
        key: String,
    },
    /// The next attempt on a channel goes out with the same key.
    RetrySameKey {
        n: u32,
        of: u32,
        to: String,
        category: Category,
        key: String,
    },
    /// The next attempt on a keyless channel.
    RetryKeyless {
        n: u32,
        of: u32,
        to: String,
        category: Category,
    },
    /// A channel answered after retries.
    RetriesSucceeded { to: String, retries: u32 },
    /// A channel's retries are spent.
    RetriesExhausted {
        to: String,
        attempts: u32,
        category: Category,
    },
}

impl Sentence {
    /// How loudly it is said.
    #[must_use]
    pub const fn level(&self) -> Level {
        match self {
            Self::FallbackSkipped { .. } => Level::Warn,
            Self::FallbackHalted { .. }
            | Self::FallbacksExhausted { .. }
            | Self::RetriesExhausted { .. } => Level::Error,
            _ => Level::Info,
        }
    }
}

/// What came before a move to another channel.
struct Before(Option<Category>);

impl fmt::Display for Before {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(category) => write!(f, "previous attempt failed: {category}"),
            None => f.write_str("no attempt before it"),
        }
    }
}

impl fmt::Display for Sentence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PrimaryFailed {
                to,
                category,
                fallbacks,
            } => write!(
                f,
                "Primary {to} failed ({category}); evaluating {fallbacks} configured fallback(s)"
            ),
            Self::TryingFallback {
                place,
                of,
                to,
                category,
            } => write!(
                f,
                "Trying fallback {place}/{of}: {to} ({})",
                Before(*category)
            ),
            Self::TryingSubstitution {
                place,
                of,
                to,
                category,
            } => write!(
                f,
                "Trying substitution {place}/{of}: {to} ({})",
                Before(*category)
            ),
            Self::FallbackSkipped { to } => {
                write!(f, "Fallback {to} skipped: missing provider config")
            }
            Self::ServedByFallback { to, place, of } => {
                write!(f, "Request served by fallback {to} (attempt {place}/{of})")
            }
            Self::ServedBySubstitution { to, place, of } => {
                write!(
                    f,
                    "Request served by substitution {to} (attempt {place}/{of})"
                )
            }
            Self::FallbackHalted { to, category } => {
                write!(
                    f,
                    "Fallback {to} failed ({category}); halting further fallbacks"
                )
            }
            Self::FallbacksExhausted { of, category } => write!(
                f,
                "All {of} fallback(s) exhausted; returning primary error ({category})"
            ),
            Self::RetryRotated {
                n,
                of,
                to,
                category,
                key,
            } => write!(
                f,
                "Retry {n}/{of} for {to} (previous attempt failed: {category}; rotated key={key})"
            ),
            Self::RetrySameKey {
                n,
                of,
                to,
                category,
                key,
            } => write!(
                f,
                "Retry {n}/{of} for {to} (previous attempt failed: {category}; same key={key})"
            ),
            Self::RetryKeyless {
                n,
                of,
                to,
                category,
            } => {
                write!(
                    f,
                    "Retry {n}/{of} for {to} (previous attempt failed: {category})"
                )
            }
            Self::RetriesSucceeded { to, retries } => {
                write!(
                    f,
                    "Request to {to} succeeded after {retries} retry attempt(s)"
                )
            }
            Self::RetriesExhausted {
                to,
                attempts,
                category,
            } => write!(
                f,
                "Retries exhausted for {to} after {attempts} attempt(s); last error: {category}"
            ),
        }
    }
}

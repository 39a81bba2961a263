//! The routing log: sentences of fixed shape, with category and status only.
//!
//! A provider's message never enters here, since providers echo keys, tokens and user input.

use std::fmt;

use backstop_classifier::{Class, Verdict};

use crate::hook::HookError;

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

    /// The category of a hook's say: the class it counts as, else its own word.
    #[must_use]
    pub fn of_stop(error: &HookError) -> Self {
        Self {
            class: error.class().map_or("policy_stop", Class::name),
            status: error.status(),
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
    /// A hook answered in a channel's place.
    AnsweredByHook { to: String, hook: String },
    /// A hook stopped a channel, or did not accept what it gave.
    StoppedByHook {
        to: String,
        hook: String,
        category: Category,
    },
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
            Self::FallbackSkipped { .. } | Self::StoppedByHook { .. } => Level::Warn,
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
            Self::AnsweredByHook { to, hook } => {
                write!(f, "Request answered by hook {hook} in place of {to}")
            }
            Self::StoppedByHook { to, hook, category } => {
                write!(f, "Hook {hook} stopped {to} ({category})")
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

#[cfg(test)]
mod tests {
    use backstop_classifier::{Class, Kind};

    use super::*;

    #[test]
    fn every_sentence_has_its_fixed_shape_and_level() {
        let (to, key) = (|| "p/m".to_owned(), || "key-2".to_owned());
        let category = Category {
            class: "rate_limit",
            status: 429,
        };
        let (n, of, place) = (1, 3, 2);
        let before = Some(category);
        #[rustfmt::skip]
        let rows = [
            (Sentence::PrimaryFailed { to: to(), category, fallbacks: 2 }, Level::Info,
             "Primary p/m failed (rate_limit HTTP 429); evaluating 2 configured fallback(s)"),
            (Sentence::TryingFallback { place, of: 3, to: to(), category: before }, Level::Info,
             "Trying fallback 2/3: p/m (previous attempt failed: rate_limit HTTP 429)"),
            (Sentence::TryingFallback { place, of: 3, to: to(), category: None }, Level::Info,
             "Trying fallback 2/3: p/m (no attempt before it)"),
            (Sentence::TryingSubstitution { place, of: 3, to: to(), category: before }, Level::Info,
             "Trying substitution 2/3: p/m (previous attempt failed: rate_limit HTTP 429)"),
            (Sentence::FallbackSkipped { to: to() }, Level::Warn,
             "Fallback p/m skipped: missing provider config"),
            (Sentence::ServedByFallback { to: to(), place, of: 3 }, Level::Info,
             "Request served by fallback p/m (attempt 2/3)"),
            (Sentence::ServedBySubstitution { to: to(), place, of: 3 }, Level::Info,
             "Request served by substitution p/m (attempt 2/3)"),
            (Sentence::FallbackHalted { to: to(), category }, Level::Error,
             "Fallback p/m failed (rate_limit HTTP 429); halting further fallbacks"),
            (Sentence::FallbacksExhausted { of: 3, category }, Level::Error,
             "All 3 fallback(s) exhausted; returning primary error (rate_limit HTTP 429)"),
            (Sentence::RetryRotated { n, of, to: to(), category, key: key() }, Level::Info,
             "Retry 1/3 for p/m (previous attempt failed: rate_limit HTTP 429; rotated key=key-2)"),
            (Sentence::RetrySameKey { n, of, to: to(), category, key: key() }, Level::Info,
             "Retry 1/3 for p/m (previous attempt failed: rate_limit HTTP 429; same key=key-2)"),
            (Sentence::RetryKeyless { n, of, to: to(), category }, Level::Info,
             "Retry 1/3 for p/m (previous attempt failed: rate_limit HTTP 429)"),
            (Sentence::AnsweredByHook { to: to(), hook: "cache".to_owned() }, Level::Info,
             "Request answered by hook cache in place of p/m"),
            (Sentence::StoppedByHook { to: to(), hook: "budget".to_owned(), category }, Level::Warn,
             "Hook budget stopped p/m (rate_limit HTTP 429)"),
            (Sentence::RetriesSucceeded { to: to(), retries: 2 }, Level::Info,
             "Request to p/m succeeded after 2 retry attempt(s)"),
            (Sentence::RetriesExhausted { to: to(), attempts: 3, category }, Level::Error,
             "Retries exhausted for p/m after 3 attempt(s); last error: rate_limit HTTP 429"),
        ];
        for (sentence, level, shape) in rows {
            assert_eq!(sentence.to_string(), shape);
            assert_eq!(sentence.level(), level, "{shape}");
        }
    }

    #[test]
    fn a_failure_is_booked_under_the_status_that_tells_it() {
        for (class, kind, status, booked) in [
            (Class::Transient, None, Some(503), 503),
            (Class::Timeout, None, None, 504),
            (Class::Timeout, None, Some(200), 504),
            (Class::Cancelled, None, Some(200), 499),
            (Class::Malformed, None, Some(302), 302),
            (Class::Malformed, None, Some(200), 502),
            // Inside a 200 the error says what it is.
            (Class::RateLimit, None, Some(200), 429),
            (Class::Quota, None, Some(200), 429),
            (Class::Transient, None, Some(200), 503),
            (Class::Transient, None, None, 502),
            (Class::Credential, Some(Kind::ContentPolicy), Some(200), 403),
            (Class::Credential, None, Some(200), 502),
        ] {
            let verdict = Verdict {
                class,
                kind,
                ..Verdict::malformed(Kind::EmptyAnswer, status)
            };
            assert_eq!(recorded_status(&verdict), booked, "{class} {status:?}");
        }
    }
}

//! The decision table: what each class of failure permits, in one place.
//!
//! | class | same key again | rotate key | same-contract fallback | substitution | health |
//! |---|---|---|---|---|---|
//! | credential, quota, model access, model gone, region | never | at once, free | yes | yes | not counted |
//! | rate limit | after the pool | after backoff, paid | yes | yes | ratio only |
//! | transient | backoff, paid | no | yes | yes | counted |
//! | timeout | no | no | yes | yes | counted |
//! | malformed | no | no | verified channels | no | counted |
//! | unknown | no | no | yes | no | not counted |
//! | caller fault, cancelled | no | no | no | no | not counted |
//!
//! The health column speaks of one failure. Where a request meets the same 5xx on a second channel or
//! key, it is taken for a fact about the request, and the breaker there is told nothing
//! (`journey/evidence.rs`).
//!
//! Kinds refine it: a context window that was too small may go on to a permitted other model with a
//! larger one; a refusal by content policy goes nowhere that was not named for it; a rate limit that
//! waiting can never meet is not waited for.

use backstop_breaker::Outcome;
use backstop_classifier::{Class, Kind, Verdict};
use backstop_keypool::{Permanent, Refusal};

/// What one failure permits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conduct {
    /// What may happen on the same channel.
    pub repeat: Repeat,
    /// Whether another channel of the same contract may follow.
    pub fallback: Reach,
    /// Whether another model may follow.
    pub substitution: Reach,
    /// What the channel's breaker learns.
    pub health: Outcome,
    /// What the key pool learns; `None`: the key is not to blame.
    pub refusal: Option<Refusal>,
}

/// What may happen on the same channel after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    /// Nothing.
    Never,
    /// The next living key at once, free of the retry budget.
    NextKey,
    /// Another key, or the same once all were tried, after backoff; paid.
    Rotate,
    /// Another key at once, never the same one, paid: waiting would not help.
    RotateAtOnce,
    /// The same key after backoff; paid.
    SameKey,
}

/// How far a failure may be carried to other channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Nowhere.
    Closed,
    /// To any candidate.
    Open,
    /// Only to a channel whose contract is verified.
    Verified,
    /// Only to a declared context window larger than the one that failed.
    LargerWindow,
    /// Only where the operator named refusals by content policy.
    NamedForPolicy,
}

impl Conduct {
    /// The same failure from a provider that asks for no key: there is none to blame or to change.
    /// What its status earns there is what a passing trouble earns; what waiting cannot help, and
    /// a refusal told in another way, is not repeated.
    #[must_use]
    pub const fn without_keys(self, failure: &Verdict) -> Self {
        let passing = matches!(failure.status, Some(401 | 402 | 403 | 429));
        let repeat = match self.repeat {
            Repeat::Rotate => Repeat::SameKey,
            Repeat::NextKey if passing => Repeat::SameKey,
            Repeat::NextKey | Repeat::RotateAtOnce => Repeat::Never,
            Repeat::Never => Repeat::Never,
            Repeat::SameKey => Repeat::SameKey,
        };
        Self {
            repeat,
            refusal: None,
            ..self
        }
    }

    /// Whether this is a fact about the request, which binds every later candidate as well.
    #[must_use]
    pub const fn binds_the_request(&self) -> bool {
        matches!(
            self.substitution,
            Reach::LargerWindow | Reach::NamedForPolicy
        )
    }
}

/// Gate 1: what this failure permits.
#[must_use]
pub fn conduct(failure: &Verdict) -> Conduct {
    let base = of_class(failure.class);
    match (failure.class, failure.kind) {
        (Class::CallerFault, Some(Kind::ContextWindow)) => Conduct {
            substitution: Reach::LargerWindow,
            ..base
        },
        (Class::CallerFault, Some(Kind::ContentPolicy)) => Conduct {
            substitution: Reach::NamedForPolicy,
            ..base
        },
        (Class::Credential, Some(Kind::ContentPolicy)) => Conduct {
            fallback: Reach::Closed,
            substitution: Reach::NamedForPolicy,
            refusal: Some(Refusal::Permanent(Permanent::ContentPolicy)),
            ..base
        },
        (Class::RateLimit, Some(Kind::RequestLargerThanLimit | Kind::LimitZero)) => Conduct {
            repeat: Repeat::RotateAtOnce,
            ..base
        },
        _ => base,
    }
}

const fn of_class(class: Class) -> Conduct {
    match class {
        Class::Credential => permanent(Permanent::Credential),
        Class::Quota => permanent(Permanent::Quota),
        Class::ModelAccess => permanent(Permanent::ModelAccess),
        Class::ModelGone => permanent(Permanent::ModelGone),
        Class::RegionBlocked => permanent(Permanent::RegionBlocked),
        Class::RateLimit => Conduct {
            repeat: Repeat::Rotate,
            fallback: Reach::Open,
            substitution: Reach::Open,
            health: Outcome::RateLimited,
            refusal: Some(Refusal::RateLimited),
        },
        Class::Transient => Conduct {
            repeat: Repeat::SameKey,
            fallback: Reach::Open,
            substitution: Reach::Open,
            health: Outcome::Failure,
            refusal: None,
        },
        Class::Timeout => Conduct {
            repeat: Repeat::Never,
            ..of_class(Class::Transient)
        },
        Class::Malformed => Conduct {
            repeat: Repeat::Never,
            fallback: Reach::Verified,
            substitution: Reach::Closed,
            health: Outcome::Failure,
            refusal: None,
        },
        Class::Unknown => Conduct {
            repeat: Repeat::Never,
            fallback: Reach::Open,
            substitution: Reach::Closed,
            health: Outcome::Ignored,
            refusal: None,
        },
        Class::CallerFault | Class::Cancelled => Conduct {
            repeat: Repeat::Never,
            fallback: Reach::Closed,
            substitution: Reach::Closed,
            health: Outcome::Ignored,
            refusal: None,
        },
    }
}

const fn permanent(kind: Permanent) -> Conduct {
    Conduct {
        repeat: Repeat::NextKey,
        fallback: Reach::Open,
        substitution: Reach::Open,
        health: Outcome::Ignored,
        refusal: Some(Refusal::Permanent(kind)),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use backstop_classifier::Sent;

    use super::*;

    fn verdict(class: Class, kind: Option<Kind>, status: Option<u16>) -> Verdict {
        Verdict {
            class,
            kind,
            sent: Sent::Maybe,
            ..Verdict::malformed(Kind::EmptyAnswer, status)
        }
    }

    #[test]
    fn the_table_is_the_pages_table() {
        use Outcome::{Failure, Ignored, RateLimited};
        use Reach::{Closed, LargerWindow, NamedForPolicy, Open, Verified};
        use Repeat::{Never, NextKey, Rotate, RotateAtOnce, SameKey};
        let for_good = |kind| Some(Refusal::Permanent(kind));
        let limited = Some(Refusal::RateLimited);
        let (large, zero) = (Kind::RequestLargerThanLimit, Kind::LimitZero);
        let policy = for_good(Permanent::ContentPolicy);
        #[rustfmt::skip]
        let rows = [
            (Class::Credential, None, NextKey, Open, Open, Ignored, for_good(Permanent::Credential)),
            (Class::Quota, None, NextKey, Open, Open, Ignored, for_good(Permanent::Quota)),
            (Class::ModelAccess, None, NextKey, Open, Open, Ignored, for_good(Permanent::ModelAccess)),
            (Class::ModelGone, None, NextKey, Open, Open, Ignored, for_good(Permanent::ModelGone)),
            (Class::RegionBlocked, None, NextKey, Open, Open, Ignored, for_good(Permanent::RegionBlocked)),
            (Class::RateLimit, None, Rotate, Open, Open, RateLimited, limited),
            (Class::RateLimit, Some(large), RotateAtOnce, Open, Open, RateLimited, limited),
            (Class::RateLimit, Some(zero), RotateAtOnce, Open, Open, RateLimited, limited),
            (Class::Transient, None, SameKey, Open, Open, Failure, None),
            (Class::Timeout, None, Never, Open, Open, Failure, None),
            (Class::Malformed, None, Never, Verified, Closed, Failure, None),
            (Class::Unknown, None, Never, Open, Closed, Ignored, None),
            (Class::CallerFault, None, Never, Closed, Closed, Ignored, None),
            (Class::CallerFault, Some(Kind::ContextWindow), Never, Closed, LargerWindow, Ignored, None),
            (Class::CallerFault, Some(Kind::ContentPolicy), Never, Closed, NamedForPolicy, Ignored, None),
            (Class::Credential, Some(Kind::ContentPolicy), NextKey, Closed, NamedForPolicy, Ignored, policy),
            (Class::Cancelled, None, Never, Closed, Closed, Ignored, None),
        ];
        for (class, kind, repeat, fallback, substitution, health, refusal) in rows {
            let want = Conduct {
                repeat,
                fallback,
                substitution,
                health,
                refusal,
            };
            assert_eq!(
                conduct(&verdict(class, kind, None)),
                want,
                "{class} {kind:?}"
            );
        }
        let covered: HashSet<Class> = rows.iter().map(|row| row.0).collect();
        assert!(Class::ALL.iter().all(|class| covered.contains(class)));
    }

    #[test]
    fn without_keys_a_status_earns_what_it_always_earned_and_nobody_is_blamed() {
        use Repeat::{Never, SameKey};
        for (class, kind, status, repeat) in [
            (Class::Credential, None, Some(401), SameKey),
            (Class::Quota, None, Some(402), SameKey),
            (
                Class::Credential,
                Some(Kind::ContentPolicy),
                Some(403),
                SameKey,
            ),
            (Class::Quota, None, Some(429), SameKey),
            (Class::RateLimit, None, Some(429), SameKey),
            (Class::RateLimit, None, Some(200), SameKey),
            (Class::RateLimit, Some(Kind::LimitZero), Some(429), Never),
            (Class::Credential, None, Some(400), Never),
            (Class::ModelAccess, None, Some(404), Never),
            (Class::Transient, None, Some(503), SameKey),
            (Class::Timeout, None, None, Never),
        ] {
            let failure = verdict(class, kind, status);
            let keyless = conduct(&failure).without_keys(&failure);
            assert_eq!(keyless.repeat, repeat, "{class} {kind:?} {status:?}");
            assert_eq!(keyless.refusal, None);
            assert_eq!(keyless.health, conduct(&failure).health);
        }
    }
}

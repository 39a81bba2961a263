//! The four gates that stand before every further attempt.
//!
//! Gate 1, the class, is [`crate::conduct`] on one channel and [`crate::Candidate::admits`] between
//! channels. The other three are here. Each answers with the reason it stays shut.

use std::time::Duration;

use backstop_classifier::{Sent, Verdict};
use thiserror::Error;

use crate::route::RouteLimits;
use crate::trail::Phase;

/// Why no further attempt may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Shut {
    /// Meaningful output has gone out; a replay would repeat or contradict it.
    #[error("output had reached the caller")]
    Phase,
    /// The request may have been carried out, and repeating it is not known to be safe.
    #[error("the request may have taken effect and is not safe to repeat")]
    Replay,
    /// Every send the request may make was made.
    #[error("the request's {max} sends are spent")]
    Attempts {
        /// The bound that was met.
        max: u32,
    },
    /// Too little time is left for a useful answer.
    #[error("less than {} ms are left", .min.as_millis())]
    Time {
        /// What an attempt needs at the least.
        min: Duration,
    },
}

/// Sends made so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sends {
    /// On the channels of the first group.
    pub primary: u32,
    /// Everywhere else.
    pub fallback: u32,
}

impl Sends {
    /// All sends of the journey.
    #[must_use]
    pub const fn total(self) -> u32 {
        self.primary + self.fallback
    }

    const fn side(&mut self, primary: bool) -> &mut u32 {
        if primary {
            &mut self.primary
        } else {
            &mut self.fallback
        }
    }

    /// One more on that side.
    pub(crate) const fn add(&mut self, primary: bool) {
        *self.side(primary) += 1;
    }

    /// One that did not go out after all.
    pub(crate) const fn take_back(&mut self, primary: bool) {
        *self.side(primary) -= 1;
    }
}

/// Gate 2: nothing follows once output has reached the caller.
///
/// # Errors
/// [`Shut::Phase`] after output.
pub const fn phase_gate(phase: Phase) -> Result<(), Shut> {
    match phase {
        Phase::BeforeOutput => Ok(()),
        Phase::AfterOutput => Err(Shut::Phase),
    }
}

/// Gate 3: a request that may have taken effect is sent again only when that is safe. One that
/// provably never reached the provider always may be, and so may one that was turned away: a 4xx
/// says that nothing was done, except for 408 and 499, which say that someone stopped waiting.
///
/// # Errors
/// [`Shut::Replay`] when the outcome is unknown and the request is not replay-safe.
pub fn replay_gate(failure: &Verdict, replay_safe: bool) -> Result<(), Shut> {
    let turned_away = matches!(failure.status, Some(400..=407 | 409..=498));
    if replay_safe || turned_away || failure.sent == Sent::Never {
        Ok(())
    } else {
        Err(Shut::Replay)
    }
}

/// Gate 4: sends left, over the whole request and on this side of the first fallback, and enough
/// wall clock. The first attempt is exempt from the minimum of time.
///
/// # Errors
/// [`Shut::Attempts`] or [`Shut::Time`].
pub fn budget_gate(
    sends: Sends,
    in_primary: bool,
    limits: &RouteLimits,
    left: Duration,
) -> Result<(), Shut> {
    let (spent, bound) = if in_primary {
        (sends.primary, limits.max_attempts_primary)
    } else {
        (sends.fallback, limits.max_attempts_fallback)
    };
    for (spent, bound) in [(sends.total(), Some(limits.max_attempts)), (spent, bound)] {
        if let Some(max) = bound
            && spent >= max
        {
            return Err(Shut::Attempts { max });
        }
    }
    if sends.total() > 0 && left < limits.min_attempt {
        return Err(Shut::Time {
            min: limits.min_attempt,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use backstop_classifier::{Evidence, Family, Transport, classify};

    use super::*;

    #[test]
    fn nothing_follows_output() {
        assert_eq!(phase_gate(Phase::BeforeOutput), Ok(()));
        assert_eq!(phase_gate(Phase::AfterOutput), Err(Shut::Phase));
    }

    #[test]
    fn an_unknown_outcome_is_not_repeated_unless_that_is_safe() {
        let now = SystemTime::UNIX_EPOCH;
        let answered = |status| classify(&Evidence::response(Family::General, status, b"{}", now));
        let broken = |how| classify(&Evidence::transport(Family::General, how, now));
        for (failure, open) in [
            (broken(Transport::Refused), true),
            (broken(Transport::Dns), true),
            (broken(Transport::NotProcessed), true),
            (broken(Transport::ResetBeforeResponse), false),
            (broken(Transport::CutBody), false),
            (answered(400), true),
            (answered(401), true),
            (answered(408), false),
            (answered(429), true),
            (answered(499), false),
            (answered(500), false),
            (answered(200), false),
        ] {
            assert_eq!(replay_gate(&failure, true), Ok(()));
            assert_eq!(replay_gate(&failure, false).is_ok(), open, "{failure}");
        }
    }

    #[test]
    fn the_budget_counts_sends_on_both_sides_and_the_time_left() {
        let limits = RouteLimits {
            max_attempts: 5,
            max_attempts_primary: Some(3),
            max_attempts_fallback: Some(4),
            ..RouteLimits::default()
        };
        let open = RouteLimits {
            max_attempts_primary: None,
            max_attempts_fallback: None,
            ..limits
        };
        let (least, short) = (Duration::from_millis(250), Duration::from_millis(249));
        let attempts = |max| Err(Shut::Attempts { max });
        let time = Err(Shut::Time { min: least });
        for (primary, fallback, in_primary, limits, left, want) in [
            (0, 0, true, limits, least, Ok(())),
            // The first attempt needs no minimum of time, and no other is exempt.
            (0, 0, true, limits, short, Ok(())),
            (1, 0, true, limits, short, time),
            (0, 1, false, limits, short, time),
            (2, 0, true, limits, least, Ok(())),
            (3, 0, true, limits, least, attempts(3)),
            (3, 0, false, limits, least, Ok(())),
            (0, 4, false, limits, least, attempts(4)),
            (1, 4, true, limits, least, attempts(5)),
            (3, 2, false, limits, least, attempts(5)),
            (4, 0, true, open, least, Ok(())),
            (5, 0, true, open, least, attempts(5)),
        ] {
            let sends = Sends { primary, fallback };
            let got = budget_gate(sends, in_primary, &limits, left);
            assert_eq!(got, want, "{sends:?} {left:?}");
        }
    }
}

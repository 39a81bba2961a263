//! The machine: three states, the permits that move it, and who may move it when.
//!
//! | state | asked for a permit | `Success` | `Failure` | `RateLimited` | `Ignored` |
//! |---|---|---|---|---|---|
//! | closed | granted | ends the streak | adds to streak and ratio, may open | adds to the ratio, may open | nothing |
//! | open, its time not over | refused | of a forced one: closes | nothing | nothing | nothing |
//! | half-open, slot free | granted as the probe | of a forced one: closes | nothing | nothing | nothing |
//! | half-open, probe out | refused | of the probe: closes | of the probe: opens for longer | of the probe: opens as long again | of the probe: frees the slot |
//!
//! A permit counts only in the term it was given in. Each opening and each closing starts a new
//! term, so attempts still in flight from before an opening neither close the breaker nor open it
//! again after it closed.

use std::time::Duration;

use backstop_units::Moment;

use crate::params::Params;
use crate::window::Window;

/// The breaker of one channel.
#[derive(Debug, Clone)]
pub struct Breaker {
    params: Params,
    phase: Phase,
    window: Option<Window>,
    term: u64,
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    Closed {
        streak: u32,
    },
    /// Half-open once `until` has come.
    Open {
        until: Moment,
        lasted: Duration,
    },
    Probing {
        lasted: Duration,
    },
}

/// Leave for one attempt. Must be handed back to [`Breaker::settle`] or [`Breaker::release`].
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a permit that is not handed back keeps the probe's slot for ever"]
pub struct Permit {
    kind: Kind,
    term: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Closed,
    Probe,
    Forced,
}

/// Why there is no permit now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// Open until then.
    Open {
        /// When the next probe may go.
        until: Moment,
    },
    /// Half-open, and its one probe is out.
    Probing,
}

/// How an attempt ended, as far as the channel's health is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The channel answered: also a refusal by the model and a filtered answer.
    Success,
    /// The channel failed: transient, timeout, malformed, a stream that broke midway.
    Failure,
    /// The provider limits us: counts for the ratio, not for the streak.
    RateLimited,
    /// Says nothing about the channel: caller's fault, a refused key, a hang-up, no attempt at all.
    Ignored,
}

/// What a breaker does at a given moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Lets traffic through.
    Closed,
    /// Refuses traffic until a moment that has not come yet.
    Open {
        /// When the next probe may go.
        until: Moment,
    },
    /// Lets one probe through.
    HalfOpen {
        /// Whether the probe is out.
        probing: bool,
    },
}

/// A change that an operator wants to hear of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transition {
    /// It opened, or opened again.
    Opened {
        /// When the next probe may go.
        until: Moment,
        /// What opened it.
        by: Trigger,
    },
    /// It closed.
    Closed,
}

/// What opened a breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// Too many failures in a row.
    Streak,
    /// Too small a share of successes.
    Ratio,
    /// A probe that did not succeed.
    Probe,
}

impl Breaker {
    /// A closed breaker with a clean sheet.
    #[must_use]
    pub fn new(params: Params) -> Self {
        Self {
            params,
            phase: Phase::Closed { streak: 0 },
            window: sheet(&params),
            term: 0,
        }
    }

    /// Asks leave for one attempt.
    ///
    /// # Errors
    /// When the breaker is open, or half-open with its probe out.
    pub fn permit(&mut self, now: Moment) -> Result<Permit, Refused> {
        match self.phase {
            Phase::Closed { .. } => Ok(self.grant(Kind::Closed)),
            Phase::Open { until, .. } if now < until => Err(Refused::Open { until }),
            Phase::Open { lasted, .. } => {
                self.phase = Phase::Probing { lasted };
                Ok(self.grant(Kind::Probe))
            }
            Phase::Probing { .. } => Err(Refused::Probing),
        }
    }

    /// Takes leave for one attempt whatever the state: nothing else is eligible, and breaking must
    /// not turn a slow outage into a total one. An ordinary permit when one is to be had. A forced
    /// attempt that succeeds while the breaker is open closes it; one that fails changes nothing,
    /// so that traffic without an alternative cannot keep the breaker open.
    pub fn force(&mut self, now: Moment) -> Permit {
        match self.permit(now) {
            Ok(permit) => permit,
            Err(_) => self.grant(Kind::Forced),
        }
    }

    /// Takes a permit back with what came of it. Answers with the change it made, if any.
    pub fn settle(&mut self, now: Moment, permit: Permit, outcome: Outcome) -> Option<Transition> {
        if permit.term != self.term {
            return None;
        }
        match (self.phase, permit.kind, outcome) {
            (_, _, Outcome::Ignored) => {
                self.release(permit);
                None
            }
            (Phase::Closed { streak }, _, outcome) => self.count(now, streak, outcome),
            (Phase::Probing { .. }, Kind::Probe, Outcome::Success)
            | (Phase::Open { .. }, Kind::Forced, Outcome::Success) => Some(self.close()),
            (Phase::Probing { lasted }, Kind::Probe, Outcome::Failure) => {
                Some(self.open(now, self.params.grown(lasted), Trigger::Probe))
            }
            (Phase::Probing { lasted }, Kind::Probe, Outcome::RateLimited) => {
                Some(self.open(now, lasted, Trigger::Probe))
            }
            (Phase::Open { .. } | Phase::Probing { .. }, _, _) => None,
        }
    }

    /// Takes a permit back when nothing was learned. Needs no clock, so a guard can do it on drop.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a permit is handed back once; to take it is the point"
    )]
    pub fn release(&mut self, permit: Permit) {
        if permit.term != self.term || permit.kind != Kind::Probe {
            return;
        }
        if let Phase::Probing { lasted } = self.phase {
            // Its time is over already: the next one to ask is the probe.
            self.phase = Phase::Open {
                until: Moment::START,
                lasted,
            };
        }
    }

    /// What the breaker does at `now`.
    #[must_use]
    pub fn state(&self, now: Moment) -> State {
        match self.phase {
            Phase::Closed { .. } => State::Closed,
            Phase::Open { until, .. } if now < until => State::Open { until },
            Phase::Open { .. } => State::HalfOpen { probing: false },
            Phase::Probing { .. } => State::HalfOpen { probing: true },
        }
    }

    /// When an open breaker lets its next probe through. Nothing while it is closed or probing, and
    /// nothing in the past.
    #[must_use]
    pub fn reopens_at(&self, now: Moment) -> Option<Moment> {
        match self.state(now) {
            State::Open { until } => Some(until),
            State::Closed | State::HalfOpen { .. } => None,
        }
    }

    /// Goes on under other settings, as after a reload. History stays; only a window of another
    /// length starts empty. A running open time runs to its end, unless the breaker is to open
    /// never again.
    pub fn set_params(&mut self, params: Params) {
        let span = |params: &Params| params.ratio().map(|rule| rule.window);
        if span(&params) != span(&self.params) {
            self.window = sheet(&params);
        }
        self.params = params;
        if params.is_never() && matches!(self.phase, Phase::Open { .. }) {
            self.close();
        }
    }

    const fn grant(&self, kind: Kind) -> Permit {
        Permit {
            kind,
            term: self.term,
        }
    }

    /// Books the end of an attempt while closed, and opens when a rule says so.
    fn count(&mut self, now: Moment, streak: u32, outcome: Outcome) -> Option<Transition> {
        if let Some(window) = &mut self.window {
            window.book(now, outcome == Outcome::Success);
        }
        let streak = match outcome {
            Outcome::Success => 0,
            Outcome::Failure => streak.saturating_add(1),
            Outcome::RateLimited | Outcome::Ignored => streak,
        };
        self.phase = Phase::Closed { streak };
        if outcome == Outcome::Success {
            return None;
        }
        let trigger = if outcome == Outcome::Failure && self.params.streak_is_over(streak) {
            Trigger::Streak
        } else if self.share_is_low(now) {
            Trigger::Ratio
        } else {
            return None;
        };
        Some(self.open(now, self.params.first_open(), trigger))
    }

    fn share_is_low(&self, now: Moment) -> bool {
        match (&self.window, self.params.ratio()) {
            (Some(window), Some(rule)) => window.is_below(rule, now),
            _ => false,
        }
    }

    fn open(&mut self, now: Moment, lasted: Duration, by: Trigger) -> Transition {
        if self.params.is_never() {
            return self.close();
        }
        let until = now + lasted;
        self.phase = Phase::Open { until, lasted };
        self.term += 1;
        Transition::Opened { until, by }
    }

    fn close(&mut self) -> Transition {
        self.phase = Phase::Closed { streak: 0 };
        self.window = sheet(&self.params);
        self.term += 1;
        Transition::Closed
    }
}

impl Permit {
    /// Whether this is the half-open breaker's one probe.
    #[must_use]
    pub fn is_probe(&self) -> bool {
        self.kind == Kind::Probe
    }

    /// Whether this was granted although the breaker refuses.
    #[must_use]
    pub fn is_forced(&self) -> bool {
        self.kind == Kind::Forced
    }
}

impl Refused {
    /// When to ask again, where that is known.
    #[must_use]
    pub const fn until(self) -> Option<Moment> {
        match self {
            Self::Open { until } => Some(until),
            Self::Probing => None,
        }
    }
}

/// An empty window, when the share of successes is judged at all.
fn sheet(params: &Params) -> Option<Window> {
    params.ratio().map(|rule| Window::new(rule.window))
}

#[cfg(test)]
mod tests;

//! The two times of a stream, before and after the commit point, as one value.
//!
//! "May the upstream still be changed?" is a match: only [`Relay::Holding`] has a hold to discard.

use std::fmt;

use backstop_units::Moment;

use crate::hold::{CommitReason, Committed, Hold, Weight};
use crate::meaning::Meaning;
use crate::rule::{CommitRule, HoldLimits};

/// A stream on its way to the caller. Made once a journey; attempts come and go within it.
#[derive(Debug)]
pub enum Relay<T> {
    /// Nothing has gone out: the events can be thrown away and another attempt begun.
    Holding(Hold<T>),
    /// Something has gone out: events only pass.
    Committed(Committed),
}

/// What becomes of an event. `Debug` shows how many, never which.
#[derive(Clone, PartialEq, Eq)]
#[must_use]
pub enum Step<T> {
    /// It is held back.
    Held,
    /// The commit point is crossed: these go out now, in this order, the event last.
    Release(Vec<T>),
    /// It goes out.
    Pass(T),
    /// It is an error event, and it is handed back: before the commit point the attempt has
    /// failed, after it the stream ends with an error in our own words.
    Failed(T),
}

impl<T> Relay<T> {
    /// A relay that holds until `rule` is met or `limits` are reached.
    #[must_use]
    pub const fn new(rule: CommitRule, limits: HoldLimits) -> Self {
        Self::Holding(Hold::new(rule, limits))
    }

    /// Takes the next event of the current attempt.
    pub fn on_event(&mut self, now: Moment, meaning: Meaning, weight: Weight, event: T) -> Step<T> {
        if meaning == Meaning::Error {
            return Step::Failed(event);
        }
        let Self::Holding(hold) = self else {
            return Step::Pass(event);
        };
        match hold.on_event(now, meaning, weight, event) {
            Some(reason) => Step::Release(self.commit(now, reason)),
            None => Step::Held,
        }
    }

    /// Looks at the clock: the events to send when the hold has become due, `None` otherwise.
    pub fn on_wake(&mut self, now: Moment) -> Option<Vec<T>> {
        let Self::Holding(hold) = self else {
            return None;
        };
        let reason = hold.due(now)?;
        Some(self.commit(now, reason))
    }

    /// The input has ended and the answer is whole ([`Ending::Whole`](crate::Ending::Whole)): what
    /// is still held, to be sent before the stream is closed. Empty when it had been sent before.
    #[must_use]
    pub fn on_whole(&mut self, now: Moment) -> Vec<T> {
        self.commit(now, CommitReason::Finished)
    }

    /// When to call [`on_wake`](Self::on_wake).
    #[must_use]
    pub fn next_wake(&self) -> Option<Moment> {
        match self {
            Self::Holding(hold) => hold.next_wake(),
            Self::Committed(_) => None,
        }
    }

    /// The commit, once it has happened.
    #[must_use]
    pub const fn committed(&self) -> Option<&Committed> {
        match self {
            Self::Holding(_) => None,
            Self::Committed(committed) => Some(committed),
        }
    }

    fn commit(&mut self, now: Moment, reason: CommitReason) -> Vec<T> {
        let Self::Holding(hold) = self else {
            return Vec::new();
        };
        let spent = Hold::new(CommitRule::FirstOutput, HoldLimits::default());
        let (committed, events) = std::mem::replace(hold, spent).commit(now, reason);
        *self = Self::Committed(committed);
        events
    }
}

impl<T> fmt::Debug for Step<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Held => f.write_str("Held"),
            Self::Release(events) => write!(f, "Release({} events)", events.len()),
            Self::Pass(_) => f.write_str("Pass"),
            Self::Failed(_) => f.write_str("Failed"),
        }
    }
}

#[cfg(test)]
mod tests;

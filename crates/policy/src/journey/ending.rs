//! Endings: what the caller is told, and why.

use backstop_classifier::Clock;
use backstop_units::Moment;

use super::action::{Action, Cause, Ending, FinalError, KeyFate};
use super::attempt::timed_out;
use super::leg::may_be_repeated_above;
use super::{Attempt, Journey, State, bare};
use crate::sentence::{Category, Sentence};
use crate::trail::Outcome;

/// Endings.
impl Journey {
    pub(super) fn finish_exhausted(&mut self, now: Moment) {
        if let Some(error) = self.leg.error(&self.channel()) {
            self.primary_error.get_or_insert(error);
        }
        let reopening = self.skips.iter().map(|skip| skip.until).min();
        let mut error = self
            .primary_error
            .take()
            .unwrap_or_else(|| bare(Cause::NotSent));
        if self.sends.total() == 0 {
            error.retry_after = reopening.map(|until| until.since(now));
        }
        error.do_not_retry |= self.sends.total() > 1;
        if let (true, Some(verdict)) = (self.fallback_tried, &error.verdict) {
            let (of, category) = (self.plan.candidates.len() - 1, Category::of(verdict));
            self.say(Sentence::FallbacksExhausted { of, category });
        }
        self.finish(now, Ending::Exhausted(error));
    }

    /// The request's own time is up. An attempt it cut off says nothing about its channel.
    pub(super) fn finish_deadline(&mut self, now: Moment, attempt: Option<&Attempt>) {
        let verdict = timed_out(Clock::Deadline);
        if let Some(attempt) = attempt {
            self.actions.push_back(Action::Abort);
            self.write_failure(now, attempt, &verdict, Outcome::Failed);
            self.actions.push_back(Action::Settle {
                outcome: backstop_breaker::Outcome::Ignored,
                key: KeyFate::Nothing,
            });
        }
        let error = FinalError {
            cause: Cause::Deadline,
            attempt: None,
            retry_after: None,
            do_not_retry: self.sends.total() > 1 || !may_be_repeated_above(&verdict),
            verdict: Some(verdict),
        };
        self.finish(now, Ending::Deadline(error));
    }

    pub(super) fn finish(&mut self, _now: Moment, ending: Ending) {
        self.state = State::Over;
        self.actions.push_back(Action::Finish(Box::new(ending)));
    }
}

//! Endings: what the caller is told, and why.

use backstop_breaker::Outcome as Health;
use backstop_classifier::{Class, Clock};
use backstop_units::Moment;

use super::action::{Action, Cause, Ending, FinalError, KeyFate};
use super::attempt::timed_out;
use super::onward::bare;
use super::{Attempt, Journey, State};
use crate::trail::{Outcome, UpstreamPhase};

/// Endings.
impl Journey {
    /// Nothing worked. `halted`: candidates may be left, but nothing more may start.
    pub(super) fn finish_exhausted(&mut self, now: Moment, halted: bool) {
        self.close_leg();
        let mut error = self.error.take().unwrap_or_else(|| bare(Cause::NotSent));
        if self.sends.total() == 0 && error.stopped.is_none() {
            let reopening = self.skips.iter().map(|skip| skip.until).min();
            error.retry_after = reopening.map(|until| until.since(now));
        }
        error.do_not_retry |= self.sends.total() > 1;
        self.say_failed(&error, halted);
        self.finish(if error.cause == Cause::Hook {
            Ending::PolicyStop(error)
        } else {
            Ending::Exhausted(error)
        });
    }

    /// The request's own time is up. An attempt it cut off says nothing about its channel.
    pub(super) fn finish_deadline(&mut self, now: Moment, attempt: Option<&Attempt>) {
        let verdict = timed_out(Clock::Deadline);
        if let Some(attempt) = attempt {
            if self.withdraw() {
                self.take_back(attempt);
            } else {
                self.actions.push_back(Action::Abort);
                self.write_failure(now, attempt, &verdict, Outcome::Failed);
            }
            self.settle_nothing();
        }
        self.finish(Ending::Deadline(FinalError {
            verdict: Some(verdict),
            ..bare(Cause::Deadline)
        }));
    }

    /// The caller left. What is taken is given back, what is under way is closed, nothing starts.
    pub(super) fn on_caller_gone(&mut self, now: Moment, state: State) {
        let unsent = self.withdraw();
        match state {
            State::Attempting(attempt) if unsent => {
                self.take_back(&attempt);
                self.settle_nothing();
            }
            State::Attempting(attempt) | State::Committed(attempt) => {
                let row = &mut self.trail[attempt.row];
                row.total = now.since(row.started);
                row.outcome = Outcome::Cancelled;
                row.class = Some(Class::Cancelled);
                row.upstream_phase = row.upstream_phase.max(UpstreamPhase::Sent);
                self.actions.push_back(Action::Abort);
                self.settle_nothing();
            }
            State::AskedLease(start) => {
                self.settle_nothing();
                self.refund(&start);
            }
            State::AskedResend(_) | State::AskedRenew(_) => self.settle_nothing(),
            State::Waiting { start, .. } | State::AskedPermit(start) => self.refund(&start),
            State::Ready | State::AskedHook(_) | State::AskedBudget(_) | State::Over => {}
        }
        self.finish(Ending::Cancelled);
    }

    pub(super) fn finish(&mut self, ending: Ending) {
        self.state = State::Over;
        self.actions.push_back(Action::Finish(Box::new(ending)));
    }

    /// Takes back what was asked for and not begun, so that an ending is followed by nothing.
    /// Whether a send was among it.
    fn withdraw(&mut self) -> bool {
        let mut unsent = false;
        self.actions.retain(|action| {
            unsent |= matches!(action, Action::Send { .. });
            !matches!(
                action,
                Action::RunHook { .. }
                    | Action::AskPermit { .. }
                    | Action::Lease { .. }
                    | Action::SpendBudget { .. }
                    | Action::Renew { .. }
                    | Action::Wait { .. }
                    | Action::Send { .. }
            )
        });
        unsent
    }

    /// Breaker and key pool learn nothing; what they lent is free again.
    pub(super) fn settle_nothing(&mut self) {
        self.settle(Health::Ignored, KeyFate::Nothing);
    }

    pub(super) fn settle(&mut self, outcome: Health, key: KeyFate) {
        self.actions.push_back(Action::Settle { outcome, key });
    }
}

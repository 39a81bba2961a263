//! An attempt under way: what it brings, and how it ends.

use std::time::SystemTime;

use backstop_classifier::{Class, Clock, Evidence, Family, Transport, Verdict, classify};
use backstop_units::Moment;

use super::action::{Action, Cause, Ending, KeyFate};
use super::event::Event;
use super::{Attempt, Journey, State, bare};
use crate::decision::conduct;
use crate::plan::Leg;
use crate::sentence::Sentence;
use crate::trail::{Outcome, Phase, UpstreamPhase};

/// An attempt under way.
impl Journey {
    pub(super) fn on_attempt(&mut self, now: Moment, attempt: Attempt, event: Event) {
        let row = &mut self.trail[attempt.row];
        let elapsed = now.since(row.started);
        match event {
            Event::Headers {
                status,
                reused,
                connect,
            } => {
                row.status = Some(status);
                row.connection_reused = Some(reused);
                row.connect = connect;
                row.headers = Some(elapsed);
                row.upstream_phase = UpstreamPhase::Headers;
            }
            Event::Output => {
                row.first_output.get_or_insert(elapsed);
                row.upstream_phase = UpstreamPhase::Output;
            }
            Event::Usage(usage) => row.usage = Some(usage),
            Event::Committed => {
                row.phase = Phase::AfterOutput;
                self.state = State::Committed(attempt);
                return;
            }
            Event::Whole => return self.on_success(now, &attempt),
            Event::Failed {
                verdict,
                stale_connection,
            } => {
                return self.on_failed(now, &attempt, &verdict, stale_connection);
            }
            Event::Unbuildable { field } => return self.on_unbuildable(now, &attempt, field),
            Event::Time => {
                if now >= self.end() {
                    return self.finish_deadline(now, Some(&attempt));
                }
                if self
                    .first_output_due(&attempt)
                    .is_some_and(|due| now >= due)
                {
                    self.actions.push_back(Action::Abort);
                    let verdict = timed_out(Clock::FirstOutput);
                    return self.on_failed(now, &attempt, &verdict, false);
                }
            }
            _ => {}
        }
        self.state = State::Attempting(attempt);
    }

    pub(super) fn on_committed(&mut self, now: Moment, attempt: Attempt, event: Event) {
        match event {
            Event::Whole => self.on_success(now, &attempt),
            Event::Usage(usage) => {
                self.trail[attempt.row].usage = Some(usage);
                self.state = State::Committed(attempt);
            }
            Event::Failed { verdict, .. } => {
                let health = conduct(&verdict).health;
                self.break_off(now, &attempt, verdict, health);
            }
            Event::Time if now >= self.terms.deadline => {
                self.actions.push_back(Action::Abort);
                let verdict = timed_out(Clock::Deadline);
                self.break_off(now, &attempt, verdict, backstop_breaker::Outcome::Ignored);
            }
            _ => self.state = State::Committed(attempt),
        }
    }

    pub(super) fn on_success(&mut self, now: Moment, attempt: &Attempt) {
        let row = &mut self.trail[attempt.row];
        row.total = now.since(row.started);
        row.outcome = Outcome::Success;
        self.actions.push_back(Action::Settle {
            outcome: backstop_breaker::Outcome::Success,
            key: KeyFate::Served,
        });
        let to = self.channel().label();
        if self.leg.repeats() > 0 {
            let retries = self.leg.repeats();
            self.say(Sentence::RetriesSucceeded {
                to: to.clone(),
                retries,
            });
        }
        if self.at > 0 {
            let (place, of) = (self.at, self.plan.candidates.len() - 1);
            self.say(Sentence::ServedByFallback { to, place, of });
        }
        self.finish(now, Ending::Success);
    }

    /// A stream that broke after output: the caller has a part, and nothing follows.
    pub(super) fn break_off(
        &mut self,
        now: Moment,
        attempt: &Attempt,
        verdict: Verdict,
        outcome: backstop_breaker::Outcome,
    ) {
        self.write_failure(now, attempt, &verdict, Outcome::Partial);
        self.actions.push_back(Action::Settle {
            outcome,
            key: KeyFate::Nothing,
        });
        self.finish(now, Ending::Partial(verdict));
    }

    pub(super) fn on_unbuildable(&mut self, now: Moment, attempt: &Attempt, field: String) {
        let row = &mut self.trail[attempt.row];
        row.outcome = Outcome::Skipped;
        row.attempt = None;
        row.fail_reason = Some(format!("cannot_carry:{field}"));
        if self.plan.candidates[self.at].leg == Leg::Primary {
            self.sends.primary -= 1;
        } else {
            self.sends.fallback -= 1;
        }
        self.actions.push_back(Action::Settle {
            outcome: backstop_breaker::Outcome::Ignored,
            key: KeyFate::Nothing,
        });
        self.primary_error
            .get_or_insert(bare(Cause::NothingEligible));
        self.next_candidate(now);
    }

    pub(super) fn on_caller_gone(&mut self, now: Moment, state: State) {
        match state {
            State::Attempting(attempt) | State::Committed(attempt) => {
                let row = &mut self.trail[attempt.row];
                row.total = now.since(row.started);
                row.outcome = Outcome::Cancelled;
                row.class = Some(Class::Cancelled);
                self.actions.push_back(Action::Abort);
                self.actions.push_back(Action::Settle {
                    outcome: backstop_breaker::Outcome::Ignored,
                    key: KeyFate::Nothing,
                });
            }
            State::Waiting { start, .. } | State::AskedPermit(start) | State::AskedLease(start) => {
                self.refund(&start);
            }
            State::Ready | State::AskedBudget(_) | State::Over => {}
        }
        self.finish(now, Ending::Cancelled);
    }

    /// Fills in the row of an attempt that ended badly.
    pub(super) fn write_failure(
        &mut self,
        now: Moment,
        attempt: &Attempt,
        verdict: &Verdict,
        end: Outcome,
    ) {
        let row = &mut self.trail[attempt.row];
        row.total = now.since(row.started);
        row.outcome = end;
        row.class = Some(verdict.class);
        row.kind = verdict.kind;
        row.signal = Some(verdict.signal.to_string());
        row.fail_reason = Some(verdict.fail_reason().to_owned());
        row.code = verdict.code.as_ref().map(ToString::to_string);
        row.status = row.status.or(verdict.status);
        row.retry_after = verdict.retry_after;
    }
}

/// One of the journey's own clocks ran out; no provider and no wall clock has a part in that.
pub(super) fn timed_out(clock: Clock) -> Verdict {
    let transport = Transport::Timeout(clock);
    classify(&Evidence::transport(
        Family::General,
        transport,
        SystemTime::UNIX_EPOCH,
    ))
}

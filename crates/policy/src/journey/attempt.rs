//! An attempt under way: what it brings, and how it ends.

use std::time::SystemTime;

use backstop_breaker::Outcome as Health;
use backstop_classifier::{Clock, Evidence, Family, Sent, Transport, Verdict, classify};
use backstop_units::Moment;

use super::action::{Action, Cause, Ending, KeyFate};
use super::after::fate;
use super::event::Event;
use super::onward::bare;
use super::{Attempt, Journey, State};
use crate::trail::{Outcome, Phase, UpstreamPhase};

/// An attempt under way.
impl Journey {
    pub(super) fn on_attempt(&mut self, now: Moment, attempt: Attempt, event: Event) {
        let row = &mut self.trail[attempt.row];
        let elapsed = now.since(row.started);
        match event {
            Event::Connected { reused, connect } => {
                row.connection_reused = Some(reused);
                row.connect = connect;
            }
            Event::Headers { status } => {
                row.status = Some(status);
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
            Event::Whole => {
                self.write_success(now, &attempt);
                return self.ask_after_answer();
            }
            Event::Failed {
                verdict,
                stale_connection,
            } => {
                return self.on_failed(now, &attempt, &verdict, stale_connection);
            }
            Event::Unbuildable { field } => return self.on_unbuildable(now, &attempt, &field),
            Event::Time if now >= self.end() => return self.finish_deadline(now, Some(&attempt)),
            Event::Time => {
                let due = self.first_output_due(&attempt);
                if due.is_some_and(|due| now >= due) {
                    self.actions.push_back(Action::Abort);
                    let verdict = timed_out(Clock::FirstOutput);
                    return self.on_failed(now, &attempt, &verdict, false);
                }
            }
            _ => {}
        }
        self.state = State::Attempting(attempt);
    }

    pub(super) fn on_committed(&mut self, now: Moment, attempt: Attempt, event: &Event) {
        match event {
            Event::Whole => {
                self.write_success(now, &attempt);
                self.serve();
            }
            Event::Usage(usage) => {
                self.trail[attempt.row].usage = Some(*usage);
                self.state = State::Committed(attempt);
            }
            Event::Failed { verdict, .. } => {
                let rules = self.rules(verdict);
                let key = fate(&rules, self.own_hint(verdict));
                self.break_off(now, &attempt, *verdict, rules.health, key);
            }
            Event::Time if now >= self.terms.deadline => {
                self.actions.push_back(Action::Abort);
                let verdict = timed_out(Clock::Deadline);
                self.break_off(now, &attempt, verdict, Health::Ignored, KeyFate::Nothing);
            }
            _ => self.state = State::Committed(attempt),
        }
    }

    fn write_success(&mut self, now: Moment, attempt: &Attempt) {
        let row = &mut self.trail[attempt.row];
        row.total = now.since(row.started);
        row.outcome = Outcome::Success;
        row.upstream_phase = UpstreamPhase::Output;
        self.settle(Health::Success, KeyFate::Served);
    }

    /// A stream that broke after output: the caller has a part, and nothing follows.
    fn break_off(
        &mut self,
        now: Moment,
        attempt: &Attempt,
        verdict: Verdict,
        health: Health,
        key: KeyFate,
    ) {
        self.write_failure(now, attempt, &verdict, Outcome::Partial);
        self.settle(health, key);
        self.finish(Ending::Partial(verdict));
    }

    /// The request does not fit the channel's dialect after all: nothing went out.
    fn on_unbuildable(&mut self, now: Moment, attempt: &Attempt, field: &str) {
        self.take_back(attempt);
        self.trail[attempt.row].fail_reason = Some(format!("cannot_carry:{field}"));
        self.settle_nothing();
        self.keep_error(bare(Cause::NothingEligible));
        self.leave_channel(now);
    }

    /// An attempt of which nothing went out: it counts as none, and what was paid for it is given
    /// back.
    pub(super) fn take_back(&mut self, attempt: &Attempt) {
        let row = &mut self.trail[attempt.row];
        row.outcome = Outcome::Skipped;
        row.attempt = None;
        row.key = None;
        let primary = self.is_primary(self.at);
        self.sends.take_back(primary);
        self.leg.sends -= 1;
        if attempt.paid {
            let channel = self.channel();
            self.actions.push_back(Action::RefundBudget { channel });
        }
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
        if verdict.sent == Sent::Maybe {
            row.upstream_phase = row.upstream_phase.max(UpstreamPhase::Sent);
        }
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

//! Starting an attempt: candidate, permit, key, send.

use std::sync::Arc;
use std::time::Duration;

use backstop_classifier::Class;
use backstop_keypool::NoKey;
use backstop_units::{KeyId, Moment};

use super::action::{Action, Cause, Ending, KeyFate};
use super::leg::LegRun;
use super::{Attempt, Journey, Skip, Start, State, bare};
use crate::plan::{Exclusion, Leg};
use crate::route::Channel;
use crate::sentence::{Category, Sentence};
use crate::trail::{AttemptAction, AttemptRow, Outcome, Phase, UpstreamPhase};

/// Starting: choose, permit, key, send.
impl Journey {
    pub(super) fn begin(&mut self, now: Moment) {
        for excluded in &self.plan.excluded {
            if excluded.reason == Exclusion::MissingProvider {
                let sentence = Sentence::FallbackSkipped {
                    to: excluded.channel.clone(),
                };
                self.actions.push_back(Action::Log(sentence));
            }
        }
        if self.plan.candidates.is_empty() {
            self.finish(now, Ending::Exhausted(bare(Cause::NothingEligible)));
        } else {
            self.enter(now, 0, None);
        }
    }

    /// Begins a stay on a candidate, if gate 4 lets another attempt start.
    pub(super) fn enter(&mut self, now: Moment, candidate: usize, after: Option<Category>) {
        if self.gate(now, candidate).is_err() {
            return self.finish_exhausted(now);
        }
        let of = self.plan.candidates.len() - 1;
        if candidate > 0 && !self.forced {
            let to = self.channel_of(candidate).label();
            let place = candidate;
            self.say(Sentence::TryingFallback {
                place,
                of,
                to,
                category: after,
            });
            self.fallback_tried = true;
        }
        self.at = candidate;
        self.leg = LegRun::new(self.pin_for(candidate));
        let action = match &self.plan.candidates[candidate] {
            entered if entered.is_substitution() => AttemptAction::Substitution,
            _ if candidate > 0 => AttemptAction::Fallback,
            _ => AttemptAction::Direct,
        };
        self.ask_permit(Start {
            action,
            ..Start::default()
        });
    }

    pub(super) fn ask_permit(&mut self, start: Start) {
        let channel = self.channel();
        let first = self.leg.sends == 0 && start.after.is_none();
        self.actions.push_back(Action::AskPermit {
            channel,
            force: self.forced,
            first,
        });
        self.state = State::AskedPermit(start);
    }

    pub(super) fn lease(&mut self, start: Start) {
        let channel = self.channel();
        let same = start.same_key.clone();
        self.actions.push_back(Action::Lease {
            channel,
            same,
            force: self.forced,
        });
        self.state = State::AskedLease(start);
    }

    pub(super) fn send(&mut self, now: Moment, start: Start, key: Option<KeyId>) {
        let channel = self.channel();
        if let Some(category) = start.after {
            self.say_retry(category, key.as_ref());
        }
        if self.plan.candidates[self.at].leg == Leg::Primary {
            self.sends.primary += 1;
        } else {
            self.sends.fallback += 1;
        }
        self.leg.sends += 1;
        let number = self.sends.total();
        self.trail.push(AttemptRow {
            attempt: Some(number),
            key: key.clone(),
            waited: start.waited,
            ..blank_row(&channel, start.action, now)
        });
        self.leg.last_key.clone_from(&key);
        let (action, fresh) = (start.action, start.fresh);
        self.actions.push_back(Action::Send {
            attempt: number,
            channel,
            key,
            action,
            fresh,
        });
        self.state = State::Attempting(Attempt {
            row: self.trail.len() - 1,
            number,
        });
    }

    /// A channel that cannot be tried now leaves a row and is remembered in case nothing else can.
    pub(super) fn pass_over(&mut self, now: Moment, start: &Start, until: Moment, like: Class) {
        let channel = self.channel();
        if start.paid {
            self.actions.push_back(Action::RefundBudget {
                channel: Arc::clone(&channel),
            });
        }
        let reason = if like == Class::RateLimit {
            "keys_held"
        } else {
            "circuit_open"
        };
        self.trail.push(AttemptRow {
            outcome: Outcome::Skipped,
            fail_reason: Some(reason.to_owned()),
            ..blank_row(&channel, start.action, now)
        });
        if self.leg.sends > 0 {
            return self.leave_channel(now);
        }
        self.skips.push(Skip {
            candidate: self.at,
            until,
            like,
        });
        self.next_candidate(now);
    }

    pub(super) fn on_no_key(&mut self, now: Moment, start: &Start, no_key: NoKey) {
        self.actions.push_back(Action::Settle {
            outcome: backstop_breaker::Outcome::Ignored,
            key: KeyFate::Nothing,
        });
        match no_key {
            NoKey::Held { until, .. } => self.pass_over(now, start, until, Class::RateLimit),
            NoKey::Dead => {
                self.refund(start);
                self.leg.pool_dead = true;
                self.leave_channel(now);
            }
            NoKey::Unserved => {
                self.refund(start);
                if self.leg.sends == 0 {
                    self.primary_error.get_or_insert(bare(Cause::NoKeyServes));
                    self.next_candidate(now);
                } else {
                    self.leave_channel(now);
                }
            }
        }
    }

    pub(super) fn refund(&mut self, start: &Start) {
        if start.paid {
            let channel = self.channel();
            self.actions.push_back(Action::RefundBudget { channel });
        }
    }
}

fn blank_row(channel: &Channel, action: AttemptAction, now: Moment) -> AttemptRow {
    AttemptRow {
        attempt: None,
        action,
        channel: channel.id.clone(),
        provider: channel.provider.clone(),
        model: channel.model.clone(),
        key: None,
        outcome: Outcome::Failed,
        class: None,
        kind: None,
        signal: None,
        fail_reason: None,
        code: None,
        status: None,
        phase: Phase::BeforeOutput,
        upstream_phase: UpstreamPhase::NotSent,
        retry_after: None,
        connection_reused: None,
        waited: Duration::ZERO,
        started: now,
        connect: None,
        headers: None,
        first_output: None,
        total: Duration::ZERO,
        usage: None,
    }
}

//! Starting an attempt: candidate, permit, key, send.

use std::time::Duration;

use backstop_keypool::NoKey;
use backstop_units::{KeyId, Moment};

use super::action::{Action, Cause, Ending};
use super::onward::bare;
use super::{Attempt, Force, Journey, Skip, Start, State};
use crate::route::Channel;
use crate::sentence::{Category, Sentence};
use crate::trail::{AttemptAction, AttemptRow, Outcome, Phase, UpstreamPhase};

/// Starting: choose, permit, key, send.
impl Journey {
    pub(super) fn begin(&mut self, now: Moment) {
        let cause = match self.next_from(now, 0) {
            Ok(Some(first)) => return self.enter(first, None),
            Ok(None) => Cause::NothingEligible,
            Err(_) => Cause::NotSent,
        };
        for to in self.missing_before(usize::MAX) {
            self.say(Sentence::FallbackSkipped { to });
        }
        self.finish(Ending::Exhausted(bare(cause)));
    }

    /// Begins a stay on a candidate.
    pub(super) fn enter(&mut self, candidate: usize, after: Option<Category>) {
        let failed = self.present_failure();
        self.past.extend(failed);
        if candidate > 0 && self.forced.is_none() {
            self.say_trying(candidate, after);
            self.moved = true;
        }
        let first = !std::mem::replace(&mut self.entered[candidate], true);
        self.at = candidate;
        self.leg = self.leg.next(self.tie_for(candidate));
        let action = match &self.plan.candidates[candidate] {
            entered if entered.is_substitution() => AttemptAction::Substitution,
            _ if candidate > 0 => AttemptAction::Fallback,
            _ => AttemptAction::Direct,
        };
        self.ask_before(Start {
            action,
            first,
            ..Start::default()
        });
    }

    pub(super) fn ask_permit(&mut self, start: Start) {
        let group = self.plan.candidates[self.at].group;
        let quota = self.plan.quotas.get(group).cloned().flatten();
        self.actions.push_back(Action::AskPermit {
            channel: self.channel(),
            force: self.forced.is_some(),
            first: start.first,
            quota: quota.filter(|_| !self.counted.contains(&group)),
        });
        self.state = State::AskedPermit(start);
    }

    /// A full group is left whole: its other channels stand behind the same limit.
    pub(super) fn on_group_full(&mut self, now: Moment, start: &Start, until: Moment) {
        let group = self.plan.candidates[self.at].group;
        for (entered, candidate) in self.entered.iter_mut().zip(&self.plan.candidates) {
            *entered |= candidate.group == group;
        }
        self.pass_over(now, start, until, Force::Full);
    }

    /// A pinned key is leased as such: held or not, there is no other.
    pub(super) fn lease(&mut self, start: Start) {
        let group = self.plan.candidates[self.at].group;
        if !self.counted.contains(&group) {
            self.counted.push(group);
        }
        self.actions.push_back(Action::Lease {
            channel: self.channel(),
            same: start.same_key.clone().or_else(|| self.leg.pin.clone()),
            force: start.held || self.forced.is_some(),
        });
        self.state = State::AskedLease(start);
    }

    /// The one place from which anything is sent. Nothing is once the time is up.
    pub(super) fn send(&mut self, now: Moment, start: &Start, key: Option<KeyId>, renewable: bool) {
        if now >= self.end() {
            self.settle_nothing();
            self.refund(start);
            return self.finish_deadline(now, None);
        }
        let channel = self.channel();
        if let Some(category) = start.after {
            self.say_retry(category, key.as_ref());
        }
        let primary = self.is_primary(self.at);
        self.sends.add(primary);
        self.leg.sends += 1;
        let number = self.sends.total();
        self.trail.push(AttemptRow {
            attempt: Some(number),
            key: key.clone(),
            waited: start.waited,
            ..blank_row(&channel, start.action, now)
        });
        self.leg.last_key.clone_from(&key);
        self.actions.push_back(Action::Send {
            attempt: number,
            channel,
            key,
            action: start.action,
            fresh: start.fresh,
        });
        self.state = State::Attempting(Attempt {
            row: self.trail.len() - 1,
            number,
            paid: start.paid,
            renewable,
        });
    }

    /// A channel that cannot be tried now leaves a row, and is remembered in case nothing else can.
    pub(super) fn pass_over(&mut self, now: Moment, start: &Start, until: Moment, reason: Force) {
        self.refund(start);
        self.trail.push(AttemptRow {
            outcome: Outcome::Skipped,
            fail_reason: Some(reason.as_str().to_owned()),
            ..blank_row(&self.channel(), start.action, now)
        });
        if self.leg.sends == 0 {
            self.like = Some(reason.stands_for());
            self.skips.push(Skip {
                candidate: self.at,
                until,
                reason,
            });
        }
        self.leave_channel(now);
    }

    pub(super) fn on_no_key(&mut self, now: Moment, mut start: Start, no_key: &NoKey) {
        // Holding out chooses between alternatives. In the middle of a walk without one, the key
        // that is held for the shortest time is asked after all.
        let held = matches!(no_key, NoKey::Held { .. });
        let alone = || !matches!(self.next_from(now, self.at + 1), Ok(Some(_)));
        if held && !start.held && self.leg.sends > 0 && alone() {
            start.held = true;
            return self.lease(start);
        }
        self.settle_nothing();
        match no_key {
            NoKey::Held { until, .. } => self.pass_over(now, &start, *until, Force::Held),
            NoKey::Dead => {
                self.refund(&start);
                self.leg.pool_dead = true;
                self.leave_channel(now);
            }
            NoKey::Unserved => {
                self.refund(&start);
                self.keep_error(bare(Cause::NoKeyServes));
                self.leave_channel(now);
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

pub(super) fn blank_row(channel: &Channel, action: AttemptAction, now: Moment) -> AttemptRow {
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

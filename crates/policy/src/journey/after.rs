//! After a failure: the gates, in order.

use std::time::Duration;

use backstop_backoff::{NextKey, Wait, wait};
use backstop_breaker::Outcome as Health;
use backstop_classifier::Verdict;
use backstop_keypool::{NoKey, Outlook};
use backstop_units::{Moment, Roll};

use super::action::{Action, KeyFate};
use super::leg::Failure;
use super::{Attempt, Force, Journey, Start, State};
use crate::decision::{Conduct, Repeat, conduct};
use crate::gates::replay_gate;
use crate::route::HintUse;
use crate::sentence::Category;
use crate::trail::{AttemptAction, Outcome};

/// After a failure: the gates, in order.
impl Journey {
    pub(super) fn on_failed(
        &mut self,
        now: Moment,
        attempt: &Attempt,
        verdict: &Verdict,
        stale: bool,
    ) {
        self.write_failure(now, attempt, verdict, Outcome::Failed);
        self.leg.remember(Failure {
            attempt: attempt.number,
            verdict: *verdict,
        });
        if stale && !self.leg.resent && self.is_replayable(verdict) {
            return self.ask_resend(now, verdict);
        }
        if let Some(key) = self.renewable(attempt, verdict) {
            return self.ask_renewal(now, attempt, verdict, key);
        }
        self.after_failure(now, verdict);
    }

    /// A failure that counts: what breaker and key pool learn from it, then what may follow.
    pub(super) fn after_failure(&mut self, now: Moment, verdict: &Verdict) {
        let rules = self.rules(verdict);
        let hint = self.own_hint(verdict);
        if let (Some(refusal), Some(key)) = (rules.refusal, &self.leg.last_key) {
            self.leg.walk.refuse(key, refusal, hint, now);
        }
        let health = self.weigh(verdict, rules.health);
        self.settle(health, fate(&rules, hint));
        let pinned = self.leg.pin.is_some() && rules.refusal.is_some();
        self.leg.bound = !self.is_replayable(verdict) || pinned;
        match rules.repeat {
            _ if self.leg.bound => self.leave_channel(now),
            Repeat::Never => self.leave_channel(now),
            Repeat::NextKey => self.next_key(now, verdict),
            Repeat::SameKey | Repeat::Rotate | Repeat::RotateAtOnce => {
                self.ask_budget(now, rules.repeat, verdict);
            }
        }
    }

    /// Gate 3.
    pub(super) fn is_replayable(&self, verdict: &Verdict) -> bool {
        replay_gate(verdict, self.terms.replay_safe).is_ok()
    }

    /// Gate 1 on the channel.
    pub(super) fn rules(&self, verdict: &Verdict) -> Conduct {
        let rules = conduct(verdict);
        match self.leg.last_key {
            Some(_) => rules,
            None => rules.without_keys(verdict),
        }
    }

    /// What the breaker learns, in the light of what this request met elsewhere.
    fn weigh(&mut self, verdict: &Verdict, health: Health) -> Health {
        let channel = &self.plan.candidates[self.at].channel.id;
        let key = self.leg.last_key.as_ref();
        self.evidence.weigh(verdict, health, channel, key)
    }

    /// The provider's hint, where it counts for anything.
    pub(super) fn own_hint(&self, verdict: &Verdict) -> Option<Duration> {
        match self.channel().retry.hint {
            HintUse::Honour => verdict.retry_after,
            HintUse::Record => None,
        }
    }

    /// A reused connection that died before any response byte says nothing about the provider, as a
    /// rule: the request goes out once more, at once, on a fresh one. The channel's share of retries
    /// is asked all the same, since a provider that resets whatever it reads looks just like it.
    fn ask_resend(&mut self, now: Moment, verdict: &Verdict) {
        if self.gate(now, self.at).is_err() {
            self.settle_nothing();
            return self.leave_channel(now);
        }
        let channel = self.channel();
        self.actions.push_back(Action::SpendBudget { channel });
        self.state = State::AskedResend(*verdict);
    }

    /// Nothing is learnt from the connection that died.
    pub(super) fn resend(&mut self, verdict: &Verdict) {
        self.settle_nothing();
        self.leg.resent = true;
        self.leg.granted += 1;
        self.ask_permit(Start {
            action: AttemptAction::Retry,
            same_key: self.leg.last_key.clone(),
            paid: true,
            fresh: true,
            after: Some(Category::of(verdict)),
            ..Start::default()
        });
    }

    /// A key was refused for good: the next living one is tried at once, free of the retry budget.
    fn next_key(&mut self, now: Moment, verdict: &Verdict) {
        // Before the gate: a pool that is spent is spent, also with the request's last send.
        self.leg.pool_dead = !self.leg.has_living_key(&self.channel());
        if self.leg.pool_dead || self.gate(now, self.at).is_err() {
            return self.leave_channel(now);
        }
        self.leg.granted += 1;
        self.ask_permit(Start {
            action: AttemptAction::Retry,
            after: Some(Category::of(verdict)),
            ..Start::default()
        });
    }

    /// A paid retry: within the channel's own count, gate 4, then the channel's share of retries.
    /// Where every circuit is open the one send was made.
    fn ask_budget(&mut self, now: Moment, repeat: Repeat, verdict: &Verdict) {
        let channel = self.channel();
        let timed_out = verdict.status == Some(408);
        let spent = self.leg.retries >= channel.retry.max_retries
            || (timed_out && self.leg.repeated_408)
            || self.forced == Some(Force::Open);
        if spent || self.gate(now, self.at).is_err() {
            return self.leave_channel(now);
        }
        self.leg.repeated_408 |= timed_out;
        self.actions.push_back(Action::SpendBudget { channel });
        self.state = State::AskedBudget(repeat);
    }

    pub(super) fn retry_after_wait(
        &mut self,
        now: Moment,
        repeat: Repeat,
        roll: Roll,
        outlook: Result<Outlook, NoKey>,
    ) {
        let channel = self.channel();
        let start = Start {
            action: AttemptAction::Retry,
            paid: true,
            ..Start::default()
        };
        let Some(verdict) = self.leg.last.as_ref().map(|failure| failure.verdict) else {
            self.refund(&start);
            return self.leave_channel(now);
        };
        let formula = channel.retry.backoff.delay(self.leg.retries, roll);
        let next = match (repeat, outlook) {
            (Repeat::SameKey, _) => Some((formula, self.own_hint(&verdict), NextKey::Same)),
            (Repeat::RotateAtOnce, Ok(Outlook::Fresh)) => {
                Some((Duration::ZERO, None, NextKey::Fresh))
            }
            (Repeat::Rotate, Ok(Outlook::Fresh)) => Some((formula, None, NextKey::Fresh)),
            (Repeat::Rotate, Ok(Outlook::Again { ready })) => {
                Some((formula, Some(ready.since(now)), NextKey::Same))
            }
            _ => None,
        };
        let left = self
            .end()
            .since(now)
            .saturating_sub(self.terms.limits.min_attempt);
        let waiting = next.map(|(formula, hint, key)| wait(formula, hint, key, left));
        let Some(Wait::For(waited)) = waiting else {
            self.refund(&start);
            return self.leave_channel(now);
        };
        self.leg.retries += 1;
        let until = now + waited;
        self.actions.push_back(Action::Wait { until });
        let same_key = match repeat {
            Repeat::SameKey => self.leg.last_key.clone(),
            _ => None,
        };
        let start = Start {
            same_key,
            waited,
            after: Some(Category::of(&verdict)),
            ..start
        };
        self.state = State::Waiting { until, start };
    }

    /// The clock was looked at during a wait. A late look may find that nothing useful fits any
    /// more.
    pub(super) fn on_wait(&mut self, now: Moment, until: Moment, start: Start) {
        if now >= self.end() {
            self.refund(&start);
            self.finish_deadline(now, None);
        } else if now < until {
            self.state = State::Waiting { until, start };
        } else if self.gate(now, self.at).is_err() {
            self.refund(&start);
            self.leave_channel(now);
        } else {
            self.ask_permit(start);
        }
    }
}

/// What the key pool learns from a failure.
pub(super) const fn fate(rules: &Conduct, hint: Option<Duration>) -> KeyFate {
    match rules.refusal {
        Some(refusal) => KeyFate::Refused { refusal, hint },
        None => KeyFate::Nothing,
    }
}

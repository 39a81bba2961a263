//! After a failure: the gates, in order.

use std::time::Duration;

use backstop_backoff::{NextKey, Wait, wait};
use backstop_classifier::Verdict;
use backstop_keypool::{NoKey, Outlook};
use backstop_units::{Moment, Roll};

use super::action::{Action, KeyFate};
use super::leg::Failure;
use super::{Attempt, Journey, Start, State};
use crate::decision::{Conduct, Repeat, conduct};
use crate::gates::replay_gate;
use crate::plan::{Candidate, Leg};
use crate::route::HintUse;
use crate::sentence::{Category, Sentence};
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
        let safe = replay_gate(verdict, self.terms.replay_safe).is_ok();
        if stale && !self.leg.resent && safe {
            return self.resend(now, attempt, verdict);
        }
        let rules = self.rules(verdict);
        let channel = self.channel();
        let key = match (rules.refusal, &self.leg.last_key) {
            (Some(refusal), Some(key)) => {
                let hint = verdict
                    .retry_after
                    .filter(|_| channel.retry.hint == HintUse::Honour);
                self.leg.walk.refuse(key, refusal, hint, now);
                KeyFate::Refused {
                    refusal,
                    hint: verdict.retry_after,
                }
            }
            _ => KeyFate::Nothing,
        };
        self.actions.push_back(Action::Settle {
            outcome: rules.health,
            key,
        });
        self.leg.remember(Failure {
            attempt: attempt.number,
            verdict: verdict.clone(),
        });
        if !safe {
            return self.leave_for_good(now);
        }
        if rules.refusal.is_some() && self.pin_for(self.at).is_some() {
            return self.leave_for_good(now);
        }
        match rules.repeat {
            Repeat::NextKey => self.next_key(now, verdict),
            Repeat::Never => self.leave_channel(now),
            Repeat::SameKey | Repeat::Rotate | Repeat::RotateAtOnce => {
                self.ask_budget(now, rules.repeat, verdict);
            }
        }
    }

    /// Gate 1 on the channel, with what a keyless provider keeps: its refusals have no key to
    /// blame, so they are repeated as a passing trouble would be.
    pub(super) fn rules(&self, verdict: &Verdict) -> Conduct {
        let rules = conduct(verdict);
        let refused = matches!(verdict.status, Some(401 | 402 | 403 | 429));
        if self.leg.last_key.is_none() && refused {
            return Conduct {
                repeat: Repeat::SameKey,
                refusal: None,
                ..rules
            };
        }
        rules
    }

    /// A reused connection that died before any response byte says nothing about the provider: the
    /// request goes out once more, at once, on a fresh one.
    pub(super) fn resend(&mut self, now: Moment, attempt: &Attempt, verdict: &Verdict) {
        self.actions.push_back(Action::Settle {
            outcome: backstop_breaker::Outcome::Ignored,
            key: KeyFate::Nothing,
        });
        self.leg.remember(Failure {
            attempt: attempt.number,
            verdict: verdict.clone(),
        });
        if self.gate(now, self.at).is_err() {
            return self.finish_exhausted(now);
        }
        self.leg.resent = true;
        self.leg.granted += 1;
        self.ask_permit(Start {
            action: AttemptAction::Retry,
            same_key: self.leg.last_key.clone(),
            fresh: true,
            after: Some(Category::of(verdict)),
            ..Start::default()
        });
    }

    /// A key was refused for good: the next living one is tried at once, free of the retry budget.
    pub(super) fn next_key(&mut self, now: Moment, verdict: &Verdict) {
        if self.gate(now, self.at).is_err() {
            return self.finish_exhausted(now);
        }
        let channel = self.channel();
        if !self.leg.has_living_key(&channel) {
            self.leg.pool_dead = true;
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
    pub(super) fn ask_budget(&mut self, now: Moment, repeat: Repeat, verdict: &Verdict) {
        let channel = self.channel();
        let spent = self.leg.retries >= channel.retry.max_retries;
        let again_408 = verdict.status == Some(408) && self.leg.repeated_408;
        if spent || again_408 {
            return self.leave_channel(now);
        }
        if self.gate(now, self.at).is_err() {
            return self.finish_exhausted(now);
        }
        self.leg.repeated_408 |= verdict.status == Some(408);
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
        let Some(failure) = self.leg.last.clone() else {
            return self.leave_channel(now);
        };
        let own_hint = match channel.retry.hint {
            HintUse::Honour => failure.verdict.retry_after,
            HintUse::Record => None,
        };
        let formula = channel.retry.backoff.delay(self.leg.retries, roll);
        let next = match (repeat, outlook) {
            (Repeat::SameKey, _) => Some((formula, own_hint, NextKey::Same)),
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
            self.actions.push_back(Action::RefundBudget { channel });
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
            action: AttemptAction::Retry,
            same_key,
            waited,
            paid: true,
            fresh: false,
            after: Some(Category::of(&failure.verdict)),
        };
        self.state = State::Waiting { until, start };
    }

    /// This channel has nothing more to give: on to the next candidate its failure admits.
    pub(super) fn leave_channel(&mut self, now: Moment) {
        self.close_leg();
        self.next_candidate(now);
    }

    /// The failure binds the request to this channel: its error is the journey's.
    pub(super) fn leave_for_good(&mut self, now: Moment) {
        self.close_leg();
        self.finish_exhausted(now);
    }

    pub(super) fn close_leg(&mut self) {
        let channel = self.channel();
        if let (Some(last), true) = (&self.leg.last, self.leg.repeats() > 0) {
            let category = Category::of(&last.verdict);
            let (to, attempts) = (channel.label(), self.leg.sends);
            self.say(Sentence::RetriesExhausted {
                to,
                attempts,
                category,
            });
        }
        if let Some(error) = self.leg.error(&channel)
            && self
                .primary_error
                .as_ref()
                .is_none_or(|known| known.verdict.is_none())
        {
            self.primary_error = Some(error);
        }
    }

    /// Gate 1 between channels, then the next stay; or the end.
    pub(super) fn next_candidate(&mut self, now: Moment) {
        let failure = self
            .leg
            .last
            .as_ref()
            .map(|failure| failure.verdict.clone());
        let window = self.channel().context_window();
        let next = if self.forced {
            None
        } else {
            (self.at + 1..self.plan.candidates.len()).find(|place| {
                let candidate = &self.plan.candidates[*place];
                match &failure {
                    Some(failure) => candidate.admits(failure, window),
                    None => self.admits_unsent(candidate),
                }
            })
        };
        let Some(next) = next else {
            return self.finish_or_force(now);
        };
        let category = failure.as_ref().map(Category::of);
        if let (Some(category), false) = (category, self.fallback_tried) {
            let fallbacks = self.plan.candidates.len() - 1;
            let to = self.channel().label();
            self.say(Sentence::PrimaryFailed {
                to,
                category,
                fallbacks,
            });
        }
        self.enter(now, next, category);
    }

    /// Whether a candidate may follow channels that were all passed over: an open circuit stands
    /// for the transient failures that opened it, held keys for the rate limit that holds them.
    pub(super) fn admits_unsent(&self, candidate: &Candidate) -> bool {
        match (&candidate.leg, self.skips.last()) {
            (Leg::Substitution { on, .. }, Some(skip)) => on.is_empty() || on.contains(&skip.like),
            _ => true,
        }
    }

    /// Nothing was sent because everything is open or held: the least bad one is tried, once, so
    /// that breaking never turns a slow outage into a total one.
    pub(super) fn finish_or_force(&mut self, now: Moment) {
        let least_bad = self.skips.iter().min_by_key(|skip| skip.until).copied();
        match least_bad {
            Some(skip) if self.sends.total() == 0 && !self.forced => {
                self.forced = true;
                self.enter(now, skip.candidate, None);
            }
            _ => self.finish_exhausted(now),
        }
    }
}

//! From one channel to the next: which candidate may follow, and what the routing log says of it.

use backstop_classifier::{Class, Verdict};
use backstop_units::{Moment, Tokens};

use super::action::{Cause, FinalError};
use super::{Force, Journey, Skip};
use crate::decision::{Reach, conduct};
use crate::gates::Shut;
use crate::plan::{Candidate, Exclusion, Leg};
use crate::sentence::{Category, Sentence};

/// The failure that ended a stay, and what a later candidate is measured by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Past {
    /// The failure that stands for the stay.
    pub(super) verdict: Verdict,
    /// The context window that its channel declares.
    pub(super) window: Option<Tokens>,
}

/// From one channel to the next.
impl Journey {
    /// This channel has nothing more to give: on to the next candidate its failure admits.
    pub(super) fn leave_channel(&mut self, now: Moment) {
        if self.ask_after_failure() {
            return;
        }
        self.close_leg();
        if self.leg.bound {
            self.finish_exhausted(now, true);
        } else {
            self.move_on(now);
        }
    }

    /// Ends the stay: its error is kept if it is the first one of a journey.
    pub(super) fn close_leg(&mut self) {
        if std::mem::replace(&mut self.leg.closed, true) {
            return;
        }
        let channel = self.channel();
        if let Some(last) = self.leg.last.as_ref().filter(|_| self.leg.sends > 1) {
            let category = Category::of(&last.verdict);
            let (to, attempts) = (channel.label(), self.leg.sends);
            self.say(Sentence::RetriesExhausted {
                to,
                attempts,
                category,
            });
        }
        if let Some(error) = self.leg.error(&channel) {
            self.keep_error(error);
        }
    }

    /// The primary's error is the journey's; one that neither a provider nor a hook had a part in
    /// gives way to it.
    pub(super) fn keep_error(&mut self, error: FinalError) {
        let known = self.error.as_ref();
        if known.is_none_or(|known| !error.is_bare() && (self.at == 0 || known.is_bare())) {
            self.error = Some(error);
        }
    }

    /// The next stay; or the end.
    pub(super) fn move_on(&mut self, now: Moment) {
        let next = self.next_from(now, self.at + 1);
        let group = match next {
            Ok(Some(place)) => self.plan.candidates[place].group,
            Ok(None) => usize::MAX,
            Err(_) => return self.finish_exhausted(now, true),
        };
        let failure = self.failures().last();
        let stopped = self.leg.stopped.as_ref().map(Category::of_stop);
        let category = stopped.or_else(|| failure.map(|failure| Category::of(&failure.verdict)));
        let chain_goes_on =
            failure.is_none_or(|failure| conduct(&failure.verdict).substitution != Reach::Closed);
        let missing = if chain_goes_on {
            self.missing_before(group)
        } else {
            Vec::new()
        };
        let first = !self.moved && (matches!(next, Ok(Some(_))) || !missing.is_empty());
        if let (true, Some(category)) = (first, category) {
            let (to, fallbacks) = (self.channel().label(), self.fallbacks());
            self.say(Sentence::PrimaryFailed {
                to,
                category,
                fallbacks,
            });
        }
        self.moved |= first;
        for to in missing {
            self.say(Sentence::FallbackSkipped { to });
        }
        match next {
            Ok(Some(place)) => self.enter(place, category),
            _ => self.finish_or_force(now),
        }
    }

    /// The next candidate that every failure so far admits (gate 1, between channels) and gate 4
    /// lets start. Where gate 4 alone stands in the way, its reason.
    pub(super) fn next_from(&self, now: Moment, from: usize) -> Result<Option<usize>, Shut> {
        let mut none = Ok(None);
        for place in from..self.plan.candidates.len() {
            if self.entered[place] || !self.admitted(&self.plan.candidates[place]) {
                continue;
            }
            match self.gate(now, place) {
                Ok(()) => return Ok(Some(place)),
                Err(shut) => none = Err(shut),
            }
        }
        none
    }

    /// The failure before decides; one that is a fact about the request binds all that follow.
    fn admitted(&self, candidate: &Candidate) -> bool {
        let Some(last) = self.failures().last() else {
            return self.admitted_unsent(candidate);
        };
        candidate.admits(&last.verdict, last.window)
            && self
                .past
                .iter()
                .filter(|past| conduct(&past.verdict).binds_the_request())
                .all(|past| candidate.admits(&past.verdict, past.window))
    }

    /// Whether a candidate may come first, or follow channels that were all passed over or stopped
    /// by a hook, which says itself what its error counts as. An open circuit stands for the transient failures that opened it, held keys for the rate limit that
    /// holds them.
    fn admitted_unsent(&self, candidate: &Candidate) -> bool {
        match &candidate.leg {
            Leg::Substitution { on, .. } if !on.is_empty() => {
                self.like.is_some_and(|like| on.contains(&like))
            }
            _ => true,
        }
    }

    /// The failures of all stays so far, in order.
    fn failures(&self) -> impl Iterator<Item = Past> {
        self.past.iter().copied().chain(self.present_failure())
    }

    pub(super) fn present_failure(&self) -> Option<Past> {
        let verdict = self.leg.telling()?.verdict;
        let window = self.channel().context_window();
        Some(Past { verdict, window })
    }

    /// Nothing was sent because everything is open or held: the least bad one is tried, once, so
    /// that breaking never turns a slow outage into a total one.
    fn finish_or_force(&mut self, now: Moment) {
        let least_bad = self
            .skips
            .iter()
            .filter(|skip| skip.reason != Force::Full)
            .min_by_key(|skip| skip.until)
            .copied();
        if least_bad.is_none() && !self.skips.is_empty() {
            self.keep_error(bare(Cause::GroupsFull));
        }
        match least_bad {
            Some(Skip {
                candidate, reason, ..
            }) if self.sends.total() == 0 && self.forced.is_none() => {
                self.forced = Some(reason);
                self.enter(candidate, None);
            }
            _ => self.finish_exhausted(now, false),
        }
    }

    /// The caller's fallbacks without a configured provider that stand before a group and were not
    /// spoken of yet.
    pub(super) fn missing_before(&mut self, group: usize) -> Vec<String> {
        let missing: Vec<String> = self
            .missing()
            .skip(self.missing_said)
            .take_while(|(place, _)| *place < group)
            .map(|(_, label)| label.to_owned())
            .collect();
        self.missing_said += missing.len();
        missing
    }

    fn missing(&self) -> impl Iterator<Item = (usize, &str)> {
        self.plan
            .excluded
            .iter()
            .filter(|excluded| excluded.reason == Exclusion::MissingProvider)
            .map(|excluded| (excluded.group, excluded.channel.as_str()))
    }

    /// How many stand behind the first candidate, as the routing log counts them.
    pub(super) fn fallbacks(&self) -> usize {
        self.plan.candidates.len().saturating_sub(1) + self.missing().count()
    }

    /// The place of a candidate among them, from 1.
    fn place(&self, candidate: usize) -> usize {
        let group = self.plan.candidates[candidate].group;
        candidate + self.missing().filter(|(place, _)| *place < group).count()
    }

    pub(super) fn say_trying(&mut self, candidate: usize, category: Option<Category>) {
        let (place, of) = (self.place(candidate), self.fallbacks());
        let to = self.channel_of(candidate).label();
        self.say(match self.plan.candidates[candidate].leg {
            Leg::Substitution { .. } => Sentence::TryingSubstitution {
                place,
                of,
                to,
                category,
            },
            _ => Sentence::TryingFallback {
                place,
                of,
                to,
                category,
            },
        });
    }

    pub(super) fn say_served(&mut self) {
        let to = self.channel().label();
        if self.leg.sends > 1 {
            self.say(Sentence::RetriesSucceeded {
                to: to.clone(),
                retries: self.leg.sends - 1,
            });
        }
        if self.at > 0 {
            let (place, of) = (self.place(self.at), self.fallbacks());
            self.say(match self.plan.candidates[self.at].leg {
                Leg::Substitution { .. } => Sentence::ServedBySubstitution { to, place, of },
                _ => Sentence::ServedByFallback { to, place, of },
            });
        }
    }

    /// `halted`: the chain stops although others are left, or here of all places.
    pub(super) fn say_failed(&mut self, error: &FinalError, halted: bool) {
        let stopped = error.stopped.as_ref().map(Category::of_stop);
        let Some(told) = stopped.or_else(|| error.verdict.as_ref().map(Category::of)) else {
            return;
        };
        if !self.moved {
            return;
        }
        match self.leg.category().filter(|_| halted && self.at > 0) {
            Some(category) => {
                let to = self.channel().label();
                self.say(Sentence::FallbackHalted { to, category });
            }
            None => {
                let (of, category) = (self.fallbacks(), told);
                self.say(Sentence::FallbacksExhausted { of, category });
            }
        }
    }
}

impl Force {
    /// The class of failure that an unsent request is treated as having met.
    pub(super) const fn stands_for(self) -> Class {
        match self {
            Self::Open => Class::Transient,
            Self::Held | Self::Full => Class::RateLimit,
        }
    }

    /// The word in the trail.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "circuit_open",
            Self::Held => "keys_held",
            Self::Full => "group_full",
        }
    }
}

/// An error that no provider had a part in.
pub(super) const fn bare(cause: Cause) -> FinalError {
    FinalError {
        cause,
        verdict: None,
        attempt: None,
        stopped: None,
        retry_after: None,
        do_not_retry: !matches!(cause, Cause::NotSent | Cause::GroupsFull),
    }
}

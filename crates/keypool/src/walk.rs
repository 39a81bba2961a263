//! One request's way through a pool.

use std::time::Duration;

use backstop_units::{KeyId, ModelName, Moment, Roll};

use crate::holds::{Standing, Why};
use crate::{Holds, Key, Permanent, Pool, Refusal};

/// What one request has learned about the keys of a channel. One per request and channel.
#[derive(Debug, Clone, Default)]
pub struct Walk {
    start: Start,
    dead: Vec<Death>,
    limited: Vec<Limited>,
    granted: u32,
}

#[derive(Debug, Clone, Default)]
enum Start {
    #[default]
    Free,
    /// This key and no other.
    Pinned(KeyId),
    /// This key first, if it can be had.
    Preferring(KeyId),
}

/// A key that this request will not ask again, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Death {
    /// The key.
    pub key: KeyId,
    /// What it was refused for.
    pub why: Permanent,
}

/// A key that was rate limited on this walk.
#[derive(Debug, Clone)]
struct Limited {
    key: KeyId,
    /// When the provider's hint is over; the start of time when it gave none.
    ready: Moment,
    /// Whether it was asked in the present round.
    used: bool,
}

/// What is asked of a pool.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// The provider's keys.
    pub pool: &'a Pool,
    /// The upstream model.
    pub model: &'a ModelName,
    /// The channel's own subset of the keys; all of them when absent.
    pub subset: Option<&'a [KeyId]>,
    /// When the attempt would be made.
    pub now: Moment,
}

/// The key for the next attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The key; none for a provider that asks for none.
    pub key: Option<KeyId>,
    /// Whether this request has asked the key before.
    pub outlook: Outlook,
}

/// Whether the next key is one that this request has asked before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outlook {
    /// It is not: a wait goes by the formula.
    Fresh,
    /// It is, since every other living key was asked too: a wait goes by the formula and at least
    /// to the end of the provider's hint.
    Again {
        /// When the hint is over; in the past when there was none.
        ready: Moment,
    },
}

/// Why there is no key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoKey {
    /// No key of the channel serves the model.
    Unserved,
    /// Every key that does has died on this walk: see [`Walk::deaths`].
    Dead,
    /// Every living one is held out for now. Skip the channel while another is eligible; otherwise
    /// lease `least` all the same.
    Held {
        /// When the first of them is free.
        until: Moment,
        /// The key that is free then.
        least: KeyId,
    },
}

/// Where a living key stands.
enum Place {
    Fresh,
    Again { ready: Moment, used: bool },
    Held { until: Moment },
}

/// What one look over the pool found.
#[derive(Default)]
struct Survey<'a> {
    serving: bool,
    living: bool,
    fresh: f64,
    preferred: Option<&'a Key>,
    /// The soonest of those asked before: when, whether used this round, and what they weigh.
    again: Option<(Moment, bool, f64)>,
    held: Option<(Moment, &'a Key)>,
}

impl Walk {
    /// A walk that has seen nothing. A request pinned to a key uses that one, drained or not, and
    /// never another.
    #[must_use]
    pub fn new(pin: Option<KeyId>) -> Self {
        Self {
            start: pin.map_or(Start::Free, Start::Pinned),
            ..Self::default()
        }
    }

    /// A walk that starts at `key` when that is free, and goes on as any other: a session that may
    /// move.
    #[must_use]
    pub fn preferring(key: KeyId) -> Self {
        Self {
            start: Start::Preferring(key),
            ..Self::default()
        }
    }

    /// The walk over the next channel of the same request, starting at `preferred` when that is
    /// free. A key whose account was refused stays dead; what was about the model is forgotten, and
    /// so is what this walk was pinned to or preferred.
    #[must_use]
    pub fn next_leg(&self, preferred: Option<KeyId>) -> Self {
        let dead = self
            .dead
            .iter()
            .filter(|death| death.why.is_about_the_account());
        Self {
            start: preferred.map_or(Start::Free, Start::Preferring),
            dead: dead.cloned().collect(),
            ..Self::default()
        }
    }

    /// Chooses the key for the next attempt, by weight among those that serve the model, live, were
    /// not asked before and are not held. When all were asked, a new round begins; in it, a key whose
    /// hint is over comes before one that still wants to be left alone. The lowest roll takes the
    /// first in the operator's order.
    ///
    /// # Errors
    /// When no key serves the model, all that do are dead, or all living ones are held.
    pub fn choose(&mut self, ask: &Ask<'_>, holds: &Holds, roll: Roll) -> Result<Choice, NoKey> {
        if let Some(choice) = self.without_keys(ask) {
            return choice;
        }
        let survey = self.survey(ask, holds);
        let found = |key: &Key, outlook| Choice {
            key: Some(key.id().clone()),
            outlook,
        };
        if let Some(key) = survey.preferred {
            return Ok(found(key, Outlook::Fresh));
        }
        let fresh = |key: &Key| match self.place(ask, holds, key) {
            Some(Place::Fresh) => Some(()),
            _ => None,
        };
        if survey.fresh > 0.0
            && let Some((key, ())) = self.draw(ask, roll, survey.fresh, fresh)
        {
            return Ok(found(key, Outlook::Fresh));
        }
        let Some((ready, used, weight)) = survey.again else {
            return Err(survey.no_key());
        };
        let soonest = |key: &Key| match self.place(ask, holds, key) {
            Some(Place::Again {
                ready: own,
                used: same,
            }) => (own.max(ask.now) == ready.max(ask.now) && same == used).then_some(own),
            _ => None,
        };
        let (key, ready) = self
            .draw(ask, roll, weight, soonest)
            .expect("the survey found at least one");
        let choice = found(key, Outlook::Again { ready });
        self.begin_round_if_over();
        Ok(choice)
    }

    /// What [`Self::choose`] would answer at that moment, short of the key: whether to wait for a
    /// hint before asking. Chooses nothing.
    ///
    /// # Errors
    /// As [`Self::choose`].
    pub fn outlook(&self, ask: &Ask<'_>, holds: &Holds) -> Result<Outlook, NoKey> {
        if let Some(choice) = self.without_keys(ask) {
            return choice.map(|choice| choice.outlook);
        }
        let survey = self.survey(ask, holds);
        if survey.preferred.is_some() || survey.fresh > 0.0 {
            return Ok(Outlook::Fresh);
        }
        match survey.again {
            Some((ready, ..)) => Ok(Outlook::Again { ready }),
            None => Err(survey.no_key()),
        }
    }

    /// The provider refused `key`, asking to be left alone for `hint`.
    pub fn refuse(&mut self, key: &KeyId, refusal: Refusal, hint: Option<Duration>, now: Moment) {
        match refusal {
            Refusal::Permanent(why) => {
                self.granted += 1;
                self.limited.retain(|limited| limited.key != *key);
                if !self.is_dead(key) {
                    self.dead.push(Death {
                        key: key.clone(),
                        why,
                    });
                }
            }
            Refusal::RateLimited => {
                self.limited.retain(|limited| limited.key != *key);
                self.limited.push(Limited {
                    key: key.clone(),
                    ready: hint.map_or(Moment::START, |hint| now + hint),
                    used: true,
                });
            }
        }
    }

    /// How many failed attempts were granted, not charged against `max_retries`.
    #[must_use]
    pub const fn granted(&self) -> u32 {
        self.granted
    }

    /// The keys that died, in that order.
    #[must_use]
    pub fn deaths(&self) -> &[Death] {
        &self.dead
    }

    /// Whether this request will not ask `key` again.
    #[must_use]
    pub fn is_dead(&self, key: &KeyId) -> bool {
        self.dead.iter().any(|death| death.key == *key)
    }

    /// Whether the request is bound to one key and must not rotate.
    #[must_use]
    pub const fn is_pinned(&self) -> bool {
        matches!(self.start, Start::Pinned(_))
    }

    /// The death whose error is the caller's when the pool is spent, whichever key died last: the
    /// latest for the model or the region, else the latest for content. None when every death was
    /// for account reasons.
    #[must_use]
    pub fn telling_death(&self) -> Option<&Death> {
        let latest =
            |wanted: fn(Permanent) -> bool| self.dead.iter().rev().find(|death| wanted(death.why));
        latest(|why| !why.is_about_the_account() && why != Permanent::ContentPolicy)
            .or_else(|| latest(|why| why == Permanent::ContentPolicy))
    }

    /// The answer where there is nothing to choose between.
    fn without_keys(&self, ask: &Ask<'_>) -> Option<Result<Choice, NoKey>> {
        if !ask.pool.is_keyless() {
            return None;
        }
        Some(if self.is_pinned() {
            Err(NoKey::Unserved)
        } else {
            Ok(Choice {
                key: None,
                outlook: Outlook::Fresh,
            })
        })
    }

    /// Looks over the pool once.
    fn survey<'a>(&self, ask: &Ask<'a>, holds: &Holds) -> Survey<'a> {
        let mut survey = Survey::default();
        for key in ask.pool.keys() {
            if !self.may_use(ask, key) {
                continue;
            }
            survey.serving = true;
            let Some(place) = self.place(ask, holds, key) else {
                continue;
            };
            survey.living = true;
            match place {
                Place::Fresh => {
                    survey.fresh += self.weight(key);
                    if matches!(&self.start, Start::Preferring(wanted) if wanted == key.id()) {
                        survey.preferred = Some(key);
                    }
                }
                Place::Again { ready, used } => {
                    survey.note_again(ready, used, self.weight(key), ask.now);
                }
                Place::Held { until } => {
                    if survey.held.is_none_or(|(soonest, _)| until < soonest) {
                        survey.held = Some((until, key));
                    }
                }
            }
        }
        survey
    }

    /// Where a key that may be used stands: nowhere when it is dead.
    fn place(&self, ask: &Ask<'_>, holds: &Holds, key: &Key) -> Option<Place> {
        if self.is_dead(key.id()) {
            return None;
        }
        let standing = if ask.pool.remembers() {
            holds.standing(key.id(), ask.model, ask.now)
        } else {
            Standing::Free
        };
        let limited = self.limited.iter().find(|limited| limited.key == *key.id());
        Some(match (limited, standing) {
            (Some(limited), Standing::Free | Standing::Due) => limited.place(),
            // The rest that our own question earned it is known here, hint and all.
            (Some(limited), Standing::Held(held)) if held.why == Why::RateLimited => {
                limited.place()
            }
            (_, Standing::Held(held)) => Place::Held { until: held.until },
            (None, Standing::Free | Standing::Due) => Place::Fresh,
        })
    }

    fn may_use(&self, ask: &Ask<'_>, key: &Key) -> bool {
        let wanted = match &self.start {
            Start::Pinned(pin) => pin == key.id(),
            Start::Free | Start::Preferring(_) => key.weight() > 0.0,
        };
        wanted && key.serves(ask.model) && ask.subset.is_none_or(|subset| subset.contains(key.id()))
    }

    /// A pinned key is the only one: drained or not, it is drawn.
    fn weight(&self, key: &Key) -> f64 {
        if self.is_pinned() { 1.0 } else { key.weight() }
    }

    /// Draws by weight among the keys that may be used and `eligible` has something to say about.
    fn draw<'a, T>(
        &self,
        ask: &Ask<'a>,
        roll: Roll,
        total: f64,
        eligible: impl Fn(&Key) -> Option<T>,
    ) -> Option<(&'a Key, T)> {
        let mut left = total * roll.fraction();
        let mut last = None;
        for key in ask.pool.keys().iter().filter(|key| self.may_use(ask, key)) {
            if let Some(said) = eligible(key) {
                last = Some((key, said));
                left -= self.weight(key);
                if left < 0.0 {
                    break;
                }
            }
        }
        // Rounding may leave a crumb after the last one: then the last one it is.
        last
    }

    /// Every living key was asked: all may be asked once more.
    fn begin_round_if_over(&mut self) {
        if self.limited.iter().all(|limited| limited.used) {
            for limited in &mut self.limited {
                limited.used = false;
            }
        }
    }
}

impl Limited {
    const fn place(&self) -> Place {
        Place::Again {
            ready: self.ready,
            used: self.used,
        }
    }
}

impl Survey<'_> {
    /// Keeps those that can be asked soonest, and among them those not yet asked this round.
    fn note_again(&mut self, ready: Moment, used: bool, weight: f64, now: Moment) {
        let rank = (ready.max(now), used);
        match &mut self.again {
            Some((best, best_used, sum)) if rank == ((*best).max(now), *best_used) => {
                *sum += weight;
            }
            Some((best, best_used, _)) if rank > ((*best).max(now), *best_used) => {}
            place => *place = Some((ready, used, weight)),
        }
    }

    fn no_key(&self) -> NoKey {
        match self.held {
            Some((until, least)) => NoKey::Held {
                until,
                least: least.id().clone(),
            },
            None if self.serving && !self.living => NoKey::Dead,
            None => NoKey::Unserved,
        }
    }
}

#[cfg(test)]
mod tests;

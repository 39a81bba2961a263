//! What all requests have learned together: keys held out, and who may go and see.
//!
//! A rate limit *cools* a key for one model, for as long as the provider asked and at least ten
//! seconds; then it is over. A refusal for good *suspends* a key: for every model when the account
//! is to blame, for the one model otherwise. A suspension does not end with time. When its time has
//! come, one lease becomes the probe, and the key stays held for everyone else until that lease
//! says how it went: served ends the suspension, refused doubles it, anything else frees the probe.
//!
//! Leases and suspensions are numbered in one sequence. A success counts against a suspension only
//! when it was leased after it, so an old answer does not bring a revoked key back.

use std::collections::HashMap;
use std::time::Duration;

use backstop_units::{KeyId, ModelName, Moment};

use crate::{Error, Permanent, Refusal};

/// A rate-limited key rests at least this long: limits are counted by the minute, and a shorter rest
/// only meets the next refusal.
const SHORTEST_REST: Duration = Duration::from_secs(10);
/// No hint holds a key for longer: the range hints are clamped to, once more at this door.
const LONGEST_REST: Duration = Duration::from_secs(5 * 60);
/// Models remembered for one key. Callers type model names, so the list has a bound.
const MODELS: usize = 64;

/// How long a key that was refused for good stays out before one request may look again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HoldParams {
    first: Duration,
    longest: Duration,
}

impl Default for HoldParams {
    /// 30 s, doubling up to 10 min: a key that was repaired is back within ten minutes, and a revoked
    /// one costs a failed attempt no more often than that.
    fn default() -> Self {
        Self {
            first: Duration::from_secs(30),
            longest: Duration::from_secs(10 * 60),
        }
    }
}

impl HoldParams {
    /// Holds of `first`, twice as long after each probe that was refused, up to `longest`. Both from
    /// 1 s to 24 h.
    ///
    /// # Errors
    /// When either is out of range, or `first` is above `longest`.
    pub fn new(first: Duration, longest: Duration) -> Result<Self, Error> {
        let day = Duration::from_secs(24 * 60 * 60);
        if first < Duration::from_secs(1) || first > longest || longest > day {
            return Err(Error::HoldTime { first, longest });
        }
        Ok(Self { first, longest })
    }
}

/// The keys that are held out, across all requests.
#[derive(Debug, Default)]
pub struct Holds {
    params: HoldParams,
    cards: HashMap<KeyId, Card>,
    /// The last number given to a lease or a suspension.
    count: u64,
    /// When the next entry is over and can be forgotten.
    next_end: Option<Moment>,
}

/// What is held against one key.
#[derive(Debug, Default)]
struct Card {
    whole: Option<Suspension>,
    models: Vec<(ModelName, Entry)>,
}

/// What is held against one key for one model.
#[derive(Debug, Default)]
struct Entry {
    cools_until: Option<Moment>,
    suspended: Option<Suspension>,
}

#[derive(Debug)]
struct Suspension {
    number: u64,
    why: Permanent,
    until: Moment,
    lasted: Duration,
    probe: Option<u64>,
}

/// Leave to send one attempt with one key. Must be handed back to one of [`Holds::served`],
/// [`Holds::refused`] and [`Holds::released`].
#[derive(Debug)]
#[must_use = "a lease that is not handed back keeps the probe of a held key for ever"]
pub struct Lease {
    key: KeyId,
    model: ModelName,
    number: u64,
    probe: bool,
}

/// That a key is held out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// Until then, as far as can be said now; never in the past.
    pub until: Moment,
    /// Why.
    pub why: Why,
}

/// Why a key is held out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The provider limits it for a while.
    RateLimited,
    /// It was refused for good, and no probe has succeeded since.
    Refused(Permanent),
}

/// One hold, for eyes and gauges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The key.
    pub key: KeyId,
    /// The model it is held for; all of them when absent.
    pub model: Option<ModelName>,
    /// Until when and why.
    pub held: Held,
    /// Whether a request is out to see whether it came back.
    pub probing: bool,
}

/// What the holds say about a key for a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    Free,
    /// Suspended, its time has come, and nobody is looking yet.
    Due,
    Held(Held),
}

impl Holds {
    /// Nothing held yet.
    #[must_use]
    pub fn new(params: HoldParams) -> Self {
        Self {
            params,
            ..Self::default()
        }
    }

    /// Goes on under other settings, as after a reload. Running holds run to their end.
    pub const fn set_params(&mut self, params: HoldParams) {
        self.params = params;
    }

    /// Whether nothing at all is held, so that nobody needs to ask.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.cards.is_empty()
    }

    /// Whether `key` is held out for `model`, until when and why.
    #[must_use]
    pub fn held(&self, key: &KeyId, model: &ModelName, now: Moment) -> Option<Held> {
        match self.standing(key, model, now) {
            Standing::Held(held) => Some(held),
            Standing::Free | Standing::Due => None,
        }
    }

    /// Leases `key` for one attempt, whatever is held against it. Becomes the probe when the key is
    /// due for one.
    pub fn lease(&mut self, key: &KeyId, model: &ModelName, now: Moment) -> Lease {
        let mut lease = Lease::unheld(key.clone(), model.clone());
        if self.cards.is_empty() {
            return lease;
        }
        self.count += 1;
        lease.number = self.count;
        for suspension in self.places(key, model).flatten() {
            if suspension.is_due(now) {
                suspension.probe = Some(lease.number);
                lease.probe = true;
            }
        }
        lease
    }

    /// The attempt was served: suspensions that are older than the lease end.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a lease is handed back once; to take it is the point"
    )]
    pub fn served(&mut self, lease: Lease) {
        for place in self.places(&lease.key, &lease.model) {
            place.take_if(|held| held.number < lease.number);
        }
        self.forget_if_empty(&lease.key);
    }

    /// The attempt was refused: holds the key out from `now` on, unless it already is. `hint` is what
    /// the provider asked for.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a lease is handed back once; to take it is the point"
    )]
    pub fn refused(&mut self, lease: Lease, refusal: Refusal, hint: Option<Duration>, now: Moment) {
        match refusal {
            Refusal::RateLimited => {
                let rest = hint.unwrap_or_default().clamp(SHORTEST_REST, LONGEST_REST);
                let entry = self.entry(&lease, now);
                entry.cools_until = entry.cools_until.max(Some(now + rest));
                self.expect_end(now + rest);
            }
            Refusal::Permanent(Permanent::ContentPolicy) => {}
            Refusal::Permanent(why) => self.suspend(&lease, why, now),
        }
        self.free_probe(&lease);
    }

    /// Nothing was learned: the caller left, the channel failed, the attempt was never made.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a lease is handed back once; to take it is the point"
    )]
    pub fn released(&mut self, lease: Lease) {
        self.free_probe(&lease);
    }

    /// Forgets what is over. Cheap until something is.
    pub fn tidy(&mut self, now: Moment) {
        if self.next_end.is_none_or(|end| now < end) {
            return;
        }
        let keep = self.params.longest;
        let mut next = None;
        self.cards.retain(|_, card| {
            card.drop_ended(now, keep);
            next = earliest(next, card.next_end(keep));
            !card.is_empty()
        });
        self.next_end = next;
    }

    /// Forgets keys that are not to be kept: removed by a reload.
    pub fn retain(&mut self, keep: impl Fn(&KeyId) -> bool) {
        self.cards.retain(|key, _| keep(key));
    }

    /// Forgets what is held against `key`: an operator gave it another value.
    pub fn forget(&mut self, key: &KeyId) {
        self.cards.remove(key);
    }

    /// Everything that is held at `now`, ordered by key and model.
    #[must_use]
    pub fn rows(&self, now: Moment) -> Vec<Row> {
        let mut rows = Vec::new();
        for (key, card) in &self.cards {
            let mut push = |model: Option<&ModelName>, held: Option<Held>, probing: bool| {
                rows.extend(held.map(|held| Row {
                    key: key.clone(),
                    model: model.cloned(),
                    held,
                    probing,
                }));
            };
            let shown = |held: &Suspension| held.shown(now);
            let probing = |held: &Suspension| held.probe.is_some();
            push(
                None,
                card.whole.as_ref().map(shown),
                card.whole.as_ref().is_some_and(probing),
            );
            for (model, entry) in &card.models {
                let suspended = entry.suspended.as_ref();
                let held = suspended.map(shown).or_else(|| entry.cooling(now));
                push(Some(model), held, suspended.is_some_and(probing));
            }
        }
        rows.sort_by(|a, b| (&a.key, &a.model).cmp(&(&b.key, &b.model)));
        rows
    }

    pub(crate) fn standing(&self, key: &KeyId, model: &ModelName, now: Moment) -> Standing {
        if self.cards.is_empty() {
            return Standing::Free;
        }
        let Some(card) = self.cards.get(key) else {
            return Standing::Free;
        };
        let entry = card.entry(model);
        let suspended = entry.and_then(|entry| entry.suspended.as_ref());
        let both = [card.whole.as_ref(), suspended];
        let refused = both
            .iter()
            .flatten()
            .filter_map(|suspension| suspension.held(now))
            .max_by_key(|held| held.until);
        let cooling = entry.and_then(|entry| entry.cooling(now));
        let until = refused
            .into_iter()
            .chain(cooling)
            .map(|held| held.until)
            .max();
        match (until, refused.or(cooling)) {
            (Some(until), Some(held)) => Standing::Held(Held { until, ..held }),
            _ if both.iter().flatten().any(|held| held.is_due(now)) => Standing::Due,
            _ => Standing::Free,
        }
    }

    /// Places or lengthens the suspension that follows from `why`.
    fn suspend(&mut self, lease: &Lease, why: Permanent, now: Moment) {
        self.count += 1;
        let (number, params) = (self.count, self.params);
        let place = if why.is_about_the_account() {
            &mut self.cards.entry(lease.key.clone()).or_default().whole
        } else {
            &mut self.entry(lease, now).suspended
        };
        let lasted = match place {
            // Somebody else said so already, or is out to see.
            Some(held) if held.probe != Some(lease.number) => return,
            Some(held) => (held.lasted * 2).clamp(params.first, params.longest),
            None => params.first,
        };
        *place = Some(Suspension {
            number,
            why,
            until: now + lasted,
            lasted,
            probe: None,
        });
        self.expect_end(now + lasted + params.longest);
    }

    fn free_probe(&mut self, lease: &Lease) {
        if !lease.probe {
            return;
        }
        for suspension in self.places(&lease.key, &lease.model).flatten() {
            suspension.probe.take_if(|probe| *probe == lease.number);
        }
    }

    /// Both places for a suspension that concern `key` for `model`: the whole key's first.
    fn places(
        &mut self,
        key: &KeyId,
        model: &ModelName,
    ) -> impl Iterator<Item = &mut Option<Suspension>> {
        self.cards.get_mut(key).into_iter().flat_map(move |card| {
            let Card { whole, models } = card;
            let entry = models.iter_mut().find(|(name, _)| name == model);
            std::iter::once(whole).chain(entry.map(|(_, entry)| &mut entry.suspended))
        })
    }

    /// The entry of the lease's key and model, made when there is none.
    fn entry(&mut self, lease: &Lease, now: Moment) -> &mut Entry {
        let keep = self.params.longest;
        let card = self.cards.entry(lease.key.clone()).or_default();
        let found = card
            .models
            .iter()
            .position(|(name, _)| *name == lease.model);
        let place = found.unwrap_or_else(|| {
            if card.models.len() >= MODELS {
                card.make_room(now, keep);
            }
            card.models.push((lease.model.clone(), Entry::default()));
            card.models.len() - 1
        });
        &mut card.models[place].1
    }

    fn expect_end(&mut self, end: Moment) {
        self.next_end = earliest(self.next_end, Some(end));
    }

    fn forget_if_empty(&mut self, key: &KeyId) {
        if let Some(card) = self.cards.get_mut(key) {
            card.models.retain(|(_, entry)| !entry.is_empty());
            if card.is_empty() {
                self.cards.remove(key);
            }
        }
    }
}

impl Lease {
    /// A lease taken while nothing at all was held: [`Holds::is_empty`]. Whatever is held when it
    /// comes back is younger than it.
    pub const fn unheld(key: KeyId, model: ModelName) -> Self {
        Self {
            key,
            model,
            number: 0,
            probe: false,
        }
    }

    /// The leased key.
    #[must_use]
    pub const fn key(&self) -> &KeyId {
        &self.key
    }

    /// Whether nothing was held when it was taken. Such a lease has no probe to free and no
    /// suspension to end: only a refusal says anything to the holds.
    #[must_use]
    pub const fn is_unheld(&self) -> bool {
        self.number == 0
    }

    /// Whether this attempt goes to see whether the key came back.
    #[must_use]
    pub const fn is_probe(&self) -> bool {
        self.probe
    }
}

impl Card {
    fn entry(&self, model: &ModelName) -> Option<&Entry> {
        let found = self.models.iter().find(|(name, _)| name == model);
        found.map(|(_, entry)| entry)
    }

    fn is_empty(&self) -> bool {
        self.whole.is_none() && self.models.is_empty()
    }

    fn drop_ended(&mut self, now: Moment, keep: Duration) {
        self.whole.take_if(|held| held.is_forgotten(now, keep));
        self.models.retain_mut(|(_, entry)| {
            entry.cools_until.take_if(|until| *until <= now);
            entry.suspended.take_if(|held| held.is_forgotten(now, keep));
            !entry.is_empty()
        });
    }

    /// Lets go of the entry that is over soonest.
    fn make_room(&mut self, now: Moment, keep: Duration) {
        self.drop_ended(now, keep);
        if self.models.len() >= MODELS {
            let soonest = (0..self.models.len()).min_by_key(|&at| self.models[at].1.next_end(keep));
            self.models.swap_remove(soonest.expect("the list is full"));
        }
    }

    fn next_end(&self, keep: Duration) -> Option<Moment> {
        let whole = self.whole.as_ref().map(|held| held.until + keep);
        let models = self.models.iter().map(|(_, entry)| entry.next_end(keep));
        models.fold(whole, earliest)
    }
}

impl Entry {
    const fn is_empty(&self) -> bool {
        self.cools_until.is_none() && self.suspended.is_none()
    }

    fn cooling(&self, now: Moment) -> Option<Held> {
        let until = self.cools_until.filter(|until| now < *until)?;
        Some(Held {
            until,
            why: Why::RateLimited,
        })
    }

    fn next_end(&self, keep: Duration) -> Option<Moment> {
        let suspended = self.suspended.as_ref().map(|held| held.until + keep);
        earliest(self.cools_until, suspended)
    }
}

impl Suspension {
    fn is_due(&self, now: Moment) -> bool {
        self.until <= now && self.probe.is_none()
    }

    /// Due for as long as the longest hold, and nobody asked: whoever asks next starts anew.
    fn is_forgotten(&self, now: Moment, keep: Duration) -> bool {
        self.until + keep <= now && self.probe.is_none()
    }

    fn held(&self, now: Moment) -> Option<Held> {
        (!self.is_due(now)).then(|| self.shown(now))
    }

    /// While its probe is out, it may well last as long again.
    fn shown(&self, now: Moment) -> Held {
        let until = if self.probe.is_some() {
            now + self.lasted
        } else {
            self.until.max(now)
        };
        Held {
            until,
            why: Why::Refused(self.why),
        }
    }
}

fn earliest(one: Option<Moment>, other: Option<Moment>) -> Option<Moment> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests;

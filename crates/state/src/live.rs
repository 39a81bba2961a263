//! The one place where live state is found by id.

use std::collections::HashSet;

use backstop_admission::{At, Denied, Limits as CallerLimits, Standing};
use backstop_keypool::{Ask, HoldParams, NoKey, Outlook, Row, Walk};
use backstop_policy::{Binding, Quota};
use backstop_units::{CallerName, ChannelId, KeyId, Moment, Roll, RouteName};

use crate::callers::{AdmitGuard, Books};
use crate::channel::{ChannelCell, ChannelParams, ChannelView};
use crate::channels::{Channels, Minted};
use crate::kept::{Keeper, Kept};
use crate::keys::{Keys, LeaseGuard};
use crate::quotas::Quotas;
use crate::sessions::Sessions;
use crate::sync::Arc;

/// How much is remembered, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Channels that only callers have named. Default 1024, about 1 KiB each. With 0 a typed name
    /// works and is forgotten with its request.
    pub typed_channels: usize,
    /// How long keys that were refused for good are held out.
    pub holds: HoldParams,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            typed_channels: 1024,
            holds: HoldParams::default(),
        }
    }
}

/// The live state of the gateway: shared by all requests, kept across reloads.
#[derive(Debug)]
pub struct State {
    channels: Channels,
    keys: Arc<Keys>,
    sessions: Sessions,
    books: Books,
    quotas: Quotas,
    kept: Kept,
}

impl State {
    /// Nothing remembered yet.
    #[must_use]
    pub fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self {
            channels: Channels::new(limits.typed_channels),
            keys: Arc::new(Keys::new(limits.holds)),
            sessions: Sessions::default(),
            books: Books::default(),
            quotas: Quotas::default(),
            kept: Kept::default(),
        })
    }

    /// The channel called `id`, made on first use. `params` count from the first request that brings
    /// a higher version of them on, so requests that still run under an older configuration do not
    /// turn them back.
    #[must_use]
    pub fn channel(
        &self,
        id: &ChannelId,
        params: &ChannelParams,
        minted: Minted,
    ) -> Arc<ChannelCell> {
        self.channels.find_or_mint(id, params, minted)
    }

    /// The channel called `id`, if anyone has used it. Mints nothing.
    #[must_use]
    pub fn peek(&self, id: &ChannelId) -> Option<Arc<ChannelCell>> {
        self.channels.peek(id)
    }

    /// Chooses and leases the key for the next attempt.
    ///
    /// # Errors
    /// When no key of the channel can be had now; see [`NoKey`]. A key that is held can be had with
    /// [`Self::lease_key`].
    pub fn choose_key(
        &self,
        walk: &mut Walk,
        ask: &Ask<'_>,
        roll: Roll,
    ) -> Result<LeaseGuard, NoKey> {
        self.keys.choose(walk, ask, roll)
    }

    /// What [`Self::choose_key`] would answer, short of the key: how long to wait before asking.
    ///
    /// # Errors
    /// As [`Self::choose_key`].
    pub fn key_outlook(&self, walk: &Walk, ask: &Ask<'_>) -> Result<Outlook, NoKey> {
        self.keys.outlook(walk, ask)
    }

    /// Leases this very key, whatever is held against it: the same key again after a transient
    /// failure, or the least held one when nothing else is eligible.
    pub fn lease_key(&self, ask: &Ask<'_>, key: &KeyId) -> LeaseGuard {
        self.keys.lease(ask, key)
    }

    /// Forgets what a reload removed: channels that the configuration named and names no more, and
    /// holds on keys that are gone. What stays keeps its history, and so do typed channels.
    pub fn retain(&self, channels: &HashSet<ChannelId>, keys: &HashSet<KeyId>) {
        self.channels.retain(channels);
        self.keys
            .with(|holds| holds.retain(|key| keys.contains(key)));
    }

    /// Forgets what is held against keys to which a reload gave another value.
    pub fn forget_keys<'a>(&self, changed: impl IntoIterator<Item = &'a KeyId>) {
        self.keys.with(|holds| {
            for key in changed {
                holds.forget(key);
            }
        });
    }

    /// Holds keys out under other settings from now on.
    pub fn set_holds(&self, params: HoldParams) {
        self.keys.with(|holds| holds.set_params(params));
    }

    /// Who served the session called `name` before, the latest first; nothing for one that is new
    /// or was forgotten.
    #[must_use]
    pub fn session(&self, name: &str) -> Arc<[Binding]> {
        self.sessions.find(name)
    }

    /// The session called `name` was served by `binding`, and is bound to it from now on.
    pub fn bind_session(&self, name: &str, binding: Binding) {
        self.sessions.bind(name, binding);
    }

    /// Remembers at most so many sessions from now on (10,000 until told); the least recently used
    /// make room. With 0 none is remembered.
    pub fn set_session_capacity(&self, capacity: usize) {
        self.sessions.set_capacity(capacity);
    }

    /// Takes a caller's request in, within its limits, until the guard is settled or dropped.
    ///
    /// # Errors
    /// When a limit has no room for it.
    pub fn admit(
        &self,
        caller: &CallerName,
        limits: &CallerLimits,
        at: At,
        ask: backstop_admission::Ask,
    ) -> Result<AdmitGuard, Denied> {
        self.books.admit(caller, limits, at, ask)
    }

    /// Counts a request in at its route's group.
    ///
    /// # Errors
    /// When the group is full: until when.
    pub fn admit_to_group(&self, quota: &Quota, now: Moment) -> Result<(), Moment> {
        self.quotas.admit(quota, now)
    }

    /// Forgets what came to groups of routes that a reload removed.
    pub fn retain_routes(&self, routes: &HashSet<RouteName>) {
        self.quotas.retain(routes);
    }

    /// What a caller has used.
    #[must_use]
    pub fn standing(&self, caller: &CallerName, at: At) -> Standing {
        self.books.standing(caller, at)
    }

    /// Forgets what callers used that a reload removed.
    pub fn retain_callers(&self, callers: &HashSet<CallerName>) {
        self.books.retain(callers);
    }

    /// How many sessions are remembered.
    #[must_use]
    pub fn session_count(&self) -> usize {
        self.sessions.len()
    }

    /// Who keeps the answer called `id`; `None` for one that was forgotten, or never went through
    /// here. It is for [its caller](Keeper::caller) alone.
    #[must_use]
    pub fn keeper(&self, id: &str) -> Option<Keeper> {
        self.kept.find(id)
    }

    /// The answer called `id` is kept by `keeper`.
    pub fn keep(&self, id: &str, keeper: Keeper) {
        self.kept.put(id, keeper);
    }

    /// The answer called `id` is kept by nobody any more.
    pub fn unkeep(&self, id: &str) {
        self.kept.forget(id);
    }

    /// Remembers at most so many kept answers from now on (100,000 until told); the least recently
    /// used make room.
    pub fn set_kept_capacity(&self, capacity: usize) {
        self.kept.set_capacity(capacity);
    }

    /// Every channel as it is at `now`, ordered by id: for readiness, metrics and operators.
    #[must_use]
    pub fn channels(&self, now: Moment) -> Vec<ChannelView> {
        self.channels.views(now)
    }

    /// Every hold as it is at `now`, ordered by key and model.
    #[must_use]
    pub fn held_keys(&self, now: Moment) -> Vec<Row> {
        self.keys.with(|holds| {
            holds.tidy(now);
            holds.rows(now)
        })
    }
}

#[cfg(test)]
mod tests;

//! The holds of all requests, and the lease that always comes back.

use std::time::Duration;

use backstop_keypool::{Ask, HoldParams, Holds, Lease, NoKey, Outlook, Refusal, Walk};
use backstop_units::{KeyId, Moment, Roll};

use crate::sync::{Arc, AtomicBool, Mutex, Ordering, lock};

/// The holds behind one lock, which nobody takes while nothing is held: the usual case.
#[derive(Debug)]
pub(crate) struct Keys {
    holds: Mutex<Holds>,
    /// Whether `holds` may hold anything. Written under the lock only. A request that reads it a
    /// moment late meets a refusal it could have avoided, as one that came a moment earlier would.
    any: AtomicBool,
    /// Stands in for `holds` while it is empty.
    none: Holds,
}

/// Leave to use one key for one attempt. Dropped without a word, nothing is learned and what it took
/// is freed: the caller left, or the channel failed for reasons of its own.
#[derive(Debug)]
#[must_use = "dropping a lease gives the key back at once"]
pub struct LeaseGuard {
    keys: Arc<Keys>,
    key: Option<KeyId>,
    /// None for a pool that forgets, or has no keys.
    lease: Option<Lease>,
}

impl Keys {
    pub(crate) fn new(params: HoldParams) -> Self {
        Self {
            holds: Mutex::new(Holds::new(params)),
            any: AtomicBool::new(false),
            none: Holds::default(),
        }
    }

    /// Does something with the holds, under the lock.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut Holds) -> T) -> T {
        let mut holds = lock(&self.holds);
        let done = work(&mut holds);
        self.any.store(!holds.is_empty(), Ordering::Release);
        done
    }

    pub(crate) fn choose(
        self: &Arc<Self>,
        walk: &mut Walk,
        ask: &Ask<'_>,
        roll: Roll,
    ) -> Result<LeaseGuard, NoKey> {
        if self.is_quiet(ask) {
            let key = walk.choose(ask, &self.none, roll)?.key;
            return Ok(self.guard_unheld(ask, key));
        }
        self.with(|holds| {
            holds.tidy(ask.now);
            let key = walk.choose(ask, holds, roll)?.key;
            let lease = key.as_ref().map(|key| holds.lease(key, ask.model, ask.now));
            Ok(self.guard(key, lease))
        })
    }

    pub(crate) fn outlook(&self, walk: &Walk, ask: &Ask<'_>) -> Result<Outlook, NoKey> {
        if self.is_quiet(ask) {
            return walk.outlook(ask, &self.none);
        }
        walk.outlook(ask, &lock(&self.holds))
    }

    pub(crate) fn lease(self: &Arc<Self>, ask: &Ask<'_>, key: &KeyId) -> LeaseGuard {
        if self.is_quiet(ask) {
            return self.guard_unheld(ask, Some(key.clone()));
        }
        let lease = self.with(|holds| holds.lease(key, ask.model, ask.now));
        self.guard(Some(key.clone()), Some(lease))
    }

    /// Whether the holds have nothing to say to this question.
    pub(crate) fn is_quiet(&self, ask: &Ask<'_>) -> bool {
        !ask.pool.remembers() || !self.any.load(Ordering::Acquire)
    }

    fn guard_unheld(self: &Arc<Self>, ask: &Ask<'_>, key: Option<KeyId>) -> LeaseGuard {
        let lease = key
            .clone()
            .filter(|_| ask.pool.remembers())
            .map(|key| Lease::unheld(key, ask.model.clone()));
        self.guard(key, lease)
    }

    fn guard(self: &Arc<Self>, key: Option<KeyId>, lease: Option<Lease>) -> LeaseGuard {
        LeaseGuard {
            keys: Arc::clone(self),
            key,
            lease,
        }
    }
}

impl LeaseGuard {
    /// The key; none for a provider that asks for none.
    #[must_use]
    pub const fn key(&self) -> Option<&KeyId> {
        self.key.as_ref()
    }

    /// Whether this attempt goes to see whether a held key came back.
    #[must_use]
    pub fn is_probe(&self) -> bool {
        self.lease.as_ref().is_some_and(Lease::is_probe)
    }

    /// The provider took the key: what was held against it before this lease ends.
    pub fn served(mut self) {
        if let Some(lease) = self.take_noted() {
            self.keys.with(|holds| holds.served(lease));
        }
    }

    /// The provider refused the key, asking to be left alone for `hint`: later requests pass it by
    /// for a while. The walk is told apart, by [`Walk::refuse`].
    pub fn refused(mut self, refusal: Refusal, hint: Option<Duration>, now: Moment) {
        if let Some(lease) = self.lease.take() {
            self.keys
                .with(|holds| holds.refused(lease, refusal, hint, now));
        }
    }

    /// The lease, if the holds want to hear of its end when it was no refusal.
    fn take_noted(&mut self) -> Option<Lease> {
        self.lease.take().filter(|lease| !lease.is_unheld())
    }
}

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        if let Some(lease) = self.take_noted() {
            self.keys.with(|holds| holds.released(lease));
        }
    }
}

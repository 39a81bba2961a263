//! Sessions: requests that a caller ties together, so that they meet the same channel and key and
//! find the provider's caches warm.
//!
//! Affinity takes the place of chance and of load, never of the operator's order: among channels of
//! equal rank the one that served last comes first, and so does its key. A group before it, a lower
//! priority, a weight of 0 and a contract that does not cover the request all outrank a session.

use std::sync::Arc;

use backstop_units::{ChannelId, KeyId};

use crate::route::Channel;

/// Who served a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    /// The channel.
    pub channel: ChannelId,
    /// Its key; none at a provider that asks for none.
    pub key: Option<KeyId>,
}

/// What becomes of a request of a session whose key is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnRefusal {
    /// It gets the error at once, as one that is pinned to the key: a provider's state behind the
    /// session (a cache, an uploaded file, a conversation) is worth more than this answer. The
    /// default.
    #[default]
    Stay,
    /// It walks on as any other, and the session is bound to the key that serves.
    Move,
}

/// What a request's session brings to its journey.
#[derive(Debug, Clone, Default)]
pub struct Session {
    /// What becomes of it when the key is refused.
    pub on_refusal: OnRefusal,
    /// Who served it before, the latest first; empty at its first request.
    pub bound: Arc<[Binding]>,
}

impl Session {
    /// The key of `channel` that the session is bound to: the one that served on this channel, else
    /// the latest that it shares with another. A key that the operator has drained or taken away
    /// binds nobody.
    #[must_use]
    pub fn key_for(&self, channel: &Channel) -> Option<&KeyId> {
        let here = |binding: &&Binding| binding.channel == channel.id;
        let own = self.bound.iter().filter(here);
        let keys = own.chain(&*self.bound).filter_map(|one| one.key.as_ref());
        let mut usable = keys.filter(|key| channel.has_key(key) && !is_drained(channel, key));
        usable.next()
    }
}

fn is_drained(channel: &Channel, key: &KeyId) -> bool {
    let own = channel.pool.keys().iter().find(|own| own.id() == key);
    own.is_none_or(|own| own.weight() <= 0.0)
}

//! What a reload changes, by id.

use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

use backstop_providers::{Credential, Provider, Setting};
use backstop_units::{ChannelId, KeyId, ProviderId, RouteName};

use crate::Snapshot;

/// What lies between two configurations, by id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diff {
    /// The providers. A provider whose keys alone changed counts as changed.
    pub providers: Delta<ProviderId>,
    /// The keys: changed when the value behind a name is another one.
    pub keys: Delta<KeyId>,
    /// The channels that routes list.
    pub channels: Delta<ChannelId>,
    /// The routes.
    pub routes: Delta<RouteName>,
}

/// The ids of one kind, each in the order of its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delta<T> {
    /// Only in the new configuration.
    pub added: Vec<T>,
    /// Only in the old one: what is known about it may be forgotten.
    pub removed: Vec<T>,
    /// In both, with other settings: what is known about it goes on.
    pub changed: Vec<T>,
    /// In both, the same.
    pub kept: Vec<T>,
}

impl<T> Delta<T> {
    /// Whether nothing was added, removed or changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }
}

/// What lies between two configurations.
#[must_use]
pub fn diff(old: &Snapshot, new: &Snapshot) -> Diff {
    Diff {
        providers: delta(&old.providers, &new.providers, same_provider),
        keys: delta(&keys(old), &keys(new), |a, b| a.is(b)),
        channels: delta(&old.channels, &new.channels, same_settings),
        routes: delta(&old.routes, &new.routes, same_settings),
    }
}

fn keys(snapshot: &Snapshot) -> HashMap<KeyId, &Credential> {
    snapshot
        .providers
        .values()
        .flat_map(|provider| provider.keys())
        .map(|(id, credential)| (id.clone(), credential))
        .collect()
}

/// Whether two values print the same. All settings print whole, and no secret prints at all; a
/// reload is rare enough to compare them so, and no field can be forgotten.
fn same_settings<T: Debug>(a: &Arc<T>, b: &Arc<T>) -> bool {
    format!("{a:?}") == format!("{b:?}")
}

fn same_provider(a: &Arc<Provider>, b: &Arc<Provider>) -> bool {
    a.target() == b.target()
        && a.row().kind == b.row().kind
        && a.dialects().eq(b.dialects())
        && a.family() == b.family()
        && a.extra_headers() == b.extra_headers()
        && Setting::ALL
            .iter()
            .all(|&setting| a.setting(setting) == b.setting(setting))
        && a.aliases() == b.aliases()
        && a.keys().count() == b.keys().count()
        && a.keys()
            .all(|(id, key)| b.credential(id).is_some_and(|other| other.is(key)))
}

fn delta<K: Clone + Eq + Hash + Ord, V>(
    old: &HashMap<K, V>,
    new: &HashMap<K, V>,
    same: impl Fn(&V, &V) -> bool,
) -> Delta<K> {
    let mut delta = Delta {
        added: Vec::new(),
        removed: old
            .keys()
            .filter(|id| !new.contains_key(*id))
            .cloned()
            .collect(),
        changed: Vec::new(),
        kept: Vec::new(),
    };
    for (id, value) in new {
        let list = match old.get(id) {
            None => &mut delta.added,
            Some(before) if same(before, value) => &mut delta.kept,
            Some(_) => &mut delta.changed,
        };
        list.push(id.clone());
    }
    for list in [
        &mut delta.added,
        &mut delta.removed,
        &mut delta.changed,
        &mut delta.kept,
    ] {
        list.sort();
    }
    delta
}

//! Sessions by name, in a bounded number of places: who served each, the latest first.

use std::collections::HashMap;

use backstop_policy::Binding;

use crate::sync::{Arc, Mutex, lock};

/// How many are remembered until the configuration says otherwise.
const CAPACITY: usize = 10_000;

/// Who served a session, of the latest at most so many channels. A session wanders over a few, when
/// it wanders at all.
const MOST_BOUND: usize = 4;

#[derive(Debug)]
pub(crate) struct Sessions {
    map: Mutex<Map>,
}

#[derive(Debug)]
struct Map {
    capacity: usize,
    /// Counts uses: the order in which sessions were last used.
    clock: u64,
    slots: HashMap<Box<str>, Slot>,
}

#[derive(Debug)]
struct Slot {
    used: u64,
    bound: Arc<[Binding]>,
}

impl Default for Sessions {
    fn default() -> Self {
        Self {
            map: Mutex::new(Map {
                capacity: CAPACITY,
                clock: 0,
                slots: HashMap::new(),
            }),
        }
    }
}

impl Sessions {
    pub(crate) fn find(&self, name: &str) -> Arc<[Binding]> {
        let mut map = lock(&self.map);
        let used = map.tick();
        match map.slots.get_mut(name) {
            Some(slot) => {
                slot.used = used;
                Arc::clone(&slot.bound)
            }
            None => Arc::default(),
        }
    }

    pub(crate) fn bind(&self, name: &str, binding: Binding) {
        let mut map = lock(&self.map);
        let used = map.tick();
        if let Some(slot) = map.slots.get_mut(name) {
            slot.used = used;
            if slot.bound.first() != Some(&binding) {
                let others = slot
                    .bound
                    .iter()
                    .filter(|one| one.channel != binding.channel);
                let others = others.take(MOST_BOUND - 1).cloned();
                slot.bound = std::iter::once(binding.clone()).chain(others).collect();
            }
            return;
        }
        if map.capacity == 0 {
            return;
        }
        if map.slots.len() >= map.capacity {
            let leave = (map.capacity / 8).max(1);
            map.forget(leave);
        }
        let bound = Arc::from([binding]);
        map.slots.insert(name.into(), Slot { used, bound });
    }

    pub(crate) fn set_capacity(&self, capacity: usize) {
        let mut map = lock(&self.map);
        map.capacity = capacity;
        let surplus = map.slots.len().saturating_sub(capacity);
        map.forget(surplus);
    }

    pub(crate) fn len(&self) -> usize {
        lock(&self.map).slots.len()
    }
}

impl Map {
    const fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    /// Forgets the `leave` sessions that were not used for the longest time. An eighth at a time,
    /// the walk over all of them is paid for by many new ones.
    fn forget(&mut self, leave: usize) {
        if leave == 0 {
            return;
        }
        if leave >= self.slots.len() {
            return self.slots.clear();
        }
        let mut uses: Vec<u64> = self.slots.values().map(|slot| slot.used).collect();
        let (_, last, _) = uses.select_nth_unstable(leave - 1);
        let last = *last;
        self.slots.retain(|_, slot| slot.used > last);
    }
}

#[cfg(test)]
mod tests {
    use backstop_units::{ChannelId, KeyId, ModelName, ProviderId};

    use super::*;

    fn by(model: &str, key: &str) -> Binding {
        let provider = ProviderId::new("p");
        Binding {
            channel: ChannelId::new(&provider, &ModelName::new(model), &[]),
            key: Some(KeyId::new(&provider, key)),
        }
    }

    #[test]
    fn a_session_is_bound_to_the_latest_that_served_it() {
        let sessions = Sessions::default();
        assert!(sessions.find("s").is_empty());
        for (binding, want) in [
            (by("m", "a"), vec![by("m", "a")]),
            (by("m", "a"), vec![by("m", "a")]),
            (by("n", "b"), vec![by("n", "b"), by("m", "a")]),
            // It moved: what the channel knew before is gone.
            (by("m", "c"), vec![by("m", "c"), by("n", "b")]),
        ] {
            sessions.bind("s", binding);
            assert_eq!(*sessions.find("s"), *want);
        }
        for n in 0..10 {
            sessions.bind("s", by(&format!("m{n}"), "a"));
            assert!(sessions.find("s").len() <= MOST_BOUND);
        }
        assert!(sessions.find("t").is_empty());
    }

    #[test]
    fn sessions_are_bounded_and_the_least_recently_used_make_room() {
        let sessions = Sessions::default();
        sessions.set_capacity(16);
        for n in 0..1_000 {
            sessions.bind(&format!("s{n}"), by("m", "a"));
            assert!(sessions.len() <= 16);
            sessions.bind("bound", by("m", "b"));
            assert!(!sessions.find("asked").is_empty() || n == 0);
            sessions.bind("asked", by("m", "c"));
        }
        assert_eq!(*sessions.find("bound"), [by("m", "b")]);
        assert!(!sessions.find("s999").is_empty());
        assert!(sessions.find("s0").is_empty());
        sessions.set_capacity(1);
        assert_eq!(sessions.len(), 1);
        assert!(!sessions.find("s999").is_empty(), "used last");
        sessions.set_capacity(0);
        sessions.bind("s", by("m", "a"));
        assert_eq!(sessions.len(), 0);
    }
}

//! Values by name in a bounded number of places; the least recently used make room.

use std::collections::HashMap;

#[derive(Debug)]
pub(crate) struct Recent<V> {
    capacity: usize,
    /// Counts uses: the order in which names were last used.
    clock: u64,
    slots: HashMap<Box<str>, Slot<V>>,
}

#[derive(Debug)]
struct Slot<V> {
    used: u64,
    value: V,
}

impl<V> Recent<V> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            clock: 0,
            slots: HashMap::new(),
        }
    }

    /// What is known under `name`, which counts as a use.
    pub(crate) fn get(&mut self, name: &str) -> Option<&mut V> {
        self.clock += 1;
        let slot = self.slots.get_mut(name)?;
        slot.used = self.clock;
        Some(&mut slot.value)
    }

    /// Knows `value` under `name` from now on.
    pub(crate) fn put(&mut self, name: &str, value: V) {
        if let Some(known) = self.get(name) {
            *known = value;
            return;
        }
        if self.capacity == 0 {
            return;
        }
        if self.slots.len() >= self.capacity {
            self.forget((self.capacity / 8).max(1));
        }
        let used = self.clock;
        self.slots.insert(name.into(), Slot { used, value });
    }

    /// Forgets what is known under `name`.
    pub(crate) fn remove(&mut self, name: &str) {
        self.slots.remove(name);
    }

    pub(crate) fn set_capacity(&mut self, capacity: usize) {
        self.capacity = capacity;
        self.forget(self.slots.len().saturating_sub(capacity));
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Forgets the `leave` names that were not used for the longest time. An eighth at a time, the
    /// walk over all of them is paid for by many new ones.
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

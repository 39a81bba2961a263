//! Channels by id: those of the configuration for as long as it names them, and a bounded number
//! that only callers have named.

use std::collections::{HashMap, HashSet};

use backstop_units::{ChannelId, Moment};

use crate::channel::{ChannelCell, ChannelParams, ChannelView};
use crate::sync::{Arc, AtomicU64, Ordering, PoisonError, RwLock};

/// Who named a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Minted {
    /// The configuration. Remembered until a reload no longer names it.
    ByConfig,
    /// A caller, by typing `provider/model`. Remembered while there is room.
    ByCaller,
}

#[derive(Debug)]
pub(crate) struct Channels {
    capacity: usize,
    /// Counts look-ups of typed channels: the order in which they were last used.
    clock: AtomicU64,
    map: RwLock<Map>,
}

#[derive(Debug, Default)]
struct Map {
    slots: HashMap<ChannelId, Slot>,
    typed: usize,
}

#[derive(Debug)]
struct Slot {
    cell: Arc<ChannelCell>,
    minted: Minted,
}

impl Channels {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            clock: AtomicU64::new(0),
            map: RwLock::new(Map::default()),
        }
    }

    pub(crate) fn find_or_mint(
        &self,
        id: &ChannelId,
        params: &ChannelParams,
        minted: Minted,
    ) -> Arc<ChannelCell> {
        let found = {
            let map = self.map.read().unwrap_or_else(PoisonError::into_inner);
            map.slots.get(id).and_then(|slot| {
                let settled = slot.minted == Minted::ByConfig || minted == Minted::ByCaller;
                self.touch(slot);
                settled.then(|| Arc::clone(&slot.cell))
            })
        };
        if let Some(cell) = found {
            cell.update(params);
            return cell;
        }
        self.mint(id, params, minted)
    }

    pub(crate) fn peek(&self, id: &ChannelId) -> Option<Arc<ChannelCell>> {
        let map = self.map.read().unwrap_or_else(PoisonError::into_inner);
        map.slots.get(id).map(|slot| Arc::clone(&slot.cell))
    }

    pub(crate) fn retain(&self, configured: &HashSet<ChannelId>) {
        let mut map = self.map.write().unwrap_or_else(PoisonError::into_inner);
        map.slots
            .retain(|id, slot| slot.minted == Minted::ByCaller || configured.contains(id));
    }

    pub(crate) fn views(&self, now: Moment) -> Vec<ChannelView> {
        let cells: Vec<(Arc<ChannelCell>, Minted)> = {
            let map = self.map.read().unwrap_or_else(PoisonError::into_inner);
            let slots = map.slots.values();
            slots
                .map(|slot| (Arc::clone(&slot.cell), slot.minted))
                .collect()
        };
        let mut views: Vec<ChannelView> = cells
            .iter()
            .map(|(cell, minted)| cell.view(*minted, now))
            .collect();
        views.sort_by(|a, b| a.id.cmp(&b.id));
        views
    }

    /// Makes the channel, or makes a typed one the configuration's.
    #[cold]
    fn mint(&self, id: &ChannelId, params: &ChannelParams, minted: Minted) -> Arc<ChannelCell> {
        let mut map = self.map.write().unwrap_or_else(PoisonError::into_inner);
        let map = &mut *map;
        if let Some(slot) = map.slots.get_mut(id) {
            if slot.minted == Minted::ByCaller && minted == Minted::ByConfig {
                slot.minted = Minted::ByConfig;
                map.typed -= 1;
            }
            slot.cell.update(params);
            return Arc::clone(&slot.cell);
        }
        let cell = ChannelCell::new(id.clone(), params);
        if minted == Minted::ByCaller {
            if map.typed >= self.capacity {
                map.make_room(self.capacity);
            }
            if map.typed >= self.capacity {
                // Every place is taken by a request in flight: this one goes unremembered.
                return cell;
            }
            map.typed += 1;
        }
        let slot = Slot {
            cell: Arc::clone(&cell),
            minted,
        };
        self.touch(&slot);
        map.slots.insert(id.clone(), slot);
        cell
    }

    fn touch(&self, slot: &Slot) {
        if slot.minted == Minted::ByCaller {
            let turn = self.clock.fetch_add(1, Ordering::Relaxed);
            slot.cell.used.store(turn, Ordering::Relaxed);
        }
    }
}

impl Map {
    /// Forgets the eighth of the typed channels that was not used for the longest time, so that the
    /// walk over all of them is paid for by many names. One that a request holds stays.
    fn make_room(&mut self, capacity: usize) {
        let mut idle: Vec<(u64, ChannelId)> = self
            .slots
            .iter()
            .filter(|(_, slot)| slot.minted == Minted::ByCaller)
            .filter(|(_, slot)| Arc::strong_count(&slot.cell) == 1)
            .map(|(id, slot)| (slot.cell.used.load(Ordering::Relaxed), id.clone()))
            .collect();
        let leave = (capacity / 8).max(1).min(idle.len());
        if leave == 0 {
            return;
        }
        idle.select_nth_unstable(leave - 1);
        for (_, id) in &idle[..leave] {
            self.slots.remove(id);
        }
        self.typed -= leave;
    }
}

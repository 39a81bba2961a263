//! The latest journeys, in memory.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::record::JourneyRecord;

/// The latest finished journeys, up to a bound; the oldest is forgotten first.
#[derive(Debug)]
pub(crate) struct Recent {
    capacity: usize,
    records: Mutex<VecDeque<JourneyRecord>>,
    written: AtomicU64,
}

impl Recent {
    /// A ledger of at most `capacity` journeys; 0 keeps none.
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            records: Mutex::new(VecDeque::with_capacity(capacity.min(1024))),
            written: AtomicU64::new(0),
        }
    }

    /// Takes a finished journey.
    pub(crate) fn append(&self, record: JourneyRecord) {
        self.written.fetch_add(1, Ordering::Relaxed);
        if self.capacity == 0 {
            return;
        }
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        if records.len() == self.capacity {
            records.pop_front();
        }
        records.push_back(record);
    }

    /// The latest journey with this request id. A caller may use an id more than once.
    pub(crate) fn find(&self, request_id: &str) -> Option<JourneyRecord> {
        let records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        records
            .iter()
            .rev()
            .find(|record| record.request_id.as_str() == request_id)
            .cloned()
    }

    /// The latest journeys, newest first, at most `limit`.
    pub(crate) fn latest(&self, limit: usize) -> Vec<JourneyRecord> {
        let records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        records.iter().rev().take(limit).cloned().collect()
    }

    /// How many journeys were ever taken.
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// How many journeys are kept.
    pub(crate) fn len(&self) -> usize {
        self.records
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .len()
    }

    /// Whether none is kept.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

//! Several connection pools side by side, so that HTTP/2 never becomes a queue.
//!
//! hyper's pool keeps one HTTP/2 connection to an authority, and a server admits some hundred
//! streams on it; the next request would wait inside the connection, invisibly, with its headers
//! clock running. A lane is one such pool. Exchanges fill the lanes from the first, each up to its
//! width, so light traffic stays on one connection and heavy traffic opens more.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Lanes of something, each with a count of the exchanges in it.
#[derive(Debug)]
pub(crate) struct Lanes<T> {
    lanes: Box<[Lane<T>]>,
    width: usize,
}

#[derive(Debug)]
struct Lane<T> {
    pool: T,
    load: Arc<AtomicUsize>,
}

/// A place in a lane; dropping it leaves the lane.
#[derive(Debug)]
pub(crate) struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<T> Lanes<T> {
    /// At least one lane, each for `width` exchanges (at least one).
    pub(crate) fn new(pools: impl IntoIterator<Item = T>, width: usize) -> Self {
        let lanes: Box<[Lane<T>]> = pools
            .into_iter()
            .map(|pool| Lane {
                pool,
                load: Arc::default(),
            })
            .collect();
        assert!(!lanes.is_empty(), "an upstream has a lane");
        Self {
            lanes,
            width: width.max(1),
        }
    }

    /// A place in the first lane that has one. When all are full the least loaded is overfilled:
    /// limiting is admission's business, not ours.
    pub(crate) fn enter(&self) -> (&T, Place) {
        for lane in &self.lanes {
            let entered = lane
                .load
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |load| {
                    (load < self.width).then_some(load + 1)
                });
            if entered.is_ok() {
                return (&lane.pool, Place(Arc::clone(&lane.load)));
            }
        }
        let lane = self
            .lanes
            .iter()
            .min_by_key(|lane| lane.load.load(Ordering::Relaxed))
            .expect("an upstream has a lane");
        lane.load.fetch_add(1, Ordering::Relaxed);
        (&lane.pool, Place(Arc::clone(&lane.load)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_fill_in_order_and_places_come_back() {
        let lanes = Lanes::new(["a", "b"], 2);
        let mut places = Vec::new();
        let mut seen = Vec::new();
        for _ in 0..6 {
            let (lane, place) = lanes.enter();
            seen.push(*lane);
            places.push(place);
        }
        assert_eq!(
            seen,
            ["a", "a", "b", "b", "a", "b"],
            "then overfilled evenly"
        );
        places.drain(..3);
        assert_eq!(*lanes.enter().0, "a", "the first lane has a place again");
    }
}

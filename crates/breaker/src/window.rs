//! How the last attempts went, in ten buckets that are forgotten one by one.

use std::time::Duration;

use backstop_units::Moment;

use crate::params::RatioRule;

const BUCKETS: usize = 10;

/// Successes and failures of the last while. Handed *now*; reads no clock, allocates nothing.
#[derive(Debug, Clone)]
pub(crate) struct Window {
    width: Duration,
    ring: [Bucket; BUCKETS],
}

/// What happened in one tenth of the window.
#[derive(Debug, Clone, Copy, Default)]
struct Bucket {
    /// Which tenth since the start of the clock.
    turn: u64,
    good: u32,
    bad: u32,
}

impl Window {
    /// An empty window that looks back over `span`.
    pub(crate) fn new(span: Duration) -> Self {
        Self {
            // At least 10 ms: a window lasts 100 ms or more.
            width: span / 10,
            ring: [Bucket::default(); BUCKETS],
        }
    }

    /// Books one attempt. A `now` from a moment ago counts where the ring has come to.
    pub(crate) fn book(&mut self, now: Moment, good: bool) {
        let turn = self.turn(now);
        let bucket = &mut self.ring[slot(turn)];
        if bucket.turn < turn {
            *bucket = Bucket {
                turn,
                ..Bucket::default()
            };
        }
        let count = if good {
            &mut bucket.good
        } else {
            &mut bucket.bad
        };
        *count = count.saturating_add(1);
    }

    /// Whether enough attempts went badly enough.
    pub(crate) fn is_below(&self, rule: &RatioRule, now: Moment) -> bool {
        let turn = self.turn(now);
        let (mut good, mut all) = (0_u64, 0_u64);
        for bucket in &self.ring {
            if bucket.turn + BUCKETS as u64 > turn {
                good += u64::from(bucket.good);
                all += u64::from(bucket.good) + u64::from(bucket.bad);
            }
        }
        // Ten 32-bit counts stay below 2^53, so both are exact.
        let share_is_low = (good as f64) < rule.min_success * (all as f64);
        all >= u64::from(rule.min_samples) && share_is_low
    }

    fn turn(&self, now: Moment) -> u64 {
        let turn = now.elapsed().as_nanos() / self.width.as_nanos();
        u64::try_from(turn).unwrap_or(u64::MAX - BUCKETS as u64)
    }
}

fn slot(turn: u64) -> usize {
    usize::try_from(turn % BUCKETS as u64).expect("below ten")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_forgotten_a_tenth_at_a_time() {
        let rule = RatioRule {
            min_samples: 2,
            ..RatioRule::default()
        };
        let mut window = Window::new(rule.window);
        let at = |seconds: u64| Moment::from_millis(seconds * 1_000);
        window.book(at(2), false);
        window.book(at(3), false);
        assert!(window.is_below(&rule, at(3)));
        assert!(window.is_below(&rule, at(29)));
        assert!(!window.is_below(&rule, at(30)), "the first bucket is gone");
        window.book(at(31), true);
        assert!(!window.is_below(&rule, at(31)), "half is not below half");
        window.book(at(31), false);
        assert!(window.is_below(&rule, at(31)));
        window.book(at(2), false);
        assert!(!window.is_below(&rule, at(9_999)));
    }
}

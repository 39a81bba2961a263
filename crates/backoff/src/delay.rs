//! The formula: a delay that doubles up to a cap, spread by chance.

use std::time::Duration;

use backstop_units::Roll;

use crate::Error;

/// How chance spreads a delay, so that callers who failed together do not return together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Jitter {
    /// The delay times 0.8 to 1.2, never above the largest delay.
    #[default]
    Proportional,
    /// Anything from nothing to the delay. Spreads a crowd best.
    Full,
}

/// Exponential backoff: `min(initial x 2^n, max)`, spread by [`Jitter`], never above `max`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    initial: Duration,
    max: Duration,
    jitter: Jitter,
}

impl Default for Backoff {
    /// 500 ms, 5 s, proportional.
    fn default() -> Self {
        Self {
            initial: Duration::from_millis(500),
            max: Duration::from_secs(5),
            jitter: Jitter::Proportional,
        }
    }
}

impl Backoff {
    /// The longest `max` that is accepted: one hour, far beyond any request's deadline.
    pub const LONGEST: Duration = Duration::from_secs(60 * 60);

    /// Delays from `initial` to `max`. An `initial` of zero means no waiting at all.
    ///
    /// # Errors
    /// When `initial` is above `max`, or `max` above [`Self::LONGEST`].
    pub fn new(initial: Duration, max: Duration, jitter: Jitter) -> Result<Self, Error> {
        if initial > max {
            return Err(Error::InitialAboveMax { initial, max });
        }
        if max > Self::LONGEST {
            return Err(Error::MaxTooLong {
                max,
                limit: Self::LONGEST,
            });
        }
        Ok(Self {
            initial,
            max,
            jitter,
        })
    }

    /// The wait before the retry that follows `n` budgeted retries: 0 before the first one. Walking
    /// past dead keys does not raise `n`. However large `n` is, the answer is at most `max`.
    #[must_use]
    pub fn delay(&self, n: u32, roll: Roll) -> Duration {
        let base = self.base(n);
        let spread = match self.jitter {
            Jitter::Proportional => base.mul_f64(0.8 + 0.4 * roll.fraction()),
            Jitter::Full => base.mul_f64(roll.fraction()),
        };
        spread.min(self.max)
    }

    /// The first delay.
    #[must_use]
    pub const fn initial(&self) -> Duration {
        self.initial
    }

    /// The largest delay.
    #[must_use]
    pub const fn max(&self) -> Duration {
        self.max
    }

    /// `min(initial x 2^n, max)`, with the power held before it overflows.
    fn base(&self, n: u32) -> Duration {
        // An hour is below 2^42 ns, and 2^64 doublings of one nanosecond exceed it: no overflow.
        let doubled = self.initial.as_nanos() << n.min(64);
        u64::try_from(doubled).map_or(self.max, |nanos| Duration::from_nanos(nanos).min(self.max))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn highest() -> Roll {
        Roll::new(1.0 - f64::EPSILON).expect("below one")
    }

    fn near(left: Duration, right: Duration) -> bool {
        left.abs_diff(right) < Duration::from_micros(1)
    }

    #[test]
    fn the_published_table_holds() {
        let backoff = Backoff::default();
        for (n, low, high) in [
            (0, 400, 600),
            (1, 800, 1_200),
            (2, 1_600, 2_400),
            (3, 3_200, 4_800),
            (4, 4_000, 5_000),
            (5, 4_000, 5_000),
            (63, 4_000, 5_000),
            (64, 4_000, 5_000),
            (u32::MAX, 4_000, 5_000),
        ] {
            assert!(near(backoff.delay(n, Roll::LOWEST), ms(low)), "{n}");
            assert!(near(backoff.delay(n, highest()), ms(high)), "{n}");
        }
    }

    #[test]
    fn the_power_saturates_from_the_smallest_start() {
        let backoff = Backoff::new(
            Duration::from_nanos(1),
            Backoff::LONGEST,
            Jitter::Proportional,
        )
        .expect("in range");
        assert_eq!(backoff.delay(u32::MAX, Roll::MIDDLE), Backoff::LONGEST);
        let none = Backoff::new(Duration::ZERO, ms(5), Jitter::Full).expect("in range");
        assert_eq!(none.delay(u32::MAX, highest()), Duration::ZERO);
    }

    #[test]
    fn senseless_windows_are_refused() {
        for (initial, max) in [
            (ms(2), ms(1)),
            (Duration::ZERO, Duration::MAX),
            (ms(1), Backoff::LONGEST + ms(1)),
        ] {
            assert!(Backoff::new(initial, max, Jitter::Full).is_err());
        }
    }

    /// A thousand callers that failed together come back spread out: no 100 ms of the window gets
    /// more than three times its share.
    #[test]
    fn full_jitter_spreads_a_crowd() {
        let backoff = Backoff::new(ms(500), ms(5_000), Jitter::Full).expect("in range");
        let mut buckets = [0_u32; 40];
        let mut seed = 0x2545_f491_4f6c_dd1d_u64;
        for _ in 0..1_000 {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let fraction =
                f64::from(u32::try_from(seed >> 32).expect("32 bits")) / f64::from(u32::MAX);
            let roll = Roll::new(fraction.min(0.999_999)).expect("below one");
            let slot = backoff.delay(3, roll).as_millis() / 100;
            buckets[usize::try_from(slot).expect("small")] += 1;
        }
        assert!(buckets.iter().all(|&count| count <= 75), "{buckets:?}");
    }

    proptest! {
        #[test]
        fn a_delay_never_leaves_its_window(
            initial in 0_u64..3_600_000,
            span in 0_u64..3_600_000,
            n: u32,
            roll in 0.0..1.0_f64,
            full: bool,
        ) {
            let max = ms((initial + span).min(3_600_000));
            let jitter = if full { Jitter::Full } else { Jitter::Proportional };
            let backoff = Backoff::new(ms(initial), max, jitter).expect("in range");
            let delay = backoff.delay(n, Roll::new(roll).expect("in range"));
            let base = ms(initial.saturating_mul(1 << n.min(40))).min(max);
            prop_assert!(delay <= max);
            prop_assert!(delay <= base.mul_f64(1.2) + Duration::from_nanos(1));
            if !full {
                prop_assert!(delay + Duration::from_nanos(1) >= base.mul_f64(0.8));
            }
        }
    }
}

//! How much happened in the last minute, second by second.

use std::time::Duration;

use backstop_units::Moment;

/// The seconds of a minute, and the one that is under way: with 61 whole seconds remembered, no span
/// of 60 seconds ever holds more than the limit, wherever it begins.
const SECONDS: usize = 61;

/// A sliding minute. What enters it stays for 60 to 61 seconds.
///
/// It is exact on the safe side: at most the limit is admitted in *any* minute. A bucket that refills
/// would admit up to twice as much around its edge.
#[derive(Debug, Clone)]
pub struct Window {
    seconds: Box<[u64; SECONDS]>,
    /// The second that was last looked at, since the process started.
    latest: u64,
    sum: u64,
}

impl Default for Window {
    fn default() -> Self {
        Self {
            seconds: Box::new([0; SECONDS]),
            latest: 0,
            sum: 0,
        }
    }
}

impl Window {
    /// Lets `amount` in if the minute then holds no more than `limit`.
    ///
    /// # Errors
    /// Says after which wait it would fit, if nothing else came in between; `None` when it is more
    /// than the whole limit.
    pub fn admit(&mut self, now: Moment, limit: u64, amount: u64) -> Result<(), Option<Duration>> {
        self.room(now, limit, amount)?;
        self.add(now, amount);
        Ok(())
    }

    /// Whether `amount` would fit.
    ///
    /// # Errors
    /// As [`admit`](Self::admit).
    pub fn room(&mut self, now: Moment, limit: u64, amount: u64) -> Result<(), Option<Duration>> {
        self.turn(now);
        if self.sum.saturating_add(amount) <= limit {
            return Ok(());
        }
        let Some(room) = limit.checked_sub(amount) else {
            return Err(None);
        };
        // The oldest seconds leave first: wait until what is left makes room.
        let mut left = self.sum;
        let first = (self.latest + 1).saturating_sub(SECONDS as u64);
        for second in first..=self.latest {
            left -= self.seconds[slot(second)];
            if left <= room {
                let leaves = Moment::from_elapsed(Duration::from_secs(second + SECONDS as u64));
                return Err(Some(leaves.since(now).max(Duration::from_millis(1))));
            }
        }
        Err(None)
    }

    /// Counts `amount` in, whatever the limit.
    pub fn add(&mut self, now: Moment, amount: u64) {
        self.turn(now);
        let second = &mut self.seconds[slot(self.latest)];
        *second = second.saturating_add(amount);
        self.sum = self.sum.saturating_add(amount);
    }

    /// Puts `used` in the place of `reserved`, which came in at `since`. What has left the minute
    /// already is let be.
    pub fn replace(&mut self, now: Moment, since: Moment, reserved: u64, used: u64) {
        self.turn(now);
        let second = since.elapsed().as_secs();
        if used > reserved {
            return self.add(now, used - reserved);
        }
        if second + SECONDS as u64 > self.latest {
            let kept = &mut self.seconds[slot(second)];
            let back = (reserved - used).min(*kept);
            *kept -= back;
            self.sum -= back;
        }
    }

    /// What the minute holds.
    #[must_use]
    pub fn held(&mut self, now: Moment) -> u64 {
        self.turn(now);
        self.sum
    }

    /// Forgets the seconds that have left.
    fn turn(&mut self, now: Moment) {
        let second = now.elapsed().as_secs();
        if second <= self.latest {
            return;
        }
        let gone = (second - self.latest).min(SECONDS as u64);
        for passed in 1..=gone {
            let slot = &mut self.seconds[slot(self.latest + passed)];
            self.sum -= std::mem::take(slot);
        }
        self.latest = second;
    }
}

/// Where a second is kept.
#[allow(
    clippy::cast_possible_truncation,
    reason = "a remainder of 61 fits in every usize"
)]
const fn slot(second: u64) -> usize {
    (second % SECONDS as u64) as usize
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(millis: u64) -> Moment {
        Moment::from_millis(millis)
    }

    #[test]
    fn a_full_minute_says_when_it_has_room() {
        let mut window = Window::default();
        assert_eq!(window.admit(at(500), 3, 1), Ok(()));
        assert_eq!(window.admit(at(1_500), 3, 2), Ok(()));
        // The first second leaves when 61 whole ones have passed.
        let wait = window.admit(at(2_000), 3, 1).expect_err("full");
        assert_eq!(wait, Some(Duration::from_secs(59)));
        let wait = window.admit(at(2_000), 3, 2).expect_err("full");
        assert_eq!(wait, Some(Duration::from_secs(60)));
        assert_eq!(window.admit(at(2_000), 3, 4), Err(None));
        assert_eq!(window.admit(at(61_000), 3, 1), Ok(()));
        assert_eq!(window.held(at(10_000_000)), 0);
    }

    #[test]
    fn what_was_not_used_comes_back_while_it_counts() {
        let mut window = Window::default();
        window.add(at(0), 100);
        window.replace(at(5_000), at(0), 100, 40);
        assert_eq!(window.held(at(5_000)), 40);
        window.replace(at(6_000), at(0), 40, 50);
        assert_eq!(window.held(at(6_000)), 50);
        window.replace(at(90_000), at(6_000), 10, 0);
        assert_eq!(window.held(at(90_000)), 0);
    }

    proptest! {
        #[test]
        fn no_minute_holds_more_than_the_limit(
            steps in proptest::collection::vec((0_u64..20_000, 1_u64..4), 1..200),
            limit in 1_u64..12,
        ) {
            let mut window = Window::default();
            let mut now = 0;
            let mut admitted: Vec<(u64, u64)> = Vec::new();
            for (step, amount) in steps {
                now += step;
                match window.admit(at(now), limit, amount) {
                    Ok(()) => admitted.push((now, amount)),
                    Err(Some(wait)) => {
                        // The wait it names is enough.
                        let then = at(now) + wait;
                        prop_assert_eq!(window.clone().room(then, limit, amount), Ok(()));
                    }
                    Err(None) => prop_assert!(amount > limit),
                }
                let minute: u64 = admitted
                    .iter()
                    .filter(|(came, _)| came + 60_000 > now)
                    .map(|(_, amount)| amount)
                    .sum();
                prop_assert!(minute <= limit);
            }
        }
    }
}

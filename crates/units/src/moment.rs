//! Monotonic time since the process started.

use std::fmt;
use std::ops::Add;
use std::time::Duration;

/// A point on the process's own monotonic clock, counted from its start.
///
/// Cores take `now: Moment` and never read a clock, so a test can write one down. Wall time is a
/// different thing and arrives as [`std::time::SystemTime`] where a date header needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Moment(Duration);

impl Moment {
    /// The start of the process.
    pub const START: Self = Self(Duration::ZERO);

    /// The moment `elapsed` after the start.
    #[must_use]
    pub const fn from_elapsed(elapsed: Duration) -> Self {
        Self(elapsed)
    }

    /// The moment this many milliseconds after the start.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(Duration::from_millis(millis))
    }

    /// Time from `earlier` to this moment; zero when `earlier` is not earlier.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// Time since the start.
    #[must_use]
    pub const fn elapsed(self) -> Duration {
        self.0
    }

    /// This moment plus `wait`, held at the far end of the clock instead of overflowing.
    #[must_use]
    pub const fn saturating_add(self, wait: Duration) -> Self {
        Self(self.0.saturating_add(wait))
    }
}

impl Add<Duration> for Moment {
    type Output = Self;

    fn add(self, wait: Duration) -> Self {
        self.saturating_add(wait)
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "+{}ms", self.0.as_millis())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        let late = Moment::from_elapsed(Duration::MAX);
        assert_eq!(late + Duration::from_secs(1), late);
        assert_eq!(Moment::START.since(late), Duration::ZERO);
        assert_eq!(Moment::from_millis(7).to_string(), "+7ms");
    }
}

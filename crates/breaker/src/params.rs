//! When a breaker opens, and for how long.

use std::time::Duration;

use crate::Error;

/// The settings of a breaker.
///
/// Defaults: 5 failures in a row; below 50 % success with at least 20 samples in 30 s; open for 5 s,
/// 1.5 times longer after each failed probe, up to 60 s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Params {
    streak: Option<u32>,
    ratio: Option<RatioRule>,
    open: OpenTime,
}

/// Opens when too small a share of attempts succeeds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RatioRule {
    /// Opens below this share of successes, in 0.0 to 1.0. Default 0.5.
    pub min_success: f64,
    /// Judges nothing on fewer samples than this. Default 20.
    pub min_samples: u32,
    /// How far back samples count, 100 ms to 1 h. Default 30 s. Kept in tenths: a sample is
    /// forgotten when it is between nine tenths of the window and the whole window old.
    pub window: Duration,
}

/// How long a breaker stays open before it lets a probe through.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OpenTime {
    /// The first time, 1 ms to 1 h. Default 5 s.
    pub first: Duration,
    /// How much longer after each failed probe, 1.0 to 10.0. Default 1.5.
    pub growth: f64,
    /// No longer than this, `first` to 1 h. Default 60 s.
    pub longest: Duration,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            streak: Some(5),
            ratio: Some(RatioRule::default()),
            open: OpenTime::default(),
        }
    }
}

impl Default for RatioRule {
    fn default() -> Self {
        Self {
            min_success: 0.5,
            min_samples: 20,
            window: Duration::from_secs(30),
        }
    }
}

impl Default for OpenTime {
    fn default() -> Self {
        Self {
            first: Duration::from_secs(5),
            growth: 1.5,
            longest: Duration::from_secs(60),
        }
    }
}

const HOUR: Duration = Duration::from_secs(60 * 60);

impl Params {
    /// How many failures in a row open it; `None`: no number does.
    #[must_use]
    pub const fn streak(&self) -> Option<u32> {
        self.streak
    }

    /// A breaker that never opens, for an operator who wants none.
    #[must_use]
    pub fn never() -> Self {
        Self {
            streak: None,
            ratio: None,
            open: OpenTime::default(),
        }
    }

    /// Opens after this many counted failures in a row.
    ///
    /// # Errors
    /// When `failures` is 0.
    pub fn with_streak(self, failures: u32) -> Result<Self, Error> {
        if failures == 0 {
            return Err(Error::NoFailures);
        }
        Ok(Self {
            streak: Some(failures),
            ..self
        })
    }

    /// Judges the share of successes by `rule`.
    ///
    /// # Errors
    /// When a number of `rule` is outside its range.
    pub fn with_ratio(self, rule: RatioRule) -> Result<Self, Error> {
        if !(0.0..=1.0).contains(&rule.min_success) {
            return Err(Error::NoShare {
                value: rule.min_success,
            });
        }
        if rule.min_samples == 0 {
            return Err(Error::NoSamples);
        }
        if !(Duration::from_millis(100)..=HOUR).contains(&rule.window) {
            return Err(Error::Window {
                window: rule.window,
            });
        }
        Ok(Self {
            ratio: Some(rule),
            ..self
        })
    }

    /// Judges failures in a row alone.
    #[must_use]
    pub const fn without_ratio(self) -> Self {
        Self {
            ratio: None,
            ..self
        }
    }

    /// Stays open for as long as `open` says.
    ///
    /// # Errors
    /// When a number of `open` is outside its range.
    pub fn with_open(self, open: OpenTime) -> Result<Self, Error> {
        let OpenTime {
            first,
            growth,
            longest,
        } = open;
        if first < Duration::from_millis(1) || first > longest || longest > HOUR {
            return Err(Error::OpenTime { first, longest });
        }
        if !(1.0..=10.0).contains(&growth) {
            return Err(Error::Growth { growth });
        }
        Ok(Self { open, ..self })
    }

    pub(crate) const fn is_never(&self) -> bool {
        self.streak.is_none() && self.ratio.is_none()
    }

    /// Whether `failures` in a row are too many.
    pub(crate) fn streak_is_over(&self, failures: u32) -> bool {
        self.streak.is_some_and(|limit| failures >= limit)
    }

    /// The share of successes below which it opens; `None`: no share does.
    #[must_use]
    pub const fn ratio(&self) -> Option<&RatioRule> {
        self.ratio.as_ref()
    }

    pub(crate) const fn first_open(&self) -> Duration {
        self.open.first
    }

    /// The open time after a failed probe that followed `last`.
    pub(crate) fn grown(&self, last: Duration) -> Duration {
        // At most an hour times ten: no overflow.
        last.mul_f64(self.open.growth)
            .clamp(self.open.first, self.open.longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn senseless_numbers_are_refused() {
        let params = Params::default();
        let ratio = RatioRule::default();
        let open = OpenTime::default();
        let zero = Duration::ZERO;
        assert_eq!(params.with_streak(0), Err(Error::NoFailures));
        assert_eq!(params.with_streak(5), Ok(params));
        for (rule, good) in [
            (ratio, true),
            (
                RatioRule {
                    min_success: -0.1,
                    ..ratio
                },
                false,
            ),
            (
                RatioRule {
                    min_success: f64::NAN,
                    ..ratio
                },
                false,
            ),
            (
                RatioRule {
                    min_samples: 0,
                    ..ratio
                },
                false,
            ),
            (
                RatioRule {
                    window: zero,
                    ..ratio
                },
                false,
            ),
            (
                RatioRule {
                    window: Duration::MAX,
                    ..ratio
                },
                false,
            ),
        ] {
            assert_eq!(params.with_ratio(rule).is_ok(), good, "{rule:?}");
        }
        for (time, good) in [
            (open, true),
            (
                OpenTime {
                    first: zero,
                    ..open
                },
                false,
            ),
            (
                OpenTime {
                    longest: Duration::from_secs(1),
                    ..open
                },
                false,
            ),
            (
                OpenTime {
                    longest: Duration::MAX,
                    ..open
                },
                false,
            ),
            (
                OpenTime {
                    growth: 0.5,
                    ..open
                },
                false,
            ),
            (
                OpenTime {
                    growth: f64::NAN,
                    ..open
                },
                false,
            ),
        ] {
            assert_eq!(params.with_open(time).is_ok(), good, "{time:?}");
        }
    }
}

//! Chance as an argument: a roll of the die, not the die.

use thiserror::Error;

/// A roll in `0.0 <= roll < 1.0`. Drivers roll it, cores are handed it.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Roll(f64);

/// Why a number is not a [`Roll`].
#[derive(Debug, Clone, Copy, PartialEq, Error)]
#[error("a roll lies in 0.0 (inclusive) to 1.0 (exclusive), not {value}")]
pub struct RollError {
    /// The number that was offered.
    pub value: f64,
}

impl Roll {
    /// The lowest roll.
    pub const LOWEST: Self = Self(0.0);
    /// The middle roll: proportional jitter leaves a wait as it is.
    pub const MIDDLE: Self = Self(0.5);

    /// Checks that `value` lies in `0.0..1.0`.
    ///
    /// # Errors
    /// When `value` is out of range or not a number.
    pub fn new(value: f64) -> Result<Self, RollError> {
        if (0.0..1.0).contains(&value) {
            Ok(Self(value))
        } else {
            Err(RollError { value })
        }
    }

    /// The roll as a fraction in `0.0..1.0`.
    #[must_use]
    pub const fn fraction(self) -> f64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_half_open_unit_interval_is_a_roll() {
        for (value, good) in [
            (0.0, true),
            (0.999_999, true),
            (1.0, false),
            (-0.1, false),
            (f64::NAN, false),
            (f64::INFINITY, false),
        ] {
            assert_eq!(Roll::new(value).is_ok(), good, "{value}");
        }
    }
}

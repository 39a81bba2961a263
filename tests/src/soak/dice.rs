//! Chance that can be played again: every case has dice of its own.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// The dice of one case, or of one thing in it.
pub(crate) struct Dice(StdRng);

impl Dice {
    /// The same for the same seed and the same place, whatever was rolled elsewhere.
    pub(crate) fn of(seed: u64, place: &[u64]) -> Self {
        let mixed = place.iter().fold(seed, |mixed, part| {
            (mixed ^ part.wrapping_add(0x9E37_79B9_7F4A_7C15))
                .wrapping_mul(0xD6E8_FEB8_6659_FD93)
                .rotate_left(29)
        });
        Self(StdRng::seed_from_u64(mixed))
    }

    /// From `low` to `high`, both included.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        self.0.random_range(low..=high)
    }

    /// A place in a list of `len`, or anywhere up to a length when `len` is one more.
    pub(crate) fn below(&mut self, len: usize) -> usize {
        self.0.random_range(0..len.max(1))
    }

    /// Once in `n` times.
    pub(crate) fn one_in(&mut self, n: u64) -> bool {
        self.between(1, n) == 1
    }

    /// One of `all`.
    pub(crate) fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    /// A part of a whole.
    pub(crate) fn part(&mut self) -> Part {
        Part(self.below(Part::WHOLE))
    }
}

/// A part of a whole, less than all of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part(usize);

impl Part {
    const WHOLE: usize = 1_000_000;

    /// So much of a length.
    pub(crate) const fn of(self, length: usize) -> usize {
        length * self.0 / Self::WHOLE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_its_own_rolls_and_always_the_same() {
        let rolls = |seed, place: &[u64]| {
            let mut dice = Dice::of(seed, place);
            [dice.between(0, u64::MAX), dice.between(0, u64::MAX)]
        };
        assert_eq!(rolls(1, &[2, 3]), rolls(1, &[2, 3]));
        let others = [rolls(2, &[2, 3]), rolls(1, &[3, 2]), rolls(1, &[2])];
        assert!(others.iter().all(|other| *other != rolls(1, &[2, 3])));
    }
}

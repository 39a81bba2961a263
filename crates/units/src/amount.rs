//! Amounts with a unit: tokens, money, bytes.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A number of model tokens.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Tokens(pub u64);

/// Money in millionths of a US dollar; negative for a refund.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct MicroUsd(pub i64);

/// A size in bytes.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct ByteCount(pub u64);

impl ByteCount {
    /// `n` times 1024 bytes.
    #[must_use]
    pub const fn kib(n: u64) -> Self {
        Self(n * 1024)
    }

    /// `n` times 1024 x 1024 bytes.
    #[must_use]
    pub const fn mib(n: u64) -> Self {
        Self(n * 1024 * 1024)
    }

    /// The size as a length in memory, held at the largest the machine can address.
    #[must_use]
    pub fn as_len(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl Tokens {
    /// The sum, held at the largest count instead of overflowing.
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl fmt::Display for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Display for ByteCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
        for (size, name) in UNITS {
            if self.0 >= size && self.0.is_multiple_of(size) {
                return write!(f, "{} {name}", self.0 / size);
            }
        }
        write!(f, "{} bytes", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_print_in_the_largest_whole_unit() {
        for (bytes, text) in [
            (ByteCount::mib(32), "32 MiB"),
            (ByteCount::kib(256), "256 KiB"),
            (ByteCount(1500), "1500 bytes"),
            (ByteCount(0), "0 bytes"),
        ] {
            assert_eq!(bytes.to_string(), text);
        }
    }
}

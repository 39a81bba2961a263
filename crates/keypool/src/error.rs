//! Why settings were refused.

use std::time::Duration;

use backstop_units::KeyId;
use thiserror::Error;

/// A pool or its holds that make no sense, with what would be accepted.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum Error {
    /// A weight is no weight.
    #[error("the weight of key {key} lies in 0 to {limit}, not {weight}")]
    Weight {
        /// The key.
        key: KeyId,
        /// The number that was offered.
        weight: f64,
        /// The largest number that is accepted.
        limit: f64,
    },
    /// Two keys of a pool have one name.
    #[error("key {key} is there twice")]
    Twice {
        /// The name.
        key: KeyId,
    },
    /// A hold is empty, endless, or shrinks.
    #[error(
        "holds last 1s to 24h, the first ({first:?}) at most as long as the longest ({longest:?})"
    )]
    HoldTime {
        /// The first hold that was offered.
        first: Duration,
        /// The longest hold that was offered.
        longest: Duration,
    },
}

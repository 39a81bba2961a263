//! Why settings were refused.

use std::time::Duration;

use thiserror::Error;

/// Settings of a breaker that make no sense, with what would be accepted.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum Error {
    /// No failure in a row would open it from the start.
    #[error("a breaker opens after at least 1 failure in a row, not 0")]
    NoFailures,
    /// The share of successes is no share.
    #[error("the least share of successes lies in 0.0 to 1.0, not {value}")]
    NoShare {
        /// The number that was offered.
        value: f64,
    },
    /// A share of nothing cannot be judged.
    #[error("a share of successes is judged over at least 1 sample, not 0")]
    NoSamples,
    /// The window forgets at once, or never.
    #[error("the window of samples lasts 100ms to 1h, not {window:?}")]
    Window {
        /// The window that was offered.
        window: Duration,
    },
    /// The open time is empty or shrinks to nothing.
    #[error("the open time lasts 1ms to 1h and first ({first:?}) is at most longest ({longest:?})")]
    OpenTime {
        /// The first open time that was offered.
        first: Duration,
        /// The longest open time that was offered.
        longest: Duration,
    },
    /// The open time would shrink after a failed probe, or explode.
    #[error("the open time grows by a factor of 1.0 to 10.0, not {growth}")]
    Growth {
        /// The factor that was offered.
        growth: f64,
    },
}

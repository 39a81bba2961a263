//! Why settings were refused.

use std::time::Duration;

use thiserror::Error;

/// Settings of this crate that make no sense, with what would be accepted.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum Error {
    /// The first delay is longer than the longest one.
    #[error("the initial backoff of {initial:?} is longer than the largest one of {max:?}")]
    InitialAboveMax {
        /// The initial delay that was offered.
        initial: Duration,
        /// The largest delay that was offered.
        max: Duration,
    },
    /// The longest delay outlasts any request.
    #[error("a backoff of {max:?} is too long; at most {limit:?}")]
    MaxTooLong {
        /// The largest delay that was offered.
        max: Duration,
        /// The largest delay that is accepted.
        limit: Duration,
    },
    /// A number of the retry budget is negative, not a number, or absurdly large.
    #[error("{field} of the retry budget lies in 0 to {limit}, not {value}")]
    BudgetOutOfRange {
        /// Which number: `ratio`, `per_second` or `credit`.
        field: &'static str,
        /// The number that was offered.
        value: f64,
        /// The largest number that is accepted.
        limit: f64,
    },
}

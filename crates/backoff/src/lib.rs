//! How long to wait before a retry, within a budget.
//!
//! Three small questions, each in its own file: how long the formula says to wait
//! ([`Backoff::delay`]), what a provider's hint and the deadline make of that ([`wait`]), and
//! whether the channel can bear another retry at all ([`RetryBudget`]). The crate leaves to others
//! which failures may be retried, which key comes next, and the waiting itself.
//!
//! The one invariant: a delay never leaves its window, and a budget never grants more than
//! `ratio x requests + per_second x seconds + credit` retries.
//!
//! ```
//! use std::time::Duration;
//! use backstop_backoff::{Backoff, NextKey, Wait, wait};
//! use backstop_units::Roll;
//!
//! let second_retry = Backoff::default().delay(1, Roll::MIDDLE);
//! assert_eq!(second_retry, Duration::from_secs(1));
//! let (hint, left) = (Some(Duration::from_secs(20)), Duration::from_secs(10));
//! assert_eq!(wait(second_retry, hint, NextKey::Same, left), Wait::TooLong);
//! assert_eq!(wait(second_retry, hint, NextKey::Fresh, left), Wait::For(second_retry));
//! ```

mod budget;
mod delay;
mod error;
mod hint;

pub use budget::{BudgetParams, RetryBudget};
pub use delay::{Backoff, Jitter};
pub use error::Error;
pub use hint::{NextKey, Wait, wait};

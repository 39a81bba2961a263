//! Whether a channel may be tried now.
//!
//! A [`Breaker`] watches how attempts on one channel end. *Closed* lets traffic through, *open*
//! refuses it, *half-open* lets exactly one probe through, whose end decides. Two rules open it:
//! failures in a row catch an outage within a handful of attempts, and a low share of successes
//! catches a channel that fails every other time and never five in a row. The first is checked
//! first, because it needs no history. A breaker that has just closed starts with a clean sheet
//! under both.
//!
//! The crate leaves to others what counts as a failure (they pass an [`Outcome`]) and what to do
//! when every channel refuses; for that there is [`Breaker::force`].
//!
//! The one invariant: at most one probe is out at any moment. Every permit is handed back exactly
//! once, by [`Breaker::settle`] or [`Breaker::release`]; it can be neither copied nor used twice.
//!
//! ```
//! use backstop_breaker::{Breaker, Outcome, Params, Refused};
//! use backstop_units::Moment;
//!
//! let mut breaker = Breaker::new(Params::default());
//! let now = Moment::START;
//! for _ in 0..5 {
//!     let permit = breaker.permit(now).expect("closed");
//!     breaker.settle(now, permit, Outcome::Failure);
//! }
//! assert!(matches!(breaker.permit(now), Err(Refused::Open { .. })));
//! assert!(breaker.permit(Moment::from_millis(5_000)).expect("probe").is_probe());
//! assert_eq!(breaker.permit(Moment::from_millis(9_000)).err(), Some(Refused::Probing));
//! ```

mod error;
mod machine;
mod params;
mod window;

pub use error::Error;
pub use machine::{Breaker, Outcome, Permit, Refused, State, Transition, Trigger};
pub use params::{OpenTime, Params, RatioRule};

//! The words every crate shares: moments, chance, ids, tokens, money, secrets.
//!
//! This crate decides nothing. It gives names and arithmetic to the values that travel between
//! the cores, so that two of them are never mixed up and none of them reads a clock or rolls a
//! die on its own. The one invariant: a value here is always in range, because its constructor
//! checked it.
//!
//! ```
//! use std::time::Duration;
//! use backstop_units::{KeyId, Moment, ProviderId};
//!
//! let asked = Moment::from_millis(1_000);
//! let later = asked + Duration::from_millis(250);
//! assert_eq!(later.since(asked), Duration::from_millis(250));
//! let key = KeyId::new(&ProviderId::new("openai"), "openai-key-1");
//! assert_eq!(key.name(), "openai-key-1");
//! ```

mod amount;
mod chance;
mod id;
mod moment;
mod secret;

pub use amount::{ByteCount, MicroUsd, Tokens};
pub use chance::{Roll, RollError};
pub use id::{
    CallerName, ChannelId, GroupName, KeyId, ModelName, ProviderId, RequestId, RouteName,
};
pub use moment::Moment;
pub use secret::Secret;

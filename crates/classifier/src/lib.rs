//! What kind of failure a provider's answer is.
//!
//! A gateway meets one question after each failed attempt: may it be repeated, may another key
//! serve it, may another provider? The answer hangs on what the provider meant, and providers
//! disagree about which status carries which fact. This crate reads the [`Evidence`] (status,
//! headers, a bounded piece of the body, or the way the transport ended) and returns a [`Verdict`]:
//! a [`Class`], a finer [`Kind`] where an action hangs on it, and the [`Signal`] that decided.
//!
//! The order of reading is fixed: the provider's own code, type or exception name, then its
//! message, then the status. 401 and 403 kill the key whatever the body says, unless the code or
//! message says that quota, model or region is the reason. Phrases are matched as whole words in
//! the provider's own message fields, never inside quotes, brackets, URLs or identifiers, because
//! that is where a provider echoes its caller. What each provider says is data: one [`Table`] a
//! provider under `src/tables/`, each with its source, read before the general one.
//!
//! It leaves to others what to do about a failure, and it never reads a clock: *now* is part of
//! the evidence. The one invariant: a verdict holds no text of the provider, only tokens that are
//! safe to log, and any bytes at all give one, in time linear in the bytes that are read.
//!
//! ```
//! use std::time::SystemTime;
//! use backstop_classifier::{Class, Evidence, Family, classify};
//!
//! let body = br#"{"error":{"message":"You exceeded your current quota",
//!     "type":"insufficient_quota","param":null,"code":"insufficient_quota"}}"#;
//! let verdict = classify(&Evidence::response(Family::OpenAi, 429, body, SystemTime::UNIX_EPOCH));
//! assert_eq!(verdict.class, Class::Quota);
//! assert_eq!(verdict.signal.to_string(), "code insufficient_quota");
//! assert_eq!(verdict.retry_after, None);
//! ```

mod evidence;
mod verdict;

mod decide;
mod facts;
mod hints;
mod index;
mod kinds;
mod words;

pub mod corpus;
mod table;
mod tables;

pub use decide::classify;
pub use evidence::{Clock, Evidence, Family, Transport};
pub use facts::BODY_LIMIT;
pub use hints::{HINT_MAX, HINT_MIN};
pub use table::{Rule, Table, When};
pub use tables::{echo_table, general_table, tables};
pub use verdict::{Class, Code, Field, Kind, Sent, Signal, Verdict};

//! What kind of failure a provider's answer is.
//!
//! A gateway meets one question after each failed attempt: may it be repeated, may another key
//! serve it, may another provider? The answer hangs on what the provider meant, and providers
//! disagree about which status carries which fact. This crate reads the [`Evidence`] (status,
//! headers, a bounded piece of the body, or the way the transport ended) and returns a [`Verdict`]:
//! a [`Class`], a finer [`Kind`] where an action hangs on it, and the [`Signal`] that decided.
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
//!
//! # In a tool of your own
//!
//! The crate stands alone: it opens no socket, reads no clock and knows no runtime. A batch job that
//! wants to know whether to wait, to change its key or to give up needs a screenful:
//!
//! ```
//! use std::time::{Duration, SystemTime};
//! use backstop_classifier::{Class, Evidence, Family, Kind, classify};
//! use http::HeaderMap;
//!
//! /// What the job does next.
//! #[derive(Debug, PartialEq)]
//! enum Next {
//!     Wait(Duration),
//!     OtherKey,
//!     SplitTheInput,
//!     GiveUp(String),
//! }
//!
//! fn next(status: u16, headers: &HeaderMap, body: &[u8], now: SystemTime) -> Next {
//!     let evidence = Evidence::response(Family::Anthropic, status, body, now);
//!     let verdict = classify(&evidence.with_headers(headers));
//!     let pause = verdict.retry_after.unwrap_or(Duration::from_secs(10));
//!     match (verdict.class, verdict.kind) {
//!         // No wait meets a limit of zero, or one smaller than the request.
//!         (Class::RateLimit, Some(Kind::LimitZero | Kind::RequestLargerThanLimit)) => Next::OtherKey,
//!         (Class::RateLimit | Class::Transient, _) => Next::Wait(pause),
//!         (Class::Credential | Class::Quota | Class::ModelAccess, _) => Next::OtherKey,
//!         (Class::CallerFault, Some(Kind::ContextWindow)) => Next::SplitTheInput,
//!         // Safe to log: a verdict holds no text of the provider.
//!         _ => Next::GiveUp(verdict.to_string()),
//!     }
//! }
//!
//! let mut headers = HeaderMap::new();
//! let now = SystemTime::UNIX_EPOCH;
//! let body = br#"{"type":"error","error":{"type":"invalid_request_error",
//!     "message":"prompt is too long: 215000 tokens > 200000 maximum"}}"#;
//! assert_eq!(next(400, &headers, body, now), Next::SplitTheInput);
//!
//! // The same type and status, and another matter.
//! let body = br#"{"type":"error","error":{"type":"invalid_request_error",
//!     "message":"Your credit balance is too low to access the Anthropic API."}}"#;
//! assert_eq!(next(400, &headers, body, now), Next::OtherKey);
//!
//! headers.insert("retry-after", "7".parse().unwrap());
//! assert_eq!(next(529, &headers, b"", now), Next::Wait(Duration::from_secs(7)));
//!
//! // A caller's mistake that quotes a rate limit stays a mistake.
//! let body = br#"{"type":"error","error":{"type":"invalid_request_error",
//!     "message":"tools.0.name: `rate limit exceeded` does not match the pattern"}}"#;
//! assert!(matches!(next(400, &headers, body, now), Next::GiveUp(why) if why.starts_with("caller_fault")));
//! ```
//!
//! # How an answer is read
//!
//! The order is fixed: the provider's own code, type or exception name, then its message, then the
//! status. 401 and 403 kill the key whatever the body says, unless the code (or, under a 403, the
//! message) says that quota, model or region is the reason; a 402 is always quota. Phrases are
//! matched as whole words in the provider's own message fields, never inside quotes, brackets, URLs
//! or identifiers, because that is where a provider echoes its caller.
//!
//! Bodies come as they come: JSON, wrapped in an array, as a string, as JSON inside a string, one
//! value a line, server-sent events, HTML, empty, cut off, with invalid bytes. HTML is not read, and
//! a body that was cut off is read up to its cut.
//!
//! What each provider says is data: one [`Table`] a provider under `src/tables/`, each with its
//! source, read before the general one ([`tables`], [`general_table`], [`echo_table`]). Recorded
//! failures lie under `corpus/`, in the form of [`corpus::Row`].
//!
//! # Teaching it something new
//!
//! 1. Put the answer into `corpus/<provider>/<class>-<name>.json` and see it differ.
//! 2. If the provider has a code for it, add the code to its table. If it says what others say in
//!    other words, add the words to the concept in `tables/general/phrases.rs`. Single rows are not
//!    taught: a rule that holds for one body only will not hold for the next.
//! 3. `cargo xtask corpus <file>` scores any file of rows, `cargo xtask schema` writes the page
//!    `docs/failures.md`.
//!
//! # What it costs
//!
//! Time is linear in the bytes read, at most [`BODY_LIMIT`]; one pass builds no tree, and a second
//! reads JSON that was wrapped in a string. On the machine of the first measurement (2026-11-30, two
//! cores at work on other things) 1 KiB of prose that meets nothing takes 3.7 us, 1 KiB of words that
//! open most phrases 4.7, a recorded answer of 1.4 KiB 2.3, an HTML page 0.2, and the worst of twelve
//! hostile bodies of 64 KiB 125 (`cargo bench -p backstop-classifier`).
//!
//! # What it leaves to others
//!
//! What to do about a failure, and the time: *now* is part of the evidence. The one invariant: a
//! verdict holds no text of the provider, only tokens that are safe to log, and any bytes at all
//! give one.

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

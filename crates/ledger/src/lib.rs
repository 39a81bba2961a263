//! One row an attempt, one record a journey: the evidence, kept for operators and callers.
//!
//! A [`Ledger`] takes journeys as they go and answers questions about the latest. On disk, a small
//! record is appended to a segment before an attempt's first byte leaves and another at its end;
//! a thread of its own indexes segments into a database, and a [`Reader`] finds in both what happened,
//! also after a sudden end. It never slows or fails a request for the disk's sake. The one
//! invariant: nothing in a record is a key, a prompt, an answer or a provider's message; keys go by
//! their configured names.
//!
//! ```
//! use backstop_ledger::{JourneyRecord, Ledger};
//! use backstop_units::RequestId;
//!
//! let ledger = Ledger::new(2);
//! for id in ["a", "b", "c"] {
//!     ledger.append(JourneyRecord::begun(RequestId::new(id), "chat-main"));
//! }
//! assert_eq!(ledger.len(), 2);
//! assert!(ledger.find("a").is_none());
//! assert_eq!(ledger.find("c").map(|record| record.requested), Some("chat-main".to_owned()));
//! ```

#![allow(
    clippy::disallowed_methods,
    reason = "a driver: its threads read the clock for retention and for the pauses between tries"
)]

mod archive;
mod durable;
mod entry;
mod error;
mod frame;
mod indexer;
mod ledger;
mod memory;
mod reader;
mod record;
mod settings;
mod storage;
mod writer;

pub use archive::{Attempt, Filter, Journey};
pub use error::Error;
pub use ledger::{Facts, Ledger, Position, Price, Trace, Unrecorded};
pub use reader::Reader;
pub use record::{JourneyRecord, Served, trail_json};
pub use settings::{Durability, OnFailure, Settings};

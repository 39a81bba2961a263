//! One row an attempt, one record a journey: the evidence, kept for operators and callers.
//!
//! The ledger takes finished journeys and answers questions about them. This one is bounded and in
//! memory: it keeps the latest, forgets the oldest, and never slows or fails a request. The one
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

mod memory;
mod record;

pub use memory::Ledger;
pub use record::{JourneyRecord, Served, trail_json};

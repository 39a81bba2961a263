//! Where a stream's events begin, when it commits, how it ended.
//!
//! A provider's stream passes through three machines here. [`Framer`] cuts the bytes into
//! [`Frame`]s without losing one. The dialect, in another crate, says what each frame means
//! ([`Meaning`]). [`Relay`] holds frames back until the [`CommitRule`] is met, and [`Progress`]
//! says what the end of the input means. [`write_event`], [`write_comment`] and [`write_message`] make
//! events of our own.
//!
//! Left to others: reading the JSON inside a frame (dialects), deciding what follows a failure
//! (policy), sockets and clocks (drivers).
//!
//! The one invariant: **every byte that came in is in exactly one frame, in order, and once a
//! relay has committed there is no way back to holding.**
//!
//! ```
//! use backstop_stream::{CommitRule, Framer, HoldLimits, Meaning, Relay, Step, Weight};
//! use backstop_units::Moment;
//! use bytes::Bytes;
//!
//! let mut framer = Framer::default();
//! let mut relay = Relay::new(CommitRule::FirstOutput, HoldLimits::default());
//! framer.push(Bytes::from_static(b"data: {\"role\":1}\n\ndata: {\"text\":1}\n\n"));
//! let role = framer.next()?.expect("a whole block");
//! let step = relay.on_event(Moment::START, Meaning::Startup, Weight::of(&role), role.into_wire());
//! assert_eq!(step, Step::Held);
//! let text = framer.next()?.expect("a whole block");
//! let step = relay.on_event(Moment::START, Meaning::Output, Weight::of(&text), text.into_wire());
//! assert!(matches!(step, Step::Release(events) if events.len() == 2));
//! # Ok::<(), backstop_stream::Error>(())
//! ```

mod array;
mod error;
mod frame;
mod framer;
mod framing;
mod hold;
mod meaning;
mod message;
mod progress;
mod relay;
mod rule;
mod write;

pub use array::ArrayFramer;
pub use error::Error;
pub use frame::Frame;
pub use framer::Framer;
pub use framing::{Cutter, Framing};
pub use hold::{CommitReason, Committed, Discarded, Hold, Weight};
pub use meaning::Meaning;
pub use message::{MessageFramer, write_message};
pub use progress::{Ending, InputEnd, Passage, Progress, Sentinel};
pub use relay::{Relay, Step};
pub use rule::{CommitRule, HoldLimits, Window};
pub use write::{write_comment, write_event};

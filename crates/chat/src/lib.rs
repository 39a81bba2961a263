//! The neutral shape of a conversation that every dialect translates through.
//!
//! With N dialects in front and M behind, translation costs N + M instead of N x M because each
//! dialect only knows this shape: a [`Request`], an [`Answer`], and the [`Event`]s of a streamed
//! answer. Texts that become vectors have shapes of
//! their own ([`EmbedRequest`], [`EmbedAnswer`]). The crate also holds what a request [`Needs`] and what a channel or dialect can carry
//! ([`Capabilities`]), so that policy can tell an eligible channel from an ineligible one.
//!
//! It decides nothing about bytes: how a field is spelled belongs to `dialects`. The one
//! invariant: caller and provider text lives in [`Text`] and [`Json`] only, and neither prints
//! its content in `Debug`.
//!
//! ```
//! use backstop_chat::{Capabilities, Need, Needs, uncovered};
//!
//! let needs = Needs::default().with(Need::Streaming).with(Need::Tools);
//! let channel = Capabilities::all().without(Need::Tools);
//! assert_eq!(uncovered(&needs, &channel), Some(Need::Tools));
//! assert_eq!(uncovered(&needs, &Capabilities::all()), None);
//! ```

mod answer;
mod content;
mod embedding;
mod event;
mod needs;
mod request;
mod usage;

pub use answer::{Answer, Choice, StopReason};
pub use content::{Image, Json, Part, Text};
pub use embedding::{EmbedAnswer, EmbedInput, EmbedRequest, Encoding, Purpose, Truncate, Vector};
pub use event::Event;
pub use needs::{Capabilities, Need, NeedSet, Needs, uncovered};
pub use request::{
    Effort, Extra, Message, Reasoning, Request, ResponseFormat, Role, Tool, ToolChoice, Weight,
};
pub use usage::Usage;

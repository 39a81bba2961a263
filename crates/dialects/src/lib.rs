//! The wire shapes callers and providers speak.
//!
//! A dialect is read in two ways. *Passing through*, when caller and provider speak the same one:
//! [`read_envelope`] finds what the gateway must know, [`splice_request`] and [`add_member`]
//! change exactly that, [`inspect_answer`] and [`StreamReader`] check what comes back; no tree is
//! built. *Translating*, when they differ: through the neutral shapes of `backstop-chat`.
//!
//! Left to others: framing a stream (stream), choosing a channel (policy), what an error's class
//! is (classifier), headers and addresses (providers).
//!
//! The one invariant: **a pass-through changes the named spans and no other byte; a translation
//! that loses a part of the contract says which.**
//!
//! ```
//! use backstop_dialects::{Dialect, Edits, read_envelope, splice_request};
//!
//! let body = bytes::Bytes::from_static(br#"{"model": "fast", "top_p": 0.90}"#);
//! let envelope = read_envelope(Dialect::OpenAiChat, &body)?;
//! let edits = Edits { model: Some("gpt-4o"), ..Edits::default() };
//! let sent = splice_request(Dialect::OpenAiChat, &body, &envelope, &edits);
//! assert_eq!(sent, br#"{"model": "gpt-4o", "top_p": 0.90}"#.as_slice());
//! # Ok::<(), backstop_dialects::BadRequest>(())
//! ```

mod dialect;
mod envelope;
mod operation;
mod splice;

mod answer;
mod choices;
mod counting;
mod embedding;
mod error;
mod stream;
mod translate;

mod anthropic_messages;
mod bedrock_converse;
mod cohere_v2;
mod gemini;
mod openai_chat;
mod openai_responses;

mod json;
mod members;
mod scan;

pub use answer::{AnswerFacts, Malformed, inspect_answer};
pub use counting::{carry_count, inspect_count, read_count_request, write_count_request};
pub use dialect::{Dialect, capabilities, capabilities_between};
pub use embedding::{
    inspect_vectors, read_embed_request, read_vectors, write_embed_request, write_vectors,
};
pub use envelope::{
    BadRequest, Envelope, Fallback, Replay, VectorForm, read_envelope, read_envelope_for,
};
pub use error::{
    CallerError, ProviderError, error_body, error_event, error_header, error_name, error_type,
    read_error, told_by,
};
pub use operation::{Operation, capabilities_for};
pub use splice::{Edits, add_member, remove_member, splice_request};
pub use stream::{Reading, StreamReader, StreamWriter};
pub use translate::{
    Loss, Stamp, Unsupported, WriteOptions, Written, read_answer, read_request, write_answer,
    write_request,
};

//! Amazon Bedrock's `Converse` and `ConverseStream`
//! (docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html), read 2026-11.
//!
//! What is peculiar to it: the model and the wish for a stream stand in the path; a block is an
//! object whose one member says what it is; a stream comes in binary frames, whose headers name
//! the event, and its last one counts the tokens; an error's name stands in a header.

pub(crate) mod answer;
pub(crate) mod error;
pub(crate) mod request;
pub(crate) mod stream;

mod block;
mod usage;

/// The dialect's name on what only it knows.
const OWN: &str = "bedrock-converse";

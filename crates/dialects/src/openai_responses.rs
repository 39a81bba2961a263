//! OpenAI's Responses (platform.openai.com/docs/api-reference/responses, read 2026-11), and what
//! the servers that speak it do differently.
//!
//! A conversation here is a list of items: messages, reasoning, calls and their outputs each stand
//! alone. The neutral shape has turns, so neighbouring items of the model become one message.

pub(crate) mod answer;
pub(crate) mod error;
mod item;
pub(crate) mod request;
pub(crate) mod seal;
pub(crate) mod stream;
mod usage;

/// The dialect's name on what only it knows.
const OWN: &str = "openai-responses";

//! OpenAI's chat completions (platform.openai.com/docs/api-reference/chat) and what
//! the servers that speak it do differently.

pub(crate) mod answer;
pub(crate) mod error;
pub(crate) mod request;
pub(crate) mod stream;
mod usage;

/// The dialect's name on what only it knows.
const OWN: &str = "openai-chat";

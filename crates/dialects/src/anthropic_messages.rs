//! Anthropic's messages (docs.claude.com/en/api/messages).

pub(crate) mod answer;
pub(crate) mod error;
pub(crate) mod request;
pub(crate) mod stream;
mod usage;

/// The dialect's name on what only it knows.
const OWN: &str = "anthropic-messages";

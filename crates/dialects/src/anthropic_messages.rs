//! Anthropic's messages (docs.claude.com/en/api/messages, read 2026-09).

pub(crate) mod answer;
pub(crate) mod error;
pub(crate) mod stream;
mod usage;

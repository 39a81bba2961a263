//! What a model answered, whole.

use serde::Serialize;

use crate::content::{Json, Part, Text};
use crate::usage::Usage;

/// A whole answer.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Answer {
    /// The provider's id for it; empty when it gave none.
    pub id: String,
    /// The model as the provider reports it; empty when it does not.
    pub model: String,
    /// When it was made, in seconds since 1970, where the dialect says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<u64>,
    /// The answers, one unless `n` asked for more.
    pub choices: Vec<Choice>,
    /// Tokens spent, when reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// One of the answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Choice {
    /// Its place among the answers.
    pub index: u32,
    /// What was said, in order.
    pub parts: Vec<Part>,
    /// Why it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<StopReason>,
    /// The stop string that was hit, where the dialect says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_sequence: Option<Text>,
    /// Token probabilities as written; only dialects that share the shape can pass them on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logprobs: Option<Json>,
}

/// Why an answer ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// It was complete.
    EndTurn,
    /// A stop string was hit.
    StopSequence,
    /// The limit on generated tokens was reached.
    MaxTokens,
    /// The context window was full.
    ContextWindow,
    /// The model waits for tool results.
    ToolUse,
    /// Withheld or declined for its content.
    ContentFilter,
    /// The provider paused a long turn; the caller may resume it.
    Pause,
    /// A reason this table does not know, as written.
    Other(String),
}

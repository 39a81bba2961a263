//! What a model answered, piece by piece.

use serde::Serialize;

use crate::answer::StopReason;
use crate::content::Text;
use crate::usage::Usage;

/// One step of a streamed answer. Steps of several choices may interleave; tools are numbered
/// from 0 without gaps within a choice, in order of appearance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// The answer begins.
    Start {
        /// The provider's id; empty when it gave none.
        id: String,
        /// The model as the provider reports it; empty when it does not.
        model: String,
        /// Seconds since 1970, where the dialect says so.
        #[serde(skip_serializing_if = "Option::is_none")]
        created: Option<u64>,
    },
    /// More words.
    Text {
        /// The choice they belong to.
        choice: u32,
        /// The words; never empty.
        text: Text,
    },
    /// More words of a refusal.
    Refusal {
        /// The choice they belong to.
        choice: u32,
        /// The words; never empty.
        text: Text,
    },
    /// More reasoning.
    Reasoning {
        /// The choice it belongs to.
        choice: u32,
        /// The reasoning; never empty.
        text: Text,
    },
    /// The signature over the reasoning so far; ends that piece of reasoning.
    ReasoningSignature {
        /// The choice it belongs to.
        choice: u32,
        /// The signature.
        signature: Text,
    },
    /// A whole piece of reasoning the provider keeps to itself.
    RedactedReasoning {
        /// The choice it belongs to.
        choice: u32,
        /// The opaque data.
        data: Text,
    },
    /// A tool call begins.
    ToolStart {
        /// The choice it belongs to.
        choice: u32,
        /// The call's number within the choice.
        tool: u32,
        /// Ties the result to the call; never empty.
        id: String,
        /// The tool's name.
        name: String,
    },
    /// More of a tool call's arguments.
    ToolArguments {
        /// The choice it belongs to.
        choice: u32,
        /// The call's number within the choice.
        tool: u32,
        /// A piece of JSON text; never empty.
        arguments: Text,
    },
    /// A choice ended.
    Stop {
        /// Which one.
        choice: u32,
        /// Why.
        reason: StopReason,
        /// The stop string that was hit, where the dialect says so.
        #[serde(skip_serializing_if = "Option::is_none")]
        stop_sequence: Option<Text>,
    },
    /// Tokens spent so far; a later one replaces an earlier one.
    Usage(Usage),
    /// The provider said that the stream is complete.
    End,
}

//! Whole answers.

mod read;
mod write;

use backstop_chat::StopReason;

use super::usage;
use crate::answer::{AnswerFacts, Malformed};
use crate::scan::{Fault, Kind, Scanner};
pub(crate) use read::read;
pub(super) use write::stop_word;
pub(crate) use write::write;

/// What a `stopReason` says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The answer ended.
    Ended(StopReason),
    /// The model's output could not be read by its own provider.
    Failed,
}

/// The neutral word for a `stopReason` (API_runtime_Converse).
pub(super) fn stop(word: &str) -> Stop {
    Stop::Ended(match word {
        "end_turn" => StopReason::EndTurn,
        "stop_sequence" => StopReason::StopSequence,
        "max_tokens" => StopReason::MaxTokens,
        "model_context_window_exceeded" => StopReason::ContextWindow,
        "tool_use" => StopReason::ToolUse,
        "guardrail_intervened" | "content_filtered" => StopReason::ContentFilter,
        "malformed_tool_use" | "malformed_model_output" => return Stop::Failed,
        _ => StopReason::Other(word.to_owned()),
    })
}

/// Checks the shape of the answer that comes next. Empty `content` is legal: an empty turn.
pub(crate) fn inspect(s: &mut Scanner<'_>) -> Result<AnswerFacts, Malformed> {
    let mut facts = AnswerFacts::default();
    let (mut content, mut words, mut stopped) = (false, false, false);
    s.object(|s, member| {
        match &*member.key.decode() {
            "output" => s.object_or_skip(|s, member| {
                if !member.is("message") {
                    return s.skip().map(drop);
                }
                s.object_or_skip(|s, member| {
                    content |= member.is("content") && s.peek()? == Kind::Array;
                    s.skip().map(drop)
                })
            })?,
            "stopReason" => {
                if let Some(word) = s.string_or_skip()? {
                    stopped = true;
                    facts.error_inside |= stop(&word.decode()) == Stop::Failed;
                }
            }
            "usage" => facts.usage = usage::scan(s)?,
            // An error's words, and its name where no header has it.
            "message" | "Message" | "__type" => words |= s.string_or_skip()?.is_some(),
            _ => drop(s.skip()?),
        }
        Ok::<(), Fault>(())
    })?;
    facts.error_inside |= words && !content;
    if facts.error_inside || content {
        return Ok(facts);
    }
    let what = if stopped {
        "no content"
    } else {
        "not an answer"
    };
    Err(Malformed::shape(what).with_usage(facts.usage))
}

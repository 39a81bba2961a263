//! Whole answers.

mod read;
mod write;

use backstop_chat::StopReason;

use crate::answer::{AnswerFacts, Malformed, says_error};
use crate::scan::{Fault, Kind, Scanner};
pub(crate) use read::read;
pub(super) use read::tool_id;
pub(super) use write::finish_word;
pub(crate) use write::write;

/// What a `finish_reason` says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Finish {
    /// The answer ended.
    Ended(StopReason),
    /// The provider failed.
    Failed,
}

/// The neutral word for a `finish_reason` (docs.cohere.com/reference/chat).
pub(super) fn finish(word: &str) -> Finish {
    Finish::Ended(match word {
        "COMPLETE" => StopReason::EndTurn,
        "STOP_SEQUENCE" => StopReason::StopSequence,
        "MAX_TOKENS" => StopReason::MaxTokens,
        "TOOL_CALL" => StopReason::ToolUse,
        "ERROR" | "TIMEOUT" => return Finish::Failed,
        _ => StopReason::Other(word.to_owned()),
    })
}

/// Checks the shape of the answer that comes next.
pub(crate) fn inspect(s: &mut Scanner<'_>) -> Result<AnswerFacts, Malformed> {
    let mut facts = AnswerFacts::default();
    let (mut message, mut finished) = (false, false);
    s.object(|s, member| {
        match &*member.key.decode() {
            "error" => facts.error_inside |= says_error(s)?,
            // An error's words where an answer has its message.
            "message" => match s.peek()? {
                Kind::Object => {
                    message = true;
                    s.skip()?;
                }
                Kind::String => facts.error_inside |= !s.string()?.is_empty(),
                _ => drop(s.skip()?),
            },
            "finish_reason" => {
                let word = s.string_or_skip()?.map(|word| word.decode());
                finished |= word.is_some();
                facts.error_inside |= word.is_some_and(|word| finish(&word) == Finish::Failed);
            }
            "usage" => facts.usage = super::usage::scan(s)?,
            _ => drop(s.skip()?),
        }
        Ok::<(), Fault>(())
    })?;
    match (facts.error_inside, message, finished) {
        (true, _, _) | (false, true, _) => Ok(facts),
        (false, false, true) => Err(Malformed::shape("no message").with_usage(facts.usage)),
        (false, false, false) => Err(Malformed::shape("not an answer").with_usage(facts.usage)),
    }
}

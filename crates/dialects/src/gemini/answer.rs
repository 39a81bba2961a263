//! Whole answers.

mod read;
mod write;

use backstop_chat::StopReason;

use crate::answer::{AnswerFacts, Malformed, says_error};
use crate::scan::{Fault, Kind, Scanner};
pub(super) use read::or_hash;
pub(crate) use read::read;
pub(super) use write::finish_word;
pub(crate) use write::write;

/// What a `finishReason` says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Finish {
    /// Nothing: there is none yet.
    Open,
    /// The answer ended.
    Ended(StopReason),
    /// The model broke off with something that is no answer.
    Broken,
}

/// The neutral word for a `finishReason`
/// (ai.google.dev/api/generate-content#FinishReason, and Vertex's `MODEL_ARMOR`).
pub(super) fn finish(word: Option<&str>) -> Finish {
    Finish::Ended(match word {
        None | Some("" | "FINISH_REASON_UNSPECIFIED") => return Finish::Open,
        Some("STOP") => StopReason::EndTurn,
        Some("MAX_TOKENS") => StopReason::MaxTokens,
        Some(
            "SAFETY"
            | "RECITATION"
            | "PROHIBITED_CONTENT"
            | "BLOCKLIST"
            | "SPII"
            | "LANGUAGE"
            | "MODEL_ARMOR"
            | "IMAGE_SAFETY"
            | "IMAGE_PROHIBITED_CONTENT"
            | "IMAGE_RECITATION",
        ) => StopReason::ContentFilter,
        Some(
            "MALFORMED_FUNCTION_CALL"
            | "UNEXPECTED_TOOL_CALL"
            | "TOO_MANY_TOOL_CALLS"
            | "MALFORMED_RESPONSE"
            | "MISSING_THOUGHT_SIGNATURE",
        ) => return Finish::Broken,
        Some(word) => StopReason::Other(word.to_owned()),
    })
}

/// The model broke off.
pub(super) const BROKEN: Malformed = Malformed::shape("a turn that the model broke off");

/// Checks the shape of the answer that comes next.
pub(crate) fn inspect(s: &mut Scanner<'_>) -> Result<AnswerFacts, Malformed> {
    let mut facts = AnswerFacts::default();
    let (mut candidates, mut blocked) = (0_u32, false);
    let mut wrong = None;
    s.object(|s, member| {
        match &*member.key.decode() {
            "error" => facts.error_inside |= says_error(s)?,
            "modelVersion" => {
                facts.model = s.string_or_skip()?.map(|model| model.decode().into_owned());
            }
            "usageMetadata" => facts.usage = super::usage::scan(s)?,
            "promptFeedback" => blocked |= is_blocked(s)?,
            "candidates" => s.array_or_skip(|s| {
                candidates += 1;
                let found = candidate(s)?;
                wrong = wrong.or(found);
                Ok::<(), Fault>(())
            })?,
            _ => drop(s.skip()?),
        }
        Ok::<(), Fault>(())
    })?;
    if facts.error_inside || (blocked && candidates == 0) {
        return Ok(facts);
    }
    if candidates == 0 {
        wrong = Some(Malformed::shape("no candidates"));
    }
    match wrong {
        Some(wrong) => Err(wrong.with_usage(facts.usage)),
        None => Ok(facts),
    }
}

/// Whether the prompt feedback that comes next says that the prompt was refused.
pub(super) fn is_blocked(s: &mut Scanner<'_>) -> Result<bool, Fault> {
    let mut blocked = false;
    s.object_or_skip(|s, member| {
        if member.is("blockReason") {
            blocked |= s.string_or_skip()?.is_some_and(|reason| !reason.is_empty());
            return Ok(());
        }
        s.skip().map(drop)
    })?;
    Ok(blocked)
}

/// What is wrong with the candidate that comes next. A withheld one may lack its content.
fn candidate(s: &mut Scanner<'_>) -> Result<Option<Malformed>, Fault> {
    if s.peek()? != Kind::Object {
        s.skip()?;
        return Ok(Some(Malformed::shape("a candidate that is not an object")));
    }
    let mut whole = false;
    let mut broken = false;
    s.object(|s, member| {
        if member.is("content") {
            whole |= s.peek()? == Kind::Object;
            s.skip()?;
        } else if member.is("finishReason") {
            let word = s.string_or_skip()?.map(|word| word.decode());
            let finish = finish(word.as_deref());
            whole |= finish != Finish::Open;
            broken |= finish == Finish::Broken;
        } else {
            s.skip()?;
        }
        Ok::<(), Fault>(())
    })?;
    if broken {
        return Ok(Some(BROKEN));
    }
    Ok((!whole).then_some(Malformed::shape(
        "a candidate with neither content nor finishReason",
    )))
}

//! Whole answers.

mod read;
mod write;

use crate::answer::{AnswerFacts, Malformed, says_error};
use crate::scan::{Fault, Kind, Scanner};
pub(crate) use read::read;
pub(super) use read::{Content, Details, Piece, stop_reason, tool_id};
pub(crate) use write::write;
pub(super) use write::{finish_reason, write_detail, write_sealed, write_usage};

/// Checks the shape of the answer that comes next.
pub(crate) fn inspect(s: &mut Scanner<'_>) -> Result<AnswerFacts, Malformed> {
    let mut facts = AnswerFacts::default();
    let mut choices = 0_u32;
    let mut wrong = None;
    s.object(|s, member| {
        match &*member.key.decode() {
            "error" => facts.error_inside |= says_error(s)?,
            "model" => facts.model = s.string_or_skip()?.map(|model| model.decode().into_owned()),
            "usage" => facts.usage = super::usage::scan(s)?,
            "choices" => s.array_or_skip(|s| {
                choices += 1;
                let found = choice(s, &mut facts.error_inside)?;
                wrong = wrong.or(found);
                Ok::<(), Fault>(())
            })?,
            _ => drop(s.skip()?),
        }
        Ok::<(), Fault>(())
    })?;
    if facts.error_inside {
        return Ok(facts);
    }
    if choices == 0 {
        wrong = Some("no choices");
    }
    match wrong {
        Some(what) => Err(Malformed::shape(what).with_usage(facts.usage)),
        None => Ok(facts),
    }
}

/// What is wrong with the choice that comes next. A filtered one may lack its message.
fn choice(s: &mut Scanner<'_>, error: &mut bool) -> Result<Option<&'static str>, Fault> {
    if s.peek()? != Kind::Object {
        s.skip()?;
        return Ok(Some("a choice that is not an object"));
    }
    let mut whole = false;
    s.object(|s, member| {
        match &*member.key.decode() {
            "error" => *error |= says_error(s)?,
            "message" => {
                whole |= s.peek()? == Kind::Object;
                s.skip()?;
            }
            "finish_reason" => whole |= s.string_or_skip()?.is_some(),
            _ => drop(s.skip()?),
        }
        Ok::<(), Fault>(())
    })?;
    Ok((!whole).then_some("a choice with neither message nor finish_reason"))
}

//! Whole answers.

mod read;
mod write;

use crate::answer::{AnswerFacts, Malformed, says_error};
use crate::scan::{Fault, Kind, Scanner};
pub(crate) use read::read;
pub(super) use read::seconds;
pub(crate) use write::write;
pub(super) use write::{Head, write_response};

/// Checks the shape of the answer that comes next. An empty `output` is legal: all tokens went into
/// reasoning that is not shown, or the work goes on in the background.
pub(crate) fn inspect(s: &mut Scanner<'_>) -> Result<AnswerFacts, Malformed> {
    let mut facts = AnswerFacts::default();
    let mut output = false;
    s.object(|s, member| {
        match &*member.key.decode() {
            "error" => facts.error_inside |= says_error(s)?,
            "status" => {
                facts.error_inside |= s.string_or_skip()?.is_some_and(|is| is.is("failed"));
            }
            "id" => facts.id = s.string_or_skip()?.map(|id| id.decode().into_owned()),
            "model" => facts.model = s.string_or_skip()?.map(|model| model.decode().into_owned()),
            "usage" => facts.usage = super::usage::scan(s)?,
            "output" => {
                output = s.peek()? == Kind::Array;
                s.skip()?;
            }
            _ => drop(s.skip()?),
        }
        Ok::<(), Fault>(())
    })?;
    if facts.error_inside || output {
        return Ok(facts);
    }
    Err(Malformed::shape("no output"))
}

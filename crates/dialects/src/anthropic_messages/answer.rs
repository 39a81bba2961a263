//! Whole answers.

mod read;
mod write;

use super::usage::Counts;
use crate::answer::{AnswerFacts, Malformed, says_error};
use crate::scan::{Fault, Kind, Scanner};
pub(crate) use read::read;
pub(super) use read::stop_reason;
pub(crate) use write::write;
pub(super) use write::{Said, stop_word, write_usage};

/// Checks the shape of the answer that comes next. An empty `content` is legal: a refusal or an
/// empty turn.
pub(crate) fn inspect(s: &mut Scanner<'_>) -> Result<AnswerFacts, Malformed> {
    let mut facts = AnswerFacts::default();
    let mut message = false;
    let mut content = false;
    s.object(|s, member| {
        match &*member.key.decode() {
            "type" => {
                let kind = s.string_or_skip()?;
                message = kind.is_some_and(|kind| kind.is("message"));
                facts.error_inside |= kind.is_some_and(|kind| kind.is("error"));
            }
            "error" => facts.error_inside |= says_error(s)?,
            "model" => facts.model = s.string_or_skip()?.map(|model| model.decode().into_owned()),
            "usage" => facts.usage = Counts::scan(s)?.usage(),
            "content" => {
                content = s.peek()? == Kind::Array;
                s.skip()?;
            }
            _ => drop(s.skip()?),
        }
        Ok::<(), Fault>(())
    })?;
    if facts.error_inside {
        return Ok(facts);
    }
    let what = match (message, content) {
        (false, _) => "not a message",
        (_, false) => "no content",
        _ => return Ok(facts),
    };
    Err(Malformed::shape(what).with_usage(facts.usage))
}

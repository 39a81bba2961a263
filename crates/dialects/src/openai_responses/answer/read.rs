//! From the wire to the neutral shape.

use backstop_chat::{Answer, Choice, Part};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::{item, usage};
use crate::answer::Malformed;
use crate::scan::Scanner;

#[derive(Deserialize)]
struct Body<'a> {
    id: Option<String>,
    model: Option<String>,
    created_at: Option<serde_json::Number>,
    status: Option<String>,
    incomplete_details: Option<Incomplete>,
    #[serde(borrow)]
    output: Vec<&'a RawValue>,
    usage: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Incomplete {
    reason: Option<String>,
}

pub(crate) fn read(body: &[u8]) -> Result<Answer, Malformed> {
    let body: Body<'_> = serde_json::from_slice(body)
        .map_err(|_| Malformed::shape("an answer of the wrong shape"))?;
    let mut parts = Vec::new();
    for value in body.output {
        item::parts(value, &mut parts)?;
    }
    let usage = match body.usage {
        Some(value) => usage::scan(&mut Scanner::new(value.get()))?,
        None => None,
    };
    let called = parts
        .iter()
        .any(|part| matches!(part, Part::ToolCall { .. }));
    let reason = body.incomplete_details.and_then(|details| details.reason);
    let status = body.status.as_deref().unwrap_or("completed");
    Ok(Answer {
        id: body.id.unwrap_or_default(),
        model: body.model.unwrap_or_default(),
        created: body.created_at.as_ref().and_then(seconds),
        choices: vec![Choice {
            index: 0,
            stop: Some(item::stop_reason(status, reason, called)),
            stop_sequence: None,
            logprobs: None,
            parts,
        }],
        usage,
    })
}

/// Whole seconds; some servers write them with a fraction.
pub(in crate::openai_responses) fn seconds(number: &serde_json::Number) -> Option<u64> {
    let whole = || {
        let text = number.to_string();
        text.split_once('.')
            .and_then(|(whole, _)| whole.parse().ok())
    };
    number.as_u64().or_else(whole)
}

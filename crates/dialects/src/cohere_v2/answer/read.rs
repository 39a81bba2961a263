//! From the wire to the neutral shape.

use backstop_chat::{Answer, Choice, Part, StopReason, Text};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::{OWN, usage};
use super::{Finish, finish};
use crate::answer::Malformed;
use crate::members::as_string;
use crate::scan::Scanner;

const SHAPE: Malformed = Malformed::shape("an answer of the wrong shape");

#[derive(Deserialize)]
struct Body<'a> {
    id: Option<String>,
    #[serde(borrow)]
    message: Said<'a>,
    finish_reason: Option<String>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Said<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    tool_plan: Option<Text>,
    #[serde(borrow)]
    tool_calls: Option<Vec<Call<'a>>>,
    #[serde(borrow)]
    citations: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Block {
    #[serde(rename = "type")]
    kind: String,
    text: Option<Text>,
    thinking: Option<Text>,
}

#[derive(Deserialize)]
struct Call<'a> {
    id: Option<String>,
    #[serde(borrow)]
    function: Function<'a>,
}

#[derive(Deserialize)]
struct Function<'a> {
    name: String,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

pub(crate) fn read(body: &[u8]) -> Result<Answer, Malformed> {
    let body: Body<'_> = serde_json::from_slice(body).map_err(|_| SHAPE)?;
    let id = body.id.unwrap_or_default();
    let stop = match body.finish_reason.as_deref().map(finish) {
        Some(Finish::Failed) => return Err(Malformed::shape("an answer that failed")),
        Some(Finish::Ended(stop)) => Some(stop),
        None => None,
    };
    let parts = parts(body.message, &id)?;
    let called = parts
        .iter()
        .any(|part| matches!(part, Part::ToolCall { .. }));
    Ok(Answer {
        model: String::new(),
        created: None,
        choices: vec![Choice {
            index: 0,
            parts,
            stop: match stop {
                Some(StopReason::EndTurn) if called => Some(StopReason::ToolUse),
                stop => stop,
            },
            stop_sequence: None,
            logprobs: None,
        }],
        usage: match body.usage {
            Some(value) => usage::scan(&mut Scanner::new(value.get()))?,
            None => None,
        },
        id,
    })
}

fn parts(said: Said<'_>, id: &str) -> Result<Vec<Part>, Malformed> {
    let mut parts = Vec::new();
    // What the model means to do with its tools is reasoning, and comes before the calls.
    if let Some(text) = said.tool_plan.filter(|text| !text.is_empty()) {
        parts.push(Part::Reasoning {
            text,
            signature: None,
        });
    }
    if let Some(content) = said.content.filter(|value| value.get() != "null") {
        if let Some(text) = as_string(content) {
            if !text.is_empty() {
                parts.push(Part::Text(text.into()));
            }
        } else {
            let blocks: Vec<&RawValue> = serde_json::from_str(content.get()).map_err(|_| SHAPE)?;
            for value in blocks {
                parts.extend(block(value)?);
            }
        }
    }
    for (tool, call) in (0..).zip(said.tool_calls.unwrap_or_default()) {
        parts.push(Part::ToolCall {
            id: call
                .id
                .filter(|id| !id.is_empty())
                .unwrap_or_else(|| tool_id(id, tool)),
            name: call.function.name,
            arguments: arguments(call.function.arguments).into(),
        });
    }
    if let Some(value) = said.citations.filter(|value| value.get() != "null") {
        parts.push(Part::Other {
            dialect: OWN,
            kind: "citations".to_owned(),
            value: value.into(),
        });
    }
    Ok(parts)
}

fn block(value: &RawValue) -> Result<Option<Part>, Malformed> {
    let block: Block = serde_json::from_str(value.get()).map_err(|_| SHAPE)?;
    Ok(match block.kind.as_str() {
        "text" => block.text.filter(|text| !text.is_empty()).map(Part::Text),
        "thinking" => block
            .thinking
            .filter(|text| !text.is_empty())
            .map(|text| Part::Reasoning {
                text,
                signature: None,
            }),
        _ => Some(Part::Other {
            dialect: OWN,
            kind: block.kind,
            value: value.into(),
        }),
    })
}

/// Arguments as JSON text: null and nothing are an empty object.
fn arguments(written: Option<&RawValue>) -> String {
    let text = match written.map(RawValue::get) {
        None | Some("null") => String::new(),
        Some(_) => written.and_then(as_string).unwrap_or_else(|| {
            // The object itself, where text belongs.
            written.map(RawValue::get).unwrap_or_default().to_owned()
        }),
    };
    if text.trim().is_empty() {
        "{}".to_owned()
    } else {
        text
    }
}

/// An id for a call that came without one.
pub(in crate::cohere_v2) fn tool_id(answer: &str, tool: u32) -> String {
    let safe: String = answer
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .take(32)
        .collect();
    format!("call_{safe}_{tool}")
}

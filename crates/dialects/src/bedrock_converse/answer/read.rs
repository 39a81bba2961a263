//! From the wire to the neutral shape.

use backstop_chat::{Answer, Choice, Part, Text};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::{OWN, block, usage};
use super::{Stop, stop};
use crate::answer::Malformed;
use crate::members::as_string;
use crate::scan::Scanner;

const SHAPE: Malformed = Malformed::shape("an answer of the wrong shape");

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    #[serde(borrow)]
    output: Output<'a>,
    stop_reason: Option<String>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    additional_model_response_fields: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Output<'a> {
    #[serde(borrow)]
    message: Message<'a>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    content: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Call<'a> {
    tool_use_id: String,
    name: String,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct OfTheModel {
    stop_sequence: Option<Text>,
}

pub(crate) fn read(body: &[u8]) -> Result<Answer, Malformed> {
    let body: Body<'_> = serde_json::from_slice(body).map_err(|_| SHAPE)?;
    let stop = match body.stop_reason.as_deref().map(stop) {
        Some(Stop::Failed) => return Err(Malformed::shape("an answer that failed")),
        Some(Stop::Ended(reason)) => Some(reason),
        None => None,
    };
    let parts: Result<Vec<Part>, Malformed> =
        body.output.message.content.into_iter().map(part).collect();
    // Where the caller, or its model, tells it.
    let stop_sequence = body
        .additional_model_response_fields
        .and_then(|fields| serde_json::from_str::<OfTheModel>(fields.get()).ok())
        .and_then(|fields| fields.stop_sequence);
    Ok(Answer {
        choices: vec![Choice {
            index: 0,
            parts: parts?,
            stop,
            stop_sequence,
            logprobs: None,
        }],
        usage: match body.usage {
            Some(value) => usage::scan(&mut Scanner::new(value.get()))?,
            None => None,
        },
        ..Answer::default()
    })
}

fn part(value: &RawValue) -> Result<Part, Malformed> {
    let (kind, inner) = block::member(value).ok_or(SHAPE)?;
    Ok(match kind.as_str() {
        "text" => Part::Text(as_string(inner).ok_or(SHAPE)?.into()),
        "toolUse" => {
            let call: Call<'_> = serde_json::from_str(inner.get()).map_err(|_| SHAPE)?;
            Part::ToolCall {
                id: call.tool_use_id,
                name: call.name,
                arguments: call.input.map_or("{}", RawValue::get).into(),
            }
        }
        "reasoningContent" => block::reasoning(inner).ok_or(SHAPE)?,
        _ => Part::Other {
            dialect: OWN,
            kind,
            value: value.into(),
        },
    })
}

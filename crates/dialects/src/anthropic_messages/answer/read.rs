//! From the wire to the neutral shape.

use backstop_chat::{Answer, Choice, Part, StopReason, Text};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::usage::Counts;
use crate::answer::Malformed;
use crate::anthropic_messages::OWN;
use crate::scan::Scanner;

const SHAPE: Malformed = Malformed::shape("an answer of the wrong shape");

#[derive(Deserialize)]
struct Body<'a> {
    id: Option<String>,
    model: Option<String>,
    #[serde(borrow)]
    content: Vec<&'a RawValue>,
    stop_reason: Option<String>,
    stop_sequence: Option<Text>,
    usage: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(rename = "type")]
    kind: String,
    text: Option<Text>,
    thinking: Option<Text>,
    signature: Option<Text>,
    data: Option<Text>,
    id: Option<String>,
    name: Option<String>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
}

pub(crate) fn read(body: &[u8]) -> Result<Answer, Malformed> {
    let body: Body<'_> = serde_json::from_slice(body).map_err(|_| SHAPE)?;
    let parts: Result<Vec<Part>, Malformed> = body.content.into_iter().map(part).collect();
    let usage = match body.usage {
        Some(value) => Counts::scan(&mut Scanner::new(value.get()))?.usage(),
        None => None,
    };
    Ok(Answer {
        id: body.id.unwrap_or_default(),
        model: body.model.unwrap_or_default(),
        created: None,
        choices: vec![Choice {
            index: 0,
            parts: parts?,
            stop: body.stop_reason.map(stop_reason),
            stop_sequence: body.stop_sequence,
            logprobs: None,
        }],
        usage,
    })
}

fn part(value: &RawValue) -> Result<Part, Malformed> {
    let other = |kind: String| Part::Other {
        dialect: OWN,
        kind,
        value: value.into(),
    };
    let Ok(block) = serde_json::from_str::<Block<'_>>(value.get()) else {
        // A block may use these names for something else; then it is no block of ours.
        #[derive(Deserialize)]
        struct Kind {
            #[serde(rename = "type")]
            kind: String,
        }
        let block: Kind = serde_json::from_str(value.get()).map_err(|_| SHAPE)?;
        return match block.kind.as_str() {
            "text" | "thinking" | "redacted_thinking" | "tool_use" => Err(SHAPE),
            _ => Ok(other(block.kind)),
        };
    };
    Ok(match block.kind.as_str() {
        "text" => Part::Text(block.text.ok_or(SHAPE)?),
        "thinking" => Part::Reasoning {
            text: block.thinking.ok_or(SHAPE)?,
            signature: block.signature.filter(|text| !text.is_empty()),
        },
        "redacted_thinking" => Part::RedactedReasoning(block.data.ok_or(SHAPE)?),
        "tool_use" => Part::ToolCall {
            id: block.id.ok_or(SHAPE)?,
            name: block.name.ok_or(SHAPE)?,
            arguments: block.input.map_or("{}", RawValue::get).into(),
        },
        _ => other(block.kind),
    })
}

/// The neutral word for a `stop_reason`.
pub(in crate::anthropic_messages) fn stop_reason(word: String) -> StopReason {
    match word.as_str() {
        "end_turn" => StopReason::EndTurn,
        "stop_sequence" => StopReason::StopSequence,
        "max_tokens" => StopReason::MaxTokens,
        "model_context_window_exceeded" => StopReason::ContextWindow,
        "tool_use" => StopReason::ToolUse,
        "refusal" => StopReason::ContentFilter,
        "pause_turn" => StopReason::Pause,
        _ => StopReason::Other(word),
    }
}

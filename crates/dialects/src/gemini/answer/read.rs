//! From the wire to the neutral shape.

use std::hash::{DefaultHasher, Hash, Hasher};

use backstop_chat::{Answer, Choice, Part, StopReason};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::part::{Piece, other};
use super::super::signature::made_up;
use super::super::usage;
use super::{BROKEN, Finish, finish};
use crate::answer::Malformed;
use crate::scan::Scanner;

const SHAPE: Malformed = Malformed::shape("an answer of the wrong shape");

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    #[serde(borrow, default)]
    candidates: Option<Vec<Candidate<'a>>>,
    prompt_feedback: Option<Feedback>,
    #[serde(borrow)]
    usage_metadata: Option<&'a RawValue>,
    model_version: Option<String>,
    response_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    #[serde(borrow)]
    content: Option<Content<'a>>,
    finish_reason: Option<String>,
    index: Option<u32>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow)]
    parts: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback {
    block_reason: Option<String>,
}

pub(crate) fn read(data: &[u8]) -> Result<Answer, Malformed> {
    let body: Body<'_> = serde_json::from_slice(data).map_err(|_| SHAPE)?;
    let id = body.response_id.unwrap_or_default();
    let named = or_hash(&id, data);
    let mut choices = Vec::new();
    for (index, candidate) in (0..).zip(body.candidates.unwrap_or_default()) {
        let index = candidate.index.unwrap_or(index);
        let stop = match finish(candidate.finish_reason.as_deref()) {
            Finish::Open => None,
            Finish::Ended(stop) => Some(stop),
            Finish::Broken => return Err(BROKEN),
        };
        let pieces = candidate.content.and_then(|content| content.parts);
        let parts = parts(pieces.unwrap_or_default(), &named, index)?;
        // A call ends like any other answer here.
        let called = parts
            .iter()
            .any(|part| matches!(part, Part::ToolCall { .. }));
        let stop = match stop {
            Some(StopReason::EndTurn) if called => Some(StopReason::ToolUse),
            stop => stop,
        };
        choices.push(Choice {
            index,
            parts,
            stop,
            stop_sequence: None,
            logprobs: None,
        });
    }
    let feedback = body.prompt_feedback.and_then(|said| said.block_reason);
    if choices.is_empty() {
        feedback
            .filter(|reason| !reason.is_empty())
            .ok_or(Malformed::shape("no candidates"))?;
        choices.push(Choice {
            index: 0,
            parts: Vec::new(),
            stop: Some(StopReason::ContentFilter),
            stop_sequence: None,
            logprobs: None,
        });
    }
    Ok(Answer {
        id,
        model: body.model_version.unwrap_or_default(),
        created: None,
        choices,
        usage: match body.usage_metadata {
            Some(value) => usage::scan(&mut Scanner::new(value.get()))?,
            None => None,
        },
    })
}

/// What names an answer in ids made up for it: its own id, or its content.
pub(in crate::gemini) fn or_hash(id: &str, data: &[u8]) -> String {
    if !id.is_empty() {
        return id.to_owned();
    }
    let mut hasher = DefaultHasher::new();
    data.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

fn parts(pieces: Vec<&RawValue>, id: &str, choice: u32) -> Result<Vec<Part>, Malformed> {
    let mut parts = Vec::with_capacity(pieces.len());
    let mut tools = 0;
    for value in pieces {
        let piece: Piece<'_> = serde_json::from_str(value.get()).map_err(|_| SHAPE)?;
        let signature = piece.thought_signature;
        if let Some(mut call) = piece.function_call {
            let ours = made_up(id, choice, tools);
            tools += 1;
            parts.push(Part::ToolCall {
                id: call.packed_id(signature.as_deref(), ours),
                arguments: call.arguments().into(),
                name: call.name.ok_or(SHAPE)?,
            });
        } else if let Some(text) = piece.text {
            if piece.thought == Some(true) {
                parts.push(Part::Reasoning {
                    text,
                    signature: signature.map(Into::into),
                });
            } else if !text.is_empty() {
                parts.push(Part::Text(text));
            }
        } else if let Some(image) = piece
            .inline_data
            .and_then(super::super::part::Blob::into_image)
        {
            parts.push(Part::Image(image));
        } else {
            parts.push(other(value));
        }
    }
    Ok(parts)
}

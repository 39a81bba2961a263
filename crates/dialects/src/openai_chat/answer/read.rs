//! From the wire to the neutral shape.

use backstop_chat::{Answer, Choice, Part, StopReason, Text};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::usage;
use crate::answer::{Malformed, is_hollow};
use crate::members::as_string;
use crate::openai_chat::OWN;
use crate::scan::Scanner;

#[derive(Deserialize)]
struct Body<'a> {
    id: Option<String>,
    model: Option<String>,
    created: Option<serde_json::Number>,
    #[serde(borrow)]
    choices: Vec<Entry<'a>>,
    usage: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Entry<'a> {
    index: Option<u32>,
    #[serde(borrow)]
    message: Option<Said<'a>>,
    finish_reason: Option<String>,
    logprobs: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Said<'a> {
    content: Option<Content>,
    refusal: Option<Text>,
    reasoning_content: Option<Text>,
    reasoning: Option<Text>,
    reasoning_details: Option<Details>,
    #[serde(borrow)]
    tool_calls: Option<Vec<Call<'a>>>,
    audio: Option<&'a RawValue>,
    annotations: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Call<'a> {
    id: Option<String>,
    #[serde(borrow)]
    function: Option<Function<'a>>,
}

#[derive(Deserialize)]
struct Function<'a> {
    name: String,
    /// Text by the book; some servers give the object itself.
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

/// Text, or Mistral's pieces of thinking and text.
#[derive(Deserialize)]
#[serde(untagged)]
pub(in crate::openai_chat) enum Content {
    Text(Text),
    Pieces(Vec<Piece>),
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(in crate::openai_chat) enum Piece {
    Text {
        text: Text,
    },
    Thinking {
        thinking: Vec<Thought>,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
pub(in crate::openai_chat) struct Thought {
    pub(in crate::openai_chat) text: Option<Text>,
}

/// OpenRouter's reasoning with its signatures.
pub(in crate::openai_chat) type Details = Vec<Detail>;

#[derive(Deserialize)]
pub(in crate::openai_chat) struct Detail {
    #[serde(rename = "type")]
    pub(in crate::openai_chat) kind: Option<String>,
    pub(in crate::openai_chat) text: Option<Text>,
    pub(in crate::openai_chat) signature: Option<Text>,
    pub(in crate::openai_chat) data: Option<Text>,
}

pub(crate) fn read(body: &[u8]) -> Result<Answer, Malformed> {
    let body: Body<'_> = serde_json::from_slice(body)
        .map_err(|_| Malformed::shape("an answer of the wrong shape"))?;
    if body.choices.is_empty() {
        return Err(Malformed::shape("no choices"));
    }
    let id = body.id.unwrap_or_default();
    let mut choices = Vec::with_capacity(body.choices.len());
    for (index, entry) in (0..).zip(body.choices) {
        choices.push(Choice {
            index: entry.index.unwrap_or(index),
            stop: entry.finish_reason.map(stop_reason),
            stop_sequence: None,
            logprobs: entry
                .logprobs
                .filter(|value| value.get() != "null")
                .map(Into::into),
            parts: entry
                .message
                .map_or_else(Vec::new, |said| parts(said, &id, index)),
        });
    }
    let usage = match body.usage {
        Some(value) => usage::scan(&mut Scanner::new(value.get()))?,
        None => None,
    };
    Ok(Answer {
        model: body.model.unwrap_or_default(),
        created: body.created.and_then(|created| created.as_u64()),
        choices,
        usage,
        id,
    })
}

fn parts(said: Said<'_>, id: &str, choice: u32) -> Vec<Part> {
    let mut parts = Vec::new();
    reasoning(&said, &mut parts);
    match said.content {
        Some(Content::Text(text)) if !text.is_empty() => parts.push(Part::Text(text)),
        Some(Content::Pieces(pieces)) => pieces.into_iter().for_each(|piece| match piece {
            Piece::Text { text } => parts.push(Part::Text(text)),
            Piece::Thinking { thinking } => {
                let mut text = Text::default();
                for thought in thinking {
                    text.push_str(thought.text.as_deref().unwrap_or_default());
                }
                parts.push(Part::Reasoning {
                    text,
                    signature: None,
                });
            }
            Piece::Other => {}
        }),
        _ => {}
    }
    if let Some(words) = said.refusal.filter(|words| !words.is_empty()) {
        parts.push(Part::Refusal(words));
    }
    for (tool, call) in (0..).zip(said.tool_calls.unwrap_or_default()) {
        let Some(function) = call.function else {
            continue;
        };
        let arguments = function.arguments.filter(|value| value.get() != "null");
        parts.push(Part::ToolCall {
            id: call
                .id
                .filter(|id| !id.is_empty())
                .unwrap_or_else(|| tool_id(id, choice, tool)),
            name: function.name,
            arguments: arguments
                .map_or_else(String::new, |value| {
                    as_string(value).unwrap_or_else(|| value.get().to_owned())
                })
                .into(),
        });
    }
    for (kind, value) in [("audio", said.audio), ("annotations", said.annotations)] {
        if let Some(value) = value.filter(|value| value.get() != "null" && !is_hollow(value.get()))
        {
            parts.push(Part::Other {
                dialect: OWN,
                kind: kind.to_owned(),
                value: value.into(),
            });
        }
    }
    parts
}

/// Reasoning: with its signatures where there are any, else in the open under either name.
fn reasoning(said: &Said<'_>, parts: &mut Vec<Part>) {
    let details = said.reasoning_details.iter().flatten();
    parts.extend(details.filter_map(|detail| match detail.kind.as_deref() {
        Some("reasoning.text") => Some(Part::Reasoning {
            text: detail.text.clone().unwrap_or_default(),
            signature: detail.signature.clone().filter(|text| !text.is_empty()),
        }),
        Some("reasoning.encrypted") => detail.data.clone().map(Part::RedactedReasoning),
        _ => None,
    }));
    let open = said.reasoning.as_ref().or(said.reasoning_content.as_ref());
    if parts.is_empty()
        && let Some(text) = open.filter(|text| !text.is_empty())
    {
        parts.push(Part::Reasoning {
            text: text.clone(),
            signature: None,
        });
    }
}

/// The neutral word for a `finish_reason`.
pub(in crate::openai_chat) fn stop_reason(word: String) -> StopReason {
    match word.as_str() {
        "stop" => StopReason::EndTurn,
        // The second is Mistral's.
        "length" | "model_length" => StopReason::MaxTokens,
        "tool_calls" | "function_call" => StopReason::ToolUse,
        "content_filter" => StopReason::ContentFilter,
        _ => StopReason::Other(word),
    }
}

/// An id for a tool call whose server gave none: the same for the same call, and another one in
/// another answer.
pub(in crate::openai_chat) fn tool_id(answer: &str, choice: u32, tool: u32) -> String {
    let safe: String = answer
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .take(32)
        .collect();
    format!("call_{safe}_{choice}_{tool}")
}

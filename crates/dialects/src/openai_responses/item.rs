//! What a model puts out: messages, calls, reasoning, each an item with an id of its own.

use backstop_chat::{Part, StopReason, Text};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{OWN, seal};
use crate::answer::{Malformed, is_hollow};
use crate::json::{Array, Object};
use crate::members::as_string;

/// An item of an output, read.
pub(super) enum Item<'a> {
    /// Words, in pieces.
    Message(Vec<Piece<'a>>),
    /// A call of a function that the caller runs.
    Call(Call),
    /// Reasoning, in the open or sealed.
    Reasoning {
        /// What can be read of it; empty when all of it is sealed.
        text: Text,
        /// The sealed part.
        seal: Option<Text>,
    },
    /// A provider-side tool at work, and whatever comes to be added.
    Other(String),
}

/// A call of a function.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: Text,
}

/// A piece of a message: words, or a refusal.
#[derive(Deserialize)]
pub(super) struct Piece<'a> {
    pub(super) text: Option<Text>,
    pub(super) refusal: Option<Text>,
    #[serde(borrow)]
    pub(super) annotations: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Kind {
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
struct MessageItem<'a> {
    #[serde(borrow, default)]
    content: Option<Vec<Piece<'a>>>,
}

#[derive(Deserialize)]
struct CallItem<'a> {
    id: Option<String>,
    call_id: Option<String>,
    name: String,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ReasoningItem {
    summary: Option<Vec<Thought>>,
    content: Option<Vec<Thought>>,
    encrypted_content: Option<String>,
}

#[derive(Deserialize)]
struct Thought {
    text: Option<Text>,
}

const SHAPE: Malformed = Malformed::shape("an output item of the wrong shape");

/// Reads an item.
pub(super) fn read(value: &RawValue) -> Result<Item<'_>, Malformed> {
    let value = value.get();
    let kind: Kind = serde_json::from_str(value).map_err(|_| SHAPE)?;
    Ok(match kind.kind.as_str() {
        "message" => {
            let item: MessageItem<'_> = serde_json::from_str(value).map_err(|_| SHAPE)?;
            Item::Message(item.content.unwrap_or_default())
        }
        "function_call" => {
            let item: CallItem<'_> = serde_json::from_str(value).map_err(|_| SHAPE)?;
            let some = |id: Option<String>| id.filter(|id| !id.is_empty());
            Item::Call(Call {
                id: some(item.call_id).or(some(item.id)).ok_or(SHAPE)?,
                name: item.name,
                arguments: arguments(item.arguments),
            })
        }
        "reasoning" => {
            let item: ReasoningItem = serde_json::from_str(value).map_err(|_| SHAPE)?;
            // Raw reasoning where a server shows it, else the summary; never both.
            let raw = joined(item.content.unwrap_or_default());
            Item::Reasoning {
                text: if raw.is_empty() {
                    joined(item.summary.unwrap_or_default())
                } else {
                    raw
                },
                seal: item
                    .encrypted_content
                    .and_then(|data| seal::from_wire(&data)),
            }
        }
        _ => Item::Other(kind.kind),
    })
}

/// Arguments are text by the book; some servers give the object itself.
fn arguments(value: Option<&RawValue>) -> Text {
    value
        .filter(|value| value.get() != "null")
        .map_or_else(String::new, |value| {
            as_string(value).unwrap_or_else(|| value.get().to_owned())
        })
        .into()
}

/// The paragraphs of reasoning as one text.
fn joined(thoughts: Vec<Thought>) -> Text {
    let texts: Vec<Text> = thoughts.into_iter().filter_map(|it| it.text).collect();
    let texts: Vec<&str> = texts.iter().map(|text| &**text).collect();
    texts.join(PARAGRAPH).into()
}

/// What stands between the parts of a summary.
pub(super) const PARAGRAPH: &str = "\n\n";

/// The neutral parts of an item, appended to `parts`.
pub(super) fn parts(value: &RawValue, parts: &mut Vec<Part>) -> Result<(), Malformed> {
    match read(value)? {
        Item::Message(pieces) => {
            for piece in pieces {
                parts.extend(piece.refusal.map(Part::Refusal));
                parts.extend(piece.text.map(Part::Text));
                let notes = piece
                    .annotations
                    .filter(|notes| notes.get() != "null" && !is_hollow(notes.get()));
                parts.extend(notes.map(|notes| Part::Other {
                    dialect: OWN,
                    kind: ANNOTATIONS.to_owned(),
                    value: notes.into(),
                }));
            }
        }
        Item::Call(call) => parts.push(Part::ToolCall {
            id: call.id,
            name: call.name,
            arguments: call.arguments,
        }),
        Item::Reasoning { text, seal } => match seal {
            Some(seal) if text.is_empty() => parts.push(Part::RedactedReasoning(seal)),
            signature if !text.is_empty() => parts.push(Part::Reasoning { text, signature }),
            _ => {}
        },
        Item::Other(kind) => parts.push(Part::Other {
            dialect: OWN,
            kind,
            value: value.into(),
        }),
    }
    Ok(())
}

/// The kind under which the notes on a text are kept, right behind it.
pub(super) const ANNOTATIONS: &str = "annotations";

/// How a response ended: its `status`, and the reason where it is incomplete.
pub(super) fn status(stop: Option<&StopReason>) -> (&'static str, Option<&'static str>) {
    match stop {
        Some(StopReason::MaxTokens | StopReason::ContextWindow) => {
            ("incomplete", Some("max_output_tokens"))
        }
        Some(StopReason::ContentFilter) => ("incomplete", Some("content_filter")),
        _ => ("completed", None),
    }
}

/// The neutral word for how a response ended. `called`: it asks for a tool.
pub(super) fn stop_reason(status: &str, reason: Option<String>, called: bool) -> StopReason {
    match (status, reason.as_deref()) {
        ("incomplete", Some("max_output_tokens")) => StopReason::MaxTokens,
        ("incomplete", Some("content_filter")) => StopReason::ContentFilter,
        ("incomplete", Some(_)) => StopReason::Other(reason.unwrap_or_default()),
        _ if called => StopReason::ToolUse,
        _ => StopReason::EndTurn,
    }
}

/// The members of a message item.
pub(super) fn write_message(
    id: &str,
    status: &str,
    out: &mut Object<'_>,
    content: impl FnOnce(&mut Array<'_>),
) {
    out.put("id", id);
    out.put("type", "message");
    out.put("status", status);
    out.put("role", "assistant");
    out.array("content", content);
}

/// The members of a piece of text.
pub(super) fn write_text(text: &str, out: &mut Object<'_>) {
    out.put("type", "output_text");
    out.array("annotations", |_| {});
    out.array("logprobs", |_| {});
    out.put("text", text);
}

/// The members of a refusal.
pub(super) fn write_refusal(text: &str, out: &mut Object<'_>) {
    out.put("type", "refusal");
    out.put("refusal", text);
}

/// The members of a call.
pub(super) fn write_call(id: &str, status: &str, call: &Call, out: &mut Object<'_>) {
    out.put("id", id);
    out.put("type", "function_call");
    out.put("status", status);
    out.put("arguments", &call.arguments);
    out.put("call_id", &call.id);
    out.put("name", &call.name);
}

/// The members of a reasoning item. What can be read goes into the summary, where this dialect's
/// clients look.
pub(super) fn write_reasoning(id: &str, text: &str, seal: Option<&str>, out: &mut Object<'_>) {
    out.put("id", id);
    out.put("type", "reasoning");
    out.array("summary", |out| {
        if !text.is_empty() {
            out.object(|out| {
                out.put("type", "summary_text");
                out.put("text", text);
            });
        }
    });
    out.put_some("encrypted_content", seal.map(seal::to_caller));
}

/// An id for an item, the same for the same place in the same answer.
pub(super) fn id(kind: &str, answer: &str, place: usize) -> String {
    let safe: String = answer
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .take(48)
        .collect();
    format!("{kind}_{safe}_{place}")
}

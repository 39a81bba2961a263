//! From the neutral shape to the wire.

use backstop_chat::{Answer, Part, StopReason};

use super::super::{OWN, usage};
use crate::cohere_v2::request::write_call;
use crate::json::{Array, Object};
use crate::translate::{Stamp, Written};

pub(crate) fn write(answer: &Answer, stamp: &Stamp<'_>) -> Written {
    let mut written = Written::default();
    let choice = answer.choices.first();
    for extra in answer.choices.iter().skip(1) {
        written.dropped.push(format!("choices[{}]", extra.index));
    }
    let parts = choice
        .map(|choice| choice.parts.as_slice())
        .unwrap_or_default();
    Object::write(&mut written.body, |out| {
        let id = Some(answer.id.as_str()).filter(|id| !id.is_empty());
        out.put("id", id.unwrap_or(stamp.id));
        out.object("message", |out| {
            out.put("role", "assistant");
            write_message(parts, out, &mut written.dropped);
        });
        let stop = choice.and_then(|choice| choice.stop.as_ref());
        out.put_some("finish_reason", stop.map(finish_word));
        if let Some(usage) = &answer.usage {
            out.object("usage", |out| usage::write(usage, out));
        }
    });
    written
}

fn write_message(parts: &[Part], out: &mut Object<'_>, dropped: &mut Vec<String>) {
    let mut calls = Vec::new();
    let mut content = Vec::new();
    for (place, part) in parts.iter().enumerate() {
        match part {
            Part::Text(_) | Part::Refusal(_) | Part::Reasoning { .. } => content.push(part),
            Part::ToolCall { .. } => calls.push(part),
            Part::Other {
                dialect,
                kind,
                value,
            } if *dialect == OWN && kind == "citations" => out.put(kind, value),
            Part::Other { dialect, .. } if *dialect == OWN => content.push(part),
            _ => dropped.push(format!("message.content[{place}]")),
        }
    }
    if !content.is_empty() || calls.is_empty() {
        out.array("content", |out| {
            content.iter().for_each(|part| write_block(part, out));
        });
    }
    if !calls.is_empty() {
        out.array("tool_calls", |out| {
            for call in calls {
                if let Part::ToolCall {
                    id,
                    name,
                    arguments,
                } = call
                {
                    write_call(id, name, arguments, out);
                }
            }
        });
    }
}

fn write_block(part: &Part, out: &mut Array<'_>) {
    match part {
        Part::Text(text) | Part::Refusal(text) => out.object(|out| {
            out.put("type", "text");
            out.put("text", text);
        }),
        Part::Reasoning { text, .. } => out.object(|out| {
            out.put("type", "thinking");
            out.put("thinking", text);
        }),
        Part::Other { value, .. } => out.put(value),
        _ => {}
    }
}

/// The `finish_reason` for a neutral one. There is no word for an answer withheld for its content.
pub(in crate::cohere_v2) const fn finish_word(stop: &StopReason) -> &'static str {
    match stop {
        StopReason::MaxTokens | StopReason::ContextWindow => "MAX_TOKENS",
        StopReason::ToolUse => "TOOL_CALL",
        StopReason::StopSequence => "STOP_SEQUENCE",
        StopReason::EndTurn
        | StopReason::ContentFilter
        | StopReason::Pause
        | StopReason::Other(_) => "COMPLETE",
    }
}

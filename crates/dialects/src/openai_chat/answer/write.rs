//! From the neutral shape to the wire.

use backstop_chat::{Answer, Choice, Part, StopReason, Usage};

use crate::json::{Array, Object};
use crate::openai_chat::OWN;
use crate::openai_chat::request::write_call;
use crate::translate::{Stamp, Written};

pub(crate) fn write(answer: &Answer, stamp: &Stamp<'_>) -> Written {
    let mut written = Written::default();
    let or = |own: &str, ours: &str| {
        if own.is_empty() {
            ours.to_owned()
        } else {
            own.to_owned()
        }
    };
    Object::write(&mut written.body, |out| {
        out.put("id", &or(&answer.id, stamp.id));
        out.put("object", "chat.completion");
        out.put("created", &answer.created.unwrap_or(stamp.created));
        out.put("model", &or(&answer.model, stamp.model));
        out.array("choices", |out| {
            for choice in &answer.choices {
                out.object(|out| write_choice(choice, out, &mut written.dropped));
            }
        });
        if let Some(usage) = &answer.usage {
            out.object("usage", |out| write_usage(usage, out));
        }
    });
    written
}

fn write_choice(choice: &Choice, out: &mut Object<'_>, dropped: &mut Vec<String>) {
    out.put("index", &choice.index);
    out.object("message", |out| {
        out.put("role", "assistant");
        write_message(choice, out, dropped);
    });
    out.put("logprobs", &choice.logprobs);
    out.put("finish_reason", &choice.stop.as_ref().map(finish_reason));
}

fn write_message(choice: &Choice, out: &mut Object<'_>, dropped: &mut Vec<String>) {
    let mut text = None::<String>;
    let mut refusal = None::<String>;
    let mut reasoning = String::new();
    let mut sealed = Vec::new();
    let mut calls = Vec::new();
    for (place, part) in choice.parts.iter().enumerate() {
        match part {
            Part::Text(words) => text.get_or_insert_default().push_str(words),
            Part::Refusal(words) => refusal.get_or_insert_default().push_str(words),
            Part::Reasoning { text, signature } => {
                reasoning.push_str(text);
                if signature.is_some() {
                    sealed.push(part);
                }
            }
            Part::RedactedReasoning(_) => sealed.push(part),
            Part::ToolCall { .. } => calls.push(part),
            Part::Other {
                dialect,
                kind,
                value,
            } if *dialect == OWN => out.put(kind, value),
            _ => dropped.push(format!("choices[{}].content[{place}]", choice.index)),
        }
    }
    out.put("content", &text);
    out.put("refusal", &refusal);
    if !reasoning.is_empty() {
        out.put("reasoning_content", &reasoning);
    }
    if !sealed.is_empty() {
        // OpenRouter's form, which clients that replay reasoning know.
        out.array("reasoning_details", |out| {
            for (index, part) in (0..).zip(&sealed) {
                match part {
                    Part::Reasoning { text, signature } => {
                        write_detail(index, Some(text), signature.as_deref(), out);
                    }
                    Part::RedactedReasoning(data) => write_sealed(index, data, out),
                    _ => {}
                }
            }
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
                    out.object(|out| write_call(id, name, arguments, out));
                }
            }
        });
    }
}

/// One of the `reasoning_details`: reasoning in the open with its signature.
pub(in crate::openai_chat) fn write_detail(
    index: u32,
    text: Option<&str>,
    signature: Option<&str>,
    out: &mut Array<'_>,
) {
    out.object(|out| {
        out.put("type", "reasoning.text");
        out.put_some("text", text);
        out.put_some("signature", signature);
        out.put("index", &index);
    });
}

/// One of the `reasoning_details`: reasoning its provider keeps to itself.
pub(in crate::openai_chat) fn write_sealed(index: u32, data: &str, out: &mut Array<'_>) {
    out.object(|out| {
        out.put("type", "reasoning.encrypted");
        out.put("data", data);
        out.put("index", &index);
    });
}

/// The `finish_reason` for a neutral one.
pub(in crate::openai_chat) fn finish_reason(stop: &StopReason) -> &'static str {
    match stop {
        StopReason::MaxTokens | StopReason::ContextWindow => "length",
        StopReason::ToolUse => "tool_calls",
        StopReason::ContentFilter => "content_filter",
        StopReason::EndTurn
        | StopReason::StopSequence
        | StopReason::Pause
        | StopReason::Other(_) => "stop",
    }
}

/// The members of a `usage` object.
pub(in crate::openai_chat) fn write_usage(usage: &Usage, out: &mut Object<'_>) {
    out.put("prompt_tokens", &usage.input.unwrap_or_default());
    out.put("completion_tokens", &usage.output.unwrap_or_default());
    out.put("total_tokens", &usage.total().unwrap_or_default());
    if usage.cache_read.is_some() || usage.cache_write.is_some() {
        out.object("prompt_tokens_details", |out| {
            out.put_some("cached_tokens", usage.cache_read);
            out.put_some("cache_write_tokens", usage.cache_write);
        });
    }
    if let Some(reasoning) = usage.reasoning {
        out.object("completion_tokens_details", |out| {
            out.put("reasoning_tokens", &reasoning);
        });
    }
}

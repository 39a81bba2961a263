//! From the neutral shape to the wire.

use backstop_chat::{Answer, Part, StopReason, Usage};
use backstop_units::Tokens;

use crate::anthropic_messages::OWN;
use crate::anthropic_messages::request::object;
use crate::json::{Array, Object};
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
    let choice = answer.choices.first();
    for extra in answer.choices.iter().skip(1) {
        written.dropped.push(format!("choices[{}]", extra.index));
    }
    let parts = choice
        .map(|choice| choice.parts.as_slice())
        .unwrap_or_default();
    Object::write(&mut written.body, |out| {
        out.put("id", &or(&answer.id, stamp.id));
        out.put("type", "message");
        out.put("role", "assistant");
        out.put("model", &or(&answer.model, stamp.model));
        out.array("content", |out| {
            for (place, part) in parts.iter().enumerate() {
                write_part(part, place, out, &mut written.dropped);
            }
        });
        let said = Said::of(parts);
        let stop = choice.and_then(|choice| choice.stop.as_ref());
        out.put("stop_reason", &stop.map(|stop| stop_word(stop, said)));
        out.put(
            "stop_sequence",
            &choice.and_then(|choice| choice.stop_sequence.as_ref()),
        );
        out.object("usage", |out| {
            write_usage(&answer.usage.unwrap_or_default(), out);
        });
    });
    written
}

fn write_part(part: &Part, place: usize, out: &mut Array<'_>, dropped: &mut Vec<String>) {
    match part {
        Part::Text(text) | Part::Refusal(text) => out.object(|out| {
            out.put("type", "text");
            out.put("text", text);
        }),
        Part::Reasoning { text, signature } => out.object(|out| {
            out.put("type", "thinking");
            out.put("thinking", text);
            out.put("signature", signature.as_deref().unwrap_or_default());
        }),
        Part::RedactedReasoning(data) => out.object(|out| {
            out.put("type", "redacted_thinking");
            out.put("data", data);
        }),
        Part::ToolCall {
            id,
            name,
            arguments,
        } => out.object(|out| {
            out.put("type", "tool_use");
            out.put("id", id);
            out.put("name", name);
            match object(arguments) {
                Some(input) => out.put("input", input),
                None => {
                    // Cut by a limit: no object can say so, the stop reason does.
                    dropped.push(format!("content[{place}].input"));
                    out.object("input", |_| {});
                }
            }
        }),
        Part::Other { dialect, value, .. } if *dialect == OWN => out.put(value),
        _ => dropped.push(format!("content[{place}]")),
    }
}

/// What an answer holds, as far as its `stop_reason` depends on it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::anthropic_messages) struct Said {
    pub(in crate::anthropic_messages) tools: bool,
    pub(in crate::anthropic_messages) refusal: bool,
}

impl Said {
    fn of(parts: &[Part]) -> Self {
        Self {
            tools: parts
                .iter()
                .any(|part| matches!(part, Part::ToolCall { .. })),
            refusal: parts.iter().any(|part| matches!(part, Part::Refusal(_))),
        }
    }
}

/// The `stop_reason` for a neutral one. Clients wait for `tool_use` before they run a tool, and
/// some servers say `stop` for that; a refusal in words ends with `stop` elsewhere.
pub(in crate::anthropic_messages) const fn stop_word(
    stop: &StopReason,
    said: Said,
) -> &'static str {
    match stop {
        StopReason::MaxTokens => "max_tokens",
        StopReason::ContextWindow => "model_context_window_exceeded",
        StopReason::ToolUse => "tool_use",
        StopReason::ContentFilter => "refusal",
        StopReason::StopSequence => "stop_sequence",
        StopReason::Pause => "pause_turn",
        StopReason::EndTurn | StopReason::Other(_) if said.tools => "tool_use",
        StopReason::EndTurn | StopReason::Other(_) if said.refusal => "refusal",
        StopReason::EndTurn | StopReason::Other(_) => "end_turn",
    }
}

/// The members of a `usage` object. Clients need both counts; unknown ones read 0.
pub(in crate::anthropic_messages) fn write_usage(usage: &Usage, out: &mut Object<'_>) {
    // Cached tokens stand beside the input here, and some servers count more of them than there are.
    let all = usage.input.unwrap_or(Tokens(u64::MAX)).0;
    let read = usage.cache_read.map(|read| read.0.min(all));
    let rest = all - read.unwrap_or_default();
    let written = usage.cache_write.map(|written| written.0.min(rest));
    let input = usage
        .input
        .map_or(0, |_| rest - written.unwrap_or_default());
    out.put("input_tokens", &Tokens(input));
    out.put_some("cache_creation_input_tokens", written.map(Tokens));
    out.put_some("cache_read_input_tokens", read.map(Tokens));
    out.put("output_tokens", &usage.output.unwrap_or_default());
    if let Some(reasoning) = usage.reasoning {
        out.object("output_tokens_details", |out| {
            out.put("thinking_tokens", &reasoning);
        });
    }
}

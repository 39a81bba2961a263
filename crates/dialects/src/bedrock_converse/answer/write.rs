//! From the neutral shape to the wire.

use backstop_chat::{Answer, Part, StopReason};

use super::super::{OWN, block, usage};
use crate::anthropic_messages::request::object;
use crate::json::{Array, Object};
use crate::translate::{Stamp, Written};

/// There is no place for an id or a model here.
pub(crate) fn write(answer: &Answer, _stamp: &Stamp<'_>) -> Written {
    let mut written = Written::default();
    let choice = answer.choices.first();
    for extra in answer.choices.iter().skip(1) {
        written.dropped.push(format!("choices[{}]", extra.index));
    }
    let parts = choice
        .map(|choice| choice.parts.as_slice())
        .unwrap_or_default();
    Object::write(&mut written.body, |out| {
        out.object("output", |out| {
            out.object("message", |out| {
                out.put("role", "assistant");
                out.array("content", |out| {
                    for (place, part) in parts.iter().enumerate() {
                        write_part(part, place, out, &mut written.dropped);
                    }
                });
            });
        });
        let called = parts
            .iter()
            .any(|part| matches!(part, Part::ToolCall { .. }));
        let stop = choice.and_then(|choice| choice.stop.as_ref());
        out.put_some("stopReason", stop.map(|stop| stop_word(stop, called)));
        out.object("usage", |out| {
            usage::write(&answer.usage.unwrap_or_default(), out);
        });
        // Required by the shape; how long it took is told in headers of our own.
        out.object("metrics", |out| out.put("latencyMs", &0));
        if let Some(text) = choice.and_then(|choice| choice.stop_sequence.as_ref()) {
            out.object("additionalModelResponseFields", |out| {
                out.put("stop_sequence", text);
            });
        }
    });
    written
}

fn write_part(part: &Part, place: usize, out: &mut Array<'_>, dropped: &mut Vec<String>) {
    match part {
        Part::Other { dialect, value, .. } if *dialect == OWN => return out.put(value),
        Part::Other { .. } | Part::Image(_) | Part::ToolResult { .. } => {
            return dropped.push(format!("output.message.content[{place}]"));
        }
        // Cut by a limit: no object can say so, the stop reason does.
        Part::ToolCall { arguments, .. } if object(arguments).is_none() => {
            dropped.push(format!("output.message.content[{place}].toolUse.input"));
        }
        _ => {}
    }
    out.object(|out| {
        block::write(part, out);
    });
}

/// The `stopReason` for a neutral one. Clients wait for `tool_use` before they run a tool, and some
/// servers say `stop` for that.
pub(in crate::bedrock_converse) const fn stop_word(
    stop: &StopReason,
    called: bool,
) -> &'static str {
    match stop {
        StopReason::MaxTokens => "max_tokens",
        StopReason::ContextWindow => "model_context_window_exceeded",
        StopReason::ToolUse => "tool_use",
        StopReason::ContentFilter => "content_filtered",
        StopReason::StopSequence => "stop_sequence",
        StopReason::EndTurn | StopReason::Pause | StopReason::Other(_) if called => "tool_use",
        StopReason::EndTurn | StopReason::Pause | StopReason::Other(_) => "end_turn",
    }
}

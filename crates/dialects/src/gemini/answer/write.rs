//! From the neutral shape to the wire.

use backstop_chat::{Answer, Choice, Part, StopReason};

use super::super::OWN;
use super::super::part::{write_call, write_image, write_text, write_thought};
use super::super::usage;
use crate::json::Object;
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
        out.array("candidates", |out| {
            for choice in &answer.choices {
                out.object(|out| write_choice(choice, out, &mut written.dropped));
            }
        });
        if let Some(usage) = &answer.usage {
            out.object("usageMetadata", |out| usage::write(usage, out));
        }
        out.put("modelVersion", &or(&answer.model, stamp.model));
        out.put("responseId", &or(&answer.id, stamp.id));
    });
    written
}

fn write_choice(choice: &Choice, out: &mut Object<'_>, dropped: &mut Vec<String>) {
    out.object("content", |out| {
        out.array("parts", |out| {
            for (place, part) in choice.parts.iter().enumerate() {
                match part {
                    Part::Text(text) | Part::Refusal(text) => write_text(text, out),
                    Part::Reasoning { text, signature } => {
                        write_thought(text, signature.as_deref(), out);
                    }
                    Part::ToolCall {
                        id,
                        name,
                        arguments,
                    } => write_call(id, name, arguments, None, out),
                    Part::Image(image) => write_image(image, out),
                    Part::Other { dialect, value, .. } if *dialect == OWN => out.put(value),
                    _ => dropped.push(format!("candidates[{}].parts[{place}]", choice.index)),
                }
            }
        });
        out.put("role", "model");
    });
    out.put_some("finishReason", choice.stop.as_ref().map(finish_word));
    out.put("index", &choice.index);
}

/// The `finishReason` for a neutral one.
pub(in crate::gemini) const fn finish_word(stop: &StopReason) -> &'static str {
    match stop {
        StopReason::MaxTokens | StopReason::ContextWindow => "MAX_TOKENS",
        StopReason::ContentFilter => "SAFETY",
        StopReason::EndTurn
        | StopReason::StopSequence
        | StopReason::ToolUse
        | StopReason::Pause
        | StopReason::Other(_) => "STOP",
    }
}

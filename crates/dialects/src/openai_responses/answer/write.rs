//! From the neutral shape to the wire.

use backstop_chat::{Answer, Part, Usage};

use super::super::item::{self, ANNOTATIONS};
use super::super::{OWN, usage};
use crate::json::{Array, Object};
use crate::translate::{Stamp, Written};

/// Who answers, as every form of a response says it.
#[derive(Debug, Clone)]
pub(in crate::openai_responses) struct Head {
    pub(in crate::openai_responses) id: String,
    pub(in crate::openai_responses) model: String,
    pub(in crate::openai_responses) created: u64,
}

impl Head {
    pub(in crate::openai_responses) fn of(stamp: &Stamp<'_>) -> Self {
        Self {
            id: stamp.id.to_owned(),
            model: stamp.model.to_owned(),
            created: stamp.created,
        }
    }

    /// The same with what the provider says of itself.
    pub(in crate::openai_responses) fn with(
        mut self,
        id: &str,
        model: &str,
        created: Option<u64>,
    ) -> Self {
        if !id.is_empty() {
            id.clone_into(&mut self.id);
        }
        if !model.is_empty() {
            model.clone_into(&mut self.model);
        }
        self.created = created.unwrap_or(self.created);
        self
    }
}

/// The members of a response. What clients expect there and nobody knows has the value that means
/// nothing special; `store` is false, since an answer from elsewhere cannot be asked for again.
pub(in crate::openai_responses) fn write_response(
    head: &Head,
    (status, reason): (&str, Option<&str>),
    usage: Option<&Usage>,
    out: &mut Object<'_>,
    output: impl FnOnce(&mut Array<'_>),
) {
    out.put("id", &head.id);
    out.put("object", "response");
    out.put("created_at", &head.created);
    out.put("status", status);
    out.put("error", &None::<&str>);
    match reason {
        Some(reason) => out.object("incomplete_details", |out| out.put("reason", reason)),
        None => out.put("incomplete_details", &None::<&str>),
    }
    out.put("instructions", &None::<&str>);
    out.object("metadata", |_| {});
    out.put("model", &head.model);
    out.array("output", output);
    out.put("parallel_tool_calls", &true);
    out.put("previous_response_id", &None::<&str>);
    out.put("store", &false);
    out.put("temperature", &None::<f64>);
    out.put("tool_choice", "auto");
    out.array("tools", |_| {});
    out.put("top_p", &None::<f64>);
    match usage {
        Some(counts) => out.object("usage", |out| usage::write(counts, out)),
        None => out.put("usage", &None::<&str>),
    }
}

pub(crate) fn write(answer: &Answer, stamp: &Stamp<'_>) -> Written {
    let mut written = Written::default();
    let head = Head::of(stamp).with(&answer.id, &answer.model, answer.created);
    let first = answer.choices.first();
    let stop = first.and_then(|choice| choice.stop.as_ref());
    let ended = item::status(stop);
    let parts = first.map_or(&[][..], |choice| &choice.parts);
    if first.is_some_and(|choice| choice.logprobs.is_some()) {
        written.dropped.push("logprobs".to_owned());
    }
    for choice in answer.choices.iter().skip(1) {
        // This dialect has one answer.
        written.dropped.push(format!("choices[{}]", choice.index));
    }
    let dropped = &mut written.dropped;
    Object::write(&mut written.body, |out| {
        write_response(&head, ended, answer.usage.as_ref(), out, |out| {
            write_items(&head.id, parts, out, dropped);
        });
    });
    written
}

/// The items that `parts` come to; neighbouring words are one message.
fn write_items(answer: &str, parts: &[Part], out: &mut Array<'_>, dropped: &mut Vec<String>) {
    let mut place = 0;
    let mut number = 0;
    while place < parts.len() {
        let words = parts[place..]
            .iter()
            .take_while(|part| is_words(part))
            .count();
        if words > 0 {
            let id = item::id("msg", answer, number);
            out.object(|out| {
                item::write_message(&id, "completed", out, |out| {
                    write_content(&parts[place..place + words], out);
                });
            });
            place += words;
        } else {
            write_item(answer, number, &parts[place], out, || {
                dropped.push(format!("output[{place}]"));
            });
            place += 1;
        }
        number += 1;
    }
}

fn is_words(part: &Part) -> bool {
    match part {
        Part::Text(_) | Part::Refusal(_) => true,
        Part::Other { dialect, kind, .. } => *dialect == OWN && kind == ANNOTATIONS,
        _ => false,
    }
}

fn write_content(parts: &[Part], out: &mut Array<'_>) {
    for (place, part) in parts.iter().enumerate() {
        match part {
            Part::Text(text) => match parts.get(place + 1) {
                Some(Part::Other { value, .. }) => out.object(|out| {
                    out.put("type", "output_text");
                    out.put("annotations", value);
                    out.array("logprobs", |_| {});
                    out.put("text", text);
                }),
                _ => out.object(|out| item::write_text(text, out)),
            },
            Part::Refusal(text) => out.object(|out| item::write_refusal(text, out)),
            _ => {}
        }
    }
}

fn write_item(answer: &str, number: usize, part: &Part, out: &mut Array<'_>, drop: impl FnOnce()) {
    match part {
        Part::Reasoning { text, signature } => out.object(|out| {
            let id = item::id("rs", answer, number);
            item::write_reasoning(&id, text, signature.as_deref(), out);
        }),
        Part::RedactedReasoning(data) => out.object(|out| {
            item::write_reasoning(&item::id("rs", answer, number), "", Some(data), out);
        }),
        Part::ToolCall {
            id,
            name,
            arguments,
        } => out.object(|out| {
            let call = item::Call {
                id: id.clone(),
                name: name.clone(),
                // Clients parse this as JSON.
                arguments: if arguments.is_empty() {
                    "{}".into()
                } else {
                    arguments.clone()
                },
            };
            item::write_call(&item::id("fc", answer, number), "completed", &call, out);
        }),
        Part::Other { dialect, value, .. } if *dialect == OWN => out.put(value),
        _ => drop(),
    }
}

//! From neutral events to wire events.
//!
//! Calls stand whole on this wire, so their arguments are gathered until the choice ends. How a
//! choice ended is told with the last event, and only once the whole answer has ended: nothing else
//! marks the end here, so nothing before may look like it.

use backstop_chat::{Event, StopReason, Usage};
use backstop_stream::write_event;

use super::super::answer::finish_word;
use super::super::part::{write_call, write_text, write_thought};
use super::super::usage;
use crate::json::{Array, Object};
use crate::translate::Stamp;

/// Writes the events of one stream.
#[derive(Debug)]
pub(crate) struct Writer {
    id: String,
    model: String,
    calls: Vec<Call>,
    stops: Vec<(u32, StopReason)>,
    usage: Option<Usage>,
    ended: bool,
}

#[derive(Debug)]
struct Call {
    choice: u32,
    tool: u32,
    id: String,
    name: String,
    arguments: String,
}

impl Writer {
    pub(crate) fn new(stamp: &Stamp<'_>) -> Self {
        Self {
            id: stamp.id.to_owned(),
            model: stamp.model.to_owned(),
            calls: Vec::new(),
            stops: Vec::new(),
            usage: None,
            ended: false,
        }
    }

    pub(crate) fn write(&mut self, event: &Event, out: &mut Vec<u8>) {
        if self.ended {
            return;
        }
        match event {
            Event::Start { id, model, .. } => {
                if !id.is_empty() {
                    id.clone_into(&mut self.id);
                }
                if !model.is_empty() {
                    model.clone_into(&mut self.model);
                }
            }
            Event::Text { choice, text } | Event::Refusal { choice, text } => {
                self.part(*choice, out, |out| write_text(text, out));
            }
            Event::Reasoning { choice, text } => {
                self.part(*choice, out, |out| write_thought(text, None, out));
            }
            Event::ReasoningSignature { choice, signature } => {
                self.part(*choice, out, |out| write_thought("", Some(signature), out));
            }
            // Sealed reasoning has no place on this wire.
            Event::RedactedReasoning { .. } => {}
            Event::ToolStart {
                choice,
                tool,
                id,
                name,
            } => self.calls.push(Call {
                choice: *choice,
                tool: *tool,
                id: id.clone(),
                name: name.clone(),
                arguments: String::new(),
            }),
            Event::ToolArguments {
                choice,
                tool,
                arguments,
            } => {
                let of = |call: &&mut Call| (call.choice, call.tool) == (*choice, *tool);
                if let Some(call) = self.calls.iter_mut().find(of) {
                    call.arguments.push_str(arguments);
                }
            }
            Event::Stop { choice, reason, .. } => {
                self.say_calls(*choice, out);
                self.stops.push((*choice, reason.clone()));
            }
            Event::Usage(usage) => {
                self.usage = Some(self.usage.unwrap_or_default().updated(*usage));
            }
            Event::End => self.end(out),
        }
    }

    /// The calls of a choice, all in one event.
    fn say_calls(&mut self, choice: u32, out: &mut Vec<u8>) {
        let (calls, rest) = std::mem::take(&mut self.calls)
            .into_iter()
            .partition::<Vec<_>, _>(|call| call.choice == choice);
        self.calls = rest;
        if calls.is_empty() {
            return;
        }
        self.part(choice, out, |out| {
            for call in &calls {
                write_call(&call.id, &call.name, &call.arguments, None, out);
            }
        });
    }

    fn part(&self, choice: u32, out: &mut Vec<u8>, fill: impl FnOnce(&mut Array<'_>)) {
        self.event(out, |out| {
            out.array("candidates", |out| {
                out.object(|out| {
                    out.object("content", |out| {
                        out.array("parts", fill);
                        out.put("role", "model");
                    });
                    out.put("index", &choice);
                });
            });
        });
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        if self.stops.is_empty() {
            return;
        }
        self.ended = true;
        self.event(out, |out| {
            out.array("candidates", |out| {
                for (choice, reason) in &self.stops {
                    out.object(|out| {
                        out.object("content", |out| {
                            out.array("parts", |out| write_text("", out));
                            out.put("role", "model");
                        });
                        out.put("finishReason", finish_word(reason));
                        out.put("index", choice);
                    });
                }
            });
            if let Some(usage) = &self.usage {
                out.object("usageMetadata", |out| usage::write(usage, out));
            }
        });
    }

    fn event(&self, out: &mut Vec<u8>, fill: impl FnOnce(&mut Object<'_>)) {
        let mut data = Vec::with_capacity(256);
        Object::write(&mut data, |data| {
            fill(data);
            data.put("modelVersion", &self.model);
            data.put("responseId", &self.id);
        });
        // Arguments stand here as their model wrote them. A line's end is space between the tokens of
        // JSON, but it would cut the event's one line in two, and not every client joins them.
        for byte in &mut data {
            if matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
        write_event(out, None, &data);
    }
}

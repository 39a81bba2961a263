//! From neutral events to chunks.

use backstop_chat::{Event, Usage};
use backstop_stream::write_event;

use crate::json::Object;
use crate::openai_chat::answer::{finish_reason, write_detail, write_sealed, write_usage};
use crate::translate::Stamp;

/// Writes the chunks of one stream. `id`, `created` and `model` stay the same through it.
#[derive(Debug)]
pub(crate) struct Writer {
    id: String,
    model: String,
    created: u64,
    include_usage: bool,
    usage: Option<Usage>,
    /// Choices whose role was told.
    opened: Vec<u32>,
    /// Pieces of reasoning that were signed or sealed, by choice.
    details: Vec<(u32, u32)>,
    /// Whether any choice has ended.
    stopped: bool,
    ended: bool,
}

impl Writer {
    pub(crate) fn new(stamp: &Stamp<'_>, include_usage: bool) -> Self {
        Self {
            id: stamp.id.to_owned(),
            model: stamp.model.to_owned(),
            created: stamp.created,
            include_usage,
            usage: None,
            opened: Vec::new(),
            details: Vec::new(),
            stopped: false,
            ended: false,
        }
    }

    pub(crate) fn write(&mut self, event: &Event, out: &mut Vec<u8>) {
        if self.ended {
            return;
        }
        match event {
            Event::Start { id, model, created } => {
                if !id.is_empty() {
                    id.clone_into(&mut self.id);
                }
                if !model.is_empty() {
                    model.clone_into(&mut self.model);
                }
                self.created = created.unwrap_or(self.created);
                self.delta(0, out, |delta| delta.put("content", ""));
            }
            Event::Text { choice, text } => {
                self.delta(*choice, out, |delta| delta.put("content", text));
            }
            Event::Refusal { choice, text } => {
                self.delta(*choice, out, |delta| delta.put("refusal", text));
            }
            Event::Reasoning { choice, text } => {
                self.delta(*choice, out, |delta| delta.put("reasoning_content", text));
            }
            Event::ReasoningSignature { choice, signature } => {
                let index = self.next_detail(*choice);
                self.delta(*choice, out, |delta| {
                    delta.array("reasoning_details", |out| {
                        write_detail(index, None, Some(signature), out);
                    });
                });
            }
            Event::RedactedReasoning { choice, data } => {
                let index = self.next_detail(*choice);
                self.delta(*choice, out, |delta| {
                    delta.array("reasoning_details", |out| write_sealed(index, data, out));
                });
            }
            Event::ToolStart {
                choice,
                tool,
                id,
                name,
            } => self.delta(*choice, out, |delta| {
                delta.array("tool_calls", |out| {
                    out.object(|out| {
                        out.put("index", tool);
                        out.put("id", id);
                        out.put("type", "function");
                        out.object("function", |out| {
                            out.put("name", name);
                            out.put("arguments", "");
                        });
                    });
                });
            }),
            Event::ToolArguments {
                choice,
                tool,
                arguments,
            } => self.delta(*choice, out, |delta| {
                delta.array("tool_calls", |out| {
                    out.object(|out| {
                        out.put("index", tool);
                        out.object("function", |out| out.put("arguments", arguments));
                    });
                });
            }),
            Event::Stop { choice, reason, .. } => {
                self.stopped = true;
                self.choice(*choice, Some(finish_reason(reason)), out, |_| {});
            }
            Event::Usage(usage) => self.usage = Some(*usage),
            Event::End => self.end(out),
        }
    }

    /// The one usage chunk, if it was asked for and is known, then the end marker. Before any
    /// choice has ended the answer has not, and nothing here says that it has.
    fn end(&mut self, out: &mut Vec<u8>) {
        if !self.stopped {
            return;
        }
        self.ended = true;
        if let Some(usage) = self.usage.filter(|_| self.include_usage) {
            self.chunk(out, |chunk| {
                chunk.array("choices", |_| {});
                chunk.object("usage", |out| write_usage(&usage, out));
            });
        }
        write_event(out, None, b"[DONE]");
    }

    fn delta(&mut self, choice: u32, out: &mut Vec<u8>, fill: impl FnOnce(&mut Object<'_>)) {
        let first = !self.opened.contains(&choice);
        if first {
            self.opened.push(choice);
        }
        self.choice(choice, None, out, |delta| {
            if first {
                delta.put("role", "assistant");
            }
            fill(delta);
        });
    }

    fn choice(
        &self,
        index: u32,
        finish: Option<&str>,
        out: &mut Vec<u8>,
        fill: impl FnOnce(&mut Object<'_>),
    ) {
        self.chunk(out, |chunk| {
            chunk.array("choices", |choices| {
                choices.object(|choice| {
                    choice.put("index", &index);
                    choice.object("delta", fill);
                    choice.put("finish_reason", &finish);
                });
            });
        });
    }

    fn chunk(&self, out: &mut Vec<u8>, fill: impl FnOnce(&mut Object<'_>)) {
        let mut data = Vec::with_capacity(256);
        Object::write(&mut data, |chunk| {
            chunk.put("id", &self.id);
            chunk.put("object", "chat.completion.chunk");
            chunk.put("created", &self.created);
            chunk.put("model", &self.model);
            fill(chunk);
        });
        write_event(out, None, &data);
    }

    fn next_detail(&mut self, choice: u32) -> u32 {
        if let Some((_, index)) = self.details.iter_mut().find(|(of, _)| *of == choice) {
            *index += 1;
            return *index;
        }
        self.details.push((choice, 0));
        0
    }
}

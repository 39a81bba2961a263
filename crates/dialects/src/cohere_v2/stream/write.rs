//! From neutral events to wire events.

use backstop_chat::{Event, StopReason, Usage};
use backstop_stream::write_event;

use super::super::answer::finish_word;
use super::super::usage;
use crate::json::Object;
use crate::translate::Stamp;

/// Writes the events of one stream.
#[derive(Debug)]
pub(crate) struct Writer {
    id: String,
    started: bool,
    open: Option<Block>,
    /// The next block's index.
    next: u64,
    /// Calls whose end was not told.
    tools: Vec<u32>,
    stop: Option<StopReason>,
    usage: Usage,
    ended: bool,
}

/// What content is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Block {
    Text,
    Thinking,
}

impl Block {
    const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Thinking => "thinking",
        }
    }
}

impl Writer {
    pub(crate) fn new(stamp: &Stamp<'_>) -> Self {
        Self {
            id: stamp.id.to_owned(),
            started: false,
            open: None,
            next: 0,
            tools: Vec::new(),
            stop: None,
            usage: Usage::default(),
            ended: false,
        }
    }

    /// Only the first choice is written: this wire has one.
    pub(crate) fn write(&mut self, event: &Event, out: &mut Vec<u8>) {
        if self.ended {
            return;
        }
        match event {
            Event::Start { id, .. } => self.start(id, out),
            Event::Text { choice: 0, text } | Event::Refusal { choice: 0, text } => {
                self.say(Block::Text, text, out);
            }
            Event::Reasoning { choice: 0, text } => self.say(Block::Thinking, text, out),
            Event::ToolStart {
                choice: 0,
                tool,
                id,
                name,
            } => {
                self.close(out);
                self.tools.push(*tool);
                write(out, "tool-call-start", Some(u64::from(*tool)), |message| {
                    message.object("tool_calls", |call| {
                        call.put("id", id);
                        call.put("type", "function");
                        call.object("function", |function| {
                            function.put("name", name);
                            function.put("arguments", "");
                        });
                    });
                });
            }
            Event::ToolArguments {
                choice: 0,
                tool,
                arguments,
            } => write(out, "tool-call-delta", Some(u64::from(*tool)), |message| {
                message.object("tool_calls", |call| {
                    call.object("function", |function| function.put("arguments", arguments));
                });
            }),
            Event::Stop {
                choice: 0, reason, ..
            } => self.stop = Some(reason.clone()),
            Event::Usage(usage) => self.usage = self.usage.updated(*usage),
            Event::End => self.end(out),
            // Signatures and sealed reasoning have no place on this wire.
            _ => {}
        }
    }

    fn start(&mut self, id: &str, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.started, true) {
            return;
        }
        if !id.is_empty() {
            id.clone_into(&mut self.id);
        }
        event(out, "message-start", |data| {
            data.put("id", &self.id);
            data.object("delta", |delta| {
                delta.object("message", |message| {
                    message.put("role", "assistant");
                    message.array("content", |_| {});
                });
            });
        });
    }

    fn say(&mut self, block: Block, text: &str, out: &mut Vec<u8>) {
        if self.open != Some(block) {
            self.close(out);
            self.open = Some(block);
            write(out, "content-start", Some(self.next), |message| {
                message.object("content", |content| {
                    content.put("type", block.name());
                    content.put(block.name(), "");
                });
            });
        }
        write(out, "content-delta", Some(self.next), |message| {
            message.object("content", |content| content.put(block.name(), text));
        });
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        if self.open.take().is_some() {
            event(out, "content-end", |data| data.put("index", &self.next));
            self.next += 1;
        }
    }

    /// The end of what is open, the reason with the counts, the end marker. Without a reason the
    /// answer has not ended, and nothing here says that it has.
    fn end(&mut self, out: &mut Vec<u8>) {
        let Some(reason) = self.stop.take() else {
            return;
        };
        self.ended = true;
        self.close(out);
        for tool in &self.tools {
            event(out, "tool-call-end", |data| data.put("index", tool));
        }
        event(out, "message-end", |data| {
            data.object("delta", |delta| {
                delta.put("finish_reason", finish_word(&reason));
                if !self.usage.is_empty() {
                    delta.object("usage", |out| usage::write(&self.usage, out));
                }
            });
        });
        write_event(out, None, b"[DONE]");
    }
}

/// An event that adds to the message.
fn write(out: &mut Vec<u8>, kind: &str, index: Option<u64>, fill: impl FnOnce(&mut Object<'_>)) {
    event(out, kind, |data| {
        data.put_some("index", index);
        data.object("delta", |delta| delta.object("message", fill));
    });
}

/// One wire event; its name stands on the `event:` line and in `type`.
fn event(out: &mut Vec<u8>, kind: &str, fill: impl FnOnce(&mut Object<'_>)) {
    let mut data = Vec::with_capacity(160);
    Object::write(&mut data, |data| {
        data.put("type", kind);
        fill(data);
    });
    write_event(out, Some(kind), &data);
}

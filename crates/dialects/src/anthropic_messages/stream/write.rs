//! From neutral events to wire events.
//!
//! Blocks stand one after another on this wire, each with its own index. Calls on other wires may
//! overlap: a call that begins while another's arguments are not yet complete waits, and is
//! written whole once the one before it is.

use std::collections::VecDeque;

use backstop_chat::{Event, StopReason, Text, Usage};
use backstop_stream::write_event;
use serde::de::IgnoredAny;

use crate::anthropic_messages::answer::{Said, stop_word, write_usage};
use crate::json::Object;
use crate::translate::Stamp;

/// Writes the events of one stream.
#[derive(Debug)]
pub(crate) struct Writer {
    id: String,
    model: String,
    started: bool,
    open: Option<Open>,
    /// The next block's index.
    next: u64,
    /// Calls that wait for the open one.
    waiting: VecDeque<Call>,
    said: Said,
    stop: Option<(StopReason, Option<Text>)>,
    usage: Usage,
    ended: bool,
}

#[derive(Debug)]
enum Open {
    Text,
    Thinking,
    Tool(Call),
}

#[derive(Debug)]
struct Call {
    tool: u32,
    id: String,
    name: String,
    /// All arguments so far.
    arguments: String,
}

impl Call {
    /// Whether its arguments can take no more.
    fn is_complete(&self) -> bool {
        serde_json::from_str::<IgnoredAny>(&self.arguments).is_ok()
    }
}

impl Writer {
    pub(crate) fn new(stamp: &Stamp<'_>) -> Self {
        Self {
            id: stamp.id.to_owned(),
            model: stamp.model.to_owned(),
            started: false,
            open: None,
            next: 0,
            waiting: VecDeque::new(),
            said: Said::default(),
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
            Event::Start { id, model, .. } => self.start(id, model, out),
            Event::Text { choice: 0, text } => self.words(text, out),
            Event::Refusal { choice: 0, text } => {
                self.said.refusal = true;
                self.words(text, out);
            }
            Event::Reasoning { choice: 0, text } => {
                if !matches!(self.open, Some(Open::Thinking)) {
                    self.begin(Open::Thinking, out);
                }
                self.delta(out, "thinking_delta", "thinking", text);
            }
            Event::ReasoningSignature {
                choice: 0,
                signature,
            } => {
                if !matches!(self.open, Some(Open::Thinking)) {
                    self.begin(Open::Thinking, out);
                }
                self.delta(out, "signature_delta", "signature", signature);
                self.close(out);
            }
            Event::RedactedReasoning { choice: 0, data } => self.sealed(data, out),
            Event::ToolStart {
                choice: 0,
                tool,
                id,
                name,
            } => self.call(
                Call {
                    tool: *tool,
                    id: id.clone(),
                    name: name.clone(),
                    arguments: String::new(),
                },
                out,
            ),
            Event::ToolArguments {
                choice: 0,
                tool,
                arguments,
            } => self.arguments(*tool, arguments, out),
            Event::Stop {
                choice: 0,
                reason,
                stop_sequence,
            } => self.stop = Some((reason.clone(), stop_sequence.clone())),
            Event::Usage(usage) => self.usage = self.usage.updated(*usage),
            Event::End => self.end(out),
            _ => {}
        }
    }

    fn start(&mut self, id: &str, model: &str, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.started, true) {
            return;
        }
        if !id.is_empty() {
            id.clone_into(&mut self.id);
        }
        if !model.is_empty() {
            model.clone_into(&mut self.model);
        }
        event(out, "message_start", |data| {
            data.object("message", |message| {
                message.put("id", &self.id);
                message.put("type", "message");
                message.put("role", "assistant");
                message.put("model", &self.model);
                message.array("content", |_| {});
                message.put("stop_reason", &None::<&str>);
                message.put("stop_sequence", &None::<&str>);
                // Other wires count at the end; `message_delta` has the numbers.
                message.object("usage", |usage| write_usage(&Usage::default(), usage));
            });
        });
    }

    fn words(&mut self, text: &str, out: &mut Vec<u8>) {
        if !matches!(self.open, Some(Open::Text)) {
            self.begin(Open::Text, out);
        }
        self.delta(out, "text_delta", "text", text);
    }

    fn sealed(&mut self, data: &str, out: &mut Vec<u8>) {
        self.settle(out);
        let index = self.next;
        self.next += 1;
        event(out, "content_block_start", |block| {
            block.put("index", &index);
            block.object("content_block", |block| {
                block.put("type", "redacted_thinking");
                block.put("data", data);
            });
        });
        event(out, "content_block_stop", |stop| stop.put("index", &index));
    }

    fn call(&mut self, call: Call, out: &mut Vec<u8>) {
        self.said.tools = true;
        match &self.open {
            Some(Open::Tool(open)) if !open.is_complete() => self.waiting.push_back(call),
            _ => self.begin(Open::Tool(call), out),
        }
    }

    fn arguments(&mut self, tool: u32, piece: &str, out: &mut Vec<u8>) {
        if let Some(Open::Tool(open)) = &mut self.open
            && open.tool == tool
        {
            open.arguments.push_str(piece);
            self.delta(out, "input_json_delta", "partial_json", piece);
            self.release(out);
        } else if let Some(call) = self.waiting.iter_mut().find(|call| call.tool == tool) {
            call.arguments.push_str(piece);
        }
    }

    /// Once the open call is complete, the next one that waits takes its place.
    fn release(&mut self, out: &mut Vec<u8>) {
        while !self.waiting.is_empty()
            && let Some(Open::Tool(open)) = &self.open
            && open.is_complete()
            && let Some(call) = self.waiting.pop_front()
        {
            self.close(out);
            self.open_whole(call, out);
        }
    }

    /// Begins a block of another kind; what is open or waits ends before it.
    fn begin(&mut self, block: Open, out: &mut Vec<u8>) {
        self.settle(out);
        self.open(block, out);
    }

    /// Ends what is open and writes what waits.
    fn settle(&mut self, out: &mut Vec<u8>) {
        self.close(out);
        while let Some(call) = self.waiting.pop_front() {
            self.open_whole(call, out);
            self.close(out);
        }
    }

    /// Opens a call that waited, with the arguments it gathered.
    fn open_whole(&mut self, call: Call, out: &mut Vec<u8>) {
        let gathered = call.arguments.clone();
        self.open(Open::Tool(call), out);
        if !gathered.is_empty() {
            self.delta(out, "input_json_delta", "partial_json", &gathered);
        }
    }

    fn open(&mut self, block: Open, out: &mut Vec<u8>) {
        event(out, "content_block_start", |data| {
            data.put("index", &self.next);
            data.object("content_block", |out| match &block {
                Open::Text => {
                    out.put("type", "text");
                    out.put("text", "");
                }
                Open::Thinking => {
                    out.put("type", "thinking");
                    out.put("thinking", "");
                    out.put("signature", "");
                }
                Open::Tool(call) => {
                    out.put("type", "tool_use");
                    out.put("id", &call.id);
                    out.put("name", &call.name);
                    out.object("input", |_| {});
                }
            });
        });
        self.open = Some(block);
    }

    fn delta(&self, out: &mut Vec<u8>, kind: &str, member: &str, text: &str) {
        event(out, "content_block_delta", |data| {
            data.put("index", &self.next);
            data.object("delta", |delta| {
                delta.put("type", kind);
                delta.put(member, text);
            });
        });
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        if self.open.take().is_some() {
            event(out, "content_block_stop", |stop| {
                stop.put("index", &self.next);
            });
            self.next += 1;
        }
    }

    /// The stop reason with the final counts, then the end marker. Without a stop reason the
    /// answer has not ended, and nothing here says that it has.
    fn end(&mut self, out: &mut Vec<u8>) {
        let Some((reason, stop_sequence)) = self.stop.take() else {
            return;
        };
        self.ended = true;
        self.settle(out);
        event(out, "message_delta", |data| {
            data.object("delta", |delta| {
                delta.put("stop_reason", stop_word(&reason, self.said));
                delta.put("stop_sequence", &stop_sequence);
            });
            data.object("usage", |usage| write_usage(&self.usage, usage));
        });
        event(out, "message_stop", |_| {});
    }
}

/// One wire event; its name stands on the `event:` line, where clients look, and in `type`.
fn event(out: &mut Vec<u8>, name: &str, fill: impl FnOnce(&mut Object<'_>)) {
    let mut data = Vec::with_capacity(160);
    Object::write(&mut data, |data| {
        data.put("type", name);
        fill(data);
    });
    write_event(out, Some(name), &data);
}

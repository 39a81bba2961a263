//! From neutral events to frames.
//!
//! Blocks stand one after another, each with its own index: clients read them so. Calls on other
//! wires may overlap: a call that begins while another's arguments are not yet complete waits, and
//! is written whole once the one before it is.

use std::collections::VecDeque;

use backstop_chat::{Event, StopReason, Text, Usage};
use backstop_stream::write_message;
use serde::de::IgnoredAny;

use crate::bedrock_converse::answer::stop_word;
use crate::bedrock_converse::{block, usage};
use crate::json::Object;
use crate::translate::Stamp;

/// Writes the frames of one stream.
#[derive(Debug)]
pub(crate) struct Writer {
    started: bool,
    open: Option<Open>,
    /// The next block's index.
    next: u64,
    /// Calls that wait for the open one.
    waiting: VecDeque<Call>,
    called: bool,
    stop: Option<(StopReason, Option<Text>)>,
    usage: Usage,
    ended: bool,
}

#[derive(Debug)]
enum Open {
    Text,
    Reasoning,
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
    /// There is no place for an id or a model here.
    pub(crate) fn new(_stamp: &Stamp<'_>) -> Self {
        Self {
            started: false,
            open: None,
            next: 0,
            waiting: VecDeque::new(),
            called: false,
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
            Event::Start { .. } if !std::mem::replace(&mut self.started, true) => {
                frame(out, "messageStart", |data| data.put("role", "assistant"));
            }
            Event::Text { choice: 0, text } | Event::Refusal { choice: 0, text } => {
                if !matches!(self.open, Some(Open::Text)) {
                    self.begin(Open::Text, out);
                }
                self.delta(out, |delta| delta.put("text", text));
            }
            Event::Reasoning { choice: 0, text } => self.reasoning("text", text, out),
            Event::ReasoningSignature {
                choice: 0,
                signature,
            } => {
                self.reasoning("signature", signature, out);
                self.close(out);
            }
            Event::RedactedReasoning { choice: 0, data } => {
                self.settle(out);
                self.begin(Open::Reasoning, out);
                self.reasoning("redactedContent", &block::sealed(data), out);
                self.close(out);
            }
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

    fn reasoning(&mut self, member: &str, text: &str, out: &mut Vec<u8>) {
        if !matches!(self.open, Some(Open::Reasoning)) {
            self.begin(Open::Reasoning, out);
        }
        self.delta(out, |delta| {
            delta.object("reasoningContent", |inner| inner.put(member, text));
        });
    }

    fn call(&mut self, call: Call, out: &mut Vec<u8>) {
        self.called = true;
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
            self.input(piece, out);
            self.release(out);
        } else if let Some(call) = self.waiting.iter_mut().find(|call| call.tool == tool) {
            call.arguments.push_str(piece);
        }
    }

    fn input(&self, piece: &str, out: &mut Vec<u8>) {
        self.delta(out, |delta| {
            delta.object("toolUse", |inner| inner.put("input", piece));
        });
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
            self.input(&gathered, out);
        }
    }

    /// Text and reasoning begin with their first delta.
    fn open(&mut self, block: Open, out: &mut Vec<u8>) {
        if let Open::Tool(call) = &block {
            frame(out, "contentBlockStart", |data| {
                data.object("start", |start| {
                    start.object("toolUse", |inner| {
                        inner.put("toolUseId", &call.id);
                        inner.put("name", &call.name);
                    });
                });
                data.put("contentBlockIndex", &self.next);
            });
        }
        self.open = Some(block);
    }

    fn delta(&self, out: &mut Vec<u8>, fill: impl FnOnce(&mut Object<'_>)) {
        frame(out, "contentBlockDelta", |data| {
            data.object("delta", fill);
            data.put("contentBlockIndex", &self.next);
        });
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        if self.open.take().is_some() {
            frame(out, "contentBlockStop", |data| {
                data.put("contentBlockIndex", &self.next);
            });
            self.next += 1;
        }
    }

    /// The stop reason, then the counts. Without a stop reason the answer has not ended, and nothing
    /// here says that it has.
    fn end(&mut self, out: &mut Vec<u8>) {
        let Some((reason, stop_sequence)) = self.stop.take() else {
            return;
        };
        self.ended = true;
        self.settle(out);
        frame(out, "messageStop", |data| {
            data.put("stopReason", stop_word(&reason, self.called));
            if let Some(text) = &stop_sequence {
                data.object("additionalModelResponseFields", |fields| {
                    fields.put("stop_sequence", text);
                });
            }
        });
        frame(out, "metadata", |data| {
            data.object("usage", |counts| usage::write(&self.usage, counts));
            data.object("metrics", |metrics| metrics.put("latencyMs", &0));
        });
    }
}

/// One event.
fn frame(out: &mut Vec<u8>, name: &'static str, fill: impl FnOnce(&mut Object<'_>)) {
    let mut data = Vec::with_capacity(160);
    Object::write(&mut data, fill);
    let headers = [
        (":event-type", name),
        (":content-type", "application/json"),
        (":message-type", "event"),
    ];
    write_message(out, &headers, data);
}

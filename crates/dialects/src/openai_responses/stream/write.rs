//! From neutral events to wire events.
//!
//! Every item is announced, told in pieces, and told again whole; the last event has all items once
//! more. So what was said is kept until the end. Words and reasoning stand one after another; calls
//! may overlap, each under the index of its item.

use backstop_chat::{Event, StopReason, Text, Usage};
use backstop_stream::write_event;
use serde::de::IgnoredAny;

use crate::json::Object;
use crate::openai_responses::answer::{Head, write_response};
use crate::openai_responses::item;
use crate::translate::Stamp;

/// Writes the events of one stream.
#[derive(Debug)]
pub(crate) struct Writer {
    head: Head,
    started: bool,
    sequence: u64,
    open: Option<Open>,
    calls: Vec<OpenCall>,
    /// Whole items by their index; `None` while one is open.
    output: Vec<Option<Vec<u8>>>,
    stop: Option<StopReason>,
    usage: Option<Usage>,
    ended: bool,
}

/// Words or reasoning under way.
#[derive(Debug)]
struct Open {
    kind: Kind,
    index: usize,
    id: String,
    text: Text,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Refusal,
    Reasoning,
}

/// A call under way.
#[derive(Debug)]
struct OpenCall {
    tool: u32,
    index: usize,
    id: String,
    call: item::Call,
}

impl Writer {
    pub(crate) fn new(stamp: &Stamp<'_>) -> Self {
        Self {
            head: Head::of(stamp),
            started: false,
            sequence: 0,
            open: None,
            calls: Vec::new(),
            output: Vec::new(),
            stop: None,
            usage: None,
            ended: false,
        }
    }

    /// Only the first choice is written: this wire has one.
    pub(crate) fn write(&mut self, event: &Event, out: &mut Vec<u8>) {
        if self.ended {
            return;
        }
        match event {
            Event::Start { id, model, created } if !self.started => {
                self.head = self.head.clone().with(id, model, *created);
                self.start(out);
            }
            Event::Text { choice: 0, text } => self.words(Kind::Text, text, out),
            Event::Refusal { choice: 0, text } => self.words(Kind::Refusal, text, out),
            Event::Reasoning { choice: 0, text } => self.words(Kind::Reasoning, text, out),
            Event::ReasoningSignature {
                choice: 0,
                signature,
            } => {
                if self
                    .open
                    .as_ref()
                    .is_none_or(|open| open.kind != Kind::Reasoning)
                {
                    self.begin(Kind::Reasoning, out);
                }
                self.close(Some(signature), out);
            }
            Event::RedactedReasoning { choice: 0, data } => {
                self.begin(Kind::Reasoning, out);
                self.close(Some(data), out);
            }
            Event::ToolStart {
                choice: 0,
                tool,
                id,
                name,
            } => self.call(*tool, id, name, out),
            Event::ToolArguments {
                choice: 0,
                tool,
                arguments,
            } => self.arguments(*tool, arguments, out),
            Event::Stop {
                choice: 0, reason, ..
            } => self.stop = Some(reason.clone()),
            Event::Usage(usage) => {
                self.usage = Some(self.usage.unwrap_or_default().updated(*usage));
            }
            Event::End => self.end(out),
            _ => {}
        }
    }

    fn start(&mut self, out: &mut Vec<u8>) {
        self.started = true;
        for kind in ["response.created", "response.in_progress"] {
            let head = self.head.clone();
            self.event(kind, out, |data| {
                data.object("response", |response| {
                    write_response(&head, ("in_progress", None), None, response, |_| {});
                });
            });
        }
    }

    fn words(&mut self, kind: Kind, text: &str, out: &mut Vec<u8>) {
        if self.open.as_ref().is_none_or(|open| open.kind != kind) {
            self.begin(kind, out);
        }
        let Some(open) = &mut self.open else {
            return;
        };
        let first = open.text.is_empty();
        open.text.push_str(text);
        let (id, index) = (open.id.clone(), open.index);
        if first {
            // Not with the item itself: reasoning that is only sealed has no parts.
            self.event(kind.part_added(), out, |data| {
                kind.place(&id, index, data);
                data.object("part", |part| kind.part("", part));
            });
        }
        self.event(kind.delta(), out, |data| {
            kind.place(&id, index, data);
            data.put("delta", text);
            if kind == Kind::Text {
                data.array("logprobs", |_| {});
            }
        });
    }

    /// Announces words or reasoning; what was open ends before.
    fn begin(&mut self, kind: Kind, out: &mut Vec<u8>) {
        self.settle(out);
        let index = self.reserve(out);
        let prefix = match kind {
            Kind::Reasoning => "rs",
            Kind::Text | Kind::Refusal => "msg",
        };
        let id = item::id(prefix, &self.head.id, index);
        self.event("response.output_item.added", out, |data| {
            data.put("output_index", &index);
            data.object("item", |item| match kind {
                Kind::Reasoning => item::write_reasoning(&id, "", None, item),
                _ => item::write_message(&id, "in_progress", item, |_| {}),
            });
        });
        self.open = Some(Open {
            kind,
            index,
            id,
            text: Text::default(),
        });
    }

    /// Tells what is open once more, whole, sealed where there is a seal.
    fn close(&mut self, seal: Option<&str>, out: &mut Vec<u8>) {
        let Some(Open {
            kind,
            index,
            id,
            text,
        }) = self.open.take()
        else {
            return;
        };
        if !text.is_empty() {
            let member = if kind == Kind::Refusal {
                "refusal"
            } else {
                "text"
            };
            self.event(kind.done(), out, |data| {
                kind.place(&id, index, data);
                data.put(member, &text);
                if kind == Kind::Text {
                    data.array("logprobs", |_| {});
                }
            });
            self.event(kind.part_done(), out, |data| {
                kind.place(&id, index, data);
                data.object("part", |part| kind.part(&text, part));
            });
        }
        let mut whole = Vec::with_capacity(128 + text.len());
        Object::write(&mut whole, |item| match kind {
            Kind::Reasoning => item::write_reasoning(&id, &text, seal, item),
            _ => item::write_message(&id, "completed", item, |content| {
                content.object(|part| kind.part(&text, part));
            }),
        });
        self.done(index, whole, out);
    }

    fn call(&mut self, tool: u32, id: &str, name: &str, out: &mut Vec<u8>) {
        self.close(None, out);
        self.close_calls(true, out);
        let index = self.reserve(out);
        let call = OpenCall {
            tool,
            index,
            id: item::id("fc", &self.head.id, index),
            call: item::Call {
                id: id.to_owned(),
                name: name.to_owned(),
                arguments: Text::default(),
            },
        };
        self.event("response.output_item.added", out, |data| {
            data.put("output_index", &index);
            data.object("item", |item| {
                item::write_call(&call.id, "in_progress", &call.call, item);
            });
        });
        self.calls.push(call);
    }

    fn arguments(&mut self, tool: u32, piece: &str, out: &mut Vec<u8>) {
        let Some(open) = self.calls.iter_mut().find(|open| open.tool == tool) else {
            return;
        };
        open.call.arguments.push_str(piece);
        let (id, index) = (open.id.clone(), open.index);
        self.event("response.function_call_arguments.delta", out, |data| {
            data.put("item_id", &id);
            data.put("output_index", &index);
            data.put("delta", piece);
        });
    }

    /// Ends the calls under way; with `complete` only those whose arguments can take no more.
    fn close_calls(&mut self, complete: bool, out: &mut Vec<u8>) {
        for mut open in std::mem::take(&mut self.calls) {
            let arguments = &open.call.arguments;
            if complete && serde_json::from_str::<IgnoredAny>(arguments).is_err() {
                self.calls.push(open);
                continue;
            }
            if arguments.is_empty() {
                // Clients parse this as JSON.
                open.call.arguments = "{}".into();
            }
            self.event("response.function_call_arguments.done", out, |data| {
                data.put("item_id", &open.id);
                data.put("output_index", &open.index);
                data.put("name", &open.call.name);
                data.put("arguments", &open.call.arguments);
            });
            let mut whole = Vec::with_capacity(128 + open.call.arguments.len());
            Object::write(&mut whole, |item| {
                item::write_call(&open.id, "completed", &open.call, item);
            });
            self.done(open.index, whole, out);
        }
    }

    fn settle(&mut self, out: &mut Vec<u8>) {
        self.close(None, out);
        self.close_calls(false, out);
    }

    /// The index of the next item; the first one announces the response if nothing did.
    fn reserve(&mut self, out: &mut Vec<u8>) -> usize {
        if !self.started {
            self.start(out);
        }
        self.output.push(None);
        self.output.len() - 1
    }

    fn done(&mut self, index: usize, whole: Vec<u8>, out: &mut Vec<u8>) {
        self.event("response.output_item.done", out, |data| {
            data.put("output_index", &index);
            data.raw("item", &whole);
        });
        if let Some(place) = self.output.get_mut(index) {
            *place = Some(whole);
        }
    }

    /// The whole response with its counts. Without a stop reason the answer has not ended, and
    /// nothing here says that it has.
    fn end(&mut self, out: &mut Vec<u8>) {
        let Some(reason) = self.stop.take() else {
            return;
        };
        self.ended = true;
        if !self.started {
            self.start(out);
        }
        self.settle(out);
        let status = item::status(Some(&reason));
        let kind = match status.0 {
            "incomplete" => "response.incomplete",
            _ => "response.completed",
        };
        let (head, usage) = (self.head.clone(), self.usage);
        let output = std::mem::take(&mut self.output);
        self.event(kind, out, |data| {
            data.object("response", |response| {
                write_response(&head, status, usage.as_ref(), response, |items| {
                    output.iter().flatten().for_each(|item| items.raw(item));
                });
            });
        });
    }

    /// One wire event; its name stands on the `event:` line too.
    fn event(&mut self, name: &str, out: &mut Vec<u8>, fill: impl FnOnce(&mut Object<'_>)) {
        let mut data = Vec::with_capacity(256);
        Object::write(&mut data, |data| {
            data.put("type", name);
            data.put("sequence_number", &self.sequence);
            fill(data);
        });
        self.sequence += 1;
        write_event(out, Some(name), &data);
    }
}

impl Kind {
    const fn delta(self) -> &'static str {
        match self {
            Self::Text => "response.output_text.delta",
            Self::Refusal => "response.refusal.delta",
            Self::Reasoning => "response.reasoning_summary_text.delta",
        }
    }

    const fn part_added(self) -> &'static str {
        match self {
            Self::Text | Self::Refusal => "response.content_part.added",
            Self::Reasoning => "response.reasoning_summary_part.added",
        }
    }

    const fn done(self) -> &'static str {
        match self {
            Self::Text => "response.output_text.done",
            Self::Refusal => "response.refusal.done",
            Self::Reasoning => "response.reasoning_summary_text.done",
        }
    }

    const fn part_done(self) -> &'static str {
        match self {
            Self::Text | Self::Refusal => "response.content_part.done",
            Self::Reasoning => "response.reasoning_summary_part.done",
        }
    }

    /// Where the piece stands.
    fn place(self, id: &str, index: usize, out: &mut Object<'_>) {
        let part = match self {
            Self::Text | Self::Refusal => "content_index",
            Self::Reasoning => "summary_index",
        };
        out.put("item_id", id);
        out.put("output_index", &index);
        out.put(part, &0);
    }

    /// The piece itself.
    fn part(self, text: &str, out: &mut Object<'_>) {
        match self {
            Self::Text => item::write_text(text, out),
            Self::Refusal => item::write_refusal(text, out),
            Self::Reasoning => {
                out.put("type", "summary_text");
                out.put("text", text);
            }
        }
    }
}

//! From wire events to neutral ones.

use backstop_chat::{Event, StopReason, Text};
use serde::Deserialize;

use super::super::answer::{Finish, finish, tool_id};
use crate::answer::Malformed;

const SHAPE: Malformed = Malformed::shape("an event of the wrong shape");

#[derive(Deserialize)]
struct Wire {
    #[serde(rename = "type", default)]
    kind: String,
    id: Option<String>,
    index: Option<u64>,
    delta: Option<Delta>,
}

#[derive(Deserialize)]
struct Delta {
    message: Option<Message>,
    finish_reason: Option<String>,
}

/// The parts of a message; in its first event they are empty lists.
#[derive(Deserialize)]
struct Message {
    content: Option<One<Content>>,
    tool_plan: Option<Text>,
    tool_calls: Option<One<Call>>,
}

/// One of something, or a list that says nothing here.
#[derive(Deserialize)]
#[serde(untagged)]
enum One<T> {
    This(T),
    Other(serde::de::IgnoredAny),
}

impl<T> One<T> {
    fn this(self) -> Option<T> {
        match self {
            Self::This(this) => Some(this),
            Self::Other(_) => None,
        }
    }
}

#[derive(Deserialize)]
struct Content {
    text: Option<Text>,
    thinking: Option<Text>,
}

#[derive(Deserialize)]
struct Call {
    id: Option<String>,
    function: Option<Function>,
}

#[derive(Deserialize)]
struct Function {
    name: Option<String>,
    arguments: Option<Text>,
}

/// Makes neutral events of one stream's.
#[derive(Debug, Default)]
pub(super) struct Events {
    id: String,
    started: bool,
    stopped: bool,
    /// Calls so far, by their number on the wire, and whether anything was said of their arguments.
    tools: Vec<(u64, bool)>,
}

impl Events {
    /// The events of one wire event, appended to `out`.
    pub(super) fn read(&mut self, data: &[u8], out: &mut Vec<Event>) -> Result<(), Malformed> {
        let wire: Wire = serde_json::from_slice(data).map_err(|_| SHAPE)?;
        if !self.started {
            self.started = true;
            self.id = wire.id.unwrap_or_default();
            out.push(Event::Start {
                id: self.id.clone(),
                model: String::new(),
                created: None,
            });
        }
        let (message, finish_reason) = wire
            .delta
            .map_or((None, None), |delta| (delta.message, delta.finish_reason));
        if let Some(message) = message {
            self.message(wire.index.unwrap_or(0), message, out);
        }
        match wire.kind.as_str() {
            "tool-call-end" => self.close(wire.index.unwrap_or(0), out),
            "message-end" => self.stop(finish_reason.as_deref(), out),
            _ => {}
        }
        Ok(())
    }

    fn message(&mut self, index: u64, message: Message, out: &mut Vec<Event>) {
        let choice = 0;
        if let Some(text) = message.tool_plan.filter(|text| !text.is_empty()) {
            out.push(Event::Reasoning { choice, text });
        }
        if let Some(content) = message.content.and_then(One::this) {
            if let Some(text) = content.thinking.filter(|text| !text.is_empty()) {
                out.push(Event::Reasoning { choice, text });
            }
            if let Some(text) = content.text.filter(|text| !text.is_empty()) {
                out.push(Event::Text { choice, text });
            }
        }
        if let Some(call) = message.tool_calls.and_then(One::this) {
            self.call(index, call, out);
        }
    }

    fn call(&mut self, index: u64, call: Call, out: &mut Vec<Event>) {
        let (name, arguments) = call
            .function
            .map_or((None, None), |function| (function.name, function.arguments));
        if let Some(name) = name.filter(|name| !name.is_empty())
            && self.place(index).is_none()
        {
            let tool = u32::try_from(self.tools.len()).unwrap_or(u32::MAX);
            self.tools.push((index, false));
            let id = call.id.filter(|id| !id.is_empty());
            out.push(Event::ToolStart {
                choice: 0,
                tool,
                id: id.unwrap_or_else(|| tool_id(&self.id, tool)),
                name,
            });
        }
        if let Some(arguments) = arguments.filter(|text| !text.is_empty()) {
            self.arguments(index, arguments, out);
        }
    }

    fn arguments(&mut self, index: u64, arguments: Text, out: &mut Vec<Event>) {
        let Some(place) = self.place(index) else {
            return;
        };
        self.tools[place].1 = true;
        out.push(Event::ToolArguments {
            choice: 0,
            tool: u32::try_from(place).unwrap_or(u32::MAX),
            arguments,
        });
    }

    fn place(&self, index: u64) -> Option<usize> {
        self.tools.iter().rposition(|(of, _)| *of == index)
    }

    /// A tool that was called without arguments was called with an empty object.
    fn close(&mut self, index: u64, out: &mut Vec<Event>) {
        if self.place(index).is_some_and(|place| !self.tools[place].1) {
            self.arguments(index, "{}".into(), out);
        }
    }

    fn stop(&mut self, word: Option<&str>, out: &mut Vec<Event>) {
        if std::mem::replace(&mut self.stopped, true) {
            return;
        }
        for (index, _) in self.tools.clone() {
            self.close(index, out);
        }
        let reason = match word.map(finish) {
            Some(Finish::Ended(StopReason::EndTurn)) if !self.tools.is_empty() => {
                StopReason::ToolUse
            }
            Some(Finish::Ended(reason)) => reason,
            _ => StopReason::EndTurn,
        };
        out.push(Event::Stop {
            choice: 0,
            reason,
            stop_sequence: None,
        });
    }
}

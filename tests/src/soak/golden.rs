//! Whole streams as providers write them, with the places where each of their parts is complete.
//!
//! A stream that is cut is judged by these places: what a caller may have heard, and whether the
//! answer may look finished.

use std::ops::Range;

use backstop_faultsim::Dialect;
use serde_json::{Value, json};

use super::dice::Dice;

/// A whole stream of one attempt.
pub(crate) struct Golden {
    pub(crate) wire: Vec<u8>,
    pub(crate) events: Vec<Event>,
}

/// One event of it.
pub(crate) struct Event {
    /// All of it, its blank line included.
    pub(crate) span: Range<usize>,
    /// Its data.
    pub(crate) data: Range<usize>,
    pub(crate) part: Part,
}

/// What an event is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// Comments, startup, bookkeeping.
    Frame,
    /// A piece of what is said.
    Said(String),
    /// Why the answer ends.
    Reason,
    /// That the stream is over.
    Done,
}

/// What an answer says, and how its events are written.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    pub(crate) pieces: Vec<String>,
    /// As the arguments of a tool call instead of text.
    pub(crate) tool: bool,
    /// Lines end in CR LF.
    pub(crate) crlf: bool,
    /// Comments or pings among the events.
    pub(crate) chatty: bool,
}

const WORDS: [&str; 8] = [
    "plain",
    "grün",
    "水",
    "🦀🦀",
    "a b",
    "tab\there",
    "\"said\"",
    "two\nlines",
];

impl Script {
    /// An answer whose every piece carries `tag`, so that it is known again.
    pub(crate) fn roll(dice: &mut Dice, tag: &str, tool: bool) -> Self {
        let count = dice.between(1, 8);
        let mut pieces: Vec<String> = (0..count)
            .map(|number| {
                let words = if tool {
                    "word ".repeat(dice.below(6))
                } else {
                    let words = (0..dice.below(6)).map(|_| dice.pick(&WORDS));
                    words.collect::<Vec<_>>().join(" ")
                };
                format!("<{tag}.{number}>{words}")
            })
            .collect();
        if tool {
            pieces.insert(0, "{\"text\":\"".to_owned());
            pieces.push("\"}".to_owned());
        }
        Self {
            pieces,
            tool,
            crlf: dice.one_in(4),
            chatty: dice.one_in(3),
        }
    }

    /// All of what it says.
    pub(crate) fn said(&self) -> String {
        self.pieces.concat()
    }

    /// As a stream in `dialect`.
    pub(crate) fn stream(&self, dialect: Dialect) -> Golden {
        let mut writer = Writer {
            golden: Golden {
                wire: Vec::new(),
                events: Vec::new(),
            },
            crlf: self.crlf,
        };
        match dialect {
            Dialect::OpenAi => self.openai(&mut writer),
            Dialect::Anthropic => self.anthropic(&mut writer),
            Dialect::Bedrock => unreachable!("the soak plays in the two dialects of lines"),
        }
        writer.golden
    }

    /// As a whole answer in `dialect`.
    pub(crate) fn whole(&self, dialect: Dialect) -> Value {
        let text = self.said();
        match dialect {
            Dialect::OpenAi => json!({
                "id": "chatcmpl-soak", "object": "chat.completion", "created": 1, "model": "m",
                "choices": [{"index": 0, "finish_reason": "stop",
                    "message": {"role": "assistant", "content": text}}],
                "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
            }),
            Dialect::Anthropic => json!({
                "id": "msg_soak", "type": "message", "role": "assistant", "model": "m",
                "content": [{"type": "text", "text": text}],
                "stop_reason": "end_turn", "stop_sequence": null,
                "usage": {"input_tokens": 1, "output_tokens": 1},
            }),
            Dialect::Bedrock => unreachable!("the soak plays in the two dialects of lines"),
        }
    }

    fn openai(&self, out: &mut Writer) {
        let chunk = |delta: Value, finish: Value| {
            json!({
                "id": "chatcmpl-soak", "object": "chat.completion.chunk", "created": 1,
                "model": "m",
                "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
            })
        };
        if self.chatty {
            out.comment(" processing");
        }
        let role = json!({"role": "assistant", "content": ""});
        out.event(None, &chunk(role, Value::Null), Part::Frame);
        for (number, piece) in self.pieces.iter().enumerate() {
            let delta = if self.tool {
                let mut call = json!({"index": 0, "function": {"arguments": piece}});
                if number == 0 {
                    call["id"] = "call_1".into();
                    call["type"] = "function".into();
                    call["function"]["name"] = "write".into();
                }
                json!({"tool_calls": [call]})
            } else {
                json!({"content": piece})
            };
            let part = Part::Said(piece.clone());
            out.event(None, &chunk(delta, Value::Null), part);
            if self.chatty {
                out.comment(" still here");
            }
        }
        let reason = if self.tool { "tool_calls" } else { "stop" };
        out.event(None, &chunk(json!({}), reason.into()), Part::Reason);
        let usage = json!({
            "id": "chatcmpl-soak", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        });
        out.event(None, &usage, Part::Frame);
        out.line(None, "[DONE]", Part::Done);
    }

    fn anthropic(&self, out: &mut Writer) {
        let start = json!({"type": "message_start", "message": {
            "id": "msg_soak", "type": "message", "role": "assistant", "model": "m",
            "content": [], "stop_reason": null, "stop_sequence": null,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }});
        out.typed(&start, Part::Frame);
        if self.chatty {
            out.typed(&json!({"type": "ping"}), Part::Frame);
        }
        let block = if self.tool {
            json!({"type": "tool_use", "id": "call_1", "name": "write", "input": {}})
        } else {
            json!({"type": "text", "text": ""})
        };
        let block = json!({"type": "content_block_start", "index": 0, "content_block": block});
        out.typed(&block, Part::Frame);
        for piece in &self.pieces {
            let delta = if self.tool {
                json!({"type": "input_json_delta", "partial_json": piece})
            } else {
                json!({"type": "text_delta", "text": piece})
            };
            let delta = json!({"type": "content_block_delta", "index": 0, "delta": delta});
            out.typed(&delta, Part::Said(piece.clone()));
            if self.chatty {
                out.typed(&json!({"type": "ping"}), Part::Frame);
            }
        }
        out.typed(
            &json!({"type": "content_block_stop", "index": 0}),
            Part::Frame,
        );
        let reason = if self.tool { "tool_use" } else { "end_turn" };
        let reason = json!({"type": "message_delta", "usage": {"output_tokens": 1},
            "delta": {"stop_reason": reason, "stop_sequence": null}});
        out.typed(&reason, Part::Reason);
        out.typed(&json!({"type": "message_stop"}), Part::Done);
    }
}

struct Writer {
    golden: Golden,
    crlf: bool,
}

impl Writer {
    fn comment(&mut self, text: &str) {
        self.push(&format!(":{text}\n\n"));
    }

    fn typed(&mut self, data: &Value, part: Part) {
        self.event(data["type"].as_str(), data, part);
    }

    fn event(&mut self, event: Option<&str>, data: &Value, part: Part) {
        self.line(event, &data.to_string(), part);
    }

    fn line(&mut self, event: Option<&str>, data: &str, part: Part) {
        let start = self.golden.wire.len();
        if let Some(event) = event {
            self.push(&format!("event: {event}\n"));
        }
        self.push("data: ");
        let from = self.golden.wire.len();
        self.push(data);
        let to = self.golden.wire.len();
        self.push("\n\n");
        let span = start..self.golden.wire.len();
        self.golden.events.push(Event {
            span,
            data: from..to,
            part,
        });
    }

    fn push(&mut self, text: &str) {
        let text = if self.crlf {
            text.replace('\n', "\r\n")
        } else {
            text.to_owned()
        };
        self.golden.wire.extend_from_slice(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_places_of_a_stream_are_where_it_says() {
        for seed in 0..50 {
            let mut dice = Dice::of(seed, &[]);
            let script = Script::roll(&mut dice, "t", seed % 2 == 0);
            for dialect in [Dialect::OpenAi, Dialect::Anthropic] {
                let golden = script.stream(dialect);
                let mut said = String::new();
                for event in &golden.events {
                    let data = &golden.wire[event.data.clone()];
                    assert!(golden.wire[event.span.clone()].ends_with(b"\n"));
                    let json = serde_json::from_slice::<Value>(data);
                    assert!(json.is_ok() || data == b"[DONE]");
                    if let Part::Said(piece) = &event.part {
                        said += piece;
                    }
                }
                assert_eq!(said, script.said());
                assert_eq!(golden.events.last().map(|e| &e.part), Some(&Part::Done));
            }
        }
    }
}

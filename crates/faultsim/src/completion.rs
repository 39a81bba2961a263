//! Completions as a healthy provider writes them: whole or streamed, in each dialect.

mod bedrock;

use std::time::Duration;

use serde_json::{Value, json};

use crate::asked::{Asked, Dialect};
use crate::fault::Fault;
use crate::script::{Frame, Item};

/// When every simulated answer was created: the same each time, so that answers can be compared.
const CREATED: u64 = 1_750_000_000;

/// What the model says.
#[derive(Clone, Copy)]
pub(crate) enum Said<'a> {
    Text(&'a [String]),
    Call { name: &'a str, arguments: &'a Value },
}

/// One completion about to be written.
#[derive(Clone, Copy)]
pub(crate) struct Completion<'a> {
    pub(crate) dialect: Dialect,
    pub(crate) asked: &'a Asked,
    /// The attempt's number, for ids.
    pub(crate) seq: u64,
    /// Length of the request body in bytes, for a plausible count of prompt tokens.
    pub(crate) prompt_bytes: usize,
    pub(crate) said: Said<'a>,
}

impl Completion<'_> {
    /// The non-streamed body.
    pub(crate) fn whole(&self) -> Value {
        match self.dialect {
            Dialect::OpenAi => json!({
                "id": self.id(), "object": "chat.completion", "created": CREATED,
                "model": self.model(),
                "choices": [{
                    "index": 0, "message": self.openai_message(), "logprobs": null,
                    "finish_reason": self.openai_finish(),
                }],
                "usage": self.openai_usage(),
            }),
            Dialect::Anthropic => json!({
                "id": self.id(), "type": "message", "role": "assistant", "model": self.model(),
                "content": [self.anthropic_block()],
                "stop_reason": self.anthropic_stop(), "stop_sequence": null,
                "usage": {"input_tokens": self.prompt(), "output_tokens": self.answer()},
            }),
            Dialect::Bedrock => self.bedrock(),
        }
    }

    /// The streamed body, with `gap` before each piece of output. The terminal events come only
    /// with `finished`; with a `fault` they are replaced by an error event.
    pub(crate) fn stream(&self, gap: Duration, finished: bool, fault: Option<Fault>) -> Vec<Item> {
        // A stream that says nothing and fails opens with its error.
        let bare = fault.is_some() && matches!(self.said, Said::Text([]));
        let mut items = Vec::new();
        if !bare {
            match self.dialect {
                Dialect::OpenAi => self.openai_deltas(gap, &mut items),
                Dialect::Anthropic => self.anthropic_deltas(gap, &mut items),
                Dialect::Bedrock => self.bedrock_deltas(gap, &mut items),
            }
        }
        match (fault, self.dialect) {
            (Some(fault), dialect) => {
                let body = fault.body(dialect, self.model());
                items.push(match dialect {
                    Dialect::OpenAi => Item::data(body),
                    Dialect::Anthropic => Item::event("error", body),
                    Dialect::Bedrock => Frame::exception(fault.exception(), body).into(),
                });
            }
            (None, _) if !finished => {}
            (None, Dialect::OpenAi) => self.openai_end(&mut items),
            (None, Dialect::Anthropic) => self.anthropic_end(&mut items),
            (None, Dialect::Bedrock) => self.bedrock_end(&mut items),
        }
        items
    }

    fn openai_deltas(&self, gap: Duration, items: &mut Vec<Item>) {
        let role = json!({"role": "assistant", "content": "", "refusal": null});
        items.push(self.openai_chunk(&role, None));
        match self.said {
            Said::Text(pieces) => items.extend(pieces.iter().map(|piece| {
                self.openai_chunk(&json!({"content": piece}), None)
                    .after(gap)
            })),
            Said::Call { name, arguments } => {
                let first = json!({"tool_calls": [{
                    "index": 0, "id": self.call_id(), "type": "function",
                    "function": {"name": name, "arguments": ""},
                }]});
                items.push(self.openai_chunk(&first, None).after(gap));
                for half in halves(&arguments.to_string()) {
                    let next =
                        json!({"tool_calls": [{"index": 0, "function": {"arguments": half}}]});
                    items.push(self.openai_chunk(&next, None).after(gap));
                }
            }
        }
    }

    fn openai_end(&self, items: &mut Vec<Item>) {
        items.push(self.openai_chunk(&json!({}), Some(self.openai_finish())));
        if self.asked.usage_chunk {
            items.push(Item::data(json!({
                "id": self.id(), "object": "chat.completion.chunk", "created": CREATED,
                "model": self.model(), "choices": [], "usage": self.openai_usage(),
            })));
        }
        items.push(Item::done());
    }

    fn openai_chunk(&self, delta: &Value, finish: Option<&str>) -> Item {
        let mut chunk = json!({
            "id": self.id(), "object": "chat.completion.chunk", "created": CREATED,
            "model": self.model(),
            "choices": [{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}],
        });
        if self.asked.usage_chunk {
            chunk["usage"] = Value::Null;
        }
        Item::data(chunk)
    }

    fn openai_message(&self) -> Value {
        match self.said {
            Said::Text(pieces) => {
                json!({"role": "assistant", "content": pieces.concat(), "refusal": null})
            }
            Said::Call { name, arguments } => json!({
                "role": "assistant", "content": null, "refusal": null,
                "tool_calls": [{
                    "id": self.call_id(), "type": "function",
                    "function": {"name": name, "arguments": arguments.to_string()},
                }],
            }),
        }
    }

    const fn openai_finish(&self) -> &'static str {
        match self.said {
            Said::Text(_) => "stop",
            Said::Call { .. } => "tool_calls",
        }
    }

    fn openai_usage(&self) -> Value {
        let (prompt, answer) = (self.prompt(), self.answer());
        json!({
            "prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer,
            "prompt_tokens_details": {"cached_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0},
        })
    }

    fn anthropic_deltas(&self, gap: Duration, items: &mut Vec<Item>) {
        items.push(event(json!({"type": "message_start", "message": {
            "id": self.id(), "type": "message", "role": "assistant", "model": self.model(),
            "content": [], "stop_reason": null, "stop_sequence": null,
            "usage": {"input_tokens": self.prompt(), "output_tokens": 1},
        }})));
        let (block, deltas): (Value, Vec<Value>) = match self.said {
            Said::Text(pieces) => (
                json!({"type": "text", "text": ""}),
                pieces
                    .iter()
                    .map(|piece| json!({"type": "text_delta", "text": piece}))
                    .collect(),
            ),
            Said::Call { name, arguments } => (
                json!({"type": "tool_use", "id": self.call_id(), "name": name, "input": {}}),
                halves(&arguments.to_string())
                    .iter()
                    .map(|half| json!({"type": "input_json_delta", "partial_json": half}))
                    .collect(),
            ),
        };
        items.push(event(json!({
            "type": "content_block_start", "index": 0, "content_block": block,
        })));
        items.push(event(json!({"type": "ping"})));
        items.extend(deltas.into_iter().map(|delta| {
            event(json!({"type": "content_block_delta", "index": 0, "delta": delta})).after(gap)
        }));
    }

    fn anthropic_end(&self, items: &mut Vec<Item>) {
        items.push(event(json!({"type": "content_block_stop", "index": 0})));
        items.push(event(json!({
            "type": "message_delta",
            "delta": {"stop_reason": self.anthropic_stop(), "stop_sequence": null},
            "usage": {"output_tokens": self.answer()},
        })));
        items.push(event(json!({"type": "message_stop"})));
    }

    fn anthropic_block(&self) -> Value {
        match self.said {
            Said::Text(pieces) => json!({"type": "text", "text": pieces.concat()}),
            Said::Call { name, arguments } => {
                json!({"type": "tool_use", "id": self.call_id(), "name": name, "input": arguments})
            }
        }
    }

    const fn anthropic_stop(&self) -> &'static str {
        match self.said {
            Said::Text(_) => "end_turn",
            Said::Call { .. } => "tool_use",
        }
    }

    fn id(&self) -> String {
        match self.dialect {
            Dialect::OpenAi => format!("chatcmpl-sim{:06}", self.seq),
            Dialect::Anthropic => format!("msg_sim{:06}", self.seq),
            // There is no place for one.
            Dialect::Bedrock => String::new(),
        }
    }

    fn call_id(&self) -> String {
        match self.dialect {
            Dialect::OpenAi => format!("call_sim{:06}", self.seq),
            Dialect::Anthropic => format!("toolu_sim{:06}", self.seq),
            Dialect::Bedrock => format!("tooluse_sim{:06}", self.seq),
        }
    }

    fn model(&self) -> &str {
        self.asked.model.as_deref().unwrap_or("unnamed")
    }

    /// About four bytes a token.
    const fn prompt(&self) -> usize {
        self.prompt_bytes / 4 + 1
    }

    fn answer(&self) -> usize {
        match self.said {
            Said::Text(pieces) => pieces.iter().map(|piece| piece.len().div_ceil(4)).sum(),
            Said::Call { name, arguments } => (name.len() + arguments.to_string().len()) / 4 + 1,
        }
    }
}

/// An Anthropic event: its `event:` line repeats its type.
fn event(data: Value) -> Item {
    let name = data["type"]
        .as_str()
        .expect("every event here is written with a type")
        .to_owned();
    Item::event(name, data)
}

/// `text` cut in two, so that arguments arrive in pieces.
fn halves(text: &str) -> [&str; 2] {
    let middle = (0..=text.len() / 2)
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0);
    let (left, right) = text.split_at(middle);
    [left, right]
}

/// Arguments that fit a tool's JSON schema well enough.
pub(crate) fn sample(schema: &Value) -> Value {
    if let Some(first) = schema["enum"].as_array().and_then(|all| all.first()) {
        return first.clone();
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds.first().and_then(Value::as_str),
        kind => kind.as_str(),
    };
    match kind {
        Some("string") => json!("example"),
        Some("integer" | "number") => json!(1),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        _ => {
            let properties = schema["properties"].as_object();
            Value::Object(
                properties
                    .into_iter()
                    .flatten()
                    .map(|(name, schema)| (name.clone(), sample(schema)))
                    .collect(),
            )
        }
    }
}

#[cfg(test)]
mod tests;

//! A completion as Bedrock's Converse writes it.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Completion, Said, halves};
use crate::script::{Frame, Item};

impl Completion<'_> {
    /// The non-streamed body.
    pub(super) fn bedrock(&self) -> Value {
        let block = match self.said {
            Said::Text(pieces) => json!({"text": pieces.concat()}),
            Said::Call { name, arguments } => json!({
                "toolUse": {"toolUseId": self.call_id(), "name": name, "input": arguments},
            }),
        };
        json!({
            "output": {"message": {"role": "assistant", "content": [block]}},
            "stopReason": self.bedrock_stop(), "usage": self.bedrock_usage(),
            "metrics": {"latencyMs": 1},
        })
    }

    /// Text begins with its first delta; only a call is announced.
    pub(super) fn bedrock_deltas(&self, gap: Duration, items: &mut Vec<Item>) {
        items.push(frame("messageStart", json!({"role": "assistant"})));
        let delta = |delta: Value| {
            let data = json!({"contentBlockIndex": 0, "delta": delta});
            frame("contentBlockDelta", data).after(gap)
        };
        match self.said {
            Said::Text(pieces) => {
                items.extend(pieces.iter().map(|piece| delta(json!({"text": piece}))));
            }
            Said::Call { name, arguments } => {
                let call = json!({"toolUse": {"toolUseId": self.call_id(), "name": name}});
                let start = json!({"contentBlockIndex": 0, "start": call});
                items.push(frame("contentBlockStart", start).after(gap));
                let arguments = arguments.to_string();
                let halves = halves(&arguments);
                items.extend(halves.map(|half| delta(json!({"toolUse": {"input": half}}))));
            }
        }
    }

    /// The counts come last.
    pub(super) fn bedrock_end(&self, items: &mut Vec<Item>) {
        items.push(frame("contentBlockStop", json!({"contentBlockIndex": 0})));
        let stop = json!({"stopReason": self.bedrock_stop()});
        items.push(frame("messageStop", stop));
        let counts = json!({"usage": self.bedrock_usage(), "metrics": {"latencyMs": 1}});
        items.push(frame("metadata", counts));
    }

    const fn bedrock_stop(&self) -> &'static str {
        match self.said {
            Said::Text(_) => "end_turn",
            Said::Call { .. } => "tool_use",
        }
    }

    fn bedrock_usage(&self) -> Value {
        let (prompt, answer) = (self.prompt(), self.answer());
        json!({"inputTokens": prompt, "outputTokens": answer, "totalTokens": prompt + answer})
    }
}

fn frame(name: &str, payload: Value) -> Item {
    Frame::event(name, payload).into()
}

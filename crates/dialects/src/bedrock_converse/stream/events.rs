//! From wire events to neutral ones.

use backstop_chat::{Event, Text, Usage};
use serde::Deserialize;

use crate::answer::Malformed;
use crate::bedrock_converse::answer::{Stop, stop};
use crate::bedrock_converse::block;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wire {
    content_block_index: Option<u64>,
    start: Option<Start>,
    delta: Option<Delta>,
    stop_reason: Option<String>,
    additional_model_response_fields: Option<OfTheModel>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Start {
    tool_use: Option<Call>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Call {
    tool_use_id: String,
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Delta {
    text: Option<Text>,
    tool_use: Option<Input>,
    reasoning_content: Option<Reasoning>,
}

#[derive(Deserialize)]
struct Input {
    input: Option<Text>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Reasoning {
    text: Option<Text>,
    signature: Option<Text>,
    redacted_content: Option<String>,
}

#[derive(Deserialize)]
struct OfTheModel {
    stop_sequence: Option<Text>,
}

/// Makes neutral events of one stream's.
#[derive(Debug, Default)]
pub(super) struct Events {
    tools: u32,
    /// The calls that are open.
    open: Vec<Open>,
    stopped: bool,
}

#[derive(Debug)]
struct Open {
    /// The block's number on the wire: all blocks are counted there, not calls alone.
    index: u64,
    /// The call's number in our events.
    tool: u32,
    said: bool,
}

const SHAPE: Malformed = Malformed::shape("an event of the wrong shape");

impl Events {
    /// The events of one wire event, appended to `out`; `usage` is what it counts.
    pub(super) fn read(
        &mut self,
        kind: &str,
        data: &[u8],
        usage: Option<Usage>,
        out: &mut Vec<Event>,
    ) -> Result<(), Malformed> {
        let wire: Wire = serde_json::from_slice(data).map_err(|_| SHAPE)?;
        let index = wire.content_block_index.unwrap_or(0);
        match kind {
            "messageStart" => out.push(Event::Start {
                id: String::new(),
                model: String::new(),
                created: None,
            }),
            "contentBlockStart" => {
                if let Some(call) = wire.start.and_then(|start| start.tool_use) {
                    self.start(index, call, out);
                }
            }
            "contentBlockDelta" => {
                if let Some(delta) = wire.delta {
                    self.delta(index, delta, out);
                }
            }
            "contentBlockStop" => self.stop(index, out),
            "messageStop" => {
                if let Some(Stop::Ended(reason)) = wire.stop_reason.as_deref().map(stop)
                    && !std::mem::replace(&mut self.stopped, true)
                {
                    out.push(Event::Stop {
                        choice: 0,
                        reason,
                        stop_sequence: wire
                            .additional_model_response_fields
                            .and_then(|fields| fields.stop_sequence),
                    });
                }
            }
            _ => {}
        }
        out.extend(usage.map(Event::Usage));
        if kind == "metadata" && self.stopped {
            out.push(Event::End);
        }
        Ok(())
    }

    fn start(&mut self, index: u64, call: Call, out: &mut Vec<Event>) {
        let tool = self.tools;
        self.tools += 1;
        self.open.push(Open {
            index,
            tool,
            said: false,
        });
        out.push(Event::ToolStart {
            choice: 0,
            tool,
            id: call.tool_use_id,
            name: call.name,
        });
    }

    fn delta(&mut self, index: u64, delta: Delta, out: &mut Vec<Event>) {
        let choice = 0;
        let some = |text: Option<Text>| text.filter(|text| !text.is_empty());
        if let Some(text) = some(delta.text) {
            out.push(Event::Text { choice, text });
        }
        if let Some(reasoning) = delta.reasoning_content {
            if let Some(text) = some(reasoning.text) {
                out.push(Event::Reasoning { choice, text });
            }
            if let Some(signature) = some(reasoning.signature) {
                out.push(Event::ReasoningSignature { choice, signature });
            }
            if let Some(data) = reasoning.redacted_content.filter(|data| !data.is_empty()) {
                let data = block::unsealed(&data);
                out.push(Event::RedactedReasoning { choice, data });
            }
        }
        let arguments = some(delta.tool_use.and_then(|call| call.input));
        if let Some(arguments) = arguments
            && let Some(open) = self.open.iter_mut().find(|open| open.index == index)
        {
            open.said = true;
            out.push(Event::ToolArguments {
                choice,
                tool: open.tool,
                arguments,
            });
        }
    }

    /// A tool that was called without arguments was called with an empty object.
    fn stop(&mut self, index: u64, out: &mut Vec<Event>) {
        let Some(place) = self.open.iter().position(|open| open.index == index) else {
            return;
        };
        let open = self.open.swap_remove(place);
        if !open.said {
            out.push(Event::ToolArguments {
                choice: 0,
                tool: open.tool,
                arguments: "{}".into(),
            });
        }
    }
}

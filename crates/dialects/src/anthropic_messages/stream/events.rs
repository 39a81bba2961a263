//! From wire events to neutral ones.

use backstop_chat::{Event, Text, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::answer::{Malformed, is_hollow};
use crate::anthropic_messages::answer::stop_reason;

#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(rename = "type")]
    kind: String,
    index: Option<u64>,
    message: Option<Message>,
    #[serde(borrow)]
    content_block: Option<Block<'a>>,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
}

#[derive(Deserialize)]
struct Message {
    id: Option<String>,
    model: Option<String>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(rename = "type")]
    kind: String,
    // A provider-side tool's block may use these names for anything.
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    thinking: Option<&'a RawValue>,
    data: Option<&'a RawValue>,
    id: Option<&'a RawValue>,
    name: Option<&'a RawValue>,
    input: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    thinking: Option<&'a RawValue>,
    signature: Option<&'a RawValue>,
    partial_json: Option<&'a RawValue>,
    stop_reason: Option<String>,
    stop_sequence: Option<Text>,
}

/// Makes neutral events of one stream's.
#[derive(Debug, Default)]
pub(super) struct Events {
    tools: u32,
    /// The function tool blocks that are open.
    open: Vec<Open>,
    stopped: bool,
}

#[derive(Debug)]
struct Open {
    /// The block's number on the wire.
    index: u64,
    /// The call's number in our events.
    tool: u32,
    said: bool,
}

const SHAPE: Malformed = Malformed::shape("an event of the wrong shape");

impl Events {
    /// The events of one wire event, appended to `out`; `usage` is what it added to the counts.
    pub(super) fn read(
        &mut self,
        data: &[u8],
        usage: Option<Usage>,
        out: &mut Vec<Event>,
    ) -> Result<(), Malformed> {
        let wire: Wire<'_> = serde_json::from_slice(data).map_err(|_| SHAPE)?;
        let index = wire.index.unwrap_or(0);
        match wire.kind.as_str() {
            "message_start" => {
                let message = wire.message.ok_or(SHAPE)?;
                out.push(Event::Start {
                    id: message.id.unwrap_or_default(),
                    model: message.model.unwrap_or_default(),
                    created: None,
                });
            }
            "content_block_start" => self.start(index, &wire.content_block.ok_or(SHAPE)?, out)?,
            "content_block_delta" => self.delta(index, &wire.delta.ok_or(SHAPE)?, out)?,
            "content_block_stop" => self.stop(index, out),
            "message_delta" => {
                let delta = wire.delta.ok_or(SHAPE)?;
                if let Some(reason) = delta.stop_reason
                    && !std::mem::replace(&mut self.stopped, true)
                {
                    out.push(Event::Stop {
                        choice: 0,
                        reason: stop_reason(reason),
                        stop_sequence: delta.stop_sequence,
                    });
                }
            }
            _ => {}
        }
        out.extend(usage.map(Event::Usage));
        if wire.kind == "message_stop" {
            out.push(Event::End);
        }
        Ok(())
    }

    fn start(
        &mut self,
        index: u64,
        block: &Block<'_>,
        out: &mut Vec<Event>,
    ) -> Result<(), Malformed> {
        let choice = 0;
        match block.kind.as_str() {
            "text" => {
                if let Some(text) = words(block.text)? {
                    out.push(Event::Text { choice, text });
                }
            }
            "thinking" => {
                if let Some(text) = words(block.thinking)? {
                    out.push(Event::Reasoning { choice, text });
                }
            }
            "redacted_thinking" => {
                if let Some(data) = words(block.data)? {
                    out.push(Event::RedactedReasoning { choice, data });
                }
            }
            "tool_use" => {
                let (id, name) = (
                    words(block.id)?.ok_or(SHAPE)?,
                    words(block.name)?.ok_or(SHAPE)?,
                );
                let tool = self.tools;
                self.tools += 1;
                out.push(Event::ToolStart {
                    choice,
                    tool,
                    id: id.into_string(),
                    name: name.into_string(),
                });
                let input = block
                    .input
                    .map(RawValue::get)
                    .filter(|input| !is_hollow(input));
                if let Some(input) = input {
                    out.push(Event::ToolArguments {
                        choice,
                        tool,
                        arguments: input.into(),
                    });
                }
                let said = input.is_some();
                self.open.push(Open { index, tool, said });
            }
            // Provider-side tools have no neutral shape.
            _ => {}
        }
        Ok(())
    }

    fn delta(
        &mut self,
        index: u64,
        delta: &Delta<'_>,
        out: &mut Vec<Event>,
    ) -> Result<(), Malformed> {
        let choice = 0;
        match delta.kind.as_deref() {
            Some("text_delta") => {
                if let Some(text) = words(delta.text)? {
                    out.push(Event::Text { choice, text });
                }
            }
            Some("thinking_delta") => {
                if let Some(text) = words(delta.thinking)? {
                    out.push(Event::Reasoning { choice, text });
                }
            }
            Some("signature_delta") => {
                if let Some(signature) = words(delta.signature)? {
                    out.push(Event::ReasoningSignature { choice, signature });
                }
            }
            Some("input_json_delta") => {
                let open = self.open.iter_mut().find(|open| open.index == index);
                if let Some(open) = open
                    && let Some(arguments) = words(delta.partial_json)?
                {
                    open.said = true;
                    out.push(Event::ToolArguments {
                        choice,
                        tool: open.tool,
                        arguments,
                    });
                }
            }
            _ => {}
        }
        Ok(())
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

/// The string a member holds; `None` when absent, null or empty.
fn words(value: Option<&RawValue>) -> Result<Option<Text>, Malformed> {
    let Some(value) = value else {
        return Ok(None);
    };
    let text: Option<Text> = serde_json::from_str(value.get()).map_err(|_| SHAPE)?;
    Ok(text.filter(|text| !text.is_empty()))
}

//! Messages as Anthropic's clients read them.

use serde_json::Value;

use super::Rules;
use super::reading::{Call, Counts, Stop, Told, count, list, named};
use crate::sse::Event;

pub(super) fn whole(body: &Value, rules: Rules) -> Result<Told, String> {
    let mut told = Told::default();
    message(body, rules)?;
    for block in list(body, "content", rules)? {
        match block["type"].as_str().unwrap_or_default() {
            "text" => told.text += block["text"].as_str().ok_or(format!("{block}"))?,
            "thinking" => {
                rules.hold(block["signature"].is_string(), || {
                    format!("signature in {block}")
                })?;
                told.reasoning += block["thinking"].as_str().ok_or(format!("{block}"))?;
            }
            "redacted_thinking" => drop(named(block, "data", rules)?),
            "tool_use" => {
                rules.hold(block["input"].is_object(), || format!("input in {block}"))?;
                told.calls.push(Call {
                    id: named(block, "id", rules)?.to_owned(),
                    name: named(block, "name", rules)?.to_owned(),
                    arguments: block["input"].clone(),
                });
            }
            other => rules.hold(false, || format!("a block of type {other:?}"))?,
        }
    }
    told.stop = stop(&body["stop_reason"])?;
    rules.hold(told.stop.is_some(), || "no stop_reason".to_owned())?;
    told.usage = Some(Usage::default().with(&body["usage"], rules)?.counts());
    Ok(told)
}

/// The members that a message has whole and at the start of a stream.
fn message(body: &Value, rules: Rules) -> Result<(), String> {
    named(body, "id", rules)?;
    named(body, "model", rules)?;
    for (member, word) in [("type", "message"), ("role", "assistant")] {
        rules.hold(body[member] == word, || format!("{member} in {body}"))?;
    }
    rules.hold(body.get("stop_sequence").is_some(), || {
        "no stop_sequence".to_owned()
    })
}

pub(super) fn stream(events: &[Event], rules: Rules) -> Result<Told, String> {
    let mut told = Told::default();
    let mut usage = Usage::default();
    let mut open: Option<Block> = None;
    let (mut next, mut state) = (0, State::Before);
    for event in events {
        let data = event.json();
        let kind = data["type"].as_str().unwrap_or_default();
        rules.hold(event.event.as_deref() == Some(kind), || {
            format!("the name of {event:?}")
        })?;
        rules.hold(state != State::Ended, || format!("after the end: {data}"))?;
        match kind {
            "ping" => {}
            "error" => {
                named(&data["error"], "type", rules)?;
                told.error = Some(named(&data["error"], "message", rules)?.to_owned());
                state = State::Ended;
            }
            "message_start" => {
                if state != State::Before {
                    // Two answers in one: not even a provider may do that.
                    told.error = Some("a second message_start".to_owned());
                    told.stop = None;
                    return Ok(told);
                }
                message(&data["message"], rules)?;
                usage = usage.with(&data["message"]["usage"], rules)?;
                state = State::Content;
            }
            "content_block_start" => {
                rules.hold(state == State::Content && open.is_none(), || {
                    format!("out of turn: {data}")
                })?;
                rules.hold(data["index"] == next, || {
                    format!("blocks are numbered without gaps: {data}")
                })?;
                next += 1;
                open = Some(Block::begin(&data["content_block"], &mut told, rules)?);
            }
            "content_block_delta" => match &mut open {
                Some(block) if data["index"] == next - 1 => {
                    block.grow(&data["delta"], &mut told, rules)?;
                }
                _ => rules.hold(false, || format!("no block is open: {data}"))?,
            },
            "content_block_stop" => {
                rules.hold(data["index"] == next - 1, || {
                    format!("another block ends: {data}")
                })?;
                match open.take() {
                    Some(block) => block.end(&mut told),
                    None => rules.hold(false, || format!("no block is open: {data}"))?,
                }
            }
            "message_delta" => {
                rules.hold(state == State::Content && open.is_none(), || {
                    format!("out of turn: {data}")
                })?;
                told.stop = stop(&data["delta"]["stop_reason"])?;
                rules.hold(data["delta"].get("stop_sequence").is_some(), || {
                    "no stop_sequence".to_owned()
                })?;
                usage = usage.with(&data["usage"], rules)?;
                told.usage = Some(usage.counts());
                state = State::Stopped;
            }
            "message_stop" => {
                rules.hold(state == State::Stopped, || {
                    "message_stop out of turn".to_owned()
                })?;
                state = State::Ended;
            }
            other => rules.hold(false, || format!("an event called {other:?}"))?,
        }
    }
    // Cut by a limit in the middle of a call.
    if let Some(block) = open {
        block.end(&mut told);
    }
    rules.hold(state == State::Ended, || {
        "a stream without message_stop".to_owned()
    })?;
    if rules == Rules::Strict && told.stop != Some(Stop::Length) && told.error.is_none() {
        let cut = told.calls.iter().find(|call| !call.arguments.is_object());
        rules.hold(cut.is_none(), || {
            format!("arguments that are no object: {cut:?}")
        })?;
    }
    Ok(told)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Before,
    Content,
    Stopped,
    Ended,
}

/// A block under way.
enum Block {
    Text,
    Thinking,
    Call(String, String, String),
    Other,
}

impl Block {
    fn begin(block: &Value, told: &mut Told, rules: Rules) -> Result<Self, String> {
        Ok(match block["type"].as_str().unwrap_or_default() {
            "text" => {
                told.text += block["text"].as_str().ok_or(format!("{block}"))?;
                Self::Text
            }
            "thinking" => {
                rules.hold(block["signature"] == "", || format!("signature in {block}"))?;
                told.reasoning += block["thinking"].as_str().ok_or(format!("{block}"))?;
                Self::Thinking
            }
            "redacted_thinking" => {
                named(block, "data", rules)?;
                Self::Other
            }
            "tool_use" => {
                rules.hold(block["input"].is_object(), || format!("input in {block}"))?;
                let (id, name) = (named(block, "id", rules)?, named(block, "name", rules)?);
                Self::Call(id.to_owned(), name.to_owned(), String::new())
            }
            other => {
                rules.hold(false, || format!("a block of type {other:?}"))?;
                Self::Other
            }
        })
    }

    fn grow(&mut self, delta: &Value, told: &mut Told, rules: Rules) -> Result<(), String> {
        let text = |member: &str| {
            delta[member]
                .as_str()
                .ok_or(format!("no {member} in {delta}"))
        };
        match (delta["type"].as_str().unwrap_or_default(), self) {
            ("text_delta", Self::Text) => told.text += text("text")?,
            ("thinking_delta", Self::Thinking) => told.reasoning += text("thinking")?,
            ("signature_delta", Self::Thinking) => drop(text("signature")?),
            ("input_json_delta", Self::Call(_, _, json)) => json.push_str(text("partial_json")?),
            _ => rules.hold(false, || format!("a delta of another kind: {delta}"))?,
        }
        Ok(())
    }

    fn end(self, told: &mut Told) {
        if let Self::Call(id, name, arguments) = self {
            told.calls.push(Call::of(&id, &name, &arguments));
        }
    }
}

fn stop(word: &Value) -> Result<Option<Stop>, String> {
    Ok(Some(match word.as_str() {
        None => return Ok(None),
        Some("end_turn" | "stop_sequence" | "pause_turn") => Stop::End,
        Some("max_tokens" | "model_context_window_exceeded") => Stop::Length,
        Some("tool_use") => Stop::Tools,
        Some("refusal") => Stop::Filter,
        Some(other) => return Err(format!("stop_reason {other}")),
    }))
}

/// Cached tokens stand beside the input here; later counts replace earlier ones.
#[derive(Default)]
struct Usage {
    input: u64,
    read: u64,
    written: u64,
    output: u64,
    reasoning: u64,
}

impl Usage {
    fn with(mut self, usage: &Value, rules: Rules) -> Result<Self, String> {
        count(usage, "output_tokens", rules)?;
        let take = |member: &str, place: &mut u64| {
            if let Some(told) = usage[member].as_u64() {
                *place = told;
            }
        };
        take("input_tokens", &mut self.input);
        take("cache_read_input_tokens", &mut self.read);
        take("cache_creation_input_tokens", &mut self.written);
        take("output_tokens", &mut self.output);
        if let Some(thinking) = usage["output_tokens_details"]["thinking_tokens"].as_u64() {
            self.reasoning = thinking;
        }
        Ok(self)
    }

    const fn counts(&self) -> Counts {
        Counts {
            input: self.input + self.read + self.written,
            output: self.output,
            cached: self.read,
            reasoning: self.reasoning,
        }
    }
}

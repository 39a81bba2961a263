//! Converse as Amazon's clients read it, frames and all.

use serde_json::Value;

use super::Rules;
use super::reading::{Call, Counts, Stop, Told, count, list, named};

pub(super) fn whole(body: &Value, rules: Rules) -> Result<Told, String> {
    let mut told = Told::default();
    let message = &body["output"]["message"];
    rules.hold(message["role"] == "assistant", || {
        format!("role in {message}")
    })?;
    for block in list(message, "content", rules)? {
        if let Some(text) = block["text"].as_str() {
            told.text += text;
        } else if let Some(use_) = block.get("toolUse") {
            told.calls.push(Call {
                id: named(use_, "toolUseId", rules)?.to_owned(),
                name: named(use_, "name", rules)?.to_owned(),
                arguments: use_["input"].clone(),
            });
        } else if let Some(reasoning) = block.get("reasoningContent") {
            told.reasoning += reasoning["reasoningText"]["text"]
                .as_str()
                .unwrap_or_default();
        } else {
            rules.hold(false, || format!("a block of another kind: {block}"))?;
        }
    }
    told.stop = Some(stop(&body["stopReason"])?);
    told.usage = Some(usage(&body["usage"], rules)?);
    rules.hold(body["metrics"]["latencyMs"].is_u64(), || {
        "no latencyMs".to_owned()
    })?;
    Ok(told)
}

pub(super) fn stream(body: &[u8], rules: Rules) -> Result<Told, String> {
    let mut told = Told::default();
    let mut open: Option<Block> = None;
    let (mut next, mut state) = (0, State::Before);
    let mut rest = body;
    while !rest.is_empty() {
        let frame = Frame::read(&mut rest)?;
        rules.hold(state != State::Ended, || {
            format!("after the end: {frame:?}")
        })?;
        match frame.header(":message-type") {
            "event" => {}
            "exception" => {
                named(
                    &serde_json::json!({"type": frame.header(":exception-type")}),
                    "type",
                    rules,
                )?;
                told.error = Some(
                    frame.payload["message"]
                        .as_str()
                        .unwrap_or_default()
                        .to_owned(),
                );
                state = State::Ended;
                continue;
            }
            _ => {
                told.error = Some(frame.header(":error-message").to_owned());
                state = State::Ended;
                continue;
            }
        }
        rules.hold(frame.header(":content-type") == "application/json", || {
            format!("{frame:?}")
        })?;
        let data = &frame.payload;
        match frame.header(":event-type") {
            "messageStart" => {
                rules.hold(
                    state == State::Before && data["role"] == "assistant",
                    || format!("{data}"),
                )?;
                state = State::Content;
            }
            "contentBlockStart" => {
                rules.hold(state == State::Content && open.is_none(), || {
                    format!("out of turn: {data}")
                })?;
                rules.hold(data["contentBlockIndex"] == next, || {
                    format!("blocks are numbered without gaps: {data}")
                })?;
                let call = &data["start"]["toolUse"];
                let id = named(call, "toolUseId", rules)?.to_owned();
                open = Some(Block::Call(
                    id,
                    named(call, "name", rules)?.to_owned(),
                    String::new(),
                ));
            }
            "contentBlockDelta" => {
                rules.hold(state == State::Content, || format!("out of turn: {data}"))?;
                rules.hold(data["contentBlockIndex"] == next, || {
                    format!("another block: {data}")
                })?;
                grow(
                    open.get_or_insert(Block::Words),
                    &data["delta"],
                    &mut told,
                    rules,
                )?;
            }
            "contentBlockStop" => {
                rules.hold(open.is_some() && data["contentBlockIndex"] == next, || {
                    format!("another block: {data}")
                })?;
                next += 1;
                if let Some(Block::Call(id, name, arguments)) = open.take() {
                    told.calls.push(Call::of(&id, &name, &arguments));
                }
            }
            "messageStop" => {
                rules.hold(state == State::Content && open.is_none(), || {
                    format!("out of turn: {data}")
                })?;
                told.stop = Some(stop(&data["stopReason"])?);
                state = State::Stopped;
            }
            "metadata" => {
                rules.hold(state == State::Stopped, || format!("out of turn: {data}"))?;
                told.usage = Some(usage(&data["usage"], rules)?);
                rules.hold(data["metrics"]["latencyMs"].is_u64(), || {
                    "no latencyMs".to_owned()
                })?;
                state = State::Ended;
            }
            other => rules.hold(false, || format!("an event called {other:?}"))?,
        }
    }
    rules.hold(state == State::Ended, || {
        "a stream without its metadata".to_owned()
    })?;
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
    Words,
    Call(String, String, String),
}

fn grow(open: &mut Block, delta: &Value, told: &mut Told, rules: Rules) -> Result<(), String> {
    if let Some(text) = delta["text"].as_str() {
        told.text += text;
    } else if let Some(reasoning) = delta.get("reasoningContent") {
        told.reasoning += reasoning["text"].as_str().unwrap_or_default();
    } else if let (Some(piece), Block::Call(_, _, arguments)) =
        (delta["toolUse"]["input"].as_str(), open)
    {
        arguments.push_str(piece);
    } else {
        rules.hold(false, || format!("a delta of another kind: {delta}"))?;
    }
    Ok(())
}

fn stop(word: &Value) -> Result<Stop, String> {
    Ok(match word.as_str().unwrap_or_default() {
        "end_turn" | "stop_sequence" => Stop::End,
        "max_tokens" | "model_context_window_exceeded" => Stop::Length,
        "tool_use" => Stop::Tools,
        "guardrail_intervened" | "content_filtered" => Stop::Filter,
        other => return Err(format!("stopReason {other}")),
    })
}

/// Cached tokens stand beside the input here; the sum has all.
fn usage(usage: &Value, rules: Rules) -> Result<Counts, String> {
    let of = |member| count(usage, member, Rules::Lenient);
    let input = count(usage, "inputTokens", rules)?;
    let counts = Counts {
        input: input + of("cacheReadInputTokens")? + of("cacheWriteInputTokens")?,
        output: count(usage, "outputTokens", rules)?,
        cached: of("cacheReadInputTokens")?,
        reasoning: 0,
    };
    let total = count(usage, "totalTokens", rules)?;
    rules.hold(total == counts.input + counts.output, || {
        format!("the sum in {usage}")
    })?;
    Ok(counts)
}

/// One frame: `total, headers' length, sum of both | headers | payload | sum of all before`.
#[derive(Debug)]
struct Frame {
    headers: Vec<(String, String)>,
    payload: Value,
}

impl Frame {
    /// Takes the next frame off `bytes`.
    fn read(bytes: &mut &[u8]) -> Result<Self, String> {
        let number = |at: usize| -> Result<usize, String> {
            let four = bytes.get(at..at + 4).ok_or("a frame that is cut")?;
            let four: [u8; 4] = four.try_into().expect("four bytes");
            Ok(u32::from_be_bytes(four) as usize)
        };
        let (total, headers, sum) = (number(0)?, number(4)?, number(8)?);
        let whole = bytes
            .get(..total)
            .filter(|_| total >= headers + 16)
            .ok_or("a frame that is cut")?;
        if crc32(&whole[..8]) as usize != sum
            || crc32(&whole[..total - 4]) as usize != number(total - 4)?
        {
            return Err("a frame whose sums are wrong".to_owned());
        }
        let frame = Self {
            headers: strings(&whole[12..12 + headers])?,
            payload: serde_json::from_slice(&whole[12 + headers..total - 4]).unwrap_or(Value::Null),
        };
        *bytes = &bytes[total..];
        Ok(frame)
    }

    fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(header, _)| header == name);
        found.map_or("", |(_, value)| value)
    }
}

/// Headers, all of which are strings (type 7) wherever they were recorded.
fn strings(mut bytes: &[u8]) -> Result<Vec<(String, String)>, String> {
    let mut headers = Vec::new();
    while let Some((&length, rest)) = bytes.split_first() {
        let cut = || "a header that is cut".to_owned();
        let (name, rest) = rest.split_at_checked(length.into()).ok_or_else(cut)?;
        let [7, high, low, rest @ ..] = rest else {
            return Err("a header that is no string".to_owned());
        };
        let length = u16::from_be_bytes([*high, *low]);
        let (value, rest) = rest.split_at_checked(length.into()).ok_or_else(cut)?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        headers.push((text(name), text(value)));
        bytes = rest;
    }
    Ok(headers)
}

/// The check sum of gzip and Ethernet, a bit at a time.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
            (sum >> 1) ^ (0xEDB8_8320 & (sum & 1).wrapping_neg())
        })
    })
}

//! `/v2/chat` as Cohere's clients read it.

use serde_json::Value;

use super::Rules;
use super::reading::{Call, Counts, Stop, Told, count, named};
use crate::sse::Event;

pub(super) fn whole(body: &Value, rules: Rules) -> Result<Told, String> {
    let mut told = Told::default();
    named(body, "id", rules)?;
    let message = &body["message"];
    rules.hold(message["role"] == "assistant", || {
        format!("role in {message}")
    })?;
    told.reasoning += message["tool_plan"].as_str().unwrap_or_default();
    for block in message["content"].as_array().into_iter().flatten() {
        match block["type"].as_str().unwrap_or_default() {
            "text" => told.text += block["text"].as_str().ok_or(format!("{block}"))?,
            "thinking" => told.reasoning += block["thinking"].as_str().ok_or(format!("{block}"))?,
            other => rules.hold(false, || format!("a block of type {other:?}"))?,
        }
    }
    for call in message["tool_calls"].as_array().into_iter().flatten() {
        rules.hold(call["type"] == "function", || format!("type in {call}"))?;
        let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
        let id = named(call, "id", rules)?;
        told.calls.push(Call::of(
            id,
            named(&call["function"], "name", rules)?,
            arguments,
        ));
    }
    told.stop = stop(&body["finish_reason"])?;
    rules.hold(told.stop.is_some(), || "no finish_reason".to_owned())?;
    told.usage = usage(&body["usage"], rules)?;
    Ok(told)
}

pub(super) fn stream(events: &[Event], rules: Rules) -> Result<Told, String> {
    let mut told = Told::default();
    let mut calls = Vec::<(String, String, String)>::new();
    let (mut open, mut next, mut state) = (None::<String>, 0, State::Before);
    for event in events {
        if event.data == "[DONE]" {
            rules.hold(state == State::Stopped, || "[DONE] out of turn".to_owned())?;
            state = State::Ended;
            continue;
        }
        let data = event.json();
        let kind = data["type"].as_str().unwrap_or_default();
        rules.hold(event.event.as_deref() == Some(kind), || {
            format!("the name of {event:?}")
        })?;
        let message = &data["delta"]["message"];
        let content = &message["content"];
        rules.hold(
            (state == State::Before) == (kind == "message-start"),
            || format!("out of turn: {data}"),
        )?;
        rules.hold(matches!(state, State::Before | State::Content), || {
            format!("after the end: {data}")
        })?;
        match kind {
            "message-start" => {
                named(&data, "id", rules)?;
                rules.hold(message["role"] == "assistant", || format!("role in {data}"))?;
                state = State::Content;
            }
            "tool-plan-delta" => {
                told.reasoning += message["tool_plan"].as_str().unwrap_or_default();
            }
            "content-start" => {
                rules.hold(open.is_none() && data["index"] == next, || {
                    format!("out of turn: {data}")
                })?;
                open = Some(named(content, "type", rules)?.to_owned());
            }
            "content-delta" => {
                rules.hold(data["index"] == next, || format!("another block: {data}"))?;
                let kind = open.as_deref().unwrap_or("text");
                let said = |kind: &str| content[kind].as_str().unwrap_or_default();
                rules.hold(content[kind].is_string(), || {
                    format!("a delta of another kind: {data}")
                })?;
                told.text += said("text");
                told.reasoning += said("thinking");
            }
            "content-end" => {
                rules.hold(open.is_some() && data["index"] == next, || {
                    format!("another block: {data}")
                })?;
                open = None;
                next += 1;
            }
            "tool-call-start" => {
                let call = &message["tool_calls"];
                rules.hold(open.is_none(), || format!("a block is open: {data}"))?;
                rules.hold(data["index"] == calls.len(), || {
                    format!("calls are numbered without gaps: {data}")
                })?;
                rules.hold(call["type"] == "function", || format!("type in {data}"))?;
                let function = &call["function"];
                let first = function["arguments"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned();
                calls.push((
                    named(call, "id", rules)?.to_owned(),
                    named(function, "name", rules)?.to_owned(),
                    first,
                ));
            }
            "tool-call-delta" => {
                let piece = message["tool_calls"]["function"]["arguments"].as_str();
                let place = count(&data, "index", rules)?;
                let call = usize::try_from(place)
                    .ok()
                    .and_then(|place| calls.get_mut(place));
                match call {
                    Some((.., arguments)) => arguments.push_str(piece.unwrap_or_default()),
                    None => return Err(format!("no such call: {data}")),
                }
            }
            "tool-call-end" => drop(count(&data, "index", rules)?),
            "message-end" => {
                rules.hold(open.is_none(), || "a block is open".to_owned())?;
                let delta = &data["delta"];
                match delta["error"].as_str() {
                    Some(error) => {
                        told.error = Some(error.to_owned());
                        rules.hold(delta["finish_reason"] == "ERROR", || format!("{data}"))?;
                        state = State::Ended;
                    }
                    None => {
                        told.stop = stop(&delta["finish_reason"])?;
                        told.usage = usage(&delta["usage"], rules)?;
                        state = State::Stopped;
                    }
                }
            }
            other => rules.hold(false, || format!("an event called {other:?}"))?,
        }
    }
    let whole = matches!(state, State::Ended);
    rules.hold(whole, || "a stream without its end".to_owned())?;
    for (id, name, arguments) in calls {
        told.calls.push(Call::of(&id, &name, &arguments));
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

fn stop(word: &Value) -> Result<Option<Stop>, String> {
    Ok(Some(match word.as_str() {
        None => return Ok(None),
        Some("COMPLETE" | "STOP_SEQUENCE") => Stop::End,
        Some("MAX_TOKENS") => Stop::Length,
        Some("TOOL_CALL") => Stop::Tools,
        Some(other) => return Err(format!("finish_reason {other}")),
    }))
}

/// What is billed is another number and smaller.
fn usage(usage: &Value, rules: Rules) -> Result<Option<Counts>, String> {
    if usage.is_null() {
        return Ok(None);
    }
    Ok(Some(Counts {
        input: count(&usage["tokens"], "input_tokens", rules)?,
        output: count(&usage["tokens"], "output_tokens", rules)?,
        cached: count(usage, "cached_tokens", Rules::Lenient)?,
        reasoning: count(&usage["tokens"], "reasoning_tokens", Rules::Lenient)?,
    }))
}

//! Chat completions as OpenAI's clients read them.

use serde_json::Value;

use super::Rules;
use super::reading::{Call, Constant, Counts, Stop, Told, count, list, named};
use crate::sse::Event;

pub(super) fn whole(body: &Value, rules: Rules) -> Result<Told, String> {
    if let Some(message) = failure(body) {
        return Ok(Told {
            error: Some(message),
            ..Told::default()
        });
    }
    let mut told = Told::default();
    rules.hold(body["object"] == "chat.completion", || {
        format!("object in {body}")
    })?;
    named(body, "id", rules)?;
    named(body, "model", rules)?;
    count(body, "created", rules)?;
    for (place, choice) in list(body, "choices", rules)?.iter().enumerate() {
        rules.hold(choice["index"] == place, || format!("index of {choice}"))?;
        let message = &choice["message"];
        rules.hold(message["role"] == "assistant", || {
            format!("role in {choice}")
        })?;
        rules.hold(
            message
                .get("content")
                .is_some_and(|it| it.is_string() || it.is_null()),
            || format!("content in {message}"),
        )?;
        let stop = stop(&choice["finish_reason"])?;
        rules.hold(stop.is_some(), || format!("finish_reason in {choice}"))?;
        if place > 0 {
            continue;
        }
        say(&mut told, message);
        for call in calls(message) {
            let function = &call["function"];
            rules.hold(call["type"] == "function", || format!("type in {call}"))?;
            let id = named(call, "id", rules)?;
            let name = named(function, "name", rules)?;
            let arguments = function["arguments"].as_str().unwrap_or_default();
            let call = Call::of(id, name, arguments);
            rules.hold(
                stop == Some(Stop::Length) || (!arguments.is_empty() && call.arguments.is_object()),
                || format!("arguments that are no object: {arguments:?}"),
            )?;
            told.calls.push(call);
        }
        told.stop = stop;
    }
    told.usage = usage(&body["usage"], rules)?;
    Ok(ended(told))
}

pub(super) fn stream(events: &[Event], rules: Rules) -> Result<Told, String> {
    let mut told = Told::default();
    let mut pieces = Pieces::default();
    let (mut id, mut model, mut created) = <(Constant, Constant, Constant)>::default();
    let mut finished = Vec::<u64>::new();
    let mut opened = Vec::<u64>::new();
    let mut done = false;
    for event in events {
        rules.hold(!done, || format!("after the end: {}", event.data))?;
        if event.data == "[DONE]" {
            rules.hold(told.error.is_none(), || "[DONE] after an error".to_owned())?;
            done = true;
            continue;
        }
        let chunk = event.json();
        if let Some(message) = failure(&chunk) {
            told.error = Some(message);
            continue;
        }
        rules.hold(told.error.is_none(), || format!("after an error: {chunk}"))?;
        rules.hold(event.event.is_none(), || {
            format!("a named event: {event:?}")
        })?;
        rules.hold(chunk["object"] == "chat.completion.chunk", || {
            format!("object in {chunk}")
        })?;
        id.hold(&chunk["id"], "id", rules)?;
        model.hold(&chunk["model"], "model", rules)?;
        created.hold(&chunk["created"], "created", rules)?;
        let choices = list(&chunk, "choices", rules)?;
        let counted =
            usage(&chunk["usage"], rules)?.or(usage(&chunk["x_groq"]["usage"], Rules::Lenient)?);
        if counted.is_some() {
            rules.hold(choices.is_empty() && told.usage.is_none(), || {
                format!("usage twice or with choices: {chunk}")
            })?;
            told.usage = counted;
        } else {
            rules.hold(!choices.is_empty(), || format!("no choices in {chunk}"))?;
        }
        for choice in choices {
            let index = count(choice, "index", rules)?;
            rules.hold(!finished.contains(&index), || {
                format!("after its finish: {choice}")
            })?;
            let delta = &choice["delta"];
            rules.hold(delta.is_object(), || format!("no delta in {choice}"))?;
            let first = !opened.contains(&index);
            rules.hold(first == (delta["role"] == "assistant"), || {
                format!("role in {choice}")
            })?;
            opened.push(index);
            rules.hold(choice.get("finish_reason").is_some(), || {
                format!("finish_reason in {choice}")
            })?;
            let reason = stop(&choice["finish_reason"])?;
            if reason.is_some() {
                finished.push(index);
            }
            if index > 0 {
                continue;
            }
            say(&mut told, delta);
            for call in calls(delta) {
                pieces.take(call, rules)?;
            }
            told.stop = reason.or(told.stop);
        }
    }
    told.calls = pieces.whole(told.stop, rules)?;
    rules.hold(done == told.error.is_none(), || {
        "a stream without its end".to_owned()
    })?;
    rules.hold(told.error.is_some() || told.stop.is_some(), || {
        "no finish_reason".to_owned()
    })?;
    Ok(ended(told))
}

/// Calls in pieces, each under its number.
#[derive(Default)]
struct Pieces(Vec<(Value, String, String, String)>);

impl Pieces {
    fn take(&mut self, call: &Value, rules: Rules) -> Result<(), String> {
        let function = &call["function"];
        let said = function["arguments"].as_str().unwrap_or_default();
        let id = call["id"].as_str().unwrap_or_default();
        let index = &call["index"];
        let known = self.0.iter_mut().rev().find(|(number, of, ..)| {
            if index.is_null() {
                id.is_empty() || id == of
            } else {
                number == index && (id.is_empty() || id == of)
            }
        });
        if let Some((_, _, name, arguments)) = known {
            rules.hold(id.is_empty() && call.get("type").is_none(), || {
                format!("said again: {call}")
            })?;
            name.push_str(function["name"].as_str().unwrap_or_default());
            arguments.push_str(said);
            return Ok(());
        }
        rules.hold(*index == self.0.len(), || {
            format!("calls are numbered without gaps: {call}")
        })?;
        rules.hold(call["type"] == "function", || format!("type in {call}"))?;
        rules.hold(function["arguments"].is_string(), || {
            format!("arguments in {call}")
        })?;
        let id = named(call, "id", rules)?.to_owned();
        let name = named(function, "name", rules)?.to_owned();
        self.0.push((index.clone(), id, name, said.to_owned()));
        Ok(())
    }

    fn whole(self, stop: Option<Stop>, rules: Rules) -> Result<Vec<Call>, String> {
        let mut calls = Vec::new();
        for (_, id, name, arguments) in self.0 {
            let call = Call::of(&id, &name, &arguments);
            let whole = !arguments.is_empty() && call.arguments.is_object();
            rules.hold(whole || matches!(stop, None | Some(Stop::Length)), || {
                format!("arguments that are no object: {arguments:?}")
            })?;
            calls.push(call);
        }
        Ok(calls)
    }
}

/// Adds the words of a message or delta.
fn say(told: &mut Told, message: &Value) {
    match &message["content"] {
        Value::Array(pieces) => {
            for piece in pieces {
                told.text += piece["text"].as_str().unwrap_or_default();
                for thought in piece["thinking"].as_array().into_iter().flatten() {
                    told.reasoning += thought["text"].as_str().unwrap_or_default();
                }
            }
        }
        content => told.text += content.as_str().unwrap_or_default(),
    }
    let refusal = message["refusal"].as_str().unwrap_or_default();
    told.refused |= !refusal.is_empty();
    told.text += refusal;
    let reasoning = ["reasoning_content", "reasoning"].map(|name| message[name].as_str());
    told.reasoning += reasoning[0].or(reasoning[1]).unwrap_or_default();
}

fn calls(message: &Value) -> &[Value] {
    message["tool_calls"].as_array().map_or(&[], Vec::as_slice)
}

fn failure(body: &Value) -> Option<String> {
    let error = &body["error"];
    let message = error["message"].as_str().or(error.as_str());
    (!error.is_null()).then(|| message.unwrap_or_default().to_owned())
}

fn stop(word: &Value) -> Result<Option<Stop>, String> {
    Ok(Some(match word.as_str() {
        None => return Ok(None),
        Some("stop" | "eos") => Stop::End,
        Some("length" | "model_length") => Stop::Length,
        Some("tool_calls" | "function_call") => Stop::Tools,
        Some("content_filter") => Stop::Filter,
        Some(other) => return Err(format!("finish_reason {other}")),
    }))
}

/// A refusal in words ends with `stop`; so do calls at some servers.
fn ended(mut told: Told) -> Told {
    if told.stop == Some(Stop::End) {
        if told.refused {
            told.stop = Some(Stop::Filter);
        } else if !told.calls.is_empty() {
            told.stop = Some(Stop::Tools);
        }
    }
    told
}

fn usage(usage: &Value, rules: Rules) -> Result<Option<Counts>, String> {
    if usage.is_null() {
        return Ok(None);
    }
    let counts = Counts {
        input: count(usage, "prompt_tokens", rules)?,
        output: count(usage, "completion_tokens", rules)?,
        cached: count(
            &usage["prompt_tokens_details"],
            "cached_tokens",
            Rules::Lenient,
        )?,
        reasoning: count(
            &usage["completion_tokens_details"],
            "reasoning_tokens",
            Rules::Lenient,
        )?,
    };
    let total = count(usage, "total_tokens", rules)?;
    rules.hold(total == counts.input + counts.output, || {
        format!("the sum in {usage}")
    })?;
    Ok(Some(counts))
}

//! Responses as OpenAI's clients read them.

use serde_json::Value;

use super::Rules;
use super::reading::{Call, Counts, Stop, Told, count, list, named};
use crate::sse::Event;

pub(super) fn whole(body: &Value, rules: Rules) -> Result<Told, String> {
    let mut told = Told::default();
    response(body, rules)?;
    for item in list(body, "output", rules)? {
        add(&mut told, item, rules)?;
    }
    finish(&mut told, body, rules)?;
    Ok(told)
}

/// The members that a response always has.
fn response(body: &Value, rules: Rules) -> Result<(), String> {
    rules.hold(body["object"] == "response", || format!("object in {body}"))?;
    named(body, "id", rules)?;
    named(body, "model", rules)?;
    count(body, "created_at", rules)?;
    list(body, "output", rules)?;
    list(body, "tools", rules)?;
    for member in [
        "error",
        "incomplete_details",
        "instructions",
        "metadata",
        "tool_choice",
        "parallel_tool_calls",
    ] {
        rules.hold(body.get(member).is_some(), || {
            format!("no {member} in {body}")
        })?;
    }
    Ok(())
}

/// Adds a whole item.
fn add(told: &mut Told, item: &Value, rules: Rules) -> Result<(), String> {
    match item["type"].as_str().unwrap_or_default() {
        "message" => {
            named(item, "id", rules)?;
            rules.hold(
                item["role"] == "assistant" && item["status"] == "completed",
                || format!("{item}"),
            )?;
            for part in list(item, "content", rules)? {
                match part["type"].as_str().unwrap_or_default() {
                    "output_text" => {
                        list(part, "annotations", rules)?;
                        told.text += part["text"].as_str().ok_or(format!("{part}"))?;
                    }
                    "refusal" => {
                        told.refused = true;
                        told.text += part["refusal"].as_str().ok_or(format!("{part}"))?;
                    }
                    other => rules.hold(false, || format!("a part of type {other:?}"))?,
                }
            }
        }
        "reasoning" => {
            named(item, "id", rules)?;
            let summary = list(item, "summary", rules)?;
            let content = item["content"].as_array().into_iter().flatten();
            for part in summary.iter().chain(content) {
                told.reasoning += part["text"].as_str().unwrap_or_default();
            }
        }
        "function_call" => {
            named(item, "id", rules)?;
            let call = Call::of(
                named(item, "call_id", rules)?,
                named(item, "name", rules)?,
                item["arguments"].as_str().ok_or(format!("{item}"))?,
            );
            told.calls.push(call);
        }
        other => rules.hold(false, || format!("an item of type {other:?}"))?,
    }
    Ok(())
}

/// Why it ended, and what was spent.
fn finish(told: &mut Told, body: &Value, rules: Rules) -> Result<(), String> {
    let reason = &body["incomplete_details"]["reason"];
    told.stop = match (body["status"].as_str().unwrap_or_default(), reason.as_str()) {
        ("completed", _) if !told.calls.is_empty() => Some(Stop::Tools),
        ("completed", _) if told.refused => Some(Stop::Filter),
        ("completed", _) => Some(Stop::End),
        ("incomplete", Some("content_filter")) => Some(Stop::Filter),
        ("incomplete", Some(_)) => Some(Stop::Length),
        ("failed", _) => None,
        (status, _) => return Err(format!("status {status:?}, {reason}")),
    };
    let usage = &body["usage"];
    if !usage.is_null() {
        let counts = Counts {
            input: count(usage, "input_tokens", rules)?,
            output: count(usage, "output_tokens", rules)?,
            cached: count(&usage["input_tokens_details"], "cached_tokens", rules)?,
            reasoning: count(&usage["output_tokens_details"], "reasoning_tokens", rules)?,
        };
        let total = count(usage, "total_tokens", rules)?;
        rules.hold(total == counts.input + counts.output, || {
            format!("the sum in {usage}")
        })?;
        told.usage = Some(counts);
    }
    let whole =
        told.stop == Some(Stop::Length) || told.calls.iter().all(|call| call.arguments.is_object());
    rules.hold(whole, || {
        format!("arguments that are no object: {:?}", told.calls)
    })
}

pub(super) fn stream(events: &[Event], rules: Rules) -> Result<Told, String> {
    let mut told = Told::default();
    let mut items = Vec::<Item>::new();
    let mut ended = false;
    for (place, event) in events.iter().enumerate() {
        if rules == Rules::Lenient && event.data == "[DONE]" {
            continue;
        }
        let data = event.json();
        let kind = data["type"].as_str().unwrap_or_default();
        rules.hold(!ended, || format!("after the end: {data}"))?;
        rules.hold(event.event.as_deref() == Some(kind), || {
            format!("the name of {event:?}")
        })?;
        rules.hold(
            data["sequence_number"] == place
                || (kind == "error" && data.get("sequence_number").is_none()),
            || format!("numbered without gaps: {data}"),
        )?;
        match (place, kind) {
            (_, "error") => {
                let message = data["message"]
                    .as_str()
                    .or(data["error"]["message"].as_str());
                told.error = Some(message.ok_or(format!("{data}"))?.to_owned());
                ended = true;
                continue;
            }
            (0, _) => rules.hold(kind == "response.created", || format!("first: {data}"))?,
            (1, _) => rules.hold(kind == "response.in_progress", || format!("second: {data}"))?,
            _ => rules.hold(
                !matches!(kind, "response.created" | "response.in_progress"),
                || format!("again: {data}"),
            )?,
        }
        match kind {
            "response.created" | "response.in_progress" => response(&data["response"], rules)?,
            "response.completed" | "response.incomplete" | "response.failed" => {
                let body = &data["response"];
                response(body, rules)?;
                rules.hold(
                    *kind == *format!("response.{}", body["status"].as_str().unwrap_or_default()),
                    || format!("{data}"),
                )?;
                rules.hold(items.iter().all(|item| item.whole.is_some()), || {
                    "an item is open".to_owned()
                })?;
                let listed = list(body, "output", rules)?;
                let told_of = items.iter().filter_map(|item| item.whole.as_ref());
                rules.hold(told_of.eq(listed), || {
                    format!("not the items told of: {data}")
                })?;
                for item in listed {
                    add(&mut told, item, rules)?;
                }
                finish(&mut told, body, rules)?;
                if kind == "response.failed" {
                    let message = body["error"]["message"].as_str().unwrap_or_default();
                    told.error.get_or_insert_with(|| message.to_owned());
                }
                ended = rules == Rules::Strict;
            }
            _ => item(&data, kind, &mut items, rules)?,
        }
    }
    if rules == Rules::Strict && !ended {
        return Err("a stream without its end".to_owned());
    }
    if told.error.is_some() && told.stop.is_none() {
        for item in items {
            told.reasoning += &item.reasoning;
            if item.kind == "message" {
                told.text += &item.said;
            }
        }
    }
    Ok(told)
}

/// An item under way.
#[derive(Default)]
struct Item {
    id: Value,
    kind: String,
    /// Whether a part of it is open.
    part: bool,
    said: String,
    reasoning: String,
    whole: Option<Value>,
}

fn item(data: &Value, kind: &str, items: &mut Vec<Item>, rules: Rules) -> Result<(), String> {
    let index = data["output_index"].as_u64();
    let Some(place) = index.and_then(|index| usize::try_from(index).ok()) else {
        return rules.hold(false, || format!("an event called {kind:?}: {data}"));
    };
    if kind == "response.output_item.added" {
        rules.hold(place == items.len(), || {
            format!("items are numbered without gaps: {data}")
        })?;
        named(&data["item"], "id", rules)?;
        items.resize_with(items.len().max(place + 1), Item::default);
        items[place] = Item {
            id: data["item"]["id"].clone(),
            kind: data["item"]["type"].as_str().unwrap_or_default().to_owned(),
            ..Item::default()
        };
        return Ok(());
    }
    let Some(item) = items.get_mut(place).filter(|item| item.whole.is_none()) else {
        return rules.hold(false, || format!("no such item is open: {data}"));
    };
    if kind != "response.output_item.done" {
        rules.hold(data["item_id"] == item.id, || format!("the id in {data}"))?;
    }
    let delta = || data["delta"].as_str().ok_or(format!("no delta in {data}"));
    let said_again = |member: &str, said: &str| {
        rules.hold(
            data[member] == said || (said.is_empty() && data[member] == "{}"),
            || format!("not what the deltas said, {said:?}: {data}"),
        )
    };
    match kind {
        "response.content_part.added" | "response.reasoning_summary_part.added" => {
            rules.hold(!item.part, || format!("a second part: {data}"))?;
            item.part = true;
        }
        "response.content_part.done" | "response.reasoning_summary_part.done" => {
            rules.hold(item.part, || format!("no part is open: {data}"))?;
            item.part = false;
        }
        "response.output_text.delta" | "response.refusal.delta" => {
            rules.hold(item.part && item.kind == "message", || {
                format!("no part is open: {data}")
            })?;
            item.said += delta()?;
        }
        "response.function_call_arguments.delta" => {
            rules.hold(item.kind == "function_call", || format!("no call: {data}"))?;
            item.said += delta()?;
        }
        "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
            rules.hold(item.part && item.kind == "reasoning", || {
                format!("no part is open: {data}")
            })?;
            item.reasoning += delta()?;
        }
        "response.output_text.done" => said_again("text", &item.said)?,
        "response.refusal.done" => said_again("refusal", &item.said)?,
        "response.function_call_arguments.done" => said_again("arguments", &item.said)?,
        "response.reasoning_summary_text.done" => said_again("text", &item.reasoning)?,
        "response.output_item.done" => {
            rules.hold(!item.part && data["item"]["id"] == item.id, || {
                format!("{data}")
            })?;
            item.whole = Some(data["item"].clone());
        }
        other => rules.hold(false, || format!("an event called {other:?}"))?,
    }
    Ok(())
}

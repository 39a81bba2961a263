//! `generateContent` as Google's clients read it.

use serde_json::{Value, json};

use super::Rules;
use super::reading::{Call, Constant, Counts, Stop, Told, count, list, named};
use crate::sse::Event;

pub(super) fn whole(body: &Value, rules: Rules) -> Result<Told, String> {
    let mut answer = Answer::default();
    answer.take(body, rules)?;
    answer.end(rules)
}

pub(super) fn events(events: &[Event], rules: Rules) -> Result<Told, String> {
    let mut answer = Answer::default();
    for event in events {
        rules.hold(event.event.is_none(), || {
            format!("a named event: {event:?}")
        })?;
        answer.take(&event.json(), rules)?;
    }
    answer.end(rules)
}

pub(super) fn array(body: &Value, rules: Rules) -> Result<Told, String> {
    let mut answer = Answer::default();
    for chunk in body.as_array().ok_or("no array")? {
        answer.take(chunk, rules)?;
    }
    answer.end(rules)
}

#[derive(Default)]
struct Answer {
    told: Told,
    id: Constant,
    model: Constant,
    blocked: bool,
}

impl Answer {
    fn take(&mut self, chunk: &Value, rules: Rules) -> Result<(), String> {
        let told = &mut self.told;
        rules.hold(told.error.is_none(), || format!("after an error: {chunk}"))?;
        if let Some(error) = chunk.get("error") {
            named(error, "status", rules)?;
            count(error, "code", rules)?;
            told.error = Some(named(error, "message", rules)?.to_owned());
            return Ok(());
        }
        rules.hold(told.stop.is_none(), || format!("after the end: {chunk}"))?;
        self.id.hold(&chunk["responseId"], "responseId", rules)?;
        self.model
            .hold(&chunk["modelVersion"], "modelVersion", rules)?;
        self.blocked |= chunk["promptFeedback"]["blockReason"].is_string();
        let usage = &chunk["usageMetadata"];
        if usage.get("promptTokenCount").is_some() {
            told.usage = Some(counts(usage, rules)?);
        }
        let candidates = chunk["candidates"]
            .as_array()
            .map_or(&[][..], Vec::as_slice);
        rules.hold(!candidates.is_empty(), || {
            format!("no candidates in {chunk}")
        })?;
        for (place, candidate) in candidates.iter().enumerate() {
            rules.hold(candidate["index"].is_u64(), || {
                format!("index of {candidate}")
            })?;
            if candidate["index"].as_u64().unwrap_or(place as u64) > 0 {
                continue;
            }
            let content = &candidate["content"];
            rules.hold(content["role"] == "model", || {
                format!("role in {candidate}")
            })?;
            for part in list(content, "parts", rules)? {
                add(told, part, rules)?;
            }
            if let Some(word) = candidate["finishReason"].as_str() {
                told.stop = Some(stop(word)?);
            }
        }
        Ok(())
    }

    fn end(self, rules: Rules) -> Result<Told, String> {
        let mut told = self.told;
        if self.blocked && told.stop.is_none() {
            told.stop = Some(Stop::Filter);
        }
        rules.hold(told.stop.is_some() || told.error.is_some(), || {
            "no finishReason".to_owned()
        })?;
        // There is no word for it.
        if told.stop == Some(Stop::End) && !told.calls.is_empty() {
            told.stop = Some(Stop::Tools);
        }
        Ok(told)
    }
}

fn add(told: &mut Told, part: &Value, rules: Rules) -> Result<(), String> {
    if let Some(call) = part.get("functionCall") {
        let id = call["id"].as_str().unwrap_or_default().to_owned();
        rules.hold(call["args"].is_object(), || format!("{part}"))?;
        let pieces = call["partialArgs"]
            .as_array()
            .map_or(&[][..], Vec::as_slice);
        if call["name"].is_string() {
            told.calls.push(Call {
                id,
                name: named(call, "name", rules)?.to_owned(),
                arguments: call.get("args").cloned().unwrap_or_else(|| json!({})),
            });
        } else {
            // More of the latest call, or its end.
            rules.hold(false, || format!("no name in {part}"))?;
        }
        for piece in pieces {
            rules.hold(false, || format!("arguments in pieces: {part}"))?;
            let path = piece["jsonPath"].as_str().unwrap_or_default();
            let member = path.trim_start_matches("$.");
            if let Some(call) = told.calls.last_mut() {
                let before = call.arguments[member]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned();
                let more = piece["stringValue"].as_str().unwrap_or_default();
                call.arguments[member] = (before + more).into();
            }
        }
    } else if let Some(text) = part["text"].as_str() {
        match part["thought"] == true {
            true => told.reasoning += text,
            false => told.text += text,
        }
    } else {
        rules.hold(false, || format!("a part of another kind: {part}"))?;
    }
    Ok(())
}

fn stop(word: &str) -> Result<Stop, String> {
    Ok(match word {
        "STOP" => Stop::End,
        "MAX_TOKENS" => Stop::Length,
        "SAFETY" | "RECITATION" | "PROHIBITED_CONTENT" | "BLOCKLIST" | "SPII" | "IMAGE_SAFETY"
        | "MODEL_ARMOR" => Stop::Filter,
        other => return Err(format!("finishReason {other}")),
    })
}

/// Thoughts stand beside the candidates' tokens, tools' prompts beside the prompt's.
fn counts(usage: &Value, rules: Rules) -> Result<Counts, String> {
    let of = |member| count(usage, member, Rules::Lenient);
    let counts = Counts {
        input: of("promptTokenCount")? + of("toolUsePromptTokenCount")?,
        output: of("candidatesTokenCount")? + of("thoughtsTokenCount")?,
        cached: of("cachedContentTokenCount")?,
        reasoning: of("thoughtsTokenCount")?,
    };
    let total = of("totalTokenCount")?;
    rules.hold(total == counts.input + counts.output, || {
        format!("the sum in {usage}")
    })?;
    Ok(counts)
}

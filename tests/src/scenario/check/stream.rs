//! `client_stream`: what a caller of a stream reads, event by event, and nothing else.

use std::collections::HashMap;

use serde_json::Value;

use super::{Checked, Findings, Scene, at_place, by_place, by_table, require};
use crate::scenario::caller::{End, Heard};
use crate::scenario::facts;
use crate::scenario::phrase::Holes;

/// One thing that a caller reads.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    /// The id of the answer it belongs to, where it says so.
    pub(super) id: String,
    pub(super) kind: Kind,
}

/// What it is, whichever dialect says it.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    /// A chunk without choices, as providers annotate.
    Annotation,
    Usage,
    Role,
    Text(String),
    Reasoning(String),
    ToolStart {
        id: String,
        name: String,
    },
    ToolArguments(String),
    Finish(String),
    Done,
    Error(Value),
    MessageStart,
    BlockStart(Value),
    BlockStop,
    MessageDelta(String),
    MessageStop,
    Other(String),
}

/// Everything a caller read, in order.
pub(super) fn pieces(heard: &Heard) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for (_, event) in &heard.events {
        let data = event.json();
        let id = facts::id(&data).unwrap_or_default().to_owned();
        let mut put = |kind| {
            pieces.push(Piece {
                id: id.clone(),
                kind,
            });
        };
        if event.data == "[DONE]" {
            put(Kind::Done);
        } else if event.is_error() {
            put(Kind::Error(data));
        } else if data.get("type").is_some() {
            put(anthropic(&data));
        } else {
            openai(&data, put);
        }
    }
    pieces
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn anthropic(data: &Value) -> Kind {
    let delta = &data["delta"];
    match (
        data["type"].as_str().unwrap_or_default(),
        delta["type"].as_str(),
    ) {
        ("message_start", _) => Kind::MessageStart,
        ("content_block_start", _) => Kind::BlockStart(data.clone()),
        ("content_block_delta", Some("text_delta")) => Kind::Text(text_of(&delta["text"])),
        ("content_block_delta", Some("input_json_delta")) => {
            Kind::ToolArguments(text_of(&delta["partial_json"]))
        }
        ("content_block_delta", Some("thinking_delta")) => {
            Kind::Reasoning(text_of(&delta["thinking"]))
        }
        ("content_block_stop", _) => Kind::BlockStop,
        ("message_delta", _) => Kind::MessageDelta(text_of(&delta["stop_reason"])),
        ("message_stop", _) => Kind::MessageStop,
        (other, _) => Kind::Other(other.to_owned()),
    }
}

fn openai(data: &Value, mut put: impl FnMut(Kind)) {
    let choices = data["choices"].as_array().map_or(&[][..], Vec::as_slice);
    if choices.is_empty() {
        return put(if data["usage"].is_object() {
            Kind::Usage
        } else {
            Kind::Annotation
        });
    }
    for choice in choices {
        let delta = &choice["delta"];
        if delta.get("role").is_some() {
            put(Kind::Role);
        }
        if let Some(text) = delta["content"].as_str().filter(|text| !text.is_empty()) {
            put(Kind::Text(text.to_owned()));
        }
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            if call.get("id").is_some() {
                put(Kind::ToolStart {
                    id: text_of(&call["id"]),
                    name: text_of(&call["function"]["name"]),
                });
            }
            let arguments = text_of(&call["function"]["arguments"]);
            if !arguments.is_empty() {
                put(Kind::ToolArguments(arguments));
            }
        }
        if let Some(reason) = choice["finish_reason"].as_str() {
            put(Kind::Finish(reason.to_owned()));
        }
    }
}

pub(super) fn check(scene: &Scene<'_>, findings: &mut Findings) {
    let Some(value) = &scene.scenario.expect.client_stream else {
        return;
    };
    let each = match by_place(scene, value) {
        Ok(each) => each,
        Err(fault) => return findings.add("client_stream", Err(fault)),
    };
    for (want, place) in each.into_iter().zip(1..) {
        let phrases = want.as_array().into_iter().flatten();
        let phrases: Vec<&str> = phrases.filter_map(Value::as_str).collect();
        let checked = at_place(scene, place, |heard| reads(scene, heard, &phrases));
        findings.add(format!("client_stream of request {place}: {want}"), checked);
    }
}

fn reads(scene: &Scene<'_>, heard: &Heard, phrases: &[&str]) -> Checked {
    let mut cursor = Cursor {
        scene,
        heard,
        rest: pieces(heard).into(),
    };
    for phrase in phrases {
        let (check, holes) = by_table(&PHRASES, phrase)?;
        check(&mut cursor, &holes).map_err(|fault| format!("{phrase}: {fault}"))?;
    }
    require(cursor.rest.is_empty(), || format!("then {:?}", cursor.rest))?;
    require(heard.end == End::Whole, || {
        format!("its end is {:?}", heard.end)
    })
}

/// What is left to read.
struct Cursor<'a> {
    scene: &'a Scene<'a>,
    heard: &'a Heard,
    rest: std::collections::VecDeque<Piece>,
}

impl Cursor<'_> {
    fn next(&mut self) -> Result<Piece, String> {
        let piece = self.rest.pop_front();
        piece.ok_or_else(|| "the stream is over".to_owned())
    }

    /// The next piece, which must be `kind`; an id where one is named.
    fn take(&mut self, kind: &Kind, holes: &Holes<'_>) -> Checked {
        let piece = self.next()?;
        require(piece.kind == *kind, || format!("there is {piece:?}"))?;
        require(!holes.has("id") || piece.id == holes.text("id"), || {
            format!("its id is {}", piece.id)
        })?;
        let mut ids = facts::ids(self.scene.scenario, holes.text("u"));
        require(!holes.has("u") || ids.any(|id| id == piece.id), || {
            format!("its id is {}", piece.id)
        })
    }

    /// The texts that come next, without anything between them.
    fn texts(&mut self) -> Vec<String> {
        let mut texts = Vec::new();
        while let Some(Kind::Text(text)) = self.rest.front().map(|piece| &piece.kind) {
            texts.push(text.clone());
            self.rest.pop_front();
        }
        texts
    }
}

type Reads = fn(&mut Cursor<'_>, &Holes<'_>) -> Checked;

const PHRASES: [(&str, Reads); 34] = [
    ("role", |cursor, holes| cursor.take(&Kind::Role, holes)),
    ("role (from <u>)", |cursor, holes| {
        cursor.take(&Kind::Role, holes)
    }),
    ("role <id>", |cursor, holes| cursor.take(&Kind::Role, holes)),
    ("text x<n>", texts_as_sent),
    ("text x<n> exactly as sent by <u>", texts_as_sent),
    ("text '<t..>'", text),
    ("text '<t..>' in one event", text_at_once),
    ("text '<t..>' in one valid JSON event", text_at_once),
    ("tool call <call> <name>", |cursor, holes| {
        let start = Kind::ToolStart {
            id: holes.text("call").to_owned(),
            name: holes.text("name").to_owned(),
        };
        cursor.take(&start, &Holes::default())
    }),
    ("arguments as sent", arguments_as_sent),
    ("arguments fragment as sent", arguments_as_sent),
    ("finish <r>", |cursor, holes| {
        cursor.take(&Kind::Finish(holes.text("r").to_owned()), holes)
    }),
    ("[DONE]", |cursor, holes| cursor.take(&Kind::Done, holes)),
    ("an annotation", annotation),
    ("<k>'s empty-choices annotation", annotation),
    ("error", error),
    ("one error event", error),
    ("one error event with the original request id", error),
    ("one error event: the upstream ended early", error),
    (
        "one error event about <ms> ms after the last text",
        error_after,
    ),
    ("end", |_, _| Ok(())),
    ("stream ends", |_, _| Ok(())),
    // Comments are no events; whoever counts events has not seen them.
    ("optional comment lines", |_, _| Ok(())),
    ("message_start", |cursor, holes| {
        cursor.take(&Kind::MessageStart, holes)
    }),
    ("message_start <id>", |cursor, holes| {
        cursor.take(&Kind::MessageStart, holes)
    }),
    ("<n> tool_use blocks, ids <a> <b> <c>, *", tool_blocks),
    ("content_block_start", |cursor, _| {
        let piece = cursor.next()?;
        require(matches!(piece.kind, Kind::BlockStart(_)), || {
            format!("there is {piece:?}")
        })
    }),
    ("message_delta <r>", |cursor, holes| {
        cursor.take(&Kind::MessageDelta(holes.text("r").to_owned()), holes)
    }),
    ("event <event>", |cursor, holes| {
        let event = holes.text("event").to_owned();
        cursor.take(&Kind::Other(event), &Holes::default())
    }),
    // The other words for events of the Responses surface.
    ("reasoning item added", |cursor, _| {
        let event = Kind::Other("response.output_item.added".to_owned());
        cursor.take(&event, &Holes::default())
    }),
    ("reasoning delta", |cursor, _| {
        let event = Kind::Other("response.reasoning_summary_text.delta".to_owned());
        cursor.take(&event, &Holes::default())
    }),
    (
        "<event> <id> with <code>, sequence numbers unbroken",
        |cursor, holes| {
            let event = Kind::Other(holes.text("event").to_owned());
            cursor.take(&event, holes)?;
            let events = cursor.heard.events.iter();
            let numbers = events.map(|(_, event)| event.json()["sequence_number"].as_u64());
            let unbroken = numbers.zip(0..).all(|(number, n)| number == Some(n));
            require(unbroken, || "its sequence is broken".to_owned())
        },
    ),
    ("<event> <id>", |cursor, holes| {
        let event = Kind::Other(holes.text("event").to_owned());
        cursor.take(&event, holes)
    }),
    ("<event>", |cursor, holes| match holes.text("event") {
        "content_block_stop" => cursor.take(&Kind::BlockStop, holes),
        "message_stop" => cursor.take(&Kind::MessageStop, holes),
        event if event.starts_with("response.") => {
            cursor.take(&Kind::Other(event.to_owned()), &Holes::default())
        }
        _ => Err("nothing checks this".to_owned()),
    }),
];

/// So many pieces of text, and together what a script sends.
fn texts_as_sent(cursor: &mut Cursor<'_>, holes: &Holes<'_>) -> Checked {
    let texts = cursor.texts();
    let n = holes.number("n").ok_or("it names no number")?;
    require(texts.len() as u64 == n, || {
        format!("there are {}", texts.len())
    })?;
    let records = cursor.scene.played.requests.iter();
    let record = records
        .filter(|(heard, _)| heard.id == cursor.heard.id)
        .find_map(|(_, record)| record.as_ref());
    let served = record
        .and_then(|record| record.served.as_ref())
        .ok_or("nobody served it")?;
    require(
        !holes.has("u") || served.provider == holes.text("u"),
        || format!("it is from {}", served.provider),
    )?;
    // The script repeats what has `{{n}}` in it.
    let scenario = cursor.scene.scenario;
    let sent = facts::sent(scenario, &served.provider)
        .filter_map(|data| data["choices"][0]["delta"]["content"].as_str());
    let sent: Vec<&str> = sent.filter(|text| !text.is_empty()).collect();
    let mut as_sent = texts.iter().enumerate().zip(sent.iter().cycle());
    let known = as_sent.all(|((n, text), sent)| *text == sent.replace("{{n}}", &n.to_string()));
    require(known, || format!("it is {texts:?}"))
}

fn text(cursor: &mut Cursor<'_>, holes: &Holes<'_>) -> Checked {
    let want = holes.text("t");
    let mut read = String::new();
    while read.len() < want.len() {
        match cursor.next()?.kind {
            Kind::Text(text) => read.push_str(&text),
            other => return Err(format!("there is {other:?}")),
        }
    }
    require(read == want, || format!("it is {read:?}"))
}

fn text_at_once(cursor: &mut Cursor<'_>, holes: &Holes<'_>) -> Checked {
    cursor.take(&Kind::Text(holes.text("t").to_owned()), &Holes::default())
}

fn arguments_as_sent(cursor: &mut Cursor<'_>, _: &Holes<'_>) -> Checked {
    let piece = cursor.next()?;
    let Kind::ToolArguments(arguments) = &piece.kind else {
        return Err(format!("there is {piece:?}"));
    };
    let mut sent = facts::all_sent(cursor.scene.scenario);
    let known = sent.any(|data| {
        let call = &data["choices"][0]["delta"]["tool_calls"][0];
        call["function"]["arguments"] == arguments.as_str()
    });
    require(known, || format!("they are {arguments}"))
}

fn annotation(cursor: &mut Cursor<'_>, _: &Holes<'_>) -> Checked {
    cursor.take(&Kind::Annotation, &Holes::default())
}

/// An error in the caller's dialect, with the id of its request.
fn error(cursor: &mut Cursor<'_>, _: &Holes<'_>) -> Checked {
    let piece = cursor.next()?;
    let Kind::Error(error) = &piece.kind else {
        return Err(format!("there is {piece:?}"));
    };
    let id = error["request_id"]
        .as_str()
        .or(error["error"]["request_id"].as_str());
    require(id == Some(cursor.heard.id.as_str()), || {
        format!("it is {error}")
    })?;
    require(error["error"]["message"].is_string(), || {
        format!("it is {error}")
    })
}

/// The same, so long after the last text: never earlier, and not much later.
fn error_after(cursor: &mut Cursor<'_>, holes: &Holes<'_>) -> Checked {
    let ms = holes.number("ms").ok_or("it names no time")?;
    let events = &cursor.heard.events;
    let text = events
        .iter()
        .rev()
        .find(|(_, event)| !event.text().is_empty());
    let error = events.iter().find(|(_, event)| event.is_error());
    let (Some((text, _)), Some((error, _))) = (text, error) else {
        return Err("there is no text, or no error".to_owned());
    };
    let late = error.saturating_duration_since(*text).as_millis();
    let about = u128::from(ms) * 9 / 10..=u128::from(ms) * 2;
    require(about.contains(&late), || {
        format!("it comes after {late} ms")
    })?;
    self::error(cursor, holes)
}

/// Blocks of tool calls with these ids: one start, its own deltas, one stop; none open beside another.
fn tool_blocks(cursor: &mut Cursor<'_>, holes: &Holes<'_>) -> Checked {
    let mut arguments: HashMap<String, String> = HashMap::new();
    let mut open: Option<String> = None;
    let mut ids = Vec::new();
    while let Some(piece) = cursor.rest.front() {
        match (&piece.kind, open.as_ref()) {
            (Kind::BlockStart(start), None) => {
                let block = &start["content_block"];
                require(block["type"] == "tool_use", || format!("there is {block}"))?;
                let id = text_of(&block["id"]);
                ids.push(id.clone());
                open = Some(id);
            }
            (Kind::ToolArguments(part), Some(id)) => {
                arguments.entry(id.clone()).or_default().push_str(part);
            }
            (Kind::BlockStop, Some(_)) => open = None,
            (Kind::BlockStart(_) | Kind::BlockStop | Kind::ToolArguments(_), _) => {
                return Err(format!("there is {piece:?} while {open:?} is open"));
            }
            _ => break,
        }
        cursor.rest.pop_front();
    }
    let want = [holes.text("a"), holes.text("b"), holes.text("c")];
    require(open.is_none() && ids == want, || {
        format!("there are {ids:?}")
    })?;
    require(holes.number("n") == Some(ids.len() as u64), || {
        format!("there are {}", ids.len())
    })?;
    let whole = |text: &String| serde_json::from_str::<Value>(text).is_ok();
    require(arguments.values().all(whole), || {
        format!("arguments {arguments:?}")
    })
}

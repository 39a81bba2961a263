//! What callers got: status, headers, body.

use serde_json::Value;

use super::{Checked, Findings, Scene, at_place, by_place, by_table, equal, require};
use crate::scenario::caller::{End, Heard};
use crate::scenario::facts;
use crate::scenario::phrase::{self, Holes};
use crate::sse;

pub(super) fn check(scene: &Scene<'_>, findings: &mut Findings) {
    let expect = &scene.scenario.expect;
    each(
        scene,
        findings,
        "client_status",
        &expect.client_status,
        |_, heard, want| match (want, heard.end) {
            (Value::Null, End::Left) => require(heard.status.is_none(), || {
                format!("there was one: {:?}", heard.status)
            }),
            _ => equal(&heard.status.into(), want),
        },
    );
    if let Some(bodies) = &expect.client_body {
        each(
            scene,
            findings,
            "client_body",
            bodies,
            |scene, heard, want| {
                let words = want.as_str().ok_or("it is no text")?;
                by_table(&BODIES, words).and_then(|(check, holes)| check(scene, heard, &holes))
            },
        );
    }
    if let Some(headers) = &expect.client_headers {
        each(
            scene,
            findings,
            "client_headers",
            headers,
            |_, heard, want| {
                let wanted = want.as_object().ok_or("they are no object")?;
                for (name, value) in wanted {
                    header(heard, name, value).map_err(|fault| format!("{name}: {fault}"))?;
                }
                Ok(())
            },
        );
    }
    for (name, want) in expect.client_check.iter().flatten() {
        let checked = match name.as_str() {
            "tool_inputs" => at_place(scene, 1, |heard| tool_inputs(heard, want)),
            _ => Err("nothing checks this".to_owned()),
        };
        findings.add(format!("client_check {name} = {want}"), checked);
    }
}

fn each(
    scene: &Scene<'_>,
    findings: &mut Findings,
    name: &str,
    value: &Value,
    check: impl Fn(&Scene<'_>, &Heard, &Value) -> Checked,
) {
    match by_place(scene, value) {
        Err(fault) => findings.add(name, Err(fault)),
        Ok(each) => {
            for (want, place) in each.into_iter().zip(1..) {
                let checked = at_place(scene, place, |heard| check(scene, heard, want));
                findings.add(format!("{name} of request {place}: {want}"), checked);
            }
        }
    }
}

type BodyCheck = fn(&Scene<'_>, &Heard, &Holes<'_>) -> Checked;

/// What is said of bodies.
const BODIES: [(&str, BodyCheck); 23] = [
    ("text '<t..>'", text),
    ("text '<t..>' from <u>", text),
    ("text '<t..>' as an Anthropic message", text),
    ("completion text '<t..>'", text),
    ("completion text '<t..>' from <u>", text),
    ("plain JSON, text '<t..>'", text),
    ("text '<t..>' in Anthropic shape", text),
    ("Anthropic error <c>", anthropic_error),
    (
        "Anthropic error object, type <c>, application/json",
        anthropic_error,
    ),
    ("our own error <c>", own_error),
    ("error code <c>, no provider wording", own_error),
    ("<c>, without provider wording", own_error),
    ("<c> with the request id", own_error),
    ("the provider's error, unchanged", providers_error),
    ("<c> as the provider sent it", providers_error),
    ("<u>'s error", providers_error),
    ("model <m>", |_, heard, holes| {
        equal(&heard.json()["model"], &holes.text("m").into())
    }),
    ("choices unchanged", |scene, heard, _| {
        let choices = &heard.json()["choices"];
        let mut sent = facts::all_sent(scene.scenario);
        require(
            sent.any(|data| data.get("choices") == Some(choices)),
            || format!("they are {choices}"),
        )
    }),
    ("provider's <status> with its <member>", providers_error),
    ("provider's <status> naming <param>", providers_error),
    ("code <c> with the inner error kept", providers_error),
    ("finish_reason <r>, unchanged", |scene, heard, holes| {
        let choices = &heard.json()["choices"];
        equal(&choices[0]["finish_reason"], &holes.text("r").into())?;
        let mut sent = facts::all_sent(scene.scenario);
        require(
            sent.any(|data| data.get("choices") == Some(choices)),
            || format!("they are {choices}"),
        )
    }),
    ("model field says <m>", |_, heard, holes| {
        equal(&heard.json()["model"], &holes.text("m").into())
    }),
];

/// The text of a whole answer, and where given who sent it.
fn text(_: &Scene<'_>, heard: &Heard, holes: &Holes<'_>) -> Checked {
    let body = heard.json();
    let said = body["choices"][0]["message"]["content"]
        .as_str()
        .or_else(|| body["content"][0]["text"].as_str());
    require(said == Some(holes.text("t")), || format!("it is {body}"))?;
    if holes.has("u") {
        let from = heard.header("x-backstop-provider");
        require(from == holes.text("u"), || format!("it is from {from}"))?;
    }
    Ok(())
}

fn is_json(heard: &Heard) -> Checked {
    let kind = heard.header("content-type");
    require(kind.starts_with("application/json"), || {
        format!("its type is {kind}")
    })
}

fn anthropic_error(_: &Scene<'_>, heard: &Heard, holes: &Holes<'_>) -> Checked {
    is_json(heard)?;
    let body = heard.json();
    equal(&body["type"], &"error".into())?;
    equal(&body["error"]["type"], &holes.text("c").into())
}

/// An error of the gateway's own: its code, the request id, and no word of a provider.
fn own_error(scene: &Scene<'_>, heard: &Heard, holes: &Holes<'_>) -> Checked {
    is_json(heard)?;
    let body = heard.json();
    equal(&body["error"]["code"], &holes.text("c").into())?;
    equal(&body["request_id"], &heard.id.as_str().into())?;
    let text = heard.text();
    let told = facts::messages(scene.scenario).find(|words| text.contains(words));
    require(told.is_none(), || {
        format!("a provider's words are in it: {told:?}")
    })
}

/// A provider's error, member for member, whose status, code, sender or members may be named.
fn providers_error(scene: &Scene<'_>, heard: &Heard, holes: &Holes<'_>) -> Checked {
    is_json(heard)?;
    let body = heard.json();
    let error = &body["error"];
    let known = if holes.has("u") {
        let mut sent = facts::sent(scene.scenario, holes.text("u"));
        sent.any(|data| data.get("error") == Some(error))
    } else {
        facts::errors(scene.scenario).any(|sent| sent == error)
    };
    require(known, || format!("it is {error}"))?;
    if holes.has("c") {
        equal(&error["code"], &holes.text("c").into())?;
    }
    if holes.has("status") {
        let status = holes.number("status");
        require(heard.status.map(u64::from) == status, || {
            format!("its status is {:?}", heard.status)
        })?;
    }
    if holes.has("param") {
        equal(&error["param"], &holes.text("param").into())?;
    }
    let member = holes.text("member");
    require(member.is_empty() || !error[member].is_null(), || {
        format!("it has no {member}")
    })?;
    equal(&body["request_id"], &heard.id.as_str().into())
}

/// What is said of one header.
fn header(heard: &Heard, name: &str, want: &Value) -> Checked {
    let want = want.as_str().ok_or("it is no text")?;
    let found = |name: &str| heard.header(name).to_owned();
    match (name, want) {
        ("served model", want) => equal(&found("x-backstop-model").into(), &want.into()),
        ("served upstream", want) => equal(&found("x-backstop-provider").into(), &want.into()),
        ("substituted", "true") => {
            equal(&found("x-backstop-action").into(), &"substitution".into())
        }
        (name, "absent") => require(!heard.headers.contains_key(name), || {
            "it is there".to_owned()
        }),
        ("content-length", "equals the bytes sent, or absent with chunked framing") => {
            let length = found("content-length");
            let right = length.is_empty() || length == heard.body.len().to_string();
            require(right, || format!("it is {length}"))
        }
        ("retry-after", want) if phrase::read("*<n> s", want).is_some() => {
            let least = phrase::read("*never shorter than <n> s", want)
                .or_else(|| phrase::read("at least <n> s", want))
                .and_then(|holes| holes.number("n"));
            let seconds = found("retry-after").parse::<u64>();
            match (seconds, least) {
                (Ok(seconds), Some(least)) => {
                    require(seconds >= least, || format!("it is {seconds}"))
                }
                (found, _) => Err(format!("it is {found:?}")),
            }
        }
        (name, want) => equal(&found(name).into(), &want.into()),
    }
}

/// The arguments of every tool call of a stream in Anthropic's dialect, by id.
fn tool_inputs(heard: &Heard, want: &Value) -> Checked {
    let mut inputs = serde_json::Map::new();
    let (mut id, mut text) = (String::new(), String::new());
    for event in heard
        .events
        .iter()
        .map(|(_, event)| sse::Event::json(event))
    {
        match event["type"].as_str() {
            Some("content_block_start") => {
                let block = &event["content_block"];
                id = block["id"].as_str().unwrap_or_default().to_owned();
                text.clear();
            }
            Some("content_block_delta") => {
                text.push_str(event["delta"]["partial_json"].as_str().unwrap_or_default());
            }
            Some("content_block_stop") if !id.is_empty() => {
                let input = serde_json::from_str(&text).unwrap_or(Value::Null);
                inputs.insert(std::mem::take(&mut id), input);
            }
            _ => {}
        }
    }
    equal(&inputs.into(), want)
}

//! Streams that break, and what the gateway makes of them.

use std::fmt::Write as _;

use backstop_faultsim::Dialect;
use backstop_ledger::JourneyRecord;
use serde_json::json;
use tokio::task::JoinSet;

use super::act::{Act, Known};
use super::caller::{Ask, Heard};
use super::dice::Dice;
use super::findings::{Findings, Promise};
use super::scene::{ATTEMPTS, PROVIDERS, ROUTES, Scene, Setting, Sighting, commit_header, config};
use super::{LEDGER_PATIENCE, SCENE, Soak};

/// What one case plays.
struct Case {
    name: String,
    id: String,
    ask: Ask,
    acts: Vec<Act>,
}

impl Case {
    fn roll(seed: u64, number: u64) -> Self {
        let mut dice = Dice::of(seed, &[1, number]);
        let tool = dice.one_in(4);
        let id = format!("break-{number}");
        let acts = (1..=ATTEMPTS)
            .map(|attempt| {
                let tag = format!("{number}.{attempt}");
                match attempt {
                    1 => Act::broken(&mut dice, &tag, tool),
                    _ => Act::any(&mut dice, &tag, tool),
                }
            })
            .collect();
        Self {
            name: format!("breaks/{number}"),
            ask: ask(&mut dice, &id, tool),
            id,
            acts,
        }
    }

    fn known(&self, sighting: &Sighting) -> Option<Known> {
        let act = self.acts.get(sighting.number? as usize - 1)?;
        let wire = act.wire(PROVIDERS[sighting.provider].1);
        Some(wire.known(sighting.attempt.progress().body_bytes))
    }
}

/// A request for a stream, in either dialect, on any route, under any commit rule.
fn ask(dice: &mut Dice, id: &str, tool: bool) -> Ask {
    let path = dice.pick(&["/v1/chat/completions", "/v1/messages"]);
    let mut body = json!({
        "model": dice.pick(&ROUTES),
        "stream": true,
        "max_tokens": 64,
        "messages": [{"role": "user", "content": "Say something."}],
    });
    if tool {
        let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
        body["tools"] = match path {
            "/v1/messages" => json!([{"name": "write", "input_schema": schema}]),
            _ => json!([{"type": "function",
                "function": {"name": "write", "parameters": schema}}]),
        };
    }
    let mut headers = vec![("x-request-id", id.to_owned())];
    if let Some(commit) = commit_header(dice) {
        headers.push(("x-backstop-commit", commit.to_owned()));
    }
    if dice.one_in(8) {
        let deadline = dice.between(100, 3000).to_string();
        headers.push(("x-backstop-deadline-ms", deadline));
    }
    Ask {
        path,
        headers,
        body: body.to_string(),
    }
}

/// Plays the scene with this number: its cases all at once, before one gateway.
pub(super) async fn play(soak: &Soak, number: u64) -> Findings {
    let mut dice = Dice::of(soak.seed, &[0, number]);
    let setting = Setting {
        patience_ms: dice.between(150, 300),
        backoff_ms: dice.between(1, 4),
        connections: 1000,
    };
    let scene = Scene::start(&config(&mut dice, setting), soak.seed ^ number).await;
    let mut heard = JoinSet::new();
    let cases = (number * SCENE..soak.breaks.min((number + 1) * SCENE))
        .map(|case| Case::roll(soak.seed, case));
    let cases: Vec<Case> = cases.collect();
    for (place, case) in cases.iter().enumerate() {
        let mut dice = Dice::of(soak.seed, &[2, number * SCENE + place as u64]);
        for (attempt, act) in (1..).zip(&case.acts) {
            scene.teach(&case.id, attempt, |dialect| act.step(&mut dice, dialect));
        }
    }
    for (place, case) in cases.iter().enumerate() {
        let (ask, address) = (case.ask.clone(), scene.address);
        heard.spawn(async move { (place, ask.hear(address).await) });
    }
    let mut findings = Findings::default();
    while let Some(joined) = heard.join_next().await {
        let (place, heard) = joined.expect("a caller does not panic");
        let case = &cases[place];
        judge(&scene, case, &heard, &mut findings).await;
        if soak.wants(&case.name) {
            findings.stories.push(story(&scene, case, &heard));
        }
        soak.progress.step(1);
    }
    for leak in scene.leaks() {
        findings.broke(Promise::Settled, &format!("scene {number}"), leak);
    }
    findings
}

async fn judge(scene: &Scene, case: &Case, heard: &Heard, findings: &mut Findings) {
    findings.count("breaks");
    let Some(record) = scene.record(&case.id, LEDGER_PATIENCE).await else {
        return findings.broke(Promise::TrailIsWire, &case.name, "no record of the journey");
    };
    let seen = scene.sightings(&case.id);
    for difference in differences(&record, &seen, findings) {
        let (Difference::NoRow(what) | Difference::Other(what)) = difference;
        findings.broke(Promise::TrailIsWire, &case.name, what);
    }
    findings.add("attempts", seen.len() as u64);
    if let Some(broken) = &heard.broken {
        return findings.broke(Promise::Faithful, &case.name, broken.clone());
    }
    if heard.status == 200 {
        judge_stream(case, heard, &record, &seen, findings);
    } else {
        findings.count("answered with an error status");
        let error = serde_json::from_str::<serde_json::Value>(&heard.body);
        if !error.is_ok_and(|body| body["error"].is_object()) {
            let what = format!("status {} without an error", heard.status);
            findings.broke(Promise::Faithful, &case.name, what);
        }
    }
}

/// What the caller heard of a stream, against what the providers sent.
fn judge_stream(
    case: &Case,
    heard: &Heard,
    record: &JourneyRecord,
    seen: &[Sighting],
    findings: &mut Findings,
) {
    let said = heard.said();
    let errors = heard.errors();
    let finished = errors.is_empty();
    let last = seen.last().and_then(|last| Some((last, case.known(last)?)));
    let Some((last, known)) = last else {
        if !said.is_empty() || finished {
            findings.broke(Promise::Faithful, &case.name, "an answer from nowhere");
        }
        return;
    };
    // Every piece carries the number of its attempt: another one's words were said before.
    if seen.len() > 1 && !said.is_empty() {
        let (_, earlier) = seen.split_last().expect("more than one");
        let replayed = earlier.iter().any(|earlier| {
            let number = earlier.number.unwrap_or_default();
            number != last.number.unwrap_or_default() && said.contains(&tag(&case.name, number))
        });
        if replayed {
            findings.broke(
                Promise::NoReplay,
                &case.name,
                format!("the caller heard {said:?}"),
            );
        }
    }
    if !known.said_at_most.starts_with(&said) {
        let what = format!("heard {said:?}, said {:?}", known.said_at_most);
        findings.broke(Promise::Faithful, &case.name, what);
    }
    if heard.stump || errors.len() > 1 || errors.iter().any(|at| at + 1 < heard.events.len()) {
        let what = format!("ends badly: {:?}", heard.events.last());
        findings.broke(Promise::Faithful, &case.name, what);
    }
    let anthropic = PROVIDERS[last.provider].1 == Dialect::Anthropic;
    let whole = if anthropic { known.done } else { known.reason };
    let same = anthropic == (case.ask.path == "/v1/messages");
    let done_was_sent = if same { known.done } else { whole };
    if (finished && !whole)
        || (heard.is_done() && !done_was_sent)
        || (heard.has_reason() && !known.reason)
    {
        let what = format!("looks finished after {known:?}");
        findings.broke(Promise::NoFalseFinish, &case.name, what);
    }
    if finished {
        findings.count("answered whole");
        if said != known.said && said != known.said_at_most {
            let what = format!("lost: heard {said:?} of {:?}", known.said);
            findings.broke(Promise::Faithful, &case.name, what);
        }
    } else if said.is_empty() {
        findings.count("told an error in a stream without output");
    } else {
        findings.count("broken after output, told so");
        judge_partial(case, &said, record, &known, findings);
    }
    let terminal = if finished { "success" } else { "partial" };
    if !said.is_empty() && record.terminal != terminal && record.terminal != "deadline" {
        let what = format!("the record says {}, not {terminal}", record.terminal);
        findings.broke(Promise::TrailIsWire, &case.name, what);
    }
}

/// A stream that broke by itself must have given all that had come.
fn judge_partial(
    case: &Case,
    said: &str,
    record: &JourneyRecord,
    known: &Known,
    findings: &mut Findings,
) {
    let row = record.rows.last();
    let class = row
        .and_then(|row| row.class)
        .map_or("", |class| class.name());
    let act = row
        .and_then(|row| row.attempt)
        .and_then(|number| case.acts.get(number as usize - 1));
    let reset = matches!(act, Some(Act::Broken { spoilt, .. }) if spoilt.is_reset());
    let in_time = class != "timeout" && record.terminal == "partial";
    if in_time && !reset && said != known.said && said != known.said_at_most {
        let what = format!("lost: heard {said:?} of {:?}", known.said);
        findings.broke(Promise::Faithful, &case.name, what);
    }
}

/// How an attempt's words are known again.
fn tag(case: &str, attempt: u32) -> String {
    let number = case.rsplit('/').next().unwrap_or_default();
    format!("<{number}.{attempt}.")
}

/// How a trail differs from what providers saw.
pub(super) enum Difference {
    /// An attempt that no row tells of.
    NoRow(String),
    /// Anything else.
    Other(String),
}

/// How the rows of a journey differ from what providers saw of it.
pub(super) fn differences(
    record: &JourneyRecord,
    seen: &[Sighting],
    findings: &mut Findings,
) -> Vec<Difference> {
    let mut differences = Vec::new();
    let sent = record.rows.iter().filter(|row| row.attempt.is_some());
    let mut sightings = seen.iter().peekable();
    for (place, row) in (1..).zip(sent) {
        let number = row.attempt.unwrap_or_default();
        if number != place {
            differences.push(Difference::Other(format!(
                "row {place} is attempt {number}"
            )));
        }
        let is_it = |sighting: &Sighting| {
            let (name, _) = PROVIDERS[sighting.provider];
            sighting.number == Some(number)
                && name == row.provider.as_str()
                && sighting.attempt.key() == row.key.as_ref().map(|key| key.name())
        };
        if sightings.peek().is_some_and(|sighting| is_it(sighting)) {
            sightings.next();
            continue;
        }
        // A request may die in the connection: an old one that its provider had just closed, or one
        // whose caller left while it was written.
        let answered = row.status.is_some();
        let outcome = row.outcome.as_str();
        let class = row.class.map_or("", |class| class.name());
        let lost = outcome == "cancelled" || class == "transient" || class == "timeout";
        if answered || !lost {
            let what = format!("no provider saw attempt {number}: {row:?}");
            differences.push(Difference::Other(what));
        } else {
            findings.count("attempts that died before a provider had read them");
        }
    }
    for left in sightings {
        let (name, _) = PROVIDERS[left.provider];
        let what = format!("{name} saw an attempt {:?} without a row", left.number);
        differences.push(Difference::NoRow(what));
    }
    differences
}

/// A case in full, for who asked for it.
fn story(scene: &Scene, case: &Case, heard: &Heard) -> String {
    let mut story = format!("{}\n  {} {}\n", case.name, case.ask.path, case.ask.body);
    for (name, value) in &case.ask.headers {
        let _ = writeln!(story, "  {name}: {value}");
    }
    for sighting in scene.sightings(&case.id) {
        let (name, dialect) = PROVIDERS[sighting.provider];
        let act = sighting
            .number
            .and_then(|number| case.acts.get(number as usize - 1));
        let _ = writeln!(
            story,
            "  attempt {:?} at {name} ({dialect:?}): {act:?}\n    {:?}",
            sighting.number,
            sighting.attempt.progress()
        );
    }
    if let Some(record) = scene.gateway.ledger().find(&case.id) {
        let _ = writeln!(story, "  record: {}", record.to_json());
    }
    let _ = writeln!(story, "  heard: {} {}", heard.status, heard.body.trim_end());
    story
}

//! What providers received, and where secrets are not.

use backstop_faultsim::Attempt;

use super::{Checked, Findings, Scene, by_table, require};
use crate::CANARY;
use crate::scenario::data::{Scan, UpstreamRequest};
use crate::scenario::phrase::Holes;
use crate::scenario::settings::secret;

pub(super) fn check(scene: &Scene<'_>, findings: &mut Findings) {
    for request in &scene.scenario.expect.upstream_requests {
        received(scene, request, findings);
    }
    if let Some(scan) = &scene.scenario.expect.scan_for_secret {
        scanned(scene, scan, findings);
    }
}

/// What a check says of the calls to one provider.
type Received = fn(&Scene<'_>, &[Attempt], &Holes<'_>) -> Checked;

const CHECKS: [(&str, Received); 2] = [
    ("prompt bytes identical on both attempts", |_, calls, _| {
        let prompts: Vec<_> = calls.iter().map(prompt).collect();
        require(prompts.len() == 2 && prompts[0] == prompts[1], || {
            format!("{} calls, of {:?} bytes", calls.len(), sizes(&prompts))
        })
    }),
    (
        "prompt bytes identical to the client's, length > <n>",
        |scene, calls, holes| {
            let least = holes.number("n").ok_or("it names no length")?;
            let sent = scene.played.requests.iter().map(|(heard, _)| &heard.prompt);
            let sent: Vec<_> = sent.collect();
            let prompts: Vec<_> = calls.iter().map(prompt).collect();
            let same = prompts.iter().all(|prompt| sent.contains(&prompt));
            let long = calls.iter().all(|call| call.body().len() as u64 > least);
            require(same && long && !prompts.is_empty(), || {
                format!("{:?} bytes arrived", sizes(&prompts))
            })
        },
    ),
];

fn prompt(call: &Attempt) -> String {
    let body = call.json();
    let last = body["messages"].as_array().and_then(|all| all.last());
    let words = last.and_then(|message| message["content"].as_str());
    words.unwrap_or_default().to_owned()
}

fn sizes(prompts: &[String]) -> Vec<usize> {
    prompts.iter().map(String::len).collect()
}

fn received(scene: &Scene<'_>, request: &UpstreamRequest, findings: &mut Findings) {
    let name = &request.upstream;
    let calls = scene.played.calls_to(name);
    let holds = |words: &str| {
        // A key is named, not spelled out.
        let words = match words.strip_prefix("the credential of ") {
            Some(key) => secret(key),
            None => words.to_owned(),
        };
        calls.iter().any(|call| whole(call).contains(&words))
    };
    for words in &request.must_have {
        let checked = require(holds(words), || "it does not".to_owned());
        findings.add(format!("{name} receives {words}"), checked);
    }
    for words in &request.must_not_have {
        let checked = require(!holds(words), || "it does".to_owned());
        findings.add(format!("{name} does not receive {words}"), checked);
    }
    if let Some(check) = &request.check {
        let checked = by_table(&CHECKS, check).and_then(|(run, holes)| run(scene, &calls, &holes));
        findings.add(format!("{name} receives {check}"), checked);
    }
}

/// A request as one text: its path, its headers by lower-case name, its body.
fn whole(call: &Attempt) -> String {
    let mut text = format!("{}?{}\n", call.path(), call.query().unwrap_or_default());
    for (name, value) in call.headers() {
        text.push_str(name.as_str());
        text.push_str(": ");
        text.push_str(&String::from_utf8_lossy(value.as_bytes()));
        text.push('\n');
    }
    text + &String::from_utf8_lossy(call.body())
}

/// A place in which something may be found, and all the text that is there.
type Place = (&'static str, fn(&Scene<'_>) -> String);

const PLACES: [Place; 7] = [
    ("client body", |scene| {
        let heard = scene.played.requests.iter();
        heard.map(|(heard, _)| heard.text()).collect()
    }),
    ("client headers", |scene| {
        let heard = scene.played.requests.iter();
        heard
            .map(|(heard, _)| format!("{:?}", heard.headers))
            .collect()
    }),
    ("logs at debug", |scene| scene.played.log.clone()),
    ("ledger", ledger_text),
    ("metrics labels", |scene| {
        scene.played.after.page().to_owned()
    }),
    ("routing trail", |scene| {
        let log = scene.played.log.lines();
        log.filter(|line| line.contains("backstop::routing"))
            .collect()
    }),
    // Errors are told to callers, and logged with their causes.
    ("panic or error chains", |scene| scene.played.log.clone()),
];

/// Every record, as operators see it and as `Debug` shows it.
pub(super) fn ledger_text(scene: &Scene<'_>) -> String {
    let records = scene
        .played
        .requests
        .iter()
        .filter_map(|(_, record)| record.as_ref());
    records
        .map(|record| format!("{}\n{record:?}\n", record.to_json()))
        .collect()
}

fn scanned(scene: &Scene<'_>, scan: &Scan, findings: &mut Findings) {
    let key = scan
        .secret
        .strip_prefix("SECRET(")
        .and_then(|rest| rest.strip_suffix(')'));
    for place in &scan.places {
        let known = PLACES.iter().find(|(name, _)| name == place);
        let checked = match (known, key, scan.expect.as_str()) {
            (Some((_, text)), Some(key), "absent everywhere") => {
                require(!text(scene).contains(&secret(key)), || {
                    "it is there".to_owned()
                })
            }
            _ => Err("nothing checks this".to_owned()),
        };
        findings.add(format!("{} is absent from {place}", scan.secret), checked);
    }
}

/// All keys begin alike, so one search finds each of them, whole or cut.
pub(super) fn no_secret(scene: &Scene<'_>) -> Checked {
    for (name, text) in PLACES {
        require(!text(scene).contains(CANARY), || {
            format!("one is in: {name}")
        })?;
    }
    Ok(())
}

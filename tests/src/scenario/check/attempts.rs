//! `attempts`: exactly these calls, in this order, with every fact that is given; on record as on
//! the wire.

use backstop_policy::AttemptRow;
use serde_json::Value;

use super::{Checked, Findings, Scene, require};
use crate::scenario::caller::Heard;
use crate::scenario::data::Attempt;

pub(super) fn check(scene: &Scene<'_>, findings: &mut Findings) {
    for (index, _) in scene.scenario.client.0.iter().enumerate() {
        let place = index + 1;
        let wanted: Vec<&Attempt> = scene
            .scenario
            .expect
            .attempts
            .iter()
            .filter(|attempt| attempt.request == place)
            .collect();
        let several = scene.played.at_place(place).count() > 1;
        let spoken_for = !several || wanted.iter().all(|attempt| attempt.per_request);
        let what = format!("attempts of request {place}");
        let checked = require(spoken_for, || "they are not `per_request`".to_owned())
            .and_then(|()| exactly(scene, place, &wanted));
        findings.add(what, checked);
    }
}

fn exactly(scene: &Scene<'_>, place: usize, wanted: &[&Attempt]) -> Checked {
    for (heard, record) in scene.played.at_place(place) {
        let record = record.as_ref().ok_or("there is no record")?;
        let rows = record.rows.iter().filter(|row| row.attempt.is_some());
        let rows: Vec<&AttemptRow> = rows.collect();
        require(rows.len() == wanted.len(), || {
            format!("{}: {} attempts", heard.name(), rows.len())
        })?;
        for (row, want) in rows.into_iter().zip(wanted) {
            fits(row, want, record.config_version)
                .map_err(|fault| format!("{}, attempt {}: {fault}", heard.name(), want.n))?;
        }
    }
    Ok(())
}

fn fits(row: &AttemptRow, want: &Attempt, config: u64) -> Checked {
    let is = |name: &str, found: &str, want: &str| {
        require(found == want, || format!("{name} is {found}, not {want}"))
    };
    require(row.attempt == Some(want.n), || {
        format!("its number is {:?}", row.attempt)
    })?;
    is("upstream", row.provider.as_str(), &want.upstream)?;
    let key = row.key.as_ref().map_or("none", |key| key.name());
    is("key", key, &want.key)?;
    let class = row.class.map_or("none", |class| class.name());
    is("class", class, want.class.as_deref().unwrap_or("none"))?;
    is("outcome", row.outcome.as_str(), &want.outcome)?;
    if let Some(phase) = &want.phase {
        is("phase", row.phase.as_str(), phase)?;
    }
    if let Some(status) = want.raw_status {
        require(row.status == Some(status), || {
            format!("its status is {:?}, not {status}", row.status)
        })?;
    }
    if let Some(status) = want.recorded_status {
        require(booked(row) == Some(status), || {
            format!("it is booked as {:?}, not {status}", booked(row))
        })?;
    }
    let code = row.code.as_deref().unwrap_or("none");
    if let Some(error) = &want.provider_error {
        is("provider error", code, error)?;
    }
    match &want.provider_code {
        None => {}
        Some(Value::String(word)) => is("provider code", code, word)?,
        Some(number) => is("provider code", code, &number.to_string())?,
    }
    if let Some(reason) = &want.fail_reason {
        is(
            "reason",
            row.fail_reason.as_deref().unwrap_or("none"),
            reason,
        )?;
    }
    if let Some(hint) = want.retry_after_ms {
        let found = row.retry_after.map(|hint| hint.as_millis());
        require(found == hint.map(u128::from), || {
            format!("its hint is {found:?}, not {hint:?}")
        })?;
    }
    if let Some(action) = &want.action {
        is("action", action_words(row), action)?;
    }
    if let Some(connection) = &want.connection {
        let found = match row.connection_reused {
            Some(true) => "reused",
            Some(false) => "fresh",
            None => "unknown",
        };
        is("connection", found, connection)?;
    }
    if let Some(version) = &want.config {
        is("configuration", &format!("v{config}"), version)?;
    }
    Ok(())
}

/// The status under which an attempt is booked. The ledger has words for it: whoever left before
/// the end is `cancelled`, which proxies write as 499.
fn booked(row: &AttemptRow) -> Option<u16> {
    let cancelled = row.class.is_some_and(|class| class.name() == "cancelled");
    if cancelled { Some(499) } else { row.status }
}

/// How an attempt came about, in the words of scenarios.
pub(super) fn action_words(row: &AttemptRow) -> &'static str {
    match row.action.as_str() {
        "fallback" => "same-contract fallback",
        other => other,
    }
}

/// The providers saw what the trail says, in its order: this provider, this key, this number.
pub(super) fn trail_is_the_wire(scene: &Scene<'_>, heard: &Heard) -> Checked {
    let rows = scene
        .played
        .requests
        .iter()
        .filter(|(other, _)| other.id == heard.id)
        .filter_map(|(_, record)| record.as_ref())
        .flat_map(|record| &record.rows)
        .filter_map(|row| {
            let key = row.key.as_ref().map(|key| key.name().to_owned());
            Some((row.attempt?.to_string(), row.provider.to_string(), key))
        });
    let rows: Vec<_> = rows.collect();
    let calls = scene.played.calls_of(heard).into_iter();
    let calls = calls.map(|(upstream, call)| {
        let number = call.header("x-backstop-attempt").unwrap_or("none");
        (number.to_owned(), upstream, call.key().map(str::to_owned))
    });
    let calls: Vec<_> = calls.collect();
    require(rows == calls, || {
        format!("the trail says {rows:?}, the providers saw {calls:?}")
    })
}

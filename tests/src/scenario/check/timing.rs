//! `timing`: how long things took, in milliseconds, both ends of a range included.

use std::time::Duration;

use backstop_ledger::JourneyRecord;
use backstop_policy::AttemptRow;
use serde_json::Value;
use tokio::time::Instant;

use super::{Checked, Findings, Scene, by_table, require};
use crate::scenario::caller::Heard;
use crate::scenario::phrase::Holes;

/// What a name measures; one number for each time it happened.
type Measure = fn(&Scene<'_>, &Holes<'_>) -> Result<Vec<u128>, String>;

const TABLE: [(&str, Measure); 10] = [
    ("gap_between_attempts_ms", |scene, _| {
        let gaps = records(scene, 1).into_iter().flat_map(gaps);
        Ok(gaps.collect())
    }),
    ("gap_<n>_ms", |scene, holes| {
        let n = number(holes)?;
        let gap = records(scene, 1)
            .into_iter()
            .filter_map(|record| gaps(record).get(n - 1).copied());
        Ok(gap.collect())
    }),
    ("attempt_<n>_starts_at_ms", |scene, holes| {
        let n = number(holes)?;
        let starts = records(scene, 1).into_iter().filter_map(|record| {
            let row = attempts(record).nth(n - 1)?;
            Some(row.started.since(record.started).as_millis())
        });
        Ok(starts.collect())
    }),
    ("total_ms", |scene, _| Ok(totals(scene, 1))),
    ("each_request_total_ms", |scene, _| {
        let places = 1..=scene.scenario.client.0.len();
        Ok(places.flat_map(|place| totals(scene, place)).collect())
    }),
    ("request_<n>_total_ms", |scene, holes| {
        Ok(totals(scene, number(holes)?))
    }),
    ("error_event_after_last_text_ms", |scene, _| {
        let each = heard(scene).map(|heard| {
            let error = error_at(heard).ok_or("there is no error event")?;
            let text = heard
                .events
                .iter()
                .rev()
                .find(|(_, e)| !e.text().is_empty());
            let (text, _) = text.ok_or("there is no text")?;
            Ok(error.saturating_duration_since(*text).as_millis())
        });
        each.collect()
    }),
    ("upstream_socket_closed_within_ms", |scene, _| {
        after(scene, error_at)
    }),
    ("upstream_sees_close_after_cancel_ms", |scene, _| {
        after(scene, Heard::left_at)
    }),
    ("request_released_after_cancel_ms", |scene, _| {
        let left = scene.played.requests.iter().filter_map(|(heard, record)| {
            let (left, record) = (heard.left_at()?, record.as_ref()?);
            let over = scene.played.stage.start + (record.started + record.total).elapsed();
            Some(over.saturating_duration_since(left).as_millis())
        });
        Ok(left.collect())
    }),
];

pub(super) fn check(scene: &Scene<'_>, findings: &mut Findings) {
    for (name, range) in &scene.scenario.expect.timing {
        let checked = by_table(&TABLE, name)
            .and_then(|(measure, holes)| measure(scene, &holes))
            .and_then(|found| within(&found, range));
        findings.add(format!("timing {name} in {range}"), checked);
    }
}

fn within(found: &[u128], range: &Value) -> Checked {
    // A single number is the most it may be.
    let (least, most) = match range {
        Value::Array(ends) if ends.len() == 2 => (ends[0].as_u64(), ends[1].as_u64()),
        most => (Some(0), most.as_u64()),
    };
    let (Some(least), Some(most)) = (least, most) else {
        return Err("it is no range".to_owned());
    };
    require(!found.is_empty(), || "it did not happen".to_owned())?;
    let inside = |ms: &u128| (u128::from(least)..=u128::from(most)).contains(ms);
    require(found.iter().all(inside), || format!("it took {found:?} ms"))
}

fn number(holes: &Holes<'_>) -> Result<usize, String> {
    let n = holes.number("n").and_then(|n| usize::try_from(n).ok());
    n.filter(|n| *n > 0)
        .ok_or_else(|| "it names no number".to_owned())
}

fn records<'p>(scene: &'p Scene<'_>, place: usize) -> Vec<&'p JourneyRecord> {
    let at = scene.played.at_place(place);
    at.filter_map(|(_, record)| record.as_ref()).collect()
}

fn heard<'p>(scene: &'p Scene<'_>) -> impl Iterator<Item = &'p Heard> {
    scene.played.requests.iter().map(|(heard, _)| heard)
}

fn attempts(record: &JourneyRecord) -> impl Iterator<Item = &AttemptRow> {
    record.rows.iter().filter(|row| row.attempt.is_some())
}

/// From the end of each attempt to the start of the next.
pub(super) fn gaps(record: &JourneyRecord) -> Vec<u128> {
    let rows: Vec<_> = attempts(record).collect();
    let pairs = rows.windows(2);
    pairs
        .map(|pair| {
            pair[1]
                .started
                .since(pair[0].started + pair[0].total)
                .as_millis()
        })
        .collect()
}

/// As the callers saw it.
pub(super) fn totals(scene: &Scene<'_>, place: usize) -> Vec<u128> {
    let at = scene.played.at_place(place);
    at.map(|(heard, _)| (heard.ended - heard.sent).as_millis())
        .collect()
}

pub(super) fn error_at(heard: &Heard) -> Option<Instant> {
    let error = heard.events.iter().find(|(_, event)| event.is_error());
    error.map(|(at, _)| *at)
}

/// How long after a moment of each request its last provider saw the connection closed.
fn after(
    scene: &Scene<'_>,
    moment: impl Fn(&Heard) -> Option<Instant>,
) -> Result<Vec<u128>, String> {
    let mut all = Vec::new();
    for heard in heard(scene) {
        let Some(moment) = moment(heard) else {
            continue;
        };
        let calls = scene.played.calls_of(heard);
        let (_, last) = calls.last().ok_or("no provider was called")?;
        let close = last.peer_close().ok_or("the connection is still open")?;
        let late: Duration = close.at.saturating_duration_since(moment);
        all.push(late.as_millis());
    }
    Ok(all)
}

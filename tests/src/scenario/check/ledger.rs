//! `ledger`: what is on record. Names and words are scenarios' own; this table says what they mean
//! in the gateway's.

use backstop_ledger::JourneyRecord;
use backstop_policy::{AttemptRow, Outcome, Phase};
use serde_json::Value;

use super::{Checked, Findings, Scene, attempts, by_table, equal, require, wire};
use crate::scenario::caller::Heard;
use crate::scenario::phrase::Holes;

type OnRecord = fn(&Scene<'_>, &Holes<'_>, &Value) -> Checked;

const TABLE: [(&str, OnRecord); 21] = [
    ("terminal_reason", |scene, _, want| {
        each(scene, 1, |_, record| ended(record, want))
    }),
    ("request_<n>_terminal_reason", |scene, holes, want| {
        each(scene, place(holes)?, |_, record| ended(record, want))
    }),
    ("attempts", |scene, _, want| {
        each(scene, 1, |_, record| {
            equal(&rows(record).len().into(), want)
        })
    }),
    ("request_<n>_attempts", |scene, holes, want| {
        each(scene, place(holes)?, |_, record| {
            equal(&rows(record).len().into(), want)
        })
    }),
    ("action_between", |scene, _, want| {
        each(scene, 1, |_, record| {
            let rows = rows(record);
            let row = rows.get(1).ok_or("there is no second attempt")?;
            let words = attempts::action_words(row).replace(['-', ' '], "_");
            equal(&words.into(), want)
        })
    }),
    ("downstream_output_started", |scene, _, want| {
        each(scene, 1, |_, record| {
            let rows = rows(record);
            let started = rows.iter().any(|row| row.phase == Phase::AfterOutput);
            equal(&started.into(), want)
        })
    }),
    ("usage", |scene, _, want| {
        each(scene, 1, |_, record| match want {
            Value::Object(_) => {
                let rows = rows(record);
                usage(rows.last().ok_or("there is no attempt")?, want)
            }
            words => usage_unknown(record, words),
        })
    }),
    ("attempt_<n>_usage", |scene, holes, want| {
        let n = place(holes)?;
        each(scene, 1, |_, record| {
            let rows = rows(record);
            usage(rows.get(n - 1).ok_or("there is no such attempt")?, want)
        })
    }),
    ("attempt_<n>_retry_after_ms", |scene, holes, want| {
        let n = place(holes)?;
        each(scene, 1, |_, record| {
            let rows = rows(record);
            equal(
                &hint(rows.get(n - 1).ok_or("there is no such attempt")?),
                want,
            )
        })
    }),
    ("retry_after_ms", |scene, _, want| {
        let words = want
            .as_str()
            .and_then(|words| words.strip_prefix("clamped to "));
        let want: Value = words.and_then(|n| n.parse::<u64>().ok()).into();
        let mut hints = scene.played.rows().map(hint).filter(|hint| !hint.is_null());
        hints.try_for_each(|hint| equal(&hint, &want))
    }),
    ("retry_budget_spent", |scene, _, want| {
        let rows = scene.played.rows();
        let waited = rows.filter(|row| !row.waited.is_zero()).count();
        let channels = scene.played.end.channels.iter();
        let spent: u64 = channels.map(|view| view.counts.retries).sum();
        equal(&spent.into(), want).and_then(|()| equal(&waited.into(), want))
    }),
    ("end_to_end_id", |scene, _, want| {
        each(scene, 1, |heard, record| {
            equal(&record.request_id.as_str().into(), want)?;
            equal(&heard.header("x-request-id").into(), want)
        })?;
        let ids = scene.played.calls().into_iter();
        let mut ids = ids.map(|(_, call)| call.header("x-request-id").unwrap_or("").to_owned());
        ids.try_for_each(|id| equal(&id.into(), want))
    }),
    ("recorded_status", |scene, _, want| {
        // The ledger's word for the 499 of proxies is `cancelled`.
        each(scene, 1, |_, record| {
            let booked = match (record.terminal, record.status) {
                ("cancelled", None) => Some(499),
                (_, status) => status,
            };
            equal(&booked.into(), want)
        })
    }),
    ("request_<n>_skips", |scene, holes, want| {
        each(scene, place(holes)?, |_, record| {
            let skipped = record
                .rows
                .iter()
                .filter(|row| row.outcome == Outcome::Skipped);
            let skipped = skipped.map(|row| {
                let why = match row.fail_reason.as_deref() {
                    Some("circuit_open") => "breaker open",
                    Some(other) => other,
                    None => "",
                };
                Value::from(format!("{}: {why}", row.provider))
            });
            equal(&skipped.collect(), want)
        })
    }),
    ("request_<n>", |scene, holes, want| {
        let want = want.as_object().ok_or("it is no object")?;
        each(scene, place(holes)?, |_, record| {
            let mut facts = want.iter();
            facts.try_for_each(|(name, want)| fact(scene, record, name, want))
        })
    }),
    ("holds", |scene, _, want| {
        let prompts = scene.played.requests.iter().map(|(heard, _)| &heard.prompt);
        let text = wire::ledger_text(scene);
        for prompt in prompts {
            // The first words are enough: what is kept cut short is kept all the same.
            let start: String = prompt.chars().take(16).collect();
            require(!text.contains(&start), || {
                "a prompt is in the ledger".to_owned()
            })?;
        }
        require(want == "no prompt bytes", || {
            "it is not understood".to_owned()
        })
    }),
    ("key_name", |scene, _, want| {
        each(scene, 1, |_, record| {
            let rows = rows(record);
            let mut keys = rows
                .iter()
                .map(|row| row.key.as_ref().map(|key| key.name()));
            keys.try_for_each(|key| equal(&key.into(), want))
        })
    }),
    ("config_version", |scene, _, want| {
        let records = scene
            .played
            .requests
            .iter()
            .filter_map(|(_, record)| record.as_ref());
        let versions = records.map(|record| Value::from(format!("v{}", record.config_version)));
        equal(&versions.collect(), want)
    }),
    ("ttft_ms", |scene, _, want| {
        each(scene, 1, |_, record| {
            let rows = rows(record);
            let first = rows.iter().find_map(|row| Some((row, row.first_output?)));
            let (row, first) = first.ok_or("there was no output")?;
            let ms = (row.started + first).since(record.started).as_millis();
            let end = |at: usize| want[at].as_u64().map_or(0, u128::from);
            require((end(0)..=end(1)).contains(&ms), || {
                format!("it took {ms} ms")
            })
        })
    }),
    ("delivered_events", |scene, _, want| {
        each(scene, 1, |_, record| delivered(record, want))
    }),
    ("delivered", |_, _, _| {
        Err("the ledger keeps how many events were delivered, not what was in them".to_owned())
    }),
];

pub(super) fn check(scene: &Scene<'_>, findings: &mut Findings) {
    for (name, want) in &scene.scenario.expect.ledger {
        let checked = by_table(&TABLE, name).and_then(|(check, holes)| check(scene, &holes, want));
        findings.add(format!("ledger {name} = {want}"), checked);
    }
}

fn each(
    scene: &Scene<'_>,
    place: usize,
    check: impl Fn(&Heard, &JourneyRecord) -> Checked,
) -> Checked {
    for (heard, record) in scene.played.at_place(place) {
        let record = record.as_ref().ok_or("there is no record")?;
        check(heard, record).map_err(|fault| format!("{}: {fault}", heard.name()))?;
    }
    Ok(())
}

fn place(holes: &Holes<'_>) -> Result<usize, String> {
    let n = holes.number("n").and_then(|n| usize::try_from(n).ok());
    n.filter(|n| *n > 0)
        .ok_or_else(|| "it names no number".to_owned())
}

pub(super) fn rows(record: &JourneyRecord) -> Vec<&AttemptRow> {
    let rows = record.rows.iter().filter(|row| row.attempt.is_some());
    rows.collect()
}

fn ended(record: &JourneyRecord, want: &Value) -> Checked {
    let want = match want.as_str() {
        Some("exhausted by deadline") => &Value::from("deadline"),
        _ => want,
    };
    equal(&record.terminal.into(), want)
}

fn hint(row: &AttemptRow) -> Value {
    let hint = row
        .retry_after
        .and_then(|hint| u64::try_from(hint.as_millis()).ok());
    hint.into()
}

/// Absent is not zero. What is known besides is how much was delivered.
fn usage_unknown(record: &JourneyRecord, want: &Value) -> Checked {
    let words = want.as_str().unwrap_or_default();
    let known = rows(record).iter().any(|row| row.usage.is_some());
    require(!known, || "some usage is on record".to_owned())?;
    match words {
        "unknown, not zero" | "unknown" => Ok(()),
        _ => {
            let events = words.strip_prefix("unknown, with delivered-event count >= ");
            let least = events.and_then(|n| n.parse::<u64>().ok());
            delivered(record, &least.ok_or("it is not understood")?.into())
        }
    }
}

fn delivered(record: &JourneyRecord, least: &Value) -> Checked {
    let found = record.delivered_events;
    require(Some(found) >= least.as_u64(), || format!("it is {found}"))
}

fn usage(row: &AttemptRow, want: &Value) -> Checked {
    let usage = row.usage.ok_or("it is unknown")?;
    for (name, want) in want.as_object().into_iter().flatten() {
        let found = match name.as_str() {
            "input_tokens" | "prompt_tokens" => usage.input,
            "output_tokens" | "completion_tokens" => usage.output,
            _ => return Err(format!("{name} is not understood")),
        };
        equal(&found.map(|tokens| tokens.0).into(), want)?;
    }
    Ok(())
}

/// One fact about a whole request.
fn fact(scene: &Scene<'_>, record: &JourneyRecord, name: &str, want: &Value) -> Checked {
    let served = record.served.as_ref();
    match name {
        // The ledger keeps the name the caller used; scenarios speak of the model behind it.
        "requested_model" => {
            let model = scene
                .scenario
                .upstreams
                .first()
                .map(|first| first.model.as_str());
            let alias = record.requested.starts_with("chat-");
            require(alias, || {
                format!("the caller asked for {}", record.requested)
            })?;
            equal(&model.into(), want)
        }
        "served_model" => equal(&served.map(|served| served.model.as_str()).into(), want),
        "action" => equal(&served.map(|served| served.action.as_str()).into(), want),
        _ => Err(format!("nothing checks {name}")),
    }
}

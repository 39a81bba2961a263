//! Calls that must not be made.

use backstop_policy::AttemptRow;

use super::super::{Checked, Scene, ledger, require};
use super::Row;
use crate::scenario::caller::Heard;
use crate::scenario::phrase::Holes;

pub(super) const TABLE: &[Row] = &[
    (
        &[
            "a call to <u> in request <n>",
            "<u> answering request <n>",
            "<u> chosen for request <n>",
        ],
        |scene, holes| {
            let place = holes.number("n").unwrap_or(0);
            let mut heard = heard(scene).filter(|heard| heard.place as u64 == place);
            heard.try_for_each(|heard| {
                let mut calls = scene.played.calls_of(heard).into_iter();
                none(calls.any(|(upstream, _)| upstream == holes.text("u")))
            })
        },
    ),
    (
        &[
            "a call to <u>",
            "any call to <u>",
            "a call to <u> with *",
            "a silent answer from <u>",
            "<u> answering what *",
        ],
        |scene, holes| {
            known(scene, holes)?;
            at_most(0, scene.played.calls_to(holes.text("u")).len())
        },
    ),
    (
        &["a second call to <u>", "a same-route retry of <u>"],
        |scene, holes| {
            known(scene, holes)?;
            at_most(1, scene.played.calls_to(holes.text("u")).len())
        },
    ),
    (
        &[
            "more than one call to a provider",
            "two more calls that cannot succeed",
        ],
        |scene, _| {
            let mut sims = scene.played.stage.sims.iter();
            sims.try_for_each(|(_, sim)| at_most(1, sim.attempts().len()))
        },
    ),
    (&["a <n> call", "a <n> upstream call, *"], |scene, holes| {
        let n = holes.number("n").and_then(|n| usize::try_from(n).ok());
        let n = n.filter(|n| *n > 0).ok_or("it names no number")?;
        at_most(n - 1, scene.played.calls().len())
    }),
    (&["a second attempt anywhere"], |scene, _| {
        at_most(1, scene.played.calls().len())
    }),
    (
        &[
            "a retry after a <class>",
            "a retry of a caller fault",
            "a same-route retry after a timeout",
        ],
        |scene, holes| {
            let class = match holes.text("class") {
                "" => ["caller_fault", "timeout"].as_slice(),
                class => &[class],
            };
            pairs(scene, |before, after| {
                let failed = before
                    .class
                    .is_some_and(|found| class.contains(&found.name()));
                none(failed && after.provider == before.provider)
            })
        },
    ),
    (
        &["a fallback", "a fallback after an expired caller deadline"],
        |scene, _| {
            none(
                scene
                    .played
                    .rows()
                    .any(|row| row.action.as_str() == "fallback"),
            )
        },
    ),
    (
        &[
            "a call after the caller left",
            "a fallback or retry for a caller who left",
            "a new attempt after the cancel",
        ],
        |scene, _| {
            let mut left = heard(scene).filter_map(|heard| Some((heard, heard.left_at()?)));
            left.try_for_each(|(heard, at)| {
                let mut calls = scene.played.calls_of(heard).into_iter();
                none(calls.any(|(_, call)| call.arrived() > at))
            })
        },
    ),
    (
        &[
            "a key asked twice in one request",
            "a dead key asked twice in this request",
        ],
        |scene, _| {
            let mut records = scene.played.requests.iter().filter_map(|(_, r)| r.as_ref());
            records.try_for_each(|record| {
                let rows = ledger::rows(record);
                let keys: Vec<_> = rows.iter().map(|row| &row.key).collect();
                let twice = keys
                    .iter()
                    .enumerate()
                    .any(|(n, key)| keys[..n].contains(key));
                none(twice)
            })
        },
    ),
    (
        &[
            "an end of the walk while a key lives",
            "stopping after the first key because retries are 0",
        ],
        |scene, _| {
            let answered = heard(scene).all(|heard| heard.status == Some(200));
            require(answered, || "the walk ended without an answer".to_owned())
        },
    ),
    (
        &[
            "an attempt without the whole body",
            "an empty or cut body on attempt 2 or 3",
        ],
        |scene, _| whole_bodies(scene),
    ),
    (
        &[
            "a fallback left out because the body was sent before",
            "a fallback silently disabled because the body was already consumed",
        ],
        |scene, _| {
            let fallback = scene
                .played
                .rows()
                .any(|row| row.action.as_str() == "fallback");
            require(fallback, || "no fallback was tried".to_owned())
        },
    ),
    (
        &[
            "words of a half answer sent to a provider",
            "a continuation prompt or assistant prefill sent anywhere",
        ],
        |scene, _| {
            let calls = scene.played.calls();
            let mut bodies = calls.iter().map(|(_, call)| call.json());
            bodies.try_for_each(|body| {
                let messages = body["messages"].as_array().cloned().unwrap_or_default();
                none(
                    messages
                        .iter()
                        .any(|message| message["role"] == "assistant"),
                )
            })
        },
    ),
    (
        &[
            "the repeat on a connection that was kept",
            "the second try on another pooled dead connection",
        ],
        |scene, _| {
            pairs(scene, |before, after| {
                none(before.class.is_some() && after.connection_reused != Some(false))
            })
        },
    ),
    (&["<u> refused for ever after *"], |scene, holes| {
        let last = scene.played.requests.last();
        let record = last.and_then(|(_, record)| record.as_ref());
        let served = record.and_then(|record| record.served.as_ref());
        let wanted = holes.text("u");
        require(
            served.is_some_and(|served| served.provider == wanted),
            || format!("the last request was served by {served:?}"),
        )
    }),
    (
        &[
            "a request that nobody is asked",
            "request <n> answered by the gateway itself",
            "a locally made '<words..>' answer",
            "a <n> second blackout for the only key",
        ],
        |scene, _| {
            let asked = heard(scene).all(|heard| !scene.played.calls_of(heard).is_empty());
            require(asked, || "no provider was asked".to_owned())
        },
    ),
    (&["a new request id per attempt"], |scene, _| {
        let ours: Vec<_> = heard(scene).map(|heard| heard.id.as_str()).collect();
        let calls = scene.played.calls();
        let mut ids = calls.iter().map(|(_, call)| call.header("x-request-id"));
        none(ids.any(|id| id.is_none_or(|id| !ours.contains(&id))))
    }),
];

fn heard<'p>(scene: &'p Scene<'_>) -> impl Iterator<Item = &'p Heard> {
    scene.played.requests.iter().map(|(heard, _)| heard)
}

fn at_most(most: usize, calls: usize) -> Checked {
    require(calls <= most, || format!("{calls} calls were made"))
}

fn none(happened: bool) -> Checked {
    require(!happened, || "it happened".to_owned())
}

/// A provider of that name must be there, or the entry says nothing.
fn known(scene: &Scene<'_>, holes: &Holes<'_>) -> Checked {
    let found = scene.played.stage.sim(holes.text("u")).is_some();
    require(found, || "no upstream has this name".to_owned())
}

/// Each attempt with the one that follows it in its request.
fn pairs(scene: &Scene<'_>, check: impl Fn(&AttemptRow, &AttemptRow) -> Checked) -> Checked {
    for (_, record) in &scene.played.requests {
        let rows = record.as_ref().map(ledger::rows).unwrap_or_default();
        for pair in rows.windows(2) {
            check(pair[0], pair[1])?;
        }
    }
    Ok(())
}

/// Every provider received the whole of what the caller said.
fn whole_bodies(scene: &Scene<'_>) -> Checked {
    for heard in heard(scene) {
        for (upstream, call) in scene.played.calls_of(heard) {
            let body = call.json();
            let last = body["messages"]
                .as_array()
                .and_then(|all| all.last().cloned());
            let said = last.as_ref().and_then(|last| last["content"].as_str());
            require(said == Some(heard.prompt.as_str()), || {
                format!("{upstream} got {} bytes", call.body().len())
            })?;
        }
    }
    Ok(())
}

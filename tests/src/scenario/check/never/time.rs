//! Waits that must not be waited, and sockets that must not stay open.

use std::time::Duration;

use backstop_breaker::State as Breaker;
use backstop_ledger::JourneyRecord;

use super::super::{Checked, Scene, ledger, require, state, timing};
use super::Row;
use crate::scenario::caller::Heard;

/// How soon a connection to a provider must be closed after its request is over. The promise for
/// hang-ups is 100 ms at the 99th percentile; sockets in real time may take a little longer.
const SOON: Duration = Duration::from_millis(250);

pub(super) const TABLE: &[Row] = &[
    (
        &[
            "any wait",
            "any backoff",
            "any backoff sleep",
            "a backoff sleep before the fallback",
            "a <n> second sleep",
            "sleeping towards the hint",
            "falling back to sub-second retries because the hint is too long",
        ],
        |scene, _| {
            let waited = scene.played.rows().find(|row| !row.waited.is_zero());
            require(waited.is_none(), || "an attempt was waited for".to_owned())?;
            let mut gaps = records(scene).flat_map(timing::gaps);
            none(gaps.any(|ms| ms > 100))
        },
    ),
    (
        &[
            "a second call within <n> s",
            "a second call before <n> s have passed",
        ],
        |scene, holes| {
            let least = holes.number("n").ok_or("it names no time")?;
            calls_apart(scene, u128::from(least) * 1000)
        },
    ),
    (
        &[
            "a wait by the formula alone",
            "the formula's <n> ms used alone",
        ],
        // Jitter makes the first wait by the formula a fifth longer at most.
        |scene, _| {
            let initial = scene.scenario.gateway.backoff_initial_ms.unwrap_or(500);
            calls_apart(scene, u128::from(initial) * 6 / 5 + 1)
        },
    ),
    (
        &[
            "an answer only at the deadline",
            "waiting for the request deadline",
        ],
        |scene, _| {
            let deadline = scene.scenario.gateway.timeouts.request_deadline_ms;
            let deadline = deadline.ok_or("the scenario sets no deadline")?;
            ends_within(scene, u128::from(deadline) - 1)
        },
    ),
    (&["an answer after <n> ms"], |scene, holes| {
        ends_within(scene, u128::from(holes.number("n").unwrap_or(0)))
    }),
    (
        &[
            "a full clock for every attempt",
            "each attempt granted a fresh full timeout",
        ],
        |scene, _| {
            let clock = scene.scenario.gateway.timeouts.headers_ms;
            let clock = Duration::from_millis(clock.ok_or("the scenario sets no such clock")?);
            let mut later =
                records(scene).flat_map(|record| ledger::rows(record).into_iter().skip(1));
            none(later.any(|row| row.total >= clock))
        },
    ),
    (
        &[
            "a first-output clock that starts over",
            "heartbeat bytes or empty deltas resetting the first-token timer",
        ],
        |scene, _| {
            let clock = scene.scenario.gateway.timeouts.ttft_ms;
            let clock = Duration::from_millis(clock.ok_or("the scenario sets no such clock")?);
            let mut timed_out = scene
                .played
                .rows()
                .filter(|row| row.fail_reason.as_deref() == Some("ttft_timeout"));
            let first = timed_out.next().ok_or("it never ran out")?;
            none(first.total > clock + Duration::from_millis(50))
        },
    ),
    (
        &[
            "a comment taken for output",
            "a comment counted as output (commit) or as first token",
        ],
        |scene, _| {
            let mut rows = scene.played.rows();
            let row = rows.next().ok_or("there is no attempt")?;
            let first = row.first_output.ok_or("there is no output")?;
            // The script's first output comes after all its comments.
            let comments = scene.scenario.upstreams[0].script[0]["sse"].as_array();
            let comments = comments.into_iter().flatten();
            let comments = comments.take_while(|item| item.get("data").is_none());
            let until: u64 = comments.filter_map(|item| item["delay_ms"].as_u64()).sum();
            none(first < Duration::from_millis(until))
        },
    ),
    (
        &[
            "a connection to a provider left open",
            "<u>'s socket left open",
            "an upstream socket still open after the error event",
            "sockets left open to *",
            "the dead socket kept (CLOSE-WAIT)",
        ],
        |scene, _| sockets_close(scene),
    ),
    (
        &[
            "a call left running",
            "upstream calls left running after <n> ms",
        ],
        |scene, _| sockets_close(scene),
    ),
    (
        &[
            "a provider that works on at <n> ms",
            "the upstream still generating at <n> ms",
        ],
        |scene, holes| {
            let ms = u128::from(holes.number("n").ok_or("it names no time")?);
            let left = scene.played.requests.iter().map(|(heard, _)| heard);
            let mut left = left.filter(|heard| heard.left_at().is_some());
            left.try_for_each(|heard| {
                let mut calls = scene.played.calls_of(heard).into_iter();
                calls.try_for_each(|(_, call)| {
                    let ended = call.progress().ended.ok_or("it never ended")?;
                    let ended = scene.played.millis(ended);
                    require(ended <= ms, || format!("it ended at {ended} ms"))
                })
            })
        },
    ),
    (
        &[
            "a wait that outlives its caller",
            "the sleep running to its end",
        ],
        |scene, _| {
            for (heard, record) in &scene.played.requests {
                let (Some(left), Some(record)) = (heard.left_at(), record) else {
                    continue;
                };
                let over = scene.played.stage.start + (record.started + record.total).elapsed();
                let late = over.saturating_duration_since(left);
                require(late < SOON, || format!("{} ms", late.as_millis()))?;
            }
            Ok(())
        },
    ),
    (
        &[
            "a probe still out at <n> ms",
            "a probe slot still held at <n> ms",
        ],
        |scene, holes| {
            let glance = state::glance_at(scene, holes, "n")?;
            let probing = |view: &backstop_state::ChannelView| {
                matches!(view.breaker, Breaker::HalfOpen { probing: true })
            };
            none(glance.channels.iter().any(probing))
        },
    ),
    (
        &[
            "a call to <u> while its circuit is open",
            "waiting on <u> while the breaker is open",
        ],
        |scene, holes| {
            let upstream = holes.text("u");
            let calls = scene.played.calls_to(upstream);
            let looks = scene.played.glances.windows(2);
            // Open at both ends of a look is open in between: it opens for longer than a look.
            let mut open = looks.filter(|pair| {
                pair.iter()
                    .all(|glance| state::breaker(glance, upstream) == "open")
            });
            let start = scene.played.stage.start;
            none(open.any(|pair| {
                let (from, to) = (start + pair[0].at.elapsed(), start + pair[1].at.elapsed());
                calls
                    .iter()
                    .any(|call| (from..to).contains(&call.arrived()))
            }))
        },
    ),
    (
        &[
            "an open circuit whose time is past",
            "an open breaker shown with a reset time in the past",
        ],
        |scene, _| {
            let mut glances = scene.played.glances.iter();
            none(glances.any(|glance| {
                let past = |view: &backstop_state::ChannelView| match view.breaker {
                    Breaker::Open { until } => until < glance.at,
                    _ => false,
                };
                glance.channels.iter().any(past)
            }))
        },
    ),
];

fn records<'p>(scene: &'p Scene<'_>) -> impl Iterator<Item = &'p JourneyRecord> {
    scene
        .played
        .requests
        .iter()
        .filter_map(|(_, record)| record.as_ref())
}

fn none(happened: bool) -> Checked {
    require(!happened, || "it happened".to_owned())
}

/// Each request was over, for its caller, within so long.
fn ends_within(scene: &Scene<'_>, most: u128) -> Checked {
    let places = 1..=scene.scenario.client.0.len();
    let mut totals = places.flat_map(|place| timing::totals(scene, place));
    totals.try_for_each(|ms| require(ms <= most, || format!("it took {ms} ms")))
}

/// The calls of each request came at least so many milliseconds after one another.
fn calls_apart(scene: &Scene<'_>, least: u128) -> Checked {
    for (heard, _) in &scene.played.requests {
        let calls = scene.played.calls_of(heard);
        let times: Vec<u128> = calls
            .iter()
            .map(|(_, call)| scene.played.millis(call.arrived()))
            .collect();
        let apart = times.windows(2).all(|pair| pair[1] - pair[0] >= least);
        require(apart, || format!("calls came at {times:?} ms"))?;
    }
    Ok(())
}

/// Every connection that did not end by its provider's own doing was closed by the gateway, soon after
/// the attempt was over.
fn sockets_close(scene: &Scene<'_>) -> Checked {
    for (heard, record) in &scene.played.requests {
        let Some(record) = record else { continue };
        for (row, (upstream, call)) in ledger::rows(record)
            .iter()
            .zip(scene.played.calls_of(heard))
        {
            let progress = call.progress();
            let own_end = progress.ending.is_some()
                && progress.ending != Some(backstop_faultsim::Ending::PeerClosed);
            if own_end {
                continue;
            }
            let close = call.peer_close().ok_or_else(|| {
                format!(
                    "{}: the connection to {upstream} is open",
                    Heard::name(heard)
                )
            })?;
            let over = scene.played.stage.start + (row.started + row.total).elapsed();
            let late = close.at.saturating_duration_since(over);
            require(late < SOON, || {
                format!("{upstream}: {} ms late", late.as_millis())
            })?;
        }
    }
    Ok(())
}

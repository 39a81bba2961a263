//! What breakers, keys, ledger, metrics and logs must not say.

use backstop_ledger::JourneyRecord;

use super::super::{Checked, Scene, equal, require, state, wire};
use super::Row;
use crate::scenario::facts;
use crate::scenario::metrics::growth;
use crate::scenario::settings::{host, secret};

pub(super) const TABLE: &[Row] = &[
    (
        &["another key", "the key being rotated or cooled"],
        |scene, _| {
            let mut keys: Vec<_> = scene.played.rows().map(|row| &row.key).collect();
            keys.dedup();
            require(keys.len() <= 1, || format!("{keys:?} were asked"))?;
            nothing_held(scene)
        },
    ),
    (
        &["key <k> held", "key <k> cooled", "key <k> cooled down"],
        |scene, holes| {
            let mut keys = scene.scenario.upstreams.iter().flat_map(|u| &u.keys);
            require(keys.any(|key| key == holes.text("k")), || {
                "no such key".to_owned()
            })?;
            let mut glances = scene.played.glances.iter().chain([&scene.played.end]);
            none(glances.any(|glance| glance.held.iter().any(|key| key == holes.text("k"))))
        },
    ),
    (
        &["a key held for its account", "the key marked out of credit"],
        |scene, _| {
            let mut rows = scene.played.rows();
            none(rows.any(|row| row.class.is_some_and(|class| class.name() == "quota")))
        },
    ),
    (
        &[
            "an open circuit at <u>",
            "breaker of <u> leaving closed",
            "<u>'s breaker opened by *",
        ],
        |scene, holes| stays_closed(scene, holes.text("u")),
    ),
    (
        &[
            "an open circuit at <u>, or a key held",
            "<u> cooled or opened",
            "<u> cooled down or opened, so *",
        ],
        |scene, holes| {
            stays_closed(scene, holes.text("u"))?;
            nothing_held(scene)
        },
    ),
    (
        &[
            "an open circuit anywhere, or a key held",
            "breaker or cooldown moved by cancellations",
            "key <k> or <u> penalised",
        ],
        |scene, _| {
            let mut sims = scene.played.stage.sims.iter();
            sims.try_for_each(|(name, _)| stays_closed(scene, name))?;
            nothing_held(scene)
        },
    ),
    (
        &[
            "a success told to the breaker of <u>",
            "<u>'s breaker counting a success",
        ],
        |scene, holes| {
            let name = format!("breaker_failures{{upstream={}}}", holes.text("u"));
            grew(scene, &name, 1.0)
        },
    ),
    (
        &[
            "a success told to the breaker for attempt 1",
            "the breaker counting attempt <n> as a success",
        ],
        |scene, _| {
            // A rate limit is told to the ratio; a success would be on the attempt's row.
            let row = scene.played.rows().next().ok_or("there is no attempt")?;
            require(row.outcome.as_str() == "failed", || {
                "it is a success".to_owned()
            })?;
            let held = scene
                .played
                .glances
                .iter()
                .any(|glance| !glance.held.is_empty());
            require(held, || "its key was not held".to_owned())
        },
    ),
    (
        &[
            "a success in the metrics",
            "outcome=success",
            "the request counted as a success because the status line said 200",
        ],
        |scene, _| {
            grew(scene, "requests{outcome=success}", 0.0)?;
            let success = records(scene).any(|record| record.terminal == "success");
            none(success)
        },
    ),
    (&["a class <c> for attempt <n>"], |scene, holes| {
        let n = holes.number("n").ok_or("it names no attempt")?;
        let mut rows = scene.played.rows();
        none(rows.any(|row| {
            let class = row.class.map(|class| class.name());
            row.attempt.map(u64::from) == Some(n) && class == Some(holes.text("c"))
        }))
    }),
    (
        &[
            "class <c> because *",
            "the <n> treated as a caller fault",
            "a parse error hiding the <n>",
            "cancellation booked as *",
        ],
        |scene, holes| {
            // Where it names no class, one of these must be expected or not be there.
            let refused = match holes.text("c") {
                "" => ["caller_fault", "malformed", "unknown", "transient"].as_slice(),
                class => &[class],
            };
            let expected = &scene.scenario.expect.attempts;
            let mut rows = scene.played.rows();
            none(rows.any(|row| {
                let class = row.class.map_or("", |class| class.name());
                let mut wanted = expected.iter().filter_map(|want| want.class.as_deref());
                refused.contains(&class) && !wanted.any(|wanted| wanted == class)
            }))
        },
    ),
    (
        &[
            "the answer of attempt 1 served to anyone",
            "the error body stored in a response cache",
        ],
        |scene, _| {
            // There is no cache: what was answered came from a provider, for this request.
            let served = scene.played.requests.iter().all(|(heard, _)| {
                let calls = scene.played.calls_of(heard);
                !calls.is_empty() && heard.json().get("error").is_none()
            });
            require(served, || "an answer came from nowhere".to_owned())
        },
    ),
    (
        &[
            "the tokens of attempt 1 forgotten",
            "attempt <n>'s prompt tokens dropped from the ledger",
        ],
        |scene, _| {
            let row = scene.played.rows().next().ok_or("there is no attempt")?;
            let input = row.usage.and_then(|usage| usage.input);
            require(input.is_some(), || "its usage is unknown".to_owned())
        },
    ),
    (
        &[
            "an attempt without a row",
            "attempts missing from the ledger",
        ],
        |scene, _| {
            let rows = scene.played.rows().count();
            let calls = scene.played.calls().len();
            require(rows == calls, || format!("{rows} rows of {calls} calls"))
        },
    ),
    (
        &[
            "usage told as zero",
            "usage recorded as 0 tokens and no cost",
        ],
        |scene, _| {
            let zero = |tokens: Option<backstop_units::Tokens>| tokens.is_some_and(|n| n.0 == 0);
            let mut usage = scene.played.rows().filter_map(|row| row.usage);
            none(usage.any(|usage| zero(usage.input) || zero(usage.output)))
        },
    ),
    (
        &[
            "a model without a name on record",
            "the empty id or model of the annotation overwriting the real ones in the ledger",
        ],
        |scene, _| {
            let mut records = records(scene);
            records.try_for_each(|record| {
                let model = record.served.as_ref().map_or("", |served| &served.model);
                let own = &scene.scenario.upstreams[0].model;
                require(
                    model == own && !record.request_id.as_str().is_empty(),
                    || format!("it is {model:?}"),
                )
            })
        },
    ),
    (
        &[
            "a substitution booked as another model",
            "cost booked to <m>",
            "the substitution logged as a retry",
        ],
        |scene, _| {
            let rows = scene
                .played
                .rows()
                .filter(|row| row.outcome.as_str() == "success");
            for row in rows {
                let primary = &scene.scenario.upstreams[0];
                let own = row.provider.as_str() == primary.name;
                require(own || row.action.as_str() == "substitution", || {
                    format!("it is booked as {}", row.action)
                })?;
                require(own || row.model.as_str() != primary.model, || {
                    format!("it is booked on {}", row.model)
                })?;
            }
            none(scene.played.log.contains("retry attempt(s)"))
        },
    ),
    (
        &[
            "a mixture of two configurations",
            "request <n> mixing settings of both versions",
        ],
        |scene, _| {
            let (heard, record) = scene.played.requests.first().ok_or("nobody asked")?;
            let record = record.as_ref().ok_or("there is no record")?;
            equal(&record.config_version.into(), &1.into())?;
            let primary = &scene.scenario.upstreams[0].name;
            equal(
                &heard.header("x-backstop-provider").into(),
                &primary.as_str().into(),
            )
        },
    ),
    (
        &[
            "an address in an error",
            "the request URL with its query in an error string",
        ],
        |scene, _| {
            let names = scene.scenario.upstreams.iter().map(|u| host(&u.name));
            let hosts: Vec<String> = names.collect();
            for (heard, _) in &scene.played.requests {
                let text = heard.text();
                none(hosts.iter().any(|host| text.contains(host)) || text.contains("key="))?;
            }
            let text = wire::ledger_text(scene) + &our_log(scene);
            none(text.contains("?key=") || text.contains("&key="))
        },
    ),
    (
        &[
            "a provider's message on record",
            "the provider's message copied into the trail",
        ],
        |scene, _| {
            let text = wire::ledger_text(scene) + &our_log(scene);
            let mut messages = facts::messages(scene.scenario);
            none(messages.any(|words| {
                // Also without the part that a placeholder stands for.
                let start = words.split("SECRET(").next().unwrap_or(words);
                start.len() > 8 && text.contains(start)
            }))
        },
    ),
    (
        &[
            "<word> on record",
            "either <word> in any log or ledger line",
        ],
        |scene, holes| {
            let word = match holes.text("word") {
                "sentinel" => "SENTINEL",
                word => word,
            };
            none((wire::ledger_text(scene) + &scene.played.log).contains(word))
        },
    ),
    (
        &[
            "a key's value as its name",
            "the key's value used as its name",
        ],
        |scene, _| {
            let names = scene.played.rows().filter_map(|row| row.key.as_ref());
            let values = scene.scenario.upstreams.iter().flat_map(|u| &u.keys);
            let values: Vec<String> = values.map(|key| secret(key)).collect();
            let mut names = names.map(|key| key.name().to_owned());
            none(names.any(|name| values.contains(&name)))
        },
    ),
    (
        &[
            "more request bytes held than sent",
            "several full copies of the body held at once",
        ],
        |scene, _| {
            let sent = scene
                .played
                .requests
                .iter()
                .map(|(heard, _)| heard.prompt.len());
            let most = sent.max().unwrap_or(0);
            let held = scene.played.glances.iter().map(|glance| glance.buffered);
            let held = held.max().unwrap_or(0);
            // What is held is the body once, with what stands around the prompt.
            let most = most as u64 + 4096;
            require(held > 0 && held <= most, || {
                format!("{held} bytes were held")
            })
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

fn nothing_held(scene: &Scene<'_>) -> Checked {
    let mut glances = scene.played.glances.iter().chain([&scene.played.end]);
    let held = glances.find(|glance| !glance.held.is_empty());
    require(held.is_none(), || {
        format!("held: {:?}", held.map(|glance| &glance.held))
    })
}

fn stays_closed(scene: &Scene<'_>, upstream: &str) -> Checked {
    require(scene.played.stage.sim(upstream).is_some(), || {
        "no such upstream".to_owned()
    })?;
    let mut glances = scene.played.glances.iter().chain([&scene.played.end]);
    let left = glances.find(|glance| state::breaker(glance, upstream) != "closed");
    require(left.is_none(), || {
        format!("at {:?} ms", left.map(|glance| glance.millis()))
    })
}

fn grew(scene: &Scene<'_>, name: &str, want: f64) -> Checked {
    let grown = growth(name, &scene.played.before, &scene.played.after);
    let grown = grown.ok_or("no row of the table of metrics has this name")?;
    require((grown - want).abs() < 1e-9, || {
        format!("{name} grew by {grown}")
    })
}

/// What the gateway itself logged; libraries below it log what they move.
fn our_log(scene: &Scene<'_>) -> String {
    let lines = scene.played.log.lines();
    lines.filter(|line| line.contains("backstop")).collect()
}

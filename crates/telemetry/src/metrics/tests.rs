//! What lands on the page, and what never does.

use super::*;

const CHANNELS: [Channel<'_>; 2] = [
    Channel {
        id: "openai/gpt-4o",
        provider: "openai",
        model: "gpt-4o",
    },
    Channel {
        id: "anthropic/claude",
        provider: "anthropic",
        model: "claude",
    },
];

fn configured() -> Metrics {
    let metrics = Metrics::new();
    metrics.configure(&Configured {
        providers: &[],
        routes: &["fast"],
        channels: &CHANNELS,
    });
    metrics
}

fn request(route: &str) -> RequestEnd<'_> {
    RequestEnd {
        route,
        dialect: "openai-chat",
        operation: "generate",
        outcome: "success_after_fallback",
        attempts: 3,
        duration: Duration::from_millis(1_500),
        first_output: Some(Duration::from_millis(30)),
    }
}

fn attempt<'a>(provider: &'a str, model: &'a str) -> AttemptEnd<'a> {
    AttemptEnd {
        provider,
        model,
        class: None,
        action: "fallback",
        duration: Duration::from_millis(200),
    }
}

/// Whether the page holds this line.
fn has(metrics: &Metrics, line: &str) -> bool {
    metrics.render().lines().any(|each| each == line)
}

#[test]
fn each_fact_is_a_line_of_the_page() {
    let metrics = configured();
    metrics.request_ended(&request("fast"));
    metrics.attempt_ended(&attempt("openai", "gpt-4o"));
    metrics.breaker_failure("openai", "gpt-4o");
    metrics.attempt_ended(&AttemptEnd {
        class: Some("rate_limit"),
        action: "direct",
        ..attempt("openai", "gpt-4o")
    });
    metrics.breaker_state("openai/gpt-4o", BreakerState::Open);
    metrics.retry_budget_left("openai/gpt-4o", 7.5);
    metrics.keys_held([("openai", "gone", None)].into_iter());
    let held = [
        ("openai", "key-1", None),
        ("openai", "key-2", Some("gpt-4o")),
        ("openai", "key-2", Some("invented")),
    ];
    metrics.keys_held(held.into_iter());
    metrics.admission_refused("route_not_allowed");
    metrics.config_taken(4);
    metrics.buffered(ByteCount::kib(2));
    // What others count is told again at each scrape.
    for _ in 0..2 {
        metrics.ledger_journeys(3, 2);
        metrics.ledger(&LedgerFacts {
            written: 9,
            dropped: 1,
            indexed: 8,
            lag: ByteCount(512),
            size: ByteCount::kib(4),
            failing: true,
        });
    }
    for line in [
        r#"backstop_requests_total{dialect="openai-chat",operation="generate",outcome="success_after_fallback",route="fast"} 1"#,
        r#"backstop_attempts_total{action="fallback",class="success",model="gpt-4o",provider="openai"} 1"#,
        r#"backstop_attempts_total{action="direct",class="rate_limit",model="gpt-4o",provider="openai"} 1"#,
        r#"backstop_request_attempts_bucket{le="2"} 0"#,
        r#"backstop_request_attempts_bucket{le="3"} 1"#,
        r#"backstop_request_duration_seconds_sum{route="fast"} 1.5"#,
        r#"backstop_time_to_first_output_seconds_sum{route="fast"} 0.03"#,
        r#"backstop_attempt_duration_seconds_sum{model="gpt-4o",provider="openai"} 0.4"#,
        r#"backstop_breaker_state{channel="openai/gpt-4o",state="closed"} 0"#,
        r#"backstop_breaker_state{channel="openai/gpt-4o",state="open"} 1"#,
        r#"backstop_breaker_failures_total{model="gpt-4o",provider="openai"} 1"#,
        r#"backstop_retry_budget_left_retries{channel="openai/gpt-4o"} 7.5"#,
        r#"backstop_keys_held{key="key-1",model="*",provider="openai"} 1"#,
        r#"backstop_keys_held{key="key-2",model="gpt-4o",provider="openai"} 1"#,
        r#"backstop_keys_held{key="key-2",model="other",provider="openai"} 1"#,
        r#"backstop_admissions_refused_total{code="route_not_allowed"} 1"#,
        "backstop_config_last_reload_ok 1",
        "backstop_config_version 4",
        r#"backstop_config_reloads_total{result="taken"} 1"#,
        r#"backstop_config_reloads_total{result="refused"} 0"#,
        "backstop_buffered_bytes 2048",
        "backstop_ledger_recent_journeys 2",
        "backstop_ledger_journeys_total 3",
        r#"backstop_ledger_records_total{result="written"} 9"#,
        r#"backstop_ledger_records_total{result="dropped"} 1"#,
        r#"backstop_ledger_records_total{result="indexed"} 8"#,
        "backstop_ledger_lag_bytes 512",
        "backstop_ledger_size_bytes 4096",
        "backstop_ledger_failing 1",
    ] {
        assert!(has(&metrics, line), "{line}\n{}", metrics.render());
    }
    assert!(!metrics.render().contains("gone"));
}

#[test]
fn a_refused_configuration_shows_and_leaves_the_version() {
    let metrics = configured();
    metrics.config_taken(4);
    metrics.config_refused();
    assert!(has(&metrics, "backstop_config_last_reload_ok 0"));
    assert!(has(&metrics, "backstop_config_version 4"));
    assert!(has(
        &metrics,
        r#"backstop_config_reloads_total{result="refused"} 1"#
    ));
}

#[test]
fn a_request_is_in_flight_until_its_guard_goes() {
    let metrics = configured();
    let (one, two) = (metrics.request_started(), metrics.request_started());
    assert!(has(&metrics, "backstop_requests_in_flight 2"));
    drop(one);
    drop(two);
    assert!(has(&metrics, "backstop_requests_in_flight 0"));
}

#[test]
fn a_hundred_thousand_invented_names_add_no_series() {
    let metrics = configured();
    metrics.request_ended(&request("invented"));
    metrics.attempt_ended(&attempt("openai", "invented"));
    metrics.attempt_ended(&attempt("invented", "invented"));
    let before = metrics.render().lines().count();
    for i in 0..100_000 {
        let name = format!("invented-{i}");
        metrics.request_ended(&request(&name));
        metrics.attempt_ended(&attempt("openai", &name));
        metrics.attempt_ended(&attempt(&name, &name));
        metrics.breaker_state(&name, BreakerState::Open);
        metrics.retry_budget_left(&name, 1.0);
    }
    let page = metrics.render();
    assert_eq!(page.lines().count(), before);
    assert!(!page.contains("invented"), "no text of a caller is a label");
}

#[test]
fn gauges_of_a_channel_leave_with_it_and_its_counters_stay() {
    let metrics = configured();
    for channel in CHANNELS {
        metrics.breaker_state(channel.id, BreakerState::Closed);
        metrics.retry_budget_left(channel.id, 10.0);
        metrics.attempt_ended(&attempt(channel.provider, channel.model));
    }
    metrics.configure(&Configured {
        providers: &[],
        routes: &["fast"],
        channels: &CHANNELS[..1],
    });
    // A request of the old configuration settles late.
    metrics.breaker_state("anthropic/claude", BreakerState::Open);
    let page = metrics.render();
    assert!(page.contains(r#"channel="openai/gpt-4o""#));
    assert!(!page.contains(r#"channel="anthropic/claude""#));
    assert!(page.contains(r#"provider="anthropic""#));
}

#[test]
fn every_metric_has_our_prefix_and_a_help_line() {
    let metrics = configured();
    metrics.request_ended(&request("fast"));
    let page = metrics.render();
    for line in page.lines() {
        let name = line
            .trim_start_matches("# HELP ")
            .trim_start_matches("# TYPE ");
        assert!(name.starts_with("backstop_"), "{line}");
    }
    let count = |mark: &str| page.lines().filter(|line| line.starts_with(mark)).count();
    assert_eq!(count("# HELP "), count("# TYPE "));
}

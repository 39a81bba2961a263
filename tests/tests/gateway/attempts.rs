//! One attempt's own life: its connection and its clocks.

use std::time::Duration;

use backstop_faultsim::{End, Fault, Item, On, Pace, Script, Step};
use backstop_tests::{TestGateway, soon};
use serde_json::{Value, json};

use crate::common::{as_scripted, ask, ask_stream, column, one, provider, with_backup};

#[tokio::test]
async fn connections_to_a_provider_are_kept() {
    let openai = provider(Script::healthy()).await;
    let gateway = TestGateway::start(&one("openai"), &[("openai", &openai)]).await;
    let mut rows = Vec::new();
    for body in [ask("openai/a"), ask("openai/b"), ask("openai/c")] {
        rows.push(gateway.chat(body).await.trail().remove(0));
    }
    assert_eq!(column(&rows, "connection"), ["fresh", "reused", "reused"]);
    assert_eq!(rows[1]["connect_ms"], Value::Null);
    assert_eq!(openai.connection_count(), 1);
}

#[tokio::test]
async fn a_stream_that_ended_gives_its_connection_back() {
    let openai = provider(Script::healthy()).await;
    let gateway = TestGateway::start(&one("openai"), &[("openai", &openai)]).await;
    for _ in 0..3 {
        let call = gateway.post("/v1/chat/completions", ask_stream("openai/a").to_string());
        assert_eq!(call.send().await.status, 200);
    }
    assert_eq!(openai.connection_count(), 1);
}

#[tokio::test]
async fn a_kept_connection_that_died_is_replaced_once_and_free() {
    for (streamed, resets, status) in [(false, 1, 200), (true, 1, 200), (false, 2, 502)] {
        let script = Script::new()
            .step(Step::ok_text("one"))
            .step(Step::silent(End::Reset).on(On::Reused))
            .step(match resets {
                1 => Step::ok_text("two").on(On::Fresh),
                _ => Step::silent(End::Reset).on(On::Fresh),
            });
        let openai = provider(script).await;
        let gateway = TestGateway::start(&one("openai"), &[("openai", &openai)]).await;
        assert_eq!(gateway.chat(ask("openai/a")).await.said(), "one");
        let body = if streamed {
            ask_stream("openai/a")
        } else {
            ask("openai/a")
        };
        let answer = gateway.chat(body).await;
        assert_eq!(answer.status, status, "{}", answer.text());
        assert_eq!(answer.header("x-backstop-attempts"), "2");
        let rows = gateway.record(answer.id()).await.to_json()["attempt_trail"].clone();
        assert_eq!(rows[0]["outcome"], "failed");
        assert_eq!(rows[0]["connection"], "reused");
        if status == 200 {
            assert_eq!(rows[1]["connection"], "fresh");
        }
        assert_eq!(rows[1]["waited_ms"], Value::Null);
        as_scripted(&openai);
    }
}

#[tokio::test]
async fn each_clock_ends_an_attempt_and_leads_elsewhere() {
    let filler = Pace {
        bytes: 8,
        every: Duration::from_millis(5),
        head: false,
    };
    let role = json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
        "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": null}]});
    let rows = [
        ("headers_ms", "request_timed_out", Step::silent(End::Hang)),
        // The role comes at once, and then comments without end: busy, and no use to anyone.
        (
            "first_output_ms",
            "ttft_timeout",
            Step::sse([Item::data(role.clone())])
                .trickle(filler)
                .then(End::Trickle),
        ),
        (
            "idle_ms",
            "stream_idle_timeout",
            Step::sse([Item::data(role)]).then(End::Hang),
        ),
    ];
    for (clock, reason, step) in rows {
        let openai = provider(Script::new().step(step)).await;
        let backup = provider(Script::new().step(Step::stream_text(["whole"]))).await;
        let sims = [("openai", &openai), ("backup", &backup)];
        let config = with_backup(3).replacen(
            "network_config",
            &format!("timeouts = {{ {clock} = 40 }}\nnetwork_config"),
            1,
        );
        let gateway = TestGateway::start(&config, &sims).await;
        let answer = gateway.chat(ask_stream("chat")).await;
        assert_eq!(answer.said(), "whole", "{clock}: {}", answer.text());
        let row = &gateway.record(answer.id()).await.to_json()["attempt_trail"][0];
        assert_eq!(row["failure_class"], "timeout", "{clock}");
        assert_eq!(row["fail_reason"], reason, "{clock}");
        assert_eq!(row["connection"], "fresh", "{clock}");
        let closed = soon("the upstream close", openai.attempt(1).closed_by_peer()).await;
        assert!(closed.is_some(), "{clock}");
        as_scripted(&backup);
    }
}

#[tokio::test]
async fn silence_after_output_ends_the_stream_openly() {
    let openai = provider(Script::new().step(Step::stream_text(["Hel"]).then(End::Hang))).await;
    let config = one("openai") + "timeouts = { idle_ms = 40 }\n";
    let gateway = TestGateway::start(&config, &[("openai", &openai)]).await;
    let answer = gateway.chat(ask_stream("openai/a")).await;
    assert_eq!((answer.status, answer.said().as_str()), (200, "Hel"));
    let events = answer.events();
    assert!(events.last().is_some_and(|last| last.is_error()));
    assert!(!events.iter().any(|event| event.is_end()));
    let record = gateway.record(answer.id()).await;
    assert_eq!(record.terminal, "partial");
    assert_eq!(
        record.to_json()["attempt_trail"][0]["failure_class"],
        "timeout"
    );
}

#[tokio::test]
async fn a_hint_that_does_not_fit_the_deadline_is_not_waited_for() {
    let script = Script::new().step(Step::fault(Fault::RateLimited).header("retry-after", "300"));
    let openai = provider(script).await;
    let config = one("openai").replace("retry_backoff", "max_retries = 5, retry_backoff");
    let gateway = TestGateway::start(&config, &[("openai", &openai)]).await;
    let call = gateway.post("/v1/chat/completions", ask("openai/a").to_string());
    let answer = call.header("x-backstop-deadline-ms", "20000").send().await;
    assert_eq!(answer.status, 429, "{}", answer.text());
    assert_eq!(answer.header("retry-after"), "300");
    as_scripted(&openai);
}

#[tokio::test]
async fn a_retry_budget_bounds_what_an_outage_costs() {
    let openai = provider(Script::new().step(Step::fault(Fault::Unavailable).always())).await;
    let budget = "retry_budget = { ratio = 0.0, per_second = 0.0, credit = 3.0 }";
    let config = one("openai").replace(
        "retry_backoff",
        &format!("{budget}, max_retries = 9, retry_backoff"),
    ) + "breaker = { enabled = false }\n";
    let gateway = TestGateway::start(&config, &[("openai", &openai)]).await;
    for _ in 0..4 {
        assert_eq!(gateway.chat(ask("openai/a")).await.status, 503);
    }
    assert_eq!(openai.attempt_count(), 4 + 3);
}

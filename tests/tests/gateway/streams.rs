//! Streams that break: before output they are somebody else's turn, after output they end openly.

use backstop_faultsim::{End, Fault, Item, Script, Sim, Step};
use backstop_tests::{Answer, TestGateway};
use serde_json::json;

use crate::common::{
    as_scripted, ask_stream, both_dialects, column, provider, untouched, with_backup,
};

/// Both dialects at the bare paths of their own provider.
const CALLERS: [(&str, &str); 2] = [
    ("/v1/chat/completions", "openai/gpt-4o"),
    ("/v1/messages", "anthropic/claude-sonnet-4-5"),
];

struct Pair {
    openai: Sim,
    anthropic: Sim,
    gateway: TestGateway,
}

impl Pair {
    /// Both providers with the same script.
    async fn new(step: &Step, max_retries: u32) -> Self {
        let script = Script::new().step(step.clone());
        let (openai, anthropic) = (provider(script.clone()).await, provider(script).await);
        let config = both_dialects().replace(
            "retry_backoff_initial",
            &format!("max_retries = {max_retries}, retry_backoff_initial"),
        );
        let sims = [("openai", &openai), ("anthropic", &anthropic)];
        let gateway = TestGateway::start(&config, &sims).await;
        Self {
            openai,
            anthropic,
            gateway,
        }
    }

    async fn ask(&self, path: &str, model: &str) -> Answer {
        let body = ask_stream(model).to_string();
        self.gateway.post(path, body).send().await
    }

    fn all_as_scripted(&self) {
        as_scripted(&self.openai);
        as_scripted(&self.anthropic);
    }
}

#[tokio::test]
async fn a_stream_that_opens_with_an_error_is_no_200() {
    for (fault, statuses) in [
        (Fault::Overloaded, [503, 529]),
        (Fault::RateLimited, [429, 429]),
        (Fault::ServerError, [503, 503]),
    ] {
        let pair = Pair::new(&Step::stream_fault([""; 0], fault), 0).await;
        for ((path, model), status) in CALLERS.into_iter().zip(statuses) {
            let answer = pair.ask(path, model).await;
            assert_eq!(
                answer.status,
                status,
                "{fault:?} at {path}: {}",
                answer.text()
            );
            assert_eq!(answer.header("content-type"), "application/json");
            assert!(answer.json()["error"]["message"].is_string());
            assert_eq!(answer.json()["request_id"], answer.id());
        }
        pair.all_as_scripted();
    }
}

#[tokio::test]
async fn trouble_before_output_is_retried_unseen() {
    let pair = Pair::new(&Step::stream_fault([""; 0], Fault::Overloaded), 1).await;
    for sim in [&pair.openai, &pair.anthropic] {
        sim.push(Step::stream_text(["Hel", "lo"]));
    }
    for (path, model) in CALLERS {
        let answer = pair.ask(path, model).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(answer.said(), "Hello");
        assert!(answer.events().last().is_some_and(|last| last.is_end()));
        assert_eq!(answer.header("x-backstop-attempts"), "2");
        assert_eq!(answer.header("x-backstop-action"), "retry");
    }
    pair.all_as_scripted();
}

#[tokio::test]
async fn a_failed_attempts_startup_is_thrown_away() {
    let start = json!({"type": "message_start", "message": {
        "id": "msg_lost", "type": "message", "role": "assistant", "model": "m", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 1, "output_tokens": 1},
    }});
    let overloaded = json!({"type": "error", "error": {
        "type": "overloaded_error", "message": "Overloaded",
    }});
    let script = Script::new()
        .step(Step::sse([
            Item::event("message_start", start),
            Item::event("ping", json!({"type": "ping"})),
            Item::event("error", overloaded),
        ]))
        .step(Step::stream_text(["found"]));
    let anthropic = provider(script).await;
    let config = both_dialects().replace(
        "retry_backoff_initial",
        "max_retries = 1, retry_backoff_initial",
    );
    let openai = untouched().await;
    let sims = [("anthropic", &anthropic), ("openai", &openai)];
    let gateway = TestGateway::start(&config, &sims).await;
    let body = ask_stream("anthropic/claude-sonnet-4-5").to_string();
    let answer = gateway.post("/v1/messages", body).send().await;
    assert_eq!(answer.said(), "found");
    assert!(!answer.text().contains("msg_lost"));
    let starts = answer.text().matches("event: message_start").count();
    assert_eq!(starts, 1);
    as_scripted(&anthropic);
}

#[tokio::test]
async fn a_stream_that_breaks_after_output_ends_openly() {
    for (name, step) in [
        ("cut", Step::stream_text(["Hel", "lo"]).then(End::Cut)),
        ("reset", Step::stream_text(["Hel", "lo"]).then(End::Reset)),
        (
            "error event",
            Step::stream_fault(["Hel", "lo"], Fault::ServerError),
        ),
    ] {
        // A reset may overtake what was sent before it; a wait between them is no part of the test.
        let step = step.every(std::time::Duration::from_millis(1));
        let pair = Pair::new(&step, 3).await;
        for (path, model) in CALLERS {
            let answer = pair.ask(path, model).await;
            if name == "reset" && answer.status != 200 {
                continue;
            }
            assert_eq!(answer.status, 200, "{name}: {}", answer.text());
            let events = answer.events();
            let last = events.last().expect("an event");
            assert!(last.is_error(), "{name} at {path}: {}", answer.text());
            assert!(
                !events.iter().any(|event| event.is_end()),
                "{name} at {path}"
            );
            assert!("Hello".starts_with(&answer.said()), "{name} at {path}");
            assert!(
                !answer.text().contains("finish_reason\":\""),
                "{name} at {path}"
            );
            assert!(!answer.text().contains("extra_fields"));
            let anthropic = path == "/v1/messages";
            assert_eq!(last.event.as_deref(), anthropic.then_some("error"));
            let record = pair.gateway.record(answer.id()).await;
            assert_eq!(record.terminal, "partial", "{name}");
            let row = &record.to_json()["attempt_trail"][0];
            assert_eq!(row["phase"], "after_output", "{name}");
            assert_eq!(row["outcome"], "partial", "{name}");
        }
        if name != "reset" {
            pair.all_as_scripted();
        }
    }
}

#[tokio::test]
async fn nothing_follows_output_on_another_channel() {
    let openai = provider(Script::new().step(Step::stream_text(["Hel"]).then(End::Cut))).await;
    let backup = untouched().await;
    let sims = [("openai", &openai), ("backup", &backup)];
    let gateway = TestGateway::start(&with_backup(5), &sims).await;
    let body = ask_stream("chat").to_string();
    let answer = gateway.post("/v1/chat/completions", body).send().await;
    assert_eq!((answer.status, answer.said().as_str()), (200, "Hel"));
    assert!(answer.events().last().is_some_and(|last| last.is_error()));
    assert_eq!(openai.attempt_count(), 1);
    as_scripted(&backup);
}

#[tokio::test]
async fn trouble_before_output_moves_to_another_channel() {
    for (name, step) in [
        ("a refusal", Step::fault(Fault::Unavailable)),
        (
            "an error first",
            Step::stream_fault([""; 0], Fault::ServerError),
        ),
        ("a cut before the head", Step::silent(End::Cut)),
        (
            "a cut after the role",
            Step::stream_text([""; 0]).then(End::Cut),
        ),
    ] {
        let openai = provider(Script::new().step(step)).await;
        let backup = provider(Script::new().step(Step::stream_text(["whole"]))).await;
        let sims = [("openai", &openai), ("backup", &backup)];
        let gateway = TestGateway::start(&with_backup(0), &sims).await;
        let body = ask_stream("chat").to_string();
        let answer = gateway.post("/v1/chat/completions", body).send().await;
        assert_eq!(answer.status, 200, "{name}: {}", answer.text());
        assert_eq!(answer.said(), "whole", "{name}");
        assert_eq!(answer.header("x-backstop-action"), "fallback", "{name}");
        as_scripted(&openai);
        as_scripted(&backup);
    }
}

#[tokio::test]
async fn a_stream_without_output_has_failed() {
    let role = json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
        "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": null}]});
    for (name, step) in [
        ("empty", Step::sse([])),
        ("a comment alone", Step::sse([Item::comment(" PROCESSING")])),
        ("the role alone", Step::sse([Item::data(role)])),
        ("no stream at all", Step::json(200, json!({"choices": []}))),
    ] {
        let openai = provider(Script::new().step(step)).await;
        let backup = untouched().await;
        let sims = [("openai", &openai), ("backup", &backup)];
        let gateway = TestGateway::start(&with_backup(0), &sims).await;
        let body = ask_stream("chat").to_string();
        let answer = gateway.post("/v1/chat/completions", body).send().await;
        assert_eq!(answer.status, 502, "{name}: {}", answer.text());
        let class = column(&answer.trail(), "failure_class");
        assert_eq!(class, ["malformed"], "{name}");
        as_scripted(&openai);
        as_scripted(&backup);
    }
}

#[tokio::test]
async fn a_stream_held_back_is_rescued_from_a_late_break() {
    for commit in ["complete", "window=60000"] {
        let openai = provider(Script::new().step(Step::stream_text(["Hel"]).then(End::Cut))).await;
        let backup = provider(Script::new().step(Step::stream_text(["who", "le"]))).await;
        let sims = [("openai", &openai), ("backup", &backup)];
        let gateway = TestGateway::start(&with_backup(0), &sims).await;
        let call = gateway.post("/v1/chat/completions", ask_stream("chat").to_string());
        let answer = call.header("x-backstop-commit", commit).send().await;
        assert_eq!(
            (answer.status, answer.said().as_str()),
            (200, "whole"),
            "{commit}"
        );
        assert!(answer.events().last().is_some_and(|last| last.is_end()));
        as_scripted(&openai);
        as_scripted(&backup);
    }
}

#[tokio::test]
async fn a_window_that_has_passed_gives_out_what_it_held() {
    let step = Step::stream_text(["Hel", "lo"]).then(End::Hang);
    let openai = provider(Script::new().step(step)).await;
    let backup = untouched().await;
    let sims = [("openai", &openai), ("backup", &backup)];
    let gateway = TestGateway::start(&with_backup(0), &sims).await;
    let call = gateway.post("/v1/chat/completions", ask_stream("chat").to_string());
    let mut stream = call.header("x-backstop-commit", "window=20").open().await;
    let mut said = String::new();
    while said != "Hello" {
        said += &stream.event().await.expect("an event").text();
    }
    drop(stream);
    as_scripted(&backup);
}

#[tokio::test]
async fn usage_is_asked_for_and_kept_from_those_who_did_not_ask() {
    let openai = provider(Script::healthy()).await;
    let anthropic = untouched().await;
    let sims = [("openai", &openai), ("anthropic", &anthropic)];
    let gateway = TestGateway::start(&both_dialects(), &sims).await;
    for asked in [false, true] {
        let mut body = ask_stream("openai/gpt-4o");
        if asked {
            body["stream_options"] = json!({"include_usage": true});
        }
        let answer = gateway
            .post("/v1/chat/completions", body.to_string())
            .send()
            .await;
        let seen = answer
            .events()
            .iter()
            .any(|event| event.json()["usage"].is_object());
        assert_eq!(seen, asked);
        let last = openai.attempts().pop().expect("an attempt").json();
        assert_eq!(last["stream_options"]["include_usage"], true);
        let record = gateway.record(answer.id()).await.to_json();
        assert!(record["attempt_trail"][0]["usage"].is_object(), "{record}");
    }
}

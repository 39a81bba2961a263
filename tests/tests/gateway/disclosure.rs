//! Who answered, by which right, after how many attempts.

use backstop_faultsim::{Fault, Script, Step};
use backstop_tests::TestGateway;
use serde_json::Value;

use crate::common::{ask, ask_stream, both_dialects, provider, untouched};

#[tokio::test]
async fn every_answer_says_who_gave_it() {
    let (openai, anthropic) = (
        provider(Script::healthy()).await,
        provider(Script::healthy()).await,
    );
    let sims = [("openai", &openai), ("anthropic", &anthropic)];
    let gateway = TestGateway::start(&both_dialects(), &sims).await;
    for (path, model) in [
        ("/v1/chat/completions", "openai/gpt-4o"),
        ("/v1/messages", "anthropic/claude-sonnet-4-5"),
        ("/v1/chat/completions", "anthropic/claude-sonnet-4-5"),
        ("/v1/messages", "openai/gpt-4o"),
    ] {
        for body in [ask(model), ask_stream(model)] {
            let answer = gateway.post(path, body.to_string()).send().await;
            assert_eq!(answer.status, 200, "{}", answer.text());
            let (provider, served) = model.split_once('/').expect("a slash");
            assert_eq!(answer.header("x-backstop-provider"), provider);
            assert_eq!(answer.header("x-backstop-model"), served);
            assert_eq!(answer.header("x-backstop-action"), "direct");
            assert_eq!(answer.header("x-backstop-attempts"), "1");
            assert_eq!(answer.header("x-should-retry"), "");
            assert!(!answer.id().is_empty());
            let streamed = body["stream"] == true;
            assert_eq!(answer.text().contains("extra_fields"), !streamed);
            let record = gateway.record(answer.id()).await.to_json();
            assert_eq!(record["terminal_reason"], "success");
            assert_eq!(record["stream"], streamed);
            assert_eq!(record["model_served"], served);
            assert!(record["attempt_trail"][0]["usage"].is_object(), "{record}");
        }
    }
}

#[tokio::test]
async fn the_trail_comes_when_it_is_asked_for() {
    let openai = provider(Script::healthy()).await;
    let config = crate::common::one("openai");
    let mut gateway = TestGateway::start(&config, &[("openai", &openai)]).await;
    let plain = |gateway: &TestGateway| {
        let call = gateway.call("POST", "/v1/chat/completions");
        call.body(ask("openai/gpt-4o").to_string())
    };
    let answer = plain(&gateway).send().await;
    let extra = &answer.json()["extra_fields"];
    assert_eq!(extra["provider"], "openai");
    assert_eq!(extra["model_requested"], "openai/gpt-4o");
    assert_eq!(extra["model_served"], "gpt-4o");
    assert!(extra["latency"].is_number());
    assert_eq!(extra["attempt_trail"], Value::Null);
    gateway.reload(&("trail = \"always\"\n".to_owned() + &config));
    let answer = plain(&gateway).send().await;
    let row = &answer.trail()[0];
    for name in [
        "attempt", "provider", "model", "key_name", "action", "phase", "total_ms",
    ] {
        assert!(!row[name].is_null(), "{name} in {row}");
    }
}

#[tokio::test]
async fn errors_carry_their_attempts_in_both_dialects() {
    let script = Script::new().step(Step::fault(Fault::Unavailable).repeat(1));
    let (openai, anthropic) = (provider(script.clone()).await, provider(script).await);
    let sims = [("openai", &openai), ("anthropic", &anthropic)];
    let gateway = TestGateway::start(&both_dialects(), &sims).await;
    for (path, model) in [
        ("/v1/chat/completions", "openai/gpt-4o"),
        ("/v1/messages", "anthropic/claude-sonnet-4-5"),
    ] {
        let answer = gateway.post(path, ask(model).to_string()).send().await;
        assert_eq!(answer.status, 503, "{}", answer.text());
        assert_eq!(answer.trail().len(), 1);
        assert_eq!(answer.header("x-backstop-attempts"), "1");
        // One send, and the class permits another: the SDK above may repeat it.
        assert_eq!(answer.header("x-should-retry"), "");
    }
}

#[tokio::test]
async fn a_providers_limits_are_shown_and_its_cookies_are_not() {
    let step = Step::ok_text("x")
        .header("x-ratelimit-remaining-requests", "9")
        .header("set-cookie", "session=theirs")
        .header("x-request-id", "theirs")
        .header("server", "theirs")
        .header("retry-after", "5")
        .header("x-should-retry", "true");
    let openai = provider(Script::new().step(step)).await;
    let anthropic = untouched().await;
    let sims = [("openai", &openai), ("anthropic", &anthropic)];
    let gateway = TestGateway::start(&both_dialects(), &sims).await;
    let answer = gateway.chat(ask("openai/gpt-4o")).await;
    assert_eq!(answer.header("x-ratelimit-remaining-requests"), "9");
    for name in ["set-cookie", "server", "retry-after", "x-should-retry"] {
        assert_eq!(answer.header(name), "", "{name}");
    }
    assert_ne!(answer.id(), "theirs");
}

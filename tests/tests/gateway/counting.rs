//! Counts of tokens: asked for in two dialects, answered in two.

use backstop_faultsim::{Script, Step};
use backstop_tests::{Answer, TestGateway};
use serde_json::{Value, json};

use crate::common::{as_scripted, before_extra, one, provider, untouched};

const COUNT: &str = "/v1/messages/count_tokens";

async fn send(gateway: &TestGateway, path: &str, body: &Value) -> Answer {
    gateway.post(path, body.to_string()).send().await
}

fn question(model: &str) -> Value {
    json!({"model": model, "system": "Be brief.",
        "messages": [{"role": "user", "content": "hi"}]})
}

#[tokio::test]
async fn a_count_is_passed_through_where_the_dialect_is_spoken() {
    let said = r#"{ "input_tokens": 31 }"#;
    let step = Step::text(200, said).header("content-type", "application/json");
    let sim = provider(Script::new().step(step.repeat(2))).await;
    let gateway = TestGateway::start(&one("anthropic"), &[("anthropic", &sim)]).await;
    for path in [COUNT, "/anthropic/v1/messages/count_tokens"] {
        let answer = send(&gateway, path, &question("anthropic/claude")).await;
        assert_eq!(answer.status, 200);
        assert_eq!(before_extra(&answer), said[..said.len() - 2]);
        let record = gateway.record(answer.id()).await;
        assert_eq!(record.operation, "count_tokens");
        // A count is not spent.
        assert_eq!(record.rows[0].usage, None);
    }
    let attempt = sim.attempt(1);
    assert_eq!(attempt.path(), "/v1/messages/count_tokens");
    assert_eq!(attempt.json(), question("claude"));
    assert_eq!(attempt.header("anthropic-version"), Some("2023-06-01"));
    as_scripted(&sim);

    let said = r#"{"totalTokens":31,"promptTokensDetails":[{"modality":"TEXT","tokenCount":31}]}"#;
    let step = Step::text(200, said).header("content-type", "application/json");
    let sim = provider(Script::new().step(step)).await;
    let gateway = TestGateway::start(&one("gemini"), &[("gemini", &sim)]).await;
    let asked = json!({"generateContentRequest": {"model": "models/gemini/m",
        "contents": [{"parts": [{"text": "hi"}]}]}});
    let path = "/genai/v1beta/models/gemini/m:countTokens";
    let answer = send(&gateway, path, &asked).await;
    assert_eq!(before_extra(&answer), said[..said.len() - 1]);
    let sent = sim.attempt(1);
    assert_eq!(sent.path(), "/v1beta/models/m:countTokens");
    assert_eq!(sent.json()["generateContentRequest"]["model"], "models/m");
    as_scripted(&sim);
}

#[tokio::test]
async fn a_count_crosses_between_the_two_who_know_it() {
    let sim = provider(Script::new().step(Step::json(200, json!({"totalTokens": 31})))).await;
    let gateway = TestGateway::start(&one("gemini"), &[("gemini", &sim)]).await;
    let answer = send(&gateway, COUNT, &question("gemini/m")).await;
    assert_eq!(before_extra(&answer), r#"{"input_tokens":31"#);
    let sent = sim.attempt(1);
    assert_eq!(sent.path(), "/v1beta/models/m:countTokens");
    let sent = &sent.json()["generateContentRequest"];
    assert_eq!(sent["contents"][0]["parts"][0]["text"], "hi");
    assert_eq!(sent["systemInstruction"]["parts"][0]["text"], "Be brief.");
    as_scripted(&sim);

    let sim = provider(Script::new().step(Step::json(200, json!({"input_tokens": 9})))).await;
    let gateway = TestGateway::start(&one("anthropic"), &[("anthropic", &sim)]).await;
    let path = "/genai/v1beta/models/anthropic/claude:countTokens";
    let body = json!({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]});
    let answer = send(&gateway, path, &body).await;
    assert_eq!(before_extra(&answer), r#"{"totalTokens":9"#);
    let sent = sim.attempt(1);
    assert_eq!(sent.path(), "/v1/messages/count_tokens");
    assert_eq!(sent.json()["model"], "claude");
    assert!(sent.json().get("max_tokens").is_none());
    as_scripted(&sim);
}

#[tokio::test]
async fn who_cannot_count_is_passed_over() {
    let openai = untouched().await;
    let count = json!({"input_tokens": 9});
    let anthropic = provider(Script::new().step(Step::json(200, count))).await;
    let config = one("openai")
        + &one("anthropic")
        + "[routes]\nmixed = [\"openai/gpt-4o\", \"anthropic/claude\"]\n";
    let sims = [("openai", &openai), ("anthropic", &anthropic)];
    let gateway = TestGateway::start(&config, &sims).await;
    let answer = send(&gateway, COUNT, &question("mixed")).await;
    assert_eq!(answer.json()["input_tokens"], 9);
    as_scripted(&anthropic);

    let answer = send(&gateway, COUNT, &question("openai/gpt-4o")).await;
    assert_eq!(answer.status, 400);
    let body = answer.json();
    assert_eq!(body["type"], "error");
    assert_eq!(body["error"]["type"], "invalid_request_error");
    let said = body["error"]["message"].as_str().unwrap_or_default();
    assert!(
        said.contains("openai/gpt-4o: its contract does not cover count_tokens"),
        "{said}"
    );
}

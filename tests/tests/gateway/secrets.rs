//! A provider that repeats the key it was given: the key goes no further. The harness itself looks
//! through log and ledger of every test.

use backstop_faultsim::{Item, Script, Step};
use backstop_tests::{Answer, CANARY, TestGateway, secret};
use serde_json::{Value, json};

use crate::common::{as_scripted, ask, ask_stream, both_dialects, provider};

fn told(kind: &str) -> Value {
    let key = secret(kind);
    json!({"type": "error", "error": {
        "message": format!("Incorrect API key provided: {key}. Also \"{key}\" and Bearer {key}"),
        "type": format!("odd {key}"), "code": key, "param": key, "inner": {"echo": [key]},
    }})
}

fn check(name: &str, answer: &Answer) {
    let headers = format!("{:?}", answer.headers);
    assert!(!headers.contains(CANARY), "{name}: {headers}");
    assert!(!answer.text().contains(CANARY), "{name}: {}", answer.text());
}

#[tokio::test]
async fn an_echoed_key_stays_inside() {
    let rows = [
        ("OPENAI_KEY_1", "openai/gpt-4o"),
        ("ANTHROPIC_KEY_1", "anthropic/claude-sonnet-4-5"),
    ];
    for (variable, model) in rows {
        let key = secret(variable);
        for status in [400, 401, 403, 404, 418, 429, 500, 503] {
            let step = Step::error(status, told(variable))
                .header("x-ratelimit-key", key.clone())
                .header("www-authenticate", key.clone());
            let text = Step::text(status, format!("upstream says {key}"));
            let script = Script::new().step(step.repeat(4)).step(text.repeat(4));
            let sim = provider(script).await;
            let sims = [("openai", &sim), ("anthropic", &sim)];
            let config = both_dialects()
                .replace("retry_backoff", "hold_refused_keys = false, retry_backoff");
            let gateway = TestGateway::start(&config, &sims).await;
            for _ in 0..2 {
                for path in ["/v1/chat/completions", "/v1/messages"] {
                    for body in [ask(model), ask_stream(model)] {
                        let answer = gateway.post(path, body.to_string()).send().await;
                        assert!(answer.status >= 400);
                        check(&format!("{status} at {path}"), &answer);
                    }
                }
            }
            let page = gateway.get("/metrics").await;
            check("the metrics", &page);
            as_scripted(&sim);
        }
    }
}

#[tokio::test]
async fn a_key_in_an_error_event_stays_inside() {
    let chunk = json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
        "choices": [{"index": 0, "delta": {"content": "Hel"}, "finish_reason": null}]});
    for first in [true, false] {
        let mut items = vec![Item::data(told("OPENAI_KEY_1"))];
        if !first {
            items.insert(0, Item::data(chunk.clone()));
        }
        let sim = provider(Script::new().step(Step::sse(items).repeat(2))).await;
        let sims = [("openai", &sim), ("anthropic", &sim)];
        let gateway = TestGateway::start(&both_dialects(), &sims).await;
        for path in ["/v1/chat/completions", "/v1/messages"] {
            let body = ask_stream("openai/gpt-4o").to_string();
            let answer = gateway.post(path, body).send().await;
            assert_eq!(answer.status == 200, !first, "{}", answer.text());
            check(path, &answer);
        }
    }
}

#[tokio::test]
async fn what_looks_like_a_key_is_taken_out_of_a_providers_words() {
    // Put together here, so that nobody who looks for keys stops at this file.
    let (key, token) = ["sk-proj-", "ya29."]
        .map(|opening| opening.to_owned() + "1234567890abcdef")
        .into();
    let words = format!("Incorrect API key provided: {key}. Token {token}");
    let body = json!({"error": {"message": words, "type": "x", "code": null, "param": null}});
    let sim = provider(Script::new().step(Step::error(400, body))).await;
    let sims = [("openai", &sim), ("anthropic", &sim)];
    let gateway = TestGateway::start(&both_dialects(), &sims).await;
    let answer = gateway.chat(ask("openai/gpt-4o")).await;
    assert_eq!(answer.status, 400);
    assert!(!answer.text().contains("1234567890"), "{}", answer.text());
    assert!(
        answer.text().contains("Incorrect API key"),
        "{}",
        answer.text()
    );
}

#[tokio::test]
async fn neither_prompt_nor_answer_nor_provider_words_are_logged() {
    let script = Script::new()
        .step(Step::error(
            503,
            json!({"error": {"message": "their-words", "type": "x"}}),
        ))
        .step(Step::ok_text("their-answer"));
    let sim = provider(script).await;
    let sims = [("openai", &sim), ("anthropic", &sim)];
    let config = both_dialects().replace("retry_backoff", "max_retries = 1, retry_backoff");
    let gateway = TestGateway::start(&config, &sims).await;
    let mut body = ask("openai/gpt-4o");
    body["messages"][0]["content"] = "the-prompt".into();
    let answer = gateway.chat(body).await;
    assert_eq!(answer.said(), "their-answer");
    let record = gateway.record(answer.id()).await;
    let seen = gateway.log() + &record.to_json().to_string() + &format!("{record:?}");
    for word in ["the-prompt", "their-answer", "their-words"] {
        assert!(!seen.contains(word), "{word}");
    }
}

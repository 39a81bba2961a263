//! Callers of other dialects, served by Cohere's.

use backstop_faultsim::{Item, Script, Sim, Step};
use backstop_tests::{Answer, TestGateway, secret};
use serde_json::{Value, json};

use crate::common::{as_scripted, ask, ask_stream, one, provider};

const CHAT: &str = "/v1/chat/completions";
const MESSAGES: &str = "/v1/messages";
const MODEL: &str = "cohere/command-a";

/// What Cohere's API said once, from the fixtures of its dialect.
macro_rules! recorded {
    ($file:literal) => {
        include_str!(concat!(
            "../../../crates/dialects/fixtures/cohere-v2/",
            $file
        ))
    };
}

async fn start(script: Script) -> (Sim, TestGateway) {
    let sim = provider(script).await;
    let gateway = TestGateway::start(&one("cohere"), &[("cohere", &sim)]).await;
    (sim, gateway)
}

fn whole(status: u16, body: &str) -> Step {
    Step::text(status, body).header("content-type", "application/json")
}

fn stream(body: &'static str, size: usize) -> Step {
    Step::sse(body.as_bytes().chunks(size).map(Item::raw))
}

async fn send(gateway: &TestGateway, path: &str, body: &Value) -> Answer {
    gateway.post(path, body.to_string()).send().await
}

/// Everything that the pieces of a stream say under this path, joined.
fn joined(answer: &Answer, path: &str) -> String {
    let events = answer.events();
    let said = events.iter().filter(|event| !event.is_end());
    said.filter_map(|event| Some(event.json().pointer(path)?.as_str()?.to_owned()))
        .collect()
}

#[tokio::test]
async fn a_question_reaches_its_model_and_the_answer_its_caller() {
    let answer = whole(200, recorded!("answers/text.json")).repeat(2);
    let (sim, gateway) = start(Script::new().step(answer)).await;
    let openai = send(&gateway, CHAT, &ask(MODEL)).await;
    assert_eq!(openai.said(), "2 + 2 equals 4.");
    let body = openai.json();
    assert_eq!(body["model"], "command-a");
    assert_eq!(body["choices"][0]["finish_reason"], "stop");
    assert_eq!(body["usage"]["prompt_tokens"], 503);
    assert_eq!(body["usage"]["prompt_tokens_details"]["cached_tokens"], 448);
    let anthropic = send(&gateway, MESSAGES, &ask(MODEL)).await.json();
    assert_eq!(anthropic["content"][0]["text"], "2 + 2 equals 4.");
    assert_eq!(anthropic["usage"]["input_tokens"], 55);
    let attempt = sim.attempt(1);
    assert_eq!(attempt.path(), "/v2/chat");
    let bearer = format!("Bearer {}", secret("COHERE_KEY_1"));
    assert_eq!(attempt.header("authorization"), Some(bearer.as_str()));
    assert_eq!(
        attempt.json(),
        json!({"model": "command-a", "max_tokens": 64,
            "messages": [{"role": "user", "content": "Say something."}]})
    );
    as_scripted(&sim);
}

#[tokio::test]
async fn a_plan_is_reasoning_and_calls_are_calls() {
    let answer = whole(200, recorded!("answers/parallel-tools.json")).repeat(2);
    let (sim, gateway) = start(Script::new().step(answer)).await;
    let mut body = ask(MODEL);
    body["tools"] = json!([{"type": "function", "function": {"name": "weather"}}]);
    body["tool_choice"] = json!("required");
    let openai = send(&gateway, CHAT, &body).await.json();
    let choice = &openai["choices"][0];
    assert_eq!(choice["finish_reason"], "tool_calls");
    let calls = choice["message"]["tool_calls"].as_array().expect("calls");
    assert_eq!(calls.len(), 2);
    assert_eq!(calls[1]["function"]["arguments"], "{}");
    assert!(
        choice["message"]["reasoning_content"]
            .as_str()
            .is_some_and(|plan| plan.starts_with("I will use the weather tool"))
    );
    let sent = sim.attempt(1).json();
    assert_eq!(sent["tool_choice"], "REQUIRED");
    assert_eq!(
        sent["tools"][0]["function"]["parameters"],
        json!({"type": "object", "properties": {}})
    );

    // A tool by name is the only one offered.
    body["tools"] = json!([
        {"type": "function", "function": {"name": "weather"}},
        {"type": "function", "function": {"name": "news"}},
    ]);
    body["tool_choice"] = json!({"type": "function", "function": {"name": "news"}});
    assert_eq!(send(&gateway, CHAT, &body).await.status, 200);
    let sent = sim.attempt(2).json();
    assert_eq!(sent["tools"].as_array().map(Vec::len), Some(1));
    assert_eq!(sent["tools"][0]["function"]["name"], "news");
    as_scripted(&sim);
}

#[tokio::test]
async fn streams_are_translated_however_they_are_cut() {
    for size in [1, 13, 4096] {
        for path in [CHAT, MESSAGES] {
            let text = stream(recorded!("streams/text.sse"), size);
            let tools = stream(recorded!("streams/tools.sse"), size);
            let empty = stream(recorded!("streams/empty-arguments.sse"), size);
            let script = Script::new().step(text).step(tools).step(empty);
            let (sim, gateway) = start(script).await;
            let answer = send(&gateway, path, &ask_stream(MODEL)).await;
            let (words, arguments) = if path == CHAT {
                (
                    "/choices/0/delta/content",
                    "/choices/0/delta/tool_calls/0/function/arguments",
                )
            } else {
                ("/delta/text", "/delta/partial_json")
            };
            assert!(joined(&answer, words).starts_with("Sure! Here's counting from 1 to 3:"));
            assert!(answer.events().last().is_some_and(|last| last.is_end()));

            let answer = send(&gateway, path, &ask_stream(MODEL)).await;
            let said = joined(&answer, arguments);
            let cities: Vec<Value> = serde_json::Deserializer::from_str(&said)
                .into_iter()
                .collect::<Result<_, _>>()
                .expect("two calls");
            assert_eq!(cities.len(), 2);
            assert!(answer.text().contains("get_weather"));

            // A stream without its end marker, a call without its arguments.
            let answer = send(&gateway, path, &ask_stream(MODEL)).await;
            assert_eq!(joined(&answer, arguments), "{}");
            assert!(answer.events().last().is_some_and(|last| last.is_end()));
            as_scripted(&sim);
        }
    }
}

#[tokio::test]
async fn an_error_in_the_last_event_is_a_failure() {
    let failed = stream(recorded!("streams/error-end.sse"), 64);
    let (sim, gateway) = start(Script::new().step(failed)).await;
    let answer = send(&gateway, CHAT, &ask_stream(MODEL)).await;
    assert!(answer.status >= 500, "{}", answer.text());
    as_scripted(&sim);

    let later = Step::sse([
        Item::data(json!({"type": "content-delta", "index": 0,
            "delta": {"message": {"content": {"text": "half"}}}})),
        Item::data(json!({"type": "message-end",
            "delta": {"finish_reason": "ERROR", "error": "internal server error"}})),
        Item::done(),
    ]);
    let (sim, gateway) = start(Script::new().step(later)).await;
    let answer = send(&gateway, CHAT, &ask_stream(MODEL)).await;
    assert!(answer.events().last().is_some_and(|last| last.is_error()));
    assert!(!answer.text().contains("[DONE]"));
    assert_eq!(gateway.record(answer.id()).await.terminal, "partial");
    as_scripted(&sim);
}

#[tokio::test]
async fn errors_are_known_by_their_words() {
    for (status, body, class) in [
        (400, recorded!("errors/context.json"), "caller_fault"),
        (401, recorded!("errors/invalid-key.json"), "credential"),
        (
            429,
            r#"{"id":"x","message":"too many requests"}"#,
            "rate_limit",
        ),
    ] {
        let (sim, gateway) = start(Script::new().step(whole(status, body))).await;
        let answer = send(&gateway, CHAT, &ask(MODEL)).await;
        assert_eq!(answer.status, status);
        assert_eq!(answer.trail()[0]["failure_class"], class);
        assert!(answer.json()["error"]["message"].is_string());
        as_scripted(&sim);
    }
}

#[tokio::test]
async fn results_of_tools_travel_back() {
    let (sim, gateway) =
        start(Script::new().step(whole(200, recorded!("answers/citations.json")))).await;
    let mut body = ask(MODEL);
    body["messages"] = json!([
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Roll."},
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": "dice_1", "type": "function", "function": {"name": "dice", "arguments": ""}}]},
        {"role": "tool", "tool_call_id": "dice_1", "content": "3"},
    ]);
    let answer = send(&gateway, CHAT, &body).await;
    assert!(answer.said().starts_with("Here are the results"));
    assert_eq!(
        sim.attempt(1).json()["messages"],
        json!([
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Roll."},
            {"role": "assistant", "tool_calls": [
                {"id": "dice_1", "type": "function", "function": {"name": "dice", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "dice_1", "content": "3"},
        ])
    );
    as_scripted(&sim);
}

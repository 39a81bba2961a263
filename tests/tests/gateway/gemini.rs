//! Callers of other dialects, served by Google's; and Google's, served by others.

use backstop_faultsim::{End, Item, Script, Sim, Step};
use backstop_tests::{Answer, TestGateway, secret};
use serde_json::{Value, json};

use crate::common::{as_scripted, ask, ask_stream, both_dialects, one, provider, untouched};

const CHAT: &str = "/v1/chat/completions";
const MESSAGES: &str = "/v1/messages";
const MODEL: &str = "gemini/gemini-2.5-flash";

/// What Google's API said once, from the fixtures of its dialect.
macro_rules! recorded {
    ($file:literal) => {
        include_str!(concat!("../../../crates/dialects/fixtures/gemini/", $file))
    };
}

async fn start(script: Script) -> (Sim, TestGateway) {
    start_with(script, "").await
}

async fn start_with(script: Script, more: &str) -> (Sim, TestGateway) {
    let sim = provider(script).await;
    let gateway = TestGateway::start(&(one("gemini") + more), &[("gemini", &sim)]).await;
    (sim, gateway)
}

fn whole(body: &str) -> Step {
    Step::text(200, body).header("content-type", "application/json; charset=UTF-8")
}

/// A stream in pieces of `size` bytes.
fn stream(body: &'static str, size: usize) -> Step {
    let pieces = body.as_bytes().chunks(size);
    Step::sse(pieces.map(Item::raw))
}

async fn send(gateway: &TestGateway, path: &str, body: &Value) -> Answer {
    gateway.post(path, body.to_string()).send().await
}

/// All words of a stream, in either dialect.
fn streamed(answer: &Answer) -> String {
    let mut text = String::new();
    for event in answer.events().iter().filter(|event| !event.is_end()) {
        let event = event.json();
        let openai = &event["choices"][0]["delta"]["content"];
        let anthropic = &event["delta"]["text"];
        text += openai.as_str().or(anthropic.as_str()).unwrap_or_default();
    }
    text
}

#[tokio::test]
async fn a_question_reaches_its_model_and_the_answer_its_caller() {
    let answer = whole(recorded!("answers/text.json"));
    let (sim, gateway) = start(Script::new().step(answer.repeat(2))).await;
    let openai = send(&gateway, CHAT, &ask(MODEL)).await;
    assert_eq!(openai.said(), "2 + 2 = **4**");
    let body = openai.json();
    assert_eq!(body["choices"][0]["finish_reason"], "stop");
    assert_eq!(body["usage"]["prompt_tokens"], 10);
    assert_eq!(body["usage"]["completion_tokens"], 31);
    assert_eq!(
        body["usage"]["completion_tokens_details"]["reasoning_tokens"],
        23
    );
    let anthropic = send(&gateway, MESSAGES, &ask(MODEL)).await.json();
    assert_eq!(anthropic["content"][0]["text"], "2 + 2 = **4**");
    assert_eq!(anthropic["stop_reason"], "end_turn");
    assert_eq!(anthropic["usage"]["output_tokens"], 31);
    let attempt = sim.attempt(1);
    assert_eq!(
        attempt.path(),
        "/v1beta/models/gemini-2.5-flash:generateContent"
    );
    assert_eq!(
        attempt.header("x-goog-api-key"),
        Some(secret("GEMINI_KEY_1").as_str())
    );
    assert_eq!(attempt.header("authorization"), None);
    assert_eq!(
        attempt.json(),
        json!({
            "contents": [{"role": "user", "parts": [{"text": "Say something."}]}],
            "generationConfig": {"maxOutputTokens": 64},
        })
    );
    as_scripted(&sim);
}

#[tokio::test]
async fn a_stream_is_translated_however_it_is_cut() {
    const STREAM: &str = recorded!("streams/text.sse");
    for size in [1, 7, 4096] {
        for path in [CHAT, MESSAGES] {
            let (sim, gateway) = start(Script::new().step(stream(STREAM, size))).await;
            let mut body = ask_stream(MODEL);
            if path == CHAT {
                body["stream_options"] = json!({"include_usage": true});
            }
            let answer = send(&gateway, path, &body).await;
            assert_eq!(answer.status, 200, "{}", answer.text());
            assert!(streamed(&answer).starts_with("Clementine was no ordinary calico."));
            let events = answer.events();
            assert!(events.last().is_some_and(|last| last.is_end()), "{path}");
            assert!(answer.text().contains("usage"));
            let attempt = sim.attempt(1);
            assert_eq!(
                attempt.path(),
                "/v1beta/models/gemini-2.5-flash:streamGenerateContent"
            );
            assert_eq!(attempt.query(), Some("alt=sse"));
            assert_eq!(attempt.json().get("stream"), None);
            as_scripted(&sim);
        }
    }
}

#[tokio::test]
async fn a_stream_that_is_one_array_is_read_as_well() {
    let body = "[{\"candidates\": [{\"content\": {\"parts\": [{\"text\": \"one \"}]}}]}\r\n,\r\n\
        {\"candidates\": [{\"content\": {\"parts\": [{\"text\": \"two\"}]},\"finishReason\": \"STOP\"}]}\n]";
    let pieces = body.as_bytes().chunks(5);
    let step = Step::sse(pieces.map(Item::raw)).header("content-type", "application/json");
    let (sim, gateway) = start(Script::new().step(step)).await;
    let answer = send(&gateway, CHAT, &ask_stream(MODEL)).await;
    assert_eq!(streamed(&answer), "one two");
    assert!(answer.events().last().is_some_and(|last| last.is_end()));
    as_scripted(&sim);
}

#[tokio::test]
async fn signed_calls_come_back_as_they_were() {
    const STREAM: &str = recorded!("streams/thinking-tools.sse");
    let text = whole(recorded!("answers/text.json"));
    let script = Script::new().step(stream(STREAM, 99)).step(text);
    let (sim, gateway) = start(script).await;
    let mut body = ask_stream("gemini/gemini-3.5-flash");
    body["tools"] = json!([{"type": "function", "function": {"name": "get_weather"}}]);
    let answer = send(&gateway, CHAT, &body).await;
    let mut calls = [
        (String::new(), String::new()),
        (String::new(), String::new()),
    ];
    let mut finish = Value::Null;
    for event in answer.events().iter().filter(|event| !event.is_end()) {
        let choice = event.json()["choices"][0].clone();
        if choice["finish_reason"].is_string() {
            finish = choice["finish_reason"].clone();
        }
        for call in choice["delta"]["tool_calls"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let place = usize::try_from(call["index"].as_u64().expect("a number")).expect("small");
            calls[place].0 += call["id"].as_str().unwrap_or_default();
            calls[place].1 += call["function"]["arguments"].as_str().unwrap_or_default();
        }
    }
    assert_eq!(finish, "tool_calls");
    let cities = calls.each_ref().map(|(_, arguments)| {
        serde_json::from_str::<Value>(arguments).expect("whole JSON")["location"].clone()
    });
    assert_eq!(cities, ["Boston", "New Delhi"]);

    let said = |place: usize| {
        let (id, arguments) = &calls[place];
        json!({"id": id, "type": "function", "function": {"name": "get_weather", "arguments": arguments}})
    };
    let result =
        |place: usize| json!({"role": "tool", "tool_call_id": calls[place].0, "content": "rain"});
    let mut next = ask("gemini/gemini-3.5-flash");
    next["tools"] = body["tools"].clone();
    next["messages"] = json!([
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "content": null, "tool_calls": [said(0), said(1)]},
        result(0), result(1),
    ]);
    assert_eq!(send(&gateway, CHAT, &next).await.status, 200);
    let sent = sim.attempt(2).json();
    let parts = &sent["contents"][1]["parts"];
    let signature = parts[0]["thoughtSignature"].as_str().expect("a signature");
    assert!(STREAM.contains(&format!("\"thoughtSignature\": \"{signature}\"")));
    assert_eq!(parts[0]["functionCall"]["id"], "dv8szvqe");
    assert_eq!(parts[1].get("thoughtSignature"), None);
    let results = &sent["contents"][2]["parts"];
    assert_eq!(results[0]["functionResponse"]["id"], "dv8szvqe");
    assert_eq!(results[1]["functionResponse"]["id"], "j80tal12");
    as_scripted(&sim);
}

#[tokio::test]
async fn a_withheld_answer_is_a_result_and_not_a_failure() {
    for body in [
        recorded!("answers/safety.json"),
        recorded!("answers/prompt-blocked.json"),
        recorded!("answers/answer-blocked.json"),
    ] {
        let (sim, gateway) = start(Script::new().step(whole(body).repeat(2))).await;
        let openai = send(&gateway, CHAT, &ask(MODEL)).await;
        assert_eq!(openai.status, 200);
        let choice = &openai.json()["choices"][0];
        assert_eq!(choice["finish_reason"], "content_filter");
        assert_eq!(gateway.record(openai.id()).await.terminal, "success");
        let anthropic = send(&gateway, MESSAGES, &ask(MODEL)).await;
        assert_eq!(anthropic.json()["stop_reason"], "refusal");
        as_scripted(&sim);
    }
    let blocked = Item::data(json!({"promptFeedback": {"blockReason": "SAFETY"}}));
    let (sim, gateway) = start(Script::new().step(Step::sse([blocked]))).await;
    let answer = send(&gateway, CHAT, &ask_stream(MODEL)).await;
    assert_eq!(answer.status, 200);
    assert!(answer.text().contains("content_filter"));
    assert!(answer.events().last().is_some_and(|last| last.is_end()));
    as_scripted(&sim);
}

#[tokio::test]
async fn the_hint_in_a_rate_limit_is_told_and_kept() {
    let limited = Step::text(429, recorded!("errors/retry-info.json"))
        .header("content-type", "application/json");
    let (sim, gateway) = start(Script::new().step(limited.repeat(2))).await;
    for path in [CHAT, MESSAGES] {
        let answer = send(&gateway, path, &ask(MODEL)).await;
        assert_eq!(answer.status, 429);
        assert_eq!(answer.header("retry-after"), "48");
        // The second time a row before it says that the key is held.
        let row = answer.trail().pop().expect("a row");
        assert_eq!(row["failure_class"], "rate_limit");
        assert_eq!(row["retry_after_ms"], 48_000);
    }
    as_scripted(&sim);
}

#[tokio::test]
async fn a_bad_key_is_known_although_its_status_is_400() {
    let refused = Step::text(400, recorded!("errors/invalid-key.json"))
        .header("content-type", "application/json");
    let (sim, gateway) = start(Script::new().step(refused)).await;
    let answer = send(&gateway, CHAT, &ask(MODEL)).await;
    assert_eq!(answer.trail()[0]["failure_class"], "credential");
    as_scripted(&sim);
}

#[tokio::test]
async fn an_error_before_output_is_a_status_and_after_it_an_event() {
    let first = stream(recorded!("streams/error-first.sse"), 64);
    let (sim, gateway) = start(Script::new().step(first)).await;
    let answer = send(&gateway, CHAT, &ask_stream(MODEL)).await;
    assert!(answer.status >= 400, "{}", answer.text());
    as_scripted(&sim);

    for path in [CHAT, MESSAGES] {
        // Bare JSON, without `data:`.
        let later = stream(recorded!("streams/error-bare.sse"), 11);
        let (sim, gateway) = start(Script::new().step(later)).await;
        let answer = send(&gateway, path, &ask_stream(MODEL)).await;
        assert_eq!(answer.status, 200);
        assert_eq!(streamed(&answer), "Okay");
        let events = answer.events();
        let last = events.last().expect("an error");
        assert!(last.is_error(), "{}", answer.text());
        assert_eq!(gateway.record(answer.id()).await.terminal, "partial");
        as_scripted(&sim);
    }
}

#[tokio::test]
async fn a_stream_without_its_finish_never_looks_finished() {
    let cut = Step::sse([Item::data(
        json!({"candidates": [{"content": {"parts": [{"text": "half"}]}}]}),
    )]);
    for step in [cut.clone(), cut.then(End::Cut)] {
        let (sim, gateway) = start(Script::new().step(step)).await;
        let answer = send(&gateway, CHAT, &ask_stream(MODEL)).await;
        assert_eq!(streamed(&answer), "half");
        assert!(answer.events().last().is_some_and(|last| last.is_error()));
        assert!(!answer.text().contains("[DONE]"));
        as_scripted(&sim);
    }
}

#[tokio::test]
async fn what_google_cannot_carry_goes_elsewhere_or_is_named() {
    let (sim, gateway) = start(Script::new()).await;
    let mut body = ask(MODEL);
    body["messages"] = json!([{"role": "user", "content": [
        {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}]}]);
    let refused = send(&gateway, CHAT, &body).await;
    assert!((400..500).contains(&refused.status), "{}", refused.text());
    assert!(refused.text().contains("image_urls"), "{}", refused.text());
    as_scripted(&sim);

    let lossy = "[routes.chat]\nlossy = \"drop\"\ngroups = [{ channels = [\"gemini/m\"] }]\n";
    let script = Script::new().step(whole(recorded!("answers/text.json")));
    let (sim, gateway) = start_with(script, lossy).await;
    let mut body = ask("chat");
    body["logit_bias"] = json!({"5": 1});
    let answer = send(&gateway, CHAT, &body).await;
    assert_eq!(
        answer.json()["extra_fields"]["dropped_fields"],
        json!(["logit_bias"])
    );
    as_scripted(&sim);
}

/// A question as Google's clients ask it.
fn question() -> Value {
    json!({
        "contents": [{"role": "user", "parts": [{"text": "Say something."}]}],
        "generationConfig": {"maxOutputTokens": 64},
    })
}

async fn generate(gateway: &TestGateway, model: &str, method: &str, body: &Value) -> Answer {
    let path = format!("/genai/v1beta/models/{model}:{method}");
    let call = gateway.call("POST", &path).body(body.to_string());
    call.header("content-type", "application/json").send().await
}

/// All words of entries in Google's dialect.
fn words(entries: &[Value]) -> String {
    let parts = entries
        .iter()
        .filter_map(|entry| entry["candidates"][0]["content"]["parts"][0]["text"].as_str());
    parts.collect()
}

fn events(answer: &Answer) -> Vec<Value> {
    answer.events().iter().map(|event| event.json()).collect()
}

#[tokio::test]
async fn googles_own_callers_are_passed_through() {
    const TEXT: &str = recorded!("answers/text.json");
    const STREAM: &str = recorded!("streams/text.sse");
    let script = Script::new()
        .step(whole(TEXT))
        .step(stream(STREAM, 77).repeat(2));
    let (sim, gateway) = start(script).await;
    let answer = generate(&gateway, MODEL, "generateContent", &question()).await;
    assert_eq!(answer.text(), TEXT);
    let answer = generate(
        &gateway,
        MODEL,
        "streamGenerateContent?alt=sse",
        &question(),
    )
    .await;
    assert_eq!(answer.text(), STREAM);
    let answer = generate(&gateway, MODEL, "streamGenerateContent", &question()).await;
    assert_eq!(answer.header("content-type"), "application/json");
    let entries = answer.json();
    let entries = entries.as_array().expect("an array");
    assert!(words(entries).starts_with("Clementine was no ordinary calico."));
    for n in 1..=3 {
        assert_eq!(sim.attempt(n).body(), question().to_string().as_bytes());
        let path = sim.attempt(n).path().to_owned();
        assert!(
            path.starts_with("/v1beta/models/gemini-2.5-flash:"),
            "{path}"
        );
    }
    as_scripted(&sim);
}

#[tokio::test]
async fn googles_callers_are_served_by_others() {
    for (name, model) in [
        ("openai", "openai/gpt-4o"),
        ("anthropic", "anthropic/claude-sonnet-4-5"),
    ] {
        let call = Step::tool_call("weather", json!({"city": "Bern"}));
        let script = Script::new()
            .step(Step::ok_text("one two"))
            .step(Step::stream_text(["one ", "two"]).repeat(2))
            .step(call.repeat(2));
        let sim = provider(script).await;
        let other = untouched().await;
        let other_name = if name == "openai" {
            "anthropic"
        } else {
            "openai"
        };
        let sims = [(name, &sim), (other_name, &other)];
        let gateway = TestGateway::start(&both_dialects(), &sims).await;

        let answer = generate(&gateway, model, "generateContent", &question()).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let body = answer.json();
        assert_eq!(words(std::slice::from_ref(&body)), "one two");
        assert_eq!(body["candidates"][0]["finishReason"], "STOP");
        assert!(body["usageMetadata"]["promptTokenCount"].is_u64());
        assert_eq!(sim.attempt(1).json()["stream"], Value::Null);

        let answer = generate(
            &gateway,
            model,
            "streamGenerateContent?alt=sse",
            &question(),
        )
        .await;
        let all = events(&answer);
        assert_eq!(words(&all), "one two");
        let last = all.last().expect("a finish");
        assert_eq!(last["candidates"][0]["finishReason"], "STOP");
        assert!(last["usageMetadata"]["candidatesTokenCount"].is_u64());
        assert_eq!(sim.attempt(2).json()["stream"], true);
        let answer = generate(&gateway, model, "streamGenerateContent", &question()).await;
        let body = answer.json();
        assert_eq!(words(body.as_array().expect("an array")), "one two");

        let mut ask = question();
        ask["tools"] = json!([{"functionDeclarations": [{"name": "weather",
            "parameters": {"type": "OBJECT", "properties": {"city": {"type": "STRING"}}}}]}]);
        let whole = generate(&gateway, model, "generateContent", &ask)
            .await
            .json();
        let stream = generate(&gateway, model, "streamGenerateContent", &ask)
            .await
            .json();
        let streamed = stream.as_array().expect("an array").iter();
        let streamed: Vec<&Value> = streamed
            .map(|entry| &entry["candidates"][0]["content"]["parts"][0])
            .filter(|part| part.get("functionCall").is_some())
            .collect();
        assert_eq!(streamed.len(), 1);
        for part in [&whole["candidates"][0]["content"]["parts"][0], streamed[0]] {
            let call = &part["functionCall"];
            assert_eq!(call["name"], "weather");
            assert_eq!(call["args"], json!({"city": "Bern"}));
            assert!(call["id"].is_string());
        }
        assert!(
            sim.attempt(4)
                .json()
                .to_string()
                .contains(r#"{"type":"string"}"#)
        );
        as_scripted(&sim);
    }
}

#[tokio::test]
async fn googles_callers_are_told_of_errors_in_their_shape() {
    let broken = Step::stream_text(["half"]).then(End::Cut);
    let limited = Step::fault(backstop_faultsim::Fault::RateLimited);
    let sim = provider(Script::new().step(limited).step(broken.repeat(2))).await;
    let gateway = TestGateway::start(&one("openai"), &[("openai", &sim)]).await;
    let model = "openai/gpt-4o";
    let answer = generate(&gateway, model, "generateContent", &question()).await;
    assert_eq!(answer.status, 429);
    let error = &answer.json()["error"];
    assert_eq!(error["code"], 429);
    assert_eq!(error["status"], "RESOURCE_EXHAUSTED");
    for method in ["streamGenerateContent?alt=sse", "streamGenerateContent"] {
        let answer = generate(&gateway, model, method, &question()).await;
        let all = if method.ends_with("sse") {
            events(&answer)
        } else {
            answer.json().as_array().expect("an array").clone()
        };
        assert_eq!(words(&all), "half");
        assert!(
            all.last()
                .is_some_and(|last| last["error"]["status"].is_string())
        );
        assert!(!answer.text().contains("finishReason"));
    }
    for (path, status) in [
        ("nowhere:generateContent", 404),
        ("fast:countTokens", 404),
        ("%zz:generateContent", 404),
    ] {
        let (model, method) = path.split_once(':').expect("both");
        let answer = generate(&gateway, model, method, &question()).await;
        assert_eq!(answer.status, status, "{path}");
        assert!(answer.json()["error"]["status"].is_string(), "{path}");
    }
    as_scripted(&sim);
}

//! Callers of `/v1/responses`: a provider that speaks it too, and providers that do not.

use backstop_faultsim::{End, Fault, Item, Script, Sim, Step};
use backstop_tests::{Answer, Event, TestGateway};
use serde_json::{Value, json};

use crate::common::{as_scripted, both_dialects, one, provider, untouched, with_backup};

const PATH: &str = "/v1/responses";

/// What was recorded of services that speak the dialect.
macro_rules! recorded {
    ($name:literal) => {
        include_bytes!(concat!(
            "../../../crates/dialects/fixtures/openai-responses/",
            $name
        ))
        .as_slice()
    };
}

fn ask(model: &str) -> Value {
    json!({"model": model, "input": "Say something.", "store": false})
}

fn ask_stream(model: &str) -> Value {
    let mut body = ask(model);
    body["stream"] = true.into();
    body
}

fn stream(bytes: &'static [u8]) -> Step {
    Step::sse([Item::raw(bytes)])
}

fn whole(bytes: &[u8]) -> Step {
    Step::json(
        200,
        serde_json::from_slice(bytes).expect("a recorded answer"),
    )
}

async fn send(gateway: &TestGateway, body: &Value) -> Answer {
    gateway.post(PATH, body.to_string()).send().await
}

/// The provider `name` and the gateway before it.
async fn start(name: &str, script: Script) -> (Sim, TestGateway) {
    let sim = provider(script).await;
    let gateway = TestGateway::start(&one(name), &[(name, &sim)]).await;
    (sim, gateway)
}

/// Providers that do not speak the dialect, each with a model.
const OTHERS: [(&str, &str); 2] = [
    ("anthropic", "anthropic/claude-sonnet-4-5"),
    ("backup", "backup/small"),
];

fn kinds(events: &[Event]) -> Vec<String> {
    let kind = |event: &Event| event.json()["type"].as_str().map(str::to_owned);
    events.iter().filter_map(kind).collect()
}

/// The text that the deltas come to.
fn heard(answer: &Answer) -> String {
    let events = answer.events();
    let deltas = events.iter().map(Event::json);
    deltas
        .filter(|data| data["type"] == "response.output_text.delta")
        .filter_map(|data| data["delta"].as_str().map(str::to_owned))
        .collect()
}

#[tokio::test]
async fn an_answer_in_the_same_dialect_is_passed_through() {
    for path in [PATH, "/openai/v1/responses"] {
        let recorded = recorded!("answers/reasoning-encrypted.json");
        let (openai, gateway) = start("openai", Script::new().step(whole(recorded))).await;
        let body = r#"{ "model":"openai/gpt-5", "input": [ {"role":"user","content":"h\u0069"} ],
            "store":false, "x_unknown": 1.50}"#;
        let answer = gateway.post(path, body).send().await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let mut told = answer.json();
        let extra = told
            .as_object_mut()
            .expect("an object")
            .remove("extra_fields");
        let want: Value = serde_json::from_slice(recorded).expect("JSON");
        assert_eq!(told, want);
        assert_eq!(extra.expect("extra fields")["provider"], "openai");
        let sent = openai.attempt(1);
        assert_eq!(sent.path(), "/v1/responses");
        let sent = std::str::from_utf8(sent.body()).expect("text").to_owned();
        assert_eq!(sent, body.replace("openai/gpt-5", "gpt-5"));
        as_scripted(&openai);
    }
}

#[tokio::test]
async fn a_stream_in_the_same_dialect_is_passed_through() {
    for bytes in [
        recorded!("streams/text.sse"),
        recorded!("streams/reasoning-item.sse"),
        recorded!("streams/parallel-tools.sse"),
        recorded!("streams/web-search.sse"),
        recorded!("streams/keepalive.sse"),
        recorded!("streams/no-event-lines.sse"),
        recorded!("streams/incomplete.sse"),
        recorded!("streams/only-at-the-end.sse"),
    ] {
        let (openai, gateway) = start("openai", Script::new().step(stream(bytes))).await;
        let answer = send(&gateway, &ask_stream("openai/gpt-5")).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert!(
            answer
                .header("content-type")
                .starts_with("text/event-stream")
        );
        assert_eq!(answer.text().as_bytes(), bytes);
        let record = gateway.record(answer.id()).await;
        assert_eq!(record.terminal, "success", "{record:?}");
        as_scripted(&openai);
    }
}

#[tokio::test]
async fn an_answer_of_another_dialect_comes_in_the_callers() {
    for (name, model) in OTHERS {
        let script = Script::new().step(Step::ok_text("bonjour"));
        let (sim, gateway) = start(name, script).await;
        let body = json!({
            "model": model, "instructions": "Be brief.", "max_output_tokens": 64,
            "input": [
                {"role": "user", "content": "Hi"},
                {"type": "message", "role": "assistant", "content": [
                    {"type": "output_text", "text": "Hello", "annotations": []}]},
                {"role": "user", "content": [{"type": "input_text", "text": "In French?"}]},
            ],
        });
        let answer = send(&gateway, &body).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let told = answer.json();
        assert_eq!(
            (&told["object"], &told["status"]),
            (&json!("response"), &json!("completed"))
        );
        assert_eq!(told["output"][0]["type"], "message");
        assert_eq!(told["output"][0]["content"][0]["text"], "bonjour");
        assert_eq!(told["store"], false, "nothing is kept anywhere");
        assert!(
            told["usage"]["input_tokens"]
                .as_u64()
                .is_some_and(|count| count > 0)
        );
        assert_eq!(told["usage"]["output_tokens"], 2);
        assert_eq!(told["extra_fields"]["provider"], name);
        let sent = sim.attempt(1).json();
        assert!(sent.to_string().contains("Be brief."), "{sent}");
        let turns = sent["messages"].as_array().expect("turns");
        let roles: Vec<&Value> = turns.iter().map(|turn| &turn["role"]).collect();
        let talk = &roles[roles.len() - 3..];
        assert_eq!(talk, ["user", "assistant", "user"], "{sent}");
        assert_eq!(sent["max_tokens"], 64);
        assert_eq!(sent.get("store"), None);
    }
}

#[tokio::test]
async fn a_stream_of_another_dialect_has_this_ones_grammar() {
    for (name, model) in OTHERS {
        let script = Script::new().step(Step::stream_text(["Hel", "lo ", "wörld"]));
        let (_sim, gateway) = start(name, script).await;
        let answer = send(&gateway, &ask_stream(model)).await;
        assert_eq!(heard(&answer), "Hello wörld", "{}", answer.text());
        let events = answer.events();
        for (number, event) in (0..).zip(&events) {
            assert_eq!(event.event.as_deref(), event.json()["type"].as_str());
            assert_eq!(event.json()["sequence_number"], json!(number));
        }
        let kinds = kinds(&events);
        assert_eq!(
            kinds[..4],
            [
                "response.created",
                "response.in_progress",
                "response.output_item.added",
                "response.content_part.added",
            ]
        );
        assert_eq!(
            kinds[kinds.len() - 4..],
            [
                "response.output_text.done",
                "response.content_part.done",
                "response.output_item.done",
                "response.completed",
            ]
        );
        let last = events.last().expect("an event").json();
        assert_eq!(
            last["response"]["output"][0]["content"][0]["text"],
            "Hello wörld"
        );
        assert!(
            last["response"]["usage"]["output_tokens"]
                .as_u64()
                .is_some_and(|n| n > 0)
        );
        let ids: Vec<Value> = [&events[0].json(), &last]
            .map(|data| data["response"]["id"].clone())
            .into();
        assert_eq!(ids[0], ids[1]);
    }
}

#[tokio::test]
async fn tools_travel_both_ways() {
    let tools = json!([{"type": "function", "name": "weather", "parameters": {
        "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"],
    }}]);
    for (name, model) in OTHERS {
        let call = Step::tool_call("weather", json!({"city": "Zürich"}));
        let script = Script::new()
            .step(call.clone())
            .step(call)
            .step(Step::ok_text("It rains."));
        let (sim, gateway) = start(name, script).await;
        let mut body = ask(model);
        body["tools"] = tools.clone();
        let answer = send(&gateway, &body).await;
        let told = answer.json();
        let item = &told["output"][0];
        assert_eq!(item["type"], "function_call", "{}", answer.text());
        assert_eq!(item["name"], "weather");
        let arguments = |item: &Value| -> Value {
            serde_json::from_str(item["arguments"].as_str().expect("text")).expect("JSON")
        };
        assert_eq!(arguments(item), json!({"city": "Zürich"}));

        body["stream"] = true.into();
        let answer = send(&gateway, &body).await;
        let events = answer.events();
        let mut pieces = String::new();
        for event in &events {
            let data = event.json();
            if data["type"] == "response.function_call_arguments.delta" {
                pieces += data["delta"].as_str().expect("text");
            }
        }
        let pieces: Value = serde_json::from_str(&pieces).expect("whole JSON");
        assert_eq!(pieces, json!({"city": "Zürich"}));
        let last = events.last().expect("an event").json();
        assert_eq!(
            arguments(&last["response"]["output"][0]),
            json!({"city": "Zürich"})
        );

        let mut body = ask(model);
        body["tools"] = tools.clone();
        body["input"] = json!([
            {"role": "user", "content": "Weather?"},
            item,
            {"type": "function_call_output", "call_id": item["call_id"], "output": "rain"},
        ]);
        let answer = send(&gateway, &body).await;
        assert_eq!(
            answer.json()["output"][0]["content"][0]["text"],
            "It rains."
        );
        let sent = sim.attempt(3).json();
        assert_eq!(sent["messages"].as_array().map(Vec::len), Some(3), "{sent}");
        let result = sent["messages"][2].to_string();
        assert!(result.contains("rain"), "{sent}");
        let id = item["call_id"].as_str().expect("an id");
        assert!(
            sent["messages"][1].to_string().contains(id) && result.contains(id),
            "{sent}"
        );
        as_scripted(&sim);
    }
}

#[tokio::test]
async fn an_error_before_output_is_no_200() {
    for (bytes, status) in [
        (recorded!("streams/error-first.sse"), 429),
        (recorded!("streams/failed-null.sse"), 429),
        (recorded!("streams/failed-silent.sse"), 503),
    ] {
        let (_openai, gateway) = start("openai", Script::new().step(stream(bytes).always())).await;
        let answer = send(&gateway, &ask_stream("openai/gpt-5")).await;
        println!("{status}: {}", answer.text());
        assert!(
            answer
                .header("content-type")
                .starts_with("application/json")
        );
        assert!(answer.json()["error"]["message"].is_string());
        assert_eq!(answer.json()["request_id"], answer.id());
        assert!((400..600).contains(&answer.status), "{}", answer.status);
        assert_eq!(answer.status, status, "{}", answer.text());
    }
    for (name, model) in OTHERS {
        let step = Step::stream_fault([""; 0], Fault::Overloaded);
        let (_sim, gateway) = start(name, Script::new().step(step)).await;
        let answer = send(&gateway, &ask_stream(model)).await;
        assert!(answer.status > 400, "{}", answer.text());
        assert!(answer.json()["error"]["message"].is_string());
    }
}

#[tokio::test]
async fn what_breaks_after_output_ends_in_an_error_event() {
    let text = recorded!("streams/text.sse");
    let done = b"event: response.output_text.done";
    let end = text.windows(done.len()).position(|window| window == done);
    let half = &text[..end.expect("an end of the text")];
    for (name, model, step) in [
        ("openai", "openai/gpt-5", stream(half)),
        ("openai", "openai/gpt-5", stream(half).then(End::Cut)),
        (
            "openai",
            "openai/gpt-5",
            stream(recorded!("streams/failed-after-text.sse")),
        ),
        (
            "anthropic",
            "anthropic/claude",
            Step::stream_text(["Half"]).then(End::Cut),
        ),
        (
            "backup",
            "backup/small",
            Step::stream_fault(["Half"], Fault::ServerError),
        ),
    ] {
        let (sim, gateway) = start(name, Script::new().step(step)).await;
        let answer = send(&gateway, &ask_stream(model)).await;
        assert_eq!(answer.status, 200);
        assert!(!heard(&answer).is_empty(), "{}", answer.text());
        let events = answer.events();
        let last = events.last().expect("an event");
        assert_eq!(last.event.as_deref(), Some("error"), "{}", answer.text());
        let data = last.json();
        assert_eq!(data["type"], "error");
        assert!(data["message"].is_string() && data["error"]["message"].is_string());
        let kinds = kinds(&events);
        assert!(!kinds.iter().any(|kind| kind == "response.completed"));
        assert!(!kinds.iter().any(|kind| kind == "response.failed"));
        assert_eq!(sim.attempt_count(), 1, "nothing is replayed after output");
    }
}

#[tokio::test]
async fn what_a_provider_keeps_is_not_asked_for_twice() {
    let recorded = recorded!("answers/text.json");
    for (member, key, sends) in [
        (json!(null), None, 1),
        (json!(true), None, 1),
        (json!(false), None, 2),
        (json!(null), Some("mine-1"), 2),
    ] {
        let script = Script::new()
            .step(Step::fault(Fault::ServerError))
            .step(whole(recorded));
        let openai = provider(script).await;
        let config = one("openai").replace("retry_backoff", "max_retries = 1, retry_backoff");
        let gateway = TestGateway::start(&config, &[("openai", &openai)]).await;
        let mut body = ask("openai/gpt-5");
        body["store"] = member;
        let mut call = gateway.post(PATH, body.to_string());
        if let Some(key) = key {
            call = call.header("idempotency-key", key);
        }
        let answer = call.send().await;
        assert_eq!(openai.attempt_count(), sends, "{key:?}: {}", answer.text());
        assert_eq!(answer.status, if sends == 2 { 200 } else { 500 });
        if key.is_some() {
            assert_eq!(openai.attempt(1).header("idempotency-key"), key);
        }
    }
    // A provider that is spoken to in another dialect keeps nothing.
    let script = Script::new()
        .step(Step::fault(Fault::ServerError))
        .step(Step::ok_text("again"));
    let sim = provider(script).await;
    let config = one("anthropic").replace("retry_backoff", "max_retries = 1, retry_backoff");
    let gateway = TestGateway::start(&config, &[("anthropic", &sim)]).await;
    let answer = send(
        &gateway,
        &json!({"model": "anthropic/claude", "input": "Hi"}),
    )
    .await;
    assert_eq!((answer.status, sim.attempt_count()), (200, 2));
}

#[tokio::test]
async fn state_is_asked_for_where_it_is_kept() {
    let openai = provider(Script::new().step(Step::fault(Fault::RateLimited).always())).await;
    let (anthropic, xai) = (untouched().await, untouched().await);
    let config = both_dialects()
        + &one("xai")
        + "[routes]\nany = [\"anthropic/claude\", \"openai/gpt-5\", \"xai/grok\"]\n";
    let sims = [
        ("openai", &openai),
        ("anthropic", &anthropic),
        ("xai", &xai),
    ];
    let gateway = TestGateway::start(&config, &sims).await;
    let mut body = ask("any");
    body["previous_response_id"] = "resp_1".into();
    let answer = send(&gateway, &body).await;
    assert_eq!(answer.status, 429, "{}", answer.text());
    assert_eq!(openai.attempt_count(), 1);
    assert_eq!((anthropic.attempt_count(), xai.attempt_count()), (0, 0));
    body["model"] = "anthropic/claude".into();
    let answer = send(&gateway, &body).await;
    assert_eq!(answer.status, 400, "{}", answer.text());
    assert_eq!(answer.code(), "contract_not_served");
    assert!(answer.text().contains("stored_state"), "{}", answer.text());
}

#[tokio::test]
async fn a_fallback_may_speak_another_dialect() {
    let openai = provider(Script::new().step(stream(recorded!("streams/error-first.sse")))).await;
    let backup = provider(Script::new().step(Step::stream_text(["res", "cued"]))).await;
    let sims = [("openai", &openai), ("backup", &backup)];
    let gateway = TestGateway::start(&with_backup(0), &sims).await;
    let answer = send(&gateway, &ask_stream("chat")).await;
    assert_eq!(heard(&answer), "rescued", "{}", answer.text());
    assert_eq!(answer.header("x-backstop-action"), "fallback");
    as_scripted(&openai);
    as_scripted(&backup);
}

#[tokio::test]
async fn callers_of_other_dialects_are_served_in_the_first() {
    let (openai, gateway) = start("openai", Script::healthy()).await;
    let chat = json!({"model": "openai/gpt-5", "messages": [{"role": "user", "content": "Hi"}]});
    assert_eq!(gateway.chat(chat).await.status, 200);
    let messages = json!({"model": "openai/gpt-5", "max_tokens": 9,
        "messages": [{"role": "user", "content": "Hi"}]});
    assert_eq!(gateway.messages(messages).await.status, 200);
    for number in [1, 2] {
        assert_eq!(openai.attempt(number).path(), "/v1/chat/completions");
    }
}

//! A caller of one dialect, a provider of the other.

use backstop_faultsim::{End, Fault, Item, Script, Sim, Step};
use backstop_tests::{Answer, TestGateway};
use serde_json::{Value, json};

use crate::common::{as_scripted, ask, ask_stream, both_dialects, provider, untouched};

const CHAT: &str = "/v1/chat/completions";
const MESSAGES: &str = "/v1/messages";

/// The provider that speaks the other dialect, and the gateway before it.
async fn start(provider_name: &str, script: Script) -> (Sim, TestGateway) {
    let (sim, other) = (provider(script).await, untouched().await);
    let other_name = if provider_name == "openai" {
        "anthropic"
    } else {
        "openai"
    };
    let sims = [(provider_name, &sim), (other_name, &other)];
    let gateway = TestGateway::start(&both_dialects(), &sims).await;
    (sim, gateway)
}

async fn send(gateway: &TestGateway, path: &str, body: &Value) -> Answer {
    gateway.post(path, body.to_string()).send().await
}

fn weather(dialect: &str) -> Value {
    let schema = json!({
        "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"],
    });
    if dialect == CHAT {
        json!([{"type": "function", "function": {
            "name": "weather", "description": "The weather.", "parameters": schema,
        }}])
    } else {
        json!([{"name": "weather", "description": "The weather.", "input_schema": schema}])
    }
}

#[tokio::test]
async fn an_openai_caller_gets_an_anthropic_answer_in_its_own_shape() {
    let script = Script::new().step(Step::ok_text("bonjour"));
    let (anthropic, gateway) = start("anthropic", script).await;
    let answer = gateway
        .chat(json!({
            "model": "anthropic/claude-sonnet-4-5", "max_tokens": 64, "temperature": 0.5, "stop": ["END"],
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Hi"},
                {"role": "assistant", "content": "Hello"},
                {"role": "user", "content": [{"type": "text", "text": "In French?"}]},
            ],
        }))
        .await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let body = answer.json();
    assert_eq!(body["object"], "chat.completion");
    assert_eq!(body["choices"][0]["message"]["role"], "assistant");
    assert_eq!(body["choices"][0]["message"]["content"], "bonjour");
    assert_eq!(body["choices"][0]["finish_reason"], "stop");
    assert_eq!(body["model"], "claude-sonnet-4-5");
    let usage = &body["usage"];
    assert!(
        usage["prompt_tokens"]
            .as_u64()
            .is_some_and(|tokens| tokens > 0)
    );
    assert_eq!(usage["completion_tokens"], 2);
    let sent = anthropic.attempt(1);
    assert_eq!(sent.path(), "/v1/messages");
    let sent = sent.json();
    assert_eq!(sent["model"], "claude-sonnet-4-5");
    assert_eq!(sent["max_tokens"], 64);
    assert_eq!(sent["temperature"], 0.5);
    assert_eq!(sent["stop_sequences"], json!(["END"]));
    assert!(sent["system"].to_string().contains("Be brief."), "{sent}");
    let turns = sent["messages"].as_array().expect("turns");
    let roles: Vec<&Value> = turns.iter().map(|turn| &turn["role"]).collect();
    assert_eq!(roles, ["user", "assistant", "user"]);
    as_scripted(&anthropic);
}

#[tokio::test]
async fn an_anthropic_caller_gets_an_openai_answer_in_its_own_shape() {
    let script = Script::new().step(Step::ok_text("bonjour"));
    let (openai, gateway) = start("openai", script).await;
    let answer = gateway
        .messages(json!({
            "model": "openai/gpt-4o", "max_tokens": 64, "system": "Be brief.",
            "stop_sequences": ["END"],
            "messages": [
                {"role": "user", "content": "Hi"},
                {"role": "assistant", "content": [{"type": "text", "text": "Hello"}]},
                {"role": "user", "content": [{"type": "text", "text": "In French?"}]},
            ],
        }))
        .await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let body = answer.json();
    assert_eq!(body["type"], "message");
    assert_eq!(body["role"], "assistant");
    assert_eq!(
        body["content"],
        json!([{"type": "text", "text": "bonjour"}])
    );
    assert_eq!(body["stop_reason"], "end_turn");
    assert!(body["id"].is_string());
    assert_eq!(body["usage"]["output_tokens"], 2);
    let sent = openai.attempt(1);
    assert_eq!(sent.path(), "/v1/chat/completions");
    let sent = sent.json();
    let turns = sent["messages"].as_array().expect("turns");
    assert_eq!(turns.len(), 4, "{sent}");
    assert!(matches!(
        turns[0]["role"].as_str(),
        Some("system" | "developer")
    ));
    assert!(sent["stop"].to_string().contains("END"), "{sent}");
    assert!(sent.get("stop_sequences").is_none() && sent.get("system").is_none());
    as_scripted(&openai);
}

#[tokio::test]
async fn tool_calls_arrive_in_the_callers_shape_whole_or_streamed() {
    for (path, name, model) in [
        (CHAT, "anthropic", "anthropic/claude-sonnet-4-5"),
        (MESSAGES, "openai", "openai/gpt-4o"),
    ] {
        let call = Step::tool_call("weather", json!({"city": "Zürich", "days": 2}));
        let (sim, gateway) = start(name, Script::new().step(call.repeat(2))).await;
        let mut body = ask(model);
        body["tools"] = weather(path);
        let answer = send(&gateway, path, &body).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let whole = answer.json();
        let (id, tool, arguments, reason) = if path == CHAT {
            let call = &whole["choices"][0]["message"]["tool_calls"][0];
            let arguments = call["function"]["arguments"].as_str().expect("text");
            let arguments = serde_json::from_str(arguments).expect("JSON");
            let reason = &whole["choices"][0]["finish_reason"];
            (&call["id"], &call["function"]["name"], arguments, reason)
        } else {
            let block = &whole["content"][0];
            assert_eq!(block["type"], "tool_use");
            (
                &block["id"],
                &block["name"],
                block["input"].clone(),
                &whole["stop_reason"],
            )
        };
        assert!(id.as_str().is_some_and(|id| !id.is_empty()));
        assert_eq!(tool, "weather");
        assert_eq!(arguments, json!({"city": "Zürich", "days": 2}));
        assert_eq!(
            reason,
            if path == CHAT {
                "tool_calls"
            } else {
                "tool_use"
            }
        );
        let offered = sim.attempt(1).json()["tools"].clone();
        assert_eq!(offered, weather(if path == CHAT { MESSAGES } else { CHAT }));

        body["stream"] = true.into();
        let answer = send(&gateway, path, &body).await;
        let events: Vec<Value> = answer.events().iter().map(|event| event.json()).collect();
        let mut arguments = String::new();
        for event in &events {
            let openai = &event["choices"][0]["delta"]["tool_calls"][0]["function"]["arguments"];
            let anthropic = &event["delta"]["partial_json"];
            arguments += openai.as_str().or(anthropic.as_str()).unwrap_or_default();
        }
        let arguments: Value = serde_json::from_str(&arguments).expect("whole JSON");
        assert_eq!(arguments, json!({"city": "Zürich", "days": 2}));
        assert!(answer.events().last().is_some_and(|last| last.is_end()));
        assert!(answer.text().contains("weather"));
        as_scripted(&sim);
    }
}

#[tokio::test]
async fn results_of_tools_travel_back() {
    let (anthropic, gateway) = start("anthropic", Script::healthy()).await;
    let mut body = ask("anthropic/claude-sonnet-4-5");
    body["tools"] = weather(CHAT);
    body["messages"] = json!([
        {"role": "user", "content": "Weather in Bern and Rome?"},
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{\"city\":\"Bern\"}"}},
            {"id": "call_2", "type": "function", "function": {"name": "weather", "arguments": "{\"city\":\"Rome\"}"}},
        ]},
        {"role": "tool", "tool_call_id": "call_1", "content": "rain"},
        {"role": "tool", "tool_call_id": "call_2", "content": "sun"},
    ]);
    assert_eq!(send(&gateway, CHAT, &body).await.status, 200);
    let turns = anthropic.attempt(1).json()["messages"].clone();
    assert_eq!(turns.as_array().map(Vec::len), Some(3), "{turns}");
    assert_eq!(turns[1]["content"][0]["type"], "tool_use");
    assert_eq!(turns[1]["content"][1]["input"], json!({"city": "Rome"}));
    assert_eq!(turns[2]["role"], "user");
    assert_eq!(turns[2]["content"][0]["tool_use_id"], "call_1");
    assert_eq!(turns[2]["content"][1]["tool_use_id"], "call_2");

    let (openai, gateway) = start("openai", Script::healthy()).await;
    let mut body = ask("openai/gpt-4o");
    body["tools"] = weather(MESSAGES);
    body["messages"] = json!([
        {"role": "user", "content": "Weather in Bern?"},
        {"role": "assistant", "content": [
            {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Bern"}},
        ]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "toolu_1", "content": "rain"},
            {"type": "text", "text": "So?"},
        ]},
    ]);
    assert_eq!(send(&gateway, MESSAGES, &body).await.status, 200);
    let turns = openai.attempt(1).json()["messages"].clone();
    let roles: Vec<&str> = turns
        .as_array()
        .expect("turns")
        .iter()
        .filter_map(|turn| turn["role"].as_str())
        .collect();
    assert_eq!(roles, ["user", "assistant", "tool", "user"]);
    assert_eq!(turns[2]["tool_call_id"], "toolu_1");
}

#[tokio::test]
async fn a_translated_stream_is_a_sound_one() {
    let step = Step::stream_text(["Hel", "lo ", "wörld"]);
    let (_sim, gateway) = start("anthropic", Script::new().step(step.clone())).await;
    let answer = send(&gateway, CHAT, &ask_stream("anthropic/claude-sonnet-4-5")).await;
    assert_eq!(answer.said(), "Hello wörld", "{}", answer.text());
    let events = answer.events();
    assert_eq!(events.last().map(|last| last.data.as_str()), Some("[DONE]"));
    let chunks: Vec<Value> = events.iter().map(|event| event.json()).collect();
    let finishes: Vec<&Value> = chunks
        .iter()
        .map(|chunk| &chunk["choices"][0]["finish_reason"])
        .filter(|finish| finish.is_string())
        .collect();
    assert_eq!(finishes, ["stop"]);
    assert_eq!(chunks[0]["choices"][0]["delta"]["role"], "assistant");
    for chunk in &chunks[..chunks.len() - 1] {
        assert_eq!(chunk["object"], "chat.completion.chunk", "{chunk}");
        assert_eq!(chunk["id"], chunks[0]["id"]);
        assert!(chunk["created"].is_u64() && chunk["model"].is_string());
    }
    assert!(
        !answer.text().contains("usage\":{"),
        "nobody asked for usage"
    );

    let (_sim, gateway) = start("openai", Script::new().step(step)).await;
    let answer = send(&gateway, MESSAGES, &ask_stream("openai/gpt-4o")).await;
    assert_eq!(answer.said(), "Hello wörld", "{}", answer.text());
    let events = answer.events();
    for event in &events {
        assert_eq!(event.event.as_deref(), event.json()["type"].as_str());
    }
    let kinds: Vec<String> = events
        .iter()
        .filter_map(|event| event.event.clone())
        .filter(|kind| kind != "ping")
        .collect();
    assert_eq!(kinds.first().map(String::as_str), Some("message_start"));
    let tail = &kinds[kinds.len() - 3..];
    assert_eq!(
        tail,
        ["content_block_stop", "message_delta", "message_stop"]
    );
    let delta = events
        .iter()
        .find(|event| event.event.as_deref() == Some("message_delta"));
    let delta = delta.expect("a message_delta").json();
    assert_eq!(delta["delta"]["stop_reason"], "end_turn");
    assert!(
        delta["usage"]["output_tokens"]
            .as_u64()
            .is_some_and(|tokens| tokens > 0)
    );
}

#[tokio::test]
async fn a_translated_stream_gives_usage_to_those_who_ask() {
    let (_sim, gateway) = start("anthropic", Script::healthy()).await;
    let mut body = ask_stream("anthropic/claude-sonnet-4-5");
    body["stream_options"] = json!({"include_usage": true});
    let answer = send(&gateway, CHAT, &body).await;
    let events = answer.events();
    let usage = events[events.len() - 2].json();
    assert_eq!(usage["choices"], json!([]), "{}", answer.text());
    assert!(
        usage["usage"]["prompt_tokens"]
            .as_u64()
            .is_some_and(|tokens| tokens > 0)
    );
    assert!(
        usage["usage"]["completion_tokens"]
            .as_u64()
            .is_some_and(|tokens| tokens > 0)
    );
}

#[tokio::test]
async fn a_translated_stream_that_breaks_ends_in_the_callers_error() {
    for step in [
        Step::stream_text(["Hel"]).then(End::Cut),
        Step::stream_fault(["Hel"], Fault::Overloaded),
    ] {
        for (path, name, model) in [
            (CHAT, "anthropic", "anthropic/claude-sonnet-4-5"),
            (MESSAGES, "openai", "openai/gpt-4o"),
        ] {
            let (_sim, gateway) = start(name, Script::new().step(step.clone())).await;
            let answer = send(&gateway, path, &ask_stream(model)).await;
            assert_eq!((answer.status, answer.said().as_str()), (200, "Hel"));
            let events = answer.events();
            let last = events.last().expect("an event");
            assert!(last.is_error(), "{}", answer.text());
            assert_eq!(last.event.as_deref(), (path == MESSAGES).then_some("error"));
            assert!(!events.iter().any(|event| event.is_end()));
        }
    }
}

#[tokio::test]
async fn errors_are_told_in_the_callers_dialect() {
    for (fault, openai, anthropic) in [
        (
            Fault::InvalidRequest,
            (400, "invalid_request_error"),
            (400, "invalid_request_error"),
        ),
        (
            Fault::InvalidKey,
            (401, "authentication_error"),
            (401, "authentication_error"),
        ),
        (
            Fault::ModelNotFound,
            (404, "not_found_error"),
            (404, "not_found_error"),
        ),
        (
            Fault::RateLimited,
            (429, "rate_limit_error"),
            (429, "rate_limit_error"),
        ),
        (
            Fault::Unavailable,
            (503, "server_error"),
            (503, "api_error"),
        ),
    ] {
        for (path, name, model, (status, kind)) in [
            (CHAT, "anthropic", "anthropic/claude-sonnet-4-5", openai),
            (MESSAGES, "openai", "openai/gpt-4o", anthropic),
        ] {
            let (_sim, gateway) = start(name, Script::new().step(Step::fault(fault))).await;
            let answer = send(&gateway, path, &ask(model)).await;
            assert_eq!(answer.status, status, "{fault:?}: {}", answer.text());
            let body = answer.json();
            println!("{fault:?} at {path}: {}", body["error"]);
            assert!(body["error"]["type"].is_string() && body["error"]["message"].is_string());
            assert_eq!(body["error"]["type"], kind, "{fault:?} at {path}");
            if path == MESSAGES {
                assert_eq!(body["type"], "error");
            }
            assert_eq!(body["request_id"], answer.id());
        }
    }
}

#[tokio::test]
async fn what_the_other_dialect_cannot_carry_is_not_sent_there() {
    let (anthropic, openai) = (untouched().await, provider(Script::healthy()).await);
    let sims = [("anthropic", &anthropic), ("openai", &openai)];
    let config = both_dialects() + "[routes]\nany = [\"anthropic/claude\", \"openai/gpt-4o\"]\n";
    let gateway = TestGateway::start(&config, &sims).await;
    for (name, value) in [
        ("n", json!(2)),
        ("logprobs", json!(true)),
        ("seed", json!(7)),
    ] {
        let mut body = ask("anthropic/claude");
        body[name] = value;
        let answer = gateway.chat(body.clone()).await;
        assert_eq!(answer.status, 400, "{name}: {}", answer.text());
        println!("{name}: {}", answer.json()["error"]);
        body["model"] = "any".into();
        let answer = gateway.chat(body).await;
        assert_eq!(answer.status, 200, "{name}: {}", answer.text());
        assert_eq!(answer.header("x-backstop-provider"), "openai");
    }
    assert_eq!(anthropic.attempt_count(), 0);
}

#[tokio::test]
async fn a_fallback_may_speak_the_other_dialect() {
    let openai =
        provider(Script::new().step(Step::stream_fault([""; 0], Fault::ServerError))).await;
    let anthropic = provider(Script::new().step(Step::stream_text(["res", "cued"]))).await;
    let sims = [("anthropic", &anthropic), ("openai", &openai)];
    let config = both_dialects() + "[routes]\nany = [\"openai/gpt-4o\", \"anthropic/claude\"]\n";
    let gateway = TestGateway::start(&config, &sims).await;
    let answer = send(&gateway, CHAT, &ask_stream("any")).await;
    assert_eq!(answer.said(), "rescued");
    assert_eq!(
        answer.events().last().map(|last| last.data.clone()),
        Some("[DONE]".into())
    );
    as_scripted(&openai);
    as_scripted(&anthropic);
}

#[tokio::test]
async fn a_stream_of_blocks_that_only_one_side_knows() {
    let thinking = [
        json!({"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant",
            "model": "c", "content": [], "stop_reason": null, "stop_sequence": null,
            "usage": {"input_tokens": 3, "output_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "abc"}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "so"}}),
        json!({"type": "content_block_stop", "index": 1}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": null}, "usage": {"output_tokens": 9}}),
        json!({"type": "message_stop"}),
    ];
    let items = thinking.map(|event| {
        let name = event["type"].as_str().expect("a type").to_owned();
        Item::event(name, event)
    });
    let (_sim, gateway) = start("anthropic", Script::new().step(Step::sse(items))).await;
    let answer = send(&gateway, CHAT, &ask_stream("anthropic/claude")).await;
    assert_eq!(answer.said(), "so", "{}", answer.text());
    assert_eq!(
        answer.events().last().map(|last| last.data.clone()),
        Some("[DONE]".into())
    );
}

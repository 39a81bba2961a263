//! Callers of other dialects, served by Bedrock's; and Bedrock's, served by others.

use backstop_faultsim::{Damage, End, Fault, Frame, Item, Script, Sim, Step};
use backstop_stream::{Frame as Read, MessageFramer};
use backstop_tests::{Answer, TestGateway, secret};
use serde_json::{Value, json};

use crate::common::{as_scripted, ask, ask_stream, both_dialects, one, provider, untouched};

const CHAT: &str = "/v1/chat/completions";
const MESSAGES: &str = "/v1/messages";
const MODEL: &str = "bedrock/us.anthropic.claude-sonnet-4-20250514-v1:0";
const FRAMES: &str = "application/vnd.amazon.eventstream";

/// What Bedrock said once, from the fixtures of its dialect.
macro_rules! recorded {
    ($file:literal) => {
        include_bytes!(concat!(
            "../../../crates/dialects/fixtures/bedrock-converse/",
            $file
        ))
    };
}

async fn start(script: Script) -> (Sim, TestGateway) {
    let sim = provider(script).await;
    let gateway = TestGateway::start(&one("bedrock"), &[("bedrock", &sim)]).await;
    (sim, gateway)
}

fn whole(body: &[u8]) -> Step {
    let body = String::from_utf8(body.to_vec()).expect("text");
    Step::text(200, body).header("content-type", "application/json")
}

/// A stream in pieces of `size` bytes.
fn stream(body: &'static [u8], size: usize) -> Step {
    Step::framed(body.chunks(size).map(Item::raw))
}

async fn send(gateway: &TestGateway, path: &str, body: &Value) -> Answer {
    gateway.post(path, body.to_string()).send().await
}

/// All words of a stream of events, in either dialect.
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

/// A question as Bedrock's clients ask it.
fn question() -> Value {
    json!({
        "messages": [{"role": "user", "content": [{"text": "Say something."}]}],
        "inferenceConfig": {"maxTokens": 64},
    })
}

/// Asks as boto3 does: the id is one encoded segment, and there is a signature by dummy keys.
async fn converse(gateway: &TestGateway, model: &str, method: &str, body: &Value) -> Answer {
    let id = model.replace('/', "%2F").replace(':', "%3A");
    let path = format!("/bedrock/model/{id}/{method}");
    let call = gateway.call("POST", &path).body(body.to_string());
    call.header("content-type", "application/json")
        .header(
            "authorization",
            "AWS4-HMAC-SHA256 Credential=dummy/20261130/us-east-1/bedrock/aws4_request, SignedHeaders=host, Signature=00",
        )
        .header("x-amz-date", "20261130T120000Z")
        .send()
        .await
}

/// The frames of an answer, all of them whole.
fn frames(answer: &Answer) -> Vec<Read> {
    assert_eq!(answer.header("content-type"), FRAMES);
    let mut framer = MessageFramer::default();
    framer.push(&answer.body);
    let mut all = Vec::new();
    while let Some(frame) = framer.finish().expect("sound frames") {
        assert!(frame.is_terminated());
        all.push(frame);
    }
    all
}

fn names(frames: &[Read]) -> Vec<&str> {
    let name = |frame: &Read| frame.header(":event-type").is_some();
    frames
        .iter()
        .map(|frame| {
            let header = if name(frame) {
                ":event-type"
            } else {
                ":exception-type"
            };
            frame.header(header).expect("a name")
        })
        .collect()
}

fn payload(frame: &Read) -> Value {
    serde_json::from_slice(frame.data()).expect("JSON")
}

/// All words of frames.
fn words(frames: &[Read]) -> String {
    let text = |frame: &Read| payload(frame)["delta"]["text"].as_str().map(str::to_owned);
    frames.iter().filter_map(text).collect()
}

#[tokio::test]
async fn a_question_reaches_its_model_and_the_answer_its_caller() {
    let answer = whole(recorded!("answers/cache-read.json"));
    let (sim, gateway) = start(Script::new().step(answer.repeat(2))).await;
    let openai = send(&gateway, CHAT, &ask(MODEL)).await;
    assert_eq!(openai.said(), "OK");
    let usage = &openai.json()["usage"];
    assert_eq!(usage["prompt_tokens"], 7361, "the cache is input, too");
    assert_eq!(usage["prompt_tokens_details"]["cached_tokens"], 7351);
    assert_eq!(usage["total_tokens"], 7365);
    let anthropic = send(&gateway, MESSAGES, &ask(MODEL)).await.json();
    assert_eq!(anthropic["stop_reason"], "end_turn");
    assert_eq!(anthropic["usage"]["input_tokens"], 10);
    assert_eq!(anthropic["usage"]["cache_read_input_tokens"], 7351);
    let attempt = sim.attempt(1);
    assert_eq!(
        attempt.path(),
        "/model/us.anthropic.claude-sonnet-4-20250514-v1%3A0/converse"
    );
    let bearer = format!("Bearer {}", secret("BEDROCK_KEY_1"));
    assert_eq!(attempt.header("authorization"), Some(bearer.as_str()));
    assert_eq!(attempt.json(), question());
    as_scripted(&sim);
}

#[tokio::test]
async fn a_stream_is_translated_however_it_is_cut() {
    for size in [1, 7, 4096] {
        for path in [CHAT, MESSAGES] {
            let step = stream(recorded!("streams/text.bin"), size);
            let (sim, gateway) = start(Script::new().step(step)).await;
            let mut body = ask_stream(MODEL);
            if path == CHAT {
                body["stream_options"] = json!({"include_usage": true});
            }
            let answer = send(&gateway, path, &body).await;
            assert_eq!(answer.status, 200, "{}", answer.text());
            assert!(streamed(&answer).starts_with("The capital of France is Paris. Paris is not"));
            assert!(answer.events().last().is_some_and(|last| last.is_end()));
            assert!(answer.text().contains("82"), "the counts come last");
            let attempt = sim.attempt(1);
            assert!(attempt.path().ends_with("-v1%3A0/converse-stream"));
            assert_eq!(attempt.header("accept"), Some(FRAMES));
            as_scripted(&sim);
        }
    }
}

#[tokio::test]
async fn parallel_calls_are_numbered_and_their_results_go_back_in_one_turn() {
    let text = whole(recorded!("answers/text.json"));
    let script = Script::new()
        .step(stream(recorded!("streams/parallel-tools.bin"), 99))
        .step(text);
    let (sim, gateway) = start(script).await;
    let mut body = ask_stream(MODEL);
    body["tools"] = json!([{"type": "function", "function": {
        "name": "get_current_weather", "parameters": {"type": "object"}}}]);
    body["tool_choice"] = "required".into();
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
        let called = choice["delta"]["tool_calls"].as_array().cloned();
        for call in called.into_iter().flatten() {
            // Blocks are counted on the wire, with the text before them; calls are here.
            let place = usize::try_from(call["index"].as_u64().expect("a number")).expect("small");
            calls[place].0 += call["id"].as_str().unwrap_or_default();
            calls[place].1 += call["function"]["arguments"].as_str().unwrap_or_default();
        }
    }
    assert_eq!(finish, "tool_calls");
    assert_eq!(calls[0].1, r#"{"location":"Seattle"}"#);
    assert_eq!(calls[1].1, r#"{"location":"San Francisco"}"#);
    let sent = sim.attempt(1).json();
    assert_eq!(sent["toolConfig"]["toolChoice"], json!({"any": {}}));

    let said = |place: usize| {
        let (id, arguments) = &calls[place];
        json!({"id": id, "type": "function", "function": {
            "name": "get_current_weather", "arguments": arguments}})
    };
    let result =
        |place: usize| json!({"role": "tool", "tool_call_id": calls[place].0, "content": "rain"});
    let mut next = ask(MODEL);
    next["tools"] = body["tools"].clone();
    next["messages"] = json!([
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "content": null, "tool_calls": [said(0), said(1)]},
        result(0), result(1), {"role": "user", "content": "Well?"},
    ]);
    assert_eq!(send(&gateway, CHAT, &next).await.status, 200);
    let sent = sim.attempt(2).json();
    let turns = sent["messages"].as_array().expect("turns");
    assert_eq!(turns.len(), 3);
    assert_eq!(
        turns[1]["content"][1]["toolUse"],
        json!({"toolUseId": calls[1].0, "name": "get_current_weather",
            "input": {"location": "San Francisco"}})
    );
    assert_eq!(
        turns[2]["content"][0]["toolResult"],
        json!({"toolUseId": calls[0].0, "content": [{"text": "rain"}], "status": "success"})
    );
    assert_eq!(turns[2]["content"][2]["text"], "Well?");
    as_scripted(&sim);
}

#[tokio::test]
async fn reasoning_comes_and_goes_back_signed() {
    let script = Script::new()
        .step(stream(recorded!("streams/thinking.bin"), 64))
        .step(stream(recorded!("streams/redacted.bin"), 64))
        .step(whole(recorded!("answers/thinking.json")));
    let (sim, gateway) = start(script).await;
    let thinking = |mut body: Value| {
        body["max_tokens"] = 4096.into();
        body["thinking"] = json!({"type": "enabled", "budget_tokens": 1024});
        body
    };
    let signed = send(&gateway, MESSAGES, &thinking(ask_stream(MODEL))).await;
    let of = |answer: &Answer, outer: &str, member: &str| -> String {
        let events = answer.events();
        let text =
            |event: &backstop_tests::Event| event.json()[outer][member].as_str().map(str::to_owned);
        events.iter().filter_map(text).collect()
    };
    assert!(of(&signed, "delta", "thinking").starts_with("The user has greeted me"));
    let signature = of(&signed, "delta", "signature");
    assert!(!signature.is_empty());
    let sealed = send(&gateway, MESSAGES, &thinking(ask_stream(MODEL))).await;
    let events = sealed.events();
    let seal = events
        .iter()
        .find_map(|event| Some(event.json()["content_block"]["data"].as_str()?.to_owned()))
        .expect("a seal");
    assert!(seal.starts_with("EtkECkgI"), "as its maker sealed it");

    let mut next = thinking(ask(MODEL));
    next["messages"] = json!([
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": signature},
            {"type": "redacted_thinking", "data": seal},
            {"type": "text", "text": "Hi"}]},
        {"role": "user", "content": "And?"},
    ]);
    let answer = send(&gateway, MESSAGES, &next).await.json();
    assert_eq!(answer["content"][0]["type"], "thinking");
    let sent = sim.attempt(3).json();
    let blocks = &sent["messages"][1]["content"];
    let reasoning = &blocks[0]["reasoningContent"]["reasoningText"];
    assert_eq!(reasoning["signature"], signature);
    let stood = String::from_utf8_lossy(recorded!("streams/redacted.bin")).into_owned();
    let back = blocks[1]["reasoningContent"]["redactedContent"].as_str();
    assert!(
        stood.contains(back.expect("a seal")),
        "as it stood on the wire"
    );
    assert_eq!(
        sent["additionalModelRequestFields"],
        json!({"thinking": {"type": "enabled", "budget_tokens": 1024}})
    );
    as_scripted(&sim);
}

#[tokio::test]
async fn a_schema_stands_in_a_string() {
    let step = stream(recorded!("streams/json-schema.bin"), 50);
    let (sim, gateway) = start(Script::new().step(step)).await;
    let schema = json!({"type": "object", "additionalProperties": false, "properties": {}});
    let mut body = ask_stream(MODEL);
    body["response_format"] = json!({"type": "json_schema", "json_schema": {
        "name": "CityInfo", "schema": schema, "strict": true}});
    let answer = send(&gateway, CHAT, &body).await;
    let said: Value = serde_json::from_str(&streamed(&answer)).expect("JSON");
    assert_eq!(said["city"], "Paris");
    let format = sim.attempt(1).json()["outputConfig"]["textFormat"].clone();
    assert_eq!(format["type"], "json_schema");
    let sent = &format["structure"]["jsonSchema"];
    assert_eq!(sent["name"], "CityInfo");
    let string = sent["schema"].as_str().expect("a string");
    assert_eq!(serde_json::from_str::<Value>(string).expect("JSON"), schema);
    as_scripted(&sim);
}

#[tokio::test]
async fn an_error_is_known_by_the_name_in_its_header() {
    for (fault, status, class) in [
        (Fault::InvalidKey, 403, "credential"),
        (Fault::RateLimited, 429, "rate_limit"),
        (Fault::ModelNotFound, 400, "model_access"),
        (Fault::InvalidRequest, 400, "caller_fault"),
        (Fault::Unavailable, 503, "transient"),
    ] {
        let (sim, gateway) = start(Script::new().step(Step::fault(fault).repeat(2))).await;
        let openai = send(&gateway, CHAT, &ask(MODEL)).await;
        assert_eq!(openai.trail()[0]["failure_class"], class, "{fault:?}");
        assert_eq!(openai.status, status, "{}", openai.text());
        // To a caller of its own it is told by that name again.
        let own = converse(&gateway, MODEL, "converse", &question()).await;
        assert_eq!(own.status, status, "{}", own.text());
        assert_eq!(own.header("x-amzn-errortype"), fault.exception());
        assert!(own.json()["message"].is_string());
        as_scripted(&sim);
    }
}

#[tokio::test]
async fn what_it_cannot_carry_is_named() {
    let (sim, gateway) = start(Script::new()).await;
    let picture = json!([{"role": "user", "content": [
        {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}]}]);
    for (member, value, word) in [
        ("messages", picture, "image_urls"),
        (
            "response_format",
            json!({"type": "json_object"}),
            "json_object",
        ),
        ("n", json!(2), "many_choices"),
        ("logprobs", json!(true), "logprobs"),
        ("seed", json!(7), "seed"),
    ] {
        let mut body = ask(MODEL);
        body[member] = value;
        let refused = send(&gateway, CHAT, &body).await;
        assert!((400..500).contains(&refused.status), "{}", refused.text());
        assert!(refused.text().contains(word), "{}", refused.text());
    }
    as_scripted(&sim);
}

#[tokio::test]
async fn its_callers_are_served_by_others() {
    let script = || Script::healthy();
    let (openai, anthropic) = (provider(script()).await, provider(script()).await);
    let sims = [("openai", &openai), ("anthropic", &anthropic)];
    let gateway = TestGateway::start(&both_dialects(), &sims).await;
    for model in ["openai/gpt-4o", "anthropic/claude-x"] {
        let answer = converse(&gateway, model, "converse", &question()).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert!(!answer.header("x-amzn-requestid").is_empty());
        let body = answer.json();
        let said = &body["output"]["message"]["content"][0]["text"];
        assert!(said.as_str().is_some_and(|text| text.starts_with("Hello")));
        assert_eq!(body["stopReason"], "end_turn");
        assert!(body["usage"]["totalTokens"].as_u64() > Some(0));

        let answer = converse(&gateway, model, "converse-stream", &question()).await;
        let all = frames(&answer);
        assert!(words(&all).starts_with("Hello from the simulated"));
        let names = names(&all);
        assert_eq!(names[0], "messageStart");
        let end = ["contentBlockStop", "messageStop", "metadata"];
        assert_eq!(names[names.len() - 3..], end);
        let last = payload(all.last().expect("frames"));
        assert!(last["usage"]["outputTokens"].as_u64() > Some(0));

        let mut body = question();
        body["messages"][0]["content"][0]["text"] = "Please call a tool.".into();
        body["toolConfig"] = json!({"tools": [{"toolSpec": {"name": "look", "inputSchema": {
            "json": {"type": "object", "properties": {"what": {"type": "string"}}}}}}]});
        let whole = converse(&gateway, model, "converse", &body).await.json();
        assert_eq!(whole["stopReason"], "tool_use");
        let call = &whole["output"]["message"]["content"][0]["toolUse"];
        assert_eq!(call["input"], json!({"what": "example"}));
        let all = frames(&converse(&gateway, model, "converse-stream", &body).await);
        let start = all
            .iter()
            .map(payload)
            .find(|data| data["start"].is_object());
        assert_eq!(start.expect("a call")["start"]["toolUse"]["name"], "look");
        let input: String = all
            .iter()
            .filter_map(|frame| {
                let data = payload(frame);
                data["delta"]["toolUse"]["input"]
                    .as_str()
                    .map(str::to_owned)
            })
            .collect();
        assert_eq!(input, r#"{"what":"example"}"#);
    }
}

#[tokio::test]
async fn its_own_streams_pass_byte_equal_however_they_are_cut() {
    for body in [
        &recorded!("streams/text.bin")[..],
        recorded!("streams/parallel-tools.bin"),
        recorded!("streams/redacted.bin"),
        recorded!("streams/guardrail.bin"),
    ] {
        for size in [1, 13, 97, 1000] {
            let (sim, gateway) = start(Script::new().step(stream(body, size))).await;
            let answer = converse(&gateway, MODEL, "converse-stream", &question()).await;
            assert_eq!(answer.body, body, "{size}");
            assert_eq!(sim.attempt(1).json(), question());
            as_scripted(&sim);
        }
    }
    let body = recorded!("answers/guardrail.json");
    let (sim, gateway) = start(Script::new().step(whole(body))).await;
    let answer = converse(&gateway, MODEL, "converse", &question()).await;
    assert_eq!(answer.body, &body[..]);
    as_scripted(&sim);
}

/// `bedrock`, behind it `openai`.
const TWO: &str = "[routes]\nchat = [\"bedrock/m\", \"openai/gpt-4o\"]\n";

async fn two(first: Step) -> (Sim, Sim, TestGateway) {
    let bedrock = provider(Script::new().step(first)).await;
    let openai = provider(Script::healthy()).await;
    // Only where the contract is known to hold may an answer be asked for that was malformed.
    let config = one("bedrock") + &one("openai") + "verified = true\n" + TWO;
    let sims = [("bedrock", &bedrock), ("openai", &openai)];
    let gateway = TestGateway::start(&config, &sims).await;
    (bedrock, openai, gateway)
}

#[tokio::test]
async fn what_fails_before_output_is_answered_elsewhere() {
    let start = || Frame::event("messageStart", json!({"role": "assistant"}));
    let text = |text: &str| {
        Frame::event(
            "contentBlockDelta",
            json!({"contentBlockIndex": 0, "delta": {"text": text}}),
        )
    };
    for (step, class) in [
        (
            stream(recorded!("streams/throttle-startup.bin"), 50),
            "rate_limit",
        ),
        (
            stream(recorded!("streams/unmodeled-error.bin"), 50),
            "transient",
        ),
        (
            Step::frames([start(), text("lost").damaged(Damage::Checksum)]),
            "malformed",
        ),
        (
            Step::frames([start(), text("lost").damaged(Damage::Cut)]),
            "malformed",
        ),
        (Step::frames([start()]), "malformed"),
        (Step::framed([Item::raw(&b"data: {}\n\n"[..])]), "malformed"),
    ] {
        for own in [true, false] {
            let (bedrock, _openai, gateway) = two(step.clone()).await;
            let answer = if own {
                converse(&gateway, "chat", "converse-stream", &question()).await
            } else {
                send(&gateway, CHAT, &ask_stream("chat")).await
            };
            assert_eq!(answer.status, 200, "{class}");
            let said = if own {
                words(&frames(&answer))
            } else {
                streamed(&answer)
            };
            assert!(
                said.starts_with("Hello from the simulated"),
                "{class}: {said}"
            );
            let record = gateway.record(answer.id()).await;
            let row = &record.rows[0];
            assert_eq!(
                row.class.map(|class| class.to_string()),
                Some(class.to_owned())
            );
            as_scripted(&bedrock);
        }
    }
}

#[tokio::test]
async fn what_fails_after_output_ends_with_an_exception() {
    let hello = || {
        vec![
            Frame::event("messageStart", json!({"role": "assistant"})),
            Frame::event(
                "contentBlockDelta",
                json!({"contentBlockIndex": 0, "delta": {"text": "Hello"}}),
            ),
        ]
    };
    let with = |frame: Frame| {
        let mut all = hello();
        all.push(frame);
        Step::frames(all)
    };
    let stop = || Frame::event("contentBlockStop", json!({"contentBlockIndex": 0}));
    for (step, exception) in [
        (
            stream(recorded!("streams/model-error-after-text.bin"), 50),
            "modelStreamErrorException",
        ),
        (
            with(Frame::exception(
                "throttlingException",
                json!({"message": "slow"}),
            )),
            "throttlingException",
        ),
        (
            with(stop().damaged(Damage::Checksum)),
            "serviceUnavailableException",
        ),
        (
            with(stop().damaged(Damage::Cut)),
            "serviceUnavailableException",
        ),
        (
            Step::frames(hello()).then(End::Cut),
            "serviceUnavailableException",
        ),
        (Step::frames(hello()), "serviceUnavailableException"),
    ] {
        let (bedrock, openai, gateway) = two(step.clone()).await;
        let answer = converse(&gateway, "chat", "converse-stream", &question()).await;
        let all = frames(&answer);
        assert_eq!(words(&all), "Hello");
        let last = all.last().expect("frames");
        assert_eq!(last.header(":message-type"), Some("exception"));
        assert_eq!(last.header(":exception-type"), Some(exception));
        assert!(payload(last)["message"].is_string());
        assert!(!names(&all).contains(&"messageStop"));
        assert_eq!(gateway.record(answer.id()).await.terminal, "partial");
        assert_eq!(openai.attempts().len(), 0);
        as_scripted(&bedrock);

        let (bedrock, _openai, gateway) = two(step).await;
        let answer = send(&gateway, CHAT, &ask_stream("chat")).await;
        assert_eq!(streamed(&answer), "Hello");
        assert!(answer.events().last().is_some_and(|last| last.is_error()));
        assert!(!answer.text().contains("[DONE]"));
        as_scripted(&bedrock);
    }
}

#[tokio::test]
async fn a_failure_of_another_provider_is_an_exception_to_its_callers() {
    let said = [Item::data(
        json!({"choices": [{"delta": {"content": "Hello"}}]}),
    )];
    let script = Script::new()
        .step(Step::sse(said).then(End::Cut))
        .step(Step::fault(Fault::RateLimited));
    let openai = provider(script).await;
    let gateway = TestGateway::start(&one("openai"), &[("openai", &openai)]).await;
    let answer = converse(&gateway, "openai/gpt-4o", "converse-stream", &question()).await;
    let all = frames(&answer);
    assert_eq!(words(&all), "Hello");
    assert_eq!(names(&all).last(), Some(&"serviceUnavailableException"));
    let answer = converse(&gateway, "openai/gpt-4o", "converse-stream", &question()).await;
    assert_eq!(answer.status, 429);
    assert_eq!(answer.header("content-type"), "application/json");
    assert_eq!(answer.header("x-amzn-errortype"), "ThrottlingException");
    as_scripted(&openai);
}

#[tokio::test]
async fn callers_mistakes_are_told_as_aws_tells_them() {
    let sim = untouched().await;
    let gateway = TestGateway::start(&one("bedrock"), &[("bedrock", &sim)]).await;
    let good = question().to_string();
    for (path, body, status, name, code) in [
        (
            "/bedrock/model/nobody/converse",
            good.as_str(),
            404,
            "ResourceNotFoundException",
            "model_not_found",
        ),
        (
            "/bedrock/model/bedrock%2Fm/converse",
            "{",
            400,
            "ValidationException",
            "invalid_json",
        ),
        (
            "/bedrock/model/bedrock%2Fm/converse",
            "[]",
            400,
            "ValidationException",
            "not_an_object",
        ),
        (
            "/bedrock/model/bedrock%2Fm/invoke",
            good.as_str(),
            404,
            "ResourceNotFoundException",
            "unknown_path",
        ),
    ] {
        let call = gateway.call("POST", path).body(body);
        let answer = call.header("content-type", "application/json").send().await;
        assert_eq!(answer.status, status, "{}", answer.text());
        assert_eq!(answer.header("x-amzn-errortype"), name);
        assert_eq!(answer.header("x-amzn-requestid"), answer.id());
        let told = answer.json();
        assert!(told["message"].is_string());
        assert_eq!(told["code"], code);
    }
    as_scripted(&sim);
}

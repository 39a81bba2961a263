//! Responses that a provider keeps: asked about where they were made, and nowhere else.

use backstop_admission::KeyHash;
use backstop_faultsim::{End, Fault, Item, Script, Sim, Step, When};
use backstop_tests::{Answer, Call, TestGateway, secret};
use serde_json::{Value, json};

use crate::common::{as_scripted, column, one, provider, three_keys, untouched};

const CREATED: &[u8] =
    include_bytes!("../../../crates/dialects/fixtures/openai-responses/streams/text.sse");

/// A response that the provider keeps.
fn response(id: &str, status: &str) -> Value {
    json!({"id": id, "object": "response", "created_at": 1, "status": status, "model": "gpt-5",
        "error": null, "output": [{"type": "message", "id": "msg_1", "role": "assistant",
            "status": "completed", "content": [{"type": "output_text", "text": "Moon.",
            "annotations": []}]}],
        "usage": {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}})
}

fn made(id: &str) -> Step {
    Step::json(200, response(id, "completed")).when(path("/v1/responses"))
}

fn path(path: &str) -> When {
    When {
        path: Some(path.to_owned()),
        ..When::default()
    }
}

fn ask(model: &str) -> Value {
    json!({"model": model, "input": "Say something."})
}

async fn create(gateway: &TestGateway, body: &Value) -> Answer {
    let answer = gateway
        .post("/v1/responses", body.to_string())
        .header("x-backstop-trail", "1")
        .send()
        .await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer
}

async fn call(gateway: &TestGateway, method: &str, path: &str) -> Answer {
    let call = gateway.call(method, path).header("x-backstop-trail", "1");
    call.send().await
}

/// `openai`, whose first key is refused when `resp_1` is made: the second has it.
async fn by_the_second_key(
    max_retries: u32,
    then: impl IntoIterator<Item = Step>,
) -> (Sim, TestGateway) {
    let script = Script::new()
        .key("first", secret("OPENAI_KEY_1"))
        .key("second", secret("OPENAI_KEY_2"))
        .step(Step::fault(Fault::InsufficientQuota).key("first"))
        .step(made("resp_1").key("second"))
        .with_steps(then.into_iter().map(|step| step.key("second")));
    let openai = provider(script).await;
    let gateway = TestGateway::start(&three_keys(max_retries), &[("openai", &openai)]).await;
    create(&gateway, &ask("openai/gpt-5")).await;
    (openai, gateway)
}

#[tokio::test]
async fn a_response_is_asked_about_where_it_was_made() {
    let items = json!({"object": "list", "data": [{"type": "message", "id": "msg_0"}],
        "first_id": "msg_0", "last_id": "msg_0", "has_more": false});
    let gone = json!({"id": "resp_1", "object": "response.deleted", "deleted": true});
    let here = "/v1/responses/resp_1";
    let (openai, gateway) = by_the_second_key(
        0,
        [
            Step::json(200, response("resp_1", "completed")).when(path(here)),
            Step::json(200, items.clone()).when(path("/v1/responses/resp_1/input_items")),
            Step::json(200, response("resp_1", "cancelled"))
                .when(path("/v1/responses/resp_1/cancel")),
            Step::json(200, gone.clone()).when(path(here)),
        ],
    )
    .await;
    for (method, path, want) in [
        ("GET", here, response("resp_1", "completed")),
        (
            "GET",
            "/openai/v1/responses/resp_1/input_items?limit=2&order=asc",
            items,
        ),
        (
            "POST",
            "/v1/responses/resp_1/cancel",
            response("resp_1", "cancelled"),
        ),
        ("DELETE", "/openai/v1/responses/resp_1", gone),
    ] {
        let answer = call(&gateway, method, path).await;
        assert_eq!(answer.status, 200, "{method} {path}: {}", answer.text());
        let mut told = answer.json();
        let extra = told
            .as_object_mut()
            .expect("an object")
            .remove("extra_fields");
        assert_eq!(told, want, "{method} {path}");
        assert_eq!(extra.expect("extra fields")["provider"], "openai");
        assert_eq!(column(&answer.trail(), "key_name"), [json!("openai-key-2")]);
        let record = gateway.record(answer.id()).await;
        assert_eq!((record.terminal, record.rows.len()), ("success", 1));
        assert_eq!(
            record.rows[0].usage, None,
            "it was counted when it was made"
        );
        let last = openai.attempt(openai.attempt_count());
        assert_eq!(last.method(), method);
        assert!(last.body().is_empty());
        assert_eq!(last.header("content-type"), None);
    }
    // The provider has forgotten it, and so have we.
    let answer = call(&gateway, "GET", here).await;
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (404, "response_not_found")
    );
    as_scripted(&openai);
}

#[tokio::test]
async fn what_was_not_made_here_is_not_found_and_nobody_is_asked() {
    let script = Script::new().step(made("resp_2")).step(Step::json(
        200,
        json!({"id": "chatcmpl-1", "object": "chat.completion", "created": 1,
            "model": "gpt-5", "choices": [{"index": 0, "finish_reason": "stop",
            "message": {"role": "assistant", "content": "Moon."}}]}),
    ));
    let openai = provider(script).await;
    let anthropic = provider(Script::healthy()).await;
    let config = one("openai") + &one("anthropic");
    let sims = [("openai", &openai), ("anthropic", &anthropic)];
    let gateway = TestGateway::start(&config, &sims).await;
    let mut body = ask("openai/gpt-5");
    body["store"] = false.into();
    create(&gateway, &body).await;
    gateway
        .chat(json!({"model": "openai/gpt-5", "messages": [{"role": "user", "content": "Hi"}]}))
        .await;
    let translated = create(&gateway, &ask("anthropic/claude-sonnet-4-5")).await;
    let translated = translated.json()["id"].as_str().expect("an id").to_owned();
    for id in ["resp_unknown", "resp_2", "chatcmpl-1", &translated] {
        for (method, below) in [
            ("GET", ""),
            ("DELETE", ""),
            ("POST", "/cancel"),
            ("GET", "/input_items"),
        ] {
            let answer = call(&gateway, method, &format!("/v1/responses/{id}{below}")).await;
            assert_eq!(answer.status, 404, "{method} {id}");
            let error = &answer.json()["error"];
            assert_eq!(error["code"], "response_not_found");
            assert_eq!(error["type"], "not_found_error");
            assert_eq!(error["param"], "id");
            assert!(
                error["message"]
                    .as_str()
                    .is_some_and(|told| told.contains(id))
            );
        }
    }
    as_scripted(&openai);
    assert_eq!(anthropic.attempt_count(), 1);
}

#[tokio::test]
async fn no_other_key_is_asked_and_only_reading_is_repeated() {
    let here = "/v1/responses/resp_1";
    let missing = json!({"error": {"message": "Response with id 'resp_1' not found.",
        "type": "invalid_request_error", "param": "id", "code": null}});
    let whole = || Step::json(200, response("resp_1", "completed"));
    for (method, below, steps, status, classes) in [
        (
            "GET",
            "",
            vec![Step::fault(Fault::RateLimited)],
            429,
            vec!["rate_limit"],
        ),
        (
            "GET",
            "",
            vec![Step::fault(Fault::InvalidKey)],
            401,
            vec!["credential"],
        ),
        (
            "GET",
            "",
            vec![Step::json(404, missing)],
            404,
            vec!["caller_fault"],
        ),
        (
            "GET",
            "",
            vec![Step::fault(Fault::Overloaded), whole()],
            200,
            vec!["transient", ""],
        ),
        (
            "GET",
            "/input_items",
            vec![whole().end_after(9).then(End::Cut), whole()],
            200,
            vec!["transient", ""],
        ),
        (
            "POST",
            "/cancel",
            vec![Step::fault(Fault::Overloaded)],
            503,
            vec!["transient"],
        ),
        (
            "POST",
            "/cancel",
            vec![Step::silent(End::Cut)],
            502,
            vec!["transient"],
        ),
        (
            "DELETE",
            "",
            vec![whole().end_after(9).then(End::Cut)],
            502,
            vec!["transient"],
        ),
    ] {
        let (openai, gateway) = by_the_second_key(2, steps).await;
        let answer = call(&gateway, method, &format!("{here}{below}")).await;
        assert_eq!(answer.status, status, "{method} {below}: {}", answer.text());
        let trail = answer.trail();
        let told = column(&trail, "failure_class");
        let told: Vec<&str> = told
            .iter()
            .map(|class| class.as_str().unwrap_or_default())
            .collect();
        assert_eq!(told, classes, "{method} {below}");
        assert!(
            column(&trail, "key_name")
                .iter()
                .all(|key| key == "openai-key-2")
        );
        as_scripted(&openai);
    }
}

#[tokio::test]
async fn whatever_became_of_a_response_is_an_answer() {
    let mut failed = response("resp_1", "failed");
    failed["error"] = json!({"code": "server_error", "message": "The model failed."});
    let mut queued = response("resp_1", "queued");
    queued["output"] = json!([]);
    for body in [failed, queued] {
        let (openai, gateway) = by_the_second_key(0, [Step::json(200, body.clone())]).await;
        let answer = call(&gateway, "GET", "/v1/responses/resp_1").await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(answer.json()["status"], body["status"]);
        as_scripted(&openai);
    }
    let (openai, gateway) = by_the_second_key(0, [Step::text(200, "[1]")]).await;
    let answer = call(&gateway, "GET", "/v1/responses/resp_1").await;
    assert_eq!(answer.status, 502, "{}", answer.text());
    as_scripted(&openai);
}

#[tokio::test]
async fn a_stream_can_be_taken_up_again() {
    let text = std::str::from_utf8(CREATED).expect("text");
    let created = text.split("\n\n").next().expect("an event");
    let data = created.lines().find_map(|line| line.strip_prefix("data: "));
    let created: Value = serde_json::from_str(data.expect("data")).expect("JSON");
    let id = created["response"]["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    let here = format!("/v1/responses/{id}");
    let broken = text.find("response.output_text.done").expect("text");
    // From its third event on.
    let at = text.match_indices("\n\n").nth(2).expect("events").0 + 2;
    let rest = &text[at..];
    let script = Script::new()
        .step(
            Step::sse([Item::raw(CREATED)])
                .end_after(broken)
                .then(End::Cut),
        )
        .step(Step::sse([Item::raw(rest.to_owned())]).when(path(&here)));
    let openai = provider(script).await;
    let gateway = TestGateway::start(&one("openai"), &[("openai", &openai)]).await;
    let mut body = ask("openai/gpt-5");
    body["stream"] = true.into();
    create(&gateway, &body).await;
    let answer = call(
        &gateway,
        "GET",
        &format!("{here}?stream=true&starting_after=2"),
    )
    .await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(
        answer
            .header("content-type")
            .starts_with("text/event-stream")
    );
    assert_eq!(answer.text(), rest);
    assert_eq!(answer.header("x-backstop-provider"), "openai");
    assert_eq!(
        openai.attempt(2).query(),
        Some("stream=true&starting_after=2")
    );
    as_scripted(&openai);
}

#[tokio::test]
async fn a_reload_forgets_nothing_but_a_key_that_is_gone() {
    let again = || Step::json(200, response("resp_1", "completed"));
    let (openai, mut gateway) = by_the_second_key(0, [again(), again()]).await;
    let here = "/v1/responses/resp_1";
    assert_eq!(call(&gateway, "GET", here).await.status, 200);
    gateway.reload(&three_keys(1));
    assert_eq!(call(&gateway, "GET", here).await.status, 200);
    gateway.reload(&one("openai"));
    let answer = call(&gateway, "GET", here).await;
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (404, "response_not_found")
    );
    as_scripted(&openai);
}

#[tokio::test]
async fn what_goes_on_from_a_response_goes_to_whoever_keeps_it() {
    for (earlier, wide) in [
        (json!({"previous_response_id": "resp_1"}), true),
        (json!({"conversation": {"id": "conv_1"}}), false),
    ] {
        // Turned away, so that what would be kept may be asked for elsewhere.
        let down = Step::fault(Fault::RateLimited);
        let openai = provider(Script::new().step(down)).await;
        let script = Script::new()
            .step(made("resp_1"))
            .step(made("resp_2"))
            .step(Step::fault(Fault::Overloaded));
        let xai = provider(script).await;
        let config =
            one("openai") + &one("xai") + "[routes]\nany = [\"openai/gpt-5\", \"xai/grok-4\"]";
        let sims = [("openai", &openai), ("xai", &xai)];
        let gateway = TestGateway::start(&config, &sims).await;
        let mut first = ask("any");
        if !wide {
            // A conversation is known once someone has served it.
            first["model"] = "xai/grok-4".into();
            first["conversation"] = "conv_1".into();
        }
        create(&gateway, &first).await;
        let mut next = ask("any");
        for (name, value) in earlier.as_object().expect("an object") {
            next[name] = value.clone();
        }
        let answer = create(&gateway, &next).await;
        assert_eq!(answer.header("x-backstop-provider"), "xai");
        assert_eq!(answer.header("x-backstop-action"), "direct");
        // And nowhere else, whatever happens there.
        let answer = gateway.post("/v1/responses", next.to_string()).send().await;
        assert_eq!(answer.status, 503, "{}", answer.text());
        let mut elsewhere = next.clone();
        elsewhere["model"] = "openai/gpt-5".into();
        let answer = gateway
            .post("/v1/responses", elsewhere.to_string())
            .send()
            .await;
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (400, "contract_not_served")
        );
        assert_eq!(openai.attempt_count(), u64::from(wide));
        assert_eq!(xai.attempt_count(), 3);
    }
}

#[tokio::test]
async fn what_goes_on_from_a_response_is_sent_with_its_key() {
    let (openai, gateway) =
        by_the_second_key(0, [made("resp_2"), Step::fault(Fault::RateLimited)]).await;
    let mut next = ask("openai/gpt-5");
    next["previous_response_id"] = "resp_1".into();
    create(&gateway, &next).await;
    let answer = gateway.post("/v1/responses", next.to_string()).send().await;
    assert_eq!(answer.status, 429, "{}", answer.text());
    as_scripted(&openai);
}

#[tokio::test]
async fn what_cannot_be_asked_is_said() {
    let openai = untouched().await;
    let gateway = TestGateway::start(&one("openai"), &[("openai", &openai)]).await;
    for (method, path, status, code, allow) in [
        (
            "POST",
            "/v1/responses/resp_1",
            405,
            "method_not_allowed",
            "GET, DELETE",
        ),
        (
            "GET",
            "/v1/responses/resp_1/cancel",
            405,
            "method_not_allowed",
            "POST",
        ),
        ("GET", "/v1/responses/resp_1/other", 404, "unknown_path", ""),
        (
            "GET",
            "/v1/responses/resp_1?api_key=x",
            400,
            "unknown_parameter",
            "",
        ),
    ] {
        let answer = call(&gateway, method, path).await;
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (status, code),
            "{method} {path}"
        );
        assert_eq!(answer.header("allow"), allow, "{method} {path}");
    }
    as_scripted(&openai);
}

#[tokio::test]
async fn a_response_exists_for_the_caller_it_was_made_for_and_for_nobody_else() {
    const ANN: &str = "bsk-canary-callers-own-key-0001";
    const BOB: &str = "bsk-canary-callers-own-key-0002";
    let again = Step::json(200, response("resp_1", "completed"));
    let openai = provider(Script::new().step(made("resp_1")).step(again)).await;
    let config = format!(
        "{}\n[callers.ann]\nkeys = [\"{}\"]\ntokens_per_minute = 10000\n[callers.bob]\nkeys = [\"{}\"]\n",
        one("openai"),
        KeyHash::of(ANN),
        KeyHash::of(BOB),
    );
    let gateway = TestGateway::start(&config, &[("openai", &openai)]).await;
    let as_who = |call: Call, key: &str| call.header("authorization", &format!("Bearer {key}"));
    let first = gateway.post("/v1/responses", ask("openai/gpt-5").to_string());
    assert_eq!(as_who(first, ANN).send().await.status, 200);
    let here = "/v1/responses/resp_1";
    let answer = as_who(gateway.call("GET", here), BOB).send().await;
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (404, "response_not_found")
    );
    let mut next = ask("openai/gpt-5");
    next["previous_response_id"] = "resp_1".into();
    let answer = as_who(gateway.post("/v1/responses", next.to_string()), BOB)
        .send()
        .await;
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (404, "response_not_found")
    );
    let answer = gateway.call("GET", here).send().await;
    assert_eq!(answer.status, 401);
    let answer = as_who(gateway.call("GET", here), ANN).send().await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let record = gateway.record(answer.id()).await;
    assert_eq!(record.caller.expect("a caller").as_str(), "ann");
    as_scripted(&openai);
}

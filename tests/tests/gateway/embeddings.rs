//! Vectors: every surface that asks for them, before every kind of provider that has them.

use backstop_faultsim::{Script, Sim, Step};
use backstop_tests::{Answer, TestGateway, secret};
use serde_json::{Value, json};

use crate::common::{as_scripted, before_extra, one, provider, three_keys, untouched, with_backup};

const EMBEDDINGS: &str = "/v1/embeddings";

/// The numbers every provider here answers for the first text, and their bytes.
const NUMBERS: &str = "[0.5, -1.25, 1e-3]";
const BYTES: &str = "AAAAPwAAoL9vEoM6";

/// An answer of a provider of this name, with two vectors and seven tokens spent.
fn vectors(name: &str) -> Step {
    let body = match name {
        "openai" => format!(
            r#"{{"object":"list","data":[{{"object":"embedding","index":0,"embedding":{NUMBERS}}},
            {{"object":"embedding","index":1,"embedding":[2.0]}}],"model":"m-1",
            "usage":{{"prompt_tokens":7,"total_tokens":7}}}}"#
        ),
        "gemini" => format!(
            r#"{{"embeddings":[{{"values":{NUMBERS}}},{{"values":[2.0]}}],
            "usageMetadata":{{"promptTokenCount":7}}}}"#
        ),
        _ => format!(
            r#"{{"id":"e","embeddings":{{"float":[{NUMBERS},[2.0]]}},"texts":["a","b"],
            "meta":{{"api_version":{{"version":"2"}},"billed_units":{{"input_tokens":7}}}},
            "response_type":"embeddings_by_type"}}"#
        ),
    };
    whole(200, &body)
}

fn whole(status: u16, body: &str) -> Step {
    Step::text(status, body).header("content-type", "application/json")
}

async fn start(name: &str, script: Script) -> (Sim, TestGateway) {
    let sim = provider(script).await;
    let gateway = TestGateway::start(&one(name), &[(name, &sim)]).await;
    (sim, gateway)
}

async fn send(gateway: &TestGateway, path: &str, body: &Value) -> Answer {
    gateway.post(path, body.to_string()).send().await
}

/// The body of the first attempt, byte by byte.
fn sent(sim: &Sim) -> String {
    String::from_utf8_lossy(sim.attempt(1).body()).into_owned()
}

fn two(model: &str) -> Value {
    json!({"model": model, "input": ["a", "b"]})
}

#[tokio::test]
async fn openai_s_callers_are_served_by_every_kind() {
    for (name, path, sent) in [
        (
            "openai",
            "/v1/embeddings",
            json!({"model": "m", "input": ["a", "b"]}),
        ),
        (
            "gemini",
            "/v1beta/models/m:batchEmbedContents",
            json!({"requests": [
                {"model": "models/m", "content": {"parts": [{"text": "a"}]}},
                {"model": "models/m", "content": {"parts": [{"text": "b"}]}}]}),
        ),
        (
            "cohere",
            "/v2/embed",
            json!({"model": "m", "input_type": "search_document", "embedding_types": ["float"],
                "texts": ["a", "b"]}),
        ),
    ] {
        let (sim, gateway) = start(name, Script::new().step(vectors(name).repeat(2))).await;
        let model = format!("{name}/m");
        for surface in [EMBEDDINGS, "/openai/v1/embeddings"] {
            let answer = send(&gateway, surface, &two(&model)).await;
            assert_eq!(answer.status, 200, "{}", answer.text());
            let body = answer.json();
            assert_eq!(body["object"], "list");
            assert_eq!(body["data"][0]["embedding"], json!([0.5, -1.25, 0.001]));
            assert_eq!(body["data"][1]["index"], 1);
            assert_eq!(body["usage"]["prompt_tokens"], 7);
            assert_eq!(body["extra_fields"]["provider"], name);
            assert_eq!(answer.header("x-backstop-provider"), name);
            let record = gateway.record(answer.id()).await;
            assert_eq!((record.operation, record.terminal), ("embed", "success"));
            let usage = record.rows[0].usage.expect("usage is on record");
            assert_eq!(usage.input.map(|tokens| tokens.0), Some(7));
            assert_eq!(usage.output, None);
        }
        let attempt = sim.attempt(1);
        assert_eq!((attempt.path(), attempt.json()), (path, sent), "{name}");
        as_scripted(&sim);
        let page = gateway.get("/metrics").await;
        assert!(page.text().contains(r#"operation="embed""#));
    }
}

#[tokio::test]
async fn numbers_are_the_same_in_either_spelling() {
    for name in ["gemini", "cohere"] {
        let (sim, gateway) = start(name, Script::new().step(vectors(name))).await;
        let mut body = two(&format!("{name}/m"));
        body["encoding_format"] = "base64".into();
        let answer = send(&gateway, EMBEDDINGS, &body).await.json();
        assert_eq!(answer["data"][0]["embedding"], BYTES, "{name}");
        assert!(sim.attempt(1).json()["encoding_format"].is_null());
        as_scripted(&sim);
    }
    // Google's callers know numbers only.
    let packed = json!({"data": [{"index": 0, "embedding": BYTES}], "usage": {"prompt_tokens": 1}});
    let (sim, gateway) = start("openai", Script::new().step(Step::json(200, packed))).await;
    let body = json!({"content": {"parts": [{"text": "a"}]}});
    let path = "/genai/v1beta/models/openai/m:embedContent";
    let answer = send(&gateway, path, &body).await.json();
    assert_eq!(answer["embedding"]["values"], json!([0.5, -1.25, 0.001]));
    as_scripted(&sim);
}

#[tokio::test]
async fn a_caller_of_the_provider_s_own_dialect_gets_its_bytes() {
    let said = "{ \"data\":[ {\"embedding\":\"AAAAPw==\",\"index\":0} ],\n \"usage\":{\"prompt_tokens\":1}, \"new\":1.50 }";
    let (sim, gateway) = start("openai", Script::new().step(whole(200, said))).await;
    let asked = r#"{"model":"openai/m",  "input":[1,2, 3],"encoding_format":"base64","new":1.50}"#;
    let answer = gateway.post(EMBEDDINGS, asked).send().await;
    assert_eq!(before_extra(&answer), said[..said.len() - 2]);
    assert_eq!(
        sent(&sim),
        asked.replace("openai/m", "m"),
        "only the name of the model changed"
    );
    as_scripted(&sim);

    let said = r#"{"embeddings":[{"values":[1.50]}], "usageMetadata":{"promptTokenCount":3}}"#;
    let (sim, gateway) = start("gemini", Script::new().step(whole(200, said))).await;
    let asked = r#"{"requests":[{"model":"models/gemini/m","content":{"parts":[{"text":"a"}]} ,"taskType":"SEMANTIC_SIMILARITY","title":"t"}]}"#;
    let path = "/genai/v1beta/models/gemini/m:batchEmbedContents";
    let answer = gateway.post(path, asked).send().await;
    assert_eq!(before_extra(&answer), said[..said.len() - 1]);
    assert_eq!(sim.attempt(1).path(), "/v1beta/models/m:batchEmbedContents");
    assert_eq!(sent(&sim), asked.replace("gemini/m", "m"));
    as_scripted(&sim);
}

#[tokio::test]
async fn google_s_callers_are_served_by_every_kind() {
    let several = json!({"requests": [
        {"model": "models/x", "content": {"parts": [{"text": "a"}]}, "outputDimensionality": 3},
        {"model": "models/x", "content": {"parts": [{"text": "b"}]}, "outputDimensionality": 3}]});
    for (name, sent) in [
        (
            "openai",
            json!({"model": "m", "input": ["a", "b"], "dimensions": 3}),
        ),
        (
            "cohere",
            json!({"model": "m", "input_type": "search_document", "embedding_types": ["float"],
                "texts": ["a", "b"], "output_dimension": 3}),
        ),
        ("gemini", several.clone()),
    ] {
        let (sim, gateway) = start(name, Script::new().step(vectors(name).repeat(2))).await;
        for prefix in ["/genai", ""] {
            let path = format!("{prefix}/v1beta/models/{name}/m:batchEmbedContents");
            let answer = send(&gateway, &path, &several).await;
            assert_eq!(answer.status, 200, "{}", answer.text());
            let body = answer.json();
            assert_eq!(body["embeddings"][0]["values"], json!([0.5, -1.25, 0.001]));
            assert_eq!(body["embeddings"].as_array().map(Vec::len), Some(2));
            assert_eq!(body["usageMetadata"]["promptTokenCount"], 7);
        }
        let want = sent.to_string().replace("models/x", "models/m");
        assert_eq!(sim.attempt(1).json().to_string(), want);
        as_scripted(&sim);
    }
}

#[tokio::test]
async fn who_has_no_vectors_is_not_asked() {
    let anthropic = untouched().await;
    let config = one("anthropic");
    let gateway = TestGateway::start(&config, &[("anthropic", &anthropic)]).await;
    let answer = send(&gateway, EMBEDDINGS, &two("anthropic/claude")).await;
    assert_eq!(
        (answer.status, answer.code()),
        (400, "contract_not_served".into())
    );
    let said = answer.json()["error"]["message"].to_string();
    assert!(
        said.contains("anthropic/claude: its contract does not cover embeddings"),
        "{said}"
    );
    let path = "/genai/v1beta/models/anthropic/claude:embedContent";
    let answer = send(
        &gateway,
        path,
        &json!({"content": {"parts": [{"text": "a"}]}}),
    )
    .await;
    assert_eq!(answer.status, 400);
    assert_eq!(answer.json()["error"]["status"], "INVALID_ARGUMENT");

    // Tokens are ids of one provider's own; a narrowed contract says what else is missing.
    let sim = untouched().await;
    for (name, input, more, need) in [
        ("gemini", json!([[1, 2], [3]]), "", "token_inputs"),
        ("cohere", json!([1, 2, 3]), "", "token_inputs"),
        (
            "openai",
            json!(["a", "b"]),
            "many_inputs = false",
            "many_inputs",
        ),
        ("openai", json!("a"), "embeddings = false", "embeddings"),
    ] {
        let config = format!("{}\ncontract = {{ {more} }}", one(name));
        let gateway = TestGateway::start(&config, &[(name, &sim)]).await;
        let body = json!({"model": format!("{name}/m"), "input": input});
        let answer = send(&gateway, EMBEDDINGS, &body).await;
        assert_eq!(answer.code(), "contract_not_served", "{name}");
        let told = format!("does not cover {need}");
        assert!(answer.text().contains(&told), "{}", answer.text());
    }
    // A provider without such a call is left out although its dialect knows one.
    let groq = untouched().await;
    let gateway = TestGateway::start(&one("groq"), &[("groq", &groq)]).await;
    let answer = send(&gateway, EMBEDDINGS, &two("groq/llama")).await;
    assert_eq!(answer.code(), "contract_not_served");
}

#[tokio::test]
async fn a_field_that_cannot_be_carried_leads_past_the_channel() {
    let cohere = untouched().await;
    let gemini = provider(Script::new().step(vectors("gemini"))).await;
    let config =
        one("cohere") + &one("gemini") + "[routes]\nvectors = [\"cohere/m\", \"gemini/m\"]";
    let sims = [("cohere", &cohere), ("gemini", &gemini)];
    let gateway = TestGateway::start(&config, &sims).await;
    let texts: Vec<String> = (0..97).map(|n| n.to_string()).collect();
    let call = gateway.post(
        EMBEDDINGS,
        json!({"model": "vectors", "input": texts}).to_string(),
    );
    let answer = call.header("x-backstop-trail", "1").send().await;
    // Two vectors are no answer for ninety-seven texts.
    assert_eq!(answer.status, 502, "{}", answer.text());
    let trail = answer.trail();
    assert_eq!(trail[0]["fail_reason"], "cannot_carry:more than 96 inputs");
    assert_eq!(trail[1]["failure_class"], "malformed");
    assert_eq!(gemini.attempt_count(), 1);
}

#[tokio::test]
async fn a_failing_provider_s_vectors_come_from_the_next_with_the_same_model() {
    let down = Step::json(
        500,
        json!({"error": {"message": "down", "type": "server_error"}}),
    );
    let openai = provider(Script::new().step(down)).await;
    let backup = provider(Script::new().step(vectors("openai"))).await;
    let sims = [("openai", &openai), ("backup", &backup)];
    let gateway = TestGateway::start(&with_backup(0), &sims).await;
    let answer = send(&gateway, EMBEDDINGS, &two("chat")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.header("x-backstop-action"), "fallback");
    assert_eq!(answer.header("x-backstop-attempts"), "2");
    assert_eq!(backup.attempt(1).path(), "/v1/embeddings");
    as_scripted(&openai);
    as_scripted(&backup);
}

#[tokio::test]
async fn an_unknown_outcome_is_asked_again() {
    // The provider may have answered: vectors can be asked for twice.
    let cut = vectors("openai")
        .then(backstop_faultsim::End::Reset)
        .end_after(20);
    let openai = provider(Script::new().step(cut)).await;
    let backup = provider(Script::new().step(vectors("openai"))).await;
    let sims = [("openai", &openai), ("backup", &backup)];
    let gateway = TestGateway::start(&with_backup(0), &sims).await;
    let answer = send(&gateway, EMBEDDINGS, &two("chat")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.header("x-backstop-provider"), "backup");
    as_scripted(&backup);
}

#[tokio::test]
async fn a_refused_key_gives_way_to_the_next() {
    let refused = json!({"error": {"message": "Incorrect API key provided.",
        "type": "invalid_request_error", "param": null, "code": "invalid_api_key"}});
    let refused = Step::json(401, refused).key(secret("OPENAI_KEY_1"));
    let script = Script::new()
        .step(refused.repeat(9))
        .step(vectors("openai").repeat(9));
    let sim = provider(script).await;
    let gateway = TestGateway::start(&three_keys(0), &[("openai", &sim)]).await;
    for _ in 0..6 {
        let answer = send(&gateway, EMBEDDINGS, &two("openai/m")).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
}

#[tokio::test]
async fn errors_are_told_in_the_caller_s_dialect() {
    let error = json!({"error": {"code": 400, "message": "text is empty",
        "status": "INVALID_ARGUMENT"}});
    let (sim, gateway) = start("gemini", Script::new().step(Step::json(400, error))).await;
    let answer = send(&gateway, EMBEDDINGS, &two("gemini/m")).await;
    assert_eq!(answer.status, 400);
    let body = answer.json();
    assert_eq!(body["error"]["type"], "invalid_request_error");
    assert_eq!(body["error"]["message"], "text is empty");
    as_scripted(&sim);

    let gateway = TestGateway::start(&one("gemini"), &[("gemini", &sim)]).await;
    for (body, code) in [
        ("{\"input\":\"a\"}", "missing_model"),
        ("[]", "not_an_object"),
        (
            "{\"model\":\"nobody/m\",\"input\":\"a\"}",
            "model_not_found",
        ),
    ] {
        let answer = gateway.post(EMBEDDINGS, body).send().await;
        assert_eq!(answer.code(), code);
    }
    let answer = gateway.get(EMBEDDINGS).await;
    assert_eq!((answer.status, answer.header("allow")), (405, "POST"));
}

#[tokio::test]
async fn azure_s_clients_name_their_model_in_the_path() {
    for name in ["openai", "gemini", "cohere"] {
        let (sim, gateway) = start(name, Script::healthy()).await;
        let path = format!("/openai/deployments/{name}%2Fm/embeddings?api-version=2024-10-21");
        // The path outranks the body, which need not name one.
        for model in [json!("another"), Value::Null] {
            let mut body = json!({"input": "a"});
            if !model.is_null() {
                body["model"] = model;
            }
            let call = gateway.post(&path, body.to_string());
            let answer = call.header("api-key", "callers-own").send().await;
            assert_eq!(answer.status, 200, "{}", answer.text());
            assert_eq!(answer.header("x-backstop-provider"), name);
            assert_eq!(answer.json()["extra_fields"]["model_served"], "m");
        }
        assert_eq!(sim.attempt(1).header("api-key"), None);
    }
    let (sim, gateway) = start("openai", Script::healthy()).await;
    let path = "/openai/deployments/openai/gpt-4o/chat/completions?api-version=2024-10-21";
    let body = json!({"messages": [{"role": "user", "content": "hi"}], "stream": true});
    let answer = send(&gateway, path, &body).await;
    assert!(answer.events().last().is_some_and(|last| last.is_end()));
    assert_eq!(sim.attempt(1).json()["model"], "gpt-4o");
    let answer = send(&gateway, path, &json!([])).await;
    assert_eq!(
        (answer.status, answer.code()),
        (400, "not_an_object".into())
    );
}

#[tokio::test]
async fn azure_is_asked_by_deployment() {
    for (settings, path) in [
        (
            "api_version = \"2024-10-21\"",
            "/openai/deployments/m/embeddings",
        ),
        ("", "/openai/v1/embeddings"),
    ] {
        let sim = provider(Script::healthy()).await;
        let config = format!("{}\n{settings}", one("azure"));
        let gateway = TestGateway::start(&config, &[("azure", &sim)]).await;
        let answer = send(&gateway, EMBEDDINGS, &two("azure/m")).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(sim.attempt(1).path(), path);
        let google = "/genai/v1beta/models/azure/m:embedContent";
        let one = json!({"content": {"parts": [{"text": "a"}]}});
        let google = send(&gateway, google, &one).await.json();
        let openai = answer.json();
        assert_eq!(
            google["embedding"]["values"],
            openai["data"][0]["embedding"]
        );
    }
}

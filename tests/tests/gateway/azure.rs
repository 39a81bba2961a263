//! Azure's models: deployments, the v1 surface, Foundry, and names that keys have for models.

use backstop_faultsim::{Item, Script, Sim, Step};
use backstop_tests::{TestGateway, secret};
use serde_json::json;

use crate::common::{as_scripted, ask, ask_stream, column, one, provider};

const MESSAGES: &str = "/v1/messages";

/// What Azure said, from the fixtures of the provider.
macro_rules! recorded {
    ($file:literal) => {
        include_str!(concat!("../../../crates/providers/fixtures/azure/", $file))
    };
}

fn whole(status: u16, body: &str) -> Step {
    Step::text(status, body).header("content-type", "application/json")
}

/// Path and query.
fn target(sim: &Sim, seq: u64) -> String {
    let attempt = sim.attempt(seq);
    let query = attempt.query().map(|query| format!("?{query}"));
    attempt.path().to_owned() + &query.unwrap_or_default()
}

fn stream(body: &'static str) -> Step {
    Step::sse(body.as_bytes().chunks(37).map(Item::raw))
}

/// `azure` with two keys, each of which calls `gpt-4o` something else; `more` is what the provider
/// says besides.
async fn start(script: Script, more: &str) -> (Sim, TestGateway) {
    let sim = provider(script).await;
    let config = format!(
        r#"
        [providers.azure]
        base_url = "env.AZURE_URL"
        {more}
        network_config = {{ retry_backoff_initial = 1, max_retries = 1 }}
        [[providers.azure.keys]]
        value = "env.AZURE_KEY_1"
        aliases = {{ "gpt-4o" = "east/4o" }}
        models = ["*"]
        [[providers.azure.keys]]
        value = "env.AZURE_KEY_2"
        aliases = {{ "gpt-4o" = "west-4o" }}
        "#
    );
    let gateway = TestGateway::start(&config, &[("azure", &sim)]).await;
    (sim, gateway)
}

const DATED: &str = "api_version = \"2024-10-21\"";

#[tokio::test]
async fn each_key_has_its_own_name_for_the_model_and_the_caller_sees_none_of_them() {
    let refused = whole(401, recorded!("errors/invalid-key.json"));
    let answer = whole(200, recorded!("answers/text.json"));
    let (sim, gateway) = start(Script::new().step(refused).step(answer), DATED).await;
    let answer = gateway.chat(ask("azure/gpt-4o")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.header("x-backstop-model"), "gpt-4o");
    let trail = answer.trail();
    assert_eq!(column(&trail, "model"), ["gpt-4o", "gpt-4o"]);
    assert_eq!(column(&trail, "key_name"), ["azure-key-1", "azure-key-2"]);
    for alias in ["east/4o", "east%2F4o", "west-4o"] {
        assert!(!answer.text().contains(alias), "{alias}");
    }
    for (seq, deployment, model) in [(1, "east%2F4o", "east/4o"), (2, "west-4o", "west-4o")] {
        let attempt = sim.attempt(seq);
        let path =
            format!("/openai/deployments/{deployment}/chat/completions?api-version=2024-10-21");
        assert_eq!(target(&sim, seq), path);
        assert_eq!(attempt.json()["model"], model);
        let key = secret(&format!("AZURE_KEY_{seq}"));
        assert_eq!(attempt.header("api-key"), Some(key.as_str()));
        assert_eq!(attempt.header("authorization"), None);
        assert!(attempt.header("x-ms-client-request-id").is_some());
    }
    as_scripted(&sim);
}

#[tokio::test]
async fn callers_of_other_dialects_reach_the_same_deployment() {
    let answer = whole(200, recorded!("answers/text.json"));
    let (sim, gateway) = start(Script::new().step(answer), DATED).await;
    let body = ask("azure/gpt-4o").to_string();
    let answer = gateway.post(MESSAGES, body).send().await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let sent = sim.attempt(1);
    assert_eq!(
        sent.path(),
        "/openai/deployments/east%2F4o/chat/completions"
    );
    // OpenAI's newest models refuse the older name.
    assert_eq!(sent.json()["max_completion_tokens"], 64);
    as_scripted(&sim);
}

#[tokio::test]
async fn the_v1_surface_speaks_responses_and_foundry_its_own_version() {
    let body = json!({"model": "azure/gpt-4o", "input": "hi", "store": false}).to_string();
    let answer = whole(200, recorded!("answers/responses-parallel-tools.json"));
    let (sim, gateway) = start(Script::new().step(answer), "").await;
    let answer = gateway.post("/v1/responses", body.clone()).send().await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(target(&sim, 1), "/openai/v1/responses");
    assert_eq!(sim.attempt(1).json()["model"], "east/4o");
    as_scripted(&sim);

    // Where the dialect is not spoken, it is translated.
    let answer = whole(200, recorded!("answers/text.json"));
    let (sim, gateway) = start(Script::new().step(answer), DATED).await;
    let answer = gateway.post("/v1/responses", body).send().await;
    assert_eq!(answer.json()["object"], "response", "{}", answer.text());
    as_scripted(&sim);

    let sim =
        provider(Script::new().step(whole(200, recorded!("answers/foundry-parallel-tools.json"))))
            .await;
    let config = format!(
        "[providers.azure]\nbase_url = \"{}/models\"\nkeys = [\"env.AZURE_KEY_1\"]",
        sim.url()
    );
    let gateway = TestGateway::start(&config, &[]).await;
    let answer = gateway.chat(ask("azure/grok-4-1")).await;
    let calls = &answer.json()["choices"][0]["message"]["tool_calls"];
    assert_eq!(calls.as_array().map(Vec::len), Some(2), "{}", answer.text());
    assert_eq!(
        target(&sim, 1),
        "/models/chat/completions?api-version=2024-05-01-preview"
    );
    assert_eq!(sim.attempt(1).json()["model"], "grok-4-1");
    as_scripted(&sim);
}

#[tokio::test]
async fn what_precedes_the_text_commits_to_nothing() {
    let script = Script::new()
        .step(stream(recorded!("streams/error-after-startup.sse")))
        .step(stream(recorded!("streams/startup.sse")));
    let (sim, gateway) = start(script, DATED).await;
    let answer = gateway.chat(ask_stream("azure/gpt-4o")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.header("x-backstop-attempts"), "2");
    // The winner's startup is delivered, all of it and in its place.
    assert_eq!(answer.text(), recorded!("streams/startup.sse"));
    as_scripted(&sim);

    // A stream that ends there has failed, and nobody saw the beginning of it.
    let script = Script::new().step(stream(recorded!("streams/cut-after-startup.sse")));
    let (sim, gateway) = start(script, DATED).await;
    let answer = gateway.chat(ask_stream("azure/gpt-4o")).await;
    assert_eq!(answer.status, 502);
    assert_eq!(column(&answer.trail(), "failure_kind"), ["startup_only"]);
    as_scripted(&sim);
}

#[tokio::test]
async fn streams_of_azures_are_passed_on_as_they_came() {
    for (recorded, said) in [
        (recorded!("streams/async-filter.sse"), "Hello there"),
        (recorded!("streams/filtered.sse"), "I"),
    ] {
        let (sim, gateway) = start(Script::new().step(stream(recorded)), DATED).await;
        let answer = gateway.chat(ask_stream("azure/gpt-4o")).await;
        assert_eq!(answer.text(), recorded);
        assert_eq!(answer.said(), said);
        as_scripted(&sim);
        let (sim, gateway) = start(Script::new().step(stream(recorded)), DATED).await;
        let body = ask_stream("azure/gpt-4o").to_string();
        let answer = gateway.post(MESSAGES, body).send().await;
        assert_eq!(answer.said(), said, "{}", answer.text());
        as_scripted(&sim);
    }
}

#[tokio::test]
async fn a_choice_without_a_message_is_an_answer() {
    let filtered = whole(200, recorded!("answers/no-message.json")).repeat(2);
    let (sim, gateway) = start(Script::new().step(filtered), DATED).await;
    let answer = gateway.chat(ask("azure/gpt-4o")).await;
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.json()["choices"][0]["finish_reason"],
        "content_filter"
    );
    let body = ask("azure/gpt-4o").to_string();
    let answer = gateway.post(MESSAGES, body).send().await.json();
    assert_eq!(answer["stop_reason"], "refusal");
    assert_eq!(answer["content"], json!([]));
    as_scripted(&sim);
}

#[tokio::test]
async fn azures_errors_are_read_by_its_own_table() {
    for (status, body, class, sends) in [
        (429, recorded!("errors/limit.json"), "rate_limit", 2),
        (
            400,
            recorded!("errors/prompt-filter.json"),
            "caller_fault",
            1,
        ),
        (
            404,
            recorded!("errors/no-deployment.json"),
            "model_access",
            2,
        ),
    ] {
        let script = Script::new().step(whole(status, body).repeat(sends));
        let (sim, gateway) = start(script, DATED).await;
        let answer = gateway.chat(ask("azure/gpt-4o")).await;
        assert_eq!(answer.status, status, "{}", answer.text());
        let classes = column(&answer.trail(), "failure_class");
        assert!(classes.iter().all(|found| found == class), "{classes:?}");
        as_scripted(&sim);
    }
}

#[tokio::test]
async fn azures_clients_name_the_model_in_the_path() {
    let answer = whole(200, recorded!("answers/text.json")).repeat(4);
    let sim = provider(Script::new().step(answer)).await;
    let gateway = TestGateway::start(&one("openai"), &[("openai", &sim)]).await;
    let surface =
        |name: &str| format!("/openai/deployments/{name}/chat/completions?api-version=2024-10-21");
    let mut nameless = ask("");
    nameless.as_object_mut().expect("an object").remove("model");
    for (seq, name, body) in [
        // The path wins.
        (1, "openai/gpt-4o", ask("nobody/nothing")),
        (2, "openai%2Fgpt-4o", ask("openai/gpt-4o")),
        (3, "openai/gpt-4o", nameless.clone()),
    ] {
        let call = gateway.post(&surface(name), body.to_string());
        let answer = call.header("api-key", "canary-callers-own").send().await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let asked = &answer.json()["extra_fields"]["model_requested"];
        assert_eq!(asked, "openai/gpt-4o");
        let sent = sim.attempt(seq);
        assert_eq!(target(&sim, seq), "/v1/chat/completions");
        assert_eq!(sent.json()["model"], "gpt-4o");
        assert_eq!(sent.header("api-key"), None);
    }
    let body = json!({"input": "hi", "store": false}).to_string();
    let path = "/openai/deployments/openai/gpt-4o/responses";
    let answer = gateway.post(path, body).send().await;
    assert_eq!(target(&sim, 4), "/v1/responses");
    assert_eq!(sim.attempt(4).json()["model"], "gpt-4o");
    assert_ne!(answer.status, 404);
    for (name, body, status, code) in [
        ("nobody", nameless.to_string(), 404, "model_not_found"),
        ("openai/gpt-4o", "[]".to_owned(), 400, "not_an_object"),
        ("openai/gpt-4o", "{".to_owned(), 400, "invalid_json"),
    ] {
        let refused = gateway.post(&surface(name), body).send().await;
        assert_eq!(refused.status, status, "{}", refused.text());
        assert_eq!(refused.code(), code);
    }
    as_scripted(&sim);
}

//! The other paths: models, health, readiness, numbers.

use backstop_faultsim::Script;
use backstop_tests::TestGateway;

use crate::common::{ask, provider, with_backup};

#[tokio::test]
async fn models_are_listed_in_the_shape_each_sdk_reads() {
    let sim = provider(Script::new()).await;
    let sims = [("openai", &sim), ("backup", &sim)];
    let gateway = TestGateway::start(&with_backup(0), &sims).await;
    let names = ["chat", "backup/gpt-4o", "openai/gpt-4o"];
    for path in ["/v1/models", "/openai/v1/models"] {
        let answer = gateway.get(path).await;
        assert_eq!(answer.status, 200);
        let body = answer.json();
        assert_eq!(body["object"], "list");
        for name in names {
            let listed = body["data"].as_array().expect("a list");
            let found = listed.iter().find(|model| model["id"] == name).expect(name);
            assert_eq!(found["object"], "model");
            assert!(found["created"].is_u64() && found["owned_by"].is_string());
        }
    }
    let call = gateway.call("GET", "/v1/models");
    let answer = call.header("anthropic-version", "2023-06-01").send().await;
    let body = answer.json();
    assert_eq!(body["has_more"], false);
    assert_eq!(body["first_id"], body["data"][0]["id"]);
    for model in body["data"].as_array().expect("a list") {
        assert_eq!(model["type"], "model");
        assert!(model["display_name"].is_string() && model["created_at"].is_string());
    }
    assert_eq!(sim.attempt_count(), 0);

    for path in ["/genai/v1beta/models", "/v1beta/models"] {
        let body = gateway.get(path).await.json();
        let listed = body["models"].as_array().expect("a list");
        for name in names {
            let name = format!("models/{name}");
            assert!(listed.iter().any(|model| model["name"] == name), "{name}");
        }
    }
    let body = gateway.get("/anthropic/v1/models").await.json();
    assert_eq!(body["has_more"], false);
}

#[tokio::test]
async fn one_model_is_told_of_in_the_shape_each_sdk_reads() {
    let sim = provider(Script::new()).await;
    let sims = [("openai", &sim), ("backup", &sim)];
    let gateway = TestGateway::start(&with_backup(0), &sims).await;
    for (path, id, owner) in [
        ("/v1/models/chat", "chat", "backstop"),
        (
            "/openai/v1/models/openai%2Fgpt-4o",
            "openai/gpt-4o",
            "openai",
        ),
        ("/v1/models/backup/llama3:8b", "backup/llama3:8b", "backup"),
    ] {
        let body = gateway.get(path).await.json();
        assert_eq!(
            (&body["id"], &body["owned_by"]),
            (&id.into(), &owner.into())
        );
    }
    let body = gateway.get("/anthropic/v1/models/chat").await.json();
    assert_eq!(
        (&body["type"], &body["id"]),
        (&"model".into(), &"chat".into())
    );
    let body = gateway
        .get("/genai/v1beta/models/openai/gpt-4o")
        .await
        .json();
    assert_eq!(body["name"], "models/openai/gpt-4o");

    for (path, pointer, word) in [
        ("/v1/models/nobody", "/error/code", "model_not_found"),
        (
            "/anthropic/v1/models/nobody",
            "/error/type",
            "not_found_error",
        ),
        ("/genai/v1beta/models/nobody", "/error/status", "NOT_FOUND"),
    ] {
        let answer = gateway.get(path).await;
        assert_eq!(answer.status, 404);
        let body = answer.json();
        assert_eq!(body.pointer(pointer), Some(&word.into()), "{body}");
    }
    assert_eq!(sim.attempt_count(), 0);
}

#[tokio::test]
async fn numbers_carry_no_name_that_was_not_configured() {
    let sim = provider(Script::healthy()).await;
    let sims = [("openai", &sim), ("backup", &sim)];
    let gateway = TestGateway::start(&with_backup(0), &sims).await;
    assert_eq!(gateway.chat(ask("chat")).await.status, 200);
    assert_eq!(
        gateway.chat(ask("openai/made-up-by-a-caller")).await.status,
        200
    );
    assert_eq!(gateway.chat(ask("made-up-provider/m")).await.status, 404);
    let call = gateway.post("/v1/chat/completions", ask("chat").to_string());
    let answer = call.header("x-request-id", "made-up-id").send().await;
    assert_eq!(answer.status, 200);
    let _ = gateway.get("/made-up-path").await;
    let page = gateway.get("/metrics").await;
    assert_eq!(page.status, 200);
    assert!(page.header("content-type").starts_with("text/plain"));
    let text = page.text();
    assert!(!text.contains("made-up"), "{text}");
    assert!(text.contains(r#"route="chat""#), "{text}");
    assert!(text.contains(r#"outcome="success""#), "{text}");
    for line in text.lines() {
        let sound = line.starts_with("# ")
            || line
                .rsplit_once(' ')
                .is_some_and(|(_, number)| number.parse::<f64>().is_ok());
        assert!(sound, "{line}");
    }
}

#[tokio::test]
async fn health_and_readiness_need_no_provider() {
    let sim = provider(Script::new()).await;
    let sims = [("openai", &sim), ("backup", &sim)];
    let gateway = TestGateway::start(&with_backup(0), &sims).await;
    assert_eq!(gateway.get("/healthz").await.status, 200);
    assert_eq!(gateway.get("/readyz").await.status, 200);
    gateway.begin_drain();
    let draining = gateway.get("/readyz").await;
    assert_eq!((draining.status, draining.text()), (503, "draining\n"));
    assert_eq!(gateway.get("/healthz").await.status, 200);
    assert_eq!(sim.attempt_count(), 0);
}

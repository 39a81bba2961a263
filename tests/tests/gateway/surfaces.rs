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

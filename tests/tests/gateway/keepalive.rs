//! Keepalives: a waiting caller hears something, and nothing is decided by it.

use std::time::Duration;

use backstop_faultsim::{Fault, Script, Step};
use backstop_tests::TestGateway;

use crate::common::{ask_stream, both_dialects, provider, untouched, with_backup};

/// Long enough for several beats of the shortest pulse the configuration takes.
const SILENCE: Duration = Duration::from_millis(400);

fn beating(config: &str) -> String {
    format!("[server]\nkeepalive_ms = 100\n{config}")
}

#[tokio::test]
async fn a_waiting_caller_hears_keepalives_and_then_the_answer() {
    let script = || Script::new().step(Step::stream_text(["Hel", "lo"]).delay(SILENCE));
    let (openai, anthropic) = (provider(script()).await, provider(script()).await);
    let sims = [("openai", &openai), ("anthropic", &anthropic)];
    let gateway = TestGateway::start(&beating(&both_dialects()), &sims).await;
    for (path, model, beat) in [
        ("/v1/chat/completions", "openai/gpt-4o", ": keepalive\n\n"),
        (
            "/v1/messages",
            "anthropic/claude-sonnet-4-5",
            "event: ping\n",
        ),
    ] {
        let answer = gateway
            .post(path, ask_stream(model).to_string())
            .send()
            .await;
        assert_eq!(answer.status, 200);
        assert!(answer.text().starts_with(beat), "{}", answer.text());
        assert_eq!(answer.said(), "Hello");
        assert!(
            answer
                .events()
                .last()
                .is_some_and(backstop_tests::Event::is_end)
        );
    }
}

#[tokio::test]
async fn a_keepalive_leaves_the_choice_of_channel_open() {
    let failing = Step::fault(Fault::Unavailable).delay(SILENCE);
    let openai = provider(Script::new().step(failing)).await;
    let backup = provider(Script::new().step(Step::stream_text(["Hello"]))).await;
    let sims = [("openai", &openai), ("backup", &backup)];
    let gateway = TestGateway::start(&beating(&with_backup(0)), &sims).await;
    let body = ask_stream("chat").to_string();
    let answer = gateway.post("/v1/chat/completions", body).send().await;
    assert_eq!((answer.status, answer.said().as_str()), (200, "Hello"));
    let record = gateway.record(answer.id()).await;
    assert_eq!(record.terminal, "success");
    assert_eq!(record.rows.len(), 2);
}

#[tokio::test]
async fn a_failure_after_a_keepalive_is_told_as_an_event() {
    let failing = Step::fault(Fault::Unavailable).delay(SILENCE);
    let openai = provider(Script::new().step(failing)).await;
    let anthropic = untouched().await;
    let sims = [("openai", &openai), ("anthropic", &anthropic)];
    let gateway = TestGateway::start(&beating(&both_dialects()), &sims).await;
    let body = ask_stream("openai/gpt-4o").to_string();
    let answer = gateway.post("/v1/chat/completions", body).send().await;
    assert_eq!(answer.status, 200);
    let events = answer.events();
    assert!(
        events.last().is_some_and(backstop_tests::Event::is_error),
        "{}",
        answer.text()
    );
    assert!(!answer.text().contains("[DONE]"));
    assert_eq!(gateway.record(answer.id()).await.terminal, "exhausted");
}

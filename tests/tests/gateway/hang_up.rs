//! The caller leaves: nothing is sent for it any more, and what was sent is given up.

use std::time::Duration;

use backstop_faultsim::{End, Fault, Script, Sim, Step};
use backstop_tests::{TestGateway, soon};
use serde_json::Value;

use crate::common::{ask, ask_stream, provider, untouched, with_backup};

struct Scene {
    openai: Sim,
    backup: Sim,
    gateway: TestGateway,
}

impl Scene {
    /// A first step at the primary; every further send anywhere fails the test.
    async fn new(step: Step) -> Self {
        let (openai, backup) = (provider(Script::new().step(step)).await, untouched().await);
        let sims = [("openai", &openai), ("backup", &backup)];
        let config = with_backup(5).replace(
            "retry_backoff_initial = 1",
            "retry_backoff_initial = \"1h\", retry_backoff_max = \"1h\"",
        );
        let config = "defaults = { deadline_ms = 80000000 }\n".to_owned() + &config;
        let gateway = TestGateway::start(&config, &sims).await;
        Self {
            openai,
            backup,
            gateway,
        }
    }

    fn call(&self, id: &str, body: &Value) -> backstop_tests::Call {
        self.gateway
            .post("/v1/chat/completions", body.to_string())
            .header("x-request-id", id)
    }

    /// The provider's connection is closed, the journey is booked, and nothing more was sent.
    async fn gone(&self, id: &str) -> Value {
        let record = self.gateway.record(id).await;
        assert_eq!(record.terminal, "cancelled");
        assert_eq!(self.openai.attempt_count(), 1);
        assert_eq!(self.backup.attempt_count(), 0);
        record.to_json()
    }
}

#[tokio::test]
async fn before_the_providers_head() {
    for body in [ask("chat"), ask_stream("chat")] {
        let scene = Scene::new(Step::silent(End::Hang)).await;
        let caller = scene.call("h-1", &body).start().await;
        let attempt = &soon("the attempt", scene.openai.wait_for_attempts(1)).await[0];
        drop(caller);
        let closed = soon("the upstream close", attempt.closed_by_peer()).await;
        assert!(closed.is_some());
        let record = scene.gone("h-1").await;
        assert_eq!(record["status"], Value::Null);
        assert_eq!(record["attempt_trail"][0]["outcome"], "cancelled");
    }
}

#[tokio::test]
async fn after_it_has_sent_more_than_its_request() {
    // Old clients end a body with one line end too many, others send the next request early.
    let more = b"GET /healthz HTTP/1.1\r\nhost: g\r\n\r\n";
    for extra in [&b"\r\n"[..], more] {
        let scene = Scene::new(Step::silent(End::Hang)).await;
        let mut caller = scene.call("h-8", &ask("chat")).start().await;
        caller.write(extra).await;
        let attempt = &soon("the attempt", scene.openai.wait_for_attempts(1)).await[0];
        drop(caller);
        let closed = soon("the upstream close", attempt.closed_by_peer()).await;
        assert!(closed.is_some());
        scene.gone("h-8").await;
    }
}

#[tokio::test]
async fn inside_an_answer_that_is_not_streamed() {
    let step = Step::ok_text("never to be read")
        .end_after(20)
        .then(End::Hang);
    let scene = Scene::new(step).await;
    let caller = scene.call("h-2", &ask("chat")).start().await;
    let attempt = &soon("the attempt", scene.openai.wait_for_attempts(1)).await[0];
    backstop_tests::until("the first bytes", || attempt.progress().first_body).await;
    drop(caller);
    let closed = soon("the upstream close", attempt.closed_by_peer()).await;
    assert!(closed.is_some());
    scene.gone("h-2").await;
}

#[tokio::test]
async fn while_waiting_to_try_again() {
    for body in [ask("chat"), ask_stream("chat")] {
        let scene = Scene::new(Step::fault(Fault::Unavailable)).await;
        let caller = scene.call("h-3", &body).start().await;
        let attempt = &soon("the attempt", scene.openai.wait_for_attempts(1)).await[0];
        soon("its end", attempt.finished()).await;
        for _ in 0..200 {
            tokio::task::yield_now().await;
        }
        assert_eq!(scene.gateway.journeys(), 0, "it waits for its next attempt");
        drop(caller);
        let record = scene.gone("h-3").await;
        let rows = record["attempt_trail"].as_array().expect("rows").len();
        assert_eq!(rows, 1);
        assert_eq!(record["attempt_trail"][0]["outcome"], "failed");
    }
}

#[tokio::test]
async fn in_the_middle_of_a_stream() {
    let scene = Scene::new(Step::stream_text(["Hel", "lo"]).then(End::Hang)).await;
    let mut caller = scene.call("h-4", &ask_stream("chat")).open().await;
    assert_eq!(caller.status, 200);
    while caller.event().await.expect("an event").text().is_empty() {}
    drop(caller);
    let attempt = scene.openai.attempt(1);
    let closed = soon("the upstream close", attempt.closed_by_peer()).await;
    assert!(closed.is_some());
    let record = scene.gone("h-4").await;
    assert_eq!(record["attempt_trail"][0]["phase"], "after_output");
    assert_eq!(record["attempt_trail"][0]["outcome"], "cancelled");
}

#[tokio::test]
async fn before_a_streams_first_output() {
    let scene = Scene::new(Step::stream_text([""; 0]).then(End::Hang)).await;
    let caller = scene.call("h-5", &ask_stream("chat")).start().await;
    let attempt = &soon("the attempt", scene.openai.wait_for_attempts(1)).await[0];
    backstop_tests::until("the role", || attempt.progress().first_body).await;
    drop(caller);
    let closed = soon("the upstream close", attempt.closed_by_peer()).await;
    assert!(closed.is_some());
    let record = scene.gone("h-5").await;
    assert_eq!(record["attempt_trail"][0]["phase"], "before_output");
}

#[tokio::test]
async fn while_it_does_not_read() {
    // More than the sockets and the gateway hold together, so that the journey stands still.
    let piece = "x".repeat(64 * 1024);
    let pieces = vec![piece; 400];
    let scene = Scene::new(Step::stream_text(pieces)).await;
    let caller = scene.call("h-6", &ask_stream("chat")).start().await;
    let attempt = &soon("the attempt", scene.openai.wait_for_attempts(1)).await[0];
    backstop_tests::until("the first bytes", || attempt.progress().first_body).await;
    let mut sent = 0;
    let mut quiet = 0;
    backstop_tests::until("the provider being held back", || {
        let now = attempt.progress().body_bytes;
        quiet = if now == sent { quiet + 1 } else { 0 };
        sent = now;
        (quiet > 2000 && sent > 0).then_some(())
    })
    .await;
    assert!(
        attempt.progress().ending.is_none(),
        "{sent} bytes were taken"
    );
    drop(caller);
    let closed = soon("the upstream close", attempt.closed_by_peer()).await;
    assert!(closed.is_some());
    scene.gone("h-6").await;
}

#[tokio::test]
async fn one_that_never_reads_is_broken_off() {
    let pieces = vec!["x".repeat(64 * 1024); 400];
    let openai = provider(Script::new().step(Step::stream_text(pieces))).await;
    let config = "server = { stall_ms = 50 }\n".to_owned() + &crate::common::one("openai");
    let gateway = TestGateway::start(&config, &[("openai", &openai)]).await;
    let caller = gateway
        .post("/v1/chat/completions", ask_stream("openai/a").to_string())
        .header("x-request-id", "h-7")
        .start()
        .await;
    let attempt = &soon("the attempt", openai.wait_for_attempts(1)).await[0];
    let closed = soon("the upstream close", attempt.closed_by_peer()).await;
    assert!(closed.is_some());
    assert_eq!(gateway.record("h-7").await.terminal, "cancelled");
    drop(caller);
}

#[tokio::test]
async fn a_caller_that_leaves_a_probe_leaves_no_slot_taken() {
    let openai = provider(Script::new().step(Step::fault(Fault::Unavailable))).await;
    let backup = untouched().await;
    let sims = [("openai", &openai), ("backup", &backup)];
    let config = with_backup(0).replace(
        "base_url = \"env.OPENAI_URL\"",
        "base_url = \"env.OPENAI_URL\"\nbreaker = { failures = 1, open_ms = 1 }",
    );
    let gateway = TestGateway::start(&config, &sims).await;
    assert_eq!(gateway.chat(ask("openai/gpt-4o")).await.status, 503);
    openai.push(Step::silent(End::Hang));
    tokio::time::sleep(Duration::from_millis(2)).await;
    let caller = gateway
        .post("/v1/chat/completions", ask("openai/gpt-4o").to_string())
        .start()
        .await;
    let attempt = soon("the probe", openai.wait_for_attempts(2))
        .await
        .remove(1);
    drop(caller);
    soon("the upstream close", attempt.closed_by_peer()).await;
    openai.push(Step::ok_text("back"));
    let answer = gateway.chat(ask("openai/gpt-4o")).await;
    assert_eq!(answer.said(), "back");
}

//! Choice inside a group by what goes on at its channels, and what a failure says about them.

use backstop_faultsim::{End, Fault, Script, Sim, Step};
use backstop_tests::TestGateway;
use serde_json::json;

use crate::common::{as_scripted, ask, ask_stream, column, one, provider};

/// `openai` and `backup` in one group; a channel whose breaker opens after `failures`.
fn group(choice: &str, failures: u32) -> String {
    let breaker = |name| format!("[providers.{name}.breaker]\nfailures = {failures}\n");
    let channels = "channels = [\"openai/gpt-4o\", \"backup/gpt-4o\"]";
    one("openai")
        + &breaker("openai")
        + &one("backup")
        + &breaker("backup")
        + &format!("[[routes.chat.groups]]\nchoice = \"{choice}\"\n{channels}\n")
}

async fn start(config: &str, openai: Script, backup: Script) -> (Sim, Sim, TestGateway) {
    let (openai, backup) = (provider(openai).await, provider(backup).await);
    let sims = [("openai", &openai), ("backup", &backup)];
    let gateway = TestGateway::start(config, &sims).await;
    (openai, backup, gateway)
}

#[tokio::test]
async fn by_latency_a_channel_that_fails_at_once_is_not_the_fastest() {
    let openai = Script::new().step(Step::fault(Fault::ServerError));
    let backup = Script::new().step(Step::ok_text("backup").repeat(3));
    let (openai, backup, gateway) = start(&group("least_latency", 5), openai, backup).await;
    for attempts in ["2", "1", "1"] {
        let answer = gateway.chat(ask("chat")).await;
        assert_eq!(answer.said(), "backup");
        assert_eq!(answer.header("x-backstop-attempts"), attempts);
    }
    as_scripted(&openai);
    as_scripted(&backup);
}

#[tokio::test]
async fn the_least_busy_channel_is_asked() {
    let hanging = Step::stream_text(["Hel"]).then(End::Hang);
    let openai = Script::new().step(hanging).step(Step::ok_text("openai"));
    let backup = Script::new().step(Step::ok_text("backup").repeat(2));
    let (openai, backup, gateway) = start(&group("least_busy", 5), openai, backup).await;
    let call = gateway.post("/v1/chat/completions", ask_stream("chat").to_string());
    let mut stream = call.open().await;
    stream.event().await.expect("the role");
    for _ in 0..2 {
        assert_eq!(gateway.chat(ask("chat")).await.said(), "backup");
    }
    drop(stream);
    backstop_tests::until("the journey's end", || {
        (gateway.journeys() == 3).then_some(())
    })
    .await;
    assert_eq!(gateway.chat(ask("chat")).await.said(), "openai");
    as_scripted(&openai);
    as_scripted(&backup);
}

#[tokio::test]
async fn a_request_that_breaks_every_provider_opens_one_circuit() {
    let crash = || {
        let error = json!({"error": {"message": "oops", "type": "server_error", "code": "crash"}});
        Step::error(500, error)
    };
    let openai = Script::new().step(crash());
    let backup = Script::new().step(crash()).step(Step::ok_text("backup"));
    let (openai, backup, gateway) = start(&group("priority", 1), openai, backup).await;
    let answer = gateway.chat(ask("chat")).await;
    assert!(answer.status >= 500, "{}", answer.text());
    let answer = gateway.chat(ask("chat")).await;
    assert_eq!(answer.said(), "backup", "{}", answer.text());
    assert_eq!(column(&answer.trail(), "outcome"), ["skipped", "success"]);
    as_scripted(&openai);
    as_scripted(&backup);
}

#[tokio::test]
async fn a_window_of_tokens_rescues_a_stream_that_dies_within_it() {
    for (commit, rescued) in [
        ("window_tokens=3", true),
        ("window=60000,window_tokens=3", true),
        ("window_tokens=2", false),
        ("window=60000,window_tokens=2", false),
    ] {
        // Two events of one token each, by the rule of thumb; passed on or translated.
        for path in ["/v1/chat/completions", "/v1/messages"] {
            let dies = Step::stream_text(["Hel", "lo"]).then(End::Cut);
            let openai = Script::new().step(dies);
            let backup = Script::new().step(Step::stream_text(["who", "le"]));
            let (openai, backup, gateway) = start(&group("priority", 5), openai, backup).await;
            let call = gateway.post(path, ask_stream("chat").to_string());
            let answer = call.header("x-backstop-commit", commit).send().await;
            let want = if rescued { "whole" } else { "Hello" };
            assert_eq!(answer.said(), want, "{commit} {path}");
            as_scripted(&openai);
            if rescued {
                as_scripted(&backup);
            } else {
                assert_eq!(backup.attempt_count(), 0);
            }
        }
    }
}

//! Sessions: requests that a caller ties together meet the channel and the key that served them.

use backstop_faultsim::{Fault, Script, Sim, Step};
use backstop_tests::{Answer, TestGateway, secret};

use crate::common::{as_scripted, ask, ask_stream, provider, three_keys};

fn key(n: u32) -> String {
    secret(&format!("OPENAI_KEY_{n}"))
}

fn refused(n: u32, fault: Fault) -> Step {
    Step::fault(fault).key(key(n))
}

fn served(n: u32) -> Step {
    Step::ok_text(format!("key {n}")).key(key(n))
}

/// Three keys of which a refusal is forgotten with the request, so that only a session remembers.
fn forgetful(session: &str) -> String {
    let forgetful = "hold_refused_keys = false, max_retries =";
    let config = three_keys(0).replace("max_retries =", forgetful);
    format!("[session]\n{session}\n{config}")
}

async fn say(gateway: &TestGateway, session: &str) -> Answer {
    let call = gateway.post("/v1/chat/completions", ask("openai/gpt-4o").to_string());
    let call = if session.is_empty() {
        call
    } else {
        call.header("x-backstop-session", session)
    };
    call.send().await
}

async fn start(session: &str, steps: impl IntoIterator<Item = Step>) -> (Sim, TestGateway) {
    let openai = provider(Script::new().with_steps(steps)).await;
    let gateway = TestGateway::start(&forgetful(session), &[("openai", &openai)]).await;
    (openai, gateway)
}

#[tokio::test]
async fn a_session_goes_on_with_the_key_that_served_it() {
    for session in ["", "on_refusal = \"move\""] {
        // Its first request walks as any other; then it is bound, and nobody else is.
        let steps = [refused(1, Fault::InvalidKey), served(2)];
        let steps = steps
            .into_iter()
            .chain([served(2), served(1), served(1), served(2)]);
        let (openai, gateway) = start(session, steps).await;
        for (name, want) in [
            ("chat-1", "key 2"),
            ("chat-1", "key 2"),
            ("chat-2", "key 1"),
            ("", "key 1"),
            ("chat-1", "key 2"),
        ] {
            let answer = say(&gateway, name).await;
            assert_eq!(answer.said(), want, "{session} {name}: {}", answer.text());
        }
        as_scripted(&openai);
    }
}

#[tokio::test]
async fn a_session_that_stays_gets_its_keys_error_at_once() {
    for (fault, status) in [
        (Fault::InvalidKey, 401),
        (Fault::RateLimited, 429),
        (Fault::ModelNotFound, 404),
    ] {
        let steps = [refused(1, Fault::InvalidKey), served(2), refused(2, fault)];
        // It is still bound to the key afterwards.
        let (openai, gateway) = start("", steps.into_iter().chain([served(2)])).await;
        assert_eq!(say(&gateway, "s").await.said(), "key 2");
        let answer = say(&gateway, "s").await;
        assert_eq!(answer.status, status, "{}", answer.text());
        assert_eq!(answer.trail().len(), 1);
        assert_eq!(say(&gateway, "s").await.said(), "key 2");
        as_scripted(&openai);
    }
}

#[tokio::test]
async fn a_session_that_moves_is_bound_to_the_key_that_serves() {
    let steps = [
        served(1),
        refused(1, Fault::InvalidKey),
        refused(2, Fault::InvalidKey),
        served(3),
        served(3),
    ];
    let (openai, gateway) = start("on_refusal = \"move\"", steps).await;
    for want in ["key 1", "key 3", "key 3"] {
        assert_eq!(say(&gateway, "s").await.said(), want);
    }
    as_scripted(&openai);
}

#[tokio::test]
async fn a_pin_outranks_a_session_and_leaves_it_alone() {
    let steps = [
        refused(1, Fault::InvalidKey),
        served(2),
        served(3),
        served(2),
    ];
    let (openai, gateway) = start("", steps).await;
    assert_eq!(say(&gateway, "s").await.said(), "key 2");
    let pinned = gateway
        .post("/v1/chat/completions", ask("openai/gpt-4o").to_string())
        .header("x-backstop-session", "s")
        .header("x-backstop-key", "openai-key-3");
    assert_eq!(pinned.send().await.said(), "key 3");
    assert_eq!(say(&gateway, "s").await.said(), "key 2");
    as_scripted(&openai);
}

#[tokio::test]
async fn sessions_survive_a_reload_and_are_forgotten_where_there_are_none() {
    let steps = [
        refused(1, Fault::InvalidKey),
        served(2),
        served(2),
        served(1),
    ];
    let (openai, mut gateway) = start("capacity = 5", steps).await;
    assert_eq!(say(&gateway, "s").await.said(), "key 2");
    gateway.reload(&forgetful("capacity = 6"));
    assert_eq!(say(&gateway, "s").await.said(), "key 2");
    gateway.reload(&forgetful("capacity = 0"));
    assert_eq!(say(&gateway, "s").await.said(), "key 1");
    as_scripted(&openai);
}

#[tokio::test]
async fn a_session_needs_a_name_of_its_own() {
    let (openai, gateway) = start("", []).await;
    for name in ["two words", &"s".repeat(129)] {
        let answer = say(&gateway, name).await;
        assert_eq!(
            (answer.status, answer.code()),
            (400, "invalid_header".into())
        );
    }
    assert_eq!(openai.attempt_count(), 0);
}

#[tokio::test]
async fn a_session_goes_on_with_the_channel_that_served_it_among_its_equals() {
    const CHANNELS: &str = "channels = [\"openai/gpt-4o\", \"backup/gpt-4o\"]";
    for (choice, second, third) in [
        // Equals: the session stays where its cache is.
        ("weighted", "backup", "openai"),
        ("priority", "backup", "openai"),
        // The operator's order outranks it.
        ("in order", "openai", "openai"),
    ] {
        let groups = match choice {
            "in order" => "[routes]\nchat = [\"openai/gpt-4o\", \"backup/gpt-4o\"]".to_owned(),
            choice => format!("[[routes.chat.groups]]\nchoice = \"{choice}\"\n{CHANNELS}"),
        };
        let config = crate::common::one("openai") + &crate::common::one("backup") + &groups;
        let steps = [Step::fault(Fault::ServerError)];
        let spare = || Step::stream_text(["from openai"]).repeat(2);
        let openai = provider(Script::new().with_steps(steps).step(spare())).await;
        let backup =
            provider(Script::new().step(Step::stream_text(["from backup"]).repeat(2))).await;
        let sims = [("openai", &openai), ("backup", &backup)];
        let gateway = TestGateway::start(&config, &sims).await;
        for (session, want) in [("s", "backup"), ("s", second), ("t", third)] {
            let call = gateway.post("/v1/chat/completions", ask_stream("chat").to_string());
            let answer = call.header("x-backstop-session", session).send().await;
            assert_eq!(answer.said(), format!("from {want}"), "{choice} {session}");
        }
    }
}

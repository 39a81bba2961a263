//! Other channels and other models: when they are asked, and when they are not.

use backstop_faultsim::{Fault, Script, Step};
use backstop_tests::TestGateway;
use serde_json::{Value, json};

use crate::common::{as_scripted, ask, column, provider, untouched, with_backup};

#[tokio::test]
async fn a_provider_that_is_down_is_left_for_the_same_model_elsewhere() {
    let openai = provider(Script::new().step(Step::fault(Fault::Unavailable).repeat(3))).await;
    let backup = provider(Script::new().step(Step::ok_text("from backup"))).await;
    let sims = [("openai", &openai), ("backup", &backup)];
    let gateway = TestGateway::start(&with_backup(2), &sims).await;
    let answer = gateway.chat(ask("chat")).await;
    assert_eq!(answer.said(), "from backup");
    assert_eq!(answer.header("x-backstop-provider"), "backup");
    assert_eq!(answer.header("x-backstop-model"), "gpt-4o");
    assert_eq!(answer.header("x-backstop-action"), "fallback");
    assert_eq!(answer.header("x-backstop-attempts"), "4");
    let extra = &answer.json()["extra_fields"];
    assert_eq!(extra["model_requested"], "chat");
    assert_eq!(extra["model_served"], "gpt-4o");
    let trail = answer.trail();
    assert_eq!(
        column(&trail, "action"),
        ["direct", "retry", "retry", "fallback"]
    );
    assert_eq!(
        column(&trail, "provider"),
        ["openai", "openai", "openai", "backup"]
    );
    let record = gateway.record(answer.id()).await;
    assert_eq!((record.terminal, record.status), ("success", Some(200)));
    for sentence in [
        "Retry 1/2 for openai/gpt-4o (previous attempt failed: transient HTTP 503; same key=openai-key-1)",
        "Retries exhausted for openai/gpt-4o after 3 attempt(s); last error: transient HTTP 503",
        "Primary openai/gpt-4o failed (transient HTTP 503); evaluating 1 configured fallback(s)",
        "Trying fallback 1/1: backup/gpt-4o (previous attempt failed: transient HTTP 503)",
        "Request served by fallback backup/gpt-4o (attempt 1/1)",
    ] {
        assert!(gateway.log().contains(sentence), "{sentence}");
    }
    as_scripted(&openai);
    as_scripted(&backup);
}

#[tokio::test]
async fn when_all_fail_the_primarys_error_is_told() {
    let openai = provider(Script::new().step(Step::fault(Fault::Unavailable))).await;
    let backup = provider(Script::new().step(Step::fault(Fault::ServerError))).await;
    let sims = [("openai", &openai), ("backup", &backup)];
    let gateway = TestGateway::start(&with_backup(0), &sims).await;
    let answer = gateway.chat(ask("chat")).await;
    assert_eq!(answer.status, 503);
    assert_eq!(answer.json()["error"]["message"], "Service unavailable.");
    assert_eq!(answer.header("x-should-retry"), "false");
    assert_eq!(answer.header("x-backstop-attempts"), "2");
    assert_eq!(gateway.record(answer.id()).await.terminal, "exhausted");
    as_scripted(&openai);
    as_scripted(&backup);
}

#[tokio::test]
async fn a_provider_that_cannot_be_reached_is_left() {
    let backup = provider(Script::new().step(Step::ok_text("from backup"))).await;
    // Nothing listens on the discard port of the loopback address.
    let config = with_backup(0).replace("env.OPENAI_URL", "http://127.0.0.1:9");
    let gateway = TestGateway::start(&config, &[("backup", &backup)]).await;
    let answer = gateway.chat(ask("chat")).await;
    assert_eq!(answer.said(), "from backup");
    let row = &answer.trail()[0];
    assert_eq!(row["failure_class"], "transient");
    assert_eq!(row["upstream_phase"], "not_sent");
    assert_eq!(row["status_code"], Value::Null);
    as_scripted(&backup);
}

#[tokio::test]
async fn another_model_answers_only_where_that_is_permitted() {
    let config = with_backup(0)
        + r#"
        [routes.premium]
        groups = [{ channels = ["openai/gpt-4o"] }]
        substitutions = [{ channel = "backup/small", on = ["transient", "rate_limit"] }]
    "#;
    let openai = provider(Script::new().step(Step::fault(Fault::Unavailable))).await;
    let backup = provider(Script::new().step(Step::ok_text("from the small one"))).await;
    let sims = [("openai", &openai), ("backup", &backup)];
    let gateway = TestGateway::start(&config, &sims).await;
    let answer = gateway.chat(ask("premium")).await;
    assert_eq!(answer.said(), "from the small one");
    assert_eq!(answer.header("x-backstop-action"), "substitution");
    assert_eq!(answer.header("x-backstop-model"), "small");
    assert_eq!(answer.header("x-backstop-provider"), "backup");
    let extra = &answer.json()["extra_fields"];
    assert_eq!(extra["model_requested"], "premium");
    assert_eq!(extra["model_served"], "small");
    assert_eq!(answer.trail()[1]["action"], "substitution");
    assert_eq!(backup.attempt(1).model(), Some("small"));

    // A class that the policy does not name.
    openai.push(Step::fault(Fault::InvalidKey));
    let refused = gateway.chat(ask("premium")).await;
    assert_eq!(refused.status, 401);
    as_scripted(&openai);
    as_scripted(&backup);
}

#[tokio::test]
async fn a_callers_own_chain_is_followed_and_taken_out() {
    let openai = provider(Script::new().step(Step::fault(Fault::Unavailable))).await;
    let backup = provider(Script::new().step(Step::ok_text("from the chain"))).await;
    let sims = [("openai", &openai), ("backup", &backup)];
    let gateway = TestGateway::start(&with_backup(0), &sims).await;
    let mut body = ask("openai/gpt-4o");
    body["fallbacks"] = json!(["nowhere/gpt-4o", "backup/other"]);
    let answer = gateway.chat(body).await;
    assert_eq!(answer.said(), "from the chain");
    assert_eq!(answer.header("x-backstop-model"), "other");
    assert_eq!(answer.header("x-backstop-action"), "substitution");
    for sim in [&openai, &backup] {
        assert_eq!(sim.attempt(1).json().get("fallbacks"), None);
        as_scripted(sim);
    }
    let skipped = "Fallback nowhere/gpt-4o skipped: missing provider config";
    assert!(gateway.log().contains(skipped));
}

#[tokio::test]
async fn what_is_no_passing_trouble_is_not_carried_on() {
    for (name, step) in [
        ("a caller's fault", Step::fault(Fault::InvalidRequest)),
        ("a content policy", Step::fault(Fault::ContentPolicy)),
        (
            "an answer that is none",
            Step::text(200, "<html>sign in</html>"),
        ),
        ("an empty answer", Step::text(200, "")),
    ] {
        let openai = provider(Script::new().step(step)).await;
        let backup = untouched().await;
        let sims = [("openai", &openai), ("backup", &backup)];
        let gateway = TestGateway::start(&with_backup(3), &sims).await;
        let answer = gateway.chat(ask("chat")).await;
        assert!(answer.status >= 400, "{name}");
        assert_eq!(answer.trail().len(), 1, "{name}");
        as_scripted(&openai);
        as_scripted(&backup);
    }
}

#[tokio::test]
async fn a_malformed_answer_is_carried_to_a_verified_channel() {
    let openai = provider(Script::new().step(Step::json(200, json!({"ok": true})))).await;
    let backup = provider(Script::new().step(Step::ok_text("sound"))).await;
    let sims = [("openai", &openai), ("backup", &backup)];
    let config = with_backup(0).replace(
        "base_url = \"env.BACKUP_URL\"",
        "base_url = \"env.BACKUP_URL\"\nverified = true",
    );
    let gateway = TestGateway::start(&config, &sims).await;
    let answer = gateway.chat(ask("chat")).await;
    assert_eq!(answer.said(), "sound");
    assert_eq!(answer.trail()[0]["failure_class"], "malformed");
    as_scripted(&openai);
    as_scripted(&backup);
}

#[tokio::test]
async fn a_prompt_that_is_too_long_goes_to_a_larger_window_alone() {
    let openai = provider(Script::new().step(Step::fault(Fault::ContextTooLong).repeat(1))).await;
    let backup = provider(Script::new().step(Step::ok_text("it fits"))).await;
    let sims = [("openai", &openai), ("backup", &backup)];
    let config = with_backup(0).replace(
        "base_url = \"env.OPENAI_URL\"",
        "base_url = \"env.OPENAI_URL\"\ncontext_window = 128000",
    ) + r#"
        [routes.long]
        groups = [{ channels = ["openai/gpt-4o", "backup/gpt-4o"] }]
        substitutions = [
            { channel = "backup/tiny", context_window = 8000 },
            { channel = "backup/huge", context_window = 1000000 },
        ]
    "#;
    let gateway = TestGateway::start(&config, &sims).await;
    let answer = gateway.chat(ask("long")).await;
    assert_eq!(answer.said(), "it fits");
    assert_eq!(answer.header("x-backstop-model"), "huge");
    as_scripted(&openai);
    as_scripted(&backup);
}

#[tokio::test]
async fn the_cap_on_sends_holds_over_all_channels() {
    let openai = provider(Script::new().step(Step::fault(Fault::Unavailable).repeat(2))).await;
    let backup = untouched().await;
    let sims = [("openai", &openai), ("backup", &backup)];
    let config = "defaults = { max_attempts = 2 }\n".to_owned() + &with_backup(9);
    let gateway = TestGateway::start(&config, &sims).await;
    let answer = gateway.chat(ask("chat")).await;
    assert_eq!(answer.status, 503);
    assert_eq!(answer.header("x-backstop-attempts"), "2");
    as_scripted(&openai);
    as_scripted(&backup);
}

#[tokio::test]
async fn an_open_channel_is_passed_over_and_tried_when_it_is_the_last() {
    let openai = provider(Script::new().step(Step::fault(Fault::Unavailable).always())).await;
    let backup = provider(Script::healthy()).await;
    let sims = [("openai", &openai), ("backup", &backup)];
    let config = with_backup(0).replace(
        "base_url = \"env.OPENAI_URL\"",
        "base_url = \"env.OPENAI_URL\"\nbreaker = { failures = 2, open_ms = 3600000, max_open_ms = 3600000 }",
    );
    let gateway = TestGateway::start(&config, &sims).await;
    for _ in 0..2 {
        assert_eq!(gateway.chat(ask("chat")).await.trail().len(), 2);
    }
    let skipped = gateway.chat(ask("chat")).await;
    let trail = skipped.trail();
    assert_eq!(column(&trail, "outcome"), ["skipped", "success"]);
    assert_eq!(trail[0]["attempt"], Value::Null);
    assert_eq!(skipped.header("x-backstop-attempts"), "1");
    assert_eq!(openai.attempt_count(), 2);

    // The same channel as the only one of a request: the least bad one is tried, once.
    let forced = gateway.chat(ask("openai/gpt-4o")).await;
    assert_eq!(forced.status, 503);
    assert_eq!(forced.header("x-backstop-attempts"), "1");
    assert_eq!(openai.attempt_count(), 3);
    openai.set_script(Script::healthy());
    assert_eq!(gateway.chat(ask("openai/gpt-4o")).await.status, 200);
}

#[tokio::test]
async fn a_deadline_ends_the_request_in_its_dialect() {
    let openai = provider(Script::new().step(Step::silent(backstop_faultsim::End::Hang))).await;
    let backup = untouched().await;
    let sims = [("openai", &openai), ("backup", &backup)];
    let gateway = TestGateway::start(&with_backup(3), &sims).await;
    let call = gateway.post("/v1/chat/completions", ask("chat").to_string());
    let answer = call.header("x-backstop-deadline-ms", "60").send().await;
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (504, "request_timed_out")
    );
    assert_eq!(gateway.record(answer.id()).await.terminal, "deadline");
    let closed = openai.attempt(1).closed_by_peer().await;
    assert!(closed.is_some(), "the upstream connection stays open");
    as_scripted(&backup);
}

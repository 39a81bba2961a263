//! Several keys of one provider: which is asked next, and what the caller is told in the end.

use backstop_faultsim::{Fault, Script, Step};
use backstop_tests::{TestGateway, secret};
use serde_json::{Value, json};

use crate::common::{as_scripted, ask, column, one, provider, three_keys};

fn key(n: u32) -> String {
    secret(&format!("OPENAI_KEY_{n}"))
}

fn refused(n: u32, fault: Fault) -> Step {
    Step::fault(fault).key(key(n))
}

#[tokio::test]
async fn refused_keys_are_walked_past_without_budget_or_wait() {
    for (fault, class, status) in [
        (Fault::InvalidKey, "credential", 401),
        (Fault::InsufficientQuota, "quota", 429),
        (Fault::PermissionDenied, "credential", 403),
        (Fault::ModelNotFound, "model_access", 404),
    ] {
        let script = Script::new()
            .step(refused(1, fault))
            .step(refused(2, fault))
            .step(Step::ok_text("from key 3").key(key(3)));
        let openai = provider(script).await;
        let gateway = TestGateway::start(&three_keys(0), &[("openai", &openai)]).await;
        let answer = gateway.chat(ask("openai/gpt-4o")).await;
        assert_eq!(answer.status, 200, "{fault:?}: {}", answer.text());
        assert_eq!(answer.said(), "from key 3");
        let trail = answer.trail();
        let names = ["openai-key-1", "openai-key-2", "openai-key-3"];
        assert_eq!(column(&trail, "key_name"), names, "{fault:?}");
        assert_eq!(column(&trail, "attempt"), [1, 2, 3]);
        assert_eq!(column(&trail, "outcome"), ["failed", "failed", "success"]);
        assert_eq!(trail[0]["status_code"], status, "{fault:?}");
        assert_eq!(trail[0]["failure_class"], class, "{fault:?}");
        assert!(column(&trail, "waited_ms").iter().all(Value::is_null));
        assert_eq!(answer.header("x-backstop-attempts"), "3");
        assert_eq!(answer.header("x-backstop-action"), "retry");
        as_scripted(&openai);
    }
}

#[tokio::test]
async fn a_dead_pool_within_the_retries_is_the_gateways_own_error() {
    let openai = provider(Script::new().step(Step::fault(Fault::InvalidKey).repeat(3))).await;
    let gateway = TestGateway::start(&three_keys(5), &[("openai", &openai)]).await;
    let answer = gateway.chat(ask("openai/gpt-4o")).await;
    assert_eq!(answer.status, 502);
    assert_eq!(answer.code(), "upstream_credentials_exhausted");
    assert_eq!(answer.trail().len(), 3);
    assert_eq!(answer.header("x-should-retry"), "false");
    assert_eq!(answer.header("retry-after"), "");
    assert_eq!(answer.json()["request_id"], answer.id());
    as_scripted(&openai);
}

#[tokio::test]
async fn a_dead_pool_beyond_the_retries_is_the_last_keys_error() {
    let openai = provider(Script::new().step(Step::fault(Fault::InvalidKey).repeat(3))).await;
    let gateway = TestGateway::start(&three_keys(0), &[("openai", &openai)]).await;
    let answer = gateway.chat(ask("openai/gpt-4o")).await;
    assert_eq!(answer.status, 401);
    assert_eq!(answer.code(), "invalid_api_key");
    assert_eq!(answer.header("x-should-retry"), "false");
    as_scripted(&openai);
}

#[tokio::test]
async fn a_model_that_no_key_may_use_stays_the_providers_404() {
    for max_retries in [0, 5] {
        let openai =
            provider(Script::new().step(Step::fault(Fault::ModelNotFound).repeat(3))).await;
        let gateway = TestGateway::start(&three_keys(max_retries), &[("openai", &openai)]).await;
        let answer = gateway.chat(ask("openai/gpt-9")).await;
        assert_eq!(answer.status, 404);
        assert_eq!(answer.code(), "model_not_found");
        let message = answer.json()["error"]["message"].clone();
        assert!(message.as_str().is_some_and(|said| said.contains("gpt-9")));
        as_scripted(&openai);
    }
}

#[tokio::test]
async fn a_model_refusal_outlives_the_other_keys_deaths() {
    let script = Script::new()
        .step(refused(1, Fault::ModelNotFound))
        .step(refused(2, Fault::InvalidKey))
        .step(refused(3, Fault::InvalidKey));
    let openai = provider(script).await;
    let gateway = TestGateway::start(&three_keys(5), &[("openai", &openai)]).await;
    let answer = gateway.chat(ask("openai/gpt-9")).await;
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (404, "model_not_found")
    );
    as_scripted(&openai);
}

#[tokio::test]
async fn a_rate_limit_rotates_to_a_fresh_key_after_backoff() {
    let script = Script::new()
        .step(refused(1, Fault::RateLimited).header("retry-after", "3"))
        .step(Step::ok_text("from key 2").key(key(2)));
    let openai = provider(script).await;
    let gateway = TestGateway::start(&three_keys(2), &[("openai", &openai)]).await;
    let answer = gateway.chat(ask("openai/gpt-4o")).await;
    assert_eq!(answer.said(), "from key 2");
    let trail = answer.trail();
    assert_eq!(
        column(&trail, "failure_class"),
        [json!("rate_limit"), Value::Null]
    );
    assert_eq!(trail[0]["retry_after_ms"], 3000);
    // 5 ms by the formula with the lowest jitter: the hint is for the key that was limited.
    assert_eq!(trail[1]["waited_ms"], 4);
    as_scripted(&openai);
}

#[tokio::test]
async fn a_rate_limit_at_the_end_carries_its_hint() {
    let script = Script::new().step(Step::fault(Fault::RateLimited).header("retry-after", "7"));
    let openai = provider(script).await;
    let gateway = TestGateway::start(&three_keys(0), &[("openai", &openai)]).await;
    let answer = gateway.chat(ask("openai/gpt-4o")).await;
    assert_eq!(answer.status, 429);
    assert_eq!(answer.code(), "rate_limit_exceeded");
    assert_eq!(answer.header("retry-after"), "7");
    assert_eq!(answer.json()["extra_fields"]["retry_after_ms"], 7000);
    as_scripted(&openai);
}

#[tokio::test]
async fn a_refused_key_stays_out_for_the_next_request() {
    for (remembers, second) in [(true, vec![3]), (false, vec![1, 2, 3])] {
        let script = Script::new()
            .key("1", key(1))
            .key("2", key(2))
            .key("3", key(3))
            .step(refused(1, Fault::InvalidKey).always())
            .step(refused(2, Fault::InvalidKey).always())
            .step(Step::ok_text("from key 3").always());
        let openai = provider(script).await;
        let config = three_keys(0).replace(
            "max_retries",
            &format!("hold_refused_keys = {remembers}, max_retries"),
        );
        let gateway = TestGateway::start(&config, &[("openai", &openai)]).await;
        for _ in 0..2 {
            assert_eq!(gateway.chat(ask("openai/gpt-4o")).await.status, 200);
        }
        let asked: Vec<u32> = openai.attempts()[3..]
            .iter()
            .filter_map(|attempt| attempt.key()?.parse().ok())
            .collect();
        assert_eq!(asked, second);
    }
}

#[tokio::test]
async fn a_pinned_request_asks_no_other_key() {
    for (fault, max_retries, status) in [
        (Fault::InvalidKey, 5, 401),
        (Fault::ModelNotFound, 5, 404),
        (Fault::RateLimited, 0, 429),
    ] {
        let openai = provider(Script::new().step(refused(2, fault))).await;
        let config = three_keys(max_retries);
        let gateway = TestGateway::start(&config, &[("openai", &openai)]).await;
        let call = gateway.post("/v1/chat/completions", ask("openai/gpt-4o").to_string());
        let answer = call.header("x-backstop-key", "openai-key-2").send().await;
        assert_eq!(answer.status, status, "{fault:?}: {}", answer.text());
        assert_eq!(column(&answer.trail(), "key_name"), ["openai-key-2"]);
        as_scripted(&openai);
    }
}

#[tokio::test]
async fn keys_serve_the_models_they_list() {
    let script = Script::new().step(Step::ok_text("small").key(key(2)));
    let openai = provider(script).await;
    let config = r#"
        [providers.openai]
        base_url = "env.OPENAI_URL"
        keys = [
            { value = "env.OPENAI_KEY_1", models = ["gpt-4o"] },
            { value = "env.OPENAI_KEY_2", models = ["gpt-4o-mini"] },
            { value = "env.OPENAI_KEY_3", weight = 0 },
        ]
    "#;
    let gateway = TestGateway::start(config, &[("openai", &openai)]).await;
    let answer = gateway.chat(ask("openai/gpt-4o-mini")).await;
    assert_eq!(answer.said(), "small");
    let nobody = gateway.chat(ask("openai/o3")).await;
    assert_eq!(
        (nobody.status, nobody.code().as_str()),
        (404, "model_not_served")
    );
    as_scripted(&openai);
}

#[tokio::test]
async fn a_keyless_provider_is_asked_again() {
    let script = Script::new()
        .step(Step::fault(Fault::InvalidKey))
        .step(Step::ok_text("now"));
    let lab = provider(script).await;
    let config = r#"
        [providers.lab]
        base_url = "env.LAB_URL"
        keys = []
        network_config = { max_retries = 1, retry_backoff_initial = 1 }
    "#;
    let gateway = TestGateway::start(config, &[("lab", &lab)]).await;
    let answer = gateway.chat(ask("lab/llama")).await;
    assert_eq!(answer.said(), "now");
    assert!(
        lab.attempts()
            .iter()
            .all(|attempt| attempt.presented().is_none())
    );
    as_scripted(&lab);
}

#[tokio::test]
async fn a_callers_fault_goes_nowhere() {
    for fault in [
        Fault::InvalidRequest,
        Fault::ContextTooLong,
        Fault::ContentPolicy,
    ] {
        let openai = provider(Script::new().step(Step::fault(fault))).await;
        let gateway = TestGateway::start(&three_keys(5), &[("openai", &openai)]).await;
        let answer = gateway.chat(ask("openai/gpt-4o")).await;
        assert_eq!(answer.status, 400, "{fault:?}");
        assert_eq!(answer.header("x-should-retry"), "false", "{fault:?}");
        as_scripted(&openai);
    }
}

#[tokio::test]
async fn the_anthropic_pool_is_walked_alike() {
    let script = Script::new()
        .step(Step::fault(Fault::InvalidKey).key(secret("ANTHROPIC_KEY_1")))
        .step(Step::ok_text("from key 2").key(secret("ANTHROPIC_KEY_2")));
    let anthropic = provider(script).await;
    let config = one("anthropic").replace(
        "\"env.ANTHROPIC_KEY_1\"",
        "\"env.ANTHROPIC_KEY_1\", \"env.ANTHROPIC_KEY_2\"",
    );
    let gateway = TestGateway::start(&config, &[("anthropic", &anthropic)]).await;
    let answer = gateway.messages(ask("anthropic/claude-sonnet-4-5")).await;
    assert_eq!(answer.said(), "from key 2");
    assert_eq!(answer.trail().len(), 2);
    as_scripted(&anthropic);
}

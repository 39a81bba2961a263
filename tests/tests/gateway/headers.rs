//! Headers: what travels to a provider, and what does not.

use backstop_faultsim::Script;
use backstop_tests::{TestGateway, secret};

use crate::common::{ask, both_dialects, provider};

#[tokio::test]
async fn headers_are_written_anew_for_a_provider() {
    let (openai, anthropic) = (
        provider(Script::healthy()).await,
        provider(Script::healthy()).await,
    );
    let sims = [("openai", &openai), ("anthropic", &anthropic)];
    let config = both_dialects().replace(
        "base_url = \"env.OPENAI_URL\"",
        "base_url = \"env.OPENAI_URL\"\nextra_headers = { x-team = \"search\" }",
    );
    let gateway = TestGateway::start(&config, &sims).await;
    for (path, model, sim) in [
        ("/v1/chat/completions", "openai/gpt-4o", &openai),
        ("/v1/messages", "anthropic/claude-sonnet-4-5", &anthropic),
    ] {
        let mut call = gateway.post(path, ask(model).to_string());
        for (name, value) in [
            ("authorization", "Bearer callers-own"),
            ("x-api-key", "callers-own"),
            ("api-key", "callers-own"),
            ("proxy-authorization", "Basic callers-own"),
            ("cookie", "session=callers-own"),
            ("x-stainless-lang", "python"),
            ("x-stainless-retry-count", "1"),
            ("x-forwarded-for", "203.0.113.7"),
            ("x-backstop-session", "s"),
            ("user-agent", "OpenAI/Python"),
            ("accept-encoding", "gzip, br"),
            ("connection", "x-hop"),
            ("x-hop", "1"),
            ("te", "trailers"),
            ("expect-nothing", "1"),
            ("x-request-id", "caller-77"),
            ("anthropic-beta", "context-1m"),
            ("openai-organization", "org-1"),
        ] {
            call = call.header(name, value);
        }
        let answer = call.send().await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(answer.id(), "caller-77");
        let attempt = sim.attempt(1);
        let sent = format!("{:?}", attempt.headers());
        assert!(!sent.contains("callers-own"), "{sent}");
        for name in [
            "cookie",
            "proxy-authorization",
            "api-key",
            "x-stainless-lang",
            "x-stainless-retry-count",
            "x-forwarded-for",
            "x-backstop-session",
            "x-backstop-trail",
            "x-hop",
            "te",
            "expect-nothing",
        ] {
            assert_eq!(attempt.header(name), None, "{name}");
        }
        assert_eq!(attempt.header("x-request-id"), Some("caller-77"));
        assert_eq!(attempt.header("x-backstop-attempt"), Some("1"));
        assert_eq!(attempt.header("content-type"), Some("application/json"));
        let agent = attempt.header("user-agent").expect("an agent");
        assert!(agent.starts_with("backstop/"), "{agent}");
        let coding = attempt.header("accept-encoding").unwrap_or("identity");
        assert_eq!(coding, "identity", "answers must come plain");
        let record = gateway.record("caller-77").await;
        assert_eq!(record.caller_retry, Some(1));
    }
    let (openai, anthropic) = (openai.attempt(1), anthropic.attempt(1));
    let bearer = format!("Bearer {}", secret("OPENAI_KEY_1"));
    assert_eq!(openai.header("authorization"), Some(bearer.as_str()));
    assert_eq!(openai.header("x-client-request-id"), Some("caller-77"));
    assert_eq!(openai.header("openai-organization"), Some("org-1"));
    assert_eq!(openai.header("x-team"), Some("search"));
    assert_eq!(openai.header("x-api-key"), None);
    assert_eq!(openai.header("anthropic-beta"), None);
    let key = secret("ANTHROPIC_KEY_1");
    assert_eq!(anthropic.header("x-api-key"), Some(key.as_str()));
    assert_eq!(anthropic.header("authorization"), None);
    assert_eq!(anthropic.header("anthropic-version"), Some("2023-06-01"));
    assert_eq!(anthropic.header("anthropic-beta"), Some("context-1m"));
    assert_eq!(anthropic.header("openai-organization"), None);
    assert_eq!(anthropic.header("x-team"), None);
}

#[tokio::test]
async fn an_id_that_is_not_fit_to_travel_is_replaced() {
    let openai = provider(Script::healthy()).await;
    let gateway = TestGateway::start(&crate::common::one("openai"), &[("openai", &openai)]).await;
    for given in ["<script>", "a b", &"x".repeat(200)] {
        let call = gateway.post("/v1/chat/completions", ask("openai/gpt-4o").to_string());
        let answer = call.header("x-request-id", given).send().await;
        assert!(answer.id().starts_with("req_"), "{}", answer.id());
        let sent = openai.attempts().pop().expect("an attempt");
        assert_eq!(sent.header("x-request-id"), Some(answer.id()));
    }
}

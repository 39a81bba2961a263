//! Callers: who may ask, for what, and how much of it.

use backstop_admission::KeyHash;
use backstop_faultsim::{Fault, Script, Step};
use backstop_tests::{Call, TestGateway};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::common::{ask, both_dialects, provider, untouched};

const KEY: &str = "bsk-canary-callers-own-key-0001";
const OTHER: &str = "bsk-canary-callers-own-key-0002";

/// `openai` and `anthropic`, a route to each, and the caller `team` with these settings.
fn with_team(settings: &str) -> String {
    format!(
        "{}\n[routes]\nchat = [\"openai/gpt-4o\", \"anthropic/claude-sonnet-4-5\"]\n\
         secret = \"anthropic/claude-sonnet-4-5\"\n\
         [callers.team]\nkeys = [\"{}\"]\n{settings}\n\
         [callers.other]\nkeys = [\"{}\"]\n",
        both_dialects(),
        KeyHash::of(KEY),
        KeyHash::of(OTHER),
    )
}

fn call(gateway: &TestGateway, key: &str, body: &Value) -> Call {
    gateway
        .post("/v1/chat/completions", body.to_string())
        .header("authorization", &format!("Bearer {key}"))
}

#[tokio::test]
async fn a_stranger_is_told_in_his_own_dialect() {
    let (openai, anthropic) = (untouched().await, untouched().await);
    let sims = [("openai", &openai), ("anthropic", &anthropic)];
    let gateway = TestGateway::start(&with_team(""), &sims).await;
    for (path, header, code) in [
        ("/v1/chat/completions", None, "caller_key_missing"),
        (
            "/v1/chat/completions",
            Some(("authorization", "Bearer nobody")),
            "caller_key_invalid",
        ),
        (
            "/v1/chat/completions",
            Some(("authorization", "Basic bm9ib2R5")),
            "caller_key_missing",
        ),
        (
            "/v1/responses",
            Some(("api-key", "nobody")),
            "caller_key_invalid",
        ),
    ] {
        let mut call = gateway.post(path, ask("chat").to_string());
        if let Some((name, value)) = header {
            call = call.header(name, value);
        }
        let answer = call.send().await;
        assert_eq!(answer.status, 401, "{}", answer.text());
        assert_eq!(answer.json()["error"]["code"], code, "{}", answer.text());
    }
    let answer = gateway
        .post("/v1/messages", ask("chat").to_string())
        .header("x-api-key", "nobody")
        .send()
        .await;
    assert_eq!(answer.status, 401);
    assert_eq!(answer.json()["error"]["type"], "authentication_error");
    let answer = gateway.get("/v1/models").await;
    assert_eq!(answer.status, 401);
    // Probes and scrapes need no key.
    assert_eq!(gateway.get("/healthz").await.status, 200);
}

#[tokio::test]
async fn each_place_for_a_key_lets_its_owner_in_and_stays_here() {
    let (openai, anthropic) = (provider(Script::healthy()).await, untouched().await);
    let sims = [("openai", &openai), ("anthropic", &anthropic)];
    let gateway = TestGateway::start(&with_team(""), &sims).await;
    let bearer = format!("Bearer {KEY}");
    for (name, value) in [
        ("authorization", bearer.as_str()),
        ("x-backstop-auth", KEY),
        ("x-api-key", KEY),
        ("x-goog-api-key", KEY),
        ("api-key", KEY),
    ] {
        let answer = gateway
            .post("/v1/chat/completions", ask("chat").to_string())
            .header(name, value)
            .send()
            .await;
        assert_eq!(answer.status, 200, "{name}: {}", answer.text());
        let record = gateway.record(answer.id()).await;
        assert_eq!(record.caller.expect("known").as_str(), "team");
    }
    for attempt in openai.attempts() {
        let sent = format!("{:?}", attempt.headers());
        assert!(!sent.contains(KEY), "{sent}");
    }
    assert_eq!(openai.attempts().len(), 5);
}

#[tokio::test]
async fn a_border_is_crossed_by_nothing() {
    let (openai, anthropic) = (
        provider(Script::new().step(Step::fault(Fault::Unavailable))).await,
        untouched().await,
    );
    let sims = [("openai", &openai), ("anthropic", &anthropic)];
    let settings =
        "providers = [\"openai\"]\nroutes = [\"chat\", \"secret\"]\nmay = [\"fallbacks\"]";
    let gateway = TestGateway::start(&with_team(settings), &sims).await;
    let with = |model: &str, more: Value| {
        let mut body = ask(model);
        for (name, value) in more.as_object().expect("an object") {
            body[name] = value.clone();
        }
        body
    };
    // The route goes on to anthropic; this caller does not.
    let answer = call(&gateway, KEY, &ask("chat")).send().await;
    assert_eq!(answer.status, 503, "{}", answer.text());
    for (body, status, want) in [
        (ask("secret"), 403, "provider_not_allowed"),
        (
            ask("anthropic/claude-sonnet-4-5"),
            403,
            "provider_not_allowed",
        ),
        (
            with(
                "chat",
                json!({"fallbacks": ["anthropic/claude-sonnet-4-5"]}),
            ),
            403,
            "provider_not_allowed",
        ),
        (
            with("chat", json!({"fallbacks": ["openai/gpt-4o-mini"]})),
            403,
            "fallbacks_not_allowed",
        ),
    ] {
        let answer = call(&gateway, KEY, &body).send().await;
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (status, want),
            "{body}"
        );
        assert_eq!(answer.header("x-should-retry"), "false");
    }
    assert_eq!(anthropic.attempts().len(), 0);
}

#[tokio::test]
async fn what_is_not_permitted_is_refused_rather_than_ignored() {
    let (openai, anthropic) = (untouched().await, untouched().await);
    let sims = [("openai", &openai), ("anthropic", &anthropic)];
    let settings = "routes = [\"chat\"]\ndirect = false";
    let gateway = TestGateway::start(&with_team(settings), &sims).await;
    let mut chain = ask("chat");
    chain["fallbacks"] = json!(["openai/gpt-4o"]);
    for (body, pin, want) in [
        (ask("secret"), false, "route_not_allowed"),
        (ask("openai/gpt-4o"), false, "direct_not_allowed"),
        (chain, false, "fallbacks_not_allowed"),
        (ask("chat"), true, "pinned_key_not_allowed"),
    ] {
        let mut call = call(&gateway, KEY, &body);
        if pin {
            call = call.header("x-backstop-key", "openai-key-1");
        }
        let answer = call.send().await;
        assert_eq!((answer.status, answer.code().as_str()), (403, want));
    }
    let models = gateway
        .call("GET", "/v1/models")
        .header("authorization", &format!("Bearer {KEY}"))
        .send()
        .await;
    let names: Vec<_> = models.json()["data"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|model| model["id"].clone())
        .collect();
    assert_eq!(names, ["chat"]);
}

#[tokio::test]
async fn exactly_as_many_requests_as_the_limit_are_admitted() {
    let (openai, anthropic) = (provider(Script::healthy()).await, untouched().await);
    let sims = [("openai", &openai), ("anthropic", &anthropic)];
    let gateway = TestGateway::start(&with_team("requests_per_minute = 40"), &sims).await;
    let body = ask("chat");
    let mut calls = JoinSet::new();
    for _ in 0..200 {
        let call = call(&gateway, KEY, &body);
        calls.spawn(async move { call.send().await });
    }
    let answers = calls.join_all().await;
    let admitted = answers.iter().filter(|answer| answer.status == 200).count();
    assert_eq!(admitted, 40);
    assert_eq!(openai.attempts().len(), 40);
    let refused = answers
        .iter()
        .find(|answer| answer.status == 429)
        .expect("beyond the limit");
    assert_eq!(refused.code(), "caller_requests_limit");
    let wait: u64 = refused
        .header("retry-after")
        .parse()
        .expect("when to come back");
    assert!((1..=61).contains(&wait));
    // The limit of one is not another's.
    let answer = call(&gateway, OTHER, &body).send().await;
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn money_is_spent_to_the_last_reservation() {
    let (openai, anthropic) = (provider(Script::healthy()).await, untouched().await);
    let sims = [("openai", &openai), ("anthropic", &anthropic)];
    let prices = "usd_per_day = 0.001\n[prices.\"openai/gpt-4o\"]\ninput = 1.0\noutput = 1000.0\n";
    let gateway = TestGateway::start(&with_team(prices), &sims).await;
    let mut body = ask("chat");
    body["max_tokens"] = json!(10);
    let mut served = 0;
    let refused = loop {
        let answer = call(&gateway, KEY, &body).send().await;
        if answer.status != 200 {
            break answer;
        }
        served += 1;
        assert!(served < 100, "the budget never ends");
    };
    assert!(served > 0);
    assert_eq!(
        (refused.status, refused.code().as_str()),
        (429, "caller_budget_exceeded")
    );
    assert_eq!(refused.header("x-should-retry"), "false");
    assert_eq!(openai.attempts().len(), served);
}

#[tokio::test]
async fn a_full_group_makes_the_next_one_eligible() {
    let (openai, anthropic) = (
        provider(Script::healthy()).await,
        provider(Script::healthy()).await,
    );
    let sims = [("openai", &openai), ("anthropic", &anthropic)];
    let config = format!(
        "{}\n[[routes.chat.groups]]\nrequests_per_minute = 3\n\
         channels = [\"openai/gpt-4o\", \"openai/gpt-4o-mini\"]\n\
         [[routes.chat.groups]]\nrequests_per_minute = 2\n\
         channels = [\"anthropic/claude-sonnet-4-5\"]\n",
        both_dialects()
    );
    let gateway = TestGateway::start(&config, &sims).await;
    let mut calls = JoinSet::new();
    for _ in 0..9 {
        let call = gateway.post("/v1/chat/completions", ask("chat").to_string());
        calls.spawn(async move { call.send().await });
    }
    let answers = calls.join_all().await;
    let served = |by: &str| {
        let by = |answer: &&backstop_tests::Answer| answer.header("x-backstop-provider") == by;
        answers
            .iter()
            .filter(|answer| answer.status == 200)
            .filter(by)
            .count()
    };
    assert_eq!((served("openai"), served("anthropic")), (3, 2));
    assert_eq!(
        (openai.attempts().len(), anthropic.attempts().len()),
        (3, 2)
    );
    let refused: Vec<_> = answers
        .iter()
        .filter(|answer| answer.status == 429)
        .collect();
    assert_eq!(refused.len(), 4);
    for answer in refused {
        assert_eq!(answer.code(), "route_requests_limit");
        let wait: u64 = answer.header("retry-after").parse().expect("when");
        assert!((1..=61).contains(&wait));
        let record = gateway.record(answer.id()).await;
        let why: Vec<_> = record
            .rows
            .iter()
            .map(|row| row.fail_reason.as_deref())
            .collect();
        assert_eq!(why, [Some("group_full"), Some("group_full")]);
    }
}

/// `openai` takes its callers' own tokens; `anthropic` has the operator's key.
fn with_own_tokens(callers: bool) -> String {
    let config =
        both_dialects().replace("keys = [\"env.OPENAI_KEY_1\"]", "credentials = \"caller\"");
    let callers = if callers {
        format!("[callers.team]\nkeys = [\"{}\"]\n", KeyHash::of(KEY))
    } else {
        String::new()
    };
    format!(
        "{config}\n[routes]\nchat = [\"openai/gpt-4o\", \"anthropic/claude-sonnet-4-5\"]\n{callers}"
    )
}

#[tokio::test]
async fn a_callers_own_token_goes_to_the_provider_that_takes_it_and_to_no_other() {
    let own = "canary-own-token-of-the-caller";
    for callers in [false, true] {
        let (openai, anthropic) = (
            provider(Script::new().step(Step::fault(Fault::RateLimited))).await,
            provider(Script::healthy()).await,
        );
        let sims = [("openai", &openai), ("anthropic", &anthropic)];
        let gateway = TestGateway::start(&with_own_tokens(callers), &sims).await;
        let answer = gateway
            .post("/v1/chat/completions", ask("chat").to_string())
            .header("authorization", &format!("Bearer {own}"))
            .header("x-backstop-auth", KEY)
            .send()
            .await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(answer.header("x-backstop-provider"), "anthropic");
        let shown = openai.attempt(1);
        assert_eq!(
            shown.header("authorization"),
            Some(format!("Bearer {own}").as_str())
        );
        for (who, attempt) in [("openai", &shown), ("anthropic", &anthropic.attempt(1))] {
            let seen = format!("{:?}", attempt.headers());
            assert!(!seen.contains(KEY), "{who}: {seen}");
            assert_eq!(seen.contains(own), who == "openai", "{who}: {seen}");
        }
        let record = gateway.record(answer.id()).await;
        let keys: Vec<_> = record.rows.iter().map(|row| row.key.clone()).collect();
        assert_eq!(
            keys[0].as_ref().map(backstop_units::KeyId::name),
            Some("caller")
        );
    }
}

#[tokio::test]
async fn the_gateways_own_key_is_never_taken_for_a_token() {
    let (openai, anthropic) = (untouched().await, provider(Script::healthy()).await);
    let sims = [("openai", &openai), ("anthropic", &anthropic)];
    let gateway = TestGateway::start(&with_own_tokens(true), &sims).await;
    let answer = call(&gateway, KEY, &ask("chat")).send().await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.header("x-backstop-provider"), "anthropic");
    // Where nobody else could serve, the caller is told what is missing.
    let answer = call(&gateway, KEY, &ask("openai/gpt-4o")).send().await;
    assert_eq!(answer.status, 400);
    assert!(
        answer.text().contains("the caller's own token"),
        "{}",
        answer.text()
    );
}

#[tokio::test]
async fn what_one_callers_token_met_is_nothing_to_another() {
    let refused = Step::fault(Fault::InvalidKey).key("canary-first");
    let openai = provider(
        Script::new()
            .step(refused.repeat(2))
            .step(Step::ok_text("hello").repeat(2)),
    )
    .await;
    let anthropic = untouched().await;
    let sims = [("openai", &openai), ("anthropic", &anthropic)];
    let gateway = TestGateway::start(&with_own_tokens(false), &sims).await;
    for (token, status) in [
        ("canary-first", 401),
        ("canary-second", 200),
        ("canary-first", 401),
        ("canary-second", 200),
    ] {
        let answer = call(&gateway, token, &ask("openai/gpt-4o")).send().await;
        assert_eq!(answer.status, status, "{}", answer.text());
        assert!(!answer.text().contains(token));
    }
}

#[tokio::test]
async fn vectors_and_counts_are_not_charged_for_an_answer() {
    let (openai, anthropic) = (
        provider(Script::healthy()).await,
        provider(Script::healthy()).await,
    );
    let sims = [("openai", &openai), ("anthropic", &anthropic)];
    // An answer of any length is beyond this budget, a prompt is not.
    let prices = "usd_per_day = 0.001\n\
        [prices.\"openai/m\"]\ninput = 0.01\noutput = 100000.0\n\
        [prices.\"anthropic/claude\"]\ninput = 100000.0\noutput = 100000.0\n";
    let gateway = TestGateway::start(&with_team(prices), &sims).await;
    let vectors = json!({"model": "openai/m", "input": "hi"});
    let count = json!({"model": "anthropic/claude",
        "messages": [{"role": "user", "content": "hi"}]});
    for (path, body) in [
        ("/v1/embeddings", &vectors),
        ("/v1/messages/count_tokens", &count),
    ] {
        for _ in 0..3 {
            let call = gateway.post(path, body.to_string());
            let answer = call.header("x-api-key", KEY).send().await;
            assert_eq!(answer.status, 200, "{}", answer.text());
        }
    }
    // One request may overdraw it.
    let answer = call(&gateway, KEY, &ask("openai/m")).send().await;
    assert_eq!(answer.status, 200);
    let answer = call(&gateway, KEY, &ask("openai/m")).send().await;
    assert_eq!(answer.code(), "caller_budget_exceeded");
}

#[tokio::test]
async fn a_model_beyond_the_border_is_not_told_of() {
    let (openai, anthropic) = (untouched().await, untouched().await);
    let sims = [("openai", &openai), ("anthropic", &anthropic)];
    let gateway =
        TestGateway::start(&with_team("routes = [\"chat\"]\ndirect = false"), &sims).await;
    for (model, key, status) in [
        ("chat", KEY, 200),
        ("secret", KEY, 403),
        ("openai/gpt-4o", KEY, 403),
        ("secret", OTHER, 200),
        ("chat", "nobody", 401),
    ] {
        for path in ["/v1/models/", "/genai/v1beta/models/"] {
            let call = gateway.call("GET", &format!("{path}{model}"));
            let answer = call.header("x-goog-api-key", key).send().await;
            assert_eq!(answer.status, status, "{model}: {}", answer.text());
        }
    }
}

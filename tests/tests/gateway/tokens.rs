//! Keys that stand for short-lived tokens: fetched once for all, renewed, refused, not to be had.

use std::time::Duration;

use backstop_faultsim::{End, Fault, Script, Sim, Step};
use backstop_tests::{CANARY, TestGateway, private_key, secret, soon};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::common::{as_scripted, ask, column, provider, untouched};

const MODEL: &str = "vertex/gemini-2.5-flash";
const ANSWER: &str = include_str!("../../../crates/providers/fixtures/vertex/text.json");

/// One key, a service account's.
const ACCOUNT: &str = r#"
    [providers.vertex]
    base_url = "env.VERTEX_URL"
    location = "europe-west4"
    keys = [{ service_account = "file.account-1.json" }]
    network_config = { retry_backoff_initial = 1 }
"#;

/// Two keys, each a person's.
const PERSONS: &str = r#"
    [providers.vertex]
    base_url = "env.VERTEX_URL"
    location = "global"
    project = "typed-project"
    keys = [
        { name = "first", service_account = "file.person-1.json" },
        { name = "second", service_account = "file.person-2.json" },
    ]
    network_config = { retry_backoff_initial = 1 }
"#;

/// A same-contract channel elsewhere.
const BACKUP: &str = r#"
    [providers.backup]
    base_url = "env.BACKUP_URL"
    keys = ["env.BACKUP_KEY_1"]
    [routes]
    chat = ["vertex/gemini-2.5-flash", "backup/gemini-2.5-flash"]
"#;

/// The access token of that number.
fn access(n: u32) -> String {
    secret(&format!("access_{n}"))
}

/// The token endpoint hands out this token.
fn granted(n: u32, seconds: u64) -> Step {
    let token = access(n);
    let body = json!({"access_token": token, "expires_in": seconds, "token_type": "Bearer"});
    Step::json(200, body)
}

/// The token endpoint refuses the proof, in words that hold secrets.
fn denied(error: &str) -> Step {
    let words = format!(
        "{CANARY} was never issued to {}",
        secret("person-1_refresh")
    );
    Step::json(400, json!({"error": error, "error_description": words}))
}

/// The provider answers whoever presents this token.
fn served(n: u32) -> Step {
    Step::text(200, ANSWER)
        .header("content-type", "application/json")
        .key(access(n))
}

/// The provider takes this token no more.
fn expired(n: u32) -> Step {
    let words = format!(
        "Request had invalid authentication credentials: {}",
        access(n)
    );
    let body = json!({"error": {"code": 401, "message": words, "status": "UNAUTHENTICATED",
        "details": [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "ACCESS_TOKEN_EXPIRED"}]}});
    Step::json(401, body).key(access(n))
}

struct Scene {
    tokens: Sim,
    vertex: Sim,
    gateway: TestGateway,
}

impl Scene {
    async fn new(config: &str, tokens: Script, vertex: Script) -> Self {
        let (tokens, vertex) = (provider(tokens).await, provider(vertex).await);
        let sims = [("tokens", &tokens), ("vertex", &vertex)];
        let gateway = TestGateway::start(config, &sims).await;
        Self {
            tokens,
            vertex,
            gateway,
        }
    }

    fn as_scripted(&self) {
        as_scripted(&self.tokens);
        as_scripted(&self.vertex);
    }
}

fn script(steps: impl IntoIterator<Item = Step>) -> Script {
    Script::new().with_steps(steps)
}

#[tokio::test]
async fn twenty_requests_at_once_share_one_fetch() {
    let tokens = script([granted(1, 3599).delay(Duration::from_millis(30))]);
    let scene = Scene::new(ACCOUNT, tokens, script([served(1).repeat(21)])).await;
    let mut asked = JoinSet::new();
    for _ in 0..20 {
        let call = scene
            .gateway
            .post("/v1/chat/completions", ask(MODEL).to_string());
        asked.spawn(async move { call.send().await });
    }
    while let Some(answer) = asked.join_next().await {
        let answer = answer.expect("no panic");
        assert_eq!(answer.said(), "2 + 2 = **4**");
        assert_eq!(answer.trail().len(), 1);
    }
    assert_eq!(scene.gateway.chat(ask(MODEL)).await.status, 200);
    let fetch = scene.tokens.attempt(1);
    assert_eq!(fetch.path(), "/token");
    let form = String::from_utf8(fetch.body().to_vec()).expect("text");
    let grant = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=eyJ";
    assert!(form.starts_with(grant), "{form}");
    assert_eq!(fetch.header("authorization"), None);
    let attempt = scene.vertex.attempt(1);
    assert_eq!(
        attempt.header("authorization"),
        Some(format!("Bearer {}", access(1)).as_str())
    );
    assert_eq!(
        attempt.path(),
        "/v1/projects/file-project/locations/europe-west4/publishers/google/models/gemini-2.5-flash:generateContent"
    );
    let line = private_key().lines().nth(1).expect("a key of many lines");
    assert!(!scene.gateway.log().contains(line));
    scene.as_scripted();
}

#[tokio::test]
async fn a_token_at_its_end_is_fetched_anew() {
    // Nothing is left of a life of no seconds.
    let tokens = script([granted(1, 0), granted(2, 3599)]);
    let scene = Scene::new(ACCOUNT, tokens, script([served(1), served(2).repeat(2)])).await;
    for _ in 0..3 {
        assert_eq!(scene.gateway.chat(ask(MODEL)).await.status, 200);
    }
    scene.as_scripted();
}

#[tokio::test]
async fn a_refused_token_is_renewed_once_and_serves() {
    let tokens = script([granted(1, 3599), granted(2, 3599)]);
    let vertex = script([expired(1), served(2).repeat(2)]);
    let scene = Scene::new(ACCOUNT, tokens, vertex).await;
    let answer = scene.gateway.chat(ask(MODEL)).await;
    assert_eq!(answer.said(), "2 + 2 = **4**");
    let trail = answer.trail();
    assert_eq!(column(&trail, "action"), ["direct", "retry"]);
    assert_eq!(column(&trail, "outcome"), ["failed", "success"]);
    assert_eq!(trail[0]["fail_reason"], "token_expired");
    assert_eq!(trail[0]["status_code"], 401);
    assert_eq!(column(&trail, "key_name"), ["vertex-key-1", "vertex-key-1"]);
    assert_eq!(answer.header("x-backstop-attempts"), "2");
    // The key is as good as it was.
    let next = scene.gateway.chat(ask(MODEL)).await;
    assert_eq!(next.trail().len(), 1);
    scene.as_scripted();
}

#[tokio::test]
async fn all_who_hold_a_refused_token_share_one_renewal() {
    let tokens = script([granted(1, 3599), granted(2, 3599)]);
    let vertex = script([served(1), expired(1).always(), served(2).always()]);
    let scene = Scene::new(ACCOUNT, tokens, vertex).await;
    assert_eq!(scene.gateway.chat(ask(MODEL)).await.status, 200);
    let mut asked = JoinSet::new();
    for _ in 0..12 {
        let call = scene
            .gateway
            .post("/v1/chat/completions", ask(MODEL).to_string());
        asked.spawn(async move { call.send().await });
    }
    while let Some(answer) = asked.join_next().await {
        assert_eq!(answer.expect("no panic").status, 200);
    }
    scene.as_scripted();
}

#[tokio::test]
async fn a_key_whose_renewed_token_is_refused_too_is_dead_and_the_next_one_serves() {
    let tokens = script([granted(1, 3599), granted(2, 3599), granted(3, 3599)]);
    let vertex = script([expired(1), expired(2), served(3).repeat(2)]);
    let scene = Scene::new(PERSONS, tokens, vertex).await;
    let answer = scene.gateway.chat(ask(MODEL)).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let trail = answer.trail();
    assert_eq!(column(&trail, "key_name"), ["first", "first", "second"]);
    assert_eq!(column(&trail, "outcome"), ["failed", "failed", "success"]);
    assert_eq!(
        column(&trail, "status_code"),
        [json!(401), json!(401), json!(200)]
    );
    // And it stays out for the next request.
    let next = scene.gateway.chat(ask(MODEL)).await;
    assert_eq!(column(&next.trail(), "key_name"), ["second"]);
    let forms: Vec<_> = scene.tokens.attempts();
    let refresh = |n: usize| String::from_utf8(forms[n].body().to_vec()).expect("text");
    assert!(refresh(0).contains(&secret("person-1_refresh")));
    assert!(refresh(2).contains(&secret("person-2_refresh")));
    scene.as_scripted();
}

#[tokio::test]
async fn a_proof_that_is_refused_is_a_row_and_the_next_key_serves() {
    for error in ["invalid_grant", "invalid_client"] {
        let tokens = script([denied(error), granted(1, 3599)]);
        let scene = Scene::new(PERSONS, tokens, script([served(1)])).await;
        let answer = scene.gateway.chat(ask(MODEL)).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let trail = answer.trail();
        assert_eq!(column(&trail, "key_name"), ["first", "second"]);
        let row = &trail[0];
        assert_eq!(row["failure_class"], "credential");
        assert_eq!(row["fail_reason"], "token_refused");
        assert_eq!(row["upstream_phase"], "not_sent");
        assert_eq!(row["status_code"], Value::Null);
        assert!(!answer.text().contains("never issued"));
        scene.as_scripted();
    }
    // No key is left: the caller is told, in our words.
    let tokens = script([denied("invalid_grant").repeat(2)]);
    let scene = Scene::new(PERSONS, tokens, Script::new()).await;
    let answer = scene.gateway.chat(ask(MODEL)).await;
    assert_eq!(answer.status, 502);
    assert_eq!(answer.code(), "upstream_credential_rejected");
    assert!(answer.text().contains("token_refused"), "{}", answer.text());
    assert!(!answer.text().contains(CANARY), "{}", answer.text());
    let page = scene.gateway.get("/metrics").await;
    assert!(!page.text().contains(CANARY));
    scene.as_scripted();
}

#[tokio::test]
async fn a_dead_token_endpoint_falls_back_within_the_deadline() {
    let steps = [
        Step::text(503, "down"),
        Step::silent(End::Reset),
        Step::fault(Fault::RateLimited),
        Step::silent(End::Hang),
    ];
    for (place, step) in steps.into_iter().enumerate() {
        let tokens = provider(script([step])).await;
        let vertex = untouched().await;
        let backup = provider(script([Step::ok_text("from the backup")])).await;
        let sims = [
            ("tokens", &tokens),
            ("vertex", &vertex),
            ("backup", &backup),
        ];
        // Its own clock is ten seconds; the last one waits for it, the clock running ahead.
        let gateway = TestGateway::start(&(ACCOUNT.to_owned() + BACKUP), &sims).await;
        let hangs = place == 3;
        let call = gateway.post("/v1/chat/completions", ask("chat").to_string());
        let call = if hangs {
            call.header("x-backstop-deadline-ms", "300")
        } else {
            call
        };
        let answer = call.send().await;
        if hangs {
            // Bounded by the request's deadline whatever its own clocks say.
            assert_eq!(answer.status, 504, "{}", answer.text());
            assert_eq!(backup.attempt_count(), 0);
            continue;
        }
        assert_eq!(answer.said(), "from the backup", "{place}");
        let trail = answer.trail();
        assert_eq!(column(&trail, "action"), ["direct", "fallback"]);
        assert_eq!(trail[0]["failure_class"], "transient");
        assert_eq!(trail[0]["fail_reason"], "token_unavailable");
        assert_eq!(trail[0]["upstream_phase"], "not_sent");
        as_scripted(&tokens);
        as_scripted(&backup);
    }
}

#[tokio::test]
async fn a_caller_who_leaves_takes_no_fetch_from_the_others() {
    let tokens = script([granted(1, 3599).delay(Duration::from_millis(500))]);
    let scene = Scene::new(ACCOUNT, tokens, script([served(1)])).await;
    let call = |id: &str| {
        let call = scene
            .gateway
            .post("/v1/chat/completions", ask(MODEL).to_string());
        call.header("x-request-id", id)
    };
    let leaver = call("leaves").start().await;
    soon("the fetch", scene.tokens.wait_for_attempts(1)).await;
    let other = call("stays").start().await;
    soon("both under way", async {
        let both = "backstop_requests_in_flight 2";
        while !scene.gateway.get("/metrics").await.text().contains(both) {}
    })
    .await;
    drop(leaver);
    assert_eq!(scene.gateway.record("leaves").await.terminal, "cancelled");
    assert_eq!(scene.gateway.record("stays").await.terminal, "success");
    drop(other);
    scene.as_scripted();

    // The only one who waits: the fetch is given up with it.
    let tokens = script([Step::silent(End::Hang), granted(2, 3599)]);
    let scene = Scene::new(ACCOUNT, tokens, script([served(2)])).await;
    let call = scene
        .gateway
        .post("/v1/chat/completions", ask(MODEL).to_string());
    let leaver = call.header("x-request-id", "alone").start().await;
    let fetch = &soon("the fetch", scene.tokens.wait_for_attempts(1)).await[0];
    drop(leaver);
    assert!(soon("its close", fetch.closed_by_peer()).await.is_some());
    let record = scene.gateway.record("alone").await;
    assert_eq!(record.terminal, "cancelled");
    assert_eq!(scene.vertex.attempt_count(), 0);
    assert_eq!(scene.gateway.chat(ask(MODEL)).await.status, 200);
    scene.as_scripted();
}

#[tokio::test]
async fn a_ready_token_goes_out_as_it_is_and_nobody_renews_it() {
    let config = r#"
        [providers.vertex]
        base_url = "env.VERTEX_URL"
        location = "global"
        project = "p"
        keys = ["env.VERTEX_KEY_1"]
    "#;
    let refused = Step::json(
        401,
        json!({"error": {"code": 401, "status": "UNAUTHENTICATED"}}),
    );
    let vertex = provider(script([refused.key(secret("VERTEX_KEY_1"))])).await;
    let gateway = TestGateway::start(config, &[("vertex", &vertex)]).await;
    let answer = gateway.chat(ask(MODEL)).await;
    assert_eq!(answer.trail().len(), 1);
    assert_eq!(answer.trail()[0]["failure_class"], "credential");
    as_scripted(&vertex);
}

#[tokio::test]
async fn an_application_of_entras_is_served_by_azure_with_a_bearer() {
    let config = r#"
        [providers.azure]
        base_url = "env.AZURE_URL"
        api_version = "2024-10-21"
        [[providers.azure.keys]]
        [providers.azure.keys.entra]
        tenant = "directory.example"
        client_id = "app"
        client_secret = "env.ENTRA_KEY_1"
        authority = "env.TOKENS_URL"
    "#;
    let tokens = provider(script([granted(1, 3599), granted(2, 3599)])).await;
    let refused = json!({"error": {"code": "401", "message": "Access token is missing, invalid"}});
    let azure = script([
        Step::json(401, refused).key(access(1)),
        Step::ok_text("from azure").key(access(2)),
    ]);
    let azure = provider(azure).await;
    let gateway = TestGateway::start(config, &[("tokens", &tokens), ("azure", &azure)]).await;
    let answer = gateway.chat(ask("azure/gpt-4o")).await;
    assert_eq!(answer.said(), "from azure");
    assert_eq!(column(&answer.trail(), "action"), ["direct", "retry"]);
    let fetch = tokens.attempt(1);
    assert_eq!(fetch.path(), "/directory.example/oauth2/v2.0/token");
    let form = String::from_utf8(fetch.body().to_vec()).expect("text");
    assert!(form.starts_with("grant_type=client_credentials&client_id=app&"));
    assert!(form.contains(&secret("ENTRA_KEY_1")));
    let attempt = azure.attempt(2);
    assert_eq!(attempt.header("api-key"), None);
    assert!(
        attempt
            .header("authorization")
            .is_some_and(|value| value.starts_with("Bearer "))
    );
    as_scripted(&tokens);
    as_scripted(&azure);
}

#[tokio::test]
async fn another_credentials_file_under_the_same_name_has_its_own_token() {
    let tokens = script([granted(1, 3599), granted(2, 3599)]);
    let scene = Scene::new(PERSONS, tokens, script([served(1), served(2)])).await;
    let Scene {
        tokens,
        vertex,
        mut gateway,
    } = scene;
    assert_eq!(gateway.chat(ask(MODEL)).await.status, 200);
    gateway.reload(&PERSONS.replace("person-1", "person-3"));
    assert_eq!(gateway.chat(ask(MODEL)).await.status, 200);
    let form = String::from_utf8(tokens.attempt(2).body().to_vec()).expect("text");
    assert!(form.contains(&secret("person-3_refresh")));
    as_scripted(&tokens);
    as_scripted(&vertex);
}

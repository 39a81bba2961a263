//! The official SDKs as callers, with their default retries: what they make of our answers.
//!
//! The stories are in `tests/sdk`. Their Python is set up by `cargo xtask sdk --setup-only`; where
//! it is missing these tests say so and pass.

use std::path::Path;
use std::process::Stdio;

use backstop_faultsim::{End, Fault, Item, Script, Sim, Step};
use backstop_tests::{TestGateway, secret, soon};
use serde_json::json;
use tokio::process::Command;

use crate::common::{
    as_scripted, both_dialects, one, provider, three_keys, untouched, with_backup,
};

const PYTHON: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/sdk-venv/bin/python");
const STORIES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/sdk");

/// An SDK, the model of its own provider, and one of the other's.
const SDKS: [(&str, [&str; 2]); 2] = [
    ("openai", ["openai/gpt-4o", "anthropic/claude-sonnet-4-5"]),
    (
        "anthropic",
        ["anthropic/claude-sonnet-4-5", "openai/gpt-4o"],
    ),
];

/// Whether the SDKs are there.
fn ready() -> bool {
    let ready = Path::new(PYTHON).exists();
    if !ready {
        eprintln!("skipped: no SDKs in target/sdk-venv; `cargo xtask sdk` sets them up");
    }
    ready
}

/// Stories of one SDK, to be played in one go: starting Python takes longer than any of them.
struct Book {
    sdk: &'static str,
    stories: Vec<Vec<String>>,
}

impl Book {
    const fn new(sdk: &'static str) -> Self {
        let stories = Vec::new();
        Self { sdk, stories }
    }

    /// Adds a story before `gateway`.
    fn tell(&mut self, gateway: &TestGateway, name: &str, arguments: &[&str]) {
        let mut story = vec![name.to_owned(), gateway.url()];
        story.extend(arguments.iter().map(|argument| (*argument).to_owned()));
        self.stories.push(story);
    }

    /// Plays them in their order.
    async fn play(&self) {
        let mut python = Command::new(PYTHON);
        python
            .arg(format!("{STORIES}/{}_stories.py", self.sdk))
            .arg(json!(self.stories).to_string())
            .env("NO_PROXY", "*")
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(Stdio::null())
            .kill_on_drop(true);
        let output = soon("the SDK's stories", python.output()).await;
        let output = output.expect("a Python that starts");
        assert!(
            output.status.success(),
            "{}:\n{}{}",
            self.sdk,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

/// Plays one story.
async fn play(gateway: &TestGateway, sdk: &'static str, name: &str, arguments: &[&str]) {
    let mut book = Book::new(sdk);
    book.tell(gateway, name, arguments);
    book.play().await;
}

/// Both providers with the same script, behind one gateway that retries once.
async fn pair(script: &Script) -> (Sim, Sim, TestGateway) {
    let openai = provider(script.clone()).await;
    let anthropic = provider(script.clone()).await;
    let config = both_dialects().replace("retry_backoff", "max_retries = 1, retry_backoff");
    let sims = [("openai", &openai), ("anthropic", &anthropic)];
    let gateway = TestGateway::start(&config, &sims).await;
    (openai, anthropic, gateway)
}

fn provider_of(model: &str) -> &str {
    model.split_once('/').expect("provider/model").0
}

#[tokio::test]
async fn sdk_text_and_streams_in_both_dialects() {
    if !ready() {
        return;
    }
    let script = Script::new().step(Step::stream_text(["Hel", "lo ", "wörld"]).always());
    let whole = Script::new().step(Step::ok_text("Hello wörld").always());
    for (sdk, models) in SDKS {
        let (_o, _a, whole) = pair(&whole).await;
        let (_o, _a, gateway) = pair(&script).await;
        let mut book = Book::new(sdk);
        for model in models {
            let from = provider_of(model);
            book.tell(&whole, "text", &[model, "Hello wörld", from]);
            book.tell(&gateway, "stream", &[model, "Hello wörld", from]);
            book.tell(&gateway, "stream_async", &[model, "Hello wörld"]);
            if sdk == "openai" {
                book.tell(&gateway, "stream_without_usage", &[model, "Hello wörld"]);
            } else {
                book.tell(&gateway, "stream_events", &[model]);
            }
        }
        book.play().await;
        assert_eq!((whole.journeys(), gateway.journeys()), (2, 6));
    }
}

#[tokio::test]
async fn sdk_tools_in_both_dialects() {
    if !ready() {
        return;
    }
    let call = Step::tool_call("weather", json!({"city": "Bern"}));
    let script = Script::new()
        .step(call.clone())
        .step(Step::ok_text("It rains."))
        .step(call);
    for (sdk, models) in SDKS {
        let (openai, anthropic, gateway) = pair(&script).await;
        let mut book = Book::new(sdk);
        for model in models {
            book.tell(&gateway, "tools", &[model]);
            book.tell(&gateway, "stream_tools", &[model]);
        }
        book.play().await;
        as_scripted(&openai);
        as_scripted(&anthropic);
    }
}

#[tokio::test]
async fn sdk_structured_output_and_models() {
    if !ready() {
        return;
    }
    let script = Script::new().step(Step::ok_text("{\"city\":\"Bern\"}").always());
    let (openai, _a, _gateway) = pair(&script).await;
    let config = both_dialects() + "[routes]\nchat = \"openai/gpt-4o\"\n";
    let gateway = TestGateway::start(&config, &[("openai", &openai), ("anthropic", &openai)]).await;
    for sdk in ["openai", "anthropic"] {
        let mut book = Book::new(sdk);
        if sdk == "openai" {
            book.tell(&gateway, "parsed", &["chat"]);
        }
        book.tell(&gateway, "models", &["chat", "openai/gpt-4o"]);
        book.tell(&gateway, "unreadable", &["chat"]);
        book.play().await;
    }
    let asked = openai.attempt(1).json();
    assert_eq!(asked["response_format"]["type"], "json_schema");
    assert_eq!(openai.attempt_count(), 1);
}

#[tokio::test]
async fn sdk_errors_have_the_class_of_their_status() {
    if !ready() {
        return;
    }
    let rows = [
        (
            Fault::InvalidRequest,
            ["400", ""],
            ["400", "invalid_request_error"],
        ),
        (
            Fault::InvalidKey,
            ["401", "invalid_api_key"],
            ["401", "authentication_error"],
        ),
        (
            Fault::PermissionDenied,
            ["403", "insufficient_permissions"],
            ["403", "permission_error"],
        ),
        (
            Fault::ModelNotFound,
            ["404", "model_not_found"],
            ["404", "not_found_error"],
        ),
        (
            Fault::RateLimited,
            ["429", "rate_limit_exceeded"],
            ["429", "rate_limit_error"],
        ),
        (Fault::ServerError, ["500", ""], ["500", "api_error"]),
        (Fault::Unavailable, ["503", ""], ["503", "api_error"]),
        (
            Fault::Overloaded,
            ["503", "overloaded"],
            ["529", "overloaded_error"],
        ),
    ];
    for (place, (sdk, models)) in SDKS.into_iter().enumerate() {
        let mut book = Book::new(sdk);
        let mut scenes = Vec::new();
        for (fault, openai, anthropic) in rows {
            let told = [openai, anthropic][place];
            // A refusal of the key or the model ends at once; a passing trouble the gateway tries
            // again, and says that the SDK must not do it once more.
            let passing = matches!(told[0], "429" | "500" | "503" | "529");
            let config = both_dialects().replace(
                "retry_backoff",
                &format!(
                    "max_retries = {}, hold_refused_keys = false, retry_backoff",
                    u8::from(passing)
                ),
            );
            let script = Script::new().step(Step::fault(fault).always());
            let (sim, other) = (provider(script).await, untouched().await);
            let sims = [
                (provider_of(models[0]), &sim),
                (provider_of(models[1]), &other),
            ];
            let gateway = TestGateway::start(&config, &sims).await;
            for streamed in ["", "streamed"] {
                book.tell(&gateway, "error", &[models[0], told[0], told[1], streamed]);
            }
            scenes.push((gateway, sim, other));
        }
        book.play().await;
        for (gateway, _, _) in &scenes {
            assert_eq!(gateway.journeys(), 2, "the SDK asks once");
        }
    }
}

#[tokio::test]
async fn sdk_revoked_keys_and_fallback_are_not_noticed() {
    if !ready() {
        return;
    }
    let script = Script::new()
        .step(Step::fault(Fault::InvalidKey).key(secret("OPENAI_KEY_1")))
        .step(Step::fault(Fault::InvalidKey).key(secret("OPENAI_KEY_2")))
        .step(Step::ok_text("from key 3").key(secret("OPENAI_KEY_3")));
    let openai = provider(script).await;
    let gateway = TestGateway::start(&three_keys(0), &[("openai", &openai)]).await;
    let arguments = ["openai/gpt-4o", "from key 3", "openai", "retry"];
    play(&gateway, "openai", "text", &arguments).await;
    assert_eq!(gateway.journeys(), 1);
    as_scripted(&openai);

    for story in ["text", "stream"] {
        let openai = provider(Script::new().step(Step::fault(Fault::Unavailable).repeat(3))).await;
        let backup = provider(Script::new().step(Step::ok_text("from backup"))).await;
        let sims = [("openai", &openai), ("backup", &backup)];
        let gateway = TestGateway::start(&with_backup(2), &sims).await;
        play(
            &gateway,
            "openai",
            story,
            &["chat", "from backup", "backup", "fallback"],
        )
        .await;
        assert_eq!(gateway.journeys(), 1);
        as_scripted(&openai);
        as_scripted(&backup);
    }
}

#[tokio::test]
async fn sdk_sees_a_substitution_disclosed() {
    if !ready() {
        return;
    }
    let config = with_backup(0)
        + r#"
        [routes.premium]
        groups = [{ channels = ["openai/gpt-4o"] }]
        substitutions = [{ channel = "backup/small" }]
    "#;
    let openai = provider(Script::new().step(Step::fault(Fault::Unavailable))).await;
    let backup = provider(Script::new().step(Step::ok_text("cheaper"))).await;
    let sims = [("openai", &openai), ("backup", &backup)];
    let gateway = TestGateway::start(&config, &sims).await;
    play(
        &gateway,
        "openai",
        "text",
        &["premium", "cheaper", "backup", "substitution"],
    )
    .await;
    as_scripted(&openai);
    as_scripted(&backup);
}

#[tokio::test]
async fn sdk_does_not_repeat_what_the_gateway_has_exhausted() {
    if !ready() {
        return;
    }
    let openai = provider(Script::new().step(Step::fault(Fault::InvalidKey).repeat(3))).await;
    let gateway = TestGateway::start(&three_keys(5), &[("openai", &openai)]).await;
    let told = ["openai/gpt-4o", "502", "upstream_credentials_exhausted"];
    play(&gateway, "openai", "error", &told).await;
    assert_eq!(gateway.journeys(), 1);
    as_scripted(&openai);

    let anthropic = provider(Script::new().step(Step::fault(Fault::InvalidKey))).await;
    let config = one("anthropic").replace("retry_backoff", "max_retries = 5, retry_backoff");
    let gateway = TestGateway::start(&config, &[("anthropic", &anthropic)]).await;
    let told = ["anthropic/claude-sonnet-4-5", "502", "api_error"];
    play(&gateway, "anthropic", "error", &told).await;
    assert_eq!(gateway.journeys(), 1);
    as_scripted(&anthropic);
}

#[tokio::test]
async fn sdk_streams_that_break() {
    if !ready() {
        return;
    }
    for (sdk, models) in SDKS {
        let mut book = Book::new(sdk);
        let mut scenes = Vec::new();
        for model in models {
            // Before output: the gateway's retry, unseen.
            let script = Script::new()
                .step(Step::stream_fault([""; 0], Fault::Overloaded))
                .step(Step::stream_text(["who", "le"]));
            let scene = pair(&script).await;
            let from = provider_of(model);
            book.tell(&scene.2, "stream", &[model, "whole", from, "retry"]);
            scenes.push((scene, 2));
            // After output: an exception, and no second request.
            for step in [
                Step::stream_text(["Hel", "lo"]).then(End::Cut),
                Step::stream_fault(["Hel", "lo"], Fault::ServerError),
            ] {
                let scene = pair(&Script::new().step(step)).await;
                book.tell(&scene.2, "stream_breaks", &[model, "Hello"]);
                scenes.push((scene, 1));
            }
        }
        book.play().await;
        for ((openai, anthropic, gateway), sends) in &scenes {
            assert_eq!(gateway.journeys(), 1);
            assert_eq!(openai.attempt_count() + anthropic.attempt_count(), *sends);
        }
    }
}

#[tokio::test]
async fn sdk_sees_a_stream_that_opens_with_an_error_as_a_status() {
    if !ready() {
        return;
    }
    let script = Script::new().step(Step::stream_fault([""; 0], Fault::Overloaded).repeat(2));
    for (sdk, models, told) in [
        ("openai", SDKS[0].1, ["503", "overloaded"]),
        ("anthropic", SDKS[1].1, ["529", "overloaded_error"]),
    ] {
        let (_o, _a, gateway) = pair(&script).await;
        play(
            &gateway,
            sdk,
            "error",
            &[models[0], told[0], told[1], "streamed"],
        )
        .await;
        assert_eq!(gateway.journeys(), 1);
    }
}

/// A provider of each other dialect, and the gateway before it, for callers of Responses.
async fn others(script: &Script) -> Vec<(&'static str, Sim, TestGateway)> {
    let mut all = Vec::new();
    for (name, model) in [
        ("anthropic", "anthropic/claude-sonnet-4-5"),
        ("backup", "backup/small"),
    ] {
        let sim = provider(script.clone()).await;
        let gateway = TestGateway::start(&one(name), &[(name, &sim)]).await;
        all.push((model, sim, gateway));
    }
    all
}

#[tokio::test]
async fn sdk_responses_whole_and_streamed() {
    if !ready() {
        return;
    }
    let script = Script::new().step(Step::stream_text(["Hel", "lo ", "wörld"]).always());
    let whole = Script::new().step(Step::ok_text("Hello wörld").always());
    let (whole, streamed) = (others(&whole).await, others(&script).await);
    let mut book = Book::new("openai");
    for (model, _, gateway) in &whole {
        let from = provider_of(model);
        book.tell(gateway, "response", &[model, "Hello wörld", from]);
    }
    for (model, _, gateway) in &streamed {
        book.tell(gateway, "response_stream", &[model, "Hello wörld"]);
    }
    // One that speaks the dialect itself.
    let recorded =
        include_bytes!("../../../crates/dialects/fixtures/openai-responses/streams/keepalive.sse");
    let own = Step::sse([Item::raw(recorded.as_slice())]).always();
    let openai = provider(Script::new().step(own)).await;
    let gateway = TestGateway::start(&one("openai"), &[("openai", &openai)]).await;
    let told = ["openai/gpt-4.1", "Joe unknown Morgan red"];
    book.tell(&gateway, "response_stream", &told);
    book.play().await;
    assert_eq!(openai.attempt(1).path(), "/v1/responses");
}

#[tokio::test]
async fn sdk_responses_tools_and_structured_output() {
    if !ready() {
        return;
    }
    let call = Step::tool_call("weather", json!({"city": "Bern"}));
    let tools = Script::new()
        .step(call.clone())
        .step(Step::ok_text("It rains."))
        .step(call);
    let form = Script::new().step(Step::ok_text("{\"city\":\"Bern\"}"));
    let (tools, form) = (others(&tools).await, others(&form).await);
    let mut book = Book::new("openai");
    for (model, _, gateway) in &tools {
        book.tell(gateway, "response_tools", &[model]);
    }
    for (model, _, gateway) in &form {
        book.tell(gateway, "response_parsed", &[model]);
    }
    book.play().await;
    for (_, sim, _) in tools.iter().chain(&form) {
        as_scripted(sim);
    }
}

#[tokio::test]
async fn sdk_responses_that_fail() {
    if !ready() {
        return;
    }
    let refused = others(&Script::new().step(Step::fault(Fault::InvalidRequest).always())).await;
    let first = Step::stream_fault([""; 0], Fault::RateLimited);
    let first = others(&Script::new().step(first.always())).await;
    let half = Step::stream_text(["Hel", "lo"]).then(End::Cut);
    let half = others(&Script::new().step(half)).await;
    let mut book = Book::new("openai");
    for (model, _, gateway) in &refused {
        book.tell(gateway, "response_error", &[model, "400"]);
    }
    for (model, _, gateway) in &first {
        book.tell(gateway, "response_error", &[model, "429", "streamed"]);
    }
    for (model, _, gateway) in &half {
        book.tell(gateway, "response_breaks", &[model, "Hello"]);
    }
    book.play().await;
    for (_, sim, gateway) in &half {
        assert_eq!((sim.attempt_count(), gateway.journeys()), (1, 1));
    }
}

#[tokio::test]
async fn sdk_vectors_and_counts() {
    if !ready() {
        return;
    }
    let healthy = Script::healthy();
    let names = ["openai", "gemini", "cohere", "anthropic"];
    let mut sims = Vec::new();
    for _ in names {
        sims.push(provider(healthy.clone()).await);
    }
    let config: String = names.into_iter().map(one).collect();
    let config = config + "[routes]\nvectors = \"cohere/embed-v4.0\"\n";
    let sims: Vec<(&str, &Sim)> = names.into_iter().zip(&sims).collect();
    let gateway = TestGateway::start(&config, &sims).await;
    let mut book = Book::new("openai");
    for name in ["openai", "gemini", "cohere"] {
        book.tell(&gateway, "embeddings", &[&format!("{name}/m"), name]);
    }
    for model in ["vectors", "gemini/m"] {
        book.tell(&gateway, "embeddings_azure", &[model]);
    }
    book.tell(&gateway, "embeddings_refused", &["anthropic/claude"]);
    book.tell(&gateway, "model_retrieved", &["vectors"]);
    book.tell(&gateway, "model_retrieved", &["openai/gpt-4o"]);
    book.play().await;
    let mut book = Book::new("anthropic");
    book.tell(&gateway, "count", &["anthropic/claude", "gemini/m"]);
    book.tell(&gateway, "count_refused", &["openai/gpt-4o"]);
    book.play().await;
}

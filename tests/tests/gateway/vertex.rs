//! Vertex: Google's models and Anthropic's behind one provider, each in its own wire shape.

use backstop_faultsim::{Item, Script, Sim, Step};
use backstop_tests::{Answer, TestGateway, secret};
use serde_json::{Value, json};

use crate::common::{as_scripted, ask, ask_stream, provider};

const CONFIG: &str = r#"
    [providers.vertex]
    base_url = "env.VERTEX_URL"
    location = "global"
    project = "p"
    keys = ["env.VERTEX_KEY_1"]
"#;
const GEMINI: &str = "vertex/gemini-2.5-flash";
const CLAUDE: &str = "vertex/claude-sonnet-4-5@20250929";
const CLAUDE_PATH: &str =
    "/v1/projects/p/locations/global/publishers/anthropic/models/claude-sonnet-4-5@20250929";
const PATHS: [&str; 2] = ["/v1/chat/completions", "/v1/messages"];

/// What Vertex said once.
macro_rules! recorded {
    ($file:literal) => {
        include_str!(concat!("../../../crates/providers/fixtures/vertex/", $file))
    };
}

async fn start(script: Script) -> (Sim, TestGateway) {
    let sim = provider(script).await;
    let gateway = TestGateway::start(CONFIG, &[("vertex", &sim)]).await;
    (sim, gateway)
}

fn whole(status: u16, body: &str) -> Step {
    Step::text(status, body).header("content-type", "application/json; charset=UTF-8")
}

async fn send(gateway: &TestGateway, path: &str, body: &Value) -> Answer {
    gateway.post(path, body.to_string()).send().await
}

#[tokio::test]
async fn googles_models_are_asked_in_geminis_dialect() {
    let answer = whole(200, recorded!("text.json"));
    let (sim, gateway) = start(Script::new().step(answer.repeat(2))).await;
    let openai = send(&gateway, PATHS[0], &ask(GEMINI)).await;
    assert_eq!(openai.said(), "2 + 2 = **4**");
    assert_eq!(openai.json()["usage"]["completion_tokens"], 27);
    let anthropic = send(&gateway, PATHS[1], &ask(GEMINI)).await.json();
    assert_eq!(anthropic["content"][0]["text"], "2 + 2 = **4**");
    let attempt = sim.attempt(1);
    assert_eq!(
        attempt.path(),
        "/v1/projects/p/locations/global/publishers/google/models/gemini-2.5-flash:generateContent"
    );
    assert!(
        attempt
            .presented()
            .is_some_and(|token| token.is(&secret("VERTEX_KEY_1")))
    );
    assert!(attempt.json().get("contents").is_some());
    as_scripted(&sim);
}

#[tokio::test]
async fn claude_is_asked_in_its_own_dialect_by_any_caller() {
    const STREAM: &str = recorded!("claude.sse");
    let pieces = || STREAM.as_bytes().chunks(13).map(Item::raw);
    let script = Script::new().step(Step::sse(pieces()).repeat(2));
    let (sim, gateway) = start(script).await;
    // A caller of the same dialect gets the provider's own bytes, and what it sent goes on as it was.
    let body = r#"{"model":"vertex/claude-sonnet-4-5@20250929", "max_tokens":10,"stream":true,
        "x":1.50,"messages":[{"role":"user","content":"Hello"}]}"#;
    let same = gateway
        .post(PATHS[1], body)
        .header("anthropic-version", "2023-06-01")
        .header("anthropic-beta", "some-beta")
        .send()
        .await;
    assert_eq!(same.text(), STREAM);
    let attempt = sim.attempt(1);
    assert_eq!(attempt.path(), format!("{CLAUDE_PATH}:streamRawPredict"));
    assert_eq!(
        String::from_utf8_lossy(attempt.body()),
        r#"{"max_tokens":10,"stream":true,
        "x":1.50,"messages":[{"role":"user","content":"Hello"}],"anthropic_version":"vertex-2023-10-16"}"#
    );
    assert_eq!(attempt.header("anthropic-version"), None);
    assert_eq!(attempt.header("anthropic-beta"), Some("some-beta"));

    let other = send(&gateway, PATHS[0], &ask_stream(CLAUDE)).await;
    assert!(other.text().contains("Hello!"), "{}", other.text());
    assert!(other.events().last().is_some_and(|last| last.is_end()));
    let sent = sim.attempt(2).json();
    assert_eq!(sent.get("model"), None);
    assert_eq!(sent["anthropic_version"], "vertex-2023-10-16");
    assert_eq!(sent["max_tokens"], 64);
    as_scripted(&sim);
}

#[tokio::test]
async fn what_a_model_can_carry_is_asked_of_its_own_dialect() {
    // Anthropic's dialect has no probabilities, Gemini's translates none; for a caller of
    // Gemini's own dialect they are there.
    let text = whole(200, recorded!("text.json"));
    let (sim, gateway) = start(Script::new().step(text)).await;
    let body = json!({
        "contents": [{"role": "user", "parts": [{"text": "Hi"}]}],
        "generationConfig": {"responseLogprobs": true},
    });
    let path = |model: &str| format!("/genai/v1beta/models/{model}:generateContent");
    let gemini = send(&gateway, &path(GEMINI), &body).await;
    assert_eq!(gemini.status, 200, "{}", gemini.text());
    assert_eq!(sim.attempt(1).json(), body);
    let claude = send(&gateway, &path(CLAUDE), &body).await;
    assert_eq!(claude.status, 400, "{}", claude.text());
    assert!(claude.text().contains("logprobs"), "{}", claude.text());
    as_scripted(&sim);
}

#[tokio::test]
async fn googles_errors_are_told_in_the_callers_dialect() {
    for (status, body, class) in [
        (404, recorded!("no-model.json"), "model_access"),
        (400, recorded!("bad-argument.json"), "caller_fault"),
    ] {
        for model in [GEMINI, CLAUDE] {
            for path in PATHS {
                let (sim, gateway) = start(Script::new().step(whole(status, body))).await;
                let answer = send(&gateway, path, &ask(model)).await;
                assert_eq!(answer.status, status, "{}", answer.text());
                assert_eq!(answer.trail()[0]["failure_class"], class, "{model}");
                as_scripted(&sim);
            }
        }
    }
    let (sim, gateway) =
        start(Script::new().step(whole(200, recorded!("prompt-blocked.json")))).await;
    let withheld = send(&gateway, PATHS[0], &ask(GEMINI)).await;
    assert_eq!(
        withheld.json()["choices"][0]["finish_reason"],
        "content_filter"
    );
    as_scripted(&sim);
}

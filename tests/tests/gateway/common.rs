//! Configurations and requests that many tests share.

use backstop_faultsim::{Script, Sim};
use backstop_tests::Answer;
use serde_json::{Value, json};

/// A provider with this script.
pub(crate) async fn provider(script: Script) -> Sim {
    Sim::bind("127.0.0.1:0", script).await.expect("a free port")
}

/// A provider that must not be called.
pub(crate) async fn untouched() -> Sim {
    provider(Script::new()).await
}

/// `openai` with three keys, `max_retries` and short waits.
pub(crate) fn three_keys(max_retries: u32) -> String {
    format!(
        r#"
        [providers.openai]
        base_url = "env.OPENAI_URL"
        keys = ["env.OPENAI_KEY_1", "env.OPENAI_KEY_2", "env.OPENAI_KEY_3"]
        network_config = {{ max_retries = {max_retries}, retry_backoff_initial = 5 }}
        "#
    )
}

/// One provider with one key, known under its own name.
pub(crate) fn one(name: &str) -> String {
    let variable = name.to_ascii_uppercase();
    format!(
        r#"
        [providers.{name}]
        base_url = "env.{variable}_URL"
        keys = ["env.{variable}_KEY_1"]
        network_config = {{ retry_backoff_initial = 1 }}
        "#
    )
}

/// `openai`, behind it the compatible server `backup`: the route `chat` over the same model at both.
pub(crate) fn with_backup(max_retries: u32) -> String {
    format!(
        r#"
        [providers.openai]
        base_url = "env.OPENAI_URL"
        keys = ["env.OPENAI_KEY_1"]
        network_config = {{ max_retries = {max_retries}, retry_backoff_initial = 1 }}

        [providers.backup]
        base_url = "env.BACKUP_URL"
        keys = ["env.BACKUP_KEY_1"]

        [routes]
        chat = ["openai/gpt-4o", "backup/gpt-4o"]
        "#
    )
}

/// `openai` and `anthropic`, each with one key.
pub(crate) fn both_dialects() -> String {
    one("openai") + &one("anthropic")
}

/// A short question to `model`.
pub(crate) fn ask(model: &str) -> Value {
    json!({
        "model": model,
        "max_tokens": 64,
        "messages": [{"role": "user", "content": "Say something."}],
    })
}

/// The same, the answer streamed.
pub(crate) fn ask_stream(model: &str) -> Value {
    let mut body = ask(model);
    body["stream"] = true.into();
    body
}

/// One member of each row.
pub(crate) fn column(rows: &[Value], name: &str) -> Vec<Value> {
    rows.iter().map(|row| row[name].clone()).collect()
}

/// An answer's bytes as far as the provider's own go: tests ask for the trail, which stands behind
/// them.
pub(crate) fn before_extra(answer: &Answer) -> String {
    let text = answer.text();
    let at = text.find(r#","extra_fields":"#).expect("extra fields");
    text[..at].to_owned()
}

/// Everything a simulator saw was scripted, and everything scripted was seen.
pub(crate) fn as_scripted(sim: &Sim) {
    let deviations = sim.deviations();
    assert!(deviations.is_empty(), "{deviations:?}");
}

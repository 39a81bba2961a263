//! Configurations as they stand in issues and in `config/`.

use std::sync::Arc;

use backstop_faultsim::{Fault, Script, Sim, Step};
use backstop_tests::{TestGateway, public, secret};

use crate::common::{as_scripted, ask, column, provider};

/// Three keys, as operators bring it along from another gateway.
const THREE_KEYS: &str = r#"{"providers":{"openai":{"keys":[{"name":"openai-key-1","value":"env.OPENAI_KEY_1","models":["*"],"weight":1.0},{"name":"openai-key-2","value":"env.OPENAI_KEY_2","models":["*"],"weight":1.0},{"name":"openai-key-3","value":"env.OPENAI_KEY_3","models":["*"],"weight":1.0}],"network_config":{"max_retries":5,"retry_backoff_initial":500,"retry_backoff_max":5000}}}}"#;

#[tokio::test]
async fn three_keys_in_json_work_as_they_stand() {
    let script = Script::new()
        .step(Step::fault(Fault::InvalidKey).key(secret("OPENAI_KEY_1")))
        .step(Step::fault(Fault::InvalidKey).key(secret("OPENAI_KEY_2")))
        .step(Step::ok_text("from key 3").key(secret("OPENAI_KEY_3")))
        .step(Step::fault(Fault::InvalidKey).always());
    let openai = Arc::new(Sim::new(script));
    let upstream = public(&[("api.openai.com", &openai)]);
    let gateway = TestGateway::with_upstream(THREE_KEYS, &[], upstream).await;
    let answer = gateway.chat(ask("openai/gpt-4o")).await;
    assert_eq!(answer.said(), "from key 3", "{}", answer.text());
    let names = ["openai-key-1", "openai-key-2", "openai-key-3"];
    assert_eq!(column(&answer.trail(), "key_name"), names);
    assert_eq!(openai.attempt(1).path(), "/v1/chat/completions");

    // The first two are held out by now, and the third one's refusal spends the pool.
    let answer = gateway.chat(ask("openai/gpt-4o")).await;
    assert_eq!(answer.status, 502, "{}", answer.text());
    assert_eq!(answer.code(), "upstream_credentials_exhausted");
}

#[tokio::test]
async fn the_same_in_toml_with_comments() {
    let script = Script::new().step(Step::ok_text("hello"));
    let openai = provider(script).await;
    let config = r#"
        # Three keys, walked when one is refused.
        [providers.openai]
        base_url = "env.OPENAI_URL" # with or without /v1
        network_config = { max_retries = 5, retry_backoff_initial = 500, retry_backoff_max = 5000 }

        [[providers.openai.keys]]
        name = "openai-key-1"
        value = "env.OPENAI_KEY_1"
        models = ["*"]
        weight = 1.0

        [[providers.openai.keys]]
        name = "openai-key-2"
        value = "env.OPENAI_KEY_2"

        [[providers.openai.keys]]
        name = "openai-key-3"
        value = "env.OPENAI_KEY_3"
    "#;
    let gateway = TestGateway::start(config, &[("openai", &openai)]).await;
    let answer = gateway.chat(ask("openai/gpt-4o")).await;
    assert_eq!(answer.said(), "hello");
    assert_eq!(answer.trail()[0]["key_name"], "openai-key-1");
    as_scripted(&openai);
}

#[tokio::test]
async fn an_address_may_end_in_its_version_or_not() {
    for tail in ["", "/", "/v1", "/v1/"] {
        let openai = provider(Script::healthy()).await;
        let config = crate::common::one("openai").replace("env.OPENAI_URL", &(openai.url() + tail));
        let gateway = TestGateway::start(&config, &[("openai", &openai)]).await;
        assert_eq!(
            gateway.chat(ask("openai/gpt-4o")).await.status,
            200,
            "{tail}"
        );
        assert_eq!(openai.attempt(1).path(), "/v1/chat/completions", "{tail}");
    }
}

#[tokio::test]
async fn the_files_in_config_start() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../config");
    for file in std::fs::read_dir(folder).expect("a folder") {
        let path = file.expect("an entry").path();
        let known = path
            .extension()
            .is_some_and(|end| end == "toml" || end == "json");
        if !known {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a text");
        // Secrets mounted as files are not there in a test.
        let text = text
            .replace("file./run/secrets/openai-key-2", "env.OPENAI_KEY_2")
            .replace("file./run/secrets/google.json", "file.account-1.json");
        // Nor are certificates, and the test's own client speaks plain HTTP.
        let plain = text.lines().filter(|line| !line.starts_with("tls = "));
        let text = plain.collect::<Vec<_>>().join("\n");
        let gateway = TestGateway::start(&text, &[]).await;
        assert_eq!(
            gateway.get("/healthz").await.status,
            200,
            "{}",
            path.display()
        );
    }
}

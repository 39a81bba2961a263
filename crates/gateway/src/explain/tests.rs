//! Plans as they are shown, and what is understood of the arguments.

use std::path::Path;

use backstop_config::{Sources, read};

use super::*;

struct Variables;

impl Sources for Variables {
    fn env(&self, name: &str) -> Option<String> {
        name.ends_with("_KEY").then(|| format!("sk-{name}"))
    }

    fn file(&self, _: &Path) -> io::Result<String> {
        Err(io::ErrorKind::NotFound.into())
    }
}

const CONFIG: &str = r#"
    [defaults]
    max_attempts_primary = 4

    [providers.openai]
    keys = [
        { name = "one", value = "env.ONE_KEY" },
        { name = "two", value = "env.TWO_KEY", models = ["gpt-4o-mini"] },
        { name = "three", value = "env.THREE_KEY", weight = 0 },
    ]
    context_window = 128000
    network_config = { max_retries = 2 }

    [providers.anthropic]
    keys = ["env.ANTHROPIC_KEY"]
    verified = true

    [providers.local]
    kind = "custom"
    base_url = "http://127.0.0.1:9"
    contract = { tools = false }

    [providers.mistral]
    keys = [{ name = "m", value = "env.M_KEY", models = ["small"] }]

    [routes.chat]
    groups = [
        { name = "main", channels = ["openai/gpt-4o", "local/llama"] },
        { name = "far", channels = ["anthropic/claude-sonnet-4-5"] },
    ]
    substitutions = [{ channel = "openai/gpt-4o-mini", on = ["transient", "rate_limit"] }]
"#;

fn snapshot() -> Snapshot {
    match read(Path::new("backstop.toml"), CONFIG, &Variables, 1) {
        Ok(snapshot) => snapshot,
        Err(refused) => panic!("{refused}"),
    }
}

const BODY: &[u8] = br#"{"model":"chat","stream":true,"max_tokens":64,"logprobs":true,
    "tools":[{"type":"function","function":{"name":"look","parameters":{}}}],
    "fallbacks":["openai/gpt-4o","nobody/x","mistral/large"],
    "messages":[{"role":"user","content":"What is new?"}]}"#;

fn check(name: &str, route: &str, body: Option<&[u8]>, live: &Live) {
    let snapshot = snapshot();
    let resolved = resolve(&snapshot, route).expect("a name that stands for something");
    let dialect = Dialect::OpenAiChat;
    let envelope =
        body.map(|body| read_envelope_for(Operation::Generate, dialect, body).expect("a request"));
    let request = Request {
        operation: Operation::Generate,
        dialect,
        envelope: envelope.as_ref(),
    };
    let findings = Findings::new(&snapshot, &resolved, "backstop.toml", &request, live);
    let shown = findings.to_string();
    assert!(!shown.contains("sk-"), "no key");
    insta::assert_snapshot!(name, shown);
    let json = findings.to_json();
    assert!(!json.to_string().contains("sk-"), "no key");
    insta::assert_json_snapshot!(format!("{name}_json"), json);
}

#[test]
fn a_plan_in_general() {
    check("general", "chat", None, &Live::NotAsked);
}

#[test]
fn a_plan_for_a_request_beside_a_running_gateway() {
    let page = live::read(
        "# TYPE backstop_breaker_state gauge\n\
         backstop_breaker_state{channel=\"openai/gpt-4o\",state=\"closed\"} 0\n\
         backstop_breaker_state{channel=\"openai/gpt-4o\",state=\"open\"} 1\n\
         backstop_retry_budget_left_retries{channel=\"openai/gpt-4o\"} 3.25\n\
         backstop_keys_held{key=\"one\",model=\"*\",provider=\"openai\"} 1\n\
         backstop_keys_held{key=\"one\",model=\"*\",provider=\"other\"} 1\n\
         backstop_requests_in_flight 2\n",
    );
    let live = Live::Answered("http://127.0.0.1:8080/metrics".to_owned(), page);
    check("request", "chat", Some(BODY), &live);
}

#[test]
fn a_plan_for_a_name_of_the_callers_making() {
    let live = Live::Silent("http://127.0.0.1:1/metrics".to_owned());
    check("direct", "local/some/model", None, &live);
}

#[test]
fn a_name_that_stands_for_nothing_is_told_with_its_nearest() {
    let snapshot = snapshot();
    for (typed, meant) in [
        ("caht", Some("chat")),
        ("opnai/gpt-4o", Some("openai/gpt-4o")),
        ("zzz", None),
    ] {
        let error = resolve(&snapshot, typed).expect_err("no such name");
        let nearest = meant.map(str::to_owned);
        let name = typed.to_owned();
        assert_eq!(error, Error::UnknownRoute { name, nearest });
    }
}

#[test]
fn addresses_are_understood_or_refused() {
    for (url, understood) in [
        ("http://127.0.0.1:1", Some("http://127.0.0.1:1/metrics")),
        ("http://127.0.0.1:1/", Some("http://127.0.0.1:1/metrics")),
        ("http://[::1]:1/x/metrics", Some("http://[::1]:1/x/metrics")),
        ("https://example.com", None),
        ("127.0.0.1:8080", None),
        ("http://", None),
        ("http://user@127.0.0.1:1", None),
        ("http://127.0.0.1:1/a b\r\n", None),
    ] {
        let asked = live::ask(url).map(|(url, _)| url).ok();
        assert_eq!(asked.as_deref(), understood, "{url}");
    }
}

#[test]
fn labels_are_read_with_their_escapes() {
    let page = live::read(
        "backstop_retry_budget_left_retries{a=\"channel\",channel=\"x/\\\"y\\\\z\"} 1\n\
         backstop_retry_budget_left_retries{channel=\"cut\n",
    );
    assert_eq!(page.channels.keys().collect::<Vec<_>>(), ["x/\"y\\z"]);
}

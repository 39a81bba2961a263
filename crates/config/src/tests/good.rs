//! The configurations we ship, and what their snapshots answer.

use std::time::Duration;

use backstop_chat::Need;
use backstop_classifier::Class;
use backstop_dialects::Dialect;
use backstop_policy::{Choice, CommitChoice, HintUse, Lossy, OnRefusal, RouteLimits};
use backstop_providers::Setting;
use backstop_units::{ByteCount, KeyId, ModelName, ProviderId, Tokens};

use super::{Fake, snapshot};
use crate::{Error, Limits, Origin, Resolved, ServerParams, SessionParams, Snapshot, TrailChoice};
use crate::{diff, from_environment, load};

const FIVE_LINES: &str = include_str!("../../../../config/five-lines.toml");
const TWO_PROVIDERS: &str = include_str!("../../../../config/two-providers.toml");
const REFERENCE: &str = include_str!("../../../../config/reference.toml");
const BIFROST: &str = include_str!("../../../../config/bifrost.json");

/// The groups of a route as `provider/model` lists.
fn groups(snapshot: &Snapshot, route: &str) -> Vec<Vec<String>> {
    let groups = &snapshot.routes[route].groups;
    let labels = |group: &backstop_policy::Group| {
        let channels = group.channels.iter();
        channels.map(|channel| channel.label()).collect()
    };
    groups.iter().map(labels).collect()
}

fn value<'a>(snapshot: &'a Snapshot, provider: &str, key: &str) -> &'a str {
    let id = KeyId::new(&ProviderId::new(provider), key);
    snapshot.providers[provider].secret(&id).unwrap().expose()
}

#[test]
fn five_lines_are_enough() {
    let five = snapshot("five-lines.toml", FIVE_LINES);
    assert_eq!(
        FIVE_LINES
            .lines()
            .filter(|line| !line.starts_with('#'))
            .count(),
        5
    );
    assert_eq!(five.server, ServerParams::default());
    assert_eq!(five.limits, Limits::default());
    assert_eq!(groups(&five, "careful"), [["anthropic/claude-sonnet-4-5"]]);
    assert_eq!(
        value(&five, "openai", "openai-key-1"),
        "sk-canary-openai_api_key"
    );
    assert_eq!(
        five.providers["anthropic"].dialect(),
        Dialect::AnthropicMessages
    );
}

#[test]
fn a_project_is_typed_or_in_the_credentials_or_in_the_environment() {
    let file = "keys = [{ service_account = \"file./run/secrets/google.json\" }]";
    for (text, project) in [
        (format!("project = \"typed\"\n{file}"), "typed"),
        (file.to_owned(), "file-project"),
        ("keys = [\"ya29-canary\"]".to_owned(), "env-project"),
    ] {
        let text = format!("[providers.vertex]\nlocation = \"europe-west4\"\n{text}");
        let sources = Fake::full().with("GOOGLE_CLOUD_PROJECT", "env-project");
        let path = std::path::Path::new("backstop.toml");
        let snapshot = crate::read(path, &text, &sources, 1).unwrap();
        let vertex = &snapshot.providers["vertex"];
        assert_eq!(vertex.setting(Setting::Project), Some(project));
        assert_eq!(
            vertex.address().host(),
            "europe-west4-aiplatform.googleapis.com"
        );
    }
}

#[test]
fn googles_variables_alone_make_a_provider_once_a_place_is_named() {
    let variables = Fake::full().with("GOOGLE_APPLICATION_CREDENTIALS", "/run/secrets/google.json");
    let without = from_environment(&variables, 1).unwrap();
    assert!(!without.providers.contains_key("vertex"));
    let variables = variables.with("GOOGLE_CLOUD_LOCATION", "global");
    let with = from_environment(&variables, 1).unwrap();
    let vertex = &with.providers["vertex"];
    assert_eq!(vertex.address().host(), "aiplatform.googleapis.com");
    let (_, key) = vertex.keys().next().unwrap();
    assert!(key.token_source().is_some());
}

#[test]
fn azures_variables_alone_make_a_provider_once_an_endpoint_is_named() {
    let variables = Fake::full().with("AZURE_OPENAI_API_KEY", "canary-azure");
    let without = from_environment(&variables, 1).unwrap();
    assert!(!without.providers.contains_key("azure"));
    let endpoint = "https://r.openai.azure.com/";
    let variables = variables.with("AZURE_OPENAI_ENDPOINT", endpoint);
    let azure =
        |variables: &Fake| from_environment(variables, 1).unwrap().providers["azure"].clone();
    let v1 = azure(&variables);
    assert_eq!(v1.target().path(), "/openai/v1/chat/completions");
    let dated = azure(&variables.with("OPENAI_API_VERSION", "2024-10-21"));
    assert_eq!(dated.setting(Setting::ApiVersion), Some("2024-10-21"));
    assert_eq!(
        dated.address().to_string(),
        "https://r.openai.azure.com/openai"
    );
}

#[test]
fn bedrocks_keys_and_region_are_found_where_aws_keeps_them() {
    let credentials = "[dev]\naws_access_key_id = canary-1\naws_secret_access_key = canary-2\n";
    let config = "[profile dev]\nregion = eu-west-1\n";
    let profile = Fake::full()
        .with("HOME", "/home/me")
        .with("AWS_PROFILE", "dev")
        .with_file("/home/me/.aws/credentials", credentials)
        .with_file("/home/me/.aws/config", config);
    let signing = Fake::full()
        .with("AWS_ACCESS_KEY_ID", "canary-1")
        .with("AWS_SECRET_ACCESS_KEY", "canary-2")
        .with("AWS_DEFAULT_REGION", "us-west-2");
    let both = Fake::full()
        .with("AWS_BEARER_TOKEN_BEDROCK", "canary-3")
        .with("AWS_ACCESS_KEY_ID", "canary-1")
        .with("AWS_REGION", "ap-south-1");
    let path = std::path::Path::new("backstop.toml");
    for (sources, region, signs) in [
        (&profile, "eu-west-1", true),
        (&signing, "us-west-2", true),
        (&both, "ap-south-1", false),
    ] {
        let snapshot = crate::read(path, "[providers.bedrock]", sources, 1).unwrap();
        let bedrock = &snapshot.providers["bedrock"];
        let host = format!("bedrock-runtime.{region}.amazonaws.com");
        assert_eq!(bedrock.address().host(), host);
        let (id, key) = bedrock.keys().next().unwrap();
        assert_eq!(bedrock.to_sign(id).is_some(), signs, "{region}");
        assert_eq!(key.secrets().count(), if signs { 2 } else { 1 });
    }
    // Keys of AWS' are there for many things: only Bedrock's own starts one without a file.
    let started = |sources| from_environment(sources, 1).unwrap();
    assert!(!started(&signing).providers.contains_key("bedrock"));
    assert!(started(&both).providers.contains_key("bedrock"));
}

#[test]
fn a_key_serves_the_models_it_has_names_for_and_those_it_lists() {
    for (models, served) in [
        ("", [true, false, false]),
        (", models = [\"o3\"]", [true, true, false]),
        (", models = [\"*\"]", [true, true, true]),
    ] {
        let key = format!("{{ value = \"canary-1\", aliases = {{ gpt-4o = \"mine\" }}{models} }}");
        let text = format!("[providers.openai]\nkeys = [{key}]");
        let snapshot = snapshot("aliases.toml", &text);
        let channel = snapshot.channel("openai/gpt-4o").unwrap();
        let key = &channel.pool.keys()[0];
        let names = ["gpt-4o", "o3", "other"].map(ModelName::new);
        assert_eq!(
            [0, 1, 2].map(|at| key.serves(&names[at])),
            served,
            "{models}"
        );
        let provider = &snapshot.providers["openai"];
        let named = |at: usize| provider.named(Some(key.id()), &names[at]).as_str();
        assert_eq!([named(0), named(1)], ["mine", "o3"]);
        assert_eq!(provider.named(None, &names[0]), &names[0]);
    }
}

#[test]
fn the_three_key_file_works_as_it_stands() {
    let three = snapshot("config.json", BIFROST);
    let Some(Resolved::Minted(route)) = three.resolve("openai/gpt-4o") else {
        panic!("provider/model is minted");
    };
    let channel = &route.groups[0].channels[0];
    assert_eq!(channel.pool.keys().len(), 3);
    assert!(!channel.pool.is_keyless() && channel.pool.remembers());
    assert_eq!(channel.retry.max_retries, 5);
    assert_eq!(channel.retry.hint, HintUse::Honour);
    assert_eq!(channel.id.as_str(), "openai/gpt-4o");
    assert_eq!(route.limits, RouteLimits::default());
    for (key, want) in [
        ("openai-key-1", "sk-canary-openai_key_1"),
        ("openai-key-2", "sk-canary-openai_key_2"),
        ("openai-key-3", "sk-canary-openai_key_3"),
    ] {
        assert_eq!(value(&three, "openai", key), want);
    }
}

#[test]
fn both_spellings_mean_the_same() {
    let toml = r#"
# the same, with comments
[[providers.openai.keys]]
name = "openai-key-1"
value = "${OPENAI_KEY_1}" # another spelling of the variable
models = ["*"]
weight = 1
[[providers.openai.keys]]
name = "openai-key-2"
value = "os.environ/OPENAI_KEY_2"
[[providers.openai.keys]]
name = "openai-key-3"
value = "env::OPENAI_KEY_3"
[providers.openai.network_config]
max_retries = 5
retry_backoff_initial = "500ms"
retry_backoff_max = "5s"
"#;
    let (json, toml) = (
        snapshot("config.json", BIFROST),
        snapshot("backstop.toml", toml),
    );
    assert_ne!(json.hash, toml.hash);
    let delta = diff(&json, &toml);
    assert!(delta.providers.is_empty() && delta.keys.is_empty());
    assert_eq!(delta.keys.kept.len(), 3);
    assert_eq!(
        format!("{:?}", json.channel("openai/m")),
        format!("{:?}", toml.channel("openai/m"))
    );
}

#[test]
fn two_providers_share_a_contract_and_a_third_model_may_substitute() {
    let two = snapshot("two-providers.toml", TWO_PROVIDERS);
    assert_eq!(
        groups(&two, "llama"),
        [[
            "groq/llama-3.3-70b-versatile",
            "together/meta-llama/Llama-3.3-70B-Instruct-Turbo"
        ]]
    );
    let route = &two.routes["llama"];
    let substitution = &route.substitutions[0];
    assert_eq!(
        substitution.channel.label(),
        "together/Qwen/Qwen2.5-72B-Instruct-Turbo"
    );
    assert_eq!(substitution.on.len(), 4);
    assert!(!substitution.on_content_policy);
    assert_eq!(route.groups[0].channels[0].retry.max_retries, 2);
    assert_eq!(two.channel_ids().count(), 3);
}

#[test]
fn the_reference_says_the_defaults() {
    let full = snapshot("reference.toml", REFERENCE);
    let keepalive = Some(Duration::from_secs(15));
    assert_eq!(
        full.server,
        ServerParams {
            keepalive,
            ..ServerParams::default()
        }
    );
    assert_eq!(full.limits, Limits::default());
    assert_eq!(full.trail, TrailChoice::OnRequest);
    assert_eq!(full.session, SessionParams::default());

    // `openai` in the reference spells out what an empty table means.
    let bare = snapshot("bare.toml", "[providers.openai]");
    let (spelled, bare) = (
        full.channel("openai/m").unwrap(),
        bare.channel("openai/m").unwrap(),
    );
    assert_eq!(format!("{:?}", spelled.retry), format!("{:?}", bare.retry));
    assert_eq!(spelled.breaker, bare.breaker);
    assert_eq!(spelled.clocks, bare.clocks);
    assert_eq!(spelled.contract.set, bare.contract.set);
    assert_eq!(spelled.contract.context_window, Some(Tokens(128_000)));
    let Some(Resolved::Minted(route)) = full.resolve("openai/m") else {
        panic!("provider/model is minted");
    };
    assert_eq!(
        route.limits,
        RouteLimits {
            max_attempts_primary: Some(12),
            max_attempts_fallback: Some(12),
            ..RouteLimits::default()
        }
    );

    assert_eq!(
        value(&full, "openai", "openai-key-2"),
        "sk-canary-from-file"
    );
    assert_eq!(groups(&full, "quick"), [["openai/gpt-4o-mini"]]);
    assert_eq!(
        groups(&full, "steady"),
        [["openai/gpt-4o"], ["lab/gpt-4o-compatible"]]
    );
    assert_eq!(groups(&full, "chat")[0].len(), 2);
    let chat = &full.routes["chat"];
    assert_eq!(
        chat.commit,
        CommitChoice::Window {
            wait: Some(Duration::from_millis(500)),
            tokens: Some(Tokens(40)),
        }
    );
    assert_eq!(chat.lossy, Lossy::Refuse);
    assert_eq!(chat.limits.max_attempts, 8);
    assert_eq!(chat.groups[0].name.as_str(), "main");
    assert_eq!(chat.groups[1].name.as_str(), "group-2");
    let narrowed = &chat.groups[0].channels[1];
    assert_eq!(narrowed.id.as_str(), "openai/gpt-4o#openai-key-2");
    assert!(!narrowed.contract.set.has(Need::Audio) && narrowed.verified);
    assert_eq!(narrowed.retry.max_retries, 2);
    let substitution = &chat.substitutions[0];
    assert_eq!(
        substitution.channel.contract.context_window,
        Some(Tokens(200_000))
    );
    assert!(substitution.on.contains(&Class::CallerFault));
    assert!(full.channel("lab/m").unwrap().pool.is_keyless());
}

#[test]
fn names_resolve_to_routes_first_and_never_by_guess() {
    let text = r#"
[providers.openai]
context_window = 1000
[providers.openai.contract]
images = false
[routes]
"openai/gpt-4o" = "openai/gpt-4o-mini"
[routes.chat]
groups = [{ channels = [{ provider = "openai", model = "o3", context_window = 5000, priority = 3, weight = 0.5 }] }]
"#;
    let snapshot = snapshot("a.toml", text);
    for (model, want) in [
        ("chat", Some((true, "openai/o3"))),
        ("openai/gpt-4o", Some((true, "openai/gpt-4o-mini"))),
        ("openai/gpt-4o-mini", Some((false, "openai/gpt-4o-mini"))),
        ("openai/a/b/c", Some((false, "openai/a/b/c"))),
        ("gpt-4o", None),
        ("openai", None),
        ("openai/", None),
        ("/gpt-4o", None),
        ("", None),
        ("anthropic/claude", None),
        ("OpenAI/gpt-4o", None),
        ("openai/a b", None),
        ("openai/a\nb", None),
    ] {
        let found = snapshot.resolve(model);
        let configured = matches!(found, Some(Resolved::Configured(_)));
        let label = found.map(|found| found.route().groups[0].channels[0].label());
        let got = label.as_deref().map(|label| (configured, label));
        assert_eq!(got, want, "{model:?}");
    }
    assert!(
        snapshot
            .resolve(&format!("openai/{}", "x".repeat(257)))
            .is_none()
    );

    // What a route says of a channel holds for the same channel called directly; its place in the
    // route does not.
    let listed = snapshot.channel("openai/o3").unwrap();
    assert_eq!(listed.contract.context_window, Some(Tokens(5000)));
    assert_eq!((listed.priority, listed.weight), (0, 1.0));
    let minted = snapshot.channel("openai/else").unwrap();
    assert_eq!(minted.contract.context_window, Some(Tokens(1000)));
    assert!(!minted.contract.set.has(Need::Images));
}

#[test]
fn bounds_come_from_the_route_then_the_defaults() {
    let text = r#"
[providers.openai]
[defaults]
deadline_ms = 9000
max_attempts = 4
lossy = "drop"
commit = "complete"
[routes.own]
groups = [{ channels = ["openai/a"] }]
max_attempts = 2
commit = "first_output"
[routes]
short = ["openai/a"]
"#;
    let snapshot = snapshot("a.toml", text);
    for (model, attempts, commit) in [
        ("own", 2, CommitChoice::FirstOutput),
        ("short", 4, CommitChoice::Complete),
        ("openai/b", 4, CommitChoice::Complete),
    ] {
        let route = snapshot.resolve(model).unwrap();
        let route = route.route();
        assert_eq!(route.limits.max_attempts, attempts, "{model}");
        assert_eq!(route.limits.deadline, Duration::from_secs(9), "{model}");
        assert_eq!(
            (route.commit, route.lossy),
            (commit, Lossy::Drop),
            "{model}"
        );
    }
}

#[test]
fn settings_reach_the_parts_they_are_for() {
    let text = r#"{
  "server": { "listen": "[::1]:0", "drain_ms": 0 },
  "limits": { "body_bytes": 1048576, "buffered_bytes": "1GiB" },
  "trail": "always",
  "providers": { "lab": {
    "base_url": "http://vllm:8000/v1/", "resembles": "anthropic",
    "keys": ["file.near.txt", { "value": "sk-literal-canary", "weight": 0 }],
    "extra_headers": { "X-Team": "env.OPENAI_KEY_1" },
    "breaker": { "enabled": false },
    "timeouts": { "idle_ms": 1 },
    "network_config": { "retry_backoff_max": 100, "retry_hint": "record", "hold_refused_keys": false, "jitter": "full" }
  } }
}"#;
    let snapshot = snapshot("config.json", text);
    assert_eq!(snapshot.server.listen.to_string(), "[::1]:0");
    assert_eq!(snapshot.server.drain, Duration::ZERO);
    assert_eq!(snapshot.limits.body_bytes, ByteCount::mib(1));
    assert_eq!(snapshot.trail, TrailChoice::Always);
    let lab = &snapshot.providers["lab"];
    assert_eq!(lab.target(), "http://vllm:8000/v1/messages");
    assert_eq!(lab.dialect(), Dialect::AnthropicMessages);
    assert_eq!(lab.extra_headers()["x-team"], "sk-canary-openai_key_1");
    assert_eq!(value(&snapshot, "lab", "lab-key-1"), "sk-canary-near");
    let channel = snapshot.channel("lab/m").unwrap();
    assert!(!channel.pool.remembers());
    assert_eq!(channel.retry.hint, HintUse::Record);
    assert_eq!(channel.breaker, backstop_breaker::Params::never());
    assert_eq!(channel.clocks.idle, Duration::from_millis(1));
    assert!(!channel.contract.set.has(Need::Logprobs));
}

#[test]
fn without_a_file_the_well_known_variables_are_taken() {
    let fake = Fake::default()
        .with("OPENAI_API_KEY", "sk-canary\n")
        .with("OPENAI_BASE_URL", "http://127.0.0.1:9999")
        .with("ANTHROPIC_API_KEY", " ")
        .with("ANTHROPIC_BASE_URL", "http://127.0.0.1:9998")
        .with("OLLAMA_BASE_URL", "http://127.0.0.1:11434");
    let snapshot = from_environment(&fake, 7).unwrap();
    assert_eq!(
        (snapshot.version, &snapshot.origin),
        (7, &Origin::Environment)
    );
    assert_eq!(snapshot.server, ServerParams::default());
    assert_eq!(snapshot.providers.len(), 2);
    let openai = &snapshot.providers["openai"];
    assert_eq!(openai.target(), "http://127.0.0.1:9999/v1/chat/completions");
    assert_eq!(value(&snapshot, "openai", "openai-key-1"), "sk-canary");
    assert!(snapshot.channel("ollama/llama3").unwrap().pool.is_keyless());

    // A file without providers takes the same.
    let text = "routes = { chat = \"openai/gpt-4o\" }";
    let file = crate::read(std::path::Path::new("a.toml"), text, &fake, 1).unwrap();
    assert_eq!(file.providers.len(), 2);
}

#[test]
fn without_anything_the_next_step_is_named() {
    let nothing = Fake::default();
    for error in [
        from_environment(&nothing, 1).unwrap_err(),
        crate::read(std::path::Path::new("a.toml"), "", &nothing, 1).unwrap_err(),
    ] {
        let text = error.to_string();
        assert!(matches!(error, Error::NothingSet { .. }), "{text}");
        for part in [
            "OPENAI_API_KEY",
            "ANTHROPIC_API_KEY",
            "OLLAMA_BASE_URL",
            "file",
        ] {
            assert!(text.contains(part), "{text}");
        }
    }
    let missing = load(std::path::Path::new("/nowhere.toml"), &nothing, 1).unwrap_err();
    assert_eq!(
        missing.to_string(),
        "/nowhere.toml: the file cannot be read"
    );
    assert!(std::error::Error::source(&missing).is_some());
    // The gateway's own address in the variable of the SDKs.
    let circle = Fake::full().with("OPENAI_BASE_URL", "http://localhost:8080/v1");
    let text = from_environment(&circle, 1).unwrap_err().to_string();
    assert!(
        text.contains("environment: providers.openai.base_url: this is the gateway's own"),
        "{text}"
    );
}

#[test]
fn a_reload_is_a_difference_over_ids() {
    let old = r#"
[providers.openai]
keys = [{ name = "a", value = "sk-one" }, { name = "b", value = "sk-two" }]
[providers.groq]
[routes]
x = "openai/m"
y = ["openai/m", "groq/m"]
"#;
    let new = r#"
[providers.openai]
keys = [{ name = "a", value = "sk-one" }, { name = "b", value = "sk-other" }]
[providers.groq]
timeouts = { idle_ms = 5 }
[providers.anthropic]
[routes]
x = "openai/m"
y = ["openai/m", "groq/m", "anthropic/n"]
"#;
    let (old, new) = (snapshot("a.toml", old), snapshot("a.toml", new));
    let text =
        |ids: &[backstop_units::ChannelId]| ids.iter().map(ToString::to_string).collect::<Vec<_>>();
    let delta = diff(&old, &new);
    assert_eq!(text(&delta.channels.added), ["anthropic/n"]);
    assert_eq!(text(&delta.channels.changed), ["groq/m"]);
    assert_eq!(text(&delta.channels.kept), ["openai/m"]);
    assert_eq!(delta.keys.changed.len(), 1);
    assert_eq!(delta.keys.changed[0].as_str(), "openai/b");
    assert_eq!(delta.providers.changed.len(), 1);
    assert_eq!(delta.providers.kept.len(), 1);
    assert_eq!(delta.routes.kept.len(), 1);
    let back = diff(&new, &old);
    assert_eq!(text(&back.channels.removed), ["anthropic/n"]);
    let same = diff(&old, &old);
    assert!(same.channels.is_empty() && same.keys.is_empty() && same.routes.is_empty());
}

#[test]
fn choices_sessions_and_windows_are_read() {
    let snapshot = |text: &str| snapshot("a.toml", &format!("{text}\n[providers.openai]"));
    for (typed, choice) in [
        ("priority", Choice::Priority),
        ("weighted", Choice::Weighted),
        ("least_latency", Choice::LeastLatency),
        ("least_busy", Choice::LeastBusy),
    ] {
        let group = format!("{{ choice = \"{typed}\", channels = [\"openai/m\"] }}");
        let read = snapshot(&format!("[routes.r]\ngroups = [{group}]"));
        assert_eq!(read.routes["r"].groups[0].choice, choice);
    }
    let session = snapshot("[session]\non_refusal = \"move\"\ncapacity = 0").session;
    assert_eq!((session.on_refusal, session.capacity), (OnRefusal::Move, 0));
    let window = |wait, tokens| CommitChoice::Window {
        wait: Option::map(wait, Duration::from_millis),
        tokens: Option::map(tokens, Tokens),
    };
    for (typed, commit) in [
        ("{ window_ms = 7 }", window(Some(7), None)),
        ("{ window_tokens = 9 }", window(None, Some(9))),
        (
            "{ window_ms = 7, window_tokens = 9 }",
            window(Some(7), Some(9)),
        ),
    ] {
        let read = snapshot(&format!("[defaults]\ncommit = {typed}"));
        let route = read.resolve("openai/m").expect("minted").route().clone();
        assert_eq!(route.commit, commit, "{typed}");
    }
}

//! Built requests as snapshots, and what must never be in one.

use std::collections::BTreeMap;

use backstop_units::{ModelName, RequestId};
use http::{HeaderValue, Method};

use super::*;
use crate::{Kept, row, rows};

/// The request as text: headers in order of name, sensitive values as `(sensitive)`.
fn text(request: &Request<Bytes>) -> String {
    let mut headers: Vec<String> = request
        .headers()
        .iter()
        .map(|(name, value)| {
            let shown = if value.is_sensitive() {
                "(sensitive)"
            } else {
                value.to_str().unwrap()
            };
            format!("{name}: {shown}")
        })
        .collect();
    headers.sort();
    format!(
        "{} {}\n{}\n\n{}",
        request.method(),
        request.uri(),
        headers.join("\n"),
        String::from_utf8_lossy(request.body())
    )
    .replace(env!("CARGO_PKG_VERSION"), "VERSION")
}

fn keyed(kind: &str) -> Provider {
    let id = ProviderId::new(kind);
    let row = row(kind).unwrap();
    let key = KeyId::new(&id, "k");
    let provider = match row.base_url {
        Some(_) => Provider::new(id, row),
        None => Provider::at(id, row, Address::parse("http://127.0.0.1:9").unwrap()),
    };
    let said = |needed: &crate::Needed| {
        let value = match needed.setting {
            Setting::ApiVersion => "2024-10-21".to_owned(),
            other => other.field().to_owned(),
        };
        (needed.setting, value)
    };
    provider
        .unwrap()
        .with_keys(HashMap::from([(key, Secret::new("sk-canary").into())]))
        .with_settings(row.adapter.needs().iter().map(said).collect())
        .unwrap()
}

/// A caller that sends all it should not.
fn noisy_caller() -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("authorization", "Bearer caller-canary"),
        ("x-api-key", "caller-canary"),
        ("api-key", "caller-canary"),
        ("x-goog-api-key", "caller-canary"),
        ("cookie", "session=caller-canary"),
        ("host", "gateway.example"),
        ("accept-encoding", "gzip, br"),
        ("content-length", "999"),
        ("transfer-encoding", "chunked"),
        ("x-stainless-retry-count", "1"),
        ("x-stainless-lang", "python"),
        ("x-request-id", "callers-own"),
        ("x-backstop-attempt", "77"),
        ("x-forwarded-for", "203.0.113.9"),
        ("user-agent", "OpenAI/Python 2.0"),
        ("anthropic-version", "2024-01-01"),
        ("anthropic-beta", "caller-beta"),
        ("openai-organization", "org-caller"),
        ("openai-project", "proj-caller"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers
}

fn build(provider: &Provider, stream: bool, caller: Option<&HeaderMap>) -> Request<Bytes> {
    let (model, id) = (ModelName::new("m"), RequestId::new("req-1"));
    let key = provider.keys().next().and_then(|(_, key)| key.plain());
    provider
        .build(&Call {
            key,
            attempt: 3,
            stream,
            caller,
            ..Call::new(&model, Bytes::from_static(b"{\"model\":\"m\"}"), &id)
        })
        .unwrap()
}

#[test]
fn what_is_kept_is_asked_about_below_the_dialects_own_path() {
    let (model, id) = (ModelName::new("m"), RequestId::new("req-1"));
    let openai = keyed("openai");
    for (method, path, want) in [
        (
            Method::GET,
            "/resp_1",
            "https://api.openai.com/v1/responses/resp_1",
        ),
        (
            Method::GET,
            "/resp_1?stream=true&starting_after=3",
            "https://api.openai.com/v1/responses/resp_1?stream=true&starting_after=3",
        ),
        (
            Method::POST,
            "/resp_1/cancel",
            "https://api.openai.com/v1/responses/resp_1/cancel",
        ),
    ] {
        let path = path.to_owned();
        let kept = Kept {
            method: method.clone(),
            path,
        };
        let built = openai.build(&Call {
            dialect: Some(Dialect::OpenAiResponses),
            kept: Some(&kept),
            key: openai.keys().next().and_then(|(_, key)| key.plain()),
            ..Call::new(&model, Bytes::new(), &id)
        });
        let built = built.unwrap();
        assert_eq!(
            (built.method(), built.uri().to_string()),
            (&method, want.to_owned())
        );
        assert!(built.headers().get("content-type").is_none());
        assert!(built.headers().get("authorization").is_some());
    }
}

#[test]
fn openai() {
    insta::assert_snapshot!(text(&build(&keyed("openai"), true, Some(&noisy_caller()))));
}

#[test]
fn anthropic() {
    insta::assert_snapshot!(text(&build(&keyed("anthropic"), false, None)));
}

#[test]
fn gemini() {
    insta::assert_snapshot!(text(&build(&keyed("gemini"), true, Some(&noisy_caller()))));
}

#[test]
fn anthropic_with_a_caller_and_an_operator_who_both_name_betas() {
    let mut extra = HeaderMap::new();
    extra.insert("anthropic-beta", HeaderValue::from_static("operator-beta"));
    let provider = keyed("anthropic").with_extra_headers(extra);
    let caller = noisy_caller();
    let request = build(&provider, true, Some(&caller));
    let betas: Vec<_> = request.headers().get_all("anthropic-beta").iter().collect();
    assert_eq!(betas, ["caller-beta,operator-beta"]);
    insta::assert_snapshot!(text(&request));
}

#[test]
fn custom_without_key_and_with_headers_of_the_operators() {
    let mut extra = HeaderMap::new();
    extra.insert("x-team", HeaderValue::from_static("search"));
    extra.insert("user-agent", HeaderValue::from_static("ours"));
    let provider = Provider::at(
        ProviderId::new("lab"),
        row("custom").unwrap(),
        Address::parse("http://10.0.0.7:8000/").unwrap(),
    )
    .unwrap()
    .with_extra_headers(extra);
    insta::assert_snapshot!(text(&build(&provider, false, Some(&noisy_caller()))));
}

#[test]
fn custom_that_resembles_anthropic() {
    let provider = keyed("custom")
        .resembling(row("anthropic").unwrap())
        .unwrap();
    assert_eq!(provider.dialect(), Dialect::AnthropicMessages);
    insta::assert_snapshot!(text(&build(&provider, false, None)));
}

#[test]
fn every_row_builds_and_each_has_one_target() {
    let targets: BTreeMap<_, _> = rows()
        .iter()
        .map(|row| {
            (
                row.kind,
                build(&keyed(row.kind), false, None).uri().to_string(),
            )
        })
        .collect();
    assert_eq!(targets.len(), rows().len(), "a kind is listed twice");
    let lines: Vec<_> = targets
        .iter()
        .map(|(kind, uri)| format!("{kind} {uri}"))
        .collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn nothing_of_the_callers_own_credentials_goes_out() {
    for row in rows() {
        let request = build(&keyed(row.kind), true, Some(&noisy_caller()));
        for (name, value) in request.headers() {
            let value = value.to_str().unwrap();
            assert!(!value.contains("caller-canary"), "{}: {name}", row.kind);
            assert!(
                !name.as_str().starts_with("x-stainless-"),
                "{}: {name}",
                row.kind
            );
        }
        for name in [
            "host",
            "cookie",
            "accept-encoding",
            "content-length",
            "x-forwarded-for",
        ] {
            assert!(
                !request.headers().contains_key(name),
                "{}: {name}",
                row.kind
            );
        }
        assert_eq!(request.headers()["x-request-id"], "req-1");
        assert_eq!(request.headers()["x-backstop-attempt"], "3");
    }
}

#[test]
fn keys_are_needed_where_they_are_and_never_shown() {
    let (model, id) = (ModelName::new("m"), RequestId::new("r"));
    let call = Call::new(&model, Bytes::new(), &id);
    for row in rows() {
        let provider = keyed(row.kind);
        let refused = provider.build(&call).unwrap_err();
        assert!(matches!(refused, Error::KeyMissing { .. }), "{}", row.kind);
        let shown = format!("{provider:?} {:?}", build(&provider, false, None));
        assert!(!shown.contains("canary"), "{shown}");
    }
    let secret = Secret::new("canary\nx: y");
    let broken = Call {
        key: Some(&secret),
        ..call
    };
    let refused = keyed("openai").build(&broken).unwrap_err();
    assert!(matches!(refused, Error::KeyUnfit { .. }));
    assert!(!format!("{refused} {refused:?} {broken:?}").contains("canary"));
}

#[test]
fn a_request_id_that_no_header_may_carry_is_an_error() {
    let (model, id) = (ModelName::new("m"), RequestId::new("a\r\nb"));
    let call = Call::new(&model, Bytes::new(), &id);
    let lab = Provider::new(ProviderId::new("o"), row("ollama").unwrap()).unwrap();
    assert_eq!(lab.build(&call).unwrap_err(), Error::RequestId);
}

#[test]
fn headers_that_frame_the_message_cannot_be_configured() {
    for (name, may) in [
        ("host", false),
        ("content-length", false),
        ("transfer-encoding", false),
        ("x-backstop-attempt", false),
        ("x-request-id", false),
        ("cookie", false),
        ("proxy-authorization", false),
        ("http-referer", true),
        ("x-title", true),
        ("anthropic-beta", true),
        ("user-agent", true),
    ] {
        assert_eq!(
            may_be_configured(&HeaderName::from_static(name)),
            may,
            "{name}"
        );
    }
}

#[test]
fn a_caller_is_served_in_its_own_dialect_where_that_is_spoken() {
    use Dialect::{AnthropicMessages, OpenAiChat, OpenAiResponses};
    let model = ModelName::new("m");
    for (kind, caller, spoken, path) in [
        ("openai", OpenAiChat, OpenAiChat, "/v1/chat/completions"),
        ("openai", OpenAiResponses, OpenAiResponses, "/v1/responses"),
        (
            "openai",
            AnthropicMessages,
            OpenAiChat,
            "/v1/chat/completions",
        ),
        ("deepseek", OpenAiResponses, OpenAiResponses, "/responses"),
        (
            "openrouter",
            OpenAiResponses,
            OpenAiResponses,
            "/api/v1/responses",
        ),
        (
            "groq",
            OpenAiResponses,
            OpenAiChat,
            "/openai/v1/chat/completions",
        ),
        (
            "anthropic",
            OpenAiResponses,
            AnthropicMessages,
            "/v1/messages",
        ),
    ] {
        let provider = keyed(kind);
        assert_eq!(provider.dialect_for(caller, &model), spoken, "{kind}");
        assert_eq!(provider.target_in(Some(spoken)).path(), path, "{kind}");
        assert_eq!(
            provider.dialects().next(),
            Some(provider.dialect()),
            "{kind}"
        );
    }
    // An address that is a whole one, path and all, is for one dialect.
    let address = Address::parse("https://h/odd/chat/completions").unwrap();
    let odd = Provider::at(ProviderId::new("odd"), row("openai").unwrap(), address).unwrap();
    assert_eq!(odd.dialect_for(OpenAiResponses, &model), OpenAiChat);
    let resembling = keyed("custom").resembling(row("openai").unwrap()).unwrap();
    assert_eq!(
        resembling.dialect_for(OpenAiResponses, &model),
        OpenAiResponses
    );
}

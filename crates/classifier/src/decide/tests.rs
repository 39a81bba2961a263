//! From whole answers to verdicts: tables of cases, and laws that hold for any bytes.

use std::time::SystemTime;

use http::{HeaderMap, HeaderValue};
use proptest::prelude::*;

use super::classify;
use crate::{BODY_LIMIT, Class, Clock, Evidence, Family, Kind, Sent, Transport, Verdict};

fn verdict(family: Family, status: u16, body: &str) -> Verdict {
    classify(&Evidence::response(
        family,
        status,
        body.as_bytes(),
        SystemTime::UNIX_EPOCH,
    ))
}

/// What a response is, with what decided, as an operator reads it.
fn check(family: Family, status: u16, body: &str, want: &str) {
    assert_eq!(verdict(family, status, body).to_string(), want, "{body}");
}

#[test]
fn a_number_is_the_code_where_the_status_says_another() {
    let now = SystemTime::UNIX_EPOCH;
    for (status, body, want) in [
        (
            200,
            r#"{"error":{"code":429,"message":"Provider returned error"}}"#,
            Some("429"),
        ),
        (
            429,
            r#"{"error":{"code":429,"message":"Provider returned error"}}"#,
            None,
        ),
        (
            200,
            r#"{"error":{"code":"rate_limit_exceeded","status":429}}"#,
            Some("rate_limit_exceeded"),
        ),
    ] {
        let evidence = Evidence::response(Family::General, status, body.as_bytes(), now);
        let code = classify(&evidence).code.map(|code| code.to_string());
        assert_eq!(code.as_deref(), want, "{status} {body}");
    }
}

#[test]
fn the_deciding_signal_is_named() {
    use Family::{Anthropic, General, OpenAi};
    check(
        OpenAi,
        429,
        r#"{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}"#,
        "quota (code insufficient_quota)",
    );
    check(
        Anthropic,
        400,
        r#"{"error":{"type":"invalid_request_error","message":"Your credit balance is too low"}}"#,
        "quota (phrase \"credit balance is too low\")",
    );
    check(
        Anthropic,
        529,
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
        "transient/overloaded (type overloaded_error)",
    );
    check(
        Family::Bedrock,
        400,
        r#"{"__type":"com.amazon#ThrottlingException","message":"Rate exceeded"}"#,
        "rate_limit (exception ThrottlingException)",
    );
    check(
        OpenAi,
        404,
        r#"{"error":{"message":"No such File object: file-x","param":"id","code":null}}"#,
        "caller_fault (param)",
    );
    check(General, 429, "", "rate_limit (status 429)");
    check(
        General,
        400,
        r#"{"error":{"message":"no","code":429}}"#,
        "rate_limit (body status 429)",
    );
    check(General, 302, "", "malformed/redirect (status 302)");
    check(General, 200, "", "malformed/empty_answer (shape)");
    check(
        General,
        200,
        "<html>",
        "malformed/unreadable_answer (shape)",
    );
    for status in [
        408, 424, 425, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529,
    ] {
        assert_eq!(
            verdict(General, status, "<html>").class,
            Class::Transient,
            "{status}"
        );
    }
}

#[test]
fn a_kind_is_given_where_an_action_hangs_on_it() {
    let rows = [
        (
            400,
            "prompt is too long: 9 tokens > 8 maximum",
            Class::CallerFault,
            Kind::ContextWindow,
        ),
        (
            400,
            "blocked by content filtering policy",
            Class::CallerFault,
            Kind::ContentPolicy,
        ),
        (
            403,
            "your input was flagged, it requires moderation",
            Class::Credential,
            Kind::ContentPolicy,
        ),
        (
            429,
            "Request too large for m: Limit 1, Requested 2",
            Class::RateLimit,
            Kind::RequestLargerThanLimit,
        ),
        (
            429,
            "Quota exceeded for metric: x, limit: 0, model: y",
            Class::RateLimit,
            Kind::LimitZero,
        ),
        (
            503,
            "The model is overloaded",
            Class::Transient,
            Kind::Overloaded,
        ),
        (
            401,
            "OAuth token has expired",
            Class::Credential,
            Kind::RenewableToken,
        ),
    ];
    for (status, message, class, kind) in rows {
        let body = serde_json::json!({"error": {"message": message}}).to_string();
        let got = verdict(Family::General, status, &body);
        assert_eq!((got.class, got.kind), (class, Some(kind)), "{message}");
    }
}

#[test]
fn transport_says_whether_the_request_was_sent() {
    use Transport as T;
    let rows = [
        (T::Dns, Class::Transient, Sent::Never, "dns_failure"),
        (T::Refused, Class::Transient, Sent::Never, "connect_refused"),
        (T::Tls, Class::Transient, Sent::Never, "tls_failure"),
        (T::TlsName, Class::Unknown, Sent::Never, "tls_name_mismatch"),
        (
            T::NotProcessed,
            Class::Transient,
            Sent::Never,
            "not_processed",
        ),
        (
            T::ResetBeforeResponse,
            Class::Transient,
            Sent::Maybe,
            "reset_before_headers",
        ),
        (
            T::ClosedBeforeResponse,
            Class::Transient,
            Sent::Maybe,
            "closed_before_headers",
        ),
        (T::CutBody, Class::Transient, Sent::Maybe, "upstream_cut"),
        (
            T::Timeout(Clock::Connect),
            Class::Transient,
            Sent::Never,
            "connect_timeout",
        ),
        (
            T::Timeout(Clock::Headers),
            Class::Timeout,
            Sent::Maybe,
            "request_timed_out",
        ),
        (
            T::Timeout(Clock::FirstOutput),
            Class::Timeout,
            Sent::Maybe,
            "ttft_timeout",
        ),
        (
            T::Timeout(Clock::Idle),
            Class::Timeout,
            Sent::Maybe,
            "stream_idle_timeout",
        ),
        (
            T::Timeout(Clock::Deadline),
            Class::Timeout,
            Sent::Maybe,
            "request_timed_out",
        ),
        (T::CallerGone, Class::Cancelled, Sent::Maybe, "caller_gone"),
    ];
    for (transport, class, sent, reason) in rows {
        let evidence = Evidence::transport(Family::General, transport, SystemTime::UNIX_EPOCH);
        let got = classify(&evidence);
        assert_eq!(
            (got.class, got.sent, got.fail_reason()),
            (class, sent, reason)
        );
        assert!(got.signal.to_string().starts_with("transport "));
    }
    let cut = Evidence {
        in_stream: true,
        ..Evidence::transport(Family::General, T::CutBody, SystemTime::UNIX_EPOCH)
    };
    assert_eq!(classify(&cut).fail_reason(), "incomplete_stream");
}

#[test]
fn hints_of_a_good_answer_are_ignored_and_should_retry_is_recorded() {
    let mut headers = HeaderMap::new();
    headers.insert("retry-after", HeaderValue::from_static("7"));
    headers.insert("x-should-retry", HeaderValue::from_static("false"));
    let body = br#"{"error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    let event = Evidence::event(Family::Anthropic, body, SystemTime::UNIX_EPOCH);
    assert_eq!(classify(&event.with_headers(&headers)).retry_after, None);
    let answer = Evidence::response(Family::Anthropic, 529, body, SystemTime::UNIX_EPOCH);
    let got = classify(&answer.with_headers(&headers));
    assert_eq!(got.retry_after.map(|hint| hint.as_secs()), Some(7));
    assert_eq!(got.should_retry, Some(false));
}

#[test]
fn a_verdict_holds_no_text_of_the_provider() {
    let body =
        r#"{"error":{"message":"the SECRET text","code":"sk-SECRET","type":"two words SECRET"}}"#;
    let got = verdict(Family::General, 400, body);
    assert!(!format!("{got:?} {got}").contains("SECRET"));
    let evidence = Evidence::response(
        Family::General,
        400,
        body.as_bytes(),
        SystemTime::UNIX_EPOCH,
    );
    assert!(!format!("{evidence:?}").contains("SECRET"));
}

#[test]
fn a_body_beyond_the_bound_is_read_up_to_it() {
    let padding = "x".repeat(2 * BODY_LIMIT);
    let body = format!(r#"{{"error":{{"code":"insufficient_quota","message":"{padding}"#);
    assert_eq!(verdict(Family::General, 429, &body).class, Class::Quota);
}

#[test]
fn quoted_caller_text_decides_nothing() {
    let quotes = [
        "Invalid value: '{}'. Supported values are: 'low' and 'high'.",
        "Unrecognized request argument supplied: {}",
        "tools.0.name: `{}` is too short",
        "messages.2: unexpected tool id \"{}\"",
        "Unknown name \"{}\": Cannot find field.",
        "extraneous key [{}] is not permitted",
        "Failed to parse tool arguments: {{\"text\": \"{}\"}}",
        "Failed to deserialize the JSON body: {}",
        "Unknown tool \u{201C}{}\u{201D} in messages",
    ];
    let words = [
        "rate limit exceeded",
        "invalid api key",
        "too many requests",
        "credit balance is too low",
        "model not found",
        "overloaded",
        "unsupported country",
        "insufficient_quota",
    ];
    for family in Family::ALL {
        for quote in quotes {
            for word in words {
                let message = quote
                    .replacen("{}", word, 1)
                    .replace("{{", "{")
                    .replace("}}", "}");
                let body = serde_json::json!({"error": {
                    "message": message, "type": "invalid_request_error", "param": null, "code": null,
                }});
                let got = verdict(*family, 400, &body.to_string());
                assert_eq!(got.class, Class::CallerFault, "{family}: {message}: {got}");
            }
        }
    }
}

/// Bodies whose class must survive whatever is added around it.
fn bodies() -> impl Strategy<Value = (u16, serde_json::Value)> {
    let rows = vec![
        (
            429,
            serde_json::json!({"error": {"message": "You exceeded your current quota",
            "type": "insufficient_quota", "param": null, "code": "insufficient_quota"}}),
        ),
        (
            400,
            serde_json::json!({"type": "error", "error": {"type": "invalid_request_error",
            "message": "Your credit balance is too low"}, "request_id": "req_1"}),
        ),
        (
            404,
            serde_json::json!({"error": {"message": "The model `a` does not exist",
            "type": "invalid_request_error", "param": null, "code": "model_not_found"}}),
        ),
        (
            429,
            serde_json::json!({"error": {"code": 429, "status": "RESOURCE_EXHAUSTED",
            "message": "Quota exceeded for metric: x"}}),
        ),
        (
            400,
            serde_json::json!({"object": "error", "message": "Invalid model: x",
            "type": "invalid_model", "param": null, "code": "1500"}),
        ),
        (
            400,
            serde_json::json!({"error": {"message": "Invalid 'temperature'",
            "type": "invalid_request_error", "param": "temperature", "code": null}}),
        ),
    ];
    prop::sample::select(rows)
}

fn reversed(value: serde_json::Value) -> serde_json::Value {
    match value {
        serde_json::Value::Object(map) => map
            .into_iter()
            .rev()
            .map(|(key, value)| (key, reversed(value)))
            .collect(),
        other => other,
    }
}

proptest! {
    #[test]
    fn any_bytes_give_a_verdict(
        bytes in prop::collection::vec(any::<u8>(), 0..600),
        status in prop::option::of(any::<u16>()),
        family in prop::sample::select(Family::ALL),
        in_stream in any::<bool>(),
    ) {
        let evidence = Evidence {
            status,
            in_stream,
            ..Evidence::response(family, 0, &bytes, SystemTime::UNIX_EPOCH)
        };
        let got = classify(&evidence);
        prop_assert_eq!(got.status, status);
        if status == Some(401) {
            prop_assert_eq!(got.class, Class::Credential);
        }
    }

    #[test]
    fn any_json_like_text_gives_a_verdict(
        text in "(\\PC|[\\[\\]{}\",:\\\\u0-9 ]|\"error\"|\"message\"|\"code\"|\"details\"|\"metadata\"|\"raw\"){0,60}",
        status in 200_u16..600,
    ) {
        let _ = verdict(Family::General, status, &text);
    }

    #[test]
    fn every_cut_of_a_body_gives_a_verdict((status, body) in bodies(), at in any::<prop::sample::Index>()) {
        let text = body.to_string();
        let got = verdict(Family::General, status, &text[..at.index(text.len() + 1)]);
        prop_assert_ne!(got.class, Class::Malformed);
    }

    #[test]
    fn unknown_fields_order_and_ids_change_nothing(
        (status, body) in bodies(),
        name in "x_[a-z]{1,8}",
        text in "\\PC{0,40}",
        id in "[A-Za-z0-9]{8,32}",
    ) {
        let want = verdict(Family::General, status, &body.to_string()).class;
        let mut changed = body;
        if let Some(error) = changed.get_mut("error") {
            error[&name] = serde_json::json!({"error": {"code": text, "message": text}});
        }
        changed[&name] = serde_json::json!([text, {"code": "rate_limit_exceeded"}]);
        changed["request_id"] = id.clone().into();
        changed["id"] = id.into();
        prop_assert_eq!(verdict(Family::General, status, &changed.to_string()).class, want);
        let turned = reversed(changed).to_string();
        prop_assert_eq!(verdict(Family::General, status, &turned).class, want);
    }
}

//! What a scripted provider does with one attempt, by short names.

use std::time::{Duration, SystemTime};

use backstop_classifier::{
    Class, Clock, Evidence, Family, Kind, Sent, Transport, Verdict, classify,
};

use super::super::Event;

/// The events of one attempt, each with the time since it was sent. `name@ms` delays the telling
/// one; `status+s` carries a `Retry-After`.
pub(super) fn events(name: &str) -> Vec<(Duration, Event)> {
    let (name, delay) = name.split_once('@').unwrap_or((name, "0"));
    let at = Duration::from_millis(delay.parse().expect("milliseconds"));
    let headers = (Duration::ZERO, head(200));
    let output = || {
        let now = Duration::ZERO;
        vec![
            (now, head(200)),
            (now, Event::Output),
            (now, Event::Committed),
        ]
    };
    let failed = |verdict| Event::Failed {
        verdict,
        stale_connection: false,
    };
    let mut events = match name {
        "ok" => vec![(at, head(200)), (at, Event::Whole)],
        // A stream, by how far it comes.
        "stream" => [output(), vec![(at, Event::Whole)]].concat(),
        "cut" => [output(), vec![(at, failed(broken(Transport::CutBody)))]].concat(),
        "stall" => output(),
        "startup" => vec![headers],
        "event429" => vec![headers, (at, failed(in_stream()))],
        "hang" => vec![],
        "stale" => vec![(
            at,
            Event::Failed {
                verdict: broken(Transport::ResetBeforeResponse),
                stale_connection: true,
            },
        )],
        "unbuildable" => vec![(
            at,
            Event::Unbuildable {
                field: "logprobs".to_owned(),
            },
        )],
        name => vec![(at, failed(verdict(name)))],
    };
    events.sort_by_key(|(at, _)| *at);
    events
}

fn head(status: u16) -> Event {
    Event::Headers {
        status,
        reused: false,
        connect: None,
    }
}

/// The verdict on a failure, as the classifier gives it on real bodies.
pub(super) fn verdict(name: &str) -> Verdict {
    let (name, hint) = name.split_once('+').unwrap_or((name, ""));
    let verdict = match name {
        "refused" => broken(Transport::Refused),
        "reset" => broken(Transport::ResetBeforeResponse),
        "slow" => broken(Transport::Timeout(Clock::Headers)),
        "empty" => Verdict::malformed(Kind::EmptyAnswer, Some(200)),
        name => answered(name),
    };
    let hint = hint.parse().ok().map(Duration::from_secs);
    Verdict {
        retry_after: hint.or(verdict.retry_after),
        ..verdict
    }
}

fn answered(name: &str) -> Verdict {
    let status = name[..3].parse().expect("a status");
    let body = match &name[3..] {
        "" if status >= 500 => r#"{"error":{"message":"down","type":"server_error"}}"#,
        "" if status == 401 => r#"{"error":{"message":"no","code":"invalid_api_key"}}"#,
        "" if status == 400 => r#"{"error":{"message":"bad","code":"invalid_value"}}"#,
        "" => "{}",
        "quota" => r#"{"error":{"message":"no","code":"insufficient_quota"}}"#,
        "model" => r#"{"error":{"message":"no such model","code":"model_not_found"}}"#,
        "region" => r#"{"error":{"code":"unsupported_country_region_territory"}}"#,
        "policy" if status == 403 => r#"{"error":{"message":"Your input requires moderation"}}"#,
        "policy" => r#"{"error":{"message":"filtered","code":"content_filter"}}"#,
        "window" => r#"{"error":{"message":"long","code":"context_length_exceeded"}}"#,
        "large" => r#"{"error":{"message":"Request too large for gpt-4o on tokens"}}"#,
        "html" => "<html>not here</html>",
        other => panic!("no such reply: {other}"),
    };
    classify(&Evidence::response(
        Family::OpenAi,
        status,
        body.as_bytes(),
        SystemTime::UNIX_EPOCH,
    ))
}

fn in_stream() -> Verdict {
    let body = br#"{"error":{"message":"Rate limit reached","code":"rate_limit_exceeded"}}"#;
    classify(&Evidence::event(
        Family::OpenAi,
        body,
        SystemTime::UNIX_EPOCH,
    ))
}

fn broken(transport: Transport) -> Verdict {
    classify(&Evidence::transport(
        Family::General,
        transport,
        SystemTime::UNIX_EPOCH,
    ))
}

/// The short names mean what they say.
#[test]
fn replies_are_read_as_meant() {
    let (none, policy) = (None, Some(Kind::ContentPolicy));
    for (name, class, kind) in [
        ("401", Class::Credential, none),
        ("402", Class::Quota, none),
        ("429quota", Class::Quota, none),
        ("403", Class::Credential, none),
        ("403policy", Class::Credential, policy),
        ("403region", Class::RegionBlocked, none),
        ("404model", Class::ModelAccess, none),
        ("404html", Class::Unknown, none),
        ("400", Class::CallerFault, none),
        ("400policy", Class::CallerFault, policy),
        ("400window", Class::CallerFault, Some(Kind::ContextWindow)),
        ("429+3", Class::RateLimit, none),
        (
            "429large",
            Class::RateLimit,
            Some(Kind::RequestLargerThanLimit),
        ),
        ("408", Class::Transient, none),
        ("503", Class::Transient, none),
        ("reset", Class::Transient, none),
        ("slow", Class::Timeout, none),
        ("empty", Class::Malformed, Some(Kind::EmptyAnswer)),
    ] {
        let read = verdict(name);
        assert_eq!((read.class, read.kind), (class, kind), "{name}");
    }
    assert_eq!(verdict("429+3").retry_after, Some(Duration::from_secs(3)));
    assert_eq!(verdict("refused").sent, Sent::Never);
    assert_eq!(in_stream().class, Class::RateLimit);
}

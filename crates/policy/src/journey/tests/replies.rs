//! What a scripted provider or hook does, and how a journey ended, in short words.

use std::time::{Duration, SystemTime};

use backstop_classifier::{
    Class, Clock, Evidence, Family, Kind, Sent, Signal, Transport, Verdict, classify,
};

use super::super::{Cause, Ending, Event};
use crate::hook::{Aftermath, HookError, HookStage};

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
        "stale" => vec![
            (
                at,
                Event::Connected {
                    reused: true,
                    connect: None,
                },
            ),
            (
                at,
                Event::Failed {
                    verdict: broken(Transport::ResetBeforeResponse),
                    stale_connection: true,
                },
            ),
        ],
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

/// What comes of renewing a token, and how long that takes.
pub(super) fn renewal(word: &str) -> (Duration, Event) {
    let (word, millis) = word.split_once('@').unwrap_or((word, "0"));
    let after = Duration::from_millis(millis.parse().expect("milliseconds"));
    let event = match word {
        "ok" => Event::Renewed,
        "denied" => Event::RenewFailed(no_token(Class::Credential)),
        "down" => Event::RenewFailed(no_token(Class::Transient)),
        other => panic!("no such renewal: {other}"),
    };
    (after, event)
}

const fn no_token(class: Class) -> Verdict {
    Verdict::no_token(class, Signal::Shape, None)
}

/// When hooks are asked, and about what.
pub(super) fn asked(stage: &HookStage) -> (&'static str, String) {
    match stage {
        HookStage::Before => ("before", String::new()),
        HookStage::After(Aftermath::Answered) => ("after", " answered".to_owned()),
        HookStage::After(Aftermath::Failed(verdict)) => ("after", format!(" {}", verdict.class)),
    }
}

/// What the hooks say, by short words, and how long they take.
pub(super) fn say(words: &str) -> (Duration, Event) {
    let (words, millis) = words.split_once('@').unwrap_or((words, "0"));
    let after = Duration::from_millis(millis.parse().expect("milliseconds"));
    let (words, wait) = words.split_once('+').unwrap_or((words, ""));
    let (words, class) = words.split_once(':').unwrap_or((words, ""));
    let hook = "h".to_owned();
    let event = match words {
        "pass" => Event::HookPassed,
        "answer" => Event::HookAnswered { hook },
        stop => {
            let status = stop[4..].parse().expect("a status");
            let mut error = HookError::new(status, "stopped", "Not this one.");
            if let Ok(seconds) = wait.parse() {
                error = error.retry_after(Duration::from_secs(seconds));
            }
            if let Some(class) = Class::from_name(class) {
                error = error.like(class);
            }
            Event::HookStopped {
                hook,
                error,
                allow_fallbacks: stop.starts_with("next"),
            }
        }
    };
    (after, event)
}

/// An ending in one line: the error's cause, the attempt shown, its class, the hint; `final` where
/// layers above should not repeat.
pub(super) fn describe(ending: &Ending) -> String {
    let mut line = ending.reason().to_owned();
    let error = match ending {
        Ending::Exhausted(error) | Ending::Deadline(error) | Ending::PolicyStop(error) => error,
        Ending::Partial(verdict) => return format!("{line} {}", verdict.class),
        Ending::Success | Ending::Cancelled => return line,
    };
    let cause = match error.cause {
        Cause::Upstream => "upstream",
        Cause::CredentialsExhausted => "credentials_exhausted",
        Cause::Deadline => "time",
        Cause::NothingEligible => "nothing_eligible",
        Cause::NoKeyServes => "no_key_serves",
        Cause::GroupsFull => "groups_full",
        Cause::Hook => "hook",
        Cause::NotSent => "not_sent",
    };
    line = format!("{line} {cause}");
    if let Some(stopped) = &error.stopped {
        line = format!("{line} {}", stopped.status());
    }
    if let (Some(attempt), Some(verdict)) = (error.attempt, &error.verdict) {
        line = format!("{line} #{attempt} {}", verdict.class);
    }
    if let Some(hint) = error.retry_after {
        line = format!("{line} retry-after={}", hint.as_millis());
    }
    if error.do_not_retry {
        line.push_str(" final");
    }
    line
}

fn head(status: u16) -> Event {
    Event::Headers { status }
}

/// The verdict on a failure, as the classifier gives it on real bodies.
pub(super) fn verdict(name: &str) -> Verdict {
    let (name, hint) = name.split_once('+').unwrap_or((name, ""));
    let verdict = match name {
        "refused" => broken(Transport::Refused),
        "reset" => broken(Transport::ResetBeforeResponse),
        "slow" => broken(Transport::Timeout(Clock::Headers)),
        "denied" => no_token(Class::Credential),
        "down" => no_token(Class::Transient),
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
        "busy" => {
            r#"{"error":{"message":"The engine is currently overloaded","code":"overloaded"}}"#
        }
        "crash" => r#"{"error":{"message":"oops","code":"engine_crashed"}}"#,
        "" if status >= 500 => r#"{"error":{"message":"down","type":"server_error"}}"#,
        "expired" => r#"{"error":{"message":"no","code":"token_expired"}}"#,
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
        ("500crash", Class::Transient, none),
        ("503busy", Class::Transient, Some(Kind::Overloaded)),
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

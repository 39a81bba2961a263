//! A verdict in words for people on call, and as JSON for programs.

use std::io::{self, Write};

use backstop_breaker::Outcome;
use backstop_classifier::{Class, HINT_MAX, HINT_MIN, Kind, Sent, Verdict};
use backstop_keypool::{Permanent, Refusal};
use backstop_policy::{Conduct, Reach, Repeat, conduct};
use serde_json::json;

/// One further step, in words and as a token.
struct Step {
    words: &'static str,
    token: &'static str,
}

const fn step(token: &'static str, words: &'static str) -> Step {
    Step { words, token }
}

/// A row of the decision table.
struct Steps {
    same_key: Step,
    next_key: Step,
    fallback: Step,
    substitution: Step,
    breaker: Step,
    key_hold: Step,
}

impl Steps {
    fn of(conduct: &Conduct) -> Self {
        let (same_key, next_key) = repeat(conduct.repeat);
        Self {
            same_key,
            next_key,
            fallback: reach(conduct.fallback),
            substitution: reach(conduct.substitution),
            breaker: breaker(conduct.health),
            key_hold: key_hold(conduct.refusal),
        }
    }

    fn named(&self) -> [(&'static str, &Step); 6] {
        [
            ("same_key", &self.same_key),
            ("next_key", &self.next_key),
            ("fallback", &self.fallback),
            ("substitution", &self.substitution),
            ("breaker", &self.breaker),
            ("key_hold", &self.key_hold),
        ]
    }
}

fn repeat(repeat: Repeat) -> (Step, Step) {
    let no = || step("no", "no");
    match repeat {
        Repeat::Never => (no(), no()),
        Repeat::NextKey => (
            step("no", "never again in this request"),
            step("at_once", "at once, free of the retry budget"),
        ),
        Repeat::Rotate => (
            step("after_pool", "once every other living key was tried"),
            step("after_backoff", "after backoff, from the retry budget"),
        ),
        Repeat::RotateAtOnce => (
            step("no", "no, waiting cannot help it"),
            step("at_once_paid", "at once, from the retry budget"),
        ),
        Repeat::SameKey => (
            step("after_backoff", "after backoff, from the retry budget"),
            step("no", "no, the key is not to blame"),
        ),
    }
}

fn reach(reach: Reach) -> Step {
    match reach {
        Reach::Closed => step("no", "no"),
        Reach::Open => step("yes", "yes"),
        Reach::Verified => step("verified", "only to a channel whose contract is verified"),
        Reach::LargerWindow => step(
            "larger_window",
            "only to a model whose declared context window is larger",
        ),
        Reach::NamedForPolicy => step(
            "named_for_policy",
            "only where a substitution names content_policy",
        ),
    }
}

fn breaker(health: Outcome) -> Step {
    match health {
        Outcome::Success => step("success", "counts as a success"),
        Outcome::Failure => step("failure", "counts against the channel"),
        Outcome::RateLimited => step("ratio_only", "counts for the ratio, not for the streak"),
        Outcome::Ignored => step("not_counted", "does not count"),
    }
}

fn key_hold(refusal: Option<Refusal>) -> Step {
    match refusal {
        None => step("none", "none"),
        Some(Refusal::RateLimited) => step(
            "key_and_model_for_hint",
            "key x model, for the hint, at least 10 s",
        ),
        Some(Refusal::Permanent(permanent)) => match permanent {
            Permanent::Credential | Permanent::Quota => step(
                "key_until_probe",
                "the key, until one probing request succeeds",
            ),
            Permanent::ModelAccess | Permanent::ModelGone | Permanent::RegionBlocked => step(
                "key_and_model_until_probe",
                "key x model, until one probing request succeeds",
            ),
            Permanent::ContentPolicy => step("none", "none"),
        },
    }
}

/// What a class means, in a sentence.
const fn meaning(class: Class) -> &'static str {
    match class {
        Class::Credential => "the key itself was rejected",
        Class::Quota => "the account is out of credit or over a spend cap",
        Class::ModelAccess => "this key cannot reach the model",
        Class::ModelGone => "the provider retired the model",
        Class::RegionBlocked => "the provider refuses the location of the request",
        Class::RateLimit => "a limit over time was hit",
        Class::Transient => "the provider, or the network before it, is in trouble",
        Class::Timeout => "one of the gateway's own clocks ran out",
        Class::Malformed => "an answer that breaks its own contract",
        Class::Unknown => "nothing in it says what went wrong; a wrong base URL often looks so",
        Class::CallerFault => "the request itself was refused",
        Class::Cancelled => "the caller left",
    }
}

/// What a kind adds, in a sentence; empty where its name says it all.
const fn detail(kind: Kind) -> &'static str {
    match kind {
        Kind::ContextWindow => "more tokens than the model's window holds",
        Kind::ContentPolicy => "a filter, moderation or guardrail refused the content",
        Kind::Overloaded => "the provider is short of capacity",
        Kind::RequestLargerThanLimit => "larger than the whole allowance, so no wait helps",
        Kind::LimitZero => "the allowance is zero, so no wait helps",
        Kind::RenewableToken => {
            "a short-lived token; it is renewed once before its key counts as dead"
        }
        Kind::TokenFetch => "its short-lived token could not be had; the provider was not asked",
        Kind::Redirect => "redirects are never followed",
        Kind::EmptyAnswer => "no content at all",
        Kind::UnreadableAnswer => "not what it says it is, or not whole",
        Kind::UnknownEncoding => "in a content coding that cannot be undone here",
        _ => "",
    }
}

/// The answer for people.
pub(super) fn as_text(verdict: &Verdict, out: &mut impl Write) -> io::Result<()> {
    let line = |out: &mut dyn Write, name: &str, what: &str| writeln!(out, "  {name:<13} {what}");
    writeln!(out, "{}: {}", verdict.class, meaning(verdict.class))?;
    if let Some(kind) = verdict.kind {
        let kind = match detail(kind) {
            "" => kind.to_string(),
            detail => format!("{kind}: {detail}"),
        };
        line(out, "kind", &kind)?;
    }
    line(out, "decided by", &verdict.signal.to_string())?;
    if let Some(code) = verdict.code {
        line(out, "provider code", code.as_str())?;
    }
    if let Some(status) = verdict.status {
        line(out, "status", &status.to_string())?;
    }
    let hint = match verdict.retry_after {
        Some(hint) => format!(
            "{} s (kept within {} s and {} s)",
            hint.as_secs_f64(),
            HINT_MIN.as_secs(),
            HINT_MAX.as_secs()
        ),
        None => "none".to_owned(),
    };
    line(out, "retry hint", &hint)?;
    if let Some(should) = verdict.should_retry {
        line(
            out,
            "should retry",
            if should {
                "yes, says the provider"
            } else {
                "no, says the provider"
            },
        )?;
    }
    line(
        out,
        "processed",
        match verdict.sent {
            Sent::Never => "provably not, so it may always be sent again",
            Sent::Maybe => "perhaps, so only a request that is safe to replay goes on",
        },
    )?;
    writeln!(out, "\nwhat the gateway does next")?;
    for (name, step) in Steps::of(&conduct(verdict)).named() {
        line(out, &name.replace('_', " "), step.words)?;
    }
    writeln!(
        out,
        "\nEach step also needs attempts and time left, and that no output has reached the caller."
    )
}

/// The answer for programs; its words are stable tokens.
pub(super) fn as_json(verdict: &Verdict, out: &mut impl Write) -> io::Result<()> {
    let next: serde_json::Map<_, _> = Steps::of(&conduct(verdict))
        .named()
        .into_iter()
        .map(|(name, step)| (name.to_owned(), json!(step.token)))
        .collect();
    let answer = json!({
        "failure": true,
        "class": verdict.class.name(),
        "kind": verdict.kind.map(Kind::name),
        "signal": verdict.signal.to_string(),
        "code": verdict.code.as_ref().map(|code| code.as_str()),
        "status": verdict.status,
        "retry_after_ms": verdict.retry_after.map(|hint| u64::try_from(hint.as_millis()).unwrap_or(u64::MAX)),
        "should_retry": verdict.should_retry,
        "processed": match verdict.sent {
            Sent::Never => "no",
            Sent::Maybe => "maybe",
        },
        "next": next,
    });
    writeln!(out, "{answer}")
}

/// The answer for a response that failed in no way.
pub(super) fn no_failure(json: bool, out: &mut impl Write) -> io::Result<()> {
    if json {
        writeln!(out, "{}", json!({"failure": false}))
    } else {
        writeln!(out, "no failure: a 2xx without an error in it")
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use backstop_classifier::{Evidence, Family, classify};

    use super::*;

    fn both(status: u16, body: &str) -> (String, serde_json::Value) {
        let evidence = Evidence::response(
            Family::General,
            status,
            body.as_bytes(),
            SystemTime::UNIX_EPOCH,
        );
        let verdict = classify(&evidence);
        let (mut text, mut json) = (Vec::new(), Vec::new());
        as_text(&verdict, &mut text).unwrap();
        as_json(&verdict, &mut json).unwrap();
        let json = serde_json::from_slice(&json).unwrap();
        (String::from_utf8(text).unwrap(), json)
    }

    #[test]
    fn the_next_steps_are_those_of_the_decision_table() {
        for (status, body, class, next) in [
            (
                401,
                "",
                "credential",
                [
                    "no",
                    "at_once",
                    "yes",
                    "yes",
                    "not_counted",
                    "key_until_probe",
                ],
            ),
            (
                429,
                "",
                "rate_limit",
                [
                    "after_pool",
                    "after_backoff",
                    "yes",
                    "yes",
                    "ratio_only",
                    "key_and_model_for_hint",
                ],
            ),
            (
                500,
                "",
                "transient",
                ["after_backoff", "no", "yes", "yes", "failure", "none"],
            ),
            (
                404,
                "",
                "unknown",
                ["no", "no", "yes", "no", "not_counted", "none"],
            ),
            (
                302,
                "",
                "malformed",
                ["no", "no", "verified", "no", "failure", "none"],
            ),
            (
                400,
                r#"{"error":{"code":"context_length_exceeded"}}"#,
                "caller_fault",
                ["no", "no", "no", "larger_window", "not_counted", "none"],
            ),
            (
                404,
                r#"{"error":{"code":"model_not_found"}}"#,
                "model_access",
                [
                    "no",
                    "at_once",
                    "yes",
                    "yes",
                    "not_counted",
                    "key_and_model_until_probe",
                ],
            ),
        ] {
            let (text, json) = both(status, body);
            assert_eq!(json["class"], class);
            let got: Vec<_> = json["next"].as_object().unwrap().values().collect();
            assert_eq!(got, next.iter().collect::<Vec<_>>(), "{class}");
            assert!(text.starts_with(class), "{text}");
        }
    }

    #[test]
    fn the_providers_text_is_not_repeated() {
        let body = r#"{"error":{"message":"SECRET words: model SECRET not found","code":"sk-SECRET","type":"SECRET type"}}"#;
        let (text, json) = both(404, body);
        assert!(
            !text.contains("SECRET") && !json.to_string().contains("SECRET"),
            "{text}"
        );
        assert_eq!(json["signal"], "phrase \"model .. not found\"");
    }
}

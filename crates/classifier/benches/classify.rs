//! What a verdict costs: `cargo bench -p backstop-classifier`.
//!
//! Targets on a developer's machine: a 1 KiB body in under 5 us, 64 KiB of hostile text in under 250.

use std::time::SystemTime;

use backstop_classifier::corpus::Row;
use backstop_classifier::{Evidence, Family, Verdict, classify};
use divan::{Bencher, black_box};

fn main() {
    // Tables are built once a process; that is not what a failure costs.
    for family in Family::ALL {
        let _ = verdict(*family, 400, b"warm");
    }
    divan::main();
}

fn verdict(family: Family, status: u16, body: &[u8]) -> Verdict {
    classify(&Evidence::response(
        family,
        status,
        body,
        SystemTime::UNIX_EPOCH,
    ))
}

/// An error in OpenAI's envelope whose message is about `bytes` long.
fn envelope(opening: &str, filler: &str, bytes: usize, code: &str) -> String {
    let rest = filler.repeat((bytes.saturating_sub(opening.len())) / filler.len());
    let message = serde_json::json!(format!("{opening}{rest}"));
    format!(
        r#"{{"error":{{"message":{message},"type":"invalid_request_error","param":null,"code":{code}}}}}"#
    )
}

const PROSE: &str =
    "The service could not serve what you asked for at this moment and says so here. ";

/// Bodies of 1 KiB, by what decides.
fn kibibyte(name: &str) -> (Family, u16, String) {
    match name {
        // A code decides, the message is read for its kind only.
        "code" => (
            Family::OpenAi,
            429,
            envelope("", PROSE, 900, r#""rate_limit_exceeded""#),
        ),
        // A phrase at the end of the message decides.
        "phrase" => (
            Family::OpenAi,
            400,
            envelope("", PROSE, 860, "null")
                .replace(r#"","type"#, r#"Your credit balance is too low.","type"#),
        ),
        // Nothing matches: every table is walked.
        "no match" => (Family::OpenAi, 400, envelope("", PROSE, 900, "null")),
        "no match, general" => (Family::General, 400, envelope("", PROSE, 900, "null")),
        // As it came: 1,410 bytes, four details.
        "recorded" => (Family::Gemini, 429, recorded()),
        // The words that open most patterns.
        "near misses" => (
            Family::Gemini,
            400,
            envelope(
                "",
                "model rate limit quota api key credit region ",
                900,
                "null",
            ),
        ),
        "html" => (Family::General, 502, format!("<html>{}", PROSE.repeat(12))),
        name => unreachable!("{name} is not a case"),
    }
}

/// A recorded answer of Gemini's, the largest common one of about 1 KiB.
fn recorded() -> String {
    let row = include_str!("../corpus/gemini/rate_limit-429-quota-wording-retryinfo-1.json");
    let row = Row::parse(row).expect("the row is one");
    row.body
}

#[divan::bench(args = [
    "recorded", "code", "phrase", "no match", "no match, general", "near misses", "html",
])]
fn body_1_kib(bencher: Bencher<'_, '_>, name: &str) {
    let (family, status, body) = kibibyte(name);
    bencher.bench(|| verdict(family, status, black_box(body.as_bytes())));
}

/// Bodies of 64 KiB, each built against one part of the reader.
fn hostile(name: &str) -> Vec<u8> {
    const SIZE: usize = 64 * 1024;
    let fill = |piece: &str| piece.repeat(SIZE / piece.len());
    match name {
        "prose" => envelope("", PROSE, SIZE, "null").into_bytes(),
        "near misses" => envelope("", "model rate limit quota api key ", SIZE, "null").into_bytes(),
        "quotes" => envelope("", "'a \"b `c [d <e {f ", SIZE, "null").into_bytes(),
        "open brackets" => fill("[").into_bytes(),
        "open objects" => fill(r#"{"error":"#).into_bytes(),
        "many values" => fill(r#"{"a":1}"#).into_bytes(),
        "many messages" => {
            format!(r#"{{"errors":[{}]}}"#, fill(r#"{"message":"model x"},"#)).into_bytes()
        }
        "json in strings" => {
            let inner = serde_json::json!(fill(r#"{"error":{"message":"x"}} "#));
            format!(r#"{{"error":{{"message":{inner}}}}}"#).into_bytes()
        }
        "escapes" => format!(r#"{{"error":{{"message":"{}"#, fill("\\u00e9")).into_bytes(),
        "invalid UTF-8" => vec![0xFF; SIZE],
        "events" => fill("data: {}\n").into_bytes(),
        "braces in text" => fill("a { b } c ").into_bytes(),
        name => unreachable!("{name} is not a case"),
    }
}

#[divan::bench(args = [
    "prose", "near misses", "quotes", "open brackets", "open objects", "many values",
    "many messages", "json in strings", "escapes", "invalid UTF-8", "events", "braces in text",
])]
fn hostile_64_kib(bencher: Bencher<'_, '_>, name: &str) {
    let body = hostile(name);
    bencher.bench(|| verdict(Family::Gemini, 400, black_box(&body)));
}

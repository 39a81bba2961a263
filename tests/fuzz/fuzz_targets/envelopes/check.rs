//! What must hold for any input of the fuzz target; plain tests replay its corpus with it.

use backstop_dialects::{Dialect, Edits, read_envelope, splice_request};
use bytes::Bytes;

#[path = "../dialects.rs"]
#[allow(dead_code, reason = "shared with targets that need more of it")]
mod dialects;

/// Reads the input as a request's envelope, and what is spliced from it once more.
///
/// The first byte picks the dialect, the rest is the body.
pub fn check(data: &[u8]) {
    let Some((&letter, body)) = data.split_first() else {
        return;
    };
    let dialect = dialects::dialect(letter);
    let body = Bytes::copy_from_slice(body);
    let envelope = match read_envelope(dialect, &body) {
        Ok(envelope) => envelope,
        Err(complaint) => {
            // It repeats a little of the body at most.
            assert!(!complaint.code.is_empty() && complaint.message.len() < 1024);
            return;
        }
    };
    assert!(is_json(&body), "accepted what is no JSON");
    let edits = Edits {
        model: Some("another \"model\""),
        ask_usage: true,
    };
    let sent = splice_request(dialect, &body, &envelope, &edits);
    assert!(is_json(&sent), "spliced into what is no JSON");
    assert!(sent.len() <= body.len() + 128);
    let again = read_envelope(dialect, &sent).expect("what is sent is a request");
    assert!(again.fallbacks.is_empty());
    assert_eq!(again.stream, envelope.stream);
    assert_eq!(again.needs, envelope.needs);
    if !dialect.model_in_path() {
        assert_eq!(again.model, "another \"model\"");
    }
    if dialect == Dialect::OpenAiChat && envelope.stream {
        assert!(again.usage_asked);
    }
}

fn is_json(body: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(body).is_ok()
}

//! What each frame means, and what the counts come to.

use backstop_stream::{Cutter, Framing, write_message};
use backstop_units::Tokens;

use super::*;

/// A frame with these headers and this payload.
pub(super) fn framed(headers: &[(&'static str, &'static str)], payload: &str) -> Frame {
    let mut out = Vec::new();
    write_message(&mut out, headers, payload.as_bytes().to_vec());
    let mut cutter = Cutter::new(Framing::Messages);
    cutter.push(out.into());
    cutter.next().expect("sound").expect("whole")
}

fn event(name: &'static str, payload: &str) -> Frame {
    let headers = [(":message-type", "event"), (":event-type", name)];
    framed(&headers, payload)
}

#[test]
fn each_event_means_one_thing() {
    use Meaning::{Error, Output, Startup, Terminal, Unrecognised, Usage};
    for (name, payload, expected) in [
        ("messageStart", r#"{"role":"assistant","p":"ab"}"#, Startup),
        (
            "contentBlockStart",
            r#"{"contentBlockIndex":1,"start":{"toolUse":{"name":"f","toolUseId":"t"}}}"#,
            Output,
        ),
        ("contentBlockStart", r#"{"start":{}}"#, Startup),
        (
            "contentBlockStart",
            r#"{"start":{"hologram":{}}}"#,
            Unrecognised,
        ),
        ("contentBlockDelta", r#"{"delta":{"text":""}}"#, Startup),
        ("contentBlockDelta", r#"{"delta":{"text":"x"}}"#, Output),
        (
            "contentBlockDelta",
            r#"{"delta":{"toolUse":{"input":""}}}"#,
            Startup,
        ),
        (
            "contentBlockDelta",
            r#"{"delta":{"toolUse":{"input":"{"}}}"#,
            Output,
        ),
        (
            "contentBlockDelta",
            r#"{"delta":{"reasoningContent":{"text":"x"}}}"#,
            Output,
        ),
        (
            "contentBlockDelta",
            r#"{"delta":{"reasoningContent":{"signature":"x"}}}"#,
            Output,
        ),
        (
            "contentBlockDelta",
            r#"{"delta":{"reasoningContent":{"redactedContent":"eA=="}}}"#,
            Output,
        ),
        ("contentBlockDelta", r#"{"delta":{"citation":{}}}"#, Output),
        (
            "contentBlockDelta",
            r#"{"delta":{"hologram":{}}}"#,
            Unrecognised,
        ),
        ("contentBlockStop", r#"{"contentBlockIndex":0}"#, Startup),
        ("messageStop", r#"{"stopReason":"end_turn"}"#, Terminal),
        ("messageStop", r#"{"stopReason":"news"}"#, Terminal),
        (
            "messageStop",
            r#"{"stopReason":"malformed_tool_use"}"#,
            Error,
        ),
        ("metadata", r#"{"usage":{"inputTokens":1}}"#, Usage),
        ("interlude", "{}", Unrecognised),
    ] {
        let reading = Reader::new(false).read(&event(name, payload));
        assert_eq!(
            reading.expect(payload).meaning,
            expected,
            "{name} {payload}"
        );
    }
    for headers in [
        [(":message-type", "exception"), (":exception-type", "x")],
        [(":message-type", "error"), (":error-code", "x")],
    ] {
        for payload in ["", "{}", "no JSON"] {
            let reading = Reader::new(false).read(&framed(&headers, payload));
            assert_eq!(reading.expect("an error").meaning, Error);
        }
    }
}

#[test]
fn the_counts_come_last_and_end_the_stream() {
    let mut reader = Reader::new(true);
    for (name, payload) in [
        ("messageStart", "{}"),
        ("contentBlockDelta", r#"{"delta":{"text":"OK"}}"#),
        ("messageStop", r#"{"stopReason":"end_turn"}"#),
    ] {
        let _ = reader.read(&event(name, payload)).expect("sound");
    }
    let counts = r#"{"usage":{"cacheReadInputTokens":7351,"cacheWriteInputTokens":0,"inputTokens":10,"outputTokens":4,"totalTokens":7365}}"#;
    let end = reader.read(&event("metadata", counts)).expect("sound");
    assert_eq!(end.meaning, Meaning::Done);
    let usage = end.usage.expect("counts");
    assert_eq!(usage.input, Some(Tokens(7361)), "the cache is input, too");
    assert_eq!(usage.total(), Some(Tokens(7365)));
    assert_eq!(end.events.last(), Some(&backstop_chat::Event::End));
}

#[test]
fn a_second_answer_in_one_stream_is_malformed() {
    let mut reader = Reader::new(false);
    let start = event("messageStart", "{}");
    assert!(reader.read(&start).is_ok());
    let spliced = reader.read(&start).expect_err("spliced");
    assert_eq!(spliced.what, "a second messageStart");
}

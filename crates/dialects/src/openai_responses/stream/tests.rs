//! The meanings of events as rows.

use super::*;

#[test]
fn each_event_means_one_thing() {
    use Meaning::{Done, Error, Failing, Output, Startup, Terminal, Unrecognised};
    for (data, expected) in [
        (
            r#"{"type":"response.created","response":{"id":"r","status":"in_progress","error":null}}"#,
            Startup,
        ),
        (
            r#"{"response":{"status":"queued"},"type":"response.queued"}"#,
            Startup,
        ),
        (
            r#"{"type":"response.in_progress","response":{"output":[]}}"#,
            Startup,
        ),
        (r#"{"type":"keepalive","sequence_number":2}"#, Startup),
        (r#"{"type":"ping"}"#, Startup),
        (
            r#"{"type":"response.output_item.added","item":{"type":"message","content":[],"role":"assistant"}}"#,
            Startup,
        ),
        (
            r#"{"type":"response.output_item.added","item":{"content":[{"type":"output_text","text":"x"}],"type":"message"}}"#,
            Output,
        ),
        (
            r#"{"type":"response.output_item.added","item":{"type":"reasoning","summary":[]}}"#,
            Startup,
        ),
        (
            r#"{"type":"response.output_item.done","item":{"type":"reasoning","summary":[],"content":null}}"#,
            Startup,
        ),
        (
            r#"{"type":"response.output_item.added","item":{"type":"reasoning","summary":[],"encrypted_content":"gA"}}"#,
            Output,
        ),
        (
            r#"{"type":"response.output_item.added","item":{"type":"function_call","name":"f","arguments":""}}"#,
            Output,
        ),
        (
            r#"{"type":"response.output_item.added","item":{"type":"web_search_call"}}"#,
            Output,
        ),
        (r#"{"type":"response.output_item.added"}"#, Unrecognised),
        (
            r#"{"type":"response.content_part.added","part":{"type":"output_text","text":"","annotations":[]}}"#,
            Startup,
        ),
        (
            r#"{"type":"response.content_part.added","part":{"type":"output_text","text":"x"}}"#,
            Output,
        ),
        (
            r#"{"type":"response.content_part.added","part":{"type":"refusal","refusal":""}}"#,
            Startup,
        ),
        (
            r#"{"type":"response.reasoning_summary_part.added","part":{"type":"summary_text","text":""}}"#,
            Startup,
        ),
        (
            r#"{"type":"response.reasoning_part.added","part":{"type":"reasoning_text","text":""}}"#,
            Startup,
        ),
        (
            r#"{"type":"response.output_text.delta","delta":"x"}"#,
            Output,
        ),
        (
            r#"{"type":"response.output_text.delta","delta":"","obfuscation":"abc"}"#,
            Startup,
        ),
        (r#"{"type":"response.refusal.delta","delta":"no"}"#, Output),
        (
            r#"{"type":"response.reasoning_text.delta","delta":"hm"}"#,
            Output,
        ),
        (
            r#"{"type":"response.reasoning_summary_text.delta","delta":"hm"}"#,
            Output,
        ),
        (
            r#"{"type":"response.function_call_arguments.delta","delta":"{"}"#,
            Output,
        ),
        (r#"{"type":"response.output_text.done","text":"x"}"#, Output),
        (r#"{"type":"response.output_text.done","text":""}"#, Startup),
        (
            r#"{"type":"response.web_search_call.searching","item_id":"ws"}"#,
            Output,
        ),
        (
            r#"{"type":"response.output_text.annotation.added","annotation":{}}"#,
            Output,
        ),
        (
            r#"{"type":"response.completed","response":{"status":"completed","error":null}}"#,
            Terminal,
        ),
        (
            r#"{"type":"response.incomplete","response":{"status":"incomplete"}}"#,
            Terminal,
        ),
        (
            r#"{"type":"response.failed","response":{"error":{"code":"server_error","message":"m"}}}"#,
            Error,
        ),
        (
            r#"{"type":"response.failed","response":{"status":"failed","error":null}}"#,
            Failing,
        ),
        (
            r#"{"type":"error","error":{"code":"insufficient_quota","message":"m"}}"#,
            Error,
        ),
        (
            r#"{"type":"error","code":"server_error","message":"m","param":null}"#,
            Error,
        ),
        (r#"{"error":{"message":"no type"}}"#, Error),
        (r#"{"type":"response.hologram"}"#, Unrecognised),
        (r#"{"something":"else"}"#, Unrecognised),
        ("[DONE]", Done),
    ] {
        let reading = Reader::new(false).read(data.as_bytes()).expect(data);
        assert_eq!(reading.meaning, expected, "{data}");
    }
}

#[test]
fn a_second_answer_in_one_stream_is_malformed() {
    let start = br#"{"type":"response.created","response":{"id":"r"}}"#;
    let mut reader = Reader::new(false);
    assert!(reader.read(start).is_ok());
    let refused = reader.read(start).expect_err("spliced");
    assert_eq!(refused.what, "a second response.created");
}

#[test]
fn usage_stands_in_the_last_event() {
    let reading = Reader::new(false)
        .read(br#"{"type":"response.completed","response":{"usage":{"input_tokens":9,"input_tokens_details":{"cached_tokens":4},"output_tokens":7,"output_tokens_details":{"reasoning_tokens":3}}}}"#)
        .expect("sound");
    let usage = reading.usage.expect("counts");
    let count = |tokens: Option<backstop_units::Tokens>| tokens.map(|tokens| tokens.0);
    assert_eq!(count(usage.input), Some(9));
    assert_eq!(count(usage.cache_read), Some(4));
    assert_eq!(count(usage.output), Some(7));
    assert_eq!(count(usage.reasoning), Some(3));
}

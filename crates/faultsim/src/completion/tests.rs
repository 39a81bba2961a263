//! Completions: both dialects, whole and streamed.

use serde_json::{Value, json};

use super::*;
use crate::script::Fill;

fn completion<'a>(dialect: Dialect, asked: &'a Asked, said: Said<'a>) -> Completion<'a> {
    Completion {
        dialect,
        asked,
        seq: 7,
        prompt_bytes: 40,
        said,
    }
}

fn asked() -> Asked {
    Asked {
        model: Some("m".into()),
        ..Asked::default()
    }
}

fn wire(items: &[Item]) -> String {
    let bytes: Vec<u8> = items
        .iter()
        .flat_map(|item| item.bytes(Fill::default()))
        .collect();
    String::from_utf8(bytes).unwrap()
}

/// The JSON of each `data:` line; `[DONE]` as a string.
fn data(items: &[Item]) -> Vec<Value> {
    let wire = wire(items);
    let lines = wire.lines().filter_map(|line| line.strip_prefix("data: "));
    lines
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| json!(line)))
        .collect()
}

#[test]
fn whole_answers_carry_text_stop_and_usage() {
    let pieces = ["Hel".to_owned(), "lo".to_owned()];
    let body = completion(Dialect::OpenAi, &asked(), Said::Text(&pieces)).whole();
    assert_eq!(body["choices"][0]["message"]["content"], "Hello");
    assert_eq!(body["choices"][0]["finish_reason"], "stop");
    assert_eq!(body["usage"]["total_tokens"], 13);
    let body = completion(Dialect::Anthropic, &asked(), Said::Text(&pieces)).whole();
    assert_eq!(body["content"][0]["text"], "Hello");
    assert_eq!(body["stop_reason"], "end_turn");
    assert_eq!(body["usage"]["input_tokens"], 11);
}

#[test]
fn openai_streams_start_with_a_role_and_end_with_done() {
    let pieces = ["a".to_owned(), "b".to_owned()];
    let asked = Asked {
        usage_chunk: true,
        ..asked()
    };
    let answer = completion(Dialect::OpenAi, &asked, Said::Text(&pieces));
    let events = data(&answer.stream(Duration::ZERO, true, None));
    let text = |event: &Value| event["choices"][0]["delta"]["content"].clone();
    assert_eq!(events.len(), 6);
    assert_eq!(events[0]["choices"][0]["delta"]["role"], "assistant");
    assert_eq!(
        (text(&events[1]), text(&events[2])),
        (json!("a"), json!("b"))
    );
    assert_eq!(events[3]["choices"][0]["finish_reason"], "stop");
    assert_eq!(
        (
            &events[4]["choices"],
            &events[4]["usage"]["completion_tokens"]
        ),
        (&json!([]), &json!(2))
    );
    assert_eq!(events[5], "[DONE]");
}

#[test]
fn anthropic_streams_name_every_event() {
    let pieces = ["a".to_owned()];
    let asked = asked();
    let answer = completion(Dialect::Anthropic, &asked, Said::Text(&pieces));
    let wire = wire(&answer.stream(Duration::ZERO, true, None));
    let names: Vec<_> = wire
        .lines()
        .filter_map(|line| line.strip_prefix("event: "))
        .collect();
    assert_eq!(
        names,
        [
            "message_start",
            "content_block_start",
            "ping",
            "content_block_delta",
            "content_block_stop",
            "message_delta",
            "message_stop"
        ]
    );
}

#[test]
fn an_unfinished_stream_has_no_terminal_and_a_failed_one_an_error() {
    let pieces = ["a".to_owned()];
    let asked = asked();
    for dialect in [Dialect::OpenAi, Dialect::Anthropic] {
        let answer = completion(dialect, &asked, Said::Text(&pieces));
        let cut = wire(&answer.stream(Duration::ZERO, false, None));
        assert!(!cut.contains("stop\"") && !cut.contains("[DONE]"), "{cut}");
        let failed = data(&answer.stream(Duration::ZERO, true, Some(Fault::Overloaded)));
        assert!(failed.last().unwrap()["error"].is_object(), "{failed:?}");
        let bare = completion(dialect, &asked, Said::Text(&[]));
        assert_eq!(
            bare.stream(Duration::ZERO, true, Some(Fault::Overloaded))
                .len(),
            1
        );
    }
}

#[test]
fn tool_calls_arrive_in_pieces_that_join_to_their_arguments() {
    let arguments = json!({"city": "Brest", "n": 1});
    let said = Said::Call {
        name: "tide",
        arguments: &arguments,
    };
    let asked = asked();
    let events =
        data(&completion(Dialect::OpenAi, &asked, said).stream(Duration::ZERO, true, None));
    let joined: String = events
        .iter()
        .filter_map(|e| e["choices"][0]["delta"]["tool_calls"][0]["function"]["arguments"].as_str())
        .collect();
    assert_eq!(joined, arguments.to_string());
    let events =
        data(&completion(Dialect::Anthropic, &asked, said).stream(Duration::ZERO, true, None));
    let joined: String = events
        .iter()
        .filter_map(|event| event["delta"]["partial_json"].as_str())
        .collect();
    assert_eq!(joined, arguments.to_string());
    let whole = completion(Dialect::Anthropic, &asked, said).whole();
    assert_eq!(whole["content"][0]["input"], arguments);
    assert_eq!(whole["stop_reason"], "tool_use");
}

#[test]
fn samples_follow_their_schema() {
    let schema = json!({"type": "object", "properties": {
        "city": {"type": "string"}, "unit": {"type": "string", "enum": ["c", "f"]},
        "days": {"type": ["integer", "null"]}, "deep": {"properties": {"on": {"type": "boolean"}}},
        "list": {"type": "array"},
    }});
    let want = json!({
        "city": "example", "unit": "c", "days": 1, "deep": {"on": true}, "list": [],
    });
    assert_eq!(sample(&schema), want);
    assert_eq!(sample(&Value::Null), json!({}));
}

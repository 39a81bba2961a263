//! What recorded streams do not show: overlapping calls, missing ids, hostile names, breaks.

use backstop_chat::StopReason;
use backstop_stream::Framer;
use bytes::Bytes;
use serde_json::Value;

use super::*;

const STAMP: Stamp<'static> = Stamp {
    id: "ours",
    model: "asked",
    created: 7,
};

fn written(dialect: Dialect, stamp: &Stamp<'_>, events: &[Event]) -> Vec<u8> {
    let mut writer = StreamWriter::new(dialect, stamp, true);
    let mut out = Vec::new();
    events
        .iter()
        .for_each(|event| writer.write(event, &mut out));
    out
}

fn read(dialect: Dialect, wire: &[u8]) -> Vec<Event> {
    let mut framer = Framer::default();
    framer.push(Bytes::copy_from_slice(wire));
    let mut reader = StreamReader::new(dialect, true);
    let mut events = Vec::new();
    while let Some(frame) = framer.next().expect("short frames") {
        events.extend(reader.read(&frame).expect("a good stream").events);
    }
    events
}

fn start() -> Event {
    Event::Start {
        id: "up-1".into(),
        model: "m".into(),
        created: None,
    }
}

fn tool(tool: u32) -> Event {
    Event::ToolStart {
        choice: 0,
        tool,
        id: format!("call_{tool}"),
        name: "f".into(),
    }
}

fn arguments(tool: u32, piece: &str) -> Event {
    Event::ToolArguments {
        choice: 0,
        tool,
        arguments: piece.into(),
    }
}

fn stop(reason: StopReason) -> Event {
    Event::Stop {
        choice: 0,
        reason,
        stop_sequence: None,
    }
}

/// The arguments of each call, put together.
fn calls(events: &[Event]) -> Vec<String> {
    let mut calls: Vec<String> = Vec::new();
    for event in events {
        match event {
            Event::ToolStart { tool, .. } => {
                assert_eq!(*tool as usize, calls.len(), "numbered without gaps");
                calls.push(String::new());
            }
            Event::ToolArguments {
                tool, arguments, ..
            } => calls[*tool as usize].push_str(arguments),
            _ => {}
        }
    }
    calls
}

#[test]
fn overlapping_calls_are_put_one_after_another() {
    let rows: [&[Event]; 4] = [
        &[
            tool(0),
            tool(1),
            arguments(0, "{\"a\":1}"),
            arguments(1, "{\"b\":2}"),
        ],
        &[
            tool(0),
            arguments(0, "{\"a\""),
            tool(1),
            arguments(1, "{\"b\""),
            arguments(0, ":1}"),
            arguments(1, ":2}"),
        ],
        &[
            tool(0),
            arguments(0, "{\"a\":1}"),
            tool(1),
            arguments(1, "{\"b\":2}"),
        ],
        &[
            tool(0),
            arguments(0, "{\"a\":1"),
            tool(1),
            arguments(1, "{\"b\":2}"),
            arguments(0, "}"),
        ],
    ];
    for row in rows {
        let events = [&[start()], row, &[stop(StopReason::ToolUse), Event::End]].concat();
        for dialect in [Dialect::OpenAiChat, Dialect::AnthropicMessages] {
            let again = read(dialect, &written(dialect, &STAMP, &events));
            assert_eq!(
                calls(&again),
                ["{\"a\":1}", "{\"b\":2}"],
                "{dialect} {row:?}"
            );
        }
    }
}

#[test]
fn a_call_without_arguments_is_called_with_an_empty_object() {
    let events = [
        start(),
        tool(0),
        tool(1),
        arguments(1, "{}"),
        stop(StopReason::ToolUse),
        Event::End,
    ];
    let wire = written(Dialect::AnthropicMessages, &STAMP, &events);
    assert_eq!(
        calls(&read(Dialect::AnthropicMessages, &wire)),
        ["{}", "{}"]
    );
}

#[test]
fn calls_are_told_apart_by_number_or_id() {
    let chunk = |calls: &str| {
        format!(
            "data: {{\"id\":\"x/1\",\"choices\":[{{\"delta\":{{\"tool_calls\":[{calls}]}}}}]}}\n\n"
        )
    };
    let rows: [(&[&str], &[&str], &[&str]); 5] = [
        // Numbers that skip.
        (
            &[
                r#"{"index":3,"id":"a","function":{"name":"f","arguments":"1"}}"#,
                r#"{"index":7,"id":"b","function":{"name":"f","arguments":"2"}}"#,
                r#"{"index":3,"function":{"arguments":"0"}}"#,
            ],
            &["10", "2"],
            &["a", "b"],
        ),
        // Whole calls that all say 0.
        (
            &[
                r#"{"index":0,"id":"a","function":{"name":"f","arguments":"1"}}"#,
                r#"{"index":0,"id":"b","function":{"name":"f","arguments":"2"}}"#,
            ],
            &["1", "2"],
            &["a", "b"],
        ),
        // No numbers; a piece without anything belongs to the latest.
        (
            &[
                r#"{"id":"a","function":{"name":"f","arguments":"1"}}"#,
                r#"{"id":"b","function":{"name":"f","arguments":"2"}}"#,
                r#"{"function":{"arguments":"3"}}"#,
                r#"{"id":"a","function":{"arguments":"4"}}"#,
            ],
            &["14", "23"],
            &["a", "b"],
        ),
        // No ids: ours, one for each call.
        (
            &[
                r#"{"index":0,"function":{"name":"f","arguments":{"a":1}}}"#,
                r#"{"index":1,"id":"","function":{"name":"f","arguments":null}}"#,
            ],
            &["{\"a\":1}", ""],
            &["call_x1_0_0", "call_x1_0_1"],
        ),
        // The name comes late.
        (
            &[
                r#"{"index":0,"id":"a","function":{"name":"","arguments":"1"}}"#,
                r#"{"index":0,"function":{"name":"f","arguments":"2"}}"#,
            ],
            &["12"],
            &["a"],
        ),
    ];
    for (pieces, expected, ids) in rows {
        let wire: String = pieces.iter().map(|piece| chunk(piece)).collect();
        let events = read(Dialect::OpenAiChat, wire.as_bytes());
        assert_eq!(calls(&events), expected, "{wire}");
        let seen: Vec<&str> = events
            .iter()
            .filter_map(|event| match event {
                Event::ToolStart { id, .. } => Some(id.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(seen, ids, "{wire}");
    }
}

#[test]
fn nothing_is_made_up_after_a_break() {
    let text = Event::Text {
        choice: 0,
        text: "half".into(),
    };
    for dialect in [Dialect::OpenAiChat, Dialect::AnthropicMessages] {
        let broken = written(dialect, &STAMP, &[start(), text.clone()]);
        let ended = written(dialect, &STAMP, &[start(), text.clone(), Event::End]);
        assert_eq!(broken, ended, "an end without a stop writes nothing");
        let whole = [start(), text.clone(), stop(StopReason::EndTurn), Event::End];
        let once = written(dialect, &STAMP, &whole);
        let twice = written(
            dialect,
            &STAMP,
            &[&whole[..], &[Event::End, text.clone()]].concat(),
        );
        assert_eq!(once, twice, "nothing follows the end");
        assert!(once.starts_with(&broken));
    }
}

#[test]
fn usage_is_written_once_and_only_when_asked_for() {
    let usage = Event::Usage(Usage {
        input: Some(backstop_units::Tokens(12)),
        ..Usage::default()
    });
    let events = [
        start(),
        usage.clone(),
        stop(StopReason::EndTurn),
        usage,
        Event::End,
    ];
    for (asked, expected) in [(true, 1), (false, 0)] {
        let mut writer = StreamWriter::new(Dialect::OpenAiChat, &STAMP, asked);
        let mut out = Vec::new();
        events
            .iter()
            .for_each(|event| writer.write(event, &mut out));
        let out = String::from_utf8(out).expect("text");
        assert_eq!(out.matches("\"usage\":{").count(), expected, "{out}");
        assert!(out.ends_with("data: [DONE]\n\n"));
    }
}

#[test]
fn ids_stay_the_same_and_hostile_names_stay_inside_their_field() {
    let hostile = "m\r\n\r\ndata: [DONE]\r\revent: x\u{2028}";
    let stamp = Stamp {
        id: hostile,
        model: hostile,
        created: 7,
    };
    let events = [
        Event::Start {
            id: String::new(),
            model: String::new(),
            created: None,
        },
        Event::Text {
            choice: 1,
            text: hostile.into(),
        },
        Event::ToolStart {
            choice: 0,
            tool: 0,
            id: hostile.into(),
            name: hostile.into(),
        },
        stop(StopReason::Other(hostile.into())),
        Event::End,
    ];
    for dialect in [Dialect::OpenAiChat, Dialect::AnthropicMessages] {
        let wire = written(dialect, &stamp, &events);
        for line in wire.split(|byte| *byte == b'\n') {
            assert!(!line.contains(&b'\r'));
            assert!(line.is_empty() || line.starts_with(b"data: ") || line.starts_with(b"event: "));
        }
        let mut framer = Framer::default();
        framer.push(Bytes::from(wire));
        let mut ids = Vec::new();
        while let Some(frame) = framer.next().expect("short frames") {
            if let Ok(data) = serde_json::from_slice::<Value>(frame.data()) {
                let id = data.get("id").or_else(|| data["message"].get("id"));
                ids.extend(id.cloned());
            }
        }
        assert!(
            !ids.is_empty() && ids.iter().all(|id| id == hostile),
            "{dialect}"
        );
    }
}

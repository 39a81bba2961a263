//! Every fixture, through every door: what it comes to in the neutral shape and in the other
//! dialect (snapshots beside their input), and the laws that must hold for all of them.

use std::fmt::Write as _;
use std::path::PathBuf;

use backstop_chat::{Event, Extra};
use backstop_dialects::{
    Dialect, Loss, Malformed, Reading, Stamp, StreamReader, StreamWriter, WriteOptions, Written,
    inspect_answer, read_answer, read_envelope, read_error, read_request, write_answer,
    write_request,
};
use backstop_stream::{Cutter, Ending, InputEnd, Meaning, Passage, Progress};
use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};

const DIALECTS: [Dialect; 6] = [
    Dialect::OpenAiChat,
    Dialect::OpenAiResponses,
    Dialect::AnthropicMessages,
    Dialect::Gemini,
    Dialect::CohereV2,
    Dialect::BedrockConverse,
];

const STAMP: Stamp<'static> = Stamp {
    id: "ours",
    model: "asked",
    created: 1_700_000_000,
};

fn folder(dialect: Dialect) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures")
        .join(dialect.as_str())
}

/// The files of a kind, by name.
fn fixtures(dialect: Dialect, kind: &str) -> Vec<(String, Vec<u8>)> {
    let mut all: Vec<_> = std::fs::read_dir(folder(dialect).join(kind))
        .expect("a folder of fixtures")
        .map(|entry| {
            let path = entry.expect("a readable folder").path();
            let name = path.file_stem().expect("a name").to_string_lossy();
            let bytes = std::fs::read(&path).expect("a readable file");
            (name.into_owned(), bytes)
        })
        .collect();
    all.sort();
    assert!(!all.is_empty());
    all
}

fn other(dialect: Dialect) -> Dialect {
    match dialect {
        Dialect::OpenAiChat | Dialect::OpenAiResponses => Dialect::AnthropicMessages,
        Dialect::AnthropicMessages
        | Dialect::Gemini
        | Dialect::CohereV2
        | Dialect::BedrockConverse => Dialect::OpenAiChat,
    }
}

/// Without what was not said.
fn said(value: Value) -> Value {
    match value {
        Value::Object(map) => map
            .into_iter()
            .filter(|(_, value)| !value.is_null() && *value != json!([]) && *value != json!(false))
            .map(|(name, value)| (name, said(value)))
            .collect(),
        Value::Array(all) => all.into_iter().map(said).collect(),
        other => other,
    }
}

fn snapshot(dialect: Dialect, name: &str, check: impl FnOnce(&str)) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(folder(dialect).join("snapshots"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| check(name));
}

fn shown(written: &Written) -> Value {
    let body: Value = serde_json::from_slice(&written.body).expect("what we write is JSON");
    json!({"body": body, "dropped": written.dropped})
}

#[test]
fn requests() {
    for dialect in DIALECTS {
        for (name, body) in fixtures(dialect, "requests") {
            let envelope = read_envelope(dialect, &body).expect("a good request");
            let needs: Vec<_> = envelope.needs.set.iter().collect();
            let request = read_request(dialect, &body).expect(&name);
            assert_eq!(envelope.model, request.model);
            let strict = WriteOptions::default();
            let lossy = WriteOptions {
                loss: Loss::Drop,
                ..strict
            };
            let refuse = write_request(other(dialect), &request, &strict);
            let refused = refuse.as_ref().err().map(|error| error.field.clone());
            let drop = write_request(other(dialect), &request, &lossy);
            if let Ok(written) = &refuse {
                assert_eq!(drop.as_ref(), Ok(written), "{name}: nothing was lost");
            }
            let neutral = serde_json::to_value(&request).expect("serialisable");
            let all = json!({
                "needs": needs,
                "neutral": said(neutral),
                "refused": refused,
                "written": drop.as_ref().ok().map(shown),
            });
            snapshot(dialect, &format!("request-{name}"), |name| {
                insta::assert_json_snapshot!(name, all);
            });
        }
    }
}

#[test]
fn a_request_keeps_its_meaning_in_its_own_dialect() {
    for dialect in DIALECTS {
        for (name, body) in fixtures(dialect, "requests") {
            if (dialect, name.as_str()) == (Dialect::AnthropicMessages, "foreign-fields") {
                continue; // Holds a nested member that only a pass-through keeps.
            }
            if (dialect, name.as_str()) == (Dialect::OpenAiResponses, "sealed-elsewhere") {
                continue; // What another provider sealed is sent to no service of this dialect.
            }
            let mut request = read_request(dialect, &body).expect(&name);
            let lossy = WriteOptions {
                loss: Loss::Drop,
                ..WriteOptions::default()
            };
            let written = write_request(dialect, &request, &lossy).expect(&name);
            let mut again = read_request(dialect, &written.body).expect(&name);
            // What is not said to be kept is not kept, once it is written anew.
            let top = |extra: &Extra| !extra.path.contains(['.', '[']) && extra.path != "store";
            for side in [&mut request, &mut again] {
                side.extras.retain(top);
                side.extras.sort_by(|a, b| a.path.cmp(&b.path));
            }
            // Blocks of one kind in a row may be joined, two turns of the user, too, and no arguments are an empty object.
            let flat = |request: &backstop_chat::Request| {
                let value = serde_json::to_value(request).expect("serialisable");
                said(value)
                    .to_string()
                    .replace(r#"]},{"role":"user","parts":["#, ",")
                    .replace("\"},{\"text\":\"", "")
                    .replace("\"arguments\":\"\"", "\"arguments\":\"{}\"")
            };
            assert_eq!(flat(&request), flat(&again), "{name}");
        }
    }
}

#[test]
fn answers() {
    for dialect in DIALECTS {
        for (name, body) in fixtures(dialect, "answers") {
            let facts = inspect_answer(dialect, &body).expect(&name);
            assert!(!facts.error_inside);
            let answer = read_answer(dialect, &body).expect(&name);
            assert_eq!(facts.usage, answer.usage, "{name}: one count");
            let written = write_answer(other(dialect), &answer, &STAMP);
            assert!(inspect_answer(other(dialect), &written.body).is_ok());
            let all = json!({
                "neutral": said(serde_json::to_value(&answer).expect("serialisable")),
                "written": shown(&written),
            });
            snapshot(dialect, &format!("answer-{name}"), |name| {
                insta::assert_json_snapshot!(name, all);
            });
            let own = write_answer(dialect, &answer, &STAMP);
            assert_eq!(own.dropped, [""; 0], "{name}");
            let again = read_answer(dialect, &own.body).expect(&name);
            assert_eq!(again.usage, answer.usage, "{name}");
            let parts = |answer: &backstop_chat::Answer| {
                let mut parts: Vec<String> = answer.choices[0]
                    .parts
                    .iter()
                    .map(|part| serde_json::to_string(part).expect("serialisable"))
                    .collect();
                parts.sort();
                parts
            };
            if answer.created.is_some() {
                assert_eq!(again.created, answer.created);
            }
            assert_eq!(parts(&again), parts(&answer), "{name}");
        }
    }
}

#[test]
fn errors() {
    for dialect in DIALECTS {
        let mut all = String::new();
        for (name, body) in fixtures(dialect, "errors") {
            let error = read_error(dialect, &body).expect(&name);
            writeln!(
                all,
                "{name}: {:?} {:?} {:?} {:?}",
                error.message, error.kind, error.code, error.param
            )
            .expect("a string");
        }
        snapshot(dialect, "errors", |name| insta::assert_snapshot!(name, all));
    }
}

/// All readings of a stream cut into these chunks, up to the first that is malformed.
fn readings(dialect: Dialect, chunks: &[&[u8]]) -> (Vec<Reading>, Option<Malformed>) {
    let mut framer = Cutter::new(dialect.framing(false).expect("streams"));
    let mut reader = StreamReader::new(dialect, true);
    let mut plain = StreamReader::new(dialect, false);
    let mut all = Vec::new();
    let mut ended = false;
    let mut chunks = chunks.iter();
    loop {
        let frame = if ended {
            framer.finish()
        } else {
            framer.next()
        };
        let frame = match frame {
            Ok(frame) => frame,
            // Only binary frames can be damaged as such.
            Err(error) => {
                assert_eq!(dialect, Dialect::BedrockConverse, "{error}");
                return (all, None);
            }
        };
        let Some(frame) = frame else {
            match chunks.next() {
                _ if ended => return (all, None),
                Some(chunk) => framer.push(Bytes::copy_from_slice(chunk)),
                None => ended = true,
            }
            continue;
        };
        match reader.read(&frame) {
            // A line end cut in two makes a block of its own.
            Ok(reading) if reading.meaning == Meaning::Comment => {}
            Ok(reading) => {
                let light = plain.read(&frame).expect("readable either way");
                assert_eq!(light.meaning, reading.meaning);
                assert_eq!(light.usage, reading.usage);
                assert_eq!(light.events, []);
                all.push(reading);
            }
            Err(malformed) => return (all, Some(malformed)),
        }
    }
}

/// The stream in another dialect, as the gateway would pass it on.
fn translated(from: Dialect, to: Dialect, readings: &[Reading]) -> (Vec<u8>, Ending) {
    let mut progress = Progress::new(from.sentinel());
    let mut writer = StreamWriter::new(to, &STAMP, true);
    let mut out = Vec::new();
    for reading in readings {
        if progress.observe(reading.meaning) == Passage::Pass {
            for event in &reading.events {
                writer.write(event, &mut out);
            }
        }
    }
    let ending = progress.end(InputEnd::Clean);
    if ending == Ending::Whole {
        writer.write(&Event::End, &mut out);
    }
    (out, ending)
}

#[test]
fn streams() {
    for dialect in DIALECTS {
        for (name, body) in fixtures(dialect, "streams") {
            let (all, malformed) = readings(dialect, &[&body]);
            let mut text = String::new();
            for reading in &all {
                write!(text, "{:?}", reading.meaning).expect("a string");
                if let Some(usage) = reading.usage {
                    let usage = serde_json::to_string(&usage).expect("serialisable");
                    write!(text, " {usage}").expect("a string");
                }
                for event in &reading.events {
                    let event = serde_json::to_string(event).expect("serialisable");
                    write!(text, "\n    {event}").expect("a string");
                }
                text.push('\n');
            }
            if let Some(malformed) = malformed {
                writeln!(text, "malformed: {malformed}").expect("a string");
            }
            let (out, ending) = translated(dialect, other(dialect), &all);
            let out = String::from_utf8(out).expect("text");
            write!(text, "{ending:?}\n\n{out}").expect("a string");
            snapshot(dialect, &format!("stream-{name}"), |name| {
                insta::assert_snapshot!(name, text);
            });
        }
    }
}

/// The events of a stream with neighbouring pieces of one thing joined.
fn joined(readings: &[Reading]) -> Vec<Event> {
    let mut all: Vec<Event> = Vec::new();
    let mut usage = None;
    for event in readings.iter().flat_map(|reading| &reading.events) {
        match (all.last_mut(), event) {
            (
                Some(Event::Text { choice, text }),
                Event::Text {
                    choice: of,
                    text: more,
                },
            )
            | (
                Some(Event::Reasoning { choice, text }),
                Event::Reasoning {
                    choice: of,
                    text: more,
                },
            ) if choice == of => text.push_str(more),
            (
                Some(Event::ToolArguments {
                    tool, arguments, ..
                }),
                Event::ToolArguments {
                    tool: of,
                    arguments: more,
                    ..
                },
            ) if tool == of => arguments.push_str(more),
            (_, Event::Usage(counts)) => usage = Some(*counts),
            _ => all.push(event.clone()),
        }
    }
    let end = all.iter().position(|event| *event == Event::End);
    let at = end.unwrap_or(all.len());
    all.splice(at..at, usage.map(Event::Usage));
    all
}

#[test]
fn a_stream_keeps_its_meaning_in_its_own_dialect() {
    for dialect in DIALECTS {
        for (name, body) in fixtures(dialect, "streams") {
            let (all, _) = readings(dialect, &[&body]);
            let (out, ending) = translated(dialect, dialect, &all);
            if ending != Ending::Whole {
                let out = String::from_utf8_lossy(&out);
                assert!(
                    !out.contains("messageStop")
                        && !out.contains("[DONE]")
                        && !out.contains("message_stop")
                        && !out.contains("event: response.completed"),
                    "{name}"
                );
                continue;
            }
            let (again, malformed) = readings(dialect, &[&out]);
            assert_eq!(malformed, None, "{name}");
            let shown = |readings: &[Reading]| {
                let mut events = joined(readings);
                if events.last() != Some(&Event::End) {
                    events.push(Event::End);
                }
                for event in &mut events {
                    if let Event::Start { created, .. } = event {
                        created.get_or_insert(STAMP.created);
                    }
                }
                serde_json::to_string_pretty(&events).expect("serialisable")
            };
            assert_eq!(shown(&all), shown(&again), "{name}");
        }
    }
}

#[test]
fn a_translated_stream_asks_for_nothing_twice() {
    for (name, body) in fixtures(Dialect::AnthropicMessages, "streams") {
        let (all, _) = readings(Dialect::AnthropicMessages, &[&body]);
        let (out, ending) = translated(Dialect::AnthropicMessages, Dialect::OpenAiChat, &all);
        let (again, malformed) = readings(Dialect::OpenAiChat, &[&out]);
        assert_eq!(malformed, None, "{name}");
        let count = |meaning| {
            again
                .iter()
                .filter(|reading| reading.meaning == meaning)
                .count()
        };
        let whole = usize::from(ending == Ending::Whole);
        assert_eq!(count(Meaning::Usage), whole, "{name}: one usage chunk");
        assert_eq!(count(Meaning::Done), whole, "{name}: one end marker");
        for line in String::from_utf8(out).expect("text").lines() {
            assert!(
                line.is_empty() || line.starts_with("data: "),
                "{name}: {line}"
            );
        }
    }
}

#[test]
fn a_stream_told_in_responses_says_the_same() {
    // What was said, with its ids, whatever the order in which calls came.
    let told = |readings: &[Reading]| {
        let mut all = std::collections::BTreeMap::<String, String>::new();
        for event in readings.iter().flat_map(|reading| &reading.events) {
            let (key, more) = match event {
                Event::Text { choice: 0, text } => ("text".to_owned(), &**text),
                Event::Refusal { choice: 0, text } => ("refusal".to_owned(), &**text),
                Event::Reasoning { choice: 0, text } => ("reasoning".to_owned(), &**text),
                Event::ToolStart {
                    choice: 0,
                    tool,
                    id,
                    name,
                } => {
                    all.insert(format!("call {tool}"), format!("{id} {name}"));
                    (format!("arguments {tool}"), "")
                }
                Event::ToolArguments {
                    choice: 0,
                    tool,
                    arguments,
                } => (format!("arguments {tool}"), &**arguments),
                _ => continue,
            };
            all.entry(key).or_default().push_str(more);
        }
        for (key, text) in &mut all {
            if key.starts_with("arguments") && text.is_empty() {
                "{}".clone_into(text);
            }
        }
        // Paragraphs of reasoning are set apart.
        if let Some(text) = all.get_mut("reasoning") {
            *text = text.replace("\n\n", "");
        }
        all
    };
    for dialect in DIALECTS {
        for (name, body) in fixtures(dialect, "streams") {
            let (all, _) = readings(dialect, &[&body]);
            let (out, ending) = translated(dialect, Dialect::OpenAiResponses, &all);
            let (again, malformed) = readings(Dialect::OpenAiResponses, &[&out]);
            assert_eq!(malformed, None, "{name}");
            let whole = again
                .iter()
                .filter(|reading| reading.meaning == Meaning::Terminal);
            let expected = usize::from(ending == Ending::Whole);
            assert_eq!(whole.count(), expected, "{name}: one end");
            if ending == Ending::Whole {
                assert_eq!(told(&all), told(&again), "{dialect} {name}");
            }
        }
    }
}

#[test]
fn one_byte_at_a_time_changes_nothing() {
    for dialect in DIALECTS {
        for (name, body) in fixtures(dialect, "streams") {
            let bytes: Vec<&[u8]> = body.chunks(1).collect();
            assert_eq!(
                readings(dialect, &bytes),
                readings(dialect, &[&body]),
                "{name}"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn no_split_changes_what_a_stream_says(seed in any::<prop::sample::Index>(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 1..8)) {
        for dialect in DIALECTS {
            let all = fixtures(dialect, "streams");
            let (name, body) = &all[seed.index(all.len())];
            let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(body.len() + 1)).collect();
            places.sort_unstable();
            let mut chunks = Vec::new();
            let mut from = 0;
            for place in places {
                chunks.push(&body[from..place]);
                from = place;
            }
            chunks.push(&body[from..]);
            prop_assert_eq!(readings(dialect, &chunks), readings(dialect, &[body]), "{}", name);
        }
    }

    #[test]
    fn a_stream_cut_anywhere_never_looks_finished(seed in any::<prop::sample::Index>(), cut in any::<prop::sample::Index>()) {
        for dialect in DIALECTS {
            let all = fixtures(dialect, "streams");
            let (name, body) = &all[seed.index(all.len())];
            let (whole, _) = readings(dialect, &[body]);
            let (cut, _) = readings(dialect, &[&body[..cut.index(body.len())]]);
            let end = |readings: &[Reading]| translated(dialect, other(dialect), readings);
            let (out, ending) = end(&cut);
            let (all, full) = end(&whole);
            let finished = |out: &[u8]| {
                let text = String::from_utf8_lossy(out).into_owned();
                text.contains("data: [DONE]") || text.contains("event: message_stop")
            };
            prop_assert_eq!(finished(&out), ending == Ending::Whole, "{}", name);
            if ending == Ending::Whole {
                // The answer had ended by its own word; an error that was to follow is not missed.
                let meant = whole.iter().take(cut.len()).any(|r| r.meaning == Meaning::Terminal);
                prop_assert!(full == Ending::Whole || meant, "{}", name);
            } else {
                prop_assert!(all.starts_with(&out) || full != Ending::Whole, "{}", name);
            }
        }
    }

    #[test]
    fn damaged_documents_never_panic(seed in any::<prop::sample::Index>(), place in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>()) {
        for dialect in DIALECTS {
            for kind in ["requests", "answers", "streams", "errors"] {
                let all = fixtures(dialect, kind);
                let (_, mut body) = all[seed.index(all.len())].clone();
                let place = place.index(body.len());
                if cut { body.truncate(place); } else { body[place] = byte; }
                let json = serde_json::from_slice::<serde::de::IgnoredAny>(&body).is_ok();
                if read_envelope(dialect, &body).is_ok() || inspect_answer(dialect, &body).is_ok() {
                    prop_assert!(json);
                }
                if let Ok(request) = read_request(dialect, &body) {
                    for target in DIALECTS {
                        if let Ok(written) = write_request(target, &request, &WriteOptions::default()) {
                            prop_assert!(read_request(target, &written.body).is_ok());
                        }
                    }
                }
                if let Ok(answer) = read_answer(dialect, &body) {
                    let written = write_answer(other(dialect), &answer, &STAMP);
                    prop_assert!(read_answer(other(dialect), &written.body).is_ok());
                }
                let _ = read_error(dialect, &body);
                if kind == "streams" {
                    let (all, _) = readings(dialect, &[&body]);
                    let _ = translated(dialect, other(dialect), &all);
                }
            }
        }
    }
}

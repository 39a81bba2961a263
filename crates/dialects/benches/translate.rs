//! What reading, passing on and translating cost: `cargo bench -p backstop-dialects`.
//!
//! Targets on a developer's machine: an answer of 1 KiB read and written in under 30 us, an event of
//! a stream in under 5. Measured (2 cores of a shared machine, fastest of many, 2026-11-30): answers
//! 3.7 to 8.4 us between any two dialects, 1.3 to 1.5 inspected and passed on; an event of a stream
//! 1.0 to 1.4 us translated, 0.33 to 0.51 passed on; the envelope of 1, 8 and 100 KiB 1.3, 7.6 and
//! 90 us. Streams are measured a hundred events at a time, so that whatever a reader
//! or a writer sets up is counted too, and spread as in real streams.

use backstop_chat::{Answer, Event, Part, Usage};
use backstop_dialects::{
    Dialect, Edits, Stamp, StreamReader, StreamWriter, inspect_answer, read_answer, read_envelope,
    splice_request, write_answer,
};
use backstop_stream::Cutter;
use backstop_units::Tokens;
use bytes::Bytes;
use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};

fn main() {
    divan::main();
}

const DIALECTS: [Dialect; 6] = [
    Dialect::OpenAiChat,
    Dialect::OpenAiResponses,
    Dialect::AnthropicMessages,
    Dialect::Gemini,
    Dialect::CohereV2,
    Dialect::BedrockConverse,
];

const STAMP: Stamp<'static> = Stamp {
    id: "ours-0123456789abcdef",
    model: "provider/some-model-4",
    created: 1_700_000_000,
};

const EVENTS: usize = 100;

/// Every pair of two dialects.
fn pairs() -> Vec<(Dialect, Dialect)> {
    let from = DIALECTS.into_iter();
    from.flat_map(|from| DIALECTS.map(|to| (from, to)))
        .filter(|(from, to)| from != to)
        .collect()
}

/// A body of `bytes` in `dialect`: half of it prose with an escape now and then, half a tool call.
fn answer(dialect: Dialect, bytes: usize) -> Vec<u8> {
    let mut prose = String::new();
    loop {
        let mut answer = Answer::text(prose.as_str());
        answer.id = "chatcmpl-0123456789abcdef".into();
        answer.model = "some-model-4-2026-01-01".into();
        answer.usage = Some(usage());
        answer.choices[0].parts.push(Part::ToolCall {
            id: "call_0123456789abcdef".into(),
            name: "look_up".into(),
            arguments: serde_json::json!({ "query": prose }).to_string().into(),
        });
        let body = write_answer(dialect, &answer, &STAMP).body;
        if body.len() >= bytes {
            return body;
        }
        prose.push_str("It said \"no\", twice.\n");
    }
}

fn usage() -> Usage {
    Usage {
        input: Some(Tokens(1_200)),
        output: Some(Tokens(340)),
        ..Usage::default()
    }
}

/// A stream in `dialect` with a hundred events of output, as one chunk each.
fn stream(dialect: Dialect) -> Vec<Bytes> {
    let mut writer = StreamWriter::new(dialect, &STAMP, true);
    let mut steps = Answer::text("x").steps();
    steps.splice(
        1..2,
        (0..EVENTS).map(|_| Event::Text {
            choice: 0,
            text: " a word, or \"two\"".into(),
        }),
    );
    let at = steps.len() - 1;
    steps.insert(at, Event::Usage(usage()));
    let mut chunks = Vec::new();
    for step in &steps {
        let mut out = Vec::new();
        writer.write(step, &mut out);
        if !out.is_empty() {
            chunks.push(Bytes::from(out));
        }
    }
    chunks
}

#[divan::bench(args = pairs())]
fn answer_1_kib(bencher: Bencher<'_, '_>, (from, to): &(Dialect, Dialect)) {
    let body = answer(*from, 1024);
    bencher.counter(BytesCount::new(body.len())).bench(|| {
        let answer = read_answer(*from, black_box(&body)).expect("an answer");
        write_answer(*to, &answer, &STAMP)
    });
}

#[divan::bench(args = DIALECTS)]
fn same_dialect_answer_1_kib(bencher: Bencher<'_, '_>, dialect: &Dialect) {
    let body = answer(*dialect, 1024);
    bencher
        .counter(BytesCount::new(body.len()))
        .bench(|| inspect_answer(*dialect, black_box(&body)).expect("an answer"));
}

/// What cuts a stream of `dialect` into events.
fn cutter(dialect: Dialect) -> Cutter {
    Cutter::new(dialect.framing(false).expect("every dialect has a stream"))
}

#[divan::bench(args = pairs())]
fn stream_100_events(bencher: Bencher<'_, '_>, (from, to): &(Dialect, Dialect)) {
    let chunks = stream(*from);
    bencher.counter(ItemsCount::new(EVENTS)).bench(|| {
        let mut framer = cutter(*from);
        let mut reader = StreamReader::new(*from, true);
        let mut writer = StreamWriter::new(*to, &STAMP, true);
        let mut bytes = 0;
        for chunk in black_box(&chunks) {
            framer.push(chunk.clone());
            while let Some(frame) = framer.next().expect("short") {
                let reading = reader.read(&frame).expect("of its dialect");
                let mut out = Vec::with_capacity(256);
                for event in &reading.events {
                    writer.write(event, &mut out);
                }
                bytes += out.len();
            }
        }
        bytes
    });
}

/// What the relay does for each event of a stream that stays in its dialect: cut, read, hand on.
#[divan::bench(args = DIALECTS)]
fn same_dialect_stream_100_events(bencher: Bencher<'_, '_>, dialect: &Dialect) {
    let chunks = stream(*dialect);
    bencher.counter(ItemsCount::new(EVENTS)).bench(|| {
        let mut framer = cutter(*dialect);
        let mut reader = StreamReader::new(*dialect, false);
        let mut bytes = 0;
        for chunk in black_box(&chunks) {
            framer.push(chunk.clone());
            while let Some(frame) = framer.next().expect("short") {
                let reading = reader.read(&frame).expect("of its dialect");
                bytes += usize::from(reading.meaning.is_output());
                bytes += frame.into_wire().len();
            }
        }
        bytes
    });
}

/// A conversation in `dialect` of about `bytes`.
fn request(dialect: Dialect, bytes: usize) -> Bytes {
    let turn = "Tell me more, with \"examples\" of it.\n".repeat(8);
    let mut turns = Vec::new();
    loop {
        let role = if turns.len() % 2 == 0 {
            "user"
        } else {
            "assistant"
        };
        turns.push(match dialect {
            Dialect::Gemini => {
                serde_json::json!({"role": if role == "user" { role } else { "model" },
                "parts": [{"text": turn}]})
            }
            _ => serde_json::json!({"role": role, "content": turn}),
        });
        let list = match dialect {
            Dialect::Gemini => "contents",
            Dialect::OpenAiResponses => "input",
            _ => "messages",
        };
        let body =
            serde_json::json!({"model": "fast", "stream": true, "max_tokens": 512, list: turns});
        let body = body.to_string();
        if body.len() >= bytes {
            return body.into();
        }
    }
}

/// Each dialect with each size, in KiB.
fn sizes() -> Vec<(Dialect, usize)> {
    let dialects = DIALECTS.into_iter();
    dialects
        .flat_map(|dialect| [1, 8, 100].map(|kib| (dialect, kib)))
        .collect()
}

#[divan::bench(args = sizes())]
fn envelope_kib(bencher: Bencher<'_, '_>, &(dialect, kib): &(Dialect, usize)) {
    let body = request(dialect, kib * 1024);
    let edits = Edits {
        model: Some("gpt-4o"),
        ask_usage: true,
    };
    bencher.counter(BytesCount::new(body.len())).bench(|| {
        let envelope = read_envelope(dialect, black_box(&body)).expect("a request");
        splice_request(dialect, &body, &envelope, &edits)
    });
}

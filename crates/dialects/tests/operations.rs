//! Vectors and counts: what each fixture comes to in the neutral shape and in every other shape, as
//! snapshots beside their input.

use std::path::PathBuf;

use backstop_chat::{EmbedAnswer, Encoding, Request};
use backstop_dialects::{
    Dialect, Loss, Operation, Stamp, VectorForm, inspect_vectors, read_count_request,
    read_embed_request, read_envelope_for, read_vectors, write_count_request, write_embed_request,
    write_vectors,
};
use backstop_units::ModelName;
use serde_json::{Map, Value, json};

const VECTORS: [Dialect; 3] = [Dialect::OpenAiChat, Dialect::Gemini, Dialect::CohereV2];
const COUNTS: [Dialect; 2] = [Dialect::AnthropicMessages, Dialect::Gemini];

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

fn snapshot(dialect: Dialect, name: &str, value: &Value) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(folder(dialect).join("snapshots"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_json_snapshot!(name, value));
}

fn tree(body: &[u8]) -> Value {
    serde_json::from_slice(body).expect("what we write is JSON")
}

/// What one writer makes of it: the body, or the field that is in the way; and what is dropped where
/// that is allowed.
fn written<E>(write: impl Fn(Loss) -> Result<backstop_dialects::Written, E>) -> Value
where
    E: Into<backstop_dialects::Unsupported>,
{
    let strict = write(Loss::Refuse).map_err(Into::into);
    let lossy = write(Loss::Drop).map_err(Into::into);
    let shown =
        lossy.map(|written| json!({"body": tree(&written.body), "dropped": written.dropped}));
    json!({
        "refused": strict.err().map(|refused| refused.field),
        "written": shown.ok(),
    })
}

#[test]
fn requests_for_vectors() {
    for dialect in VECTORS {
        for (name, body) in fixtures(dialect, "embed-requests") {
            let envelope = read_envelope_for(Operation::Embed, dialect, &body).expect(&name);
            let mut request = read_embed_request(dialect, &body).expect(&name);
            assert_eq!(envelope.vectors.inputs, request.inputs.len(), "{name}");
            "asked".clone_into(&mut request.model);
            let needs: Vec<_> = envelope.needs.set.iter().collect();
            let mut all = Map::new();
            all.insert("needs".into(), json!(needs));
            all.insert("neutral".into(), json!(request));
            for other in VECTORS {
                let to = written(|loss| write_embed_request(other, &request, loss));
                all.insert(other.as_str().into(), to);
            }
            snapshot(dialect, &format!("embed-request-{name}"), &all.into());
        }
    }
}

#[test]
fn a_request_for_vectors_keeps_its_meaning_in_its_own_dialect() {
    for dialect in VECTORS {
        for (name, body) in fixtures(dialect, "embed-requests") {
            let request = read_embed_request(dialect, &body).expect(&name);
            let back = write_embed_request(dialect, &request, Loss::Drop).expect(&name);
            let back = read_embed_request(dialect, &back.body).expect(&name);
            assert_eq!(back.inputs, request.inputs, "{name}");
            assert_eq!(back.dimensions, request.dimensions, "{name}");
            if dialect != Dialect::OpenAiChat {
                assert_eq!(back.purpose, request.purpose, "{name}");
            }
        }
    }
}

fn answers() -> impl Iterator<Item = (Dialect, String, Vec<u8>, EmbedAnswer)> {
    let model = ModelName::new("asked");
    VECTORS.into_iter().flat_map(move |dialect| {
        let model = model.clone();
        let all = fixtures(dialect, "embed-answers").into_iter();
        all.map(move |(name, body)| {
            let answer = read_vectors(dialect, &model, &body).expect(&name);
            (dialect, name, body, answer)
        })
    })
}

#[test]
fn answers_with_vectors() {
    for (dialect, name, body, answer) in answers() {
        let model = ModelName::new("asked");
        let mut asked = VectorForm {
            inputs: answer.vectors.len(),
            batch: answer.vectors.len() > 1,
            encoding: Encoding::Float,
        };
        let facts = inspect_vectors(dialect, &model, asked, &body).expect(&name);
        assert_eq!(facts.usage, answer.usage, "{name}");
        asked.inputs += 1;
        assert!(inspect_vectors(dialect, &model, asked, &body).is_err());
        let mut all = Map::new();
        all.insert("usage".into(), json!(answer.usage));
        for other in VECTORS {
            let body = write_vectors(other, &answer, asked, &STAMP).expect(&name);
            all.insert(other.as_str().into(), tree(&body));
        }
        asked.encoding = Encoding::Base64;
        let bytes = write_vectors(Dialect::OpenAiChat, &answer, asked, &STAMP).expect(&name);
        all.insert("openai-chat in base64".into(), tree(&bytes));
        snapshot(dialect, &format!("embed-answer-{name}"), &all.into());
    }
}

#[test]
fn bytes_and_numbers_are_one_vector_in_two_spellings() {
    for (_, name, _, answer) in answers() {
        let form = |encoding| VectorForm {
            inputs: 0,
            batch: true,
            encoding,
        };
        let model = ModelName::new("asked");
        let openai = Dialect::OpenAiChat;
        // As bytes, as numbers, as bytes again: the bytes are the same.
        let first = write_vectors(openai, &answer, form(Encoding::Base64), &STAMP).expect(&name);
        let again = read_vectors(openai, &model, &first).expect(&name);
        let numbers = write_vectors(openai, &again, form(Encoding::Float), &STAMP).expect(&name);
        let again = read_vectors(openai, &model, &numbers).expect(&name);
        let second = write_vectors(openai, &again, form(Encoding::Base64), &STAMP).expect(&name);
        assert_eq!(tree(&first), tree(&second), "{name}");
    }
}

#[test]
fn requests_to_count() {
    for dialect in COUNTS {
        for (name, body) in fixtures(dialect, "count-requests") {
            let envelope = read_envelope_for(Operation::CountTokens, dialect, &body).expect(&name);
            let needs: Vec<_> = envelope.needs.set.iter().collect();
            let request = Request {
                model: "asked".to_owned(),
                ..read_count_request(dialect, &body).expect(&name)
            };
            let mut all = Map::new();
            all.insert("needs".into(), json!(needs));
            for other in COUNTS {
                let to = written(|loss| write_count_request(other, &request, loss));
                all.insert(other.as_str().into(), to);
            }
            snapshot(dialect, &format!("count-request-{name}"), &all.into());
        }
    }
}

#[test]
fn cut_bodies_end_in_a_verdict() {
    for (dialect, name, body, answer) in answers() {
        let model = ModelName::new("asked");
        let asked = VectorForm {
            inputs: answer.vectors.len(),
            ..VectorForm::default()
        };
        let whole = body.trim_ascii_end().len();
        for cut in 0..whole {
            let inspected = inspect_vectors(dialect, &model, asked, &body[..cut]);
            assert!(inspected.is_err_and(|bad| bad.truncated), "{name} at {cut}");
        }
    }
    for dialect in VECTORS {
        for (_, body) in fixtures(dialect, "embed-requests") {
            let whole = body.trim_ascii_end().len();
            for cut in 0..whole {
                assert!(read_envelope_for(Operation::Embed, dialect, &body[..cut]).is_err());
            }
        }
    }
}

//! Google's `embedContent` and `batchEmbedContents` (ai.google.dev/api/embeddings), read 2026-11.
//!
//! What is peculiar to it: one text has another shape than several, each of which names the model
//! again; what a vector is for is said (`taskType`), and changes it; tokens are counted by newer
//! versions only.

use backstop_chat::{
    EmbedAnswer, EmbedInput, EmbedRequest, Extra, Purpose, Text, Usage, Vector, Weight,
};
use backstop_units::Tokens;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{NOT_VECTORS, numbers};
use crate::answer::{AnswerFacts, Malformed, says_error};
use crate::envelope::{BadRequest, VectorForm};
use crate::json::Object;
use crate::members::Members;
use crate::scan::{Fault, Kind, Scanner};
use crate::splice::resource;
use crate::translate::{Losses, Unsupported, Written};

/// The dialect's name on what only it knows.
const OWN: &str = "gemini";

pub(super) fn read_request(body: &RawValue) -> Result<EmbedRequest, BadRequest> {
    let mut m = Members::read(body, String::new())?.camel();
    let mut request = EmbedRequest::default();
    let several = m.array("requests")?;
    m.take("fallbacks");
    if several.is_empty() {
        one(m, &mut request)?;
        return Ok(request);
    }
    for (place, (at, value)) in several.into_iter().enumerate() {
        let mut own = EmbedRequest::default();
        one(Members::read(value, at.clone())?.camel(), &mut own)?;
        let same = (own.dimensions, own.purpose) == (request.dimensions, request.purpose);
        if place > 0 && !same {
            return Err(BadRequest::new(
                "mixed_batch",
                &at,
                "the requests of a batch must agree in `taskType` and `outputDimensionality`",
            ));
        }
        request.dimensions = own.dimensions;
        request.purpose = own.purpose;
        request.inputs.append(&mut own.inputs);
        request.extras.append(&mut own.extras);
    }
    rest(m, &mut request);
    Ok(request)
}

/// One text and what is said of it.
fn one(mut m: Members<'_>, request: &mut EmbedRequest) -> Result<(), BadRequest> {
    let content = m.object("content")?;
    let mut content = m.required("content", content)?.camel();
    let mut text = String::new();
    for (at, value) in content.array("parts")? {
        let mut part = Members::read(value, at)?.camel();
        match part.string("text")? {
            Some(words) => text.push_str(&words),
            None => rest(part, request),
        }
    }
    request.inputs.push(EmbedInput::Text(Text::from(text)));
    request.dimensions = m.count("outputDimensionality")?;
    if let Some(word) = m.string("taskType")? {
        request.purpose = purpose(&word);
        if request.purpose.is_none() && word != "TASK_TYPE_UNSPECIFIED" {
            return Err(BadRequest::new(
                "invalid_value",
                &m.path("taskType"),
                "`taskType` is none that is known",
            ));
        }
    }
    m.take("model");
    rest(m, request);
    Ok(())
}

fn rest(members: Members<'_>, request: &mut EmbedRequest) {
    for (path, value) in members.rest() {
        request.extras.push(Extra {
            dialect: OWN,
            path,
            value: value.into(),
            weight: Weight::Contract,
        });
    }
}

/// The words of `taskType` (ai.google.dev/api/embeddings#v1beta.TaskType).
const WORDS: [(&str, Purpose); 8] = [
    ("RETRIEVAL_QUERY", Purpose::Query),
    ("RETRIEVAL_DOCUMENT", Purpose::Document),
    ("CLASSIFICATION", Purpose::Classification),
    ("CLUSTERING", Purpose::Clustering),
    ("SEMANTIC_SIMILARITY", Purpose::Similarity),
    ("QUESTION_ANSWERING", Purpose::QuestionAnswering),
    ("FACT_VERIFICATION", Purpose::FactVerification),
    ("CODE_RETRIEVAL_QUERY", Purpose::CodeQuery),
];

fn purpose(word: &str) -> Option<Purpose> {
    let found = WORDS.iter().find(|(own, _)| *own == word);
    found.map(|(_, purpose)| *purpose)
}

pub(super) fn write_request(
    request: &EmbedRequest,
    mut losses: Losses,
) -> Result<Written, Unsupported> {
    losses.own(&request.extras)?;
    if request.truncate.is_some() {
        losses.contract("truncate")?;
    }
    if request.user.is_some() {
        losses.hint("user");
    }
    let mut texts = Vec::with_capacity(request.inputs.len());
    for input in &request.inputs {
        match input {
            EmbedInput::Text(text) => texts.push(text),
            EmbedInput::Tokens(_) => return Err(losses.never("input")),
        }
    }
    let mut body = Vec::with_capacity(256);
    Object::write(&mut body, |out| match texts.as_slice() {
        [text] => write_one(request, text, out),
        texts => out.array("requests", |out| {
            for text in texts {
                out.object(|out| write_one(request, text, out));
            }
        }),
    });
    Ok(Written {
        body,
        dropped: losses.into_dropped(),
    })
}

fn write_one(request: &EmbedRequest, text: &Text, out: &mut Object<'_>) {
    out.put("model", &*resource(&request.model));
    out.object("content", |out| {
        out.array("parts", |out| out.object(|out| out.put("text", text)));
    });
    let word = request
        .purpose
        .and_then(|purpose| WORDS.iter().find(|(_, known)| *known == purpose));
    out.put_some("taskType", word.map(|(word, _)| word));
    out.put_some("outputDimensionality", request.dimensions);
}

/// What the answer that comes next tells, and how many vectors it has.
pub(super) fn inspect(s: &mut Scanner<'_>) -> Result<(AnswerFacts, usize), Malformed> {
    let mut facts = AnswerFacts::default();
    let (mut vectors, mut hollow) = (0, false);
    let mut vector = |s: &mut Scanner<'_>| {
        let mut there = false;
        s.object_or_skip(|s, member| {
            there |= member.is("values") && s.peek()? == Kind::Array;
            s.skip().map(drop)
        })?;
        vectors += 1;
        hollow |= !there;
        Ok::<(), Fault>(())
    };
    s.object(|s, member| {
        match &*member.key.decode() {
            "error" => facts.error_inside |= says_error(s)?,
            "embedding" => vector(s)?,
            "embeddings" => s.array_or_skip(&mut vector)?,
            "usageMetadata" => s.object_or_skip(|s, member| {
                if member.is("promptTokenCount") {
                    facts.usage = s.count_or_skip()?.map(usage);
                    return Ok(());
                }
                s.skip().map(drop)
            })?,
            _ => drop(s.skip()?),
        }
        Ok::<(), Fault>(())
    })?;
    if hollow && !facts.error_inside {
        return Err(Malformed::shape("an entry without a vector").with_usage(facts.usage));
    }
    Ok((facts, vectors))
}

fn usage(tokens: u64) -> Usage {
    Usage {
        input: Some(Tokens(tokens)),
        ..Usage::default()
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer<'a> {
    #[serde(borrow)]
    embedding: Option<Entry<'a>>,
    #[serde(borrow, default)]
    embeddings: Vec<Entry<'a>>,
    usage_metadata: Option<Spent>,
}

#[derive(Deserialize)]
struct Entry<'a> {
    #[serde(borrow)]
    values: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spent {
    prompt_token_count: Option<u64>,
}

pub(super) fn read_answer(body: &[u8]) -> Result<EmbedAnswer, Malformed> {
    let answer: Answer<'_> = serde_json::from_slice(body).map_err(|_| NOT_VECTORS)?;
    let all = answer.embedding.iter().chain(&answer.embeddings);
    let spent = answer.usage_metadata.as_ref();
    Ok(EmbedAnswer {
        model: None,
        vectors: all
            .map(|entry| Vector::Numbers(entry.values.into()))
            .collect(),
        usage: spent.and_then(|spent| spent.prompt_token_count).map(usage),
    })
}

pub(super) fn write_answer(answer: &EmbedAnswer, asked: VectorForm) -> Result<Vec<u8>, Malformed> {
    let mut body = Vec::with_capacity(4096);
    let mut written = Ok(());
    let mut values = |out: &mut Object<'_>, vector: &Vector| {
        let put = numbers::put(out, "values", vector, backstop_chat::Encoding::Float);
        written = written.and(put);
    };
    Object::write(&mut body, |out| {
        if asked.batch {
            out.array("embeddings", |out| {
                for vector in &answer.vectors {
                    out.object(|out| values(out, vector));
                }
            });
        } else if let Some(vector) = answer.vectors.first() {
            out.object("embedding", |out| values(out, vector));
        }
        if let Some(tokens) = answer.input_tokens() {
            out.object("usageMetadata", |out| {
                out.put("promptTokenCount", &tokens);
            });
        }
    });
    written.map(|()| body)
}

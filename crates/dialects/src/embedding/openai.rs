//! OpenAI's `/v1/embeddings` (platform.openai.com/docs/api-reference/embeddings), read 2026-11.
//!
//! What is peculiar to it: texts may be given as ids of tokens; numbers may be asked for in base64,
//! which OpenAI's own clients do unless told otherwise. It has no word for what a vector is for;
//! servers that serve models which want to know take `input_type`.

use backstop_chat::{EmbedAnswer, EmbedInput, EmbedRequest, Extra, Purpose, Usage, Vector, Weight};
use backstop_units::Tokens;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{NOT_VECTORS, cohere, numbers};
use crate::answer::{AnswerFacts, Malformed, says_error};
use crate::envelope::{BadRequest, VectorForm};
use crate::json::Object;
use crate::members::{Members, as_string, entries};
use crate::scan::{Fault, Scanner};
use crate::translate::{Losses, Stamp, Unsupported, Written};

/// The dialect's name on what only it knows.
const OWN: &str = "openai-chat";

pub(super) fn read_request(body: &RawValue) -> Result<EmbedRequest, BadRequest> {
    let mut m = Members::read(body, String::new())?;
    let model = m.string("model")?;
    let mut request = EmbedRequest {
        model: m.required("model", model)?,
        dimensions: m.count("dimensions")?,
        user: m.text("user")?,
        ..EmbedRequest::default()
    };
    let input = m.take("input");
    request.inputs = inputs(m.required("input", input)?)?;
    m.take("fallbacks");
    for (path, value) in m.rest() {
        match (path.as_str(), as_string(value).as_deref()) {
            // How numbers are written is between the gateway and whoever reads them.
            ("encoding_format", Some("float" | "base64")) => continue,
            ("input_type", Some(word)) => {
                request.purpose = purpose(word);
                if request.purpose.is_some() {
                    continue;
                }
            }
            _ => {}
        }
        request.extras.push(Extra {
            dialect: OWN,
            path,
            value: value.into(),
            weight: Weight::Contract,
        });
    }
    Ok(request)
}

/// What Cohere's models call it, and what NVIDIA's do.
fn purpose(word: &str) -> Option<Purpose> {
    match word {
        "query" => Some(Purpose::Query),
        "passage" | "document" => Some(Purpose::Document),
        word => cohere::purpose(word),
    }
}

fn inputs(input: &RawValue) -> Result<Vec<EmbedInput>, BadRequest> {
    let wrong = || {
        BadRequest::wrong_type(
            "input",
            "a string, an array of strings, an array of tokens or an array of such arrays",
        )
    };
    if let Some(text) = as_string(input) {
        return Ok(vec![EmbedInput::Text(text.into())]);
    }
    if let Ok(tokens) = serde_json::from_str::<Vec<u32>>(input.get())
        && !tokens.is_empty()
    {
        return Ok(vec![EmbedInput::Tokens(tokens)]);
    }
    let all = entries(input, "input").map_err(|_| wrong())?;
    if all.is_empty() {
        return Err(BadRequest::new(
            "missing_field",
            "input",
            "`input` must not be empty",
        ));
    }
    all.into_iter()
        .map(|(_, value)| match as_string(value) {
            Some(text) => Ok(EmbedInput::Text(text.into())),
            None => serde_json::from_str(value.get())
                .map(EmbedInput::Tokens)
                .map_err(|_| wrong()),
        })
        .collect()
}

pub(super) fn write_request(
    request: &EmbedRequest,
    mut losses: Losses,
) -> Result<Written, Unsupported> {
    let own = losses.own(&request.extras)?;
    if request.purpose.is_some() {
        losses.contract("input_type")?;
    }
    if request.truncate.is_some() {
        losses.contract("truncate")?;
    }
    let mut body = Vec::with_capacity(256);
    Object::write(&mut body, |out| {
        out.put("model", &request.model);
        match request.inputs.as_slice() {
            [EmbedInput::Text(text)] => out.put("input", text),
            [EmbedInput::Tokens(tokens)] => out.put("input", tokens),
            all => out.array("input", |out| {
                for input in all {
                    match input {
                        EmbedInput::Text(text) => out.put(text),
                        EmbedInput::Tokens(tokens) => out.put(tokens),
                    }
                }
            }),
        }
        out.put_some("dimensions", request.dimensions);
        out.put_some("user", request.user.as_ref());
        for extra in own {
            out.put(&extra.path, &extra.value);
        }
    });
    Ok(Written {
        body,
        dropped: losses.into_dropped(),
    })
}

/// What the answer that comes next tells, and how many vectors it has.
pub(super) fn inspect(s: &mut Scanner<'_>) -> Result<(AnswerFacts, usize), Malformed> {
    let mut facts = AnswerFacts::default();
    let (mut vectors, mut hollow) = (0, false);
    s.object(|s, member| {
        match &*member.key.decode() {
            "error" => facts.error_inside |= says_error(s)?,
            "model" => {
                facts.model = s.string_or_skip()?.map(|model| model.decode().into_owned());
            }
            "usage" => {
                s.object_or_skip(|s, member| {
                    if member.is("prompt_tokens") {
                        facts.usage = s.count_or_skip()?.map(usage);
                        return Ok(());
                    }
                    s.skip().map(drop)
                })?;
            }
            "data" => s.array_or_skip(|s| {
                vectors += 1;
                let mut there = false;
                s.object_or_skip(|s, member| {
                    let value = s.skip()?;
                    there |= member.is("embedding") && value.starts_with(['[', '"']);
                    Ok::<(), Fault>(())
                })?;
                hollow |= !there;
                Ok::<(), Fault>(())
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
struct Answer<'a> {
    model: Option<String>,
    #[serde(borrow)]
    data: Vec<Entry<'a>>,
    usage: Option<Spent>,
}

#[derive(Deserialize)]
struct Entry<'a> {
    index: Option<usize>,
    #[serde(borrow)]
    embedding: &'a RawValue,
}

#[derive(Deserialize)]
struct Spent {
    prompt_tokens: Option<u64>,
}

pub(super) fn read_answer(body: &[u8]) -> Result<EmbedAnswer, Malformed> {
    let mut answer: Answer<'_> = serde_json::from_slice(body).map_err(|_| NOT_VECTORS)?;
    // The index says which text an entry belongs to, wherever it stands.
    answer
        .data
        .sort_by_key(|entry| entry.index.unwrap_or(usize::MAX));
    let vectors = answer.data.iter().map(|entry| {
        as_string(entry.embedding).map_or_else(
            || Vector::Numbers(entry.embedding.into()),
            |text| Vector::Base64(text.into()),
        )
    });
    let spent = answer.usage.as_ref().and_then(|usage| usage.prompt_tokens);
    Ok(EmbedAnswer {
        vectors: vectors.collect(),
        model: answer.model,
        usage: spent.map(usage),
    })
}

pub(super) fn write_answer(
    answer: &EmbedAnswer,
    asked: VectorForm,
    stamp: &Stamp<'_>,
) -> Result<Vec<u8>, Malformed> {
    let mut body = Vec::with_capacity(4096);
    let mut written = Ok(());
    Object::write(&mut body, |out| {
        out.put("object", "list");
        out.array("data", |out| {
            for (index, vector) in answer.vectors.iter().enumerate() {
                out.object(|out| {
                    out.put("object", "embedding");
                    out.put("index", &index);
                    let put = numbers::put(out, "embedding", vector, asked.encoding);
                    written = written.and(put);
                });
            }
        });
        out.put("model", answer.model.as_deref().unwrap_or(stamp.model));
        // Clients read both counts without asking whether they are there.
        let tokens = answer.input_tokens().unwrap_or_default();
        out.object("usage", |out| {
            out.put("prompt_tokens", &tokens);
            out.put("total_tokens", &tokens);
        });
    });
    written.map(|()| body)
}

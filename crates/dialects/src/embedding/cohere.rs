//! Cohere's `/v2/embed` (docs.cohere.com/reference/embed), and its models on Bedrock
//! (docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-embed.html), read 2026-11.
//!
//! What is peculiar to it: what a vector is for must be said; numbers are asked for in one or more
//! types, and stand under each; a request holds at most 96 texts. Bedrock has the model in the path
//! and the token counts in a header.

use backstop_chat::{
    EmbedAnswer, EmbedInput, EmbedRequest, Extra, Purpose, Text, Truncate, Usage, Vector, Weight,
};
use backstop_units::Tokens;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{NOT_VECTORS, numbers};
use crate::answer::{AnswerFacts, Malformed, says_error};
use crate::envelope::BadRequest;
use crate::json::Object;
use crate::members::{Members, entries};
use crate::scan::{Fault, Kind, Scanner};
use crate::translate::{Losses, Stamp, Unsupported, Written};

/// The dialect's name on what only it knows.
const OWN: &str = "cohere-v2";
/// The most texts in one request (docs.cohere.com/reference/embed, `texts`).
const MOST_TEXTS: usize = 96;
/// What a vector is for, where it must be said and the caller did not: what is put into a store
/// outnumbers what is searched with.
const DEFAULT_PURPOSE: &str = "search_document";

/// Who serves the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Host {
    /// Cohere itself.
    Cohere,
    /// Amazon.
    Bedrock,
}

pub(super) fn read_request(body: &RawValue) -> Result<EmbedRequest, BadRequest> {
    let mut m = Members::read(body, String::new())?;
    let model = m.string("model")?;
    let mut request = EmbedRequest {
        model: m.required("model", model)?,
        dimensions: m.count("output_dimension")?,
        ..EmbedRequest::default()
    };
    let texts = m.take("texts");
    for (at, value) in entries(m.required("texts", texts)?, "texts")? {
        let text: Text = serde_json::from_str(value.get())
            .map_err(|_| BadRequest::wrong_type(&at, "a string"))?;
        request.inputs.push(EmbedInput::Text(text));
    }
    let word = m.string("input_type")?;
    let word = m.required("input_type", word)?;
    request.purpose = purpose(&word);
    if request.purpose.is_none() {
        return Err(BadRequest::new(
            "invalid_value",
            "input_type",
            "`input_type` is none that texts can have",
        ));
    }
    request.truncate = match m.string("truncate")?.as_deref() {
        Some("NONE") => Some(Truncate::Refuse),
        Some("START") => Some(Truncate::Start),
        // What happens unless something else is said.
        _ => None,
    };
    m.take("fallbacks");
    for (path, value) in m.rest() {
        let weight = match path.as_str() {
            "embedding_types" if value.get() == r#"["float"]"# => continue,
            "priority" => Weight::Hint,
            _ => Weight::Contract,
        };
        request.extras.push(Extra {
            dialect: OWN,
            path,
            value: value.into(),
            weight,
        });
    }
    Ok(request)
}

/// What `input_type` says of texts.
pub(super) fn purpose(word: &str) -> Option<Purpose> {
    Some(match word {
        "search_query" => Purpose::Query,
        "search_document" => Purpose::Document,
        "classification" => Purpose::Classification,
        "clustering" => Purpose::Clustering,
        _ => return None,
    })
}

pub(super) fn write_request(
    request: &EmbedRequest,
    mut losses: Losses,
    host: Host,
) -> Result<Written, Unsupported> {
    let own = losses.own(&request.extras)?;
    let purpose = match request.purpose {
        None => DEFAULT_PURPOSE,
        Some(Purpose::Query) => "search_query",
        Some(Purpose::Document) => "search_document",
        Some(Purpose::Classification) => "classification",
        Some(Purpose::Clustering) => "clustering",
        Some(_) => {
            losses.contract("input_type")?;
            DEFAULT_PURPOSE
        }
    };
    if request.user.is_some() {
        losses.hint("user");
    }
    if request.inputs.len() > MOST_TEXTS {
        return Err(losses.never(format!("more than {MOST_TEXTS} inputs")));
    }
    let mut texts = Vec::with_capacity(request.inputs.len());
    for input in &request.inputs {
        match input {
            EmbedInput::Text(text) => texts.push(text),
            EmbedInput::Tokens(_) => return Err(losses.never("input")),
        }
    }
    let mut dimensions = request.dimensions;
    // Only the fourth version knows lengths other than its own.
    let third = ["embed-english-v3", "embed-multilingual-v3"];
    let fixed = third.iter().any(|name| request.model.contains(name));
    if dimensions.is_some() && host == Host::Bedrock && fixed {
        losses.contract("dimensions")?;
        dimensions = None;
    }
    let mut body = Vec::with_capacity(256);
    Object::write(&mut body, |out| {
        if host == Host::Cohere {
            out.put("model", &request.model);
        }
        out.put("input_type", purpose);
        if !own.iter().any(|extra| extra.path == "embedding_types") {
            out.put("embedding_types", &["float"]);
        }
        out.put("texts", &texts);
        out.put_some("output_dimension", dimensions);
        let truncate = request.truncate.map(|truncate| match truncate {
            Truncate::Refuse => "NONE",
            Truncate::Start => "START",
            Truncate::End => "END",
        });
        out.put_some("truncate", truncate);
        for extra in own {
            out.put(&extra.path, &extra.value);
        }
    });
    Ok(Written {
        body,
        dropped: losses.into_dropped(),
    })
}

/// What the answer that comes next tells, and how many vectors it has: in one of its types, where
/// there are several.
pub(super) fn inspect(s: &mut Scanner<'_>) -> Result<(AnswerFacts, usize), Malformed> {
    let mut facts = AnswerFacts::default();
    let (mut vectors, mut listed) = (0, false);
    s.object(|s, member| {
        match &*member.key.decode() {
            "error" => facts.error_inside |= says_error(s)?,
            "embeddings" => {
                listed = true;
                if s.peek()? == Kind::Object {
                    s.object(|s, _| {
                        let mut own = 0;
                        s.array_or_skip(|s| {
                            own += 1;
                            s.skip().map(drop)
                        })?;
                        vectors = vectors.max(own);
                        Ok::<(), Fault>(())
                    })?;
                } else {
                    s.array_or_skip(|s| {
                        vectors += 1;
                        s.skip().map(drop)
                    })?;
                }
            }
            "meta" => facts.usage = meta(s)?,
            _ => drop(s.skip()?),
        }
        Ok::<(), Fault>(())
    })?;
    if !listed && !facts.error_inside {
        return Err(NOT_VECTORS.with_usage(facts.usage));
    }
    Ok((facts, vectors))
}

/// Tokens of the texts: nothing is added to them, so what is billed is what was read.
fn meta(s: &mut Scanner<'_>) -> Result<Option<Usage>, Fault> {
    let (mut read, mut billed) = (None, None);
    s.object_or_skip(|s, member| {
        let place = match &*member.key.decode() {
            "tokens" => &mut read,
            "billed_units" => &mut billed,
            _ => return s.skip().map(drop),
        };
        s.object_or_skip(|s, member| {
            let written = s.skip()?;
            if member.is("input_tokens") {
                let whole = written.strip_suffix(".0").unwrap_or(written);
                *place = whole.parse().ok().map(Tokens);
            }
            Ok(())
        })
    })?;
    Ok(read.or(billed).map(|tokens| Usage {
        input: Some(tokens),
        ..Usage::default()
    }))
}

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    embeddings: &'a RawValue,
    #[serde(borrow)]
    meta: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Typed<'a> {
    #[serde(borrow, default)]
    float: Vec<&'a RawValue>,
}

pub(super) fn read_answer(body: &[u8]) -> Result<EmbedAnswer, Malformed> {
    let answer: Answer<'_> = serde_json::from_slice(body).map_err(|_| NOT_VECTORS)?;
    let written = answer.embeddings.get();
    let vectors = if written.starts_with('[') {
        serde_json::from_str::<Vec<&RawValue>>(written).map_err(|_| NOT_VECTORS)?
    } else {
        let typed: Typed<'_> = serde_json::from_str(written).map_err(|_| NOT_VECTORS)?;
        typed.float
    };
    let usage = match answer.meta {
        Some(told) => meta(&mut Scanner::new(told.get()))?,
        None => None,
    };
    Ok(EmbedAnswer {
        model: None,
        vectors: vectors
            .into_iter()
            .map(|vector| Vector::Numbers(vector.into()))
            .collect(),
        usage,
    })
}

pub(super) fn write_answer(answer: &EmbedAnswer, stamp: &Stamp<'_>) -> Result<Vec<u8>, Malformed> {
    let mut body = Vec::with_capacity(4096);
    let mut written = Ok(());
    Object::write(&mut body, |out| {
        out.put("id", stamp.id);
        out.put("response_type", "embeddings_by_type");
        out.object("embeddings", |out| {
            out.array("float", |out| {
                for vector in &answer.vectors {
                    let put = numbers::push(out, vector);
                    written = written.and(put);
                }
            });
        });
        out.object("meta", |out| {
            out.object("api_version", |out| out.put("version", "2"));
            if let Some(tokens) = answer.input_tokens() {
                out.object("billed_units", |out| out.put("input_tokens", &tokens));
            }
        });
    });
    written.map(|()| body)
}

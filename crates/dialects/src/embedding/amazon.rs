//! Amazon's Titan models for texts, behind Bedrock's `invoke`
//! (docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-titan-embed-text.html), read
//! 2026-11.
//!
//! What is peculiar to it: one text a request; the model stands in the path; the first version
//! takes nothing but the text.

use backstop_chat::{EmbedAnswer, EmbedInput, EmbedRequest, Usage, Vector};
use backstop_units::Tokens;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::NOT_VECTORS;
use crate::answer::{AnswerFacts, Malformed};
use crate::json::Object;
use crate::scan::{Fault, Kind, Scanner};
use crate::translate::{Losses, Unsupported, Written};

pub(super) fn write_request(
    request: &EmbedRequest,
    mut losses: Losses,
) -> Result<Written, Unsupported> {
    losses.own(&request.extras)?;
    if request.purpose.is_some() {
        losses.contract("input_type")?;
    }
    if request.truncate.is_some() {
        losses.contract("truncate")?;
    }
    if request.user.is_some() {
        losses.hint("user");
    }
    let text = match request.inputs.as_slice() {
        [EmbedInput::Text(text)] => text,
        [EmbedInput::Tokens(_)] => return Err(losses.never("input")),
        _ => return Err(losses.never("more than one input")),
    };
    let mut dimensions = request.dimensions;
    if dimensions.is_some() && !request.model.contains("text-v2") {
        losses.contract("dimensions")?;
        dimensions = None;
    }
    let mut body = Vec::with_capacity(256);
    Object::write(&mut body, |out| {
        out.put("inputText", text);
        out.put_some("dimensions", dimensions);
    });
    Ok(Written {
        body,
        dropped: losses.into_dropped(),
    })
}

/// What the answer that comes next tells, and how many vectors it has.
pub(super) fn inspect(s: &mut Scanner<'_>) -> Result<(AnswerFacts, usize), Malformed> {
    let mut facts = AnswerFacts::default();
    let mut vectors = 0;
    s.object(|s, member| {
        if member.is("embedding") {
            vectors = usize::from(s.peek()? == Kind::Array);
            s.skip()?;
        } else if member.is("inputTextTokenCount") {
            facts.usage = s.count_or_skip()?.map(usage);
        } else {
            s.skip()?;
        }
        Ok::<(), Fault>(())
    })?;
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
    embedding: &'a RawValue,
    input_text_token_count: Option<u64>,
}

pub(super) fn read_answer(body: &[u8]) -> Result<EmbedAnswer, Malformed> {
    let answer: Answer<'_> = serde_json::from_slice(body).map_err(|_| NOT_VECTORS)?;
    Ok(EmbedAnswer {
        model: None,
        vectors: vec![Vector::Numbers(answer.embedding.into())],
        usage: answer.input_text_token_count.map(usage),
    })
}

//! Texts that become vectors, between the shapes in which they are asked for.
//!
//! A vector means something to its own model only. What is translated here is how one is asked for
//! and how its numbers are written; that a route's channels serve the same model is the operator's
//! to see to.

mod amazon;
mod cohere;
mod gemini;
mod numbers;
mod openai;
#[cfg(test)]
mod tests;

use backstop_chat::{Capabilities, EmbedAnswer, EmbedRequest, Need};
use backstop_units::ModelName;
use serde_json::value::RawValue;

use crate::answer::{AnswerFacts, Malformed};
use crate::dialect::Dialect;
use crate::envelope::{BadRequest, VectorForm};
use crate::scan::{Kind, Scanner};
use crate::translate::{Loss, Stamp, Unsupported, Written};

/// A wire shape of a request for vectors and its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// OpenAI's `/v1/embeddings`, and the many servers that speak it.
    OpenAi,
    /// Google's `embedContent` and `batchEmbedContents`.
    Gemini,
    /// Cohere's `/v2/embed`.
    Cohere,
    /// Amazon's Titan models, behind Bedrock's `invoke`.
    Titan,
    /// Cohere's models, behind Bedrock's `invoke`.
    CohereOnBedrock,
}

impl Shape {
    /// The shape in which `model` is asked for vectors where `dialect` is spoken; `None` where
    /// there is none.
    pub(crate) fn of(dialect: Dialect, model: &str) -> Option<Self> {
        match dialect {
            Dialect::OpenAiChat => Some(Self::OpenAi),
            Dialect::Gemini => Some(Self::Gemini),
            Dialect::CohereV2 => Some(Self::Cohere),
            Dialect::BedrockConverse => Self::on_bedrock(model),
            Dialect::OpenAiResponses | Dialect::AnthropicMessages => None,
        }
    }

    /// The shape of a model of Bedrock's, by its id: the maker stands first, or after the region of
    /// an inference profile.
    #[must_use]
    pub(crate) fn on_bedrock(model: &str) -> Option<Self> {
        let name = model.rsplit('/').next().unwrap_or(model);
        let is = |maker: &str| name.starts_with(maker) || name.contains(&format!(".{maker}"));
        if is("amazon.titan-embed-text") || is("amazon.titan-embed-g1-text") {
            Some(Self::Titan)
        } else if is("cohere.embed-") {
            Some(Self::CohereOnBedrock)
        } else {
            None
        }
    }
}

/// What of `between` is left when it is vectors that are asked for.
pub(crate) fn carried(
    between: Capabilities,
    caller: Dialect,
    upstream: Dialect,
    model: &ModelName,
) -> Capabilities {
    let Some(shape) = Shape::of(upstream, model.as_str()) else {
        return between.without(Need::Embeddings);
    };
    let left = if caller == upstream {
        between
    } else {
        between.without(Need::TokenInputs).without(Need::Images)
    };
    match shape {
        Shape::OpenAi => left.without(Need::Images),
        Shape::Gemini | Shape::Cohere | Shape::CohereOnBedrock => left.without(Need::TokenInputs),
        Shape::Titan => left.without(Need::TokenInputs).without(Need::ManyInputs),
    }
}

/// Reads a request for vectors into the neutral shape.
///
/// # Errors
///
/// The body is no such request in `dialect`; the complaint names the member.
pub fn read_embed_request(dialect: Dialect, body: &[u8]) -> Result<EmbedRequest, BadRequest> {
    let body: &RawValue = serde_json::from_slice(body)
        .map_err(|_| BadRequest::new("invalid_json", "", "the body is not valid JSON"))?;
    match Shape::of(dialect, "") {
        Some(Shape::OpenAi) => openai::read_request(body),
        Some(Shape::Gemini) => gemini::read_request(body),
        Some(Shape::Cohere) => cohere::read_request(body),
        Some(Shape::Titan | Shape::CohereOnBedrock) | None => Err(BadRequest::new(
            "unsupported_operation",
            "",
            "vectors cannot be asked for in this form",
        )),
    }
}

/// Writes a request for vectors from the neutral shape, with `request.model` as the model.
///
/// # Errors
///
/// The model's shape cannot carry a field, and `loss` does not allow to drop it.
///
/// ```
/// use backstop_dialects::{Dialect, Loss, read_embed_request, write_embed_request};
///
/// let body = br#"{"model":"m","input":"hi","dimensions":256,"user":"u-1"}"#;
/// let request = read_embed_request(Dialect::OpenAiChat, body)?;
/// let written = write_embed_request(Dialect::CohereV2, &request, Loss::Refuse).expect("carried");
/// let sent = br#"{"model":"m","input_type":"search_document","embedding_types":["float"],"texts":["hi"],"output_dimension":256}"#;
/// assert_eq!(written.body, sent);
/// assert_eq!(written.dropped, ["user"]);
/// # Ok::<(), backstop_dialects::BadRequest>(())
/// ```
pub fn write_embed_request(
    dialect: Dialect,
    request: &EmbedRequest,
    loss: Loss,
) -> Result<Written, Unsupported> {
    match Shape::of(dialect, &request.model) {
        Some(shape) => shape.write_request(dialect, request, loss),
        None => Err(Unsupported {
            field: Need::Embeddings.as_str().to_owned(),
            dialect,
        }),
    }
}

/// Checks that `body` is an answer of `model` with as many vectors as were asked for.
///
/// # Errors
///
/// The body is empty, not JSON, no such answer, or has another number of vectors.
pub fn inspect_vectors(
    dialect: Dialect,
    model: &ModelName,
    asked: VectorForm,
    body: &[u8],
) -> Result<AnswerFacts, Malformed> {
    let shape = Shape::of(dialect, model.as_str()).ok_or(NOT_VECTORS)?;
    shape.inspect(asked, body)
}

/// Reads an answer of `model` into the neutral shape.
///
/// # Errors
///
/// The body is no such answer. An error inside a success is none: see [`inspect_vectors`] first.
pub fn read_vectors(
    dialect: Dialect,
    model: &ModelName,
    body: &[u8],
) -> Result<EmbedAnswer, Malformed> {
    let shape = Shape::of(dialect, model.as_str()).ok_or(NOT_VECTORS)?;
    shape.read_answer(body)
}

/// Writes an answer from the neutral shape in the form in which the caller asked for it.
///
/// # Errors
///
/// A vector's numbers cannot be read, where they must be written in another way than they came.
pub fn write_vectors(
    dialect: Dialect,
    answer: &EmbedAnswer,
    asked: VectorForm,
    stamp: &Stamp<'_>,
) -> Result<Vec<u8>, Malformed> {
    match Shape::of(dialect, "") {
        Some(Shape::OpenAi) => openai::write_answer(answer, asked, stamp),
        Some(Shape::Gemini) => gemini::write_answer(answer, asked),
        Some(Shape::Cohere) => cohere::write_answer(answer, stamp),
        Some(Shape::Titan | Shape::CohereOnBedrock) | None => Err(NOT_VECTORS),
    }
}

const NOT_VECTORS: Malformed = Malformed::shape("not an answer with vectors");

impl Shape {
    fn write_request(
        self,
        dialect: Dialect,
        request: &EmbedRequest,
        loss: Loss,
    ) -> Result<Written, Unsupported> {
        let losses = crate::translate::Losses::new(dialect, loss);
        match self {
            Self::OpenAi => openai::write_request(request, losses),
            Self::Gemini => gemini::write_request(request, losses),
            Self::Cohere => cohere::write_request(request, losses, cohere::Host::Cohere),
            Self::CohereOnBedrock => cohere::write_request(request, losses, cohere::Host::Bedrock),
            Self::Titan => amazon::write_request(request, losses),
        }
    }

    fn inspect(self, asked: VectorForm, body: &[u8]) -> Result<AnswerFacts, Malformed> {
        if body.trim_ascii().is_empty() {
            return Err(Malformed {
                what: "an empty body",
                truncated: true,
                usage: None,
            });
        }
        let mut scanner = Scanner::over(body)?;
        if scanner.peek()? != Kind::Object {
            scanner.skip()?;
            return Err(Malformed::shape("not a JSON object"));
        }
        let (facts, vectors) = match self {
            Self::OpenAi => openai::inspect(&mut scanner)?,
            Self::Gemini => gemini::inspect(&mut scanner)?,
            Self::Cohere | Self::CohereOnBedrock => cohere::inspect(&mut scanner)?,
            Self::Titan => amazon::inspect(&mut scanner)?,
        };
        scanner.finish()?;
        if facts.error_inside {
            return Ok(facts);
        }
        let wrong = match vectors {
            0 => Some("no vectors"),
            // Which of them belongs to which text, nobody could say.
            _ if asked.inputs > 0 && vectors != asked.inputs => {
                Some("another number of vectors than was asked for")
            }
            _ => None,
        };
        match wrong {
            Some(what) => Err(Malformed::shape(what).with_usage(facts.usage)),
            None => Ok(facts),
        }
    }

    fn read_answer(self, body: &[u8]) -> Result<EmbedAnswer, Malformed> {
        match self {
            Self::OpenAi => openai::read_answer(body),
            Self::Gemini => gemini::read_answer(body),
            Self::Cohere | Self::CohereOnBedrock => cohere::read_answer(body),
            Self::Titan => amazon::read_answer(body),
        }
    }
}

//! Translation between dialects: wire to neutral, neutral to wire, and what gets lost.

use backstop_chat::{Answer, Extra, Request, Weight};
use serde_json::value::RawValue;

use crate::answer::Malformed;
use crate::dialect::Dialect;
use crate::envelope::BadRequest;
use crate::{
    anthropic_messages, bedrock_converse, cohere_v2, gemini, openai_chat, openai_responses,
};

/// What to do with a part of the contract that the target dialect cannot carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Loss {
    /// Refuse the translation.
    #[default]
    Refuse,
    /// Leave it out and say so (a route's `lossy = "drop"`).
    Drop,
}

/// How a request is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteOptions {
    /// What to do with what cannot be carried.
    pub loss: Loss,
    /// The limit on generated tokens where the dialect requires one and the caller set none.
    /// Default 4096, which every current Anthropic model accepts
    /// (docs.claude.com/en/docs/about-claude/models).
    pub default_max_tokens: u64,
    /// Say `max_tokens` where OpenAI's own models want `max_completion_tokens`: for servers that
    /// only know the older name. Default false.
    pub legacy_max_tokens: bool,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self {
            loss: Loss::Refuse,
            default_max_tokens: 4096,
            legacy_max_tokens: false,
        }
    }
}

/// A translated document.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Written {
    /// The JSON to send.
    pub body: Vec<u8>,
    /// What was left out, by the names the source dialect uses. Hints (cache marks, labels) may
    /// be here even when losses of the contract are refused.
    pub dropped: Vec<String>,
}

/// A request field that the target dialect cannot carry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` cannot be carried to {dialect}")]
pub struct Unsupported {
    /// The field, as the caller's dialect names it.
    pub field: String,
    /// Where it cannot go.
    pub dialect: Dialect,
}

/// What to say where a provider's answer leaves something out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp<'a> {
    /// Our id for the answer.
    pub id: &'a str,
    /// The model that was asked.
    pub model: &'a str,
    /// Seconds since 1970.
    pub created: u64,
}

/// Reads a request into the neutral shape.
///
/// # Errors
///
/// The body is not a request in `dialect`; the complaint names the member.
pub fn read_request(dialect: Dialect, body: &[u8]) -> Result<Request, BadRequest> {
    let body: &RawValue = serde_json::from_slice(body)
        .map_err(|_| BadRequest::new("invalid_json", "", "the body is not valid JSON"))?;
    match dialect {
        Dialect::OpenAiChat => openai_chat::request::read(body),
        Dialect::OpenAiResponses => openai_responses::request::read(body),
        Dialect::AnthropicMessages => anthropic_messages::request::read(body),
        Dialect::Gemini => gemini::request::read(body),
        Dialect::CohereV2 => cohere_v2::request::read(body),
        Dialect::BedrockConverse => bedrock_converse::request::read(body),
    }
}

/// Writes a request from the neutral shape, with `request.model` as the model.
///
/// # Errors
///
/// The dialect cannot carry a field, and `options` do not allow to drop it (or dropping it would
/// not leave a valid request).
///
/// ```
/// use backstop_dialects::{Dialect, WriteOptions, read_request, write_request};
///
/// let body = br#"{"model":"m","seed":7,"messages":[{"role":"user","content":"hi"}]}"#;
/// let request = read_request(Dialect::OpenAiChat, body)?;
/// let refused = write_request(Dialect::AnthropicMessages, &request, &WriteOptions::default());
/// assert_eq!(refused.unwrap_err().field, "seed");
/// # Ok::<(), backstop_dialects::BadRequest>(())
/// ```
pub fn write_request(
    dialect: Dialect,
    request: &Request,
    options: &WriteOptions,
) -> Result<Written, Unsupported> {
    match dialect {
        Dialect::OpenAiChat => openai_chat::request::write(request, options),
        Dialect::OpenAiResponses => openai_responses::request::write(request, options),
        Dialect::AnthropicMessages => anthropic_messages::request::write(request, options),
        Dialect::Gemini => gemini::request::write(request, options),
        Dialect::CohereV2 => cohere_v2::request::write(request, options),
        Dialect::BedrockConverse => bedrock_converse::request::write(request, options),
    }
}

/// Reads a whole answer into the neutral shape.
///
/// # Errors
///
/// The body is not an answer in `dialect`. An error inside a success is not an answer: see
/// [`inspect_answer`](crate::inspect_answer) first.
pub fn read_answer(dialect: Dialect, body: &[u8]) -> Result<Answer, Malformed> {
    match dialect {
        Dialect::OpenAiChat => openai_chat::answer::read(body),
        Dialect::OpenAiResponses => openai_responses::answer::read(body),
        Dialect::AnthropicMessages => anthropic_messages::answer::read(body),
        Dialect::Gemini => gemini::answer::read(body),
        Dialect::CohereV2 => cohere_v2::answer::read(body),
        Dialect::BedrockConverse => bedrock_converse::answer::read(body),
    }
}

/// Writes a whole answer from the neutral shape. What cannot be said is left out and listed: the
/// contract was settled before the request was sent.
#[must_use]
pub fn write_answer(dialect: Dialect, answer: &Answer, stamp: &Stamp<'_>) -> Written {
    match dialect {
        Dialect::OpenAiChat => openai_chat::answer::write(answer, stamp),
        Dialect::OpenAiResponses => openai_responses::answer::write(answer, stamp),
        Dialect::AnthropicMessages => anthropic_messages::answer::write(answer, stamp),
        Dialect::Gemini => gemini::answer::write(answer, stamp),
        Dialect::CohereV2 => cohere_v2::answer::write(answer, stamp),
        Dialect::BedrockConverse => bedrock_converse::answer::write(answer, stamp),
    }
}

/// Keeps account of what a translation leaves out.
pub(crate) struct Losses {
    dialect: Dialect,
    loss: Loss,
    dropped: Vec<String>,
}

impl Losses {
    pub(crate) const fn new(dialect: Dialect, loss: Loss) -> Self {
        Self {
            dialect,
            loss,
            dropped: Vec::new(),
        }
    }

    /// A part of the contract cannot be carried.
    pub(crate) fn contract(&mut self, field: impl Into<String>) -> Result<(), Unsupported> {
        match self.loss {
            Loss::Refuse => Err(self.never(field)),
            Loss::Drop => {
                self.dropped.push(field.into());
                Ok(())
            }
        }
    }

    /// Something that does not change the answer cannot be carried.
    pub(crate) fn hint(&mut self, field: impl Into<String>) {
        self.dropped.push(field.into());
    }

    /// Leaving the field out would not leave a valid request.
    pub(crate) fn never(&self, field: impl Into<String>) -> Unsupported {
        Unsupported {
            field: field.into(),
            dialect: self.dialect,
        }
    }

    /// The extras that can be written back because this dialect wrote them; the others are losses.
    pub(crate) fn own<'r>(&mut self, extras: &'r [Extra]) -> Result<Vec<&'r Extra>, Unsupported> {
        let mut own = Vec::new();
        for extra in extras {
            let nested = extra.path.contains(['.', '[']);
            if extra.dialect == self.dialect.as_str() && !nested {
                own.push(extra);
            } else if extra.weight == Weight::Hint {
                self.hint(&extra.path);
            } else {
                self.contract(&extra.path)?;
            }
        }
        Ok(own)
    }

    pub(crate) fn into_dropped(self) -> Vec<String> {
        self.dropped
    }
}

//! What a caller's client makes of an answer: every surface's grammar, read strictly and apart from
//! the code that writes it.
//!
//! [`told`] reads an answer the way a fussy client would and says what it came to: words, calls,
//! counts and why it ended, in one form for all surfaces. The tables of reasons and counts are the
//! providers' own; nothing of `backstop-dialects` is used, so a mistake there cannot excuse itself.
//!
//! The one invariant: an answer that breaks its grammar has no meaning, only a fault.

mod anthropic_messages;
mod bedrock_converse;
mod cohere_v2;
mod error;
mod gemini;
mod openai_chat;
mod openai_responses;
mod reading;

use serde_json::{Value, json};

pub use error::error_message;
pub use reading::{Call, Counts, Stop, Told};

/// A wire shape, as callers or providers speak it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Surface {
    /// `/v1/chat/completions`.
    OpenAiChat,
    /// `/v1/responses`.
    OpenAiResponses,
    /// `/v1/messages`.
    AnthropicMessages,
    /// `generateContent`.
    Gemini,
    /// `/v2/chat`.
    CohereV2,
    /// `/model/{id}/converse`.
    BedrockConverse,
}

/// How an answer is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// At once.
    Whole,
    /// As a stream of events.
    Stream,
    /// As one JSON array that grows; Google's clients may ask for it.
    Array,
}

/// How closely the grammar is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rules {
    /// As the surface documents it: for what we write.
    Strict,
    /// Whatever has a meaning: for what providers send.
    Lenient,
}

impl Rules {
    /// Fails with `what` unless it holds; what providers send is forgiven.
    fn hold(self, holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
        match self {
            Self::Strict if !holds => Err(what()),
            _ => Ok(()),
        }
    }
}

impl Surface {
    /// All of them, the most widely used first.
    pub const ALL: [Self; 6] = [
        Self::OpenAiChat,
        Self::OpenAiResponses,
        Self::AnthropicMessages,
        Self::Gemini,
        Self::CohereV2,
        Self::BedrockConverse,
    ];

    /// Those that the gateway has for callers.
    pub const SERVED: [Self; 5] = [
        Self::OpenAiChat,
        Self::OpenAiResponses,
        Self::AnthropicMessages,
        Self::Gemini,
        Self::BedrockConverse,
    ];

    /// The name of its dialect.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OpenAiChat => "openai-chat",
            Self::OpenAiResponses => "openai-responses",
            Self::AnthropicMessages => "anthropic-messages",
            Self::Gemini => "gemini",
            Self::CohereV2 => "cohere-v2",
            Self::BedrockConverse => "bedrock-converse",
        }
    }

    /// The surface whose dialect has this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|surface| surface.name() == name)
    }

    /// The forms a caller can ask for here, whole or streamed.
    #[must_use]
    pub const fn forms(self, streamed: bool) -> &'static [Form] {
        match (self, streamed) {
            (_, false) => &[Form::Whole],
            (Self::Gemini, true) => &[Form::Stream, Form::Array],
            (_, true) => &[Form::Stream],
        }
    }

    /// Where a caller asks for `model`.
    #[must_use]
    pub fn path(self, model: &str, form: Form) -> String {
        let escaped = model.replace('/', "%2F").replace(':', "%3A");
        match (self, form) {
            (Self::OpenAiChat, _) => "/v1/chat/completions".to_owned(),
            (Self::OpenAiResponses, _) => "/v1/responses".to_owned(),
            (Self::AnthropicMessages, _) => "/v1/messages".to_owned(),
            (Self::CohereV2, _) => "/v2/chat".to_owned(),
            (Self::Gemini, Form::Whole) => {
                format!("/genai/v1beta/models/{escaped}:generateContent")
            }
            (Self::Gemini, Form::Stream) => {
                format!("/genai/v1beta/models/{escaped}:streamGenerateContent?alt=sse")
            }
            (Self::Gemini, Form::Array) => {
                format!("/genai/v1beta/models/{escaped}:streamGenerateContent")
            }
            (Self::BedrockConverse, Form::Whole) => format!("/bedrock/model/{escaped}/converse"),
            (Self::BedrockConverse, _) => format!("/bedrock/model/{escaped}/converse-stream"),
        }
    }

    /// A short question to `model` in this form.
    #[must_use]
    pub fn ask(self, model: &str, form: Form) -> Value {
        let words = "Say something.";
        let mut body = match self {
            Self::OpenAiChat | Self::CohereV2 => json!({
                "model": model, "messages": [{"role": "user", "content": words}],
            }),
            Self::OpenAiResponses => json!({"model": model, "input": words, "store": false}),
            Self::AnthropicMessages => json!({
                "model": model, "max_tokens": 4096,
                "messages": [{"role": "user", "content": words}],
            }),
            Self::Gemini => json!({"contents": [{"role": "user", "parts": [{"text": words}]}]}),
            Self::BedrockConverse => json!({
                "messages": [{"role": "user", "content": [{"text": words}]}],
            }),
        };
        self.set_form(&mut body, form);
        body
    }

    /// Says in `body` what belongs there about the form.
    pub fn set_form(self, body: &mut Value, form: Form) {
        let in_body = !matches!(self, Self::Gemini | Self::BedrockConverse);
        if in_body && form != Form::Whole {
            body["stream"] = true.into();
            if self == Self::OpenAiChat {
                body["stream_options"] = json!({"include_usage": true});
            }
        }
    }
}

/// What an answer with status 200 comes to.
///
/// # Errors
/// What is wrong with it.
pub fn told(surface: Surface, form: Form, body: &[u8], rules: Rules) -> Result<Told, String> {
    match (surface, form) {
        (Surface::OpenAiChat, Form::Whole) => openai_chat::whole(&parsed(body)?, rules),
        (Surface::OpenAiChat, _) => openai_chat::stream(&reading::events(body, rules)?, rules),
        (Surface::OpenAiResponses, Form::Whole) => openai_responses::whole(&parsed(body)?, rules),
        (Surface::OpenAiResponses, _) => {
            openai_responses::stream(&reading::events(body, rules)?, rules)
        }
        (Surface::AnthropicMessages, Form::Whole) => {
            anthropic_messages::whole(&parsed(body)?, rules)
        }
        (Surface::AnthropicMessages, _) => {
            anthropic_messages::stream(&reading::events(body, rules)?, rules)
        }
        (Surface::Gemini, Form::Whole) => gemini::whole(&parsed(body)?, rules),
        (Surface::Gemini, Form::Stream) => gemini::events(&reading::events(body, rules)?, rules),
        (Surface::Gemini, Form::Array) => gemini::array(&parsed(body)?, rules),
        (Surface::CohereV2, Form::Whole) => cohere_v2::whole(&parsed(body)?, rules),
        (Surface::CohereV2, _) => cohere_v2::stream(&reading::events(body, rules)?, rules),
        (Surface::BedrockConverse, Form::Whole) => bedrock_converse::whole(&parsed(body)?, rules),
        (Surface::BedrockConverse, _) => bedrock_converse::stream(body, rules),
    }
}

/// The JSON that a body is; padding around it is white space to JSON too.
fn parsed(body: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(body).map_err(|error| format!("no JSON: {error}"))
}

//! The dialects and what each can carry.

use std::fmt;

use backstop_chat::{Capabilities, Need};
use serde::{Deserialize, Serialize};

/// A wire shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dialect {
    /// OpenAI's `/v1/chat/completions` and the many servers that speak it.
    #[serde(rename = "openai-chat")]
    OpenAiChat,
    /// OpenAI's `/v1/responses`.
    #[serde(rename = "openai-responses")]
    OpenAiResponses,
    /// Anthropic's `/v1/messages`.
    AnthropicMessages,
    /// Google's `generateContent` and `streamGenerateContent`.
    Gemini,
    /// Cohere's `/v2/chat`.
    #[serde(rename = "cohere-v2")]
    CohereV2,
    /// Amazon Bedrock's `Converse` and `ConverseStream`.
    BedrockConverse,
}

impl Dialect {
    /// The name used in configuration, trails and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OpenAiChat => "openai-chat",
            Self::OpenAiResponses => "openai-responses",
            Self::AnthropicMessages => "anthropic-messages",
            Self::Gemini => "gemini",
            Self::CohereV2 => "cohere-v2",
            Self::BedrockConverse => "bedrock-converse",
        }
    }

    /// Whether the model, and whether the answer is streamed, stand in the path rather than in the
    /// body.
    #[must_use]
    pub const fn model_in_path(self) -> bool {
        matches!(self, Self::Gemini | Self::BedrockConverse)
    }

    /// Whether the caller must ask for token usage to get it at the end of a stream.
    #[must_use]
    pub const fn usage_is_asked_for(self) -> bool {
        matches!(self, Self::OpenAiChat)
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What `dialect` can carry without loss, for a caller who speaks it too.
#[must_use]
pub fn capabilities(dialect: Dialect) -> Capabilities {
    match dialect {
        Dialect::OpenAiResponses => Capabilities::all()
            .without(Need::Audio)
            .without(Need::ManyChoices)
            .without(Need::Embeddings)
            .without(Need::CountTokens),
        Dialect::OpenAiChat => Capabilities::all().without(Need::CountTokens),
        Dialect::Gemini => Capabilities::all().without(Need::TokenInputs),
        Dialect::CohereV2 => Capabilities::all()
            .without(Need::ProviderTools)
            .without(Need::Audio)
            .without(Need::Files)
            .without(Need::ManyChoices)
            .without(Need::TokenInputs)
            .without(Need::CountTokens),
        Dialect::AnthropicMessages => Capabilities::all()
            .without(Need::Embeddings)
            .without(Need::JsonObject)
            .without(Need::Audio)
            .without(Need::ManyChoices)
            .without(Need::Logprobs),
        // What pictures it is given are carried along, never fetched.
        Dialect::BedrockConverse => Capabilities::all()
            .without(Need::JsonObject)
            .without(Need::ImageUrls)
            .without(Need::ManyChoices)
            .without(Need::Logprobs)
            .without(Need::TokenInputs)
            .without(Need::CountTokens),
    }
}

/// What `upstream` can carry without loss for a caller who speaks `caller`: across dialects, what
/// has no neutral shape stays behind.
#[must_use]
pub fn capabilities_between(caller: Dialect, upstream: Dialect) -> Capabilities {
    let all = capabilities(upstream);
    if caller == upstream {
        return all;
    }
    let across = all
        .without(Need::ProviderTools)
        .without(Need::Audio)
        .without(Need::Files);
    let across = match caller {
        // Its callers can build upon what they left behind, and want probabilities in a form of
        // their own.
        Dialect::OpenAiResponses => across.without(Need::StoredState).without(Need::Logprobs),
        _ => across,
    };
    match upstream {
        Dialect::OpenAiResponses => across.without(Need::Logprobs),
        // It fetches from few hosts only, and tells probabilities in a shape of its own.
        Dialect::Gemini => across.without(Need::ImageUrls).without(Need::Logprobs),
        Dialect::CohereV2 => across.without(Need::Logprobs),
        _ => across,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_spelled_as_it_serialises() {
        for dialect in [
            Dialect::OpenAiChat,
            Dialect::OpenAiResponses,
            Dialect::AnthropicMessages,
            Dialect::Gemini,
            Dialect::CohereV2,
            Dialect::BedrockConverse,
        ] {
            let name = serde_json::to_string(&dialect).expect("a plain enum");
            assert_eq!(name, format!("\"{dialect}\""));
        }
    }

    #[test]
    fn what_only_one_dialect_knows_does_not_cross() {
        let across = capabilities_between(Dialect::AnthropicMessages, Dialect::OpenAiChat);
        assert!(!across.set.has(Need::ProviderTools));
        assert!(across.set.has(Need::ParallelTools));
        let state = |upstream| {
            let between = capabilities_between(Dialect::OpenAiResponses, upstream);
            between.set.has(Need::StoredState)
        };
        assert!(state(Dialect::OpenAiResponses) && !state(Dialect::OpenAiChat));
        let same = capabilities_between(Dialect::AnthropicMessages, Dialect::AnthropicMessages);
        assert!(same.set.has(Need::ProviderTools) && !same.set.has(Need::Logprobs));
    }
}

//! What is asked of a provider, apart from the words it is asked in.

use std::fmt;

use backstop_chat::{Capabilities, Need};
use backstop_units::ModelName;

use crate::dialect::{Dialect, capabilities_between};
use crate::embedding;

/// What a caller asks for. A [`Dialect`] says how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Operation {
    /// An answer in a conversation.
    #[default]
    Generate,
    /// Vectors for texts.
    Embed,
    /// How many tokens a conversation takes, without an answer.
    CountTokens,
}

impl Operation {
    /// Every operation.
    pub const ALL: [Self; 3] = [Self::Generate, Self::Embed, Self::CountTokens];

    /// The name used in records and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Generate => "generate",
            Self::Embed => "embed",
            Self::CountTokens => "count_tokens",
        }
    }

    /// What a channel must be able to do to perform it; `None` for what each of them does.
    #[must_use]
    pub const fn need(self) -> Option<Need> {
        match self {
            Self::Generate => None,
            Self::Embed => Some(Need::Embeddings),
            Self::CountTokens => Some(Need::CountTokens),
        }
    }

    /// Whether a request for it can need `need` at all.
    #[must_use]
    pub const fn may_need(self, need: Need) -> bool {
        let of_vectors = matches!(
            need,
            Need::Embeddings | Need::ManyInputs | Need::TokenInputs
        );
        match self {
            Self::Generate => !of_vectors && !matches!(need, Need::CountTokens),
            Self::Embed => of_vectors || matches!(need, Need::Images | Need::Context),
            Self::CountTokens => !of_vectors,
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What `upstream` can carry of an `operation` on its `model`, without loss, for a caller who speaks
/// `caller`.
///
/// ```
/// use backstop_chat::Need;
/// use backstop_dialects::{Dialect, Operation, capabilities_for};
/// use backstop_units::ModelName;
///
/// let model = ModelName::new("gemini-embedding-001");
/// let embed = |to| capabilities_for(Operation::Embed, Dialect::OpenAiChat, to, &model).set;
/// assert!(embed(Dialect::OpenAiChat).has(Need::TokenInputs));
/// assert!(embed(Dialect::Gemini).has(Need::Embeddings));
/// assert!(!embed(Dialect::Gemini).has(Need::TokenInputs));
/// assert!(!embed(Dialect::AnthropicMessages).has(Need::Embeddings));
/// ```
#[must_use]
pub fn capabilities_for(
    operation: Operation,
    caller: Dialect,
    upstream: Dialect,
    model: &ModelName,
) -> Capabilities {
    let between = capabilities_between(caller, upstream);
    match operation {
        Operation::Generate | Operation::CountTokens => between,
        Operation::Embed => embedding::carried(between, caller, upstream, model),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_counted_between_the_two_who_do() {
        let model = ModelName::new("m");
        let counts = |caller, upstream| {
            capabilities_for(Operation::CountTokens, caller, upstream, &model)
                .set
                .has(Need::CountTokens)
        };
        let (anthropic, gemini) = (Dialect::AnthropicMessages, Dialect::Gemini);
        for (caller, upstream, can) in [
            (anthropic, anthropic, true),
            (anthropic, gemini, true),
            (gemini, anthropic, true),
            (anthropic, Dialect::OpenAiChat, false),
            (gemini, Dialect::CohereV2, false),
        ] {
            assert_eq!(counts(caller, upstream), can, "{caller} to {upstream}");
        }
    }
}

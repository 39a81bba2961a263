//! What a request needs, and what a channel or dialect can carry.

use backstop_units::Tokens;
use serde::{Deserialize, Serialize};

/// One thing a request may need from whoever serves it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Need {
    /// The answer as a stream.
    Streaming,
    /// Function tools.
    Tools,
    /// Several tool calls in one turn, asked for or already in the history.
    ParallelTools,
    /// Tools that only the caller's dialect knows (provider-side search, code execution).
    ProviderTools,
    /// An answer that follows a JSON schema.
    JsonSchema,
    /// An answer that is some JSON object.
    JsonObject,
    /// Pictures carried in the request.
    Images,
    /// Pictures the provider has to fetch.
    ImageUrls,
    /// Sound, in or out.
    Audio,
    /// Documents and files.
    Files,
    /// More than one answer.
    ManyChoices,
    /// Token probabilities.
    Logprobs,
    /// Reasoning, asked for explicitly.
    Reasoning,
    /// What one provider keeps and no other has: an earlier response, a stored conversation or
    /// prompt, work in the background.
    StoredState,
    /// Vectors for texts, instead of an answer.
    Embeddings,
    /// Vectors for several texts in one request.
    ManyInputs,
    /// Vectors for texts that are given as ids of tokens.
    TokenInputs,
    /// A count of tokens, instead of an answer.
    CountTokens,
    /// A context window that holds the request.
    Context,
}

impl Need {
    /// Every need, in the order in which [`uncovered`] looks at them.
    pub const ALL: [Self; 19] = [
        Self::Streaming,
        Self::Tools,
        Self::ParallelTools,
        Self::ProviderTools,
        Self::JsonSchema,
        Self::JsonObject,
        Self::Images,
        Self::ImageUrls,
        Self::Audio,
        Self::Files,
        Self::ManyChoices,
        Self::Logprobs,
        Self::Reasoning,
        Self::StoredState,
        Self::Embeddings,
        Self::ManyInputs,
        Self::TokenInputs,
        Self::CountTokens,
        Self::Context,
    ];

    /// The name used in configuration, trails and messages.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Streaming => "streaming",
            Self::Tools => "tools",
            Self::ParallelTools => "parallel_tools",
            Self::ProviderTools => "provider_tools",
            Self::JsonSchema => "json_schema",
            Self::JsonObject => "json_object",
            Self::Images => "images",
            Self::ImageUrls => "image_urls",
            Self::Audio => "audio",
            Self::Files => "files",
            Self::ManyChoices => "many_choices",
            Self::Logprobs => "logprobs",
            Self::Reasoning => "reasoning",
            Self::StoredState => "stored_state",
            Self::Embeddings => "embeddings",
            Self::ManyInputs => "many_inputs",
            Self::TokenInputs => "token_inputs",
            Self::CountTokens => "count_tokens",
            Self::Context => "context",
        }
    }

    const fn bit(self) -> u32 {
        1 << self as u32
    }
}

/// A set of needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct NeedSet(u32);

impl NeedSet {
    /// Every need.
    #[must_use]
    pub fn all() -> Self {
        Need::ALL.into_iter().collect()
    }

    /// Whether `need` is among them.
    #[must_use]
    pub const fn has(self, need: Need) -> bool {
        self.0 & need.bit() != 0
    }

    /// The set with `need`.
    #[must_use]
    pub const fn with(self, need: Need) -> Self {
        Self(self.0 | need.bit())
    }

    /// The set without `need`.
    #[must_use]
    pub const fn without(self, need: Need) -> Self {
        Self(self.0 & !need.bit())
    }

    /// The needs in it, in their fixed order.
    pub fn iter(self) -> impl Iterator<Item = Need> {
        Need::ALL.into_iter().filter(move |need| self.has(*need))
    }
}

impl FromIterator<Need> for NeedSet {
    fn from_iter<I: IntoIterator<Item = Need>>(needs: I) -> Self {
        needs.into_iter().fold(Self::default(), Self::with)
    }
}

/// What a request needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Needs {
    /// The things it uses.
    pub set: NeedSet,
    /// Rough estimate of the prompt, from its length at four bytes a token, pictures left out.
    /// Good enough to tell a window that is far too small, no more.
    pub prompt: Tokens,
    /// Tokens the caller allows to be generated; 0 when it set no limit.
    pub answer: Tokens,
}

impl Needs {
    /// These needs and `need`.
    #[must_use]
    pub const fn with(mut self, need: Need) -> Self {
        self.set = self.set.with(need);
        self
    }

    /// Whether `need` is among them.
    #[must_use]
    pub const fn has(&self, need: Need) -> bool {
        self.set.has(need)
    }

    /// Prompt and answer together: the context window they take.
    #[must_use]
    pub const fn context(&self) -> Tokens {
        self.prompt.saturating_add(self.answer)
    }
}

/// What a channel or dialect can carry without loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// The things it can do.
    pub set: NeedSet,
    /// The context window; `None` when not declared, which covers any request.
    pub context_window: Option<Tokens>,
}

impl Capabilities {
    /// Everything, with no declared window.
    #[must_use]
    pub fn all() -> Self {
        Self {
            set: NeedSet::all(),
            context_window: None,
        }
    }

    /// These capabilities without `need`.
    #[must_use]
    pub const fn without(mut self, need: Need) -> Self {
        self.set = self.set.without(need);
        self
    }

    /// These capabilities and `need`.
    #[must_use]
    pub const fn with(mut self, need: Need) -> Self {
        self.set = self.set.with(need);
        self
    }

    /// What both can carry: a channel behind a dialect.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            set: NeedSet(self.set.0 & other.set.0),
            context_window: match (self.context_window, other.context_window) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            },
        }
    }
}

/// The first need that `capabilities` does not cover; `None` when the contract is covered.
#[must_use]
pub fn uncovered(needs: &Needs, capabilities: &Capabilities) -> Option<Need> {
    if let Some(need) = NeedSet(needs.set.0 & !capabilities.set.0).iter().next() {
        return Some(need);
    }
    let window = capabilities.context_window?;
    (needs.context() > window).then_some(Need::Context)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_uncovered_need_is_named() {
        let all = Capabilities::all();
        let small = Capabilities {
            context_window: Some(Tokens(1000)),
            ..all
        };
        let long = Needs {
            prompt: Tokens(900),
            answer: Tokens(101),
            ..Needs::default()
        };
        let fits = Needs {
            answer: Tokens(100),
            ..long
        };
        let tools = Needs::default().with(Need::Tools).with(Need::Logprobs);
        for (needs, capabilities, expected) in [
            (Needs::default(), all, None),
            (tools, all, None),
            (tools, all.without(Need::Logprobs), Some(Need::Logprobs)),
            (tools, all.without(Need::Images), None),
            (
                tools,
                all.without(Need::Logprobs).without(Need::Tools),
                Some(Need::Tools),
            ),
            (long, all, None),
            (long, small, Some(Need::Context)),
            (fits, small, None),
        ] {
            assert_eq!(uncovered(&needs, &capabilities), expected);
        }
    }

    #[test]
    fn both_sides_narrow() {
        let channel = Capabilities {
            context_window: Some(Tokens(8)),
            ..Capabilities::all().without(Need::Images)
        };
        let both = Capabilities::all().without(Need::Audio).and(channel);
        assert!(!both.set.has(Need::Images) && !both.set.has(Need::Audio));
        assert_eq!(both.context_window, Some(Tokens(8)));
        assert_eq!(both.set.iter().count(), Need::ALL.len() - 2);
    }

    #[test]
    fn a_need_is_spelled_as_it_serialises() {
        for need in Need::ALL {
            let spelled = serde_json::to_string(&need).expect("a plain enum");
            assert_eq!(spelled, format!("\"{}\"", need.as_str()));
        }
    }
}

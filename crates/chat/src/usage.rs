//! Tokens spent, counted one way.

use backstop_units::Tokens;
use serde::{Deserialize, Serialize};

/// Tokens of one answer as its provider reported them. Absent is not zero.
///
/// Dialects differ in what includes what; here `input` includes cached tokens and `output`
/// includes reasoning, and the other fields are parts of these two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// All prompt tokens, cached ones included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Tokens>,
    /// Of the input: read from the provider's cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<Tokens>,
    /// Of the input: written to the provider's cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<Tokens>,
    /// All generated tokens, reasoning included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Tokens>,
    /// Of the output: reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<Tokens>,
}

impl Usage {
    /// Whether nothing at all was reported.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Input and output together; absent when neither was reported.
    #[must_use]
    pub fn total(&self) -> Option<Tokens> {
        match (self.input, self.output) {
            (None, None) => None,
            (input, output) => Some(
                input
                    .unwrap_or_default()
                    .saturating_add(output.unwrap_or_default()),
            ),
        }
    }

    /// This usage with whatever `later` reports put over it.
    #[must_use]
    pub fn updated(self, later: Self) -> Self {
        Self {
            input: later.input.or(self.input),
            cache_read: later.cache_read.or(self.cache_read),
            cache_write: later.cache_write.or(self.cache_write),
            output: later.output.or(self.output),
            reasoning: later.reasoning.or(self.reasoning),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_is_not_zero() {
        let nothing = Usage::default();
        assert!(nothing.is_empty());
        assert_eq!(nothing.total(), None);
        let zero = Usage {
            output: Some(Tokens(0)),
            ..nothing
        };
        assert!(!zero.is_empty());
        assert_eq!(zero.total(), Some(Tokens(0)));
    }

    #[test]
    fn later_reports_replace_only_what_they_name() {
        let start = Usage {
            input: Some(Tokens(21)),
            cache_read: Some(Tokens(5)),
            ..Usage::default()
        };
        let end = Usage {
            input: Some(Tokens(30)),
            output: Some(Tokens(13)),
            ..Usage::default()
        };
        let both = start.updated(end);
        assert_eq!(both.input, Some(Tokens(30)));
        assert_eq!(both.cache_read, Some(Tokens(5)));
        assert_eq!(both.total(), Some(Tokens(43)));
    }
}

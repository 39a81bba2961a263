//! How this dialect counts: `input_tokens` excludes what was read from or written to the cache,
//! `output_tokens` includes thinking. A stream reports in pieces, the last one counts.

use backstop_chat::Usage;
use backstop_units::Tokens;

use crate::scan::{Fault, Scanner};

/// The counts as reported, kept apart so that later reports can replace earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Counts {
    pub(super) input: Option<u64>,
    pub(super) cache_write: Option<u64>,
    pub(super) cache_read: Option<u64>,
    pub(super) output: Option<u64>,
    pub(super) thinking: Option<u64>,
}

impl Counts {
    /// The counts of the usage object that comes next.
    pub(super) fn scan(s: &mut Scanner<'_>) -> Result<Self, Fault> {
        let mut counts = Self::default();
        s.object_or_skip(|s, member| {
            match &*member.key.decode() {
                "input_tokens" => counts.input = s.count_or_skip()?,
                "cache_creation_input_tokens" => counts.cache_write = s.count_or_skip()?,
                "cache_read_input_tokens" => counts.cache_read = s.count_or_skip()?,
                "output_tokens" => counts.output = s.count_or_skip()?,
                "output_tokens_details" => s.object_or_skip(|s, member| {
                    if member.is("thinking_tokens") {
                        counts.thinking = s.count_or_skip()?;
                    } else {
                        s.skip()?;
                    }
                    Ok::<(), Fault>(())
                })?,
                _ => drop(s.skip()?),
            }
            Ok::<(), Fault>(())
        })?;
        Ok(counts)
    }

    /// These counts with whatever `later` reports put over them.
    pub(super) fn updated(self, later: Self) -> Self {
        Self {
            input: later.input.or(self.input),
            cache_write: later.cache_write.or(self.cache_write),
            cache_read: later.cache_read.or(self.cache_read),
            output: later.output.or(self.output),
            thinking: later.thinking.or(self.thinking),
        }
    }

    /// The neutral count; `None` when nothing was reported.
    pub(super) fn usage(self) -> Option<Usage> {
        let cached = self
            .cache_read
            .unwrap_or(0)
            .saturating_add(self.cache_write.unwrap_or(0));
        let usage = Usage {
            input: self.input.map(|input| Tokens(input.saturating_add(cached))),
            cache_read: self.cache_read.map(Tokens),
            cache_write: self.cache_write.map(Tokens),
            output: self.output.map(Tokens),
            reasoning: self.thinking.map(Tokens),
        };
        (!usage.is_empty()).then_some(usage)
    }
}

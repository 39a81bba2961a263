//! What tokens cost.

use backstop_chat::Usage;
use backstop_units::{ByteCount, MicroUsd, Tokens};

/// Prices of one model, in micro-dollars for a million tokens (a dollar a million is 1,000,000).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Price {
    /// Of the prompt.
    pub input: u64,
    /// Of the answer, reasoning included.
    pub output: u64,
    /// Of what the provider read from its cache. Absent: as the prompt.
    pub cache_read: Option<u64>,
    /// Of what it wrote to its cache. Absent: as the prompt.
    pub cache_write: Option<u64>,
}

impl Price {
    /// What an answer cost, rounded up; `None` when its tokens are not known.
    #[must_use]
    pub fn cost(&self, usage: &Usage) -> Option<MicroUsd> {
        if usage.input.is_none() && usage.output.is_none() {
            return None;
        }
        let count = |tokens: Option<Tokens>| u128::from(tokens.unwrap_or_default().0);
        let (read, written) = (count(usage.cache_read), count(usage.cache_write));
        let plain = count(usage.input).saturating_sub(read + written);
        let parts = [
            (plain, self.input),
            (read, self.cache_read.unwrap_or(self.input)),
            (written, self.cache_write.unwrap_or(self.input)),
            (count(usage.output), self.output),
        ];
        let sum: u128 = parts
            .iter()
            .map(|(tokens, price)| tokens.saturating_mul(u128::from(*price)))
            .fold(0, u128::saturating_add);
        let whole = sum.div_ceil(1_000_000);
        Some(MicroUsd(i64::try_from(whole).unwrap_or(i64::MAX)))
    }

    /// The most that a request of `tokens` could cost: all of the prompt anew.
    #[must_use]
    pub fn ceiling(&self, prompt: Tokens, answer: Tokens) -> MicroUsd {
        let dearest = Self {
            input: self.input.max(self.cache_write.unwrap_or(0)),
            ..*self
        };
        let usage = Usage {
            input: Some(prompt),
            output: Some(answer),
            ..Usage::default()
        };
        dearest.cost(&usage).unwrap_or_default()
    }
}

/// How many tokens the prompt of a body may be: one for every byte, the most any tokenizer of bytes
/// makes of it. Pictures are more bytes than tokens.
#[must_use]
pub const fn estimate(body: ByteCount) -> Tokens {
    Tokens(body.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(input: u64, read: u64, written: u64, output: u64) -> Usage {
        Usage {
            input: Some(Tokens(input)),
            cache_read: Some(Tokens(read)),
            cache_write: Some(Tokens(written)),
            output: Some(Tokens(output)),
            reasoning: None,
        }
    }

    #[test]
    fn each_kind_of_token_has_its_price() {
        let price = Price {
            input: 3_000_000,
            output: 15_000_000,
            cache_read: Some(300_000),
            cache_write: Some(3_750_000),
        };
        for (usage, cost) in [
            (usage(1_000, 0, 0, 0), 3_000),
            (usage(0, 0, 0, 1_000), 15_000),
            (usage(1_000, 1_000, 0, 0), 300),
            (usage(1_000, 0, 1_000, 0), 3_750),
            (usage(1_000, 200, 300, 100), 1_500 + 60 + 1_125 + 1_500),
            // Never rounded to nothing.
            (usage(0, 0, 0, 0), 0),
            (usage(1, 1, 0, 0), 1),
            // A provider that counts more cached tokens than there were.
            (usage(10, 1_000, 0, 0), 300),
        ] {
            assert_eq!(price.cost(&usage), Some(MicroUsd(cost)), "{usage:?}");
        }
        assert_eq!(price.cost(&Usage::default()), None);
        let most = usage(u64::MAX, 0, 0, u64::MAX);
        assert_eq!(price.cost(&most), Some(MicroUsd(i64::MAX)));
        assert_eq!(price.ceiling(Tokens(1_000), Tokens(0)), MicroUsd(3_750));
    }
}

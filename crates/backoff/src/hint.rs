//! What a provider's hint and the deadline make of the formula.

use std::time::Duration;

/// Which key the next attempt would use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextKey {
    /// The key that was just refused: its hint is about it.
    Same,
    /// Another one: the hint says nothing about it.
    Fresh,
}

/// How long to wait before the next attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// This long, and it fits.
    For(Duration),
    /// The wait does not fit into what is left: no wait on this key. Rotate, fall back, or end.
    TooLong,
}

/// Weighs the formula's delay against the provider's hint and the time left.
///
/// On the same key the longer of the two counts, on a fresh key the formula alone. `left` is the
/// time that may be waited: up to the deadline, less what a useful attempt needs after it.
#[must_use]
pub fn wait(formula: Duration, hint: Option<Duration>, key: NextKey, left: Duration) -> Wait {
    let wanted = match key {
        NextKey::Same => formula.max(hint.unwrap_or_default()),
        NextKey::Fresh => formula,
    };
    if wanted <= left {
        Wait::For(wanted)
    } else {
        Wait::TooLong
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_key_waits_for_the_longer_and_a_fresh_one_by_formula() {
        use NextKey::{Fresh, Same};
        const S: fn(u64) -> Duration = Duration::from_secs;
        for (formula, hint, key, left, want) in [
            (S(1), None, Same, S(9), Wait::For(S(1))),
            (S(1), Some(S(4)), Same, S(9), Wait::For(S(4))),
            (S(5), Some(S(4)), Same, S(9), Wait::For(S(5))),
            (S(1), Some(S(20)), Same, S(9), Wait::TooLong),
            (S(1), Some(S(20)), Fresh, S(9), Wait::For(S(1))),
            (S(10), None, Fresh, S(9), Wait::TooLong),
            (S(9), None, Same, S(9), Wait::For(S(9))),
            (S(0), None, Same, S(0), Wait::For(S(0))),
            (S(0), Some(Duration::MAX), Same, S(60), Wait::TooLong),
        ] {
            assert_eq!(
                wait(formula, hint, key, left),
                want,
                "{formula:?} {hint:?} {key:?}"
            );
        }
    }
}

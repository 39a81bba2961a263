//! How much may be held back, and until when.

use std::time::Duration;

use backstop_units::{ByteCount, Tokens};

use crate::error::Error;

/// Where the commit point lies. Chosen per route or per request; first output unless told
/// otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CommitRule {
    /// The first output commits. Startup is held within [`HoldLimits`].
    #[default]
    FirstOutput,
    /// Output is held for a while longer, for streams that die young.
    Window(Window),
    /// The whole answer is held, then replayed: slow to the first token, rescued from any break.
    Complete,
}

impl CommitRule {
    /// The most bytes of one stream that [`Window`](Self::Window) and
    /// [`Complete`](Self::Complete) hold before they commit: 8 MiB.
    pub const MOST_HELD: ByteCount = ByteCount::mib(8);
}

/// How long output is held, counted from the first of it: a time, a number of tokens, or whichever
/// is reached first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    wait: Option<Duration>,
    tokens: Option<Tokens>,
}

impl Window {
    /// A window with at least one end, each above zero.
    ///
    /// # Errors
    /// [`Error::EmptyWindow`] when neither is given or one is zero.
    pub fn new(wait: Option<Duration>, tokens: Option<Tokens>) -> Result<Self, Error> {
        let endless = wait.is_none() && tokens.is_none();
        if endless || wait == Some(Duration::ZERO) || tokens == Some(Tokens(0)) {
            return Err(Error::EmptyWindow);
        }
        Ok(Self { wait, tokens })
    }

    /// The longest time from the first output to the commit.
    #[must_use]
    pub const fn wait(self) -> Option<Duration> {
        self.wait
    }

    /// The number of tokens that commits.
    #[must_use]
    pub const fn tokens(self) -> Option<Tokens> {
        self.tokens
    }
}

/// How much startup is held while waiting for the first output. Comments take bytes but do not
/// count as events: a provider that keeps the line open with one a second must not force the
/// commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HoldLimits {
    events: usize,
    bytes: ByteCount,
}

impl HoldLimits {
    /// The largest number of events that can be asked for.
    pub const MOST_EVENTS: usize = 65_536;

    /// Holds at most `events` (1 to [`MOST_EVENTS`](Self::MOST_EVENTS)) and `bytes` (1 to
    /// [`CommitRule::MOST_HELD`]); an event beyond either commits.
    ///
    /// # Errors
    /// When one is out of range.
    pub fn new(events: usize, bytes: ByteCount) -> Result<Self, Error> {
        if !(1..=Self::MOST_EVENTS).contains(&events) {
            return Err(Error::HeldEvents {
                events,
                most: Self::MOST_EVENTS,
            });
        }
        if !(ByteCount(1)..=CommitRule::MOST_HELD).contains(&bytes) {
            return Err(Error::HeldBytes {
                bytes,
                most: CommitRule::MOST_HELD,
            });
        }
        Ok(Self { events, bytes })
    }

    /// The most events held.
    #[must_use]
    pub const fn events(self) -> usize {
        self.events
    }

    /// The most bytes held.
    #[must_use]
    pub const fn bytes(self) -> ByteCount {
        self.bytes
    }
}

impl Default for HoldLimits {
    /// 64 events or 256 KiB, whichever is reached first.
    fn default() -> Self {
        Self {
            events: 64,
            bytes: ByteCount::kib(256),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_out_of_range_are_refused() {
        let most = CommitRule::MOST_HELD;
        for (events, bytes, good) in [
            (1, ByteCount(1), true),
            (HoldLimits::MOST_EVENTS, most, true),
            (0, ByteCount(1), false),
            (HoldLimits::MOST_EVENTS + 1, ByteCount(1), false),
            (1, ByteCount(0), false),
            (1, ByteCount(most.0 + 1), false),
        ] {
            assert_eq!(
                HoldLimits::new(events, bytes).is_ok(),
                good,
                "{events} {bytes}"
            );
        }
        let default = HoldLimits::default();
        assert_eq!(
            HoldLimits::new(default.events(), default.bytes()),
            Ok(default)
        );
    }

    #[test]
    fn a_window_has_an_end() {
        let second = Some(Duration::from_secs(1));
        for (wait, tokens, good) in [
            (second, None, true),
            (None, Some(Tokens(1)), true),
            (second, Some(Tokens(1)), true),
            (None, None, false),
            (Some(Duration::ZERO), Some(Tokens(1)), false),
            (second, Some(Tokens(0)), false),
        ] {
            assert_eq!(
                Window::new(wait, tokens).is_ok(),
                good,
                "{wait:?} {tokens:?}"
            );
        }
    }
}

//! Events held back before the commit point, and what is left of the hold after it.

use std::fmt;

use backstop_units::{ByteCount, Moment, Tokens};

use crate::frame::Frame;
use crate::meaning::Meaning;
use crate::rule::{CommitRule, HoldLimits};

/// What one event adds to a hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Weight {
    /// Its size toward the caller.
    pub bytes: ByteCount,
    /// The output tokens in it, counted or estimated; zero when nobody asks for a token window.
    pub tokens: Tokens,
}

impl Weight {
    /// The size of `frame`, with no tokens.
    #[must_use]
    pub fn of(frame: &Frame) -> Self {
        Self {
            bytes: ByteCount(frame.raw().len() as u64),
            tokens: Tokens(0),
        }
    }
}

/// Why a hold is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CommitReason {
    /// The first output arrived.
    FirstOutput,
    /// The window's time has passed since the first output.
    WindowTime,
    /// The window's tokens have arrived.
    WindowTokens,
    /// The answer is complete.
    Finished,
    /// The hold may not grow further.
    Full,
}

/// What was thrown away with a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Discarded {
    /// Events, comments included.
    pub events: usize,
    /// Their size.
    pub bytes: ByteCount,
    /// Output tokens generated for nothing.
    pub tokens: Tokens,
}

/// The time before the commit point: events are kept in order, `T` being the caller-facing form of
/// one. They can be thrown away, and another attempt begun, or handed over once and for all.
pub struct Hold<T> {
    rule: CommitRule,
    limits: HoldLimits,
    events: Vec<T>,
    /// Events that are not comments.
    counted: usize,
    bytes: ByteCount,
    tokens: Tokens,
    first_output: Option<Moment>,
    finished: bool,
}

impl<T> Hold<T> {
    /// An empty hold. `limits` bound the startup under [`CommitRule::FirstOutput`]; the other
    /// rules are bounded by [`CommitRule::MOST_HELD`].
    #[must_use]
    pub const fn new(rule: CommitRule, limits: HoldLimits) -> Self {
        Self {
            rule,
            limits,
            events: Vec::new(),
            counted: 0,
            bytes: ByteCount(0),
            tokens: Tokens(0),
            first_output: None,
            finished: false,
        }
    }

    /// Keeps an event; a reason in the answer says that the hold is over and
    /// [`commit`](Self::commit) is due. Error events are not for holding: they fail the attempt.
    pub fn on_event(
        &mut self,
        now: Moment,
        meaning: Meaning,
        weight: Weight,
        event: T,
    ) -> Option<CommitReason> {
        self.events.push(event);
        self.counted += usize::from(meaning != Meaning::Comment);
        self.bytes = ByteCount(self.bytes.0.saturating_add(weight.bytes.0));
        self.tokens = self.tokens.saturating_add(weight.tokens);
        if meaning.is_output() {
            self.first_output.get_or_insert(now);
        }
        self.finished |= meaning == Meaning::Done;
        self.due(now)
    }

    /// Why the hold is over at `now`, if it is.
    #[must_use]
    pub fn due(&self, now: Moment) -> Option<CommitReason> {
        let by_rule = match (self.rule, self.first_output) {
            (CommitRule::FirstOutput, Some(_)) => Some(CommitReason::FirstOutput),
            (CommitRule::Window(window), Some(_)) => {
                let enough = window.tokens().is_some_and(|most| self.tokens >= most);
                let late = self.next_wake().is_some_and(|end| end <= now);
                let by_time = late.then_some(CommitReason::WindowTime);
                if enough {
                    Some(CommitReason::WindowTokens)
                } else {
                    by_time
                }
            }
            (CommitRule::Complete, Some(_)) | (_, None) => None,
        };
        let finished = self.finished.then_some(CommitReason::Finished);
        let full = self.is_over_limit().then_some(CommitReason::Full);
        by_rule.or(finished).or(full)
    }

    /// When time alone will end the hold.
    #[must_use]
    pub fn next_wake(&self) -> Option<Moment> {
        let CommitRule::Window(window) = self.rule else {
            return None;
        };
        Some(self.first_output? + window.wait()?)
    }

    /// Throws the events of a failed attempt away. The hold is as new, for the next attempt.
    pub fn discard(&mut self) -> Discarded {
        let discarded = Discarded {
            events: self.events.len(),
            bytes: self.bytes,
            tokens: self.tokens,
        };
        *self = Self::new(self.rule, self.limits);
        discarded
    }

    /// Crosses the commit point: hands the events over in order and ends the hold for good.
    #[must_use]
    pub fn commit(self, now: Moment, reason: CommitReason) -> (Committed, Vec<T>) {
        let committed = Committed {
            at: now,
            reason,
            first_output: self.first_output,
        };
        (committed, self.events)
    }

    /// The number of events held, comments included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether nothing is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// The size of what is held.
    #[must_use]
    pub const fn bytes(&self) -> ByteCount {
        self.bytes
    }

    /// When the first output came, if it has come.
    #[must_use]
    pub const fn first_output(&self) -> Option<Moment> {
        self.first_output
    }

    fn is_over_limit(&self) -> bool {
        match self.rule {
            CommitRule::FirstOutput => {
                self.counted > self.limits.events() || self.bytes > self.limits.bytes()
            }
            CommitRule::Window(_) | CommitRule::Complete => self.bytes > CommitRule::MOST_HELD,
        }
    }
}

impl<T> fmt::Debug for Hold<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hold")
            .field("rule", &self.rule)
            .field("events", &self.events.len())
            .field("bytes", &self.bytes)
            .field("first_output", &self.first_output)
            .finish_non_exhaustive()
    }
}

/// The time after the commit point. It remembers when and why; nothing leads back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Committed {
    at: Moment,
    reason: CommitReason,
    first_output: Option<Moment>,
}

impl Committed {
    /// When the commit point was crossed.
    #[must_use]
    pub const fn at(&self) -> Moment {
        self.at
    }

    /// Why.
    #[must_use]
    pub const fn reason(&self) -> CommitReason {
        self.reason
    }

    /// When the upstream's first output came: before [`at`](Self::at) when output was held, absent
    /// when a full hold committed startup alone.
    #[must_use]
    pub const fn first_output(&self) -> Option<Moment> {
        self.first_output
    }
}

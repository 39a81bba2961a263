//! What code that wants a say in a journey may decide.
//!
//! A hook is asked about each channel afresh: before the first attempt on it, and after the last,
//! as long as nothing has reached the caller. Here is what it may answer; the code itself is asked
//! by the driver.

use std::borrow::Cow;
use std::time::Duration;

use backstop_chat::{Answer, Text};
use backstop_classifier::{Class, Verdict};

/// When a hook is asked about a channel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum HookStage {
    /// Before the first attempt on it; nothing is held for the request yet.
    Before,
    /// After the last attempt on it, its retries and key walk included.
    After(Aftermath),
}

/// How a stay on a channel ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Aftermath {
    /// With a whole answer that the caller has nothing of yet.
    Answered,
    /// With the failure that stands for the stay.
    Failed(Verdict),
}

/// What a hook says.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum HookDecision {
    /// Nothing: things take their course.
    #[default]
    Pass,
    /// This is the answer, in the place of the channel's. The journey ends well.
    Answer(Box<Answer>),
    /// The channel is not used, or what it gave is not accepted.
    Stop {
        /// What is wrong.
        error: HookError,
        /// Whether another channel may still be tried, where the gates let one follow. Otherwise
        /// the journey ends here, with this error.
        allow_fallbacks: bool,
    },
}

impl HookDecision {
    /// Answers with plain words.
    #[must_use]
    pub fn words(words: impl Into<Text>) -> Self {
        Self::Answer(Box::new(Answer::text(words)))
    }

    /// Ends the journey with `error`.
    #[must_use]
    pub const fn halt(error: HookError) -> Self {
        Self::Stop {
            error,
            allow_fallbacks: false,
        }
    }

    /// Not here, but perhaps on another channel.
    #[must_use]
    pub const fn not_here(error: HookError) -> Self {
        Self::Stop {
            error,
            allow_fallbacks: true,
        }
    }
}

/// What a caller is told when a hook stopped its request.
///
/// ```
/// use std::time::Duration;
/// use backstop_policy::HookError;
///
/// let error = HookError::new(429, "budget_spent", "The team's budget for today is spent.")
///     .retry_after(Duration::from_secs(3600));
/// assert_eq!(error.status(), 429);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookError {
    status: u16,
    code: Cow<'static, str>,
    message: Cow<'static, str>,
    retry_after: Option<Duration>,
    like: Option<Class>,
}

impl HookError {
    /// An error with the HTTP status the caller gets (400 to 599; any other becomes 500), a stable
    /// code for programs, and words for people. The words go to the caller as they are, and nowhere
    /// else: not into logs, trail or ledger.
    #[must_use]
    pub fn new(
        status: u16,
        code: impl Into<Cow<'static, str>>,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            status: if matches!(status, 400..=599) {
                status
            } else {
                500
            },
            code: code.into(),
            message: message.into(),
            retry_after: None,
            like: None,
        }
    }

    /// Tells the caller when to come again. Without it, layers above are told not to repeat the
    /// request.
    #[must_use]
    pub const fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// The class of failure that this counts as for substitutions that name their classes, as long
    /// as nothing else has failed. Default: none, so that only substitutions that name no class may
    /// follow.
    #[must_use]
    pub const fn like(mut self, class: Class) -> Self {
        self.like = Some(class);
        self
    }

    /// The HTTP status.
    #[must_use]
    pub const fn status(&self) -> u16 {
        self.status
    }

    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &str {
        &self.code
    }

    /// The words for the caller.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// When the caller may come again.
    #[must_use]
    pub const fn wait(&self) -> Option<Duration> {
        self.retry_after
    }

    /// The class it counts as.
    #[must_use]
    pub const fn class(&self) -> Option<Class> {
        self.like
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_that_is_no_error_becomes_one() {
        for (given, told) in [(403, 403), (599, 599), (200, 500), (0, 500), (600, 500)] {
            assert_eq!(HookError::new(given, "c", "m").status(), told);
        }
    }
}

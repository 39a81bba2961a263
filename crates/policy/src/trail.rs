//! The evidence of a journey: a row for each attempt, a record for the whole.

use std::time::Duration;

use backstop_chat::Usage;
use backstop_classifier::{Class, Kind};
use backstop_units::{ChannelId, KeyId, ModelName, Moment, ProviderId};
use serde::Serialize;

/// One attempt, or one channel that was passed over. Holds names and categories, never a key, a
/// prompt, an answer or a provider's message.
#[derive(Debug, Clone, PartialEq)]
pub struct AttemptRow {
    /// Place in the journey, from 1. Skipped channels have a row and no number of their own.
    pub attempt: Option<u32>,
    /// How this attempt came about.
    pub action: AttemptAction,
    /// The channel it went to.
    pub channel: ChannelId,
    /// The channel's provider.
    pub provider: ProviderId,
    /// The channel's model.
    pub model: ModelName,
    /// The key's identity; `None` at a keyless provider and for a skipped channel.
    pub key: Option<KeyId>,
    /// How it ended.
    pub outcome: Outcome,
    /// What kind of failure it was; `None` on success.
    pub class: Option<Class>,
    /// The finer kind, where one was seen.
    pub kind: Option<Kind>,
    /// The signal that decided the class, such as `code insufficient_quota`.
    pub signal: Option<String>,
    /// A stable word for the reason, such as `ttft_timeout`.
    pub fail_reason: Option<String>,
    /// The provider's own error code, bounded and safe to show.
    pub code: Option<String>,
    /// The status the provider sent; `None` when no response came.
    pub status: Option<u16>,
    /// Whether meaningful output had reached the caller when it ended.
    pub phase: Phase,
    /// How far the attempt itself had come.
    pub upstream_phase: UpstreamPhase,
    /// The provider's clamped retry hint.
    pub retry_after: Option<Duration>,
    /// Whether the attempt went out on a connection that had served before.
    pub connection_reused: Option<bool>,
    /// The wait before it.
    pub waited: Duration,
    /// When it started.
    pub started: Moment,
    /// Time to a ready connection, where one had to be made.
    pub connect: Option<Duration>,
    /// Time to the response's headers.
    pub headers: Option<Duration>,
    /// Time to the first meaningful output.
    pub first_output: Option<Duration>,
    /// Time to the end.
    pub total: Duration,
    /// Tokens, when the provider told them. Absent is not zero.
    pub usage: Option<Usage>,
}

/// How an attempt came about. Retry, fallback and substitution are never given one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum AttemptAction {
    /// The first attempt of the journey.
    #[default]
    Direct,
    /// Another attempt on the same channel, with the same key or a rotated one.
    Retry,
    /// Another channel that serves the same contract.
    Fallback,
    /// Another model, permitted by the operator or named by the caller.
    Substitution,
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It served the request.
    Success,
    /// It failed before output reached the caller.
    Failed,
    /// It broke after output had reached the caller.
    Partial,
    /// The caller left while it was under way.
    Cancelled,
    /// Never sent: the channel was passed over.
    Skipped,
}

/// Whether meaningful output had reached the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Nothing the caller could have acted on.
    #[default]
    BeforeOutput,
    /// Replaying would repeat or contradict what the caller has.
    AfterOutput,
}

/// How far an attempt had come upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum UpstreamPhase {
    /// No byte of it left.
    #[default]
    NotSent,
    /// Bytes left, or may have; nothing came back.
    Sent,
    /// The response's headers came.
    Headers,
    /// Meaningful output came.
    Output,
}

macro_rules! words {
    ($type:ident { $($variant:ident => $word:literal),+ $(,)? }) => {
        impl $type {
            /// The word used in logs, metrics, headers and records.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

words!(AttemptAction {
    Direct => "direct",
    Retry => "retry",
    Fallback => "fallback",
    Substitution => "substitution",
});
words!(Outcome {
    Success => "success",
    Failed => "failed",
    Partial => "partial",
    Cancelled => "cancelled",
    Skipped => "skipped",
});
words!(Phase { BeforeOutput => "before_output", AfterOutput => "after_output" });
words!(UpstreamPhase {
    NotSent => "not_sent",
    Sent => "sent",
    Headers => "headers",
    Output => "output",
});

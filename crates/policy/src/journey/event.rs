//! What can happen to a journey.

use backstop_chat::Usage;
use backstop_classifier::Verdict;
use backstop_keypool::{NoKey, Outlook};
use backstop_units::{KeyId, Moment, Roll};
use std::time::Duration;

use crate::hook::HookError;

/// Something that happened. The driver reports it with the moment it was seen.
#[derive(Debug, Clone)]
pub enum Event {
    /// No hook has anything to say.
    HookPassed,
    /// A hook answers in the channel's place. The driver keeps the answer.
    HookAnswered {
        /// The hook's name.
        hook: String,
    },
    /// A hook stops the channel, and without `allow_fallbacks` the journey.
    HookStopped {
        /// The hook's name.
        hook: String,
        /// What is wrong.
        error: HookError,
        /// Whether another channel may still be tried.
        allow_fallbacks: bool,
    },
    /// The channel's breaker lets the attempt through.
    PermitGranted,
    /// The channel's breaker is open until then.
    PermitRefused {
        /// When it may admit a probe.
        until: Moment,
    },
    /// The channel's group has had as many requests in this minute as it may.
    GroupFull {
        /// When it has room again.
        until: Moment,
    },
    /// A key serves the attempt; `None` at a keyless provider.
    Leased {
        /// The key's identity.
        key: Option<KeyId>,
        /// Whether it stands for short-lived tokens, so that a refusal may be the token's alone.
        renewable: bool,
    },
    /// No key can serve it now.
    NoKey(NoKey),
    /// The channel's share of retries allows one more; the roll spreads the wait.
    BudgetGranted {
        /// Chance for the wait's jitter.
        roll: Roll,
        /// Whether the next key would be one that this request has asked before.
        outlook: Result<Outlook, NoKey>,
    },
    /// The channel's share of retries is spent.
    BudgetDenied,
    /// The wait asked for is over.
    Woke,
    /// The request could not be put into the channel's dialect.
    Unbuildable {
        /// The field that stood in the way.
        field: String,
    },
    /// The key has another token than the one that was refused.
    Renewed,
    /// It has not: no token could be had.
    RenewFailed(Verdict),
    /// A connection has the request.
    Connected {
        /// Whether it had served before.
        reused: bool,
        /// Time to a new one, where one was made.
        connect: Option<Duration>,
    },
    /// The response's headers came.
    Headers {
        /// The status line.
        status: u16,
    },
    /// The first meaningful output of a stream came from the provider.
    Output,
    /// Held output went to the caller.
    Committed,
    /// Tokens, as the provider told them.
    Usage(Usage),
    /// The answer is whole: a body that keeps its contract, or a stream that ended as it should.
    Whole,
    /// The attempt failed.
    Failed {
        /// What kind of failure.
        verdict: Verdict,
        /// It was a reused connection that died before any response byte.
        stale_connection: bool,
    },
    /// A wake-up the machine asked for, or any look at the clock.
    Time,
    /// The caller hung up.
    CallerGone,
}

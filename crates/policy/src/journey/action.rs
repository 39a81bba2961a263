//! What a journey asks of its driver.

use std::sync::Arc;
use std::time::Duration;

use backstop_breaker::Outcome;
use backstop_classifier::Verdict;
use backstop_keypool::Refusal;
use backstop_units::{KeyId, Moment};

use crate::hook::{HookError, HookStage};
use crate::plan::Quota;
use crate::route::Channel;
use crate::sentence::Sentence;
use crate::trail::AttemptAction;

/// One thing for the driver to do. It does them in order.
#[derive(Debug, Clone)]
pub enum Action {
    /// Ask the hooks in their order until one does not pass; answer with `HookPassed`,
    /// `HookAnswered` or `HookStopped`. Never asked for where there are none.
    RunHook {
        /// When in the stay on the channel.
        stage: HookStage,
        /// The channel.
        channel: Arc<Channel>,
    },
    /// Ask the channel's breaker; answer with `PermitGranted` or `PermitRefused`.
    AskPermit {
        /// The channel.
        channel: Arc<Channel>,
        /// Nothing else is eligible: the least bad channel is tried whatever its breaker says.
        force: bool,
        /// The first attempt of this journey on the channel; it feeds the channel's retry budget.
        first: bool,
        /// The group's limit, where it has one that this journey was not counted in yet; answer with
        /// `GroupFull` where there is no room, and take no permit.
        quota: Option<Quota>,
    },
    /// Choose a key; answer with `Leased` or `NoKey`.
    Lease {
        /// The channel.
        channel: Arc<Channel>,
        /// Stay on this key.
        same: Option<KeyId>,
        /// Nothing else is eligible: a held key may be used.
        force: bool,
    },
    /// Draw on the channel's share of retries; answer with `BudgetGranted` or `BudgetDenied`.
    SpendBudget {
        /// The channel.
        channel: Arc<Channel>,
    },
    /// Give back a draw that bought nothing.
    RefundBudget {
        /// The channel.
        channel: Arc<Channel>,
    },
    /// Wait, holding nothing; answer with `Woke`.
    Wait {
        /// Until when.
        until: Moment,
    },
    /// Build the request from the original and send it.
    Send {
        /// Place in the journey, from 1.
        attempt: u32,
        /// The channel.
        channel: Arc<Channel>,
        /// The key leased for it.
        key: Option<KeyId>,
        /// How the attempt came about.
        action: AttemptAction,
        /// On a new connection: the one before was stale.
        fresh: bool,
    },
    /// Have another token fetched in place of the one that was refused; answer with `Renewed` or
    /// `RenewFailed`. Asked for at most once a key.
    Renew {
        /// The channel.
        channel: Arc<Channel>,
        /// The key whose token was refused.
        key: KeyId,
    },
    /// Close the attempt's connection to the provider now, and forget what is held of it.
    Abort,
    /// Tell breaker and key pool how the attempt ended.
    Settle {
        /// What the breaker learns.
        outcome: Outcome,
        /// What the key pool learns.
        key: KeyFate,
    },
    /// Say this in the routing log.
    Log(Sentence),
    /// The journey is over.
    Finish(Box<Ending>),
}

/// What the key pool learns from an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyFate {
    /// Nothing: the key was not to blame, or the permit was never used.
    Nothing,
    /// The key served.
    Served,
    /// The key was refused.
    Refused {
        /// In what way.
        refusal: Refusal,
        /// The provider's clamped hint.
        hint: Option<Duration>,
    },
}

/// How a journey ended.
#[derive(Debug, Clone)]
pub enum Ending {
    /// The caller has a whole answer.
    Success,
    /// Nothing worked, and nothing more may be tried.
    Exhausted(FinalError),
    /// Time ran out before an answer.
    Deadline(FinalError),
    /// A hook or policy ended it.
    PolicyStop(FinalError),
    /// The stream broke after output; the caller has a part.
    Partial(Verdict),
    /// The caller left.
    Cancelled,
}

impl Ending {
    /// The word for it in records and metrics.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Exhausted(_) => "exhausted",
            Self::Deadline(_) => "deadline",
            Self::PolicyStop(_) => "policy_stop",
            Self::Partial(_) => "partial",
            Self::Cancelled => "cancelled",
        }
    }
}

/// What the caller is told when nothing worked.
#[derive(Debug, Clone)]
pub struct FinalError {
    /// Whose error it is.
    pub cause: Cause,
    /// The failure behind it.
    pub verdict: Option<Verdict>,
    /// The attempt whose answer is shown, for [`Cause::Upstream`].
    pub attempt: Option<u32>,
    /// What a hook said, for [`Cause::Hook`].
    pub stopped: Option<HookError>,
    /// What a caller may wait for: a rate limit's own hint, or the earliest reopening.
    pub retry_after: Option<Duration>,
    /// `true`: layers above should not repeat the request.
    pub do_not_retry: bool,
}

/// Whose error the caller sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// A provider's, as it sent it (scrubbed), or the gateway's word for one that sent none.
    Upstream,
    /// Every key was refused for account reasons, within the retry budget.
    CredentialsExhausted,
    /// The request's own time ran out.
    Deadline,
    /// No channel of the route covers what the request needs.
    NothingEligible,
    /// No key of the channel serves the model.
    NoKeyServes,
    /// The groups that could serve it have had as many requests as they may.
    GroupsFull,
    /// A hook's: it stopped the journey, or the channel whose error is told.
    Hook,
    /// The gateway stopped before anything was sent.
    NotSent,
}

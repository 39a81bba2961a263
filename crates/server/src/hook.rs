//! The door for code that wants a say in a request's journey.
//!
//! What a hook may decide, and what its say can and cannot do, is `policy`'s; here is how it is
//! asked, and what it gets to see: names, needs and the trail so far. A caller's words are handed
//! out on explicit request only, its headers and any key never.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use backstop_chat::Needs;
use backstop_dialects::{Dialect, Operation};
use backstop_policy::{Aftermath, AttemptRow, Channel, HookDecision, HookStage, Leg};
use backstop_units::RequestId;
use bytes::Bytes;

/// Code that wants a say.
///
/// All hooks of a gateway are asked in their order, about each channel of a request afresh; the
/// first that does not pass decides. They are asked once a channel, however many retries and keys
/// it takes. A hook runs inside the request: it is given up at the request's deadline, and dropped
/// when the caller hangs up. Nothing is held for the request while it runs.
///
/// ```
/// use backstop_server::{Hook, HookAsk, HookDecision, HookError, Say};
///
/// /// Keeps large prompts away from one provider.
/// struct SmallOnly;
///
/// impl Hook for SmallOnly {
///     fn name(&self) -> &str {
///         "small_only"
///     }
///
///     fn before_attempt<'a>(&'a self, ask: &'a HookAsk) -> Say<'a> {
///         if ask.channel.provider.as_str() == "local" && ask.needs.prompt.0 > 4_000 {
///             let error = HookError::new(413, "prompt_too_large", "Too much for this provider.");
///             return HookDecision::not_here(error).into();
///         }
///         HookDecision::Pass.into()
///     }
/// }
/// ```
pub trait Hook: Send + Sync {
    /// Its name in the routing log, the trail and the header `x-backstop-hook`.
    fn name(&self) -> &str;

    /// Asked before the first attempt on a channel. Default: nothing to say.
    fn before_attempt<'a>(&'a self, ask: &'a HookAsk) -> Say<'a> {
        let _ = ask;
        HookDecision::Pass.into()
    }

    /// Asked when the attempts on a channel are over, retries included, and nothing has reached the
    /// caller. A stream that has begun to flow is past all say. Default: nothing to say.
    fn after_attempt<'a>(&'a self, ask: &'a HookAsk, aftermath: &'a Aftermath) -> Say<'a> {
        let _ = (ask, aftermath);
        HookDecision::Pass.into()
    }
}

impl fmt::Debug for dyn Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hook({})", self.name())
    }
}

/// What a hook says: at once, or when it has found out.
pub enum Say<'a> {
    /// At once.
    Now(HookDecision),
    /// When this is ready.
    Later(Pin<Box<dyn Future<Output = HookDecision> + Send + 'a>>),
}

impl<'a> Say<'a> {
    /// What `finding_out` comes to.
    pub fn later(finding_out: impl Future<Output = HookDecision> + Send + 'a) -> Self {
        Self::Later(Box::pin(finding_out))
    }
}

impl From<HookDecision> for Say<'_> {
    fn from(decision: HookDecision) -> Self {
        Self::Now(decision)
    }
}

impl fmt::Debug for Say<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Now(decision) => f.debug_tuple("Now").field(decision).finish(),
            Self::Later(_) => f.write_str("Later"),
        }
    }
}

/// What a hook is asked about.
#[non_exhaustive]
pub struct HookAsk {
    /// The request, end to end.
    pub request_id: RequestId,
    /// The configured route; `direct` for a caller's `provider/model`.
    pub route: String,
    /// What the caller put in `model`.
    pub requested: String,
    /// The caller's dialect.
    pub dialect: Dialect,
    /// What is asked for. Only a conversation can be answered by a hook.
    pub operation: Operation,
    /// Whether the answer is streamed.
    pub streaming: bool,
    /// What the request needs to be carried.
    pub needs: Needs,
    /// The channel, with provider, model and contract. Keys are in it by name.
    pub channel: Arc<Channel>,
    /// By what right the channel may serve.
    pub leg: Leg,
    /// Sends so far, over all channels and keys.
    pub sends: u32,
    /// The rows of all attempts so far.
    pub trail: Vec<AttemptRow>,
    /// What is left of the request's time.
    pub left: Duration,
    pub(crate) body: Bytes,
    pub(crate) answer: Option<Bytes>,
}

impl HookAsk {
    /// The caller's request as it came, prompts included. Keep it out of logs.
    #[must_use]
    pub const fn body(&self) -> &Bytes {
        &self.body
    }

    /// The whole answer in the caller's dialect, after an attempt that brought one. Keep it out of
    /// logs.
    #[must_use]
    pub const fn answer(&self) -> Option<&Bytes> {
        self.answer.as_ref()
    }
}

impl fmt::Debug for HookAsk {
    /// Names only.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HookAsk")
            .field("request_id", &self.request_id)
            .field("route", &self.route)
            .field("channel", &self.channel.id)
            .field("sends", &self.sends)
            .finish_non_exhaustive()
    }
}

/// A say that is not a pass, and whose it is.
pub(crate) struct Heard {
    pub(crate) hook: String,
    pub(crate) decision: HookDecision,
}

/// Asks one hook after another; `None` when all pass.
pub(crate) async fn hear(
    hooks: &[Arc<dyn Hook>],
    stage: &HookStage,
    ask: &HookAsk,
) -> Option<Heard> {
    for hook in hooks {
        let say = match stage {
            HookStage::Before => hook.before_attempt(ask),
            HookStage::After(aftermath) => hook.after_attempt(ask, aftermath),
        };
        let decision = match say {
            Say::Now(decision) => decision,
            Say::Later(finding_out) => finding_out.await,
        };
        if decision != HookDecision::Pass {
            let hook = hook.name().to_owned();
            return Some(Heard { hook, decision });
        }
    }
    None
}

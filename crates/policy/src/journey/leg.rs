//! A journey's stay on one channel: its key walk, its retries, and the error it leaves behind.

use backstop_classifier::{Class, Kind, Verdict};
use backstop_keypool::Walk;
use backstop_units::KeyId;

use super::action::{Cause, FinalError};
use super::onward::bare;
use crate::decision::{Repeat, conduct};
use crate::hook::HookError;
use crate::route::Channel;
use crate::sentence::Category;

/// What one stay on a channel has used and seen.
#[derive(Debug, Default)]
pub(super) struct LegRun {
    /// The key walk.
    pub(super) walk: Walk,
    /// The one key the request is held to on this channel, by its caller or its session.
    pub(super) pin: Option<KeyId>,
    /// Budgeted retries taken.
    pub(super) retries: u32,
    /// Attempts granted back: a key was refused for good, or a pooled connection was stale.
    pub(super) granted: u32,
    /// Sends on this channel.
    pub(super) sends: u32,
    /// Whether a stale connection was already replaced once.
    pub(super) resent: bool,
    /// Whether a 408 was already repeated once.
    pub(super) repeated_408: bool,
    /// Whether every key of the channel was refused for good.
    pub(super) pool_dead: bool,
    /// Whether the last failure holds the request to this channel.
    pub(super) bound: bool,
    /// Whether the hooks were asked about how it ended.
    pub(super) heard: bool,
    /// What a hook said against it.
    pub(super) stopped: Option<HookError>,
    /// Whether the stay is over and its error was taken.
    pub(super) closed: bool,
    /// The key of the attempt before.
    pub(super) last_key: Option<KeyId>,
    /// The failure before.
    pub(super) last: Option<Failure>,
    /// The latest refusal of the model or the place rather than of the account.
    refused_model: Option<Failure>,
    /// The latest refusal of the content.
    refused_content: Option<Failure>,
}

/// What ties a stay to one key.
#[derive(Debug)]
pub(super) enum Tie {
    /// Nothing.
    Free,
    /// This key comes first, where it can be had.
    Preferred(KeyId),
    /// This key or none.
    Held(KeyId),
}

/// A failed attempt as the ending remembers it.
#[derive(Debug, Clone)]
pub(super) struct Failure {
    /// Place in the journey.
    pub(super) attempt: u32,
    /// What it was.
    pub(super) verdict: Verdict,
}

impl LegRun {
    /// The stay after this one. Keys whose account was refused stay dead for the whole request.
    pub(super) fn next(&self, tie: Tie) -> Self {
        let (walk, pin) = match tie {
            Tie::Held(key) => (Walk::new(Some(key.clone())), Some(key)),
            Tie::Preferred(key) => (self.walk.next_leg(Some(key)), None),
            Tie::Free => (self.walk.next_leg(None), None),
        };
        Self {
            walk,
            pin,
            ..Self::default()
        }
    }

    /// Remembers a failure for the ending.
    pub(super) fn remember(&mut self, failure: Failure) {
        match (failure.verdict.class, failure.verdict.kind) {
            (Class::ModelAccess | Class::ModelGone | Class::RegionBlocked, _) => {
                self.refused_model = Some(failure.clone());
            }
            (Class::Credential, Some(Kind::ContentPolicy)) => {
                self.refused_content = Some(failure.clone());
            }
            _ => {}
        }
        self.last = Some(failure);
    }

    /// Whether a key of the channel is left that was not refused for good. Drained keys are none.
    pub(super) fn has_living_key(&self, channel: &Channel) -> bool {
        let mut keys = channel.pool.keys().iter();
        keys.any(|key| {
            key.weight() > 0.0 && channel.has_key(key.id()) && !self.walk.is_dead(key.id())
        })
    }

    /// Forgets what failed before the channel answered.
    pub(super) fn forget_failures(&mut self) {
        (self.last, self.refused_model, self.refused_content) = (None, None, None);
    }

    /// What ended the stay, for the routing log: a hook's say, else the last failure.
    pub(super) fn category(&self) -> Option<Category> {
        let stopped = self.stopped.as_ref().map(Category::of_stop);
        stopped.or_else(|| Some(Category::of(&self.last.as_ref()?.verdict)))
    }

    /// The failure that stands for the whole stay. Where the walk ended on a key refused for good,
    /// a refusal of the model or the place wins over whichever key died last. A refusal of the
    /// content binds the request whatever another key met after it. Else it is the last failure.
    pub(super) fn telling(&self) -> Option<&Failure> {
        let last = self.last.as_ref()?;
        let died = conduct(&last.verdict).repeat == Repeat::NextKey;
        let model = self.refused_model.as_ref().filter(|_| died);
        Some(model.or(self.refused_content.as_ref()).unwrap_or(last))
    }

    /// The error this stay leaves behind. A pool that died for account reasons, within the retry
    /// budget, is told apart from the caller's own key.
    pub(super) fn error(&self, channel: &Channel) -> Option<FinalError> {
        if let Some(stopped) = &self.stopped {
            return Some(FinalError {
                stopped: Some(stopped.clone()),
                retry_after: stopped.wait(),
                do_not_retry: stopped.wait().is_none(),
                ..bare(Cause::Hook)
            });
        }
        let told = self.telling()?;
        let of_account = matches!(
            (told.verdict.class, told.verdict.kind),
            (Class::Credential, kind) if kind != Some(Kind::ContentPolicy)
        ) || told.verdict.class == Class::Quota;
        let exhausted = self.pool_dead && of_account && self.sends <= channel.retry.max_retries;
        let limited = told.verdict.class == Class::RateLimit;
        Some(FinalError {
            cause: if exhausted {
                Cause::CredentialsExhausted
            } else {
                Cause::Upstream
            },
            attempt: (!exhausted).then_some(told.attempt),
            retry_after: told.verdict.retry_after.filter(|_| limited),
            stopped: None,
            do_not_retry: !may_be_repeated_above(&told.verdict),
            verdict: Some(told.verdict),
        })
    }
}

/// Whether a layer above may sensibly repeat a request that failed like this: where the gateway
/// itself might have waited and asked again.
fn may_be_repeated_above(verdict: &Verdict) -> bool {
    matches!(conduct(verdict).repeat, Repeat::SameKey | Repeat::Rotate)
}

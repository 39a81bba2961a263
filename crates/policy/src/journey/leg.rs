//! A journey's stay on one channel: its key walk, its retries, and the error it leaves behind.

use backstop_classifier::{Class, Kind, Verdict};
use backstop_keypool::Walk;
use backstop_units::KeyId;

use super::action::{Cause, FinalError};
use crate::route::Channel;

/// What one stay on a channel has used and seen.
#[derive(Debug)]
pub(super) struct LegRun {
    /// The key walk.
    pub(super) walk: Walk,
    /// Budgeted retries taken.
    pub(super) retries: u32,
    /// Attempts granted back because a key was permanently refused.
    pub(super) granted: u32,
    /// Sends on this channel.
    pub(super) sends: u32,
    /// Whether a stale connection was already replaced once.
    pub(super) resent: bool,
    /// Whether a 408 was already repeated once.
    pub(super) repeated_408: bool,
    /// Whether every key of the channel was refused for good.
    pub(super) pool_dead: bool,
    /// The key of the attempt before.
    pub(super) last_key: Option<KeyId>,
    /// The failure before.
    pub(super) last: Option<Failure>,
    /// A refusal of the request rather than of the account: model, region or content.
    refused_request: Option<Failure>,
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
    /// A stay that has not begun. `pin` holds it to one key.
    pub(super) fn new(pin: Option<KeyId>) -> Self {
        Self {
            walk: Walk::new(pin),
            retries: 0,
            granted: 0,
            sends: 0,
            resent: false,
            repeated_408: false,
            pool_dead: false,
            last_key: None,
            last: None,
            refused_request: None,
        }
    }

    /// Remembers a failure for the ending.
    pub(super) fn remember(&mut self, failure: Failure) {
        let of_request = matches!(
            failure.verdict.class,
            Class::ModelAccess | Class::ModelGone | Class::RegionBlocked
        ) || (failure.verdict.class == Class::Credential
            && failure.verdict.kind == Some(Kind::ContentPolicy));
        if of_request {
            self.refused_request = Some(failure.clone());
        }
        self.last = Some(failure);
    }

    /// Whether a key of the channel is left that was not refused for good.
    pub(super) fn has_living_key(&self, channel: &Channel) -> bool {
        channel.serving_keys().any(|key| !self.walk.is_dead(key))
    }

    /// Retries so far, budgeted and granted.
    pub(super) const fn repeats(&self) -> u32 {
        self.retries + self.granted
    }

    /// The error this stay leaves behind. A refusal of the request wins over whichever key died
    /// last; a pool that died for account reasons is told apart from the caller's own key; else
    /// the last failure.
    pub(super) fn error(&self, channel: &Channel) -> Option<FinalError> {
        let last = self.last.as_ref()?;
        let of_account =
            matches!(last.verdict.class, Class::Credential | Class::Quota) && self.pool_dead;
        let (cause, shown) = match &self.refused_request {
            Some(refused) => (Cause::Upstream, refused),
            None if of_account && self.sends <= channel.retry.max_retries => {
                (Cause::CredentialsExhausted, last)
            }
            None => (Cause::Upstream, last),
        };
        let hinted = shown.verdict.class == Class::RateLimit;
        Some(FinalError {
            cause,
            attempt: (cause == Cause::Upstream).then_some(shown.attempt),
            retry_after: shown.verdict.retry_after.filter(|_| hinted),
            do_not_retry: !may_be_repeated_above(&shown.verdict),
            verdict: Some(shown.verdict.clone()),
        })
    }
}

/// Whether a layer above may sensibly repeat a request that failed like this.
pub(super) const fn may_be_repeated_above(verdict: &Verdict) -> bool {
    matches!(
        verdict.class,
        Class::RateLimit | Class::Transient | Class::Timeout
    ) && !matches!(
        verdict.kind,
        Some(Kind::RequestLargerThanLimit | Kind::LimitZero)
    )
}

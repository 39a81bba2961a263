//! A short-lived token that is refused is renewed once before its key counts as refused.

use backstop_classifier::{Class, Kind, Verdict};
use backstop_units::{KeyId, Moment};

use super::action::Action;
use super::event::Event;
use super::leg::Failure;
use super::start::blank_row;
use super::{Attempt, Journey, Start, State};
use crate::sentence::Category;
use crate::trail::{AttemptAction, AttemptRow, Outcome};

/// A renewal that was asked for. Permit and lease are held meanwhile: if it fails, they learn of it.
#[derive(Debug)]
pub(super) struct Renewal {
    /// The refusal that led to it.
    verdict: Verdict,
    /// When it was asked for.
    asked: Moment,
}

/// Renewing a token.
impl Journey {
    /// The key to renew, where the failure may be its token's alone: a 401, or one that says the
    /// token ran out. Once a key and journey; a refusal of the content is none, and neither is a
    /// token that could not be had.
    pub(super) fn renewable(&self, attempt: &Attempt, verdict: &Verdict) -> Option<KeyId> {
        let key = self.leg.last_key.as_ref().filter(|_| attempt.renewable)?;
        let of_token = match verdict.kind {
            Some(Kind::RenewableToken) => true,
            Some(Kind::ContentPolicy | Kind::TokenFetch) => false,
            _ => verdict.status == Some(401),
        };
        let asks = verdict.class == Class::Credential
            && of_token
            && self.is_replayable(verdict)
            && !self.renewed.contains(key);
        asks.then(|| key.clone())
    }

    /// Free of the retry budget, but the send that follows counts. Where none is left the key is
    /// not blamed: nobody knows whether another token would have served.
    pub(super) fn ask_renewal(
        &mut self,
        now: Moment,
        attempt: &Attempt,
        verdict: &Verdict,
        key: KeyId,
    ) {
        let row = &mut self.trail[attempt.row];
        let kind = Some(Kind::RenewableToken);
        let expired = Verdict { kind, ..*verdict };
        row.kind = kind;
        row.fail_reason = Some(expired.fail_reason().to_owned());
        if self.gate(now, self.at).is_err() {
            self.settle_nothing();
            self.leg.bound = self.leg.pin.is_some();
            return self.leave_channel(now);
        }
        self.renewed.push(key.clone());
        let channel = self.channel();
        self.actions.push_back(Action::Renew { channel, key });
        self.state = State::AskedRenew(Renewal {
            verdict: *verdict,
            asked: now,
        });
    }

    pub(super) fn on_renewal(&mut self, now: Moment, renewal: Renewal, event: &Event) {
        match event {
            Event::Renewed => self.send_renewed(&renewal),
            Event::RenewFailed(verdict) => self.on_no_token(now, &renewal, verdict),
            Event::Time if now >= self.end() => {
                self.settle_nothing();
                self.finish_deadline(now, None);
            }
            _ => self.state = State::AskedRenew(renewal),
        }
    }

    /// The same key once more, with its new token. Nothing is learnt from the old one.
    fn send_renewed(&mut self, renewal: &Renewal) {
        self.settle_nothing();
        self.leg.granted += 1;
        self.ask_permit(Start {
            action: AttemptAction::Retry,
            same_key: self.leg.last_key.clone(),
            after: Some(Category::of(&renewal.verdict)),
            ..Start::default()
        });
    }

    /// No token could be had: an attempt that came no further than that.
    fn on_no_token(&mut self, now: Moment, renewal: &Renewal, verdict: &Verdict) {
        let (channel, key) = (self.channel(), self.leg.last_key.clone());
        self.leg.granted += 1;
        self.say_retry(Category::of(&renewal.verdict), key.as_ref());
        self.sends.add(self.is_primary(self.at));
        self.leg.sends += 1;
        let number = self.sends.total();
        self.trail.push(AttemptRow {
            attempt: Some(number),
            key,
            ..blank_row(&channel, AttemptAction::Retry, renewal.asked)
        });
        let attempt = Attempt {
            row: self.trail.len() - 1,
            number,
            paid: false,
            renewable: false,
        };
        self.write_failure(now, &attempt, verdict, Outcome::Failed);
        self.leg.remember(Failure {
            attempt: number,
            verdict: *verdict,
        });
        self.after_failure(now, verdict);
    }
}

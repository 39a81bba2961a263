//! The tokens that attempts present for keys which stand for some.

use std::sync::Arc;

use backstop_policy::{Channel, Event};
use backstop_providers::{Credential, Provider};
use backstop_units::KeyId;

use super::Drive;

impl Drive {
    /// Whether a key stands for tokens, so that a refusal may be the token's alone.
    pub(super) fn is_renewable(&self, channel: &Channel, key: Option<&KeyId>) -> bool {
        let provider = self.request.snapshot.providers.get(&channel.provider);
        let credential = provider.and_then(|provider| provider.credential(key?));
        credential.is_some_and(|credential| credential.token_source().is_some())
    }

    /// Has a token at hand where the key stands for some. `false` when the attempt is over: none
    /// could be had, or not in time.
    pub(super) async fn has_token(&mut self, provider: &Provider, key: Option<&KeyId>) -> bool {
        self.token = None;
        let source = key.and_then(|key| provider.credential(key)?.token_source());
        let (Some(key), Some(source)) = (key, source) else {
            return true;
        };
        let gateway = Arc::clone(&self.journal.gateway);
        let wall = gateway.clock.wall();
        match self.within(gateway.tokens.token(key, source, wall)).await {
            None => false,
            Some(Ok(token)) => {
                self.token = Some(token);
                true
            }
            Some(Err(verdict)) => {
                self.fail(*verdict);
                false
            }
        }
    }

    /// Has another token fetched in place of the one that was refused, for as long as the machine
    /// waits for it.
    pub(super) async fn renew(&mut self, channel: &Channel, key: &KeyId) {
        let snapshot = Arc::clone(&self.request.snapshot);
        let credential = snapshot
            .providers
            .get(&channel.provider)
            .and_then(|provider| provider.credential(key));
        // Only a key with a source is ever said to be renewable.
        let Some(source) = credential.and_then(Credential::token_source) else {
            return self.report(Event::Renewed);
        };
        let gateway = Arc::clone(&self.journal.gateway);
        let refused = self.token.take();
        let wall = gateway.clock.wall();
        let renewing = gateway.tokens.renew(key, source, refused.as_ref(), wall);
        let mut renewing = std::pin::pin!(renewing);
        loop {
            let Some(wake) = self.journal.journey.next_wake() else {
                return;
            };
            tokio::select! {
                biased;
                renewed = &mut renewing => {
                    return self.report(match renewed {
                        Ok(_) => Event::Renewed,
                        Err(verdict) => Event::RenewFailed(*verdict),
                    });
                }
                () = self.sleep_until(wake) => {}
            }
            self.report(Event::Time);
            if !self.journal.journey.in_renewal() {
                return;
            }
        }
    }
}

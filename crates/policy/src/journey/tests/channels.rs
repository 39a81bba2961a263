//! Channels for the rows.

use std::sync::Arc;

use backstop_backoff::{Backoff, BudgetParams};
use backstop_chat::Capabilities;
use backstop_keypool::{Key, ModelList, Pool};
use backstop_units::{ChannelId, KeyId, ModelName, ProviderId, Tokens};

use crate::route::{Channel, Clocks, HintUse, RetryTerms};

/// A channel `provider/m` with the keys named in `keys`; without any it asks for none.
pub(super) fn channel(provider: &str, keys: &str) -> Channel {
    let provider = ProviderId::new(provider);
    let model = ModelName::new("m");
    let keys: Vec<Key> = keys
        .split_whitespace()
        .map(|name| Key::new(KeyId::new(&provider, name), 1.0, ModelList::Any).expect("in range"))
        .collect();
    let pool = if keys.is_empty() {
        Pool::keyless()
    } else {
        Pool::new(keys).expect("names differ")
    };
    Channel {
        id: ChannelId::new(&provider, &model, &[]),
        provider,
        model,
        keys: Vec::new(),
        priority: 0,
        weight: 1.0,
        contract: Capabilities::all(),
        verified: false,
        pool: Arc::new(pool),
        retry: RetryTerms {
            max_retries: 0,
            backoff: Backoff::default(),
            budget: BudgetParams::default(),
            hint: HintUse::Honour,
        },
        breaker: backstop_breaker::Params::default(),
        clocks: Clocks::default(),
    }
}

impl Channel {
    pub(super) fn retries(mut self, max: u32) -> Self {
        self.retry.max_retries = max;
        self
    }

    pub(super) fn model(mut self, model: &str) -> Self {
        self.model = ModelName::new(model);
        self.id = ChannelId::new(&self.provider, &self.model, &[]);
        self
    }

    pub(super) fn window(mut self, tokens: u64) -> Self {
        self.contract.context_window = Some(Tokens(tokens));
        self
    }

    pub(super) fn verified(mut self) -> Self {
        self.verified = true;
        self
    }
}

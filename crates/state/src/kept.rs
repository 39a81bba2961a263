//! Answers that providers keep, by id: where each is kept, in a bounded number of places.

use backstop_units::{CallerName, ChannelId, KeyId, ModelName, ProviderId};

use crate::recent::Recent;
use crate::sync::{Mutex, lock};

/// How many are remembered until the configuration says otherwise.
const CAPACITY: usize = 100_000;

/// Where an answer is kept: the provider and the account behind the key. No other has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keeper {
    /// The channel that gave it.
    pub channel: ChannelId,
    /// Its provider.
    pub provider: ProviderId,
    /// Its model.
    pub model: ModelName,
    /// The key it was made with; none at a provider that asks for none.
    pub key: Option<KeyId>,
    /// The caller it was made for, where callers are told apart. It exists for nobody else.
    pub caller: Option<CallerName>,
}

#[derive(Debug)]
pub(crate) struct Kept(Mutex<Recent<Keeper>>);

impl Default for Kept {
    fn default() -> Self {
        Self(Mutex::new(Recent::new(CAPACITY)))
    }
}

impl Kept {
    pub(crate) fn find(&self, id: &str) -> Option<Keeper> {
        lock(&self.0).get(id).cloned()
    }

    pub(crate) fn put(&self, id: &str, keeper: Keeper) {
        lock(&self.0).put(id, keeper);
    }

    pub(crate) fn forget(&self, id: &str) {
        lock(&self.0).remove(id);
    }

    pub(crate) fn set_capacity(&self, capacity: usize) {
        lock(&self.0).set_capacity(capacity);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(key: &str) -> Keeper {
        let (provider, model) = (ProviderId::new("p"), ModelName::new("m"));
        Keeper {
            channel: ChannelId::new(&provider, &model, &[]),
            key: Some(KeyId::new(&provider, key)),
            caller: Some(CallerName::new("ann")),
            provider,
            model,
        }
    }

    #[test]
    fn an_answer_is_found_until_it_is_forgotten() {
        let kept = Kept::default();
        kept.put("resp_1", by("a"));
        kept.put("resp_2", by("b"));
        kept.put("resp_2", by("c"));
        assert_eq!(kept.find("resp_1"), Some(by("a")));
        assert_eq!(kept.find("resp_2"), Some(by("c")));
        assert_eq!(kept.find("resp_3"), None);
        kept.forget("resp_1");
        assert_eq!(kept.find("resp_1"), None);
    }

    #[test]
    fn the_least_recently_used_make_room() {
        let kept = Kept::default();
        kept.set_capacity(16);
        kept.put("old", by("a"));
        for n in 0..1_000 {
            kept.put(&format!("r{n}"), by("a"));
            assert!(kept.find("old").is_some());
        }
        assert_eq!(kept.find("r0"), None);
        assert!(kept.find("r999").is_some());
        kept.set_capacity(0);
        kept.put("new", by("a"));
        assert_eq!(kept.find("new"), None);
    }
}

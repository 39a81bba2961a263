//! Sessions by name, in a bounded number of places: who served each, the latest first.

use backstop_policy::Binding;

use crate::recent::Recent;
use crate::sync::{Arc, Mutex, lock};

/// How many are remembered until the configuration says otherwise.
const CAPACITY: usize = 10_000;

/// Who served a session, of the latest at most so many channels. A session wanders over a few, when
/// it wanders at all.
const MOST_BOUND: usize = 4;

#[derive(Debug)]
pub(crate) struct Sessions {
    bound: Mutex<Recent<Arc<[Binding]>>>,
}

impl Default for Sessions {
    fn default() -> Self {
        Self {
            bound: Mutex::new(Recent::new(CAPACITY)),
        }
    }
}

impl Sessions {
    pub(crate) fn find(&self, name: &str) -> Arc<[Binding]> {
        let mut sessions = lock(&self.bound);
        sessions
            .get(name)
            .map(|bound| Arc::clone(bound))
            .unwrap_or_default()
    }

    pub(crate) fn bind(&self, name: &str, binding: Binding) {
        let mut sessions = lock(&self.bound);
        let Some(bound) = sessions.get(name) else {
            return sessions.put(name, Arc::from([binding]));
        };
        if bound.first() != Some(&binding) {
            let others = bound.iter().filter(|one| one.channel != binding.channel);
            let others = others.take(MOST_BOUND - 1).cloned();
            *bound = std::iter::once(binding.clone()).chain(others).collect();
        }
    }

    pub(crate) fn set_capacity(&self, capacity: usize) {
        lock(&self.bound).set_capacity(capacity);
    }

    pub(crate) fn len(&self) -> usize {
        lock(&self.bound).len()
    }
}

#[cfg(test)]
mod tests {
    use backstop_units::{ChannelId, KeyId, ModelName, ProviderId};

    use super::*;

    fn by(model: &str, key: &str) -> Binding {
        let provider = ProviderId::new("p");
        Binding {
            channel: ChannelId::new(&provider, &ModelName::new(model), &[]),
            key: Some(KeyId::new(&provider, key)),
        }
    }

    #[test]
    fn a_session_is_bound_to_the_latest_that_served_it() {
        let sessions = Sessions::default();
        assert!(sessions.find("s").is_empty());
        for (binding, want) in [
            (by("m", "a"), vec![by("m", "a")]),
            (by("m", "a"), vec![by("m", "a")]),
            (by("n", "b"), vec![by("n", "b"), by("m", "a")]),
            // It moved: what the channel knew before is gone.
            (by("m", "c"), vec![by("m", "c"), by("n", "b")]),
        ] {
            sessions.bind("s", binding);
            assert_eq!(*sessions.find("s"), *want);
        }
        for n in 0..10 {
            sessions.bind("s", by(&format!("m{n}"), "a"));
            assert!(sessions.find("s").len() <= MOST_BOUND);
        }
        assert!(sessions.find("t").is_empty());
    }

    #[test]
    fn sessions_are_bounded_and_the_least_recently_used_make_room() {
        let sessions = Sessions::default();
        sessions.set_capacity(16);
        for n in 0..1_000 {
            sessions.bind(&format!("s{n}"), by("m", "a"));
            assert!(sessions.len() <= 16);
            sessions.bind("bound", by("m", "b"));
            assert!(!sessions.find("asked").is_empty() || n == 0);
            sessions.bind("asked", by("m", "c"));
        }
        assert_eq!(*sessions.find("bound"), [by("m", "b")]);
        assert!(!sessions.find("s999").is_empty());
        assert!(sessions.find("s0").is_empty());
        sessions.set_capacity(1);
        assert_eq!(sessions.len(), 1);
        assert!(!sessions.find("s999").is_empty(), "used last");
        sessions.set_capacity(0);
        sessions.bind("s", by("m", "a"));
        assert_eq!(sessions.len(), 0);
    }
}

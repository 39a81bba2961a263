//! Whose key it is.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::SystemTime;

use crate::{Caller, Denied, Error, KeyHash};

/// All callers of one configuration, by the hashes of their keys.
///
/// An empty register knows nobody: whether that means that everybody may ask is for the server to
/// say, which then listens on loopback only.
#[derive(Debug, Clone, Default)]
pub struct Register {
    by_hash: HashMap<KeyHash, Arc<Caller>>,
    callers: Vec<Arc<Caller>>,
}

impl Register {
    /// A register of these callers.
    ///
    /// # Errors
    /// When a key belongs to more than one of them: whose limits count would be chance.
    pub fn new(callers: impl IntoIterator<Item = Caller>) -> Result<Self, Error> {
        let mut register = Self::default();
        for caller in callers {
            let caller = Arc::new(caller);
            for hash in &caller.keys {
                if let Some(first) = register.by_hash.insert(*hash, Arc::clone(&caller)) {
                    return Err(Error::SharedKey {
                        first: first.name.clone(),
                        second: caller.name.clone(),
                    });
                }
            }
            register.callers.push(caller);
        }
        Ok(register)
    }

    /// Whether it knows nobody.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.callers.is_empty()
    }

    /// The callers, in the order of the configuration.
    #[must_use]
    pub fn callers(&self) -> &[Arc<Caller>] {
        &self.callers
    }

    /// Who presents `key`. The lookup goes by hash, so its time tells nothing about the keys there
    /// are; an expired key and an unknown one take the same way.
    ///
    /// # Errors
    /// When no caller has this key, or its caller's time is over.
    pub fn who(&self, key: &str, wall: SystemTime) -> Result<&Arc<Caller>, Denied> {
        let hash = KeyHash::of(key);
        let found = self.by_hash.get_key_value(&hash);
        let (kept, caller) = found.ok_or(Denied::UnknownKey)?;
        if !kept.is(&hash) {
            return Err(Denied::UnknownKey);
        }
        match caller.expires {
            Some(expires) if expires <= wall => Err(Denied::Expired),
            _ => Ok(caller),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use backstop_units::CallerName;

    use super::*;

    fn caller(name: &str, keys: &[&str]) -> Caller {
        Caller {
            keys: keys.iter().map(|key| KeyHash::of(key)).collect(),
            ..Caller::named(CallerName::new(name))
        }
    }

    #[test]
    fn a_key_leads_to_its_caller_and_no_other() {
        let register = Register::new([caller("one", &["k1", "k1-next"]), caller("two", &["k2"])])
            .expect("no key twice");
        let wall = SystemTime::UNIX_EPOCH;
        for (key, name) in [("k1", "one"), ("k1-next", "one"), ("k2", "two")] {
            let caller = register.who(key, wall).expect("known");
            assert_eq!(caller.name.as_str(), name);
        }
        for key in ["", "k", "k1 ", "k3"] {
            assert_eq!(register.who(key, wall).err(), Some(Denied::UnknownKey));
        }
    }

    #[test]
    fn keys_that_begin_alike_are_not_mixed_up() {
        let keys: Vec<String> = (0..1000).map(|n| format!("{:020}{n}", 7)).collect();
        let callers = keys.iter().map(|key| caller(key, &[key]));
        let register = Register::new(callers).expect("no key twice");
        for key in &keys {
            let caller = register.who(key, SystemTime::UNIX_EPOCH).expect("known");
            assert_eq!(caller.name.as_str(), key);
        }
    }

    #[test]
    fn a_key_of_two_callers_is_refused() {
        let both = Register::new([caller("one", &["k"]), caller("two", &["k"])]);
        assert!(matches!(both, Err(Error::SharedKey { .. })));
    }

    #[test]
    fn an_expired_key_is_one_no_longer() {
        let end = SystemTime::UNIX_EPOCH + Duration::from_secs(100);
        let caller = Caller {
            expires: Some(end),
            ..caller("one", &["k"])
        };
        let register = Register::new([caller]).expect("one");
        assert!(register.who("k", end - Duration::from_secs(1)).is_ok());
        assert_eq!(register.who("k", end).err(), Some(Denied::Expired));
    }
}

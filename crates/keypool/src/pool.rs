//! The keys of a provider, as configured.

use std::collections::HashSet;

use backstop_units::{KeyId, ModelName};

use crate::Error;

/// The largest weight: sums of any real pool stay exact enough to choose by.
const HEAVIEST: f64 = 1e6;

/// One key of a provider: its name, never its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Key {
    id: KeyId,
    weight: f64,
    models: ModelList,
}

/// The models a key may be used for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelList {
    /// All of them: `*`.
    Any,
    /// These alone. None at all when empty.
    Only(HashSet<ModelName>),
}

/// The keys of a provider. Immutable; a reload makes a new one.
#[derive(Debug, Clone, PartialEq)]
pub struct Pool {
    keys: Vec<Key>,
    keyless: bool,
    remembers: bool,
}

impl Key {
    /// The key called `id`. A key of twice the `weight` (default 1, 0 to a million) is chosen twice
    /// as often; a weight of 0 drains it: only a request pinned to it uses it.
    ///
    /// # Errors
    /// When `weight` is out of range or not a number.
    pub fn new(id: KeyId, weight: f64, models: ModelList) -> Result<Self, Error> {
        if !(0.0..=HEAVIEST).contains(&weight) {
            return Err(Error::Weight {
                key: id,
                weight,
                limit: HEAVIEST,
            });
        }
        Ok(Self { id, weight, models })
    }

    /// Its name.
    #[must_use]
    pub const fn id(&self) -> &KeyId {
        &self.id
    }

    /// Its share among the others.
    #[must_use]
    pub const fn weight(&self) -> f64 {
        self.weight
    }

    /// Whether it may be used for `model`.
    #[must_use]
    pub fn serves(&self, model: &ModelName) -> bool {
        self.models.holds(model)
    }
}

impl ModelList {
    /// The list as typed: `*` anywhere in it means any model.
    pub fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut only = HashSet::new();
        for name in names {
            if name == "*" {
                return Self::Any;
            }
            only.insert(ModelName::new(name));
        }
        Self::Only(only)
    }

    /// Whether `model` is on the list.
    #[must_use]
    pub fn holds(&self, model: &ModelName) -> bool {
        match self {
            Self::Any => true,
            Self::Only(models) => models.contains(model),
        }
    }
}

impl Pool {
    /// A pool of these keys, in the operator's order. An empty one serves nothing.
    ///
    /// # Errors
    /// When two keys have one name.
    pub fn new(keys: Vec<Key>) -> Result<Self, Error> {
        let mut seen = HashSet::new();
        if let Some(twice) = keys.iter().find(|key| !seen.insert(key.id())) {
            return Err(Error::Twice {
                key: twice.id().clone(),
            });
        }
        Ok(Self {
            keys,
            keyless: false,
            remembers: true,
        })
    }

    /// The pool of a provider that asks for no key: it serves every model, and no refusal kills or
    /// holds anything.
    #[must_use]
    pub const fn keyless() -> Self {
        Self {
            keys: Vec::new(),
            keyless: true,
            remembers: false,
        }
    }

    /// The same pool, whose refusals are forgotten with the request that met them
    /// (`hold_refused_keys = false`). By default they are remembered.
    #[must_use]
    pub fn remembering(self, remembers: bool) -> Self {
        Self { remembers, ..self }
    }

    /// Whether the provider asks for no key.
    #[must_use]
    pub const fn is_keyless(&self) -> bool {
        self.keyless
    }

    /// Whether refusals hold a key out for later requests.
    #[must_use]
    pub const fn remembers(&self) -> bool {
        self.remembers
    }

    /// The keys, in the operator's order.
    #[must_use]
    pub fn keys(&self) -> &[Key] {
        &self.keys
    }
}

#[cfg(test)]
mod tests {
    use backstop_units::ProviderId;

    use super::*;

    fn key(name: &str, weight: f64) -> Result<Key, Error> {
        Key::new(
            KeyId::new(&ProviderId::new("openai"), name),
            weight,
            ModelList::Any,
        )
    }

    #[test]
    fn weights_and_names_are_checked() {
        for (weight, good) in [
            (0.0, true),
            (1e6, true),
            (-1.0, false),
            (f64::NAN, false),
            (f64::INFINITY, false),
        ] {
            assert_eq!(key("a", weight).is_ok(), good, "{weight}");
        }
        let twice = vec![key("a", 1.0).expect("good"), key("a", 2.0).expect("good")];
        assert!(matches!(Pool::new(twice), Err(Error::Twice { .. })));
    }

    #[test]
    fn a_star_anywhere_means_any_model() {
        let model = ModelName::new("gpt-4o");
        for (names, want) in [
            (&["*"][..], true),
            (&["o3", "*"], true),
            (&["gpt-4o"], true),
            (&["gpt-4"], false),
            (&[], false),
        ] {
            assert_eq!(ModelList::new(names.iter().copied()).holds(&model), want);
        }
    }
}

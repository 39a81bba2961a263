//! Reading a request member by member, so that every complaint names the member at fault.

use std::fmt;

use backstop_chat::{Json, Text};
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::envelope::BadRequest;

/// The members of an object not yet taken.
pub(crate) struct Members<'a> {
    /// Where the object stands; empty for the body itself.
    at: String,
    rest: Vec<(String, &'a RawValue)>,
}

impl<'a> Members<'a> {
    /// The members of the object `value`, which stands at `at`.
    pub(crate) fn read(value: &'a RawValue, at: String) -> Result<Self, BadRequest> {
        match serde_json::from_str::<Pairs<'a>>(value.get()) {
            Ok(Pairs(rest)) => Ok(Self { at, rest }),
            Err(_) => Err(BadRequest::wrong_type(&at, "an object")),
        }
    }

    /// The same with every name in `camelCase`, for a dialect that reads `snake_case` as the same.
    pub(crate) fn camel(mut self) -> Self {
        for (name, _) in &mut self.rest {
            if name.contains('_') {
                *name = camel(name);
            }
        }
        self
    }

    /// Where the member `name` stands.
    pub(crate) fn path(&self, name: &str) -> String {
        if self.at.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.at)
        }
    }

    /// Takes a member; null counts as absent.
    pub(crate) fn take(&mut self, name: &str) -> Option<&'a RawValue> {
        let place = self.rest.iter().position(|(key, _)| key == name)?;
        let (_, value) = self.rest.remove(place);
        (value.get() != "null").then_some(value)
    }

    pub(crate) fn text(&mut self, name: &str) -> Result<Option<Text>, BadRequest> {
        self.typed(name, "a string")
    }

    pub(crate) fn string(&mut self, name: &str) -> Result<Option<String>, BadRequest> {
        self.typed(name, "a string")
    }

    pub(crate) fn bool(&mut self, name: &str) -> Result<Option<bool>, BadRequest> {
        self.typed(name, "true or false")
    }

    pub(crate) fn number(&mut self, name: &str) -> Result<Option<f64>, BadRequest> {
        self.typed(name, "a number")
    }

    pub(crate) fn count(&mut self, name: &str) -> Result<Option<u64>, BadRequest> {
        self.typed(name, "a whole number of at least 0")
    }

    pub(crate) fn integer(&mut self, name: &str) -> Result<Option<i64>, BadRequest> {
        self.typed(name, "a whole number")
    }

    pub(crate) fn json(&mut self, name: &str) -> Option<Json> {
        self.take(name).map(Json::from)
    }

    /// The member `name` as an object.
    pub(crate) fn object(&mut self, name: &str) -> Result<Option<Self>, BadRequest> {
        let at = self.path(name);
        self.take(name)
            .map(|value| Self::read(value, at))
            .transpose()
    }

    /// The entries of the array `name` with their places; empty when absent.
    pub(crate) fn array(&mut self, name: &str) -> Result<Vec<(String, &'a RawValue)>, BadRequest> {
        let at = self.path(name);
        match self.take(name) {
            Some(value) => entries(value, &at),
            None => Ok(Vec::new()),
        }
    }

    /// The member `name`, which must be there.
    pub(crate) fn required<T>(&self, name: &str, value: Option<T>) -> Result<T, BadRequest> {
        let path = self.path(name);
        value
            .ok_or_else(|| BadRequest::new("missing_field", &path, format!("`{path}` is required")))
    }

    /// What was not taken, with places, nulls left out.
    pub(crate) fn rest(self) -> impl Iterator<Item = (String, &'a RawValue)> {
        let Self { at, rest } = self;
        let prefix = if at.is_empty() { at } else { format!("{at}.") };
        rest.into_iter()
            .filter(|(_, value)| value.get() != "null")
            .map(move |(name, value)| (format!("{prefix}{name}"), value))
    }

    fn typed<T: DeserializeOwned>(
        &mut self,
        name: &str,
        expected: &str,
    ) -> Result<Option<T>, BadRequest> {
        let Some(value) = self.take(name) else {
            return Ok(None);
        };
        match serde_json::from_str(value.get()) {
            Ok(value) => Ok(Some(value)),
            Err(_) => Err(BadRequest::wrong_type(&self.path(name), expected)),
        }
    }
}

fn camel(snake: &str) -> String {
    let mut words = snake.split('_');
    let mut name = words.next().unwrap_or_default().to_owned();
    for word in words {
        let mut letters = word.chars();
        name.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        name.push_str(letters.as_str());
    }
    name
}

/// The entries of the array `value`, which stands at `at`.
pub(crate) fn entries<'a>(
    value: &'a RawValue,
    at: &str,
) -> Result<Vec<(String, &'a RawValue)>, BadRequest> {
    let all: Vec<&'a RawValue> =
        serde_json::from_str(value.get()).map_err(|_| BadRequest::wrong_type(at, "an array"))?;
    Ok(all
        .into_iter()
        .enumerate()
        .map(|(place, value)| (format!("{at}[{place}]"), value))
        .collect())
}

/// The string `value` holds, if it is one.
pub(crate) fn as_string(value: &RawValue) -> Option<String> {
    value
        .get()
        .starts_with('"')
        .then(|| serde_json::from_str(value.get()).ok())?
}

struct Pairs<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Pairs<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;

        impl<'de> Visitor<'de> for Collect {
            type Value = Vec<(String, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
                let mut pairs = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, &'de RawValue>()? {
                    pairs.push((key, value));
                }
                Ok(pairs)
            }
        }

        deserializer.deserialize_map(Collect).map(Pairs)
    }
}

//! JSON into a tree. `serde_json` reads and judges the text; the place of each value is the place
//! of its raw slice inside the whole.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{DEEPEST, Entry, Node, Value};
use crate::fault::Problem;

type Found = Vec<(usize, Problem)>;

/// Reads a whole text.
pub(super) fn parse(text: &str) -> Result<Node, Found> {
    let raw: &RawValue = serde_json::from_str(text).map_err(|error| vec![syntax(text, &error)])?;
    let mut found = Found::new();
    let reader = Reader { text };
    let root = reader.node(raw, 0, &mut found);
    if found.is_empty() {
        Ok(root)
    } else {
        Err(found)
    }
}

/// Where and how the text stops being JSON. The message of the library is of fixed shape and holds
/// no text of the file; its own line and column are cut off, and the two mistakes that are made
/// most get a name.
fn syntax(text: &str, error: &serde_json::Error) -> (usize, Problem) {
    let message = error.to_string();
    let message = message.split(" at line ").next().unwrap_or_default();
    let line_start: usize = text
        .split_inclusive('\n')
        .take(error.line().saturating_sub(1))
        .map(str::len)
        .sum();
    let at = line_start + error.column().saturating_sub(1);
    let (before, after) = text.split_at_checked(at).unwrap_or((text, ""));
    let message = if after.starts_with(['/', '#']) {
        "it has no comments; a .toml file may hold them"
    } else if before.trim_end().ends_with(',') && after.starts_with(['}', ']']) {
        "a comma stands before the end of a table or list"
    } else {
        message
    };
    let problem = Problem::Syntax {
        spelling: "JSON",
        message: message.to_owned(),
    };
    (at, problem)
}

struct Reader<'a> {
    text: &'a str,
}

impl<'a> Reader<'a> {
    /// Where a slice of the text begins. A name that holds escapes is not a slice of it.
    fn place(&self, slice: &str) -> Option<usize> {
        (slice.as_ptr() as usize)
            .checked_sub(self.text.as_ptr() as usize)
            .filter(|at| at + slice.len() <= self.text.len())
    }

    fn node(&self, raw: &'a RawValue, depth: usize, found: &mut Found) -> Node {
        let text = raw.get();
        let at = self.place(text).unwrap_or_default();
        if depth > DEEPEST {
            found.push((at, Problem::TooDeep { deepest: DEEPEST }));
            return Node {
                at,
                value: Value::Null,
            };
        }
        let value = match text.as_bytes().first() {
            Some(b'{') => self.table(text, depth, found),
            Some(b'[') => self.list(text, depth, found),
            _ => scalar(text),
        };
        Node { at, value }
    }

    fn list(&self, text: &'a str, depth: usize, found: &mut Found) -> Value {
        let items: Vec<&'a RawValue> =
            serde_json::from_str(text).expect("the whole text was read as JSON before");
        let items = items.into_iter().enumerate();
        Value::List(
            items
                .map(|(index, raw)| (index, self.node(raw, depth + 1, found)))
                .collect(),
        )
    }

    fn table(&self, text: &'a str, depth: usize, found: &mut Found) -> Value {
        let Members(members) =
            serde_json::from_str(text).expect("the whole text was read as JSON before");
        let mut entries: Vec<Entry> = Vec::with_capacity(members.len());
        for (name, raw) in members {
            let node = self.node(raw, depth + 1, found);
            // The quote before the name.
            let name_at = match &name {
                Cow::Borrowed(name) => self.place(name).map(|at| at.saturating_sub(1)),
                Cow::Owned(_) => None,
            };
            let entry = Entry {
                name_at: name_at.unwrap_or(node.at),
                name: name.into_owned(),
                node,
            };
            if entries.iter().any(|known| known.name == entry.name) {
                let problem = Problem::Twice { name: entry.name };
                found.push((entry.name_at, problem));
            } else {
                entries.push(entry);
            }
        }
        Value::Table(entries)
    }
}

fn scalar(text: &str) -> Value {
    match serde_json::from_str(text).expect("the whole text was read as JSON before") {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(value) => Value::Bool(value),
        serde_json::Value::String(value) => Value::Text(value),
        serde_json::Value::Number(number) => {
            if let Some(value) = number.as_u64() {
                Value::Unsigned(value)
            } else if let Some(value) = number.as_i64() {
                Value::Signed(value)
            } else {
                Value::Float(number.as_f64().unwrap_or(f64::NAN))
            }
        }
        serde_json::Value::Array(_) | serde_json::Value::Object(_) => {
            Value::Alien("a list or a table")
        }
    }
}

/// The members of an object in order, doubles and all.
struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((Name(name), value)) = map.next_entry()? {
                    members.push((name, value));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

/// A name, borrowed from the text where it holds no escapes.
struct Name<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keep;
        impl<'de> Visitor<'de> for Keep {
            type Value = Name<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Self::Value, E> {
                Ok(Name(Cow::Borrowed(name)))
            }

            fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
                Ok(Name(Cow::Owned(name.to_owned())))
            }
        }
        deserializer.deserialize_str(Keep)
    }
}

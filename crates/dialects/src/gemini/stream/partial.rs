//! Arguments that come in steps: each names a place in them by a path, and what stands there.
//!
//! Sent only to callers who ask for it (`streamFunctionCallArguments`). A step cannot be passed on
//! as a piece of JSON text, since later steps may go back into what earlier ones opened; so the
//! arguments are gathered and told whole.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Number, Value};

/// The most entries that a path may skip over or add to an array.
const MOST_ENTRIES: usize = 4096;

/// Arguments gathered so far.
#[derive(Debug, Default)]
pub(super) struct Partial {
    root: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Step {
    json_path: String,
    string_value: Option<String>,
    number_value: Option<Number>,
    bool_value: Option<bool>,
}

impl Partial {
    /// Takes a step; `None` when it is not one.
    pub(super) fn step(&mut self, step: &RawValue) -> Option<()> {
        let step: Step = serde_json::from_str(step.get()).ok()?;
        let place = place(&mut self.root, step.json_path.strip_prefix('$')?)?;
        if let Some(more) = step.string_value {
            match place {
                Value::String(text) => text.push_str(&more),
                other => *other = Value::String(more),
            }
        } else if let Some(number) = step.number_value {
            *place = Value::Number(number);
        } else if let Some(truth) = step.bool_value {
            *place = Value::Bool(truth);
        } else {
            *place = Value::Null;
        }
        Some(())
    }

    /// All of it as JSON text.
    pub(super) fn into_json(self) -> String {
        match self.root {
            Value::Null => "{}".to_owned(),
            root => root.to_string(),
        }
    }
}

/// The place that `path` leads to below `root`, made where it is missing.
fn place<'v>(root: &'v mut Value, path: &str) -> Option<&'v mut Value> {
    let mut place = root;
    let mut rest = path;
    while !rest.is_empty() {
        let (next, after) = if let Some(inside) = rest.strip_prefix("['") {
            let (name, after) = inside.split_once("']")?;
            (member(place, name)?, after)
        } else if let Some(inside) = rest.strip_prefix('[') {
            let (index, after) = inside.split_once(']')?;
            (entry(place, index.parse().ok()?)?, after)
        } else {
            let inside = rest.strip_prefix('.')?;
            let end = inside.find(['.', '[']).unwrap_or(inside.len());
            (member(place, &inside[..end])?, &inside[end..])
        };
        place = next;
        rest = after;
    }
    Some(place)
}

fn member<'v>(place: &'v mut Value, name: &str) -> Option<&'v mut Value> {
    if place.is_null() {
        *place = Value::Object(Map::new());
    }
    Some(place.as_object_mut()?.entry(name).or_insert(Value::Null))
}

fn entry(place: &mut Value, index: usize) -> Option<&mut Value> {
    if place.is_null() {
        *place = Value::Array(Vec::new());
    }
    let entries = place.as_array_mut().filter(|_| index < MOST_ENTRIES)?;
    if entries.len() <= index {
        entries.resize(index + 1, Value::Null);
    }
    entries.get_mut(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gathered(steps: &[&str]) -> Option<String> {
        let mut partial = Partial::default();
        for step in steps {
            partial.step(serde_json::from_str(step).expect("JSON"))?;
        }
        Some(partial.into_json())
    }

    #[test]
    fn steps_come_together() {
        for (steps, expected) in [
            (&[][..], Some("{}")),
            (
                &[
                    r#"{"jsonPath":"$.city","stringValue":"Bos","willContinue":true}"#,
                    r#"{"jsonPath":"$.city","stringValue":"ton"}"#,
                    r#"{"jsonPath":"$.days[1].n","numberValue":2.50}"#,
                    r#"{"jsonPath":"$['a.b']","boolValue":true}"#,
                    r#"{"jsonPath":"$.none","nullValue":null}"#,
                ],
                Some(r#"{"city":"Boston","days":[null,{"n":2.5}],"a.b":true,"none":null}"#),
            ),
            (&[r#"{"jsonPath":"city"}"#], None),
            (
                &[r#"{"jsonPath":"$.a[99999999999]","stringValue":"x"}"#],
                None,
            ),
            (
                &[
                    r#"{"jsonPath":"$.a","stringValue":"x"}"#,
                    r#"{"jsonPath":"$.a.b","stringValue":"x"}"#,
                ],
                None,
            ),
        ] {
            assert_eq!(gathered(steps).as_deref(), expected, "{steps:?}");
        }
    }
}

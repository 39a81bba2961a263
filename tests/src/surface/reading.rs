//! What answers come to, and what their readers share.

use serde_json::Value;

use super::Rules;
use crate::sse::Event;

/// What an answer came to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Told {
    /// All words, those of a refusal included: not every surface tells them apart.
    pub text: String,
    /// Whether some of the words were told as a refusal.
    pub refused: bool,
    /// All reasoning that is told in the open.
    pub reasoning: String,
    /// The calls, in order.
    pub calls: Vec<Call>,
    /// The tokens spent, where they are told.
    pub usage: Option<Counts>,
    /// Why it ended; `None` when it did not.
    pub stop: Option<Stop>,
    /// The message of the error it ended with.
    pub error: Option<String>,
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// What ties the result to it.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments; a string where they are cut and no JSON.
    pub arguments: Value,
}

impl Call {
    /// A call whose arguments came as text; none at all are an empty object.
    pub(super) fn of(id: &str, name: &str, arguments: &str) -> Self {
        let arguments = match arguments {
            "" => Value::Object(serde_json::Map::new()),
            text => serde_json::from_str(text).unwrap_or_else(|_| text.into()),
        };
        Self {
            id: id.to_owned(),
            name: name.to_owned(),
            arguments,
        }
    }
}

/// Tokens, cached ones within the input and reasoning within the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// All of the prompt.
    pub input: u64,
    /// All that was generated.
    pub output: u64,
    /// Of the input: read from a cache.
    pub cached: u64,
    /// Of the output: reasoning.
    pub reasoning: u64,
}

/// Why an answer ended, as far as all surfaces can tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// It was complete, or met a stop string.
    End,
    /// A limit was reached.
    Length,
    /// Tools are waited for.
    Tools,
    /// Withheld or declined.
    Filter,
}

/// The events of a stream. Strictly each ends in a blank line.
pub(super) fn events(body: &[u8], rules: Rules) -> Result<Vec<Event>, String> {
    let text = std::str::from_utf8(body).map_err(|_| "a stream that is no text".to_owned())?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    rules.hold(text.ends_with("\n\n") || text.is_empty(), || {
        "the stream ends inside an event".to_owned()
    })?;
    let whole = format!("{}\n\n", text.trim_end_matches(['\r', '\n']));
    let events = crate::sse::events(whole.as_bytes());
    if rules == Rules::Strict {
        for event in &events {
            rules.hold(!event.data.contains('\n'), || {
                format!("data in several lines: {}", event.data)
            })?;
        }
    }
    Ok(events)
}

/// A member that must be text with something in it.
pub(super) fn named<'a>(value: &'a Value, member: &str, rules: Rules) -> Result<&'a str, String> {
    let text = value[member].as_str().unwrap_or_default();
    rules.hold(!text.is_empty(), || format!("no {member} in {value}"))?;
    Ok(text)
}

/// A member that must be a number without a sign.
pub(super) fn count(value: &Value, member: &str, rules: Rules) -> Result<u64, String> {
    let number = value[member].as_u64();
    rules.hold(number.is_some(), || format!("no count {member} in {value}"))?;
    Ok(number.unwrap_or_default())
}

/// A list that may be missing only in what providers send.
pub(super) fn list<'a>(
    value: &'a Value,
    member: &str,
    rules: Rules,
) -> Result<&'a [Value], String> {
    match &value[member] {
        Value::Array(items) => Ok(items),
        _ => rules
            .hold(false, || format!("no list {member} in {value}"))
            .map(|()| [].as_slice()),
    }
}

/// What every event of a stream says alike.
#[derive(Debug, Default)]
pub(super) struct Constant(Option<Value>);

impl Constant {
    pub(super) fn hold(&mut self, value: &Value, what: &str, rules: Rules) -> Result<(), String> {
        let first = self.0.get_or_insert_with(|| value.clone());
        rules.hold(!value.is_null() && first == value, || {
            format!("{what} is first {first}, then {value}")
        })
    }
}

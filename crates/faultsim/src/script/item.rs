//! The pieces of a streamed body, and their bytes.

use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::Fill;
use crate::encode;

/// One piece of a streamed body, written and flushed in one go.
#[derive(Debug, Clone)]
pub struct Item {
    pub(crate) delay: Duration,
    pub(crate) event: Option<String>,
    pub(crate) payload: Payload,
    pub(crate) repeat: u32,
}

/// What an item carries.
#[derive(Debug, Clone)]
pub(crate) enum Payload {
    Data(Value),
    Comment(String),
    Text(String),
    Raw(Bytes),
    Frame(Frame),
}

impl Item {
    pub(crate) fn with(payload: Payload) -> Self {
        Self {
            delay: Duration::ZERO,
            event: None,
            payload,
            repeat: 1,
        }
    }

    /// One `data:` line with this JSON. The string `[DONE]` is sent bare.
    #[must_use]
    pub fn data(data: Value) -> Self {
        Self::with(Payload::Data(data))
    }

    /// `data: [DONE]`.
    #[must_use]
    pub fn done() -> Self {
        Self::data(Value::from("[DONE]"))
    }

    /// An `event:` line and one `data:` line.
    #[must_use]
    pub fn event(event: impl Into<String>, data: Value) -> Self {
        Self {
            event: Some(event.into()),
            ..Self::data(data)
        }
    }

    /// A comment: a `:` line and a blank one.
    #[must_use]
    pub fn comment(text: impl Into<String>) -> Self {
        Self::with(Payload::Comment(text.into()))
    }

    /// Exactly these bytes.
    #[must_use]
    pub fn raw(bytes: impl Into<Bytes>) -> Self {
        Self::with(Payload::Raw(bytes.into()))
    }

    /// Waits since the item before it.
    #[must_use]
    pub const fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// This item `times` over; `{{n}}` in its strings counts from 0.
    #[must_use]
    pub const fn repeat(mut self, times: u32) -> Self {
        self.repeat = times;
        self
    }

    /// The bytes of this item.
    pub(crate) fn bytes(&self, fill: Fill<'_>) -> Bytes {
        let text = match &self.payload {
            Payload::Raw(bytes) => return bytes.clone(),
            Payload::Frame(frame) => return frame.bytes(fill),
            Payload::Text(text) => return fill.apply(text, false).into_owned().into(),
            Payload::Comment(text) => return format!(":{}\n\n", fill.apply(text, false)).into(),
            Payload::Data(Value::String(text)) if text == "[DONE]" => text.clone(),
            Payload::Data(data) => data.to_string(),
        };
        let text = fill.apply(&text, true);
        match &self.event {
            Some(event) => format!("event: {event}\ndata: {text}\n\n").into(),
            None => format!("data: {text}\n\n").into(),
        }
    }
}

/// One frame of a binary event stream (`application/vnd.amazon.eventstream`).
#[derive(Debug, Clone)]
pub struct Frame {
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) payload: Value,
    pub(crate) damage: Option<Damage>,
}

/// What is wrong with a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Damage {
    /// It ends in its middle.
    Cut,
    /// Its last checksum is not that of its bytes.
    Checksum,
}

impl Frame {
    /// A frame with string headers and a JSON object as payload.
    #[must_use]
    pub fn new(headers: Vec<(String, String)>, payload: Map<String, Value>) -> Self {
        Self {
            headers,
            payload: Value::Object(payload),
            damage: None,
        }
    }

    /// An event of this name.
    #[must_use]
    pub fn event(name: &str, payload: Value) -> Self {
        Self::named("event", ":event-type", name, payload)
    }

    /// An exception of this name, which begins in lower case in a stream.
    #[must_use]
    pub fn exception(name: &str, payload: Value) -> Self {
        let mut letters = name.chars();
        let first = letters.next().map(|first| first.to_ascii_lowercase());
        let name: String = first.into_iter().chain(letters).collect();
        Self::named("exception", ":exception-type", &name, payload)
    }

    fn named(kind: &str, header: &str, name: &str, payload: Value) -> Self {
        let headers = [
            (header, name),
            (":content-type", "application/json"),
            (":message-type", kind),
        ];
        Self {
            headers: headers
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            payload,
            damage: None,
        }
    }

    /// The same frame, not as it should be.
    #[must_use]
    pub const fn damaged(mut self, damage: Damage) -> Self {
        self.damage = Some(damage);
        self
    }

    fn bytes(&self, fill: Fill<'_>) -> Bytes {
        let payload = if self.payload.is_null() {
            String::new()
        } else {
            fill.apply(&self.payload.to_string(), true).into_owned()
        };
        let mut frame = encode::event_stream_frame(&self.headers, payload.as_bytes());
        match self.damage {
            None => frame,
            Some(Damage::Cut) => frame.split_to(frame.len() / 2),
            Some(Damage::Checksum) => {
                let mut bytes = frame.to_vec();
                if let Some(last) = bytes.last_mut() {
                    *last ^= 1;
                }
                bytes.into()
            }
        }
    }
}

impl From<Frame> for Item {
    fn from(frame: Frame) -> Self {
        Self::with(Payload::Frame(frame))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_item_has_these_bytes() {
        let rows = [
            (
                Item::data(json!({"b": 1, "a": 2})),
                "data: {\"b\":1,\"a\":2}\n\n",
            ),
            (Item::done(), "data: [DONE]\n\n"),
            (Item::data(json!("x")), "data: \"x\"\n\n"),
            (
                Item::event("ping", json!({"type": "ping"})),
                "event: ping\ndata: {\"type\":\"ping\"}\n\n",
            ),
            (Item::comment(" WAIT {{n}}"), ": WAIT 3\n\n"),
            (Item::raw(&b"data: {oops"[..]), "data: {oops"),
            (
                Item::data(json!({"t": "{{pad:4}}{{n}}"})),
                "data: {\"t\":\"xxxx3\"}\n\n",
            ),
        ];
        for (item, want) in rows {
            assert_eq!(
                item.bytes(Fill {
                    n: 3,
                    ..Fill::default()
                }),
                want.as_bytes()
            );
        }
    }
}

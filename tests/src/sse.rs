//! Server-sent events as a test wants to see them.

use serde_json::Value;

/// One block of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Event {
    /// The `event:` field, where there is one.
    pub event: Option<String>,
    /// The `data:` lines, joined.
    pub data: String,
}

impl Event {
    /// The data as JSON; `Null` when it is none, as `[DONE]`.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap_or(Value::Null)
    }

    /// The text this event adds to an answer, in either dialect; empty when it adds none.
    #[must_use]
    pub fn text(&self) -> String {
        let data = self.json();
        let text = data["choices"][0]["delta"]["content"]
            .as_str()
            .or_else(|| data["delta"]["text"].as_str());
        text.unwrap_or_default().to_owned()
    }

    /// Whether it tells of an error, in either dialect.
    #[must_use]
    pub fn is_error(&self) -> bool {
        !self.json()["error"].is_null()
    }

    /// Whether it says that the answer is whole, in either dialect.
    #[must_use]
    pub fn is_end(&self) -> bool {
        self.data == "[DONE]" || self.json()["type"] == "message_stop"
    }
}

/// The events in `bytes` with data; comments are left out.
///
/// # Panics
/// When the stream ends inside an event, or is not text.
#[must_use]
pub fn events(bytes: &[u8]) -> Vec<Event> {
    let text = std::str::from_utf8(bytes).expect("a stream is text");
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    assert!(
        text.is_empty() || text.ends_with("\n\n"),
        "a stream ends inside an event: {text:?}"
    );
    text.split("\n\n").filter_map(event).collect()
}

fn event(block: &str) -> Option<Event> {
    let mut event = Event::default();
    let mut data = Vec::new();
    for line in block.lines() {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "event" => event.event = Some(value.to_owned()),
            "data" => data.push(value),
            _ => {}
        }
    }
    event.data = data.join("\n");
    (!data.is_empty()).then_some(event)
}

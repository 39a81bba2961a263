//! What a message is made of: text, images, reasoning, tool traffic.

use std::fmt;
use std::ops::Deref;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Words of a caller or a model. Reads like a `str`; prints only its length in `Debug`.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Text(String);

impl Text {
    /// The words as an owned string.
    #[must_use]
    pub fn into_string(self) -> String {
        self.0
    }

    /// Appends more words.
    pub fn push_str(&mut self, more: &str) {
        self.0.push_str(more);
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Text({} bytes)", self.0.len())
    }
}

/// A JSON value kept as it was written: number formatting and member order survive. Equal when
/// the bytes are equal; prints only its length in `Debug`.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Json(Box<RawValue>);

impl Json {
    /// The value as JSON text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.get()
    }
}

impl From<&RawValue> for Json {
    fn from(value: &RawValue) -> Self {
        Self(value.to_owned())
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Json {}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Json({} bytes)", self.as_str().len())
    }
}

/// One piece of a message or of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Words.
    Text(Text),
    /// A picture.
    Image(Image),
    /// The model declined, in words, where its dialect sets these apart from the answer.
    Refusal(Text),
    /// Reasoning in the open.
    Reasoning {
        /// The reasoning itself.
        text: Text,
        /// What its provider wants to see again when the turn is replayed; absent when the
        /// provider signs nothing.
        #[serde(skip_serializing_if = "Option::is_none")]
        signature: Option<Text>,
    },
    /// Reasoning the provider keeps to itself, as the opaque data it wants to see again.
    RedactedReasoning(Text),
    /// The model asks for a tool.
    ToolCall {
        /// Ties the result to the call.
        id: String,
        /// The tool's name.
        name: String,
        /// JSON text, possibly cut by a length limit and then not valid JSON.
        arguments: Text,
    },
    /// What a tool answered.
    ToolResult {
        /// The call this answers.
        id: String,
        /// Text and images.
        content: Vec<Part>,
        /// Whether the tool failed. Not every dialect can say so.
        is_error: bool,
    },
    /// A piece only one dialect knows (audio, documents, provider-side tools).
    Other {
        /// The dialect it belongs to.
        dialect: &'static str,
        /// What that dialect calls it.
        kind: String,
        /// The piece as written.
        value: Json,
    },
}

/// Where a picture is found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Image {
    /// To be fetched by the provider.
    Url {
        /// The address.
        url: Text,
        /// How closely to look (`low`, `high`, `auto`), where the dialect can say so.
        #[serde(skip_serializing_if = "Option::is_none")]
        detail: Option<String>,
    },
    /// Carried along.
    Base64 {
        /// Such as `image/png`.
        media_type: String,
        /// The bytes in base64.
        data: Text,
        /// As for [`Image::Url`].
        #[serde(skip_serializing_if = "Option::is_none")]
        detail: Option<String>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_never_show_in_debug_output() {
        let part = Part::Reasoning {
            text: "secret plan".into(),
            signature: Some("sig".into()),
        };
        let raw: &RawValue = serde_json::from_str(r#"{"secret":1}"#).expect("valid JSON");
        let shown = format!("{part:?} {:?}", Json::from(raw));
        assert!(!shown.contains("secret"), "{shown}");
        assert!(shown.contains("Text(11 bytes)"), "{shown}");
    }
}

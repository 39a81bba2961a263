//! Blocks, as requests and answers share them.

use backstop_chat::{Part, Text};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::json::Object;
use crate::members::Members;

/// On sealed reasoning whose bytes are no text, in the neutral shape.
const BYTES: &str = "bedrock-converse:";

/// The member that says what a block is, and its value.
pub(super) fn member(block: &RawValue) -> Option<(String, &RawValue)> {
    Members::read(block, String::new()).ok()?.rest().next()
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Reasoning {
    reasoning_text: Option<Said>,
    redacted_content: Option<String>,
}

#[derive(Deserialize)]
struct Said {
    text: Option<Text>,
    signature: Option<Text>,
}

/// What a `reasoningContent` holds; `None` when it is of another shape.
pub(super) fn reasoning(value: &RawValue) -> Option<Part> {
    let reasoning: Reasoning = serde_json::from_str(value.get()).ok()?;
    if let Some(data) = reasoning.redacted_content {
        return Some(Part::RedactedReasoning(unsealed(&data)));
    }
    let said = reasoning.reasoning_text?;
    Some(Part::Reasoning {
        text: said.text.unwrap_or_default(),
        signature: said.signature.filter(|text| !text.is_empty()),
    })
}

/// Sealed reasoning in the neutral shape: the text that its maker sealed, which it knows again on
/// any of its platforms. On this wire it stands in base64 once more, whatever it is.
pub(super) fn unsealed(data: &str) -> Text {
    let text = STANDARD
        .decode(data)
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .filter(|text| !text.starts_with(BYTES));
    text.unwrap_or_else(|| format!("{BYTES}{data}")).into()
}

/// The same on this wire.
pub(super) fn sealed(seal: &str) -> String {
    match seal.strip_prefix(BYTES) {
        Some(data) => data.to_owned(),
        None => STANDARD.encode(seal),
    }
}

/// Writes a block of text, reasoning or a call; whether it is one of these.
pub(super) fn write(part: &Part, out: &mut Object<'_>) -> bool {
    match part {
        Part::Text(text) | Part::Refusal(text) => out.put("text", text),
        Part::Reasoning { text, signature } => out.object("reasoningContent", |out| {
            out.object("reasoningText", |out| {
                out.put("text", text);
                out.put_some("signature", signature.as_ref());
            });
        }),
        Part::RedactedReasoning(seal) => out.object("reasoningContent", |out| {
            out.put("redactedContent", &sealed(seal));
        }),
        Part::ToolCall {
            id,
            name,
            arguments,
        } => out.object("toolUse", |out| {
            out.put("toolUseId", id);
            out.put("name", name);
            match crate::anthropic_messages::request::object(arguments) {
                Some(input) => out.put("input", input),
                None => out.object("input", |_| {}),
            }
        }),
        _ => return false,
    }
    true
}

/// The word for a kind of image: `png`, not `image/png`. `None` for a kind it does not take.
pub(super) fn format(media_type: &str) -> Option<&'static str> {
    match media_type.to_ascii_lowercase().as_str() {
        "image/png" => Some("png"),
        "image/jpeg" | "image/jpg" => Some("jpeg"),
        "image/gif" => Some("gif"),
        "image/webp" => Some("webp"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sealed_comes_back_as_it_was() {
        for (wire, neutral) in [
            ("RXFzUg==", "EqsR"),
            ("//79", "bedrock-converse://79"),
            ("no base64!", "bedrock-converse:no base64!"),
            // Text that looks like our own mark.
            (
                "YmVkcm9jay1jb252ZXJzZTp4",
                "bedrock-converse:YmVkcm9jay1jb252ZXJzZTp4",
            ),
        ] {
            let seal = unsealed(wire);
            assert_eq!(
                &*seal,
                if wire == "//79" {
                    "bedrock-converse://79"
                } else {
                    neutral
                }
            );
            assert_eq!(sealed(&seal), wire);
        }
    }
}

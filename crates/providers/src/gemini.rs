//! Google's Gemini API.
//!
//! Docs: <https://ai.google.dev/api/generate-content>, read 2026-11. Quirks:
//! - Model, method and the choice of a stream stand in the path; a stream is one JSON array unless
//!   `alt=sse` asks for events.
//! - The key goes in `x-goog-api-key`. It may also stand in the address, where logs would keep it:
//!   never done here.

use std::fmt::Write as _;

use backstop_classifier::Family;
use backstop_dialects::{Dialect, Operation};

use crate::adapter::{Adapter, Signature};
use crate::{Call, Provider};

/// The Gemini API, or a server that resembles it.
#[derive(Debug)]
pub(crate) struct Gemini;

impl Adapter for Gemini {
    fn dialect(&self) -> Dialect {
        Dialect::Gemini
    }

    fn family(&self) -> Family {
        Family::Gemini
    }

    fn path(&self) -> &'static str {
        "/models"
    }

    fn call_path(&self, _provider: &Provider, call: &Call<'_>) -> Option<String> {
        Some(method(
            call,
            if call.stream {
                ":streamGenerateContent?alt=sse"
            } else {
                ":generateContent"
            },
        ))
    }

    fn operation_path(&self, _provider: &Provider, call: &Call<'_>) -> Option<String> {
        let name = match call.operation {
            Operation::Generate => return None,
            Operation::Embed if call.batch => ":batchEmbedContents",
            Operation::Embed => ":embedContent",
            Operation::CountTokens => ":countTokens",
        };
        Some(method(call, name))
    }

    fn version(&self) -> &'static str {
        "/v1beta"
    }

    fn signature(&self) -> Signature {
        Signature::Header("x-goog-api-key")
    }
}

/// The path of a method of the model that is called.
fn method(call: &Call<'_>, name: &str) -> String {
    let model = call.model.as_str();
    // A resource name such as `tunedModels/x` stands as it is.
    let whole = ["models/", "tunedModels/"];
    let mut path = if whole.iter().any(|beginning| model.starts_with(beginning)) {
        "/".to_owned()
    } else {
        "/models/".to_owned()
    };
    encode(model, &mut path);
    path.push_str(name);
    path
}

/// Percent-encodes what has a meaning of its own in a path, but for slashes (RFC 3986, 2.3).
pub(crate) fn encode(text: &str, path: &mut String) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/@".contains(&byte) {
            path.push(char::from(byte));
        } else {
            let _ = write!(path, "%{byte:02X}");
        }
    }
}

#[cfg(test)]
mod tests {
    use backstop_units::{ModelName, ProviderId, RequestId};
    use bytes::Bytes;

    use super::*;
    use crate::row;

    #[test]
    fn model_method_and_stream_stand_in_the_path() {
        let row = row("gemini").expect("a known row");
        let gemini = Provider::new(ProviderId::new("gemini"), row).expect("a public address");
        for (model, stream, path) in [
            (
                "gemini-2.5-flash",
                false,
                "/models/gemini-2.5-flash:generateContent",
            ),
            (
                "gemini-2.5-flash",
                true,
                "/models/gemini-2.5-flash:streamGenerateContent?alt=sse",
            ),
            (
                "tunedModels/mine",
                false,
                "/tunedModels/mine:generateContent",
            ),
            ("models/m", false, "/models/m:generateContent"),
            (
                "a b:c?d#e",
                false,
                "/models/a%20b%3Ac%3Fd%23e:generateContent",
            ),
        ] {
            let (model, id) = (ModelName::new(model), RequestId::new("r"));
            let call = Call {
                stream,
                ..Call::new(&model, Bytes::new(), &id)
            };
            assert_eq!(Gemini.call_path(&gemini, &call).as_deref(), Some(path));
        }
    }
}

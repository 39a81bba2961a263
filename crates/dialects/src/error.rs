//! Errors on the wire, both ways: ours in the caller's dialect, and what a provider's error says.

use std::borrow::Cow;

use backstop_stream::{Frame, write_event};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::dialect::Dialect;
use crate::json::Object;
use crate::{
    anthropic_messages, bedrock_converse, cohere_v2, gemini, openai_chat, openai_responses,
};

/// An error as a caller will see it. Its text must have been scrubbed.
#[derive(Debug, Clone, Copy)]
pub struct CallerError<'a> {
    /// The HTTP status it is sent with, or would have been.
    pub status: u16,
    /// The dialect's `type`; `None` takes the one that goes with the status
    /// ([`error_type`]).
    pub kind: Option<&'a str>,
    /// Stable, for programs.
    pub code: Option<&'a str>,
    /// For people.
    pub message: &'a str,
    /// The request member at fault.
    pub param: Option<&'a str>,
    /// Our id for the request.
    pub request_id: Option<&'a str>,
    /// The `extra_fields` object; left out of events.
    pub extra: Option<&'a RawValue>,
}

/// What a provider's error body says, whatever its shape. Not scrubbed: for classifying, and for
/// the caller once scrubbed, never for logs.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct ProviderError {
    /// Its words; empty when it has none.
    pub message: String,
    /// Its `type`.
    pub kind: Option<String>,
    /// Its `code`, a number as text.
    pub code: Option<String>,
    /// The request member it complains about.
    pub param: Option<String>,
}

impl std::fmt::Debug for ProviderError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProviderError")
            .field("message_bytes", &self.message.len())
            .finish_non_exhaustive()
    }
}

/// The `type` that goes with an HTTP status in `dialect`.
#[must_use]
pub const fn error_type(dialect: Dialect, status: u16) -> &'static str {
    match dialect {
        Dialect::OpenAiChat | Dialect::OpenAiResponses => openai_chat::error::kind(status),
        Dialect::AnthropicMessages => anthropic_messages::error::kind(status),
        Dialect::Gemini => gemini::error::kind(status),
        Dialect::CohereV2 => cohere_v2::error::kind(status),
        Dialect::BedrockConverse => bedrock_converse::error::kind(status),
    }
}

/// The header of an error answer in which `dialect` says its `type`, where that does not stand in
/// the body.
#[must_use]
pub const fn error_header(dialect: Dialect) -> Option<&'static str> {
    match dialect {
        Dialect::BedrockConverse => Some(bedrock_converse::error::HEADER),
        _ => None,
    }
}

/// The `type` as that header says it: the name of a class that clients raise.
#[must_use]
pub fn error_name(dialect: Dialect, error: &CallerError<'_>) -> String {
    let usual = error_type(dialect, error.status);
    let name = error.kind.unwrap_or(usual);
    match dialect {
        Dialect::BedrockConverse => bedrock_converse::error::capital(name),
        _ => name.to_owned(),
    }
}

/// What an error event in a stream of `dialect` says, as [`read_error`] and the classifier read it:
/// its data, or what stands without any, or a binary frame decoded as `{"<exception>": <payload>}`.
#[must_use]
pub fn told_by(dialect: Dialect, frame: &Frame) -> Cow<'_, [u8]> {
    if dialect == Dialect::BedrockConverse
        && let Some(told) = bedrock_converse::error::told(frame)
    {
        return Cow::Owned(told);
    }
    Cow::Borrowed(if frame.has_data() {
        frame.data()
    } else {
        frame.raw()
    })
}

/// The body of an error answer in `dialect`.
///
/// ```
/// use backstop_dialects::{CallerError, Dialect, error_body};
///
/// let error = CallerError {
///     status: 404, kind: None, code: Some("model_not_found"), message: "no such route",
///     param: Some("model"), request_id: Some("r-1"), extra: None,
/// };
/// assert_eq!(
///     String::from_utf8(error_body(Dialect::AnthropicMessages, &error))?,
///     r#"{"type":"error","error":{"type":"not_found_error","message":"no such route","code":"model_not_found","param":"model"},"request_id":"r-1"}"#,
/// );
/// # Ok::<(), std::string::FromUtf8Error>(())
/// ```
#[must_use]
pub fn error_body(dialect: Dialect, error: &CallerError<'_>) -> Vec<u8> {
    let mut body = Vec::with_capacity(160 + error.message.len());
    let kind = error
        .kind
        .unwrap_or_else(|| error_type(dialect, error.status));
    Object::write(&mut body, |body| {
        match dialect {
            Dialect::OpenAiChat | Dialect::OpenAiResponses => body.object("error", |inner| {
                // SDKs read all four, null or not.
                inner.put("message", error.message);
                inner.put("type", kind);
                inner.put("param", &error.param);
                inner.put("code", &error.code);
            }),
            Dialect::AnthropicMessages => {
                body.put("type", "error");
                body.object("error", |inner| {
                    inner.put("type", kind);
                    inner.put("message", error.message);
                    inner.put_some("code", error.code);
                    inner.put_some("param", error.param);
                });
            }
            Dialect::CohereV2 => {
                body.put_some("id", error.request_id);
                body.put("message", error.message);
                body.put("error_type", kind);
            }
            // The exception's name stands in a header.
            Dialect::BedrockConverse => {
                body.put("message", error.message);
                body.put_some("code", error.code);
                body.put_some("param", error.param);
            }
            Dialect::Gemini => body.object("error", |inner| {
                inner.put("code", &error.status);
                inner.put("message", error.message);
                inner.put("status", kind);
                inner.array("details", |all| gemini::error::details(error, all));
            }),
        }
        body.put_some("request_id", error.request_id);
        body.put_some("extra_fields", error.extra);
    });
    body
}

/// The event that ends a stream which broke after output: the error and nothing after it, no
/// finish, no end marker.
#[must_use]
pub fn error_event(dialect: Dialect, error: &CallerError<'_>) -> Vec<u8> {
    let error = CallerError {
        extra: None,
        ..*error
    };
    let body = match dialect {
        Dialect::OpenAiResponses => {
            let usual = error_type(dialect, error.status);
            openai_responses::error::event(&error, error.kind.unwrap_or(usual))
        }
        _ => error_body(dialect, &error),
    };
    if dialect == Dialect::BedrockConverse {
        return bedrock_converse::error::frame(&error, body);
    }
    let mut event = Vec::with_capacity(body.len() + 24);
    let name = match dialect {
        Dialect::OpenAiChat | Dialect::Gemini | Dialect::CohereV2 | Dialect::BedrockConverse => {
            None
        }
        Dialect::AnthropicMessages | Dialect::OpenAiResponses => Some("error"),
    };
    write_event(&mut event, name, &body);
    event
}

/// What a provider's error body says, if it is JSON that says anything. Knows the shapes in use
/// behind `dialect`: `{"error":{…}}`, `{"error":"…"}`, `{"message":…}`, `{"detail":…}`, and the
/// first of an array.
#[must_use]
pub fn read_error(dialect: Dialect, body: &[u8]) -> Option<ProviderError> {
    let body = match serde_json::from_slice(body).ok()? {
        Value::Array(all) => all.into_iter().next()?,
        other => other,
    };
    if dialect == Dialect::BedrockConverse
        && let Some(error) = bedrock_converse::error::read(&body)
    {
        return Some(error);
    }
    let failed = body.get("response").and_then(|of| of.get("error"));
    let inner = match body
        .get("error")
        .filter(|error| !error.is_null())
        .or(failed)
    {
        Some(inner @ Value::Object(_)) => inner,
        _ => &body,
    };
    let error = ProviderError {
        message: message(inner)
            .or_else(|| message(&body))
            .unwrap_or_default(),
        // At the top level `type` may be the word "error".
        kind: text(inner, "type")
            .or_else(|| text(inner, "status"))
            .or_else(|| text(inner, "error_type"))
            .filter(|kind| !names_events(dialect) || kind != "error"),
        code: text(inner, "code"),
        param: text(inner, "param"),
    };
    (error != ProviderError::default()).then_some(error)
}

/// Whether the `type` of an event stands at the top level.
const fn names_events(dialect: Dialect) -> bool {
    matches!(
        dialect,
        Dialect::AnthropicMessages | Dialect::OpenAiResponses
    )
}

fn message(value: &Value) -> Option<String> {
    ["message", "Message", "error", "detail"]
        .into_iter()
        .find_map(|name| match value.get(name)? {
            Value::String(words) => Some(words.clone()),
            // A list of complaints: the first one's words.
            Value::Array(all) => text(all.first()?, "msg"),
            _ => None,
        })
}

/// A member that is a string, or a number as text.
fn text(value: &Value, name: &str) -> Option<String> {
    match value.get(name)? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use backstop_stream::Framer;
    use bytes::Bytes;

    const HOSTILE: &str = "no\r\ndata: [DONE]\r\n\r\nevent: x \u{2028} \"q\"";

    fn hostile(extra: Option<&RawValue>) -> CallerError<'_> {
        CallerError {
            status: 503,
            kind: None,
            code: None,
            message: HOSTILE,
            param: None,
            request_id: Some("r\r\n\r\ndata: x"),
            extra,
        }
    }

    #[test]
    fn bodies_have_the_shape_sdks_read() {
        let extra: &RawValue = serde_json::from_str(r#"{"retry_after_ms":1.50}"#).expect("JSON");
        let error = CallerError {
            status: 429,
            kind: None,
            code: Some("rate_limited"),
            message: "slow down",
            param: None,
            request_id: Some("r-1"),
            extra: Some(extra),
        };
        for (dialect, expected) in [
            (
                Dialect::OpenAiChat,
                r#"{"error":{"message":"slow down","type":"rate_limit_error","param":null,"code":"rate_limited"},"request_id":"r-1","extra_fields":{"retry_after_ms":1.50}}"#,
            ),
            (
                Dialect::Gemini,
                r#"{"error":{"code":429,"message":"slow down","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"RATE_LIMITED","domain":"backstop"}]},"request_id":"r-1","extra_fields":{"retry_after_ms":1.50}}"#,
            ),
            (
                Dialect::AnthropicMessages,
                r#"{"type":"error","error":{"type":"rate_limit_error","message":"slow down","code":"rate_limited"},"request_id":"r-1","extra_fields":{"retry_after_ms":1.50}}"#,
            ),
        ] {
            let body = String::from_utf8(error_body(dialect, &error)).expect("text");
            assert_eq!(body, expected);
        }
    }

    #[test]
    fn a_status_has_one_type() {
        for (status, openai, anthropic) in [
            (400, "invalid_request_error", "invalid_request_error"),
            (401, "authentication_error", "authentication_error"),
            (403, "permission_error", "permission_error"),
            (404, "not_found_error", "not_found_error"),
            (408, "timeout_error", "timeout_error"),
            (413, "invalid_request_error", "request_too_large"),
            (429, "rate_limit_error", "rate_limit_error"),
            (500, "server_error", "api_error"),
            (502, "server_error", "api_error"),
            (504, "timeout_error", "timeout_error"),
            (529, "server_error", "overloaded_error"),
        ] {
            assert_eq!(error_type(Dialect::OpenAiChat, status), openai);
            assert_eq!(error_type(Dialect::AnthropicMessages, status), anthropic);
        }
    }

    #[test]
    fn hostile_text_stays_inside_one_event() {
        for (dialect, name) in [
            (Dialect::OpenAiChat, None),
            (Dialect::Gemini, None),
            (Dialect::AnthropicMessages, Some("error")),
        ] {
            let extra: &RawValue = serde_json::from_str("{}").expect("JSON");
            let event = error_event(dialect, &hostile(Some(extra)));
            let mut framer = Framer::default();
            framer.push(Bytes::from(event));
            let frame = framer.next().expect("short").expect("whole");
            assert_eq!(frame.event(), name);
            let data: Value = serde_json::from_slice(frame.data()).expect("JSON");
            assert_eq!(data["error"]["message"], HOSTILE);
            assert_eq!(data.get("extra_fields"), None, "streams carry none");
            assert_eq!(framer.next().expect("short"), None);
        }
    }

    #[test]
    fn provider_errors_are_read_in_every_shape() {
        let dialect = Dialect::OpenAiChat;
        for (body, message, kind, code, param) in [
            (
                r#"{"error":{"message":"m","type":"t","param":"p","code":"c"}}"#,
                "m",
                Some("t"),
                Some("c"),
                Some("p"),
            ),
            (
                r#"{"error":{"message":"m","code":504,"param":null}}"#,
                "m",
                None,
                Some("504"),
                None,
            ),
            (
                r#"{"error":{"code":3,"message":"m","status":"INTERNAL"}}"#,
                "m",
                Some("INTERNAL"),
                Some("3"),
                None,
            ),
            (
                r#"{"code":"bad","error":"m"}"#,
                "m",
                None,
                Some("bad"),
                None,
            ),
            (
                r#"{"object":"error","message":"m","code":400}"#,
                "m",
                None,
                Some("400"),
                None,
            ),
            (r#"{"detail":"m"}"#, "m", None, None, None),
            (
                r#"{"detail":[{"loc":["x"],"msg":"m"}]}"#,
                "m",
                None,
                None,
                None,
            ),
            (r#"[{"error":{"message":"m"}}]"#, "m", None, None, None),
        ] {
            let error = read_error(dialect, body.as_bytes()).expect(body);
            assert_eq!(error.message, message, "{body}");
            assert_eq!(error.kind.as_deref(), kind, "{body}");
            assert_eq!(error.code.as_deref(), code, "{body}");
            assert_eq!(error.param.as_deref(), param, "{body}");
            assert!(!format!("{error:?}").contains("\"m\""));
        }
        let body = br#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"r"}"#;
        let error = read_error(Dialect::AnthropicMessages, body).expect("an error");
        assert_eq!(error.kind.as_deref(), Some("overloaded_error"));
        for body in ["", "<html>", "{}", "[]", "7"] {
            assert_eq!(read_error(dialect, body.as_bytes()), None, "{body}");
        }
    }
}

//! Counting the tokens of a conversation, in the two dialects that know such a call: Anthropic's
//! `/v1/messages/count_tokens` (docs.claude.com/en/api/messages-count-tokens) and Google's
//! `countTokens` (ai.google.dev/api/tokens), read 2026-11.
//!
//! A model counts by its own tokens. A count that another model made is another count.

use backstop_chat::Request;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::answer::{AnswerFacts, Malformed, says_error};
use crate::dialect::Dialect;
use crate::envelope::BadRequest;
use crate::json::Object;
use crate::members::Members;
use crate::scan::{Fault, Kind, Scanner};
use crate::splice::resource;
use crate::translate::{Loss, Unsupported, WriteOptions, Written, read_request, write_request};

/// What Anthropic takes in a request to count; the rest of a conversation's settings it refuses.
const COUNTED: [&str; 7] = [
    "model",
    "messages",
    "system",
    "tools",
    "tool_choice",
    "thinking",
    "output_config",
];

const NO_COUNT: Malformed = Malformed::shape("no count of tokens");

/// Reads a request to count into the neutral shape of the conversation it is about.
///
/// # Errors
///
/// The body is no such request in `dialect`; the complaint names the member.
pub fn read_count_request(dialect: Dialect, body: &[u8]) -> Result<Request, BadRequest> {
    let invalid = || BadRequest::new("invalid_json", "", "the body is not valid JSON");
    let whole: &RawValue = serde_json::from_slice(body).map_err(|_| invalid())?;
    match dialect {
        // A conversation must say how long the answer may get; a count need not.
        Dialect::AnthropicMessages => {
            let mut members: Map<String, Value> =
                serde_json::from_str(whole.get()).map_err(|_| invalid())?;
            members.entry("max_tokens").or_insert_with(|| 1.into());
            let body = serde_json::to_vec(&members).map_err(|_| invalid())?;
            let mut request = read_request(dialect, &body)?;
            request.max_tokens = None;
            Ok(request)
        }
        Dialect::Gemini => {
            let mut members = Members::read(whole, String::new())?.camel();
            let inner = members.take("generateContentRequest");
            read_request(dialect, inner.unwrap_or(whole).get().as_bytes())
        }
        _ => Err(BadRequest::new(
            "unsupported_operation",
            "",
            "tokens cannot be counted in this form",
        )),
    }
}

/// Writes a request to count, with `request.model` as the model.
///
/// # Errors
///
/// The dialect knows no such call, or cannot carry a field that `loss` does not allow to drop.
///
/// ```
/// use backstop_dialects::{Dialect, Loss, read_count_request, write_count_request};
///
/// let body = br#"{"model":"m","messages":[{"role":"user","content":"hi"}]}"#;
/// let request = read_count_request(Dialect::AnthropicMessages, body)?;
/// let written = write_count_request(Dialect::Gemini, &request, Loss::Refuse).expect("carried");
/// let sent = br#"{"generateContentRequest":{"model":"models/m","contents":[{"role":"user","parts":[{"text":"hi"}]}]}}"#;
/// assert_eq!(written.body, sent);
/// # Ok::<(), backstop_dialects::BadRequest>(())
/// ```
pub fn write_count_request(
    dialect: Dialect,
    request: &Request,
    loss: Loss,
) -> Result<Written, Unsupported> {
    let options = WriteOptions {
        loss,
        ..WriteOptions::default()
    };
    let unsupported = || Unsupported {
        field: "count_tokens".to_owned(),
        dialect,
    };
    if !matches!(dialect, Dialect::AnthropicMessages | Dialect::Gemini) {
        return Err(unsupported());
    }
    let written = write_request(dialect, request, &options)?;
    let members: Map<String, Value> =
        serde_json::from_slice(&written.body).map_err(|_| unsupported())?;
    let mut body = Vec::with_capacity(written.body.len() + 64);
    if dialect == Dialect::AnthropicMessages {
        Object::write(&mut body, |out| {
            for (name, value) in &members {
                if COUNTED.contains(&name.as_str()) {
                    out.put(name, value);
                }
            }
        });
    } else {
        Object::write(&mut body, |out| {
            out.object("generateContentRequest", |out| {
                out.put("model", &*resource(&request.model));
                for (name, value) in &members {
                    out.put(name, value);
                }
            });
        });
    }
    Ok(Written { body, ..written })
}

/// Checks that `body` holds a count. Counting costs no tokens, so none are told of.
///
/// # Errors
///
/// The body is empty, not JSON, or holds no count.
pub fn inspect_count(dialect: Dialect, body: &[u8]) -> Result<AnswerFacts, Malformed> {
    if body.trim_ascii().is_empty() {
        return Err(Malformed {
            what: "an empty body",
            truncated: true,
            usage: None,
        });
    }
    let mut s = Scanner::over(body)?;
    if s.peek()? != Kind::Object {
        s.skip()?;
        return Err(Malformed::shape("not a JSON object"));
    }
    let mut facts = AnswerFacts::default();
    let mut counted = false;
    s.object(|s, member| {
        if member.is("error") {
            facts.error_inside |= says_error(s)?;
        } else if member.is(name_of(dialect)) {
            counted |= s.count_or_skip()?.is_some();
        } else {
            s.skip()?;
        }
        Ok::<(), Fault>(())
    })?;
    s.finish()?;
    if counted || facts.error_inside {
        Ok(facts)
    } else {
        Err(NO_COUNT)
    }
}

/// How many tokens an answer in `from` counts, as an answer in `to`.
///
/// # Errors
///
/// The body holds no count.
pub fn carry_count(from: Dialect, to: Dialect, body: &[u8]) -> Result<Vec<u8>, Malformed> {
    #[derive(Deserialize)]
    struct Counted {
        #[serde(alias = "totalTokens")]
        input_tokens: Option<u64>,
    }
    let counted: Counted = serde_json::from_slice(body).map_err(|_| NO_COUNT)?;
    let tokens = counted
        .input_tokens
        .filter(|_| from != to)
        .ok_or(NO_COUNT)?;
    let mut body = Vec::with_capacity(32);
    Object::write(&mut body, |out| out.put(name_of(to), &tokens));
    Ok(body)
}

/// The member that holds the count.
const fn name_of(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Gemini => "totalTokens",
        _ => "input_tokens",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn carried(from: Dialect, to: Dialect, body: &Value) -> Value {
        let request = read_count_request(from, body.to_string().as_bytes()).expect("a request");
        let request = Request {
            model: "m".to_owned(),
            ..request
        };
        let written = write_count_request(to, &request, Loss::Refuse).expect("carried");
        serde_json::from_slice(&written.body).expect("JSON")
    }

    #[test]
    fn a_conversation_is_counted_with_its_tools_and_without_its_settings() {
        let contents = json!([{"role": "user", "parts": [{"text": "hi"}]}]);
        let tool = json!({"functionDeclarations": [{"name": "f",
            "parametersJsonSchema": {"type": "object", "properties": {}}}]});
        let inner = json!({"model": "models/x", "contents": contents, "tools": [tool],
            "systemInstruction": {"parts": [{"text": "Be brief."}]},
            "generationConfig": {"maxOutputTokens": 9, "temperature": 0.5}});
        let anthropic = json!({
            "model": "m",
            "system": [{"type": "text", "text": "Be brief."}],
            "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
            "tools": [{"name": "f", "input_schema": {"type": "object", "properties": {}}}],
        });
        let (here, there) = (Dialect::Gemini, Dialect::AnthropicMessages);
        assert_eq!(
            carried(here, there, &json!({"generateContentRequest": inner})),
            anthropic
        );
        let flat = json!({"contents": contents});
        let sent = carried(here, there, &flat);
        assert_eq!(sent["messages"], anthropic["messages"]);
        let back = carried(there, here, &anthropic);
        let inside = &back["generateContentRequest"];
        assert_eq!(inside["model"], "models/m");
        assert_eq!(inside["contents"], contents);
        assert_eq!(inside["tools"][0]["functionDeclarations"][0]["name"], "f");
        assert!(inside["generationConfig"].is_null());
    }

    #[test]
    fn a_count_is_a_number_under_its_own_name() {
        let (anthropic, gemini) = (Dialect::AnthropicMessages, Dialect::Gemini);
        let theirs = br#"{"totalTokens":31,"promptTokensDetails":[{"tokenCount":31}]}"#;
        assert!(inspect_count(gemini, theirs).is_ok_and(|facts| facts.usage.is_none()));
        assert_eq!(
            carry_count(gemini, anthropic, theirs).expect("a count"),
            br#"{"input_tokens":31}"#
        );
        assert_eq!(
            carry_count(anthropic, gemini, br#"{"input_tokens":0}"#).expect("a count"),
            br#"{"totalTokens":0}"#
        );
        for (body, what) in [
            ("{}", "no count of tokens"),
            (r#"{"input_tokens":"9"}"#, "no count of tokens"),
            ("", "an empty body"),
            ("[]", "not a JSON object"),
            (r#"{"input_tokens":"#, "JSON that ends inside a value"),
        ] {
            let refused = inspect_count(anthropic, body.as_bytes()).expect_err(body);
            assert_eq!(refused.what, what, "{body}");
        }
        let error = br#"{"type":"error","error":{"type":"api_error","message":"x"}}"#;
        assert!(inspect_count(anthropic, error).is_ok_and(|facts| facts.error_inside));
    }

    #[test]
    fn nobody_else_counts() {
        for dialect in [Dialect::OpenAiChat, Dialect::CohereV2] {
            assert!(read_count_request(dialect, b"{}").is_err());
            let refused = write_count_request(dialect, &Request::default(), Loss::Drop);
            assert_eq!(refused.expect_err("refused").field, "count_tokens");
        }
    }
}

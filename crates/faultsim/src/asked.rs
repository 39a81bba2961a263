//! What a request asks for, as far as an answer depends on it.

use serde_json::Value;

/// The wire shape of a request and its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Chat completions, and every path that is not Anthropic's.
    OpenAi,
    /// Messages.
    Anthropic,
    /// Bedrock's Converse.
    Bedrock,
}

impl Dialect {
    /// The dialect of a path without its query.
    #[must_use]
    pub fn of(path: &str) -> Self {
        let path = path.trim_end_matches('/');
        if path.ends_with("/messages") || path.ends_with("/messages/count_tokens") {
            Self::Anthropic
        } else if path.ends_with("/converse") || path.ends_with("/converse-stream") {
            Self::Bedrock
        } else {
            Self::OpenAi
        }
    }
}

/// A request, read leniently: what is missing or odd is simply not there.
#[derive(Debug, Clone, Default)]
pub(crate) struct Asked {
    pub(crate) is_json: bool,
    pub(crate) model: Option<String>,
    pub(crate) stream: bool,
    pub(crate) usage_chunk: bool,
    /// The first tool offered.
    pub(crate) tool: Option<Tool>,
    /// Whether the last message asks to call it.
    pub(crate) wants_call: bool,
}

/// A tool as a request offers it.
#[derive(Debug, Clone)]
pub(crate) struct Tool {
    pub(crate) name: String,
    pub(crate) schema: Value,
}

impl Asked {
    pub(crate) fn read(path: &str, body: &[u8]) -> Self {
        let Ok(body) = serde_json::from_slice::<Value>(body) else {
            return Self {
                model: model_in_path(path),
                ..Self::default()
            };
        };
        let last = body["messages"].as_array().and_then(|all| all.last());
        Self {
            is_json: true,
            model: body["model"]
                .as_str()
                .map(str::to_owned)
                .or_else(|| model_in_path(path)),
            stream: body["stream"] == true
                || path.contains(":streamGenerateContent")
                || path.ends_with("/converse-stream"),
            usage_chunk: body["stream_options"]["include_usage"] == true,
            tool: body["tools"]
                .as_array()
                .or_else(|| body["toolConfig"]["tools"].as_array())
                .and_then(|tools| tools.iter().find_map(tool)),
            wants_call: last.is_some_and(|message| asks_for_call(&message["content"])),
        }
    }
}

fn tool(offered: &Value) -> Option<Tool> {
    if let Some(name) = offered["toolSpec"]["name"].as_str() {
        return Some(Tool {
            name: name.to_owned(),
            schema: offered["toolSpec"]["inputSchema"]["json"].clone(),
        });
    }
    let (inner, schema) = match &offered["function"] {
        Value::Null => (offered, "input_schema"),
        function => (function, "parameters"),
    };
    let name = inner["name"].as_str()?.to_owned();
    Some(Tool {
        name,
        schema: inner[schema].clone(),
    })
}

fn asks_for_call(content: &Value) -> bool {
    match content {
        Value::String(text) => text.to_ascii_lowercase().contains("call a tool"),
        Value::Array(parts) => parts.iter().any(|part| asks_for_call(&part["text"])),
        _ => false,
    }
}

/// The model in `/deployments/{model}/…`, `/models/{model}:verb` or `/model/{model}/…`.
fn model_in_path(path: &str) -> Option<String> {
    let rest = ["/deployments/", "/models/", "/model/"]
        .iter()
        .find_map(|mark| path.split_once(mark).map(|(_, rest)| rest))?;
    let model = rest
        .split(['/', ':'])
        .next()
        .filter(|model| !model.is_empty())?;
    Some(model.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_is_in_the_body_or_in_the_path() {
        let rows = [
            ("/v1/chat/completions", r#"{"model":"m"}"#, Some("m")),
            (
                "/openai/deployments/d1/chat/completions",
                r#"{"model":"m"}"#,
                Some("m"),
            ),
            ("/openai/deployments/d1/chat/completions", "{}", Some("d1")),
            ("/v1beta/models/g:generateContent", "{}", Some("g")),
            ("/model/b/converse", "{}", Some("b")),
            ("/model/b%3A0/converse-stream", "{}", Some("b%3A0")),
            ("/v1/chat/completions", "not json", None),
            ("/v1/models", "", None),
        ];
        for (path, body, want) in rows {
            assert_eq!(
                Asked::read(path, body.as_bytes()).model.as_deref(),
                want,
                "{path} {body}"
            );
        }
    }

    #[test]
    fn a_call_is_asked_for_in_the_last_message_only() {
        let rows = [
            (
                r#"{"messages":[{"role":"user","content":"Please CALL a tool"}]}"#,
                true,
            ),
            (
                r#"{"messages":[{"content":[{"type":"text","text":"call a tool"}]}]}"#,
                true,
            ),
            (
                r#"{"messages":[{"content":"call a tool"},{"role":"tool","content":"4"}]}"#,
                false,
            ),
            (r#"{"messages":[]}"#, false),
            (r#"{"messages":7}"#, false),
        ];
        for (body, want) in rows {
            assert_eq!(
                Asked::read("/v1/messages", body.as_bytes()).wants_call,
                want,
                "{body}"
            );
        }
    }
}

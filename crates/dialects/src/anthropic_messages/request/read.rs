//! From the wire to the neutral shape.

use backstop_chat::{
    Effort, Extra, Image, Message, Part, Reasoning, Request, ResponseFormat, Role, Tool,
    ToolChoice, Weight,
};
use serde_json::value::RawValue;

use super::super::OWN;
use crate::envelope::BadRequest;
use crate::members::{Members, as_string, entries};

/// Members that do not change the answer, at the top or on a block.
const HINTS: [&str; 3] = ["cache_control", "service_tier", "metadata"];

pub(crate) fn read(body: &RawValue) -> Result<Request, BadRequest> {
    let mut m = Members::read(body, String::new())?;
    let mut extras = Vec::new();
    let model = m.string("model")?;
    let mut request = Request {
        model: m.required("model", model)?,
        stream: m.bool("stream")?.unwrap_or(false),
        include_usage: true,
        max_tokens: m.count("max_tokens")?,
        temperature: m.number("temperature")?,
        top_p: m.number("top_p")?,
        top_k: m.count("top_k")?,
        ..Request::default()
    };
    m.required("max_tokens", request.max_tokens)?;
    for (at, value) in m.array("stop_sequences")? {
        let text = as_string(value).ok_or_else(|| BadRequest::wrong_type(&at, "a string"))?;
        request.stop.push(text.into());
    }
    if let Some(value) = m.take("system") {
        blocks(value, "system", &mut request.instructions, &mut extras)?;
    }
    for (at, value) in m.array("tools")? {
        request.tools.push(tool(value, at, &mut extras)?);
    }
    tool_choice(&mut m, &mut request)?;
    thinking(&mut m, &mut request, &mut extras)?;
    if let Some(mut metadata) = m.object("metadata")? {
        request.user = metadata.text("user_id")?;
        keep_rest(metadata, &mut extras);
    }
    let messages = m.take("messages");
    let messages = m.required("messages", messages)?;
    for (at, value) in entries(messages, "messages")? {
        request.messages.push(message(value, at, &mut extras)?);
    }
    m.take("fallbacks");
    keep_rest(m, &mut extras);
    request.extras = extras;
    Ok(request)
}

fn keep(extras: &mut Vec<Extra>, path: String, value: &RawValue) {
    let name = path.rsplit('.').next().unwrap_or_default();
    let weight = if HINTS.contains(&name) || path.starts_with("metadata.") {
        Weight::Hint
    } else {
        Weight::Contract
    };
    extras.push(Extra {
        dialect: OWN,
        path,
        value: value.into(),
        weight,
    });
}

fn keep_rest(members: Members<'_>, extras: &mut Vec<Extra>) {
    for (path, value) in members.rest() {
        keep(extras, path, value);
    }
}

fn tool(value: &RawValue, at: String, extras: &mut Vec<Extra>) -> Result<Tool, BadRequest> {
    let mut m = Members::read(value, at)?;
    let kind = m.string("type")?.unwrap_or_else(|| "custom".to_owned());
    if kind != "custom" {
        return Ok(Tool::Other {
            dialect: OWN,
            kind,
            value: value.into(),
        });
    }
    let name = m.string("name")?;
    let tool = Tool::Function {
        name: m.required("name", name)?,
        description: m.text("description")?,
        parameters: m.json("input_schema"),
        strict: m.bool("strict")?,
    };
    keep_rest(m, extras);
    Ok(tool)
}

fn tool_choice(m: &mut Members<'_>, request: &mut Request) -> Result<(), BadRequest> {
    let Some(mut choice) = m.object("tool_choice")? else {
        return Ok(());
    };
    request.tool_choice = match choice.string("type")?.as_deref() {
        Some("auto") => Some(ToolChoice::Auto),
        Some("any") => Some(ToolChoice::Required),
        Some("none") => Some(ToolChoice::None),
        Some("tool") => {
            let name = choice.string("name")?;
            Some(ToolChoice::Named(choice.required("name", name)?))
        }
        _ => {
            return Err(BadRequest::wrong_type(
                "tool_choice.type",
                "`auto`, `any`, `tool` or `none`",
            ));
        }
    };
    if choice.bool("disable_parallel_tool_use")? == Some(true) {
        request.parallel_tool_calls = Some(false);
    }
    Ok(())
}

/// `thinking`, and `output_config` with the effort that goes with it and the answer's form.
fn thinking(
    m: &mut Members<'_>,
    request: &mut Request,
    extras: &mut Vec<Extra>,
) -> Result<(), BadRequest> {
    if let Some(mut thinking) = m.object("thinking")? {
        let budget = thinking.count("budget_tokens")?;
        request.reasoning = match thinking.string("type")?.as_deref() {
            // The same as not asking.
            Some("disabled") => None,
            Some("adaptive") => Some(Reasoning::Adaptive),
            Some("enabled") => Some(Reasoning::Budget(
                thinking.required("budget_tokens", budget)?,
            )),
            _ => {
                return Err(BadRequest::wrong_type(
                    "thinking.type",
                    "`enabled`, `adaptive` or `disabled`",
                ));
            }
        };
    }
    // The place a beta had for it.
    let older = m.take("output_format");
    let Some(mut config) = m.object("output_config")? else {
        return older.map_or(Ok(()), |value| {
            format(value, "output_format", request, extras)
        });
    };
    if let Some(value) = config.take("effort") {
        match serde_json::from_str::<Effort>(value.get()) {
            Ok(effort) if request.reasoning == Some(Reasoning::Adaptive) => {
                request.reasoning = Some(Reasoning::Effort(effort));
            }
            _ => keep(extras, "output_config.effort".to_owned(), value),
        }
    }
    if let Some(value) = config.take("format").or(older) {
        format(value, "output_config.format", request, extras)?;
    }
    keep_rest(config, extras);
    Ok(())
}

fn format(
    value: &RawValue,
    at: &str,
    request: &mut Request,
    extras: &mut Vec<Extra>,
) -> Result<(), BadRequest> {
    let mut m = Members::read(value, at.to_owned())?;
    if m.string("type")?.as_deref() != Some("json_schema") {
        keep(extras, at.to_owned(), value);
        return Ok(());
    }
    let schema = m.json("schema");
    request.response_format = Some(ResponseFormat::JsonSchema {
        name: None,
        description: None,
        schema: m.required("schema", schema)?,
        // This dialect knows no other way.
        strict: Some(true),
    });
    Ok(())
}

fn message(value: &RawValue, at: String, extras: &mut Vec<Extra>) -> Result<Message, BadRequest> {
    let mut m = Members::read(value, at)?;
    let role = m.string("role")?;
    let role = match m.required("role", role)?.as_str() {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        // Not documented; clear enough.
        "system" => Role::System,
        _ => {
            return Err(BadRequest::wrong_type(
                &m.path("role"),
                "`user` or `assistant`",
            ));
        }
    };
    let at = m.path("content");
    let content = m.take("content");
    let mut parts = Vec::new();
    blocks(m.required("content", content)?, &at, &mut parts, extras)?;
    keep_rest(m, extras);
    Ok(Message {
        role,
        name: None,
        parts,
    })
}

/// Content: a string, or an array of blocks.
fn blocks(
    value: &RawValue,
    at: &str,
    parts: &mut Vec<Part>,
    extras: &mut Vec<Extra>,
) -> Result<(), BadRequest> {
    if let Some(text) = as_string(value) {
        parts.push(Part::Text(text.into()));
        return Ok(());
    }
    if !value.get().starts_with('[') {
        return Err(BadRequest::wrong_type(at, "a string or an array of blocks"));
    }
    for (at, value) in entries(value, at)? {
        parts.push(block(value, at, extras)?);
    }
    Ok(())
}

fn block(value: &RawValue, at: String, extras: &mut Vec<Extra>) -> Result<Part, BadRequest> {
    let mut m = Members::read(value, at)?;
    let kind = m.string("type")?;
    let kind = m.required("type", kind)?;
    let other = || Part::Other {
        dialect: OWN,
        kind: kind.clone(),
        value: value.into(),
    };
    let part = match kind.as_str() {
        "text" => {
            let text = m.text("text")?;
            Part::Text(m.required("text", text)?)
        }
        "image" => {
            let source = m.object("source")?;
            match image(m.required("source", source)?)? {
                Some(image) => Part::Image(image),
                None => return Ok(other()),
            }
        }
        "tool_use" => {
            let (id, name) = (m.string("id")?, m.string("name")?);
            Part::ToolCall {
                id: m.required("id", id)?,
                name: m.required("name", name)?,
                arguments: m.take("input").map_or("{}", RawValue::get).into(),
            }
        }
        "tool_result" => {
            let id = m.string("tool_use_id")?;
            let at = m.path("content");
            let mut content = Vec::new();
            if let Some(value) = m.take("content") {
                blocks(value, &at, &mut content, extras)?;
            }
            Part::ToolResult {
                id: m.required("tool_use_id", id)?,
                content,
                is_error: m.bool("is_error")?.unwrap_or(false),
            }
        }
        "thinking" => Part::Reasoning {
            text: m.text("thinking")?.unwrap_or_default(),
            signature: m.text("signature")?.filter(|text| !text.is_empty()),
        },
        "redacted_thinking" => {
            let data = m.text("data")?;
            Part::RedactedReasoning(m.required("data", data)?)
        }
        _ => return Ok(other()),
    };
    // Who called a tool, in answers handed back; only `direct` calls look like this.
    m.take("caller");
    keep_rest(m, extras);
    Ok(part)
}

fn image(mut source: Members<'_>) -> Result<Option<Image>, BadRequest> {
    match source.string("type")?.as_deref() {
        Some("base64") => {
            let (media_type, data) = (source.string("media_type")?, source.text("data")?);
            Ok(Some(Image::Base64 {
                media_type: source.required("media_type", media_type)?,
                data: source.required("data", data)?,
                detail: None,
            }))
        }
        Some("url") => {
            let url = source.text("url")?;
            Ok(Some(Image::Url {
                url: source.required("url", url)?,
                detail: None,
            }))
        }
        _ => Ok(None),
    }
}

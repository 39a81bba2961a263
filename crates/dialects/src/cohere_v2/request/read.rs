//! From the wire to the neutral shape.

use backstop_chat::{
    Extra, Image, Message, Part, Reasoning, Request, ResponseFormat, Role, Tool, ToolChoice, Weight,
};
use serde_json::value::RawValue;

use super::super::OWN;
use crate::envelope::BadRequest;
use crate::members::{Members, as_string, entries};

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
        top_p: m.number("p")?,
        top_k: m.count("k")?,
        seed: m.integer("seed")?,
        presence_penalty: m.number("presence_penalty")?,
        frequency_penalty: m.number("frequency_penalty")?,
        logprobs: m.bool("logprobs")?,
        ..Request::default()
    };
    if let Some(value) = m.take("stop_sequences") {
        request.stop = serde_json::from_str(value.get())
            .map_err(|_| BadRequest::wrong_type("stop_sequences", "an array of strings"))?;
    }
    for (at, value) in m.array("tools")? {
        request.tools.push(tool(value, at)?);
    }
    request.tool_choice = match m.string("tool_choice")?.as_deref() {
        Some("REQUIRED") => Some(ToolChoice::Required),
        Some("NONE") => Some(ToolChoice::None),
        _ => None,
    };
    if let Some(format) = m.object("response_format")? {
        request.response_format = response_format(format)?;
    }
    if let Some(mut thinking) = m.object("thinking")? {
        let budget = thinking.count("token_budget")?;
        request.reasoning = match (thinking.string("type")?.as_deref(), budget) {
            (Some("disabled"), _) => Some(Reasoning::Off),
            (_, Some(tokens)) => Some(Reasoning::Budget(tokens)),
            (_, None) => Some(Reasoning::Adaptive),
        };
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

fn keep_rest(members: Members<'_>, extras: &mut Vec<Extra>) {
    for (path, value) in members.rest() {
        let weight = if path.ends_with(".citations") || path == "priority" {
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
}

fn tool(value: &RawValue, at: String) -> Result<Tool, BadRequest> {
    let mut m = Members::read(value, at)?;
    let kind = m.string("type")?.unwrap_or_else(|| "function".to_owned());
    if kind != "function" {
        return Ok(Tool::Other {
            dialect: OWN,
            kind,
            value: value.into(),
        });
    }
    let function = m.object("function")?;
    let mut function = m.required("function", function)?;
    let name = function.string("name")?;
    Ok(Tool::Function {
        name: function.required("name", name)?,
        description: function.text("description")?,
        parameters: function.json("parameters"),
        strict: None,
    })
}

fn response_format(mut format: Members<'_>) -> Result<Option<ResponseFormat>, BadRequest> {
    let kind = format.string("type")?;
    // The second is the older name.
    let schema = format.json("schema").or(format.json("json_schema"));
    Ok(match (kind.as_deref(), schema) {
        (Some("json_object"), Some(schema)) => Some(ResponseFormat::JsonSchema {
            name: None,
            description: None,
            schema,
            strict: None,
        }),
        (Some("json_object"), None) => Some(ResponseFormat::JsonObject),
        _ => None,
    })
}

fn message(value: &RawValue, at: String, extras: &mut Vec<Extra>) -> Result<Message, BadRequest> {
    let mut m = Members::read(value, at)?;
    let role = m.string("role")?;
    let role = match m.required("role", role)?.as_str() {
        "system" | "developer" => Role::System,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool" => Role::Tool,
        _ => {
            return Err(BadRequest::wrong_type(
                &m.path("role"),
                "`system`, `user`, `assistant` or `tool`",
            ));
        }
    };
    let mut parts = Vec::new();
    if role == Role::Assistant
        && let Some(text) = m.text("tool_plan")?.filter(|text| !text.is_empty())
    {
        parts.push(Part::Reasoning {
            text,
            signature: None,
        });
    }
    content(&mut m, &mut parts)?;
    for (at, value) in m.array("tool_calls")? {
        let mut call = Members::read(value, at)?;
        let function = call.object("function")?;
        let mut function = call.required("function", function)?;
        let id = call.string("id")?;
        let name = function.string("name")?;
        parts.push(Part::ToolCall {
            id: call.required("id", id)?,
            name: function.required("name", name)?,
            arguments: function.text("arguments")?.unwrap_or_default(),
        });
    }
    if role == Role::Tool {
        let id = m.string("tool_call_id")?;
        parts = vec![Part::ToolResult {
            id: m.required("tool_call_id", id)?,
            content: parts,
            is_error: false,
        }];
    }
    keep_rest(m, extras);
    Ok(Message {
        role,
        name: None,
        parts,
    })
}

fn content(m: &mut Members<'_>, parts: &mut Vec<Part>) -> Result<(), BadRequest> {
    let at = m.path("content");
    let Some(value) = m.take("content") else {
        return Ok(());
    };
    if let Some(text) = as_string(value) {
        parts.push(Part::Text(text.into()));
        return Ok(());
    }
    for (at, value) in entries(value, &at)? {
        let mut block = Members::read(value, at)?;
        let kind = block.string("type")?;
        let kind = block.required("type", kind)?;
        let part = match kind.as_str() {
            "text" => block.text("text")?.map(Part::Text),
            "thinking" => block.text("thinking")?.map(|text| Part::Reasoning {
                text,
                signature: None,
            }),
            "image_url" => image(&mut block)?.map(Part::Image),
            _ => None,
        };
        match part {
            // What stands beside calls.
            Some(Part::Text(text)) if text.is_empty() => {}
            Some(part) => parts.push(part),
            None => parts.push(Part::Other {
                dialect: OWN,
                kind,
                value: value.into(),
            }),
        }
    }
    Ok(())
}

fn image(block: &mut Members<'_>) -> Result<Option<Image>, BadRequest> {
    let Some(mut inner) = block.object("image_url")? else {
        return Ok(None);
    };
    let url = inner.string("url")?;
    let url = inner.required("url", url)?;
    let detail = inner.string("detail")?;
    let inline = url
        .strip_prefix("data:")
        .and_then(|rest| rest.split_once(";base64,"));
    Ok(Some(match inline {
        Some((media_type, data)) => Image::Base64 {
            media_type: media_type.to_owned(),
            data: data.into(),
            detail,
        },
        None => Image::Url {
            url: url.into(),
            detail,
        },
    }))
}

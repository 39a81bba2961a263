//! From the wire to the neutral shape.

use backstop_chat::{
    Effort, Extra, Image, Json, Message, Part, Reasoning, Request, ResponseFormat, Role, Tool,
    ToolChoice, Weight,
};
use serde_json::value::RawValue;

use super::super::{OWN, block};
use crate::envelope::BadRequest;
use crate::members::{Members, as_string, entries};

/// Members that do not change the answer.
const HINTS: [&str; 4] = [
    "cachePoint",
    "performanceConfig",
    "requestMetadata",
    "serviceTier",
];

/// The model and the wish for a stream stand in the path; whoever read it adds them.
pub(crate) fn read(body: &RawValue) -> Result<Request, BadRequest> {
    let mut m = Members::read(body, String::new())?;
    let mut extras = Vec::new();
    let mut request = Request {
        include_usage: true,
        ..Request::default()
    };
    if let Some(mut config) = m.object("inferenceConfig")? {
        request.max_tokens = config.count("maxTokens")?;
        request.temperature = config.number("temperature")?;
        request.top_p = config.number("topP")?;
        for (at, value) in config.array("stopSequences")? {
            let text = as_string(value).ok_or_else(|| BadRequest::wrong_type(&at, "a string"))?;
            request.stop.push(text.into());
        }
        keep_rest(config, &mut extras);
    }
    for (at, value) in m.array("system")? {
        request
            .instructions
            .extend(content(value, at, &mut extras)?);
    }
    if let Some(mut config) = m.object("toolConfig")? {
        for (at, value) in config.array("tools")? {
            request.tools.extend(tool(value, at, &mut extras)?);
        }
        request.tool_choice = tool_choice(&mut config)?;
        keep_rest(config, &mut extras);
    }
    if let Some(config) = m.object("outputConfig")? {
        output_config(config, &mut request, &mut extras)?;
    }
    if let Some(fields) = m.object("additionalModelRequestFields")? {
        of_the_model(fields, &mut request, &mut extras)?;
    }
    let messages = m.take("messages");
    let messages = m.required("messages", messages)?;
    for (at, value) in entries(messages, "messages")? {
        request.messages.push(message(value, at, &mut extras)?);
    }
    for own in ["model", "modelId", "stream", "fallbacks"] {
        m.take(own);
    }
    keep_rest(m, &mut extras);
    request.extras = extras;
    Ok(request)
}

fn keep(extras: &mut Vec<Extra>, path: String, value: &RawValue) {
    let name = path.rsplit('.').next().unwrap_or_default();
    let weight = if HINTS.contains(&name) {
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

/// A tool; `None` for what is none, such as a mark for the cache.
fn tool(value: &RawValue, at: String, extras: &mut Vec<Extra>) -> Result<Option<Tool>, BadRequest> {
    let mut m = Members::read(value, at)?;
    let Some(mut spec) = m.object("toolSpec")? else {
        if let Some(mark) = m.take("cachePoint") {
            keep(extras, m.path("cachePoint"), mark);
            return Ok(None);
        }
        let kind = block::member(value).map_or_else(String::new, |(kind, _)| kind);
        let value = value.into();
        return Ok(Some(Tool::Other {
            dialect: OWN,
            kind,
            value,
        }));
    };
    let name = spec.string("name")?;
    let mut schema = spec.object("inputSchema")?;
    let tool = Tool::Function {
        name: spec.required("name", name)?,
        description: spec.text("description")?,
        parameters: schema.as_mut().and_then(|schema| schema.json("json")),
        strict: spec.bool("strict")?,
    };
    keep_rest(spec, extras);
    Ok(Some(tool))
}

fn tool_choice(config: &mut Members<'_>) -> Result<Option<ToolChoice>, BadRequest> {
    let Some(mut choice) = config.object("toolChoice")? else {
        return Ok(None);
    };
    if choice.take("auto").is_some() {
        return Ok(Some(ToolChoice::Auto));
    }
    if choice.take("any").is_some() {
        return Ok(Some(ToolChoice::Required));
    }
    let tool = choice.object("tool")?;
    let mut tool = choice.required("tool", tool)?;
    let name = tool.string("name")?;
    Ok(Some(ToolChoice::Named(tool.required("name", name)?)))
}

/// The form of the answer: a schema that stands in a string.
fn output_config(
    mut config: Members<'_>,
    request: &mut Request,
    extras: &mut Vec<Extra>,
) -> Result<(), BadRequest> {
    if let Some(mut format) = config.object("textFormat")? {
        let kind = format.string("type")?;
        let structure = format.object("structure")?;
        match (kind.as_deref(), structure) {
            (Some("json_schema"), Some(mut structure)) => {
                let schema = structure.object("jsonSchema")?;
                let mut schema = structure.required("jsonSchema", schema)?;
                let written = schema.string("schema")?;
                let written = schema.required("schema", written)?;
                let value: &RawValue = serde_json::from_str(&written).map_err(|_| {
                    BadRequest::wrong_type(&schema.path("schema"), "a JSON schema in a string")
                })?;
                request.response_format = Some(ResponseFormat::JsonSchema {
                    name: schema.string("name")?,
                    description: schema.text("description")?,
                    schema: Json::from(value),
                    // This dialect knows no other way.
                    strict: Some(true),
                });
            }
            _ => {
                let path = format.path("type");
                return Err(BadRequest::wrong_type(
                    &path,
                    "`json_schema`, with a `structure`",
                ));
            }
        }
    }
    keep_rest(config, extras);
    Ok(())
}

/// What goes to the model as it is: of that, what has a neutral name.
fn of_the_model(
    mut fields: Members<'_>,
    request: &mut Request,
    extras: &mut Vec<Extra>,
) -> Result<(), BadRequest> {
    request.top_k = fields.count("top_k")?;
    for name in ["thinking", "reasoning_config"] {
        let Some(mut thinking) = fields.object(name)? else {
            continue;
        };
        let budget = thinking.count("budget_tokens")?;
        request.reasoning = match thinking.string("type")?.as_deref() {
            // The same as not asking.
            Some("disabled") => None,
            Some("adaptive") => Some(Reasoning::Adaptive),
            _ => Some(Reasoning::Budget(
                thinking.required("budget_tokens", budget)?,
            )),
        };
    }
    let mut effort = fields.string("reasoning_effort")?;
    if let Some(mut config) = fields.object("reasoningConfig")? {
        config.take("type");
        effort = config.string("maxReasoningEffort")?;
        keep_rest(config, extras);
    }
    if let Some(word) = effort {
        let effort: Option<Effort> = serde_json::from_value(word.into()).ok();
        request.reasoning = effort.map(Reasoning::Effort);
    }
    keep_rest(fields, extras);
    Ok(())
}

fn message(value: &RawValue, at: String, extras: &mut Vec<Extra>) -> Result<Message, BadRequest> {
    let mut m = Members::read(value, at)?;
    let role = m.string("role")?;
    let role = match m.required("role", role)?.as_str() {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "system" => Role::System,
        _ => {
            return Err(BadRequest::wrong_type(
                &m.path("role"),
                "`user` or `assistant`",
            ));
        }
    };
    let at = m.path("content");
    let blocks = m.take("content");
    let mut parts = Vec::new();
    for (at, value) in entries(m.required("content", blocks)?, &at)? {
        parts.extend(content(value, at, extras)?);
    }
    keep_rest(m, extras);
    Ok(Message {
        role,
        name: None,
        parts,
    })
}

/// One block; `None` for what is no content, such as a mark for the cache.
fn content(
    value: &RawValue,
    at: String,
    extras: &mut Vec<Extra>,
) -> Result<Option<Part>, BadRequest> {
    let mut m = Members::read(value, at)?;
    if let Some(mark) = m.take("cachePoint") {
        keep(extras, m.path("cachePoint"), mark);
        return Ok(None);
    }
    if let Some(text) = m.text("text")? {
        keep_rest(m, extras);
        return Ok(Some(Part::Text(text)));
    }
    // The value itself where only a result has it.
    if let Some(json) = m.take("json") {
        return Ok(Some(Part::Text(json.get().into())));
    }
    if let Some(mut call) = m.object("toolUse")? {
        let (id, name) = (call.string("toolUseId")?, call.string("name")?);
        // Some answers have it.
        call.take("type");
        let part = Part::ToolCall {
            id: call.required("toolUseId", id)?,
            name: call.required("name", name)?,
            arguments: call.take("input").map_or("{}", RawValue::get).into(),
        };
        keep_rest(call, extras);
        return Ok(Some(part));
    }
    if let Some(mut result) = m.object("toolResult")? {
        let id = result.string("toolUseId")?;
        let mut inner = Vec::new();
        for (at, value) in result.array("content")? {
            inner.extend(content(value, at, extras)?);
        }
        let part = Part::ToolResult {
            id: result.required("toolUseId", id)?,
            content: inner,
            is_error: result.string("status")?.as_deref() == Some("error"),
        };
        result.take("type");
        keep_rest(result, extras);
        return Ok(Some(part));
    }
    Ok(Some(other(value, &m.path(""))?))
}

/// A picture, reasoning, or what only this dialect knows.
fn other(value: &RawValue, at: &str) -> Result<Part, BadRequest> {
    let at = at.trim_end_matches('.');
    let Some((kind, inner)) = block::member(value) else {
        return Err(BadRequest::wrong_type(at, "a block with one member"));
    };
    let known = match kind.as_str() {
        "image" => image(inner, format!("{at}.image"))?,
        "reasoningContent" => Some(
            block::reasoning(inner)
                .ok_or_else(|| BadRequest::wrong_type(&format!("{at}.{kind}"), "reasoning"))?,
        ),
        _ => None,
    };
    Ok(known.unwrap_or(Part::Other {
        dialect: OWN,
        kind,
        value: value.into(),
    }))
}

/// A picture that is carried along; one in a bucket is this dialect's own.
fn image(value: &RawValue, at: String) -> Result<Option<Part>, BadRequest> {
    let mut m = Members::read(value, at)?;
    let format = m.string("format")?;
    let format = m.required("format", format)?;
    let source = m.object("source")?;
    let mut source = m.required("source", source)?;
    Ok(source.text("bytes")?.map(|data| {
        Part::Image(Image::Base64 {
            media_type: format!("image/{format}"),
            data,
            detail: None,
        })
    }))
}

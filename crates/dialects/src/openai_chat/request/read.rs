//! From the wire to the neutral shape.

use backstop_chat::{
    Effort, Extra, Image, Message, Part, Reasoning, Request, ResponseFormat, Role, Text, Tool,
    ToolChoice, Weight,
};
use serde_json::value::RawValue;

use super::super::OWN;
use crate::envelope::BadRequest;
use crate::members::{Members, as_string, entries};

/// Top-level members that do not change the answer.
const HINTS: [&str; 7] = [
    "metadata",
    "prediction",
    "prompt_cache_key",
    "prompt_cache_retention",
    "safety_identifier",
    "service_tier",
    "store",
];

pub(crate) fn read(body: &RawValue) -> Result<Request, BadRequest> {
    let mut m = Members::read(body, String::new())?;
    let mut extras = Vec::new();
    let model = m.string("model")?;
    let mut request = Request {
        model: m.required("model", model)?,
        stream: m.bool("stream")?.unwrap_or(false),
        parallel_tool_calls: m.bool("parallel_tool_calls")?,
        temperature: m.number("temperature")?,
        top_p: m.number("top_p")?,
        seed: m.integer("seed")?,
        presence_penalty: m.number("presence_penalty")?,
        frequency_penalty: m.number("frequency_penalty")?,
        n: m.count("n")?,
        logprobs: m.bool("logprobs")?,
        top_logprobs: m.count("top_logprobs")?,
        user: m.text("user")?,
        ..Request::default()
    };
    let older = m.count("max_tokens")?;
    request.max_tokens = m.count("max_completion_tokens")?.or(older);
    if let Some(mut options) = m.object("stream_options")? {
        request.include_usage = options.bool("include_usage")?.unwrap_or(false);
        // Padding against traffic analysis; the writer of a stream decides on its own.
        options.take("include_obfuscation");
        keep_rest(options, &mut extras);
    }
    request.stop = stop(&mut m)?;
    for (at, value) in m.array("tools")? {
        request.tools.push(tool(value, at)?);
    }
    request.tool_choice = tool_choice(&mut m, &mut extras)?;
    request.response_format = response_format(&mut m, &mut extras)?;
    request.reasoning = effort(&mut m, &mut extras)?;
    let messages = m.take("messages");
    let messages = m.required("messages", messages)?;
    for (at, value) in entries(messages, "messages")? {
        request.messages.push(message(value, at, &mut extras)?);
    }
    m.take("fallbacks");
    keep_rest(m, &mut extras);
    // Asking for text alone is asking for nothing special.
    extras.retain(|extra| extra.path != "modalities" || extra.value.as_str() != r#"["text"]"#);
    request.extras = extras;
    Ok(request)
}

fn keep(extras: &mut Vec<Extra>, path: String, value: &RawValue) {
    let weight = if HINTS.contains(&path.as_str()) || path.ends_with(".annotations") {
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

fn stop(m: &mut Members<'_>) -> Result<Vec<Text>, BadRequest> {
    let Some(value) = m.take("stop") else {
        return Ok(Vec::new());
    };
    if let Some(one) = as_string(value) {
        return Ok(vec![one.into()]);
    }
    serde_json::from_str(value.get())
        .map_err(|_| BadRequest::wrong_type("stop", "a string or an array of strings"))
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
        strict: function.bool("strict")?,
    })
}

fn tool_choice(
    m: &mut Members<'_>,
    extras: &mut Vec<Extra>,
) -> Result<Option<ToolChoice>, BadRequest> {
    let Some(value) = m.take("tool_choice") else {
        return Ok(None);
    };
    if let Some(word) = as_string(value) {
        return match word.as_str() {
            "auto" => Ok(Some(ToolChoice::Auto)),
            "none" => Ok(Some(ToolChoice::None)),
            // Mistral's word for it.
            "required" | "any" => Ok(Some(ToolChoice::Required)),
            _ => Err(BadRequest::wrong_type(
                "tool_choice",
                "`auto`, `none`, `required` or an object",
            )),
        };
    }
    let mut choice = Members::read(value, "tool_choice".to_owned())?;
    if choice.string("type")?.as_deref() == Some("function") {
        let function = choice.object("function")?;
        let mut function = choice.required("function", function)?;
        let name = function.string("name")?;
        return Ok(Some(ToolChoice::Named(function.required("name", name)?)));
    }
    keep(extras, "tool_choice".to_owned(), value);
    Ok(None)
}

fn response_format(
    m: &mut Members<'_>,
    extras: &mut Vec<Extra>,
) -> Result<Option<ResponseFormat>, BadRequest> {
    let Some(value) = m.take("response_format") else {
        return Ok(None);
    };
    let mut format = Members::read(value, "response_format".to_owned())?;
    match format.string("type")?.as_deref() {
        Some("text") => Ok(Some(ResponseFormat::Text)),
        Some("json_object") => Ok(Some(ResponseFormat::JsonObject)),
        Some("json_schema") => {
            let schema = format.object("json_schema")?;
            let mut named = format.required("json_schema", schema)?;
            let schema = named.json("schema");
            Ok(Some(ResponseFormat::JsonSchema {
                name: named.string("name")?,
                description: named.text("description")?,
                strict: named.bool("strict")?,
                schema: named.required("schema", schema)?,
            }))
        }
        _ => {
            keep(extras, "response_format".to_owned(), value);
            Ok(None)
        }
    }
}

fn effort(m: &mut Members<'_>, extras: &mut Vec<Extra>) -> Result<Option<Reasoning>, BadRequest> {
    let Some(value) = m.take("reasoning_effort") else {
        return Ok(None);
    };
    let Some(word) = as_string(value) else {
        return Err(BadRequest::wrong_type("reasoning_effort", "a string"));
    };
    if word == "none" {
        return Ok(Some(Reasoning::Off));
    }
    if let Ok(effort) = serde_json::from_str::<Effort>(value.get()) {
        return Ok(Some(Reasoning::Effort(effort)));
    }
    keep(extras, "reasoning_effort".to_owned(), value);
    Ok(None)
}

fn message(value: &RawValue, at: String, extras: &mut Vec<Extra>) -> Result<Message, BadRequest> {
    let mut m = Members::read(value, at)?;
    let role = m.string("role")?;
    let role = match m.required("role", role)?.as_str() {
        "system" => Role::System,
        "developer" => Role::Developer,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool" => Role::Tool,
        "function" => {
            // A result in the form that tools replaced.
            return Ok(Message {
                role: Role::Tool,
                name: None,
                parts: vec![other("function", value)],
            });
        }
        _ => {
            return Err(BadRequest::wrong_type(
                &m.path("role"),
                "`system`, `developer`, `user`, `assistant` or `tool`",
            ));
        }
    };
    let mut name = m.text("name")?;
    let mut parts = Vec::new();
    if role == Role::Assistant {
        reasoning(&mut m, &mut parts)?;
    }
    content(&mut m, &mut parts)?;
    if role == Role::Assistant {
        assistant(&mut m, &mut parts)?;
    }
    if role == Role::Tool {
        let id = m.string("tool_call_id")?;
        let id = m.required("tool_call_id", id)?;
        // Some servers want the function's name here; the call it answers has it too.
        name = None;
        parts = vec![Part::ToolResult {
            id,
            content: parts,
            is_error: false,
        }];
    }
    keep_rest(m, extras);
    Ok(Message { role, name, parts })
}

/// Reasoning handed back: in the open under either name, or in OpenRouter's details, which carry
/// signatures and are preferred when there.
fn reasoning(m: &mut Members<'_>, parts: &mut Vec<Part>) -> Result<(), BadRequest> {
    let open = m.text("reasoning_content")?;
    let open = m.text("reasoning")?.or(open);
    let details = m.array("reasoning_details")?;
    for (at, value) in details {
        let mut detail = Members::read(value, at)?;
        match detail.string("type")?.as_deref() {
            Some("reasoning.text") => parts.push(Part::Reasoning {
                text: detail.text("text")?.unwrap_or_default(),
                signature: detail.text("signature")?.filter(|text| !text.is_empty()),
            }),
            Some("reasoning.encrypted") => {
                if let Some(data) = detail.text("data")? {
                    parts.push(Part::RedactedReasoning(data));
                }
            }
            _ => {}
        }
    }
    if parts.is_empty()
        && let Some(text) = open.filter(|text| !text.is_empty())
    {
        parts.push(Part::Reasoning {
            text,
            signature: None,
        });
    }
    Ok(())
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
    if !value.get().starts_with('[') {
        return Err(BadRequest::wrong_type(&at, "a string or an array of parts"));
    }
    for (at, value) in entries(value, &at)? {
        parts.push(part(value, at)?);
    }
    Ok(())
}

fn part(value: &RawValue, at: String) -> Result<Part, BadRequest> {
    let mut m = Members::read(value, at)?;
    let kind = m.string("type")?;
    let kind = m.required("type", kind)?;
    match kind.as_str() {
        "text" => {
            let text = m.text("text")?;
            Ok(Part::Text(m.required("text", text)?))
        }
        "refusal" => {
            let text = m.text("refusal")?;
            Ok(Part::Refusal(m.required("refusal", text)?))
        }
        "image_url" => {
            let value = m.take("image_url");
            let value = m.required("image_url", value)?;
            if let Some(url) = as_string(value) {
                return Ok(Part::Image(image(url, None)));
            }
            let mut inner = Members::read(value, m.path("image_url"))?;
            let url = inner.string("url")?;
            let url = inner.required("url", url)?;
            Ok(Part::Image(image(url, inner.string("detail")?)))
        }
        _ => Ok(other(&kind, value)),
    }
}

/// A picture behind an address, or in a `data:` address.
fn image(url: String, detail: Option<String>) -> Image {
    let inline = url
        .strip_prefix("data:")
        .and_then(|rest| rest.split_once(";base64,"));
    match inline {
        Some((media_type, data)) => Image::Base64 {
            media_type: media_type.to_owned(),
            data: data.into(),
            detail,
        },
        None => Image::Url {
            url: url.into(),
            detail,
        },
    }
}

fn assistant(m: &mut Members<'_>, parts: &mut Vec<Part>) -> Result<(), BadRequest> {
    if let Some(words) = m.text("refusal")? {
        parts.push(Part::Refusal(words));
    }
    for name in ["audio", "function_call"] {
        if let Some(value) = m.take(name) {
            parts.push(other(name, value));
        }
    }
    for (at, value) in m.array("tool_calls")? {
        let mut call = Members::read(value, at)?;
        let function = call.object("function")?;
        let Some(mut function) = function else {
            parts.push(other("tool_calls", value));
            continue;
        };
        let id = call.string("id")?;
        let name = function.string("name")?;
        parts.push(Part::ToolCall {
            id: call.required("id", id)?,
            name: function.required("name", name)?,
            arguments: function.text("arguments")?.unwrap_or_default(),
        });
    }
    Ok(())
}

fn other(kind: &str, value: &RawValue) -> Part {
    Part::Other {
        dialect: OWN,
        kind: kind.to_owned(),
        value: value.into(),
    }
}

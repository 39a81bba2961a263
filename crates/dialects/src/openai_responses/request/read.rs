//! From the wire to the neutral shape.

use backstop_chat::{
    Effort, Extra, Image, Message, Part, Reasoning, Request, ResponseFormat, Role, Tool,
    ToolChoice, Weight,
};
use serde_json::value::RawValue;

use super::super::{OWN, item};
use crate::envelope::BadRequest;
use crate::members::{Members, as_string, entries};

/// Members that do not change the answer, wherever they stand: labels, caching, storage, and how
/// reasoning is shown.
const HINTS: [&str; 11] = [
    "generate_summary",
    "metadata",
    "moderation",
    "phase",
    "prompt_cache_key",
    "prompt_cache_retention",
    "safety_identifier",
    "service_tier",
    "store",
    "stream_options",
    "summary",
];

/// What asks for encrypted reasoning, which other dialects hand out unasked or not at all.
const ENCRYPTED: &str = "reasoning.encrypted_content";

pub(crate) fn read(body: &RawValue) -> Result<Request, BadRequest> {
    let mut m = Members::read(body, String::new())?;
    let mut extras = Vec::new();
    let model = m.string("model")?;
    let mut request = Request {
        model: m.required("model", model)?,
        stream: m.bool("stream")?.unwrap_or(false),
        include_usage: true,
        parallel_tool_calls: m.bool("parallel_tool_calls")?,
        max_tokens: m.count("max_output_tokens")?,
        temperature: m.number("temperature")?,
        top_p: m.number("top_p")?,
        top_logprobs: m.count("top_logprobs")?,
        user: m.text("user")?,
        ..Request::default()
    };
    if let Some(value) = m.take("instructions") {
        instructions(value, &mut request, &mut extras)?;
    }
    for (at, value) in m.array("tools")? {
        request.tools.push(tool(value, at, &mut extras)?);
    }
    request.tool_choice = tool_choice(&mut m, &mut extras)?;
    text(&mut m, &mut request, &mut extras)?;
    reasoning(&mut m, &mut request, &mut extras)?;
    let mut turns = Turns::default();
    if let Some(value) = m.take("input") {
        input(value, "input", &mut turns, &mut extras)?;
    }
    request.messages = turns.0;
    m.take("fallbacks");
    for (path, value) in m.rest() {
        let usual = match path.as_str() {
            "background" => value.get() == "false",
            "truncation" => value.get() == "\"disabled\"",
            _ => false,
        };
        if !usual {
            keep(&mut extras, path, value);
        }
    }
    request.extras = extras;
    Ok(request)
}

fn keep(extras: &mut Vec<Extra>, path: String, value: &RawValue) {
    let name = path.rsplit('.').next().unwrap_or_default();
    let only_encrypted = || {
        let asked = serde_json::from_str::<Vec<String>>(value.get());
        asked.is_ok_and(|asked| asked.iter().all(|name| name == ENCRYPTED))
    };
    let weight = if HINTS.contains(&name) || (path == "include" && only_encrypted()) {
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

/// `instructions`: a string, or items as in `input`.
fn instructions(
    value: &RawValue,
    request: &mut Request,
    extras: &mut Vec<Extra>,
) -> Result<(), BadRequest> {
    if let Some(text) = as_string(value) {
        request.instructions.push(Part::Text(text.into()));
        return Ok(());
    }
    let mut turns = Turns::default();
    input(value, "instructions", &mut turns, extras)?;
    request.instructions = turns.0.into_iter().flat_map(|turn| turn.parts).collect();
    Ok(())
}

fn tool(value: &RawValue, at: String, extras: &mut Vec<Extra>) -> Result<Tool, BadRequest> {
    let mut m = Members::read(value, at)?;
    let kind = m.string("type")?;
    let kind = m.required("type", kind)?;
    if kind != "function" {
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
        parameters: m.json("parameters"),
        strict: m.bool("strict")?,
    };
    keep_rest(m, extras);
    Ok(tool)
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
            "required" => Ok(Some(ToolChoice::Required)),
            _ => Err(BadRequest::wrong_type(
                "tool_choice",
                "`auto`, `none`, `required` or an object",
            )),
        };
    }
    let mut choice = Members::read(value, "tool_choice".to_owned())?;
    if choice.string("type")?.as_deref() == Some("function") {
        let name = choice.string("name")?;
        return Ok(Some(ToolChoice::Named(choice.required("name", name)?)));
    }
    keep(extras, "tool_choice".to_owned(), value);
    Ok(None)
}

/// `text`: the form of the answer, and how wordy it is.
fn text(
    m: &mut Members<'_>,
    request: &mut Request,
    extras: &mut Vec<Extra>,
) -> Result<(), BadRequest> {
    let Some(mut text) = m.object("text")? else {
        return Ok(());
    };
    if let Some(value) = text.take("format") {
        let mut format = Members::read(value, "text.format".to_owned())?;
        match format.string("type")?.as_deref() {
            Some("text") => request.response_format = Some(ResponseFormat::Text),
            Some("json_object") => request.response_format = Some(ResponseFormat::JsonObject),
            Some("json_schema") => {
                let schema = format.json("schema");
                request.response_format = Some(ResponseFormat::JsonSchema {
                    name: format.string("name")?,
                    description: format.text("description")?,
                    strict: format.bool("strict")?,
                    schema: format.required("schema", schema)?,
                });
            }
            _ => keep(extras, "text.format".to_owned(), value),
        }
    }
    for (path, value) in text.rest() {
        // The middle is what one gets unasked.
        if !(path == "text.verbosity" && value.get() == "\"medium\"") {
            keep(extras, path, value);
        }
    }
    Ok(())
}

fn reasoning(
    m: &mut Members<'_>,
    request: &mut Request,
    extras: &mut Vec<Extra>,
) -> Result<(), BadRequest> {
    let Some(mut asked) = m.object("reasoning")? else {
        return Ok(());
    };
    if let Some(value) = asked.take("effort") {
        if value.get() == "\"none\"" {
            request.reasoning = Some(Reasoning::Off);
        } else if let Ok(effort) = serde_json::from_str::<Effort>(value.get()) {
            request.reasoning = Some(Reasoning::Effort(effort));
        } else {
            keep(extras, "reasoning.effort".to_owned(), value);
        }
    }
    keep_rest(asked, extras);
    Ok(())
}

/// Turns of a conversation, made of items.
#[derive(Default)]
struct Turns(Vec<Message>);

impl Turns {
    /// Adds what the model put out. Items that stand side by side are one turn, since other
    /// dialects want all calls of a turn together; only a message behind another begins anew.
    fn model(&mut self, parts: Vec<Part>) {
        let words = |part: &Part| matches!(part, Part::Text(_) | Part::Refusal(_));
        let call = |part: &Part| matches!(part, Part::ToolCall { .. });
        match self.0.last_mut() {
            Some(turn)
                if turn.role == Role::Assistant
                    && (turn.parts.iter().any(call)
                        || !turn.parts.iter().any(words)
                        || !parts.iter().any(words)) =>
            {
                turn.parts.extend(parts);
            }
            _ => self.add(Role::Assistant, parts),
        }
    }

    fn add(&mut self, role: Role, parts: Vec<Part>) {
        self.0.push(Message {
            role,
            name: None,
            parts,
        });
    }
}

/// `input`: a string, or a list of items.
fn input(
    value: &RawValue,
    at: &str,
    turns: &mut Turns,
    extras: &mut Vec<Extra>,
) -> Result<(), BadRequest> {
    if let Some(text) = as_string(value) {
        turns.add(Role::User, vec![Part::Text(text.into())]);
        return Ok(());
    }
    if !value.get().starts_with('[') {
        return Err(BadRequest::wrong_type(at, "a string or an array of items"));
    }
    for (at, value) in entries(value, at)? {
        one(value, at, turns, extras)?;
    }
    Ok(())
}

fn one(
    value: &RawValue,
    at: String,
    turns: &mut Turns,
    extras: &mut Vec<Extra>,
) -> Result<(), BadRequest> {
    let mut m = Members::read(value, at)?;
    let kind = m.string("type")?.unwrap_or_else(|| "message".to_owned());
    match kind.as_str() {
        "message" => return message(m, turns, extras),
        "function_call" => {
            let (id, name) = (m.string("call_id")?, m.string("name")?);
            turns.model(vec![Part::ToolCall {
                id: m.required("call_id", id)?,
                name: m.required("name", name)?,
                arguments: m.text("arguments")?.unwrap_or_default(),
            }]);
        }
        "function_call_output" => {
            let id = m.string("call_id")?;
            let at = m.path("output");
            let mut content = Vec::new();
            if let Some(value) = m.take("output") {
                pieces(value, &at, &mut content, extras)?;
            }
            turns.add(
                Role::Tool,
                vec![Part::ToolResult {
                    id: m.required("call_id", id)?,
                    content,
                    is_error: false,
                }],
            );
        }
        "reasoning" => {
            let mut parts = Vec::new();
            item::parts(value, &mut parts)
                .map_err(|_| BadRequest::wrong_type(&m.path("type"), "a sound reasoning item"))?;
            turns.model(parts);
            return Ok(());
        }
        _ => {
            let part = Part::Other {
                dialect: OWN,
                kind: kind.clone(),
                value: value.into(),
            };
            if kind.ends_with("_output") || kind.ends_with("_response") {
                turns.add(Role::Tool, vec![part]);
            } else {
                turns.model(vec![part]);
            }
            return Ok(());
        }
    }
    ours(&mut m);
    keep_rest(m, extras);
    Ok(())
}

/// Ids and states that items carry when they are handed back; they say nothing to anyone else.
fn ours(m: &mut Members<'_>) {
    m.take("id");
    m.take("status");
}

fn message(
    mut m: Members<'_>,
    turns: &mut Turns,
    extras: &mut Vec<Extra>,
) -> Result<(), BadRequest> {
    let role = m.string("role")?;
    let role = match m.required("role", role)?.as_str() {
        "system" => Role::System,
        "developer" => Role::Developer,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        _ => {
            return Err(BadRequest::wrong_type(
                &m.path("role"),
                "`system`, `developer`, `user` or `assistant`",
            ));
        }
    };
    let at = m.path("content");
    let content = m.take("content");
    let mut parts = Vec::new();
    pieces(m.required("content", content)?, &at, &mut parts, extras)?;
    ours(&mut m);
    keep_rest(m, extras);
    if role == Role::Assistant {
        turns.model(parts);
    } else {
        turns.add(role, parts);
    }
    Ok(())
}

/// Content: a string, or an array of pieces.
fn pieces(
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
        return Err(BadRequest::wrong_type(at, "a string or an array of pieces"));
    }
    for (at, value) in entries(value, at)? {
        parts.push(piece(value, at, extras)?);
    }
    Ok(())
}

fn piece(value: &RawValue, at: String, extras: &mut Vec<Extra>) -> Result<Part, BadRequest> {
    let mut m = Members::read(value, at)?;
    let kind = m.string("type")?;
    let kind = m.required("type", kind)?;
    let part = match kind.as_str() {
        // The last is what clients of the chat dialect write here by mistake; servers take it.
        "input_text" | "output_text" | "text" => {
            let text = m.text("text")?;
            // Notes on an earlier answer, and how likely its words were.
            m.take("annotations");
            m.take("logprobs");
            Part::Text(m.required("text", text)?)
        }
        "refusal" => {
            let text = m.text("refusal")?;
            Part::Refusal(m.required("refusal", text)?)
        }
        "input_image" => match m.string("image_url")? {
            Some(url) => Part::Image(image(url, m.string("detail")?)),
            // One that the provider stores.
            None => return Ok(other(&kind, value)),
        },
        _ => return Ok(other(&kind, value)),
    };
    keep_rest(m, extras);
    Ok(part)
}

fn other(kind: &str, value: &RawValue) -> Part {
    Part::Other {
        dialect: OWN,
        kind: kind.to_owned(),
        value: value.into(),
    }
}

/// A picture behind an address, or in a `data:` address.
fn image(url: String, detail: Option<String>) -> Image {
    // What one gets unasked.
    let detail = detail.filter(|detail| detail != "auto");
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

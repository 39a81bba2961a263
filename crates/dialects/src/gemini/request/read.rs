//! From the wire to the neutral shape.
//!
//! Google reads every name in two spellings, `topP` and `top_p`, and its own clients send both.

use backstop_chat::{
    Effort, Extra, Image, Json, Message, Part, Reasoning, Request, ResponseFormat, Role, Text,
    Tool, ToolChoice, Weight,
};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::super::OWN;
use super::super::part::{other, read_response};
use super::super::signature::made_up;
use crate::envelope::BadRequest;
use crate::members::{Members, as_string};

/// Members that do not change the answer.
const HINTS: [&str; 1] = ["labels"];

pub(crate) fn read(body: &RawValue) -> Result<Request, BadRequest> {
    let mut m = Members::read(body, String::new())?.camel();
    let mut request = Request {
        include_usage: true,
        ..Request::default()
    };
    let mut extras = Vec::new();
    if let Some(value) = m.take("systemInstruction") {
        request.instructions = instructions(value)?;
    }
    let contents = m.array("contents")?;
    if contents.is_empty() {
        return Err(BadRequest::new(
            "missing_field",
            "contents",
            "`contents` is required",
        ));
    }
    let mut calls = Calls::default();
    for (at, value) in contents {
        request
            .messages
            .push(content(value, at, &mut calls, &mut extras)?);
    }
    for (at, value) in m.array("tools")? {
        tools(value, at, &mut request.tools)?;
    }
    if let Some(config) = m.object("toolConfig")? {
        request.tool_choice = tool_choice(config.camel(), &mut extras)?;
    }
    if let Some(config) = m.object("generationConfig")? {
        generation(config.camel(), &mut request, &mut extras)?;
    }
    // Where these stand is the path's to say; some clients repeat it.
    for repeated in ["model", "fallbacks"] {
        m.take(repeated);
    }
    keep_rest(m, &mut extras);
    request.extras = extras;
    Ok(request)
}

fn keep(extras: &mut Vec<Extra>, path: String, value: &RawValue, weight: Weight) {
    extras.push(Extra {
        dialect: OWN,
        path,
        value: value.into(),
        weight,
    });
}

fn keep_rest(members: Members<'_>, extras: &mut Vec<Extra>) {
    for (path, value) in members.rest() {
        let weight = if HINTS.contains(&path.as_str()) {
            Weight::Hint
        } else {
            Weight::Contract
        };
        keep(extras, path, value, weight);
    }
}

fn instructions(value: &RawValue) -> Result<Vec<Part>, BadRequest> {
    let at = "systemInstruction".to_owned();
    if let Some(text) = as_string(value) {
        return Ok(vec![Part::Text(text.into())]);
    }
    let mut m = Members::read(value, at)?;
    let mut parts = Vec::new();
    for (at, value) in m.array("parts")? {
        let text = Members::read(value, at)?.text("text")?;
        parts.push(text.map_or_else(|| other(value), Part::Text));
    }
    Ok(parts)
}

/// Calls that were not answered yet, with the ids they came with or got from us: a result may name
/// only the function.
#[derive(Default)]
struct Calls {
    open: Vec<(String, String)>,
    made: u32,
}

impl Calls {
    fn begin(&mut self, id: Option<String>, name: &str) -> String {
        let id = id.filter(|id| !id.is_empty()).unwrap_or_else(|| {
            self.made += 1;
            made_up("", 0, self.made)
        });
        self.open.push((id.clone(), name.to_owned()));
        id
    }

    fn answered(&mut self, id: Option<String>, name: &str) -> String {
        let id = id.filter(|id| !id.is_empty());
        let place = self.open.iter().position(|(open, of)| match &id {
            Some(id) => open == id,
            None => of == name,
        });
        match place {
            Some(place) => self.open.remove(place).0,
            None => id.unwrap_or_else(|| self.begin(None, name)),
        }
    }
}

fn content(
    value: &RawValue,
    at: String,
    calls: &mut Calls,
    extras: &mut Vec<Extra>,
) -> Result<Message, BadRequest> {
    let mut m = Members::read(value, at)?;
    let role = match m.string("role")?.as_deref() {
        None | Some("user" | "function" | "tool") => Role::User,
        Some("model") => Role::Assistant,
        Some(_) => {
            return Err(BadRequest::wrong_type(&m.path("role"), "`user` or `model`"));
        }
    };
    let mut parts = Vec::new();
    for (at, value) in m.array("parts")? {
        parts.push(part(value, at, calls, extras)?);
    }
    keep_rest(m, extras);
    Ok(Message {
        role,
        name: None,
        parts,
    })
}

fn part(
    value: &RawValue,
    at: String,
    calls: &mut Calls,
    extras: &mut Vec<Extra>,
) -> Result<Part, BadRequest> {
    let mut m = Members::read(value, at)?.camel();
    let thought = m.bool("thought")?.unwrap_or(false);
    let signature_at = m.path("thoughtSignature");
    let signature = m.take("thoughtSignature");
    if thought {
        return Ok(Part::Reasoning {
            text: m.text("text")?.unwrap_or_default(),
            signature: signature.and_then(as_string).map(Text::from),
        });
    }
    if let Some(signature) = signature {
        // Only who signed a call can read it.
        keep(extras, signature_at, signature, Weight::Hint);
    }
    if let Some(text) = m.text("text")? {
        return Ok(Part::Text(text));
    }
    if let Some(call) = m.object("functionCall")? {
        let mut call = call.camel();
        let name = call.string("name")?;
        let name = call.required("name", name)?;
        return Ok(Part::ToolCall {
            id: calls.begin(call.string("id")?, &name),
            arguments: call.take("args").map_or("{}", RawValue::get).into(),
            name,
        });
    }
    if let Some(response) = m.object("functionResponse")? {
        let mut response = response.camel();
        let name = response.string("name")?;
        let name = response.required("name", name)?;
        let (words, is_error) = response
            .take("response")
            .map_or_else(|| ("{}".to_owned(), false), read_response);
        return Ok(Part::ToolResult {
            id: calls.answered(response.string("id")?, &name),
            content: vec![Part::Text(words.into())],
            is_error,
        });
    }
    let image = match (m.object("inlineData")?, m.object("fileData")?) {
        (Some(blob), _) => inline(blob.camel())?,
        (_, Some(file)) => by_address(file.camel())?,
        _ => None,
    };
    Ok(image.map_or_else(|| other(value), Part::Image))
}

fn inline(mut blob: Members<'_>) -> Result<Option<Image>, BadRequest> {
    let kind = blob.string("mimeType")?;
    let data = blob.text("data")?;
    Ok(match (kind, data) {
        (Some(media_type), Some(data)) if media_type.starts_with("image/") => Some(Image::Base64 {
            media_type,
            data,
            detail: None,
        }),
        _ => None,
    })
}

fn by_address(mut file: Members<'_>) -> Result<Option<Image>, BadRequest> {
    let kind = file.string("mimeType")?;
    let url = file.text("fileUri")?;
    let is_image = kind.is_some_and(|kind| kind.starts_with("image/"));
    Ok(url
        .filter(|_| is_image)
        .map(|url| Image::Url { url, detail: None }))
}

fn tools(value: &RawValue, at: String, all: &mut Vec<Tool>) -> Result<(), BadRequest> {
    let mut m = Members::read(value, at)?.camel();
    for (at, value) in m.array("functionDeclarations")? {
        let mut function = Members::read(value, at)?.camel();
        let name = function.string("name")?;
        let open = function.take("parameters").map(plain_schema);
        all.push(Tool::Function {
            name: function.required("name", name)?,
            description: function.text("description")?,
            parameters: function.json("parametersJsonSchema").or(open.flatten()),
            strict: None,
        });
    }
    for (path, value) in m.rest() {
        let kind = path.rsplit('.').next().unwrap_or(&path).to_owned();
        let whole = serde_json::json!({ kind.as_str(): value });
        if let Ok(whole) = to_raw_value(&whole) {
            all.push(Tool::Other {
                dialect: OWN,
                kind,
                value: (&*whole).into(),
            });
        }
    }
    Ok(())
}

/// A schema in Google's subset of OpenAPI as a JSON schema: its types are in upper case, and what
/// may be null says so apart.
fn plain_schema(schema: &RawValue) -> Option<Json> {
    let mut schema: Value = serde_json::from_str(schema.get()).ok()?;
    lower(&mut schema);
    to_raw_value(&schema).ok().map(|value| (&*value).into())
}

fn lower(schema: &mut Value) {
    match schema {
        Value::Array(all) => all.iter_mut().for_each(lower),
        Value::Object(members) => {
            members.remove("propertyOrdering");
            let nullable = members.get("nullable") == Some(&Value::Bool(true));
            if let Some(Value::String(kind)) = members.get("type") {
                let kind = Value::from(kind.to_ascii_lowercase());
                let kind = if nullable {
                    members.remove("nullable");
                    Value::from(vec![kind, "null".into()])
                } else {
                    kind
                };
                members.insert("type".to_owned(), kind);
            }
            for (name, value) in members.iter_mut() {
                // Values, not schemas.
                if !matches!(name.as_str(), "enum" | "example" | "default") {
                    lower(value);
                }
            }
        }
        _ => {}
    }
}

fn tool_choice(
    mut config: Members<'_>,
    extras: &mut Vec<Extra>,
) -> Result<Option<ToolChoice>, BadRequest> {
    let mut choice = None;
    if let Some(calling) = config.object("functionCallingConfig")? {
        let mut calling = calling.camel();
        let at = calling.path("allowedFunctionNames");
        let allowed = calling.take("allowedFunctionNames");
        let names: Vec<String> = match allowed {
            Some(value) => serde_json::from_str(value.get())
                .map_err(|_| BadRequest::wrong_type(&at, "an array of strings"))?,
            None => Vec::new(),
        };
        let mode = calling
            .string("mode")?
            .map(|mode| mode.to_ascii_uppercase());
        choice = match (mode.as_deref(), names.as_slice()) {
            (Some("NONE"), _) => Some(ToolChoice::None),
            (Some("ANY"), [name]) => Some(ToolChoice::Named(name.clone())),
            (Some("ANY"), _) => Some(ToolChoice::Required),
            (Some("AUTO" | "VALIDATED"), _) => Some(ToolChoice::Auto),
            _ => None,
        };
        if let Some(value) = allowed.filter(|_| names.len() > 1) {
            keep(extras, at, value, Weight::Contract);
        }
        // How the call is streamed, which the writer of a stream decides.
        calling.take("streamFunctionCallArguments");
        keep_rest(calling, extras);
    }
    keep_rest(config, extras);
    Ok(choice)
}

fn generation(
    mut m: Members<'_>,
    request: &mut Request,
    extras: &mut Vec<Extra>,
) -> Result<(), BadRequest> {
    request.max_tokens = m.count("maxOutputTokens")?;
    request.temperature = m.number("temperature")?;
    request.top_p = m.number("topP")?;
    // Some clients write it as a fraction.
    request.top_k = m
        .number("topK")?
        .and_then(|k| format!("{k:.0}").parse().ok());
    request.seed = m.integer("seed")?;
    request.presence_penalty = m.number("presencePenalty")?;
    request.frequency_penalty = m.number("frequencyPenalty")?;
    request.n = m.count("candidateCount")?;
    if let Some(value) = m.take("stopSequences") {
        request.stop = serde_json::from_str(value.get()).map_err(|_| {
            BadRequest::wrong_type("generationConfig.stopSequences", "an array of strings")
        })?;
    }
    request.response_format = format(&mut m, extras)?;
    if let Some(thinking) = m.object("thinkingConfig")? {
        request.reasoning = reasoning(thinking.camel(), extras)?;
    }
    keep_rest(m, extras);
    // Asking for text alone is asking for nothing special.
    extras.retain(|extra| {
        let modalities = extra.path == "generationConfig.responseModalities";
        !(modalities && extra.value.as_str().eq_ignore_ascii_case(r#"["text"]"#))
    });
    Ok(())
}

fn format(
    m: &mut Members<'_>,
    extras: &mut Vec<Extra>,
) -> Result<Option<ResponseFormat>, BadRequest> {
    let at = m.path("responseMimeType");
    let kind = m.take("responseMimeType");
    let open = m.take("responseSchema").and_then(plain_schema);
    let schema = m.json("responseJsonSchema").or(open);
    Ok(match (kind.and_then(as_string).as_deref(), schema) {
        (Some("application/json"), Some(schema)) => Some(ResponseFormat::JsonSchema {
            name: None,
            description: None,
            schema,
            strict: None,
        }),
        (Some("application/json"), None) => Some(ResponseFormat::JsonObject),
        (None | Some("text/plain"), _) => None,
        (Some(_), _) => {
            if let Some(kind) = kind {
                keep(extras, at, kind, Weight::Contract);
            }
            None
        }
    })
}

fn reasoning(mut m: Members<'_>, extras: &mut Vec<Extra>) -> Result<Option<Reasoning>, BadRequest> {
    let budget = m.integer("thinkingBudget")?;
    let level = m
        .string("thinkingLevel")?
        .map(|level| level.to_ascii_lowercase());
    let shown = m.bool("includeThoughts")?.unwrap_or(false);
    keep_rest(m, extras);
    Ok(match (level.as_deref(), budget) {
        (Some("minimal"), _) => Some(Reasoning::Effort(Effort::Minimal)),
        (Some("low"), _) => Some(Reasoning::Effort(Effort::Low)),
        (Some("medium"), _) => Some(Reasoning::Effort(Effort::Medium)),
        (Some("high"), _) => Some(Reasoning::Effort(Effort::High)),
        (_, Some(0)) => Some(Reasoning::Off),
        (_, Some(tokens @ 1..)) => Some(Reasoning::Budget(tokens.unsigned_abs())),
        (_, Some(_)) => Some(Reasoning::Adaptive),
        (_, None) => shown.then_some(Reasoning::Adaptive),
    })
}

//! From the neutral shape to the wire.

use backstop_chat::{
    Effort, Image, Json, Message, Part, Reasoning, Request, ResponseFormat, Role, Tool, ToolChoice,
};

use super::super::OWN;
use crate::dialect::Dialect;
use crate::json::{Array, Object};
use crate::translate::{Losses, Unsupported, WriteOptions, Written};

/// A thinking budget up to this many tokens counts as low effort; up to the next as medium.
const LOW_BUDGET: u64 = 2048;
const MEDIUM_BUDGET: u64 = 8192;
/// Most stop strings (platform.openai.com/docs/api-reference/chat).
const MAX_STOP: usize = 4;

pub(crate) fn write(request: &Request, options: &WriteOptions) -> Result<Written, Unsupported> {
    let mut losses = Losses::new(Dialect::OpenAiChat, options.loss);
    if request.top_k.is_some() {
        losses.contract("top_k")?;
    }
    if request.stop.len() > MAX_STOP {
        losses.contract("stop_sequences")?;
    }
    let own = losses.own(&request.extras)?;
    let mut tools = Vec::new();
    for (place, tool) in request.tools.iter().enumerate() {
        match tool {
            Tool::Other { dialect, .. } if *dialect != OWN => {
                losses.contract(format!("tools[{place}]"))?;
            }
            _ => tools.push(tool),
        }
    }
    let mut body = Vec::with_capacity(1024);
    let mut result = Ok(());
    Object::write(&mut body, |out| {
        out.put("model", &request.model);
        out.array("messages", |out| {
            result = messages(request, out, &mut losses);
        });
        if !tools.is_empty() {
            out.array("tools", |out| {
                tools.iter().for_each(|tool| write_tool(tool, out));
            });
        }
        parameters(request, options, !tools.is_empty(), out);
        for extra in own {
            out.put(&extra.path, &extra.value);
        }
    });
    result?;
    Ok(Written {
        body,
        dropped: losses.into_dropped(),
    })
}

fn parameters(request: &Request, options: &WriteOptions, tools: bool, out: &mut Object<'_>) {
    if request.stream {
        out.put("stream", &true);
        if request.include_usage {
            out.object("stream_options", |out| out.put("include_usage", &true));
        }
    }
    match &request.tool_choice {
        _ if !tools => {}
        None => {}
        Some(ToolChoice::Auto) => out.put("tool_choice", "auto"),
        Some(ToolChoice::None) => out.put("tool_choice", "none"),
        Some(ToolChoice::Required) => out.put("tool_choice", "required"),
        Some(ToolChoice::Named(name)) => out.object("tool_choice", |out| {
            out.put("type", "function");
            out.object("function", |out| out.put("name", name));
        }),
    }
    if tools {
        out.put_some("parallel_tool_calls", request.parallel_tool_calls);
    }
    if let Some(format) = &request.response_format {
        out.object("response_format", |out| write_format(format, out));
    }
    out.put_some("reasoning_effort", request.reasoning.and_then(effort));
    let limit = if options.legacy_max_tokens {
        "max_tokens"
    } else {
        "max_completion_tokens"
    };
    out.put_some(limit, request.max_tokens);
    out.put_some("temperature", request.temperature);
    out.put_some("top_p", request.top_p);
    if !request.stop.is_empty() {
        let most = request.stop.len().min(MAX_STOP);
        out.put("stop", &request.stop[..most]);
    }
    out.put_some("seed", request.seed);
    out.put_some("presence_penalty", request.presence_penalty);
    out.put_some("frequency_penalty", request.frequency_penalty);
    out.put_some("n", request.n);
    out.put_some("logprobs", request.logprobs);
    out.put_some("top_logprobs", request.top_logprobs);
    out.put_some("user", request.user.as_ref());
}

/// The nearest effort; the model's own judgement is what it does unasked.
pub(crate) fn effort(reasoning: Reasoning) -> Option<&'static str> {
    Some(match reasoning {
        Reasoning::Adaptive => return None,
        Reasoning::Off => "none",
        Reasoning::Effort(effort) => match effort {
            Effort::Minimal => "minimal",
            Effort::Low => "low",
            Effort::Medium => "medium",
            Effort::High => "high",
            Effort::ExtraHigh | Effort::Max => "xhigh",
        },
        Reasoning::Budget(..=LOW_BUDGET) => "low",
        Reasoning::Budget(..=MEDIUM_BUDGET) => "medium",
        Reasoning::Budget(_) => "high",
    })
}

fn write_format(format: &ResponseFormat, out: &mut Object<'_>) {
    match format {
        ResponseFormat::Text => out.put("type", "text"),
        ResponseFormat::JsonObject => out.put("type", "json_object"),
        ResponseFormat::JsonSchema {
            name,
            description,
            schema,
            strict,
        } => {
            out.put("type", "json_schema");
            out.object("json_schema", |out| {
                // The dialect requires a name; callers who know none mean any.
                out.put("name", name.as_deref().unwrap_or("answer"));
                out.put_some("description", description.as_ref());
                out.put("schema", schema);
                out.put_some("strict", *strict);
            });
        }
    }
}

fn write_tool(tool: &Tool, out: &mut Array<'_>) {
    match tool {
        Tool::Other { value, .. } => out.put(value),
        Tool::Function {
            name,
            description,
            parameters,
            strict,
        } => out.object(|out| {
            out.put("type", "function");
            out.object("function", |out| {
                out.put("name", name);
                out.put_some("description", description.as_ref());
                out.put_some("parameters", parameters.as_ref());
                out.put_some("strict", *strict);
            });
        }),
    }
}

fn messages(
    request: &Request,
    out: &mut Array<'_>,
    losses: &mut Losses,
) -> Result<(), Unsupported> {
    let instructions = joined(&request.instructions, "\n\n");
    if !instructions.is_empty() {
        out.object(|out| {
            out.put("role", "system");
            out.put("content", &instructions);
        });
    }
    for (place, message) in request.messages.iter().enumerate() {
        write_message(message, &format!("messages[{place}]"), out, losses)?;
    }
    Ok(())
}

fn write_message(
    message: &Message,
    at: &str,
    out: &mut Array<'_>,
    losses: &mut Losses,
) -> Result<(), Unsupported> {
    // A turn that answers tools and says something too becomes one message each.
    let mut rest = Vec::new();
    for (place, part) in message.parts.iter().enumerate() {
        let at = format!("{at}.content[{place}]");
        match part {
            Part::ToolResult {
                id,
                content,
                is_error,
            } => {
                write_result(id, content, *is_error, &at, out, losses)?;
            }
            Part::Other {
                dialect,
                kind,
                value,
            } if *dialect == OWN && kind == "function" && message.role == Role::Tool => {
                // A whole message of the form that tools replaced; elsewhere a part of that name.
                out.put(value);
            }
            Part::Other { dialect, .. } if *dialect != OWN => losses.contract(at)?,
            Part::Reasoning {
                signature: Some(_), ..
            }
            | Part::RedactedReasoning(_) => {
                // Only who signed or sealed it can read it.
                losses.hint(at);
            }
            Part::Image(_) if message.role == Role::Assistant => losses.contract(at)?,
            _ => rest.push(part),
        }
    }
    // Nothing of it is left, or results were all it held.
    if rest.is_empty() && !message.parts.is_empty() {
        return Ok(());
    }
    out.object(|out| {
        out.put("role", role(message.role));
        out.put_some("name", message.name.as_ref());
        if message.role == Role::Assistant {
            assistant(&rest, out);
        } else {
            content(&rest, out);
        }
    });
    Ok(())
}

const fn role(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::Developer => "developer",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    }
}

fn write_result(
    id: &str,
    content: &[Part],
    is_error: bool,
    at: &str,
    out: &mut Array<'_>,
    losses: &mut Losses,
) -> Result<(), Unsupported> {
    for (place, part) in content.iter().enumerate() {
        if !matches!(part, Part::Text(_)) {
            losses.contract(format!("{at}.content[{place}]"))?;
        }
    }
    if is_error {
        // The result's own words are left to say so.
        losses.hint(format!("{at}.is_error"));
    }
    out.object(|out| {
        out.put("role", "tool");
        out.put("tool_call_id", id);
        out.put("content", &joined(content, "\n"));
    });
    Ok(())
}

/// The text among `parts`.
fn joined(parts: &[Part], between: &str) -> String {
    let texts: Vec<&str> = parts
        .iter()
        .filter_map(|part| match part {
            Part::Text(text) => Some(&**text),
            _ => None,
        })
        .collect();
    texts.join(between)
}

/// One text as a string, anything else as an array of parts.
fn content(parts: &[&Part], out: &mut Object<'_>) {
    if let [Part::Text(text)] = parts {
        out.put("content", text);
        return;
    }
    out.array("content", |out| {
        for part in parts {
            match part {
                Part::Text(text) => out.object(|out| {
                    out.put("type", "text");
                    out.put("text", text);
                }),
                Part::Image(image) => out.object(|out| {
                    out.put("type", "image_url");
                    out.object("image_url", |out| write_image(image, out));
                }),
                Part::Other { value, .. } => out.put(value),
                _ => {}
            }
        }
    });
}

fn write_image(image: &Image, out: &mut Object<'_>) {
    match image {
        Image::Url { url, detail } => {
            out.put("url", url);
            out.put_some("detail", detail.as_ref());
        }
        Image::Base64 {
            media_type,
            data,
            detail,
        } => {
            out.put("url", &format!("data:{media_type};base64,{}", &**data));
            out.put_some("detail", detail.as_ref());
        }
    }
}

fn assistant(parts: &[&Part], out: &mut Object<'_>) {
    let mut text = None::<String>;
    let mut reasoning = String::new();
    let mut refusal = None;
    let mut calls: Vec<&Part> = Vec::new();
    let mut others: Vec<(&str, &Json)> = Vec::new();
    for part in parts {
        match part {
            Part::Text(words) => text.get_or_insert_default().push_str(words),
            Part::Reasoning { text, .. } => reasoning.push_str(text),
            Part::Refusal(words) => refusal = Some(words),
            Part::ToolCall { .. } => calls.push(part),
            Part::Other { kind, .. } if kind == "tool_calls" => calls.push(part),
            Part::Other { kind, value, .. } => others.push((kind, value)),
            _ => {}
        }
    }
    out.put("content", &text);
    if !reasoning.is_empty() {
        out.put("reasoning_content", &reasoning);
    }
    out.put_some("refusal", refusal);
    for (kind, value) in others {
        out.put(kind, value);
    }
    if calls.is_empty() {
        return;
    }
    out.array("tool_calls", |out| {
        for call in calls {
            match call {
                Part::ToolCall {
                    id,
                    name,
                    arguments,
                } => out.object(|out| write_call(id, name, arguments, out)),
                Part::Other { value, .. } => out.put(value),
                _ => {}
            }
        }
    });
}

/// A tool call's members, in a request as in an answer.
pub(in crate::openai_chat) fn write_call(
    id: &str,
    name: &str,
    arguments: &str,
    out: &mut Object<'_>,
) {
    out.put("id", id);
    out.put("type", "function");
    out.object("function", |out| {
        out.put("name", name);
        // Clients parse this as JSON.
        out.put(
            "arguments",
            if arguments.is_empty() {
                "{}"
            } else {
                arguments
            },
        );
    });
}

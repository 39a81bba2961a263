//! From the neutral shape to the wire.

use backstop_chat::{
    Effort, Image, Message, Part, Reasoning, Request, ResponseFormat, Role, Tool, ToolChoice,
};

use super::super::OWN;
use crate::dialect::Dialect;
use crate::json::{Array, Object};
use crate::translate::{Losses, Unsupported, WriteOptions, Written};

/// Most stop strings (docs.cohere.com/reference/chat).
const MAX_STOP: usize = 5;
/// Tokens to think for little effort, and for some. Our choice; much effort has no bound.
const LOW_BUDGET: u64 = 1024;
const MEDIUM_BUDGET: u64 = 8192;

pub(crate) fn write(request: &Request, options: &WriteOptions) -> Result<Written, Unsupported> {
    let mut losses = Losses::new(Dialect::CohereV2, options.loss);
    uncarried(request, &mut losses)?;
    let own = losses.own(&request.extras)?;
    let tools = tools(request, &mut losses)?;
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
            let choice = match &request.tool_choice {
                None | Some(ToolChoice::Auto) => None,
                Some(ToolChoice::None) => Some("NONE"),
                // One by name is the only one offered.
                Some(ToolChoice::Required | ToolChoice::Named(_)) => Some("REQUIRED"),
            };
            out.put_some("tool_choice", choice);
        }
        parameters(request, out);
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

/// What the dialect has no word for. Values that mean the same as saying nothing are no loss.
fn uncarried(request: &Request, losses: &mut Losses) -> Result<(), Unsupported> {
    for (lost, field) in [
        (
            request.parallel_tool_calls == Some(false) && !request.tools.is_empty(),
            "parallel_tool_calls",
        ),
        (request.n.is_some_and(|n| n > 1), "n"),
        // It has them, in a shape that no other dialect shares.
        (request.logprobs == Some(true), "logprobs"),
        (request.top_logprobs.is_some_and(|n| n > 0), "top_logprobs"),
        (request.stop.len() > MAX_STOP, "stop"),
        (
            request.temperature.is_some_and(|degrees| degrees > 1.0),
            "temperature",
        ),
    ] {
        if lost {
            losses.contract(field)?;
        }
    }
    if request.user.is_some() {
        losses.hint("user");
    }
    if let Some(ResponseFormat::JsonSchema {
        description: Some(_),
        ..
    }) = &request.response_format
    {
        losses.hint("response_format.json_schema.description");
    }
    Ok(())
}

fn tools<'r>(request: &'r Request, losses: &mut Losses) -> Result<Vec<&'r Tool>, Unsupported> {
    let mut tools = Vec::with_capacity(request.tools.len());
    for (place, tool) in request.tools.iter().enumerate() {
        match tool {
            Tool::Other { dialect, .. } if *dialect != OWN => {
                losses.contract(format!("tools[{place}]"))?;
                continue;
            }
            Tool::Function { name, strict, .. } => {
                if *strict == Some(true) {
                    losses.hint(format!("tools[{place}].strict"));
                }
                if let Some(ToolChoice::Named(only)) = &request.tool_choice
                    && only != name
                {
                    continue;
                }
            }
            Tool::Other { .. } => {}
        }
        tools.push(tool);
    }
    Ok(tools)
}

fn write_tool(tool: &Tool, out: &mut Array<'_>) {
    match tool {
        Tool::Other { value, .. } => out.put(value),
        Tool::Function {
            name,
            description,
            parameters,
            ..
        } => out.object(|out| {
            out.put("type", "function");
            out.object("function", |out| {
                out.put("name", name);
                out.put_some("description", description.as_ref());
                match parameters {
                    Some(schema) => out.put("parameters", schema),
                    None => out.object("parameters", |out| {
                        out.put("type", "object");
                        out.object("properties", |_| {});
                    }),
                }
            });
        }),
    }
}

fn parameters(request: &Request, out: &mut Object<'_>) {
    if request.stream {
        out.put("stream", &true);
    }
    match &request.response_format {
        None | Some(ResponseFormat::Text) => {}
        Some(ResponseFormat::JsonObject) => {
            out.object("response_format", |out| out.put("type", "json_object"));
        }
        Some(ResponseFormat::JsonSchema { schema, .. }) => out.object("response_format", |out| {
            out.put("type", "json_object");
            out.put("schema", schema);
        }),
    }
    if let Some(reasoning) = request.reasoning {
        out.object("thinking", |out| thinking(reasoning, out));
    }
    out.put_some("max_tokens", request.max_tokens);
    out.put_some(
        "temperature",
        request.temperature.map(|degrees| degrees.min(1.0)),
    );
    out.put_some("p", request.top_p);
    out.put_some("k", request.top_k);
    if !request.stop.is_empty() {
        let most = request.stop.len().min(MAX_STOP);
        out.put("stop_sequences", &request.stop[..most]);
    }
    out.put_some("seed", request.seed);
    out.put_some("presence_penalty", request.presence_penalty);
    out.put_some("frequency_penalty", request.frequency_penalty);
}

fn thinking(reasoning: Reasoning, out: &mut Object<'_>) {
    let budget = match reasoning {
        Reasoning::Off => return out.put("type", "disabled"),
        Reasoning::Budget(tokens) => Some(tokens),
        Reasoning::Effort(Effort::Minimal | Effort::Low) => Some(LOW_BUDGET),
        Reasoning::Effort(Effort::Medium) => Some(MEDIUM_BUDGET),
        Reasoning::Effort(_) | Reasoning::Adaptive => None,
    };
    out.put("type", "enabled");
    out.put_some("token_budget", budget);
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
    if message.name.is_some() {
        losses.contract(format!("{at}.name"))?;
    }
    let assistant = message.role == Role::Assistant;
    let calls = message
        .parts
        .iter()
        .any(|part| matches!(part, Part::ToolCall { .. }));
    // A turn that answers tools and says something too becomes one message each.
    let mut rest = Vec::new();
    for (place, part) in message.parts.iter().enumerate() {
        let at = format!("{at}.content[{place}]");
        match part {
            Part::ToolResult {
                id,
                content,
                is_error,
            } => write_result(id, content, *is_error, &at, out, losses)?,
            Part::Other { dialect, .. } if *dialect != OWN => losses.contract(at)?,
            // Before calls it is their plan; else a model need not see its thoughts again.
            Part::Reasoning {
                signature: None, ..
            } if assistant && calls => rest.push(part),
            Part::Reasoning { .. } | Part::RedactedReasoning(_) => losses.hint(at),
            Part::Image(_) if message.role != Role::User => losses.contract(at)?,
            Part::Text(text) if text.is_empty() => {}
            _ => rest.push(part),
        }
    }
    if rest.is_empty() {
        return Ok(());
    }
    out.object(|out| {
        out.put(
            "role",
            match message.role {
                Role::System | Role::Developer => "system",
                Role::User | Role::Tool => "user",
                Role::Assistant => "assistant",
            },
        );
        if assistant {
            write_assistant(&rest, out);
        } else {
            write_content(&rest, out);
        }
    });
    Ok(())
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

/// One text as a string, anything else as an array of blocks.
fn write_content(parts: &[&Part], out: &mut Object<'_>) {
    if let [Part::Text(text)] = parts {
        out.put("content", text);
        return;
    }
    out.array("content", |out| {
        parts.iter().for_each(|part| write_block(part, out));
    });
}

fn write_block(part: &Part, out: &mut Array<'_>) {
    match part {
        Part::Text(text) | Part::Refusal(text) => out.object(|out| {
            out.put("type", "text");
            out.put("text", text);
        }),
        Part::Image(image) => out.object(|out| {
            out.put("type", "image_url");
            out.object("image_url", |out| match image {
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
            });
        }),
        Part::Other { value, .. } => out.put(value),
        _ => {}
    }
}

fn write_assistant(parts: &[&Part], out: &mut Object<'_>) {
    let mut plan = String::new();
    let mut content = Vec::new();
    let mut calls = Vec::new();
    for part in parts {
        match part {
            Part::Reasoning { text, .. } => plan.push_str(text),
            Part::ToolCall { .. } => calls.push(*part),
            _ => content.push(*part),
        }
    }
    if !content.is_empty() {
        write_content(&content, out);
    }
    if !plan.is_empty() {
        out.put("tool_plan", &plan);
    }
    if calls.is_empty() {
        return;
    }
    out.array("tool_calls", |out| {
        for call in calls {
            if let Part::ToolCall {
                id,
                name,
                arguments,
            } = call
            {
                write_call(id, name, arguments, out);
            }
        }
    });
}

/// A tool call, in a request as in an answer.
pub(in crate::cohere_v2) fn write_call(id: &str, name: &str, arguments: &str, out: &mut Array<'_>) {
    let arguments = match arguments.trim_ascii() {
        "" => "{}",
        _ => arguments,
    };
    out.object(|out| {
        out.put("id", id);
        out.put("type", "function");
        out.object("function", |out| {
            out.put("name", name);
            out.put("arguments", arguments);
        });
    });
}

//! From the neutral shape to the wire.

use backstop_chat::{Image, Message, Part, Request, ResponseFormat, Role, Tool, ToolChoice};

use super::super::{OWN, seal};
use crate::dialect::Dialect;
use crate::json::{Array, Object};
use crate::openai_chat::request::effort;
use crate::translate::{Losses, Unsupported, WriteOptions, Written};

/// The smallest limit on generated tokens that the service takes
/// (platform.openai.com/docs/api-reference/responses/create).
const MIN_TOKENS: u64 = 16;

pub(crate) fn write(request: &Request, options: &WriteOptions) -> Result<Written, Unsupported> {
    let mut losses = Losses::new(Dialect::OpenAiResponses, options.loss);
    uncarried(request, &mut losses)?;
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
        let instructions = joined(&request.instructions, "\n\n");
        if !instructions.is_empty() {
            out.put("instructions", &instructions);
        }
        out.array("input", |out| {
            result = items(request, out, &mut losses);
        });
        if !tools.is_empty() {
            out.array("tools", |out| {
                tools.iter().for_each(|tool| write_tool(tool, out));
            });
        }
        parameters(request, !tools.is_empty(), out);
        if own.iter().all(|extra| extra.path != "store") {
            // Callers of other dialects ask for nothing to be kept, and what is not kept can be
            // sent again.
            out.put("store", &false);
        }
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
    let set = |value: Option<f64>| value.is_some_and(|value| value != 0.0);
    for (lost, field) in [
        (request.top_k.is_some(), "top_k"),
        (!request.stop.is_empty(), "stop"),
        (request.seed.is_some(), "seed"),
        (set(request.presence_penalty), "presence_penalty"),
        (set(request.frequency_penalty), "frequency_penalty"),
        (request.n.is_some_and(|n| n > 1), "n"),
        // They stand elsewhere in the answer, in another form.
        (request.logprobs == Some(true), "logprobs"),
        (
            request.max_tokens.is_some_and(|most| most < MIN_TOKENS),
            "max_tokens",
        ),
    ] {
        if lost {
            losses.contract(field)?;
        }
    }
    Ok(())
}

fn parameters(request: &Request, tools: bool, out: &mut Object<'_>) {
    if request.stream {
        out.put("stream", &true);
    }
    match &request.tool_choice {
        _ if !tools => {}
        None => {}
        Some(ToolChoice::Auto) => out.put("tool_choice", "auto"),
        Some(ToolChoice::None) => out.put("tool_choice", "none"),
        Some(ToolChoice::Required) => out.put("tool_choice", "required"),
        Some(ToolChoice::Named(name)) => out.object("tool_choice", |out| {
            out.put("type", "function");
            out.put("name", name);
        }),
    }
    if tools {
        out.put_some("parallel_tool_calls", request.parallel_tool_calls);
    }
    if let Some(format) = &request.response_format {
        out.object("text", |out| {
            out.object("format", |out| write_format(format, out));
        });
    }
    if let Some(effort) = request.reasoning.and_then(effort) {
        out.object("reasoning", |out| out.put("effort", effort));
    }
    out.put_some(
        "max_output_tokens",
        request.max_tokens.map(|most| most.max(MIN_TOKENS)),
    );
    out.put_some("temperature", request.temperature);
    out.put_some("top_p", request.top_p);
    if request.logprobs != Some(true) {
        out.put_some("top_logprobs", request.top_logprobs);
    }
    out.put_some("user", request.user.as_ref());
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
            // The dialect requires a name; callers who know none mean any.
            out.put("name", name.as_deref().unwrap_or("answer"));
            out.put_some("description", description.as_ref());
            out.put("schema", schema);
            out.put_some("strict", *strict);
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
            out.put("name", name);
            out.put_some("description", description.as_ref());
            match parameters {
                Some(schema) => out.put("parameters", schema),
                None => out.object("parameters", |out| {
                    out.put("type", "object");
                    out.object("properties", |_| {});
                }),
            }
            // Here functions are strict unless they say otherwise; elsewhere it is the other way
            // round.
            out.put("strict", &strict.unwrap_or(false));
        }),
    }
}

fn items(request: &Request, out: &mut Array<'_>, losses: &mut Losses) -> Result<(), Unsupported> {
    for (place, message) in request.messages.iter().enumerate() {
        let at = format!("messages[{place}]");
        if message.name.is_some() {
            losses.contract(format!("{at}.name"))?;
        }
        write_turn(message, &at, out, losses)?;
    }
    Ok(())
}

/// A turn as items, in order: words that stand together are one message, all else an item of its
/// own. Results of tools come first, right behind their calls.
fn write_turn(
    message: &Message,
    at: &str,
    out: &mut Array<'_>,
    losses: &mut Losses,
) -> Result<(), Unsupported> {
    let mut words: Vec<&Part> = Vec::new();
    let mut parts: Vec<(usize, &Part)> = message.parts.iter().enumerate().collect();
    parts.sort_by_key(|(_, part)| !matches!(part, Part::ToolResult { .. }));
    for (place, part) in parts {
        let at = format!("{at}.content[{place}]");
        match part {
            Part::Text(text) if text.is_empty() => {}
            Part::Image(_) if message.role == Role::Assistant => losses.contract(at)?,
            Part::Text(_) | Part::Refusal(_) | Part::Image(_) => words.push(part),
            Part::Other { dialect, .. } if *dialect != OWN => losses.contract(at)?,
            Part::Other { kind, .. } if is_piece(kind) => words.push(part),
            Part::Other { value, .. } => {
                flush(message.role, &mut words, out);
                out.put(value);
            }
            Part::Reasoning { .. } | Part::RedactedReasoning(_) => {
                match sealed(part) {
                    Some((text, seal)) => {
                        flush(message.role, &mut words, out);
                        write_reasoning(text, seal, out);
                    }
                    // The service takes back what it sealed itself, and nothing else.
                    None => losses.hint(at),
                }
            }
            Part::ToolCall {
                id,
                name,
                arguments,
            } => {
                flush(message.role, &mut words, out);
                out.object(|out| {
                    out.put("type", "function_call");
                    out.put("call_id", id);
                    out.put("name", name);
                    let none = arguments.trim().is_empty();
                    out.put("arguments", if none { "{}" } else { arguments });
                });
            }
            Part::ToolResult {
                id,
                content,
                is_error,
            } => {
                if *is_error {
                    // The result's own words are left to say so.
                    losses.hint(format!("{at}.is_error"));
                }
                write_result(id, content, &at, out, losses)?;
            }
        }
    }
    flush(message.role, &mut words, out);
    Ok(())
}

/// Whether a piece only this dialect knows belongs inside a message.
fn is_piece(kind: &str) -> bool {
    kind.starts_with("input_") || kind.starts_with("output_")
}

/// The text of a piece of reasoning and the seal that a service of this dialect can open.
fn sealed(part: &Part) -> Option<(&str, &str)> {
    match part {
        Part::Reasoning {
            text,
            signature: Some(seal),
        } => Some((text, seal::to_provider(seal)?)),
        Part::RedactedReasoning(seal) => Some(("", seal::to_provider(seal)?)),
        _ => None,
    }
}

fn write_reasoning(text: &str, seal: &str, out: &mut Array<'_>) {
    out.object(|out| {
        out.put("type", "reasoning");
        out.array("summary", |out| {
            if !text.is_empty() {
                out.object(|out| {
                    out.put("type", "summary_text");
                    out.put("text", text);
                });
            }
        });
        out.put("encrypted_content", seal);
    });
}

/// Writes the words gathered so far as a message.
fn flush(role: Role, words: &mut Vec<&Part>, out: &mut Array<'_>) {
    if words.is_empty() {
        return;
    }
    let (role, text) = match role {
        Role::System => ("system", "input_text"),
        Role::Developer => ("developer", "input_text"),
        Role::User | Role::Tool => ("user", "input_text"),
        Role::Assistant => ("assistant", "output_text"),
    };
    out.object(|out| {
        out.put("role", role);
        if let [Part::Text(words)] = words[..] {
            out.put("content", words);
        } else {
            out.array("content", |out| {
                words.iter().for_each(|part| write_piece(part, text, out));
            });
        }
    });
    words.clear();
}

fn write_piece(part: &Part, text: &str, out: &mut Array<'_>) {
    match part {
        Part::Text(words) => out.object(|out| {
            out.put("type", text);
            out.put("text", words);
        }),
        Part::Refusal(words) => out.object(|out| {
            out.put("type", "refusal");
            out.put("refusal", words);
        }),
        Part::Image(image) => out.object(|out| {
            out.put("type", "input_image");
            let detail = match image {
                Image::Url { url, detail } => {
                    out.put("image_url", url);
                    detail
                }
                Image::Base64 {
                    media_type,
                    data,
                    detail,
                } => {
                    out.put(
                        "image_url",
                        &format!("data:{media_type};base64,{}", &**data),
                    );
                    detail
                }
            };
            out.put("detail", detail.as_deref().unwrap_or("auto"));
        }),
        Part::Other { value, .. } => out.put(value),
        _ => {}
    }
}

fn write_result(
    id: &str,
    content: &[Part],
    at: &str,
    out: &mut Array<'_>,
    losses: &mut Losses,
) -> Result<(), Unsupported> {
    let mut plain = true;
    let mut carried = Vec::with_capacity(content.len());
    for (place, part) in content.iter().enumerate() {
        match part {
            Part::Text(_) => carried.push(part),
            Part::Image(_) => {
                plain = false;
                carried.push(part);
            }
            Part::Other { dialect, .. } if *dialect == OWN => {
                plain = false;
                carried.push(part);
            }
            _ => losses.contract(format!("{at}.content[{place}]"))?,
        }
    }
    out.object(|out| {
        out.put("type", "function_call_output");
        out.put("call_id", id);
        if plain {
            out.put("output", &joined(content, "\n"));
        } else {
            out.array("output", |out| {
                let pieces = carried.iter();
                pieces.for_each(|part| write_piece(part, "input_text", out));
            });
        }
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

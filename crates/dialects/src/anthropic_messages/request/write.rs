//! From the neutral shape to the wire.

use backstop_chat::{
    Effort, Image, Message, Part, Reasoning, Request, ResponseFormat, Role, Tool, ToolChoice,
};
use serde_json::value::RawValue;

use super::super::OWN;
use crate::dialect::Dialect;
use crate::json::{Array, Object};
use crate::openai_responses::seal;
use crate::translate::{Losses, Unsupported, WriteOptions, Written};

/// The smallest thinking budget
/// (docs.claude.com/en/docs/build-with-claude/extended-thinking).
const MIN_BUDGET: u64 = 1024;
/// Room for the answer beside a thinking budget when the caller set no limit: `max_tokens` covers
/// both and must be larger than the budget.
const ANSWER_ROOM: u64 = 4096;

pub(crate) fn write(request: &Request, options: &WriteOptions) -> Result<Written, Unsupported> {
    let mut losses = Losses::new(Dialect::AnthropicMessages, options.loss);
    uncarried(request, &mut losses)?;
    let own = losses.own(&request.extras)?;
    let system = system(request, &mut losses)?;
    let turns = turns(request, &mut losses)?;
    let tools = tools(request, &mut losses)?;
    let budget = budget(request, &mut losses)?;
    let temperature = temperature(request, budget, &mut losses)?;
    // Required here, and thinking counts against it.
    let room = budget.map_or(0, |tokens| tokens.saturating_add(ANSWER_ROOM));
    let max_tokens = request
        .max_tokens
        .unwrap_or_else(|| options.default_max_tokens.max(room));

    let mut body = Vec::with_capacity(1024);
    Object::write(&mut body, |out| {
        out.put("model", &request.model);
        out.put("max_tokens", &max_tokens);
        if !system.is_empty() {
            out.array("system", |out| {
                system.iter().for_each(|text| write_text(text, out));
            });
        }
        out.array("messages", |out| {
            turns.iter().for_each(|turn| turn.write(out));
        });
        if !tools.is_empty() {
            out.array("tools", |out| {
                tools.iter().for_each(|tool| write_tool(tool, out));
            });
            tool_choice(request, out);
        }
        if request.stream {
            out.put("stream", &true);
        }
        thinking(request.reasoning, budget, out);
        if let Some(ResponseFormat::JsonSchema { schema, .. }) = &request.response_format {
            out.object("output_config", |out| {
                out.object("format", |out| {
                    out.put("type", "json_schema");
                    out.put("schema", schema);
                });
            });
        }
        out.put_some("temperature", temperature);
        out.put_some("top_p", request.top_p);
        out.put_some("top_k", request.top_k);
        let stop: Vec<_> = request
            .stop
            .iter()
            .filter(|text| !text.trim().is_empty())
            .collect();
        if !stop.is_empty() {
            out.put("stop_sequences", &stop);
        }
        if let Some(user) = &request.user {
            out.object("metadata", |out| out.put("user_id", user));
        }
        for extra in own {
            out.put(&extra.path, &extra.value);
        }
    });
    Ok(Written {
        body,
        dropped: losses.into_dropped(),
    })
}

/// What the dialect has no word for. Values that mean the same as saying nothing are no loss.
fn uncarried(request: &Request, losses: &mut Losses) -> Result<(), Unsupported> {
    let set = |value: Option<f64>| value.is_some_and(|value| value != 0.0);
    let blank = |text: &backstop_chat::Text| text.trim().is_empty();
    for (lost, field) in [
        (request.seed.is_some(), "seed"),
        (set(request.presence_penalty), "presence_penalty"),
        (set(request.frequency_penalty), "frequency_penalty"),
        (request.n.is_some_and(|n| n > 1), "n"),
        (request.logprobs == Some(true), "logprobs"),
        (request.top_logprobs.is_some_and(|n| n > 0), "top_logprobs"),
        (
            request.response_format == Some(ResponseFormat::JsonObject),
            "response_format",
        ),
        (request.stop.iter().any(blank), "stop"),
    ] {
        if lost {
            losses.contract(field)?;
        }
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

/// The system prompt: what stood apart, then system messages in their order.
fn system<'r>(request: &'r Request, losses: &mut Losses) -> Result<Vec<&'r str>, Unsupported> {
    let mut texts = Vec::new();
    let said = request.messages.iter().enumerate();
    let apart = std::iter::once(("system".to_owned(), &request.instructions));
    let within = said
        .filter(|(_, message)| is_system(message))
        .map(|(place, message)| (format!("messages[{place}].content"), &message.parts));
    for (at, parts) in apart.chain(within) {
        for (place, part) in parts.iter().enumerate() {
            match part {
                Part::Text(text) if text.is_empty() => {}
                Part::Text(text) => texts.push(&**text),
                _ => losses.contract(format!("{at}[{place}]"))?,
            }
        }
    }
    Ok(texts)
}

const fn is_system(message: &Message) -> bool {
    matches!(message.role, Role::System | Role::Developer)
}

/// A turn of the conversation: neighbours with one role.
struct Turn<'r> {
    assistant: bool,
    parts: Vec<&'r Part>,
}

fn turns<'r>(request: &'r Request, losses: &mut Losses) -> Result<Vec<Turn<'r>>, Unsupported> {
    let mut turns: Vec<Turn<'r>> = Vec::new();
    for (place, message) in request.messages.iter().enumerate() {
        if is_system(message) {
            continue;
        }
        let at = format!("messages[{place}]");
        if message.name.is_some() {
            losses.contract(format!("{at}.name"))?;
        }
        let parts = carried(message, &at, losses)?;
        let assistant = message.role == Role::Assistant;
        match turns.last_mut() {
            Some(turn) if turn.assistant == assistant => turn.parts.extend(parts),
            _ if parts.is_empty() => {}
            // The first turn must be the user's.
            None if assistant => return Err(losses.never(format!("{at}.role"))),
            _ => turns.push(Turn { assistant, parts }),
        }
    }
    for turn in &mut turns {
        // Results answer the calls just before, so they come before anything else said.
        turn.parts
            .sort_by_key(|part| !matches!(part, Part::ToolResult { .. }));
    }
    if turns.is_empty() {
        return Err(losses.never("messages"));
    }
    Ok(turns)
}

/// The parts of a message that can be written.
fn carried<'r>(
    message: &'r Message,
    at: &str,
    losses: &mut Losses,
) -> Result<Vec<&'r Part>, Unsupported> {
    let mut carried = Vec::with_capacity(message.parts.len());
    for (place, part) in message.parts.iter().enumerate() {
        let at = || format!("{at}.content[{place}]");
        match part {
            Part::Text(text) if text.is_empty() => {}
            Part::Other { dialect, .. } if *dialect != OWN => losses.contract(at())?,
            Part::ToolResult { content, .. } => {
                for (inner, part) in content.iter().enumerate() {
                    if !in_result(part) {
                        losses.contract(format!("{}.content[{inner}]", at()))?;
                    }
                }
                carried.push(part);
            }
            // Thinking that this provider did not sign is refused when replayed.
            Part::Reasoning {
                signature: None, ..
            } => losses.hint(at()),
            Part::Reasoning {
                signature: Some(seal),
                ..
            }
            | Part::RedactedReasoning(seal)
                if seal::is_ours(seal) =>
            {
                losses.hint(at());
            }
            Part::ToolCall { arguments, .. } if object(arguments).is_none() => {
                losses.contract(format!("{}.arguments", at()))?;
                carried.push(part);
            }
            Part::Image(Image::Url { detail, .. } | Image::Base64 { detail, .. }) => {
                if detail.as_deref().is_some_and(|detail| detail != "auto") {
                    losses.hint(format!("{}.detail", at()));
                }
                carried.push(part);
            }
            _ => carried.push(part),
        }
    }
    Ok(carried)
}

/// Whether a part of a tool's result can be written.
fn in_result(part: &Part) -> bool {
    match part {
        Part::Text(_) | Part::Image(_) => true,
        Part::Other { dialect, .. } => *dialect == OWN,
        _ => false,
    }
}

impl Turn<'_> {
    fn write(&self, out: &mut Array<'_>) {
        out.object(|out| {
            out.put("role", if self.assistant { "assistant" } else { "user" });
            out.array("content", |out| {
                self.parts.iter().for_each(|part| write_part(part, out));
            });
        });
    }
}

fn write_text(text: &str, out: &mut Array<'_>) {
    out.object(|out| {
        out.put("type", "text");
        out.put("text", text);
    });
}

fn write_part(part: &Part, out: &mut Array<'_>) {
    match part {
        Part::Text(text) | Part::Refusal(text) => write_text(text, out),
        Part::Other { value, .. } => out.put(value),
        Part::Image(image) => out.object(|out| {
            out.put("type", "image");
            out.object("source", |out| write_source(image, out));
        }),
        Part::Reasoning { text, signature } => out.object(|out| {
            out.put("type", "thinking");
            out.put("thinking", text);
            out.put("signature", signature.as_deref().unwrap_or_default());
        }),
        Part::RedactedReasoning(data) => out.object(|out| {
            out.put("type", "redacted_thinking");
            out.put("data", data);
        }),
        Part::ToolCall {
            id,
            name,
            arguments,
        } => out.object(|out| {
            out.put("type", "tool_use");
            out.put("id", id);
            out.put("name", name);
            match object(arguments) {
                Some(input) => out.put("input", input),
                None => out.object("input", |_| {}),
            }
        }),
        Part::ToolResult {
            id,
            content,
            is_error,
        } => out.object(|out| {
            out.put("type", "tool_result");
            out.put("tool_use_id", id);
            out.array("content", |out| {
                content
                    .iter()
                    .filter(|part| in_result(part))
                    .filter(|part| !matches!(part, Part::Text(text) if text.is_empty()))
                    .for_each(|part| write_part(part, out));
            });
            if *is_error {
                out.put("is_error", &true);
            }
        }),
    }
}

fn write_source(image: &Image, out: &mut Object<'_>) {
    match image {
        Image::Url { url, .. } => {
            out.put("type", "url");
            out.put("url", url);
        }
        Image::Base64 {
            media_type, data, ..
        } => {
            out.put("type", "base64");
            out.put("media_type", media_type);
            out.put("data", data);
        }
    }
}

/// Arguments as the object this dialect wants; no arguments at all are an empty one.
pub(crate) fn object(arguments: &str) -> Option<&RawValue> {
    let arguments = match arguments.trim_ascii() {
        "" => "{}",
        text => text,
    };
    let value: &RawValue = serde_json::from_str(arguments).ok()?;
    value.get().starts_with('{').then_some(value)
}

fn tools<'r>(request: &'r Request, losses: &mut Losses) -> Result<Vec<&'r Tool>, Unsupported> {
    let mut tools = Vec::with_capacity(request.tools.len());
    for (place, tool) in request.tools.iter().enumerate() {
        match tool {
            Tool::Other { dialect, .. } if *dialect != OWN => {
                losses.contract(format!("tools[{place}]"))?;
            }
            _ => tools.push(tool),
        }
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
            strict,
        } => out.object(|out| {
            out.put("name", name);
            out.put_some("description", description.as_ref());
            match parameters {
                Some(schema) => out.put("input_schema", schema),
                None => out.object("input_schema", |out| {
                    out.put("type", "object");
                    out.object("properties", |_| {});
                }),
            }
            out.put_some("strict", strict.filter(|strict| *strict));
        }),
    }
}

fn tool_choice(request: &Request, out: &mut Object<'_>) {
    let single = request.parallel_tool_calls == Some(false);
    let choice = match &request.tool_choice {
        None if !single => return,
        None => &ToolChoice::Auto,
        Some(choice) => choice,
    };
    out.object("tool_choice", |out| {
        let kind = match choice {
            ToolChoice::Auto => "auto",
            ToolChoice::None => "none",
            ToolChoice::Required => "any",
            ToolChoice::Named(_) => "tool",
        };
        out.put("type", kind);
        if let ToolChoice::Named(name) = choice {
            out.put("name", name);
        }
        if single && *choice != ToolChoice::None {
            out.put("disable_parallel_tool_use", &true);
        }
    });
}

/// The thinking budget. Budgets are taken by every model that thinks, levels of effort only by the
/// newest, so an effort becomes a budget that leaves a quarter of the caller's limit for the
/// answer.
pub(crate) fn budget(request: &Request, losses: &mut Losses) -> Result<Option<u64>, Unsupported> {
    let effort = match request.reasoning {
        None | Some(Reasoning::Off | Reasoning::Adaptive) => return Ok(None),
        Some(Reasoning::Budget(tokens)) => return Ok(Some(tokens)),
        Some(Reasoning::Effort(effort)) => effort,
    };
    if matches!(
        request.tool_choice,
        Some(ToolChoice::Required | ToolChoice::Named(_))
    ) {
        // A model that must call a tool cannot think first.
        return losses.contract("reasoning_effort").map(|()| None);
    }
    let wanted = match effort {
        Effort::Minimal | Effort::Low => MIN_BUDGET,
        Effort::Medium => 4 * MIN_BUDGET,
        Effort::High => 16 * MIN_BUDGET,
        Effort::ExtraHigh | Effort::Max => 24 * MIN_BUDGET,
    };
    match request.max_tokens {
        None => Ok(Some(wanted)),
        Some(limit) if limit > MIN_BUDGET => {
            Ok(Some(wanted.min(limit - limit / 4).max(MIN_BUDGET)))
        }
        // No room to think at all.
        Some(_) => losses.contract("reasoning_effort").map(|()| None),
    }
}

/// The temperature, on a scale that ends at 1 here. A model that thinks takes no other value.
pub(crate) fn temperature(
    request: &Request,
    budget: Option<u64>,
    losses: &mut Losses,
) -> Result<Option<f64>, Unsupported> {
    match request.temperature {
        Some(degrees) if budget.is_some() && degrees < 1.0 => {
            losses.contract("temperature")?;
            Ok(None)
        }
        Some(degrees) if degrees > 1.0 => {
            losses.contract("temperature")?;
            Ok(Some(1.0))
        }
        degrees => Ok(degrees),
    }
}

fn thinking(reasoning: Option<Reasoning>, budget: Option<u64>, out: &mut Object<'_>) {
    match (reasoning, budget) {
        (_, Some(tokens)) => out.object("thinking", |out| {
            out.put("type", "enabled");
            out.put("budget_tokens", &tokens);
        }),
        (Some(Reasoning::Adaptive), _) => out.object("thinking", |out| out.put("type", "adaptive")),
        _ => {}
    }
}

//! From the neutral shape to the wire.

use std::collections::HashMap;

use backstop_chat::{
    Effort, Image, Message, Part, Reasoning, Request, ResponseFormat, Role, Tool, ToolChoice,
};

use super::super::OWN;
use super::super::part::{object, write_call, write_id, write_image, write_response, write_text};
use super::super::signature::unpack;
use crate::dialect::Dialect;
use crate::json::{Array, Object};
use crate::translate::{Losses, Unsupported, WriteOptions, Written};

/// Most stop strings (ai.google.dev/api/generate-content#generationconfig).
const MAX_STOP: usize = 5;
/// What stands in for the signature of a call that another model made: Gemini 3 refuses a call
/// without one, and takes this word for it
/// (ai.google.dev/gemini-api/docs/thought-signatures, FAQ, read 2026-11).
const NOT_OURS: &str = "skip_thought_signature_validator";

pub(crate) fn write(request: &Request, options: &WriteOptions) -> Result<Written, Unsupported> {
    let mut losses = Losses::new(Dialect::Gemini, options.loss);
    uncarried(request, &mut losses)?;
    let own = losses.own(&request.extras)?;
    let system = system(request, &mut losses)?;
    let turns = turns(request, &mut losses)?;
    let tools = tools(request, &mut losses)?;
    let unsigned = is_third(&request.model).then_some(NOT_OURS);

    let mut body = Vec::with_capacity(1024);
    Object::write(&mut body, |out| {
        if !system.is_empty() {
            out.object("systemInstruction", |out| {
                out.array("parts", |out| {
                    system.iter().for_each(|text| write_text(text, out));
                });
            });
        }
        out.array("contents", |out| {
            turns.iter().for_each(|turn| turn.write(unsigned, out));
        });
        if !tools.is_empty() {
            out.array("tools", |out| write_tools(&tools, out));
            tool_choice(request, out);
        }
        let mut config = Vec::new();
        Object::write(&mut config, |out| generation(request, out));
        if config != b"{}" {
            out.object("generationConfig", |out| generation(request, out));
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

/// Whether the model is of the third generation: it thinks by levels, and insists on signatures.
fn is_third(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    name.starts_with("gemini-3")
}

/// What the dialect has no word for. Values that mean the same as saying nothing are no loss.
fn uncarried(request: &Request, losses: &mut Losses) -> Result<(), Unsupported> {
    for (lost, field) in [
        (
            request.parallel_tool_calls == Some(false) && !request.tools.is_empty(),
            "parallel_tool_calls",
        ),
        // It has them, in a shape that no other dialect shares.
        (request.logprobs == Some(true), "logprobs"),
        (request.top_logprobs.is_some_and(|n| n > 0), "top_logprobs"),
        (request.stop.len() > MAX_STOP, "stop"),
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

const fn is_system(message: &Message) -> bool {
    matches!(message.role, Role::System | Role::Developer)
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

/// A turn of the conversation: neighbours with one role.
struct Turn<'r> {
    model: bool,
    parts: Vec<Item<'r>>,
}

/// A part, and for a tool's result the name of the tool.
struct Item<'r> {
    part: &'r Part,
    answers: &'r str,
}

fn turns<'r>(request: &'r Request, losses: &mut Losses) -> Result<Vec<Turn<'r>>, Unsupported> {
    let mut names: HashMap<&str, &str> = HashMap::new();
    let mut turns: Vec<Turn<'r>> = Vec::new();
    for (place, message) in request.messages.iter().enumerate() {
        if is_system(message) {
            continue;
        }
        let at = format!("messages[{place}]");
        if message.name.is_some() {
            losses.contract(format!("{at}.name"))?;
        }
        for part in &message.parts {
            if let Part::ToolCall { id, name, .. } = part {
                names.insert(id, name);
            }
        }
        let parts = carried(message, &at, &names, losses)?;
        let model = message.role == Role::Assistant;
        match turns.last_mut() {
            Some(turn) if turn.model == model => turn.parts.extend(parts),
            _ if parts.is_empty() => {}
            _ => turns.push(Turn { model, parts }),
        }
    }
    for turn in &mut turns {
        // Results answer the calls just before, so they come before anything else said.
        turn.parts
            .sort_by_key(|item| !matches!(item.part, Part::ToolResult { .. }));
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
    names: &HashMap<&str, &'r str>,
    losses: &mut Losses,
) -> Result<Vec<Item<'r>>, Unsupported> {
    let mut carried = Vec::with_capacity(message.parts.len());
    for (place, part) in message.parts.iter().enumerate() {
        let at = || format!("{at}.content[{place}]");
        let mut answers = "";
        match part {
            Part::Text(text) if text.is_empty() => continue,
            // Thoughts need not come back; what must is the signature of a call.
            Part::Reasoning { .. } | Part::RedactedReasoning(_) => {
                losses.hint(at());
                continue;
            }
            Part::Other { dialect, .. } if *dialect != OWN => {
                losses.contract(at())?;
                continue;
            }
            // Only files of Google's own and of few hosts: the rest would have to be fetched.
            Part::Image(Image::Url { url, .. }) if !is_google_file(url) => {
                losses.contract(at())?;
                continue;
            }
            Part::Image(Image::Url { detail, .. } | Image::Base64 { detail, .. })
                if detail.as_deref().is_some_and(|detail| detail != "auto") =>
            {
                losses.hint(format!("{}.detail", at()));
            }
            Part::ToolCall { arguments, .. } if object(arguments).is_none() => {
                losses.contract(format!("{}.arguments", at()))?;
            }
            Part::ToolResult { id, content, .. } => {
                // The tool's name is required, and a result knows only the call's id.
                answers = names
                    .get(id.as_str())
                    .ok_or_else(|| losses.never(format!("{}.tool_call_id", at())))?;
                for (inner, part) in content.iter().enumerate() {
                    if !matches!(part, Part::Text(_)) {
                        losses.contract(format!("{}.content[{inner}]", at()))?;
                    }
                }
            }
            _ => {}
        }
        carried.push(Item { part, answers });
    }
    Ok(carried)
}

/// Whether an address is one of Google's file service or storage.
fn is_google_file(url: &str) -> bool {
    url.starts_with("https://generativelanguage.googleapis.com/") || url.starts_with("gs://")
}

impl Turn<'_> {
    fn write(&self, unsigned: Option<&str>, out: &mut Array<'_>) {
        // The first of parallel calls has the signature of all.
        let signed = self
            .parts
            .iter()
            .any(|item| matches!(item.part, Part::ToolCall { id, .. } if unpack(id).1.is_some()));
        let mut unsigned = unsigned.filter(|_| !signed);
        out.object(|out| {
            out.put("role", if self.model { "model" } else { "user" });
            out.array("parts", |out| {
                for item in &self.parts {
                    let first = match item.part {
                        Part::ToolCall { .. } => unsigned.take(),
                        _ => None,
                    };
                    item.write(first, out);
                }
            });
        });
    }
}

impl Item<'_> {
    fn write(&self, unsigned: Option<&str>, out: &mut Array<'_>) {
        match self.part {
            Part::Text(text) | Part::Refusal(text) => write_text(text, out),
            Part::Image(image) => write_image(image, out),
            Part::Other { value, .. } => out.put(value),
            Part::ToolCall {
                id,
                name,
                arguments,
            } => write_call(id, name, arguments, unsigned, out),
            Part::ToolResult {
                id,
                content,
                is_error,
            } => {
                let texts: Vec<&str> = content
                    .iter()
                    .filter_map(|part| match part {
                        Part::Text(text) => Some(&**text),
                        _ => None,
                    })
                    .collect();
                out.object(|out| {
                    out.object("functionResponse", |out| {
                        write_id(id, out);
                        out.put("name", self.answers);
                        write_response(&texts.join("\n"), *is_error, out);
                    });
                });
            }
            Part::Reasoning { .. } | Part::RedactedReasoning(_) => {}
        }
    }
}

fn tools<'r>(request: &'r Request, losses: &mut Losses) -> Result<Vec<&'r Tool>, Unsupported> {
    let mut tools = Vec::with_capacity(request.tools.len());
    for (place, tool) in request.tools.iter().enumerate() {
        match tool {
            Tool::Other { dialect, .. } if *dialect != OWN => {
                losses.contract(format!("tools[{place}]"))?;
                continue;
            }
            Tool::Function {
                strict: Some(true), ..
            } => losses.hint(format!("tools[{place}].strict")),
            _ => {}
        }
        tools.push(tool);
    }
    Ok(tools)
}

/// All functions in one entry, as the dialect wants them; its own tools in one each.
fn write_tools(tools: &[&Tool], out: &mut Array<'_>) {
    let is_function = |tool: &&&Tool| matches!(tool, Tool::Function { .. });
    if tools.iter().any(|tool| is_function(&tool)) {
        out.object(|out| {
            out.array("functionDeclarations", |out| {
                for tool in tools {
                    write_function(tool, out);
                }
            });
        });
    }
    for tool in tools {
        if let Tool::Other { value, .. } = tool {
            out.put(value);
        }
    }
}

fn write_function(tool: &Tool, out: &mut Array<'_>) {
    if let Tool::Function {
        name,
        description,
        parameters,
        ..
    } = tool
    {
        out.object(|out| {
            out.put("name", name);
            out.put_some("description", description.as_ref());
            out.put_some("parametersJsonSchema", parameters.as_ref());
        });
    }
}

fn tool_choice(request: &Request, out: &mut Object<'_>) {
    let Some(choice) = &request.tool_choice else {
        return;
    };
    out.object("toolConfig", |out| {
        out.object("functionCallingConfig", |out| {
            let mode = match choice {
                ToolChoice::Auto => "AUTO",
                ToolChoice::None => "NONE",
                ToolChoice::Required | ToolChoice::Named(_) => "ANY",
            };
            out.put("mode", mode);
            if let ToolChoice::Named(name) = choice {
                out.array("allowedFunctionNames", |out| out.put(name));
            }
        });
    });
}

fn generation(request: &Request, out: &mut Object<'_>) {
    match &request.response_format {
        None | Some(ResponseFormat::Text) => {}
        Some(ResponseFormat::JsonObject) => out.put("responseMimeType", "application/json"),
        Some(ResponseFormat::JsonSchema { schema, .. }) => {
            out.put("responseMimeType", "application/json");
            out.put("responseJsonSchema", schema);
        }
    }
    out.put_some("maxOutputTokens", request.max_tokens);
    out.put_some("temperature", request.temperature);
    out.put_some("topP", request.top_p);
    out.put_some("topK", request.top_k);
    if !request.stop.is_empty() {
        let most = request.stop.len().min(MAX_STOP);
        out.put("stopSequences", &request.stop[..most]);
    }
    out.put_some("seed", request.seed);
    out.put_some("presencePenalty", request.presence_penalty);
    out.put_some("frequencyPenalty", request.frequency_penalty);
    out.put_some("candidateCount", request.n);
    if let Some(reasoning) = request.reasoning {
        out.object("thinkingConfig", |out| {
            thinking(reasoning, is_third(&request.model), out);
        });
    }
}

/// How much to think: by levels where the model knows them, else by tokens, with the amounts that
/// Google's own OpenAI surface takes for an effort (ai.google.dev/gemini-api/docs/openai).
fn thinking(reasoning: Reasoning, by_levels: bool, out: &mut Object<'_>) {
    match reasoning {
        Reasoning::Off => return out.put("thinkingBudget", &0),
        Reasoning::Budget(tokens) => out.put("thinkingBudget", &tokens),
        Reasoning::Adaptive if by_levels => {}
        Reasoning::Adaptive => out.put("thinkingBudget", &-1),
        Reasoning::Effort(effort) if by_levels => out.put(
            "thinkingLevel",
            match effort {
                Effort::Minimal | Effort::Low => "low",
                Effort::Medium => "medium",
                Effort::High | Effort::ExtraHigh | Effort::Max => "high",
            },
        ),
        Reasoning::Effort(effort) => out.put(
            "thinkingBudget",
            &match effort {
                Effort::Minimal | Effort::Low => 1024,
                Effort::Medium => 8192,
                Effort::High | Effort::ExtraHigh | Effort::Max => 24_576,
            },
        ),
    }
    out.put("includeThoughts", &true);
}

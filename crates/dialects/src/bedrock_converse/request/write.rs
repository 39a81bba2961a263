//! From the neutral shape to the wire.

use std::collections::BTreeSet;

use backstop_chat::{
    Effort, Image, Message, Part, Reasoning, Request, ResponseFormat, Role, Tool, ToolChoice,
};

use super::super::{OWN, block};
use crate::anthropic_messages::request::{budget, object, temperature};
use crate::dialect::Dialect;
use crate::json::{Array, Object};
use crate::openai_responses::seal;
use crate::translate::{Losses, Unsupported, WriteOptions, Written};

/// The name of a schema that came without one; the member is not required, some models want it.
const SCHEMA: &str = "response";

pub(crate) fn write(request: &Request, options: &WriteOptions) -> Result<Written, Unsupported> {
    let mut losses = Losses::new(Dialect::BedrockConverse, options.loss);
    uncarried(request, &mut losses)?;
    let own = losses.own(&request.extras)?;
    let system = system(request, &mut losses)?;
    let turns = turns(request, &mut losses)?;
    let tools = Tools::of(request, &turns, &mut losses)?;
    let thinking = Thinking::of(request, &mut losses)?;
    let temperature = temperature(request, thinking.budget(), &mut losses)?;

    let mut body = Vec::with_capacity(1024);
    Object::write(&mut body, |out| {
        out.array("messages", |out| {
            turns.iter().for_each(|turn| turn.write(out));
        });
        if !system.is_empty() {
            out.array("system", |out| {
                system
                    .iter()
                    .for_each(|text| out.object(|out| out.put("text", text)));
            });
        }
        let stop: Vec<_> = request
            .stop
            .iter()
            .filter(|text| !text.is_empty())
            .collect();
        let tuned = temperature.is_some() || request.top_p.is_some();
        if request.max_tokens.is_some() || tuned || !stop.is_empty() {
            out.object("inferenceConfig", |out| {
                out.put_some("maxTokens", request.max_tokens);
                out.put_some("temperature", temperature);
                out.put_some("topP", request.top_p);
                if !stop.is_empty() {
                    out.put("stopSequences", &stop);
                }
            });
        }
        tools.write(out);
        write_format(request, out);
        if thinking != Thinking::Unasked || request.top_k.is_some() {
            out.object("additionalModelRequestFields", |out| {
                thinking.write(out);
                out.put_some("top_k", request.top_k);
            });
        }
        if let Some(user) = request.user.as_deref().filter(|user| is_label(user)) {
            out.object("requestMetadata", |out| out.put("user", user));
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
    let single = request.parallel_tool_calls == Some(false) && !request.tools.is_empty();
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
        // Each model has its own field for it, or none.
        (single, "parallel_tool_calls"),
        (
            request.top_k.is_some() && maker(&request.model) != Maker::Anthropic,
            "top_k",
        ),
    ] {
        if lost {
            losses.contract(field)?;
        }
    }
    if request.user.as_deref().is_some_and(|user| !is_label(user)) {
        losses.hint("user");
    }
    Ok(())
}

/// Whether a value of `requestMetadata` may be these words (API_runtime_Converse).
fn is_label(words: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b" :_@$#=/+,-.".contains(&byte);
    words.len() <= 256 && words.bytes().all(fits)
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
                Part::Text(text) if is_blank(text) => {}
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

/// Blank text is refused with the whole request.
fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
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
            Part::Text(text) if is_blank(text) => {}
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
            Part::Image(_) | Part::Other { .. } if !in_result(part) => losses.contract(at())?,
            _ => carried.push(part),
        }
    }
    Ok(carried)
}

/// Whether a part of a tool's result can be written. Pictures are carried along, never fetched.
fn in_result(part: &Part) -> bool {
    match part {
        Part::Text(_) => true,
        Part::Image(Image::Base64 { media_type, .. }) => block::format(media_type).is_some(),
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

fn write_part(part: &Part, out: &mut Array<'_>) {
    if let Part::Other { value, .. } = part {
        return out.put(value);
    }
    out.object(|out| match part {
        Part::Image(Image::Base64 {
            media_type, data, ..
        }) => out.object("image", |out| {
            out.put_some("format", block::format(media_type));
            out.object("source", |out| out.put("bytes", data));
        }),
        Part::ToolResult {
            id,
            content,
            is_error,
        } => out.object("toolResult", |out| {
            out.put("toolUseId", id);
            out.array("content", |out| {
                content
                    .iter()
                    .filter(|part| in_result(part))
                    .filter(|part| !matches!(part, Part::Text(text) if text.is_empty()))
                    .for_each(|part| write_part(part, out));
            });
            out.put("status", if *is_error { "error" } else { "success" });
        }),
        _ => {
            block::write(part, out);
        }
    });
}

/// The tools to write. A conversation with tool traffic in it is refused without any.
#[derive(Default)]
struct Tools<'r> {
    offered: Vec<&'r Tool>,
    /// Tools that only the conversation knows.
    mentioned: BTreeSet<&'r str>,
    choice: Option<&'r ToolChoice>,
}

impl<'r> Tools<'r> {
    fn of(
        request: &'r Request,
        turns: &[Turn<'r>],
        losses: &mut Losses,
    ) -> Result<Self, Unsupported> {
        let mut tools = Self::default();
        for (place, tool) in request.tools.iter().enumerate() {
            match tool {
                Tool::Other { dialect, .. } if *dialect != OWN => {
                    losses.contract(format!("tools[{place}]"))?;
                }
                _ => tools.offered.push(tool),
            }
        }
        let mut mentioned = BTreeSet::new();
        for part in turns.iter().flat_map(|turn| &turn.parts) {
            if let Part::ToolCall { name, .. } = part {
                mentioned.insert(name.as_str());
            }
        }
        if tools.offered.is_empty() {
            if !mentioned.is_empty() {
                // It may call them, though nobody offered them.
                losses.contract("tools")?;
            }
            tools.mentioned = mentioned;
        } else if request.tool_choice == Some(ToolChoice::None) {
            // There is no word for calling none: without tools none can be called.
            if mentioned.is_empty() {
                tools.offered.clear();
            } else {
                losses.contract("tool_choice")?;
            }
        } else {
            tools.choice = request.tool_choice.as_ref();
        }
        Ok(tools)
    }

    fn write(&self, out: &mut Object<'_>) {
        if self.offered.is_empty() && self.mentioned.is_empty() {
            return;
        }
        out.object("toolConfig", |out| {
            out.array("tools", |out| {
                self.offered.iter().for_each(|tool| write_tool(tool, out));
                for name in &self.mentioned {
                    out.object(|out| {
                        out.object("toolSpec", |out| {
                            out.put("name", name);
                            any_object(out);
                        });
                    });
                }
            });
            match self.choice {
                None | Some(ToolChoice::None) => {}
                Some(choice) => out.object("toolChoice", |out| match choice {
                    ToolChoice::Required => out.object("any", |_| {}),
                    ToolChoice::Named(name) => out.object("tool", |out| out.put("name", name)),
                    ToolChoice::Auto | ToolChoice::None => out.object("auto", |_| {}),
                }),
            }
        });
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
            out.object("toolSpec", |out| {
                out.put("name", name);
                // An empty one is refused.
                let description = description.as_deref().filter(|text| !text.is_empty());
                out.put_some("description", description);
                match parameters {
                    Some(schema) => out.object("inputSchema", |out| out.put("json", schema)),
                    None => any_object(out),
                }
                out.put_some("strict", strict.filter(|strict| *strict));
            });
        }),
    }
}

/// The schema of a tool that says nothing of its arguments.
fn any_object(out: &mut Object<'_>) {
    out.object("inputSchema", |out| {
        out.object("json", |out| {
            out.put("type", "object");
            out.object("properties", |_| {});
        });
    });
}

/// The form of the answer. The schema stands in a string.
fn write_format(request: &Request, out: &mut Object<'_>) {
    let Some(ResponseFormat::JsonSchema {
        name,
        description,
        schema,
        ..
    }) = &request.response_format
    else {
        return;
    };
    out.object("outputConfig", |out| {
        out.object("textFormat", |out| {
            out.put("type", "json_schema");
            out.object("structure", |out| {
                out.object("jsonSchema", |out| {
                    out.put("name", name.as_deref().unwrap_or(SCHEMA));
                    out.put_some("description", description.as_ref());
                    out.put("schema", schema.as_str());
                });
            });
        });
    });
}

/// Whose model it is: each takes fields of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Maker {
    /// Also where the name does not say: an ARN, an alias.
    Anthropic,
    Amazon,
    OpenAi,
    Other,
}

fn maker(model: &str) -> Maker {
    if model.contains("anthropic.") || model.starts_with("arn:") || !model.contains('.') {
        Maker::Anthropic
    } else if model.contains("amazon.nova") {
        Maker::Amazon
    } else if model.contains("openai.") {
        Maker::OpenAi
    } else {
        Maker::Other
    }
}

/// What the model is told of its reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Thinking {
    Unasked,
    Adaptive,
    Budget(u64),
    /// Amazon's models.
    Nova(&'static str),
    /// OpenAI's.
    Effort(&'static str),
}

impl Thinking {
    fn of(request: &Request, losses: &mut Losses) -> Result<Self, Unsupported> {
        let step = |effort| match effort {
            Effort::Minimal | Effort::Low => "low",
            Effort::Medium => "medium",
            Effort::High | Effort::ExtraHigh | Effort::Max => "high",
        };
        Ok(match (request.reasoning, maker(&request.model)) {
            (None | Some(Reasoning::Off), _) => Self::Unasked,
            (Some(Reasoning::Adaptive), Maker::Anthropic) => Self::Adaptive,
            (Some(_), Maker::Anthropic) => {
                budget(request, losses)?.map_or(Self::Unasked, Self::Budget)
            }
            (Some(Reasoning::Effort(effort)), Maker::Amazon) => Self::Nova(step(effort)),
            (Some(Reasoning::Effort(effort)), Maker::OpenAi) => Self::Effort(step(effort)),
            _ => {
                losses.contract("reasoning_effort")?;
                Self::Unasked
            }
        })
    }

    const fn budget(self) -> Option<u64> {
        match self {
            Self::Budget(tokens) => Some(tokens),
            _ => None,
        }
    }

    fn write(self, out: &mut Object<'_>) {
        match self {
            Self::Unasked => {}
            Self::Adaptive => out.object("thinking", |out| out.put("type", "adaptive")),
            Self::Budget(tokens) => out.object("thinking", |out| {
                out.put("type", "enabled");
                out.put("budget_tokens", &tokens);
            }),
            Self::Nova(effort) => out.object("reasoningConfig", |out| {
                out.put("type", "enabled");
                out.put("maxReasoningEffort", effort);
            }),
            Self::Effort(effort) => out.put("reasoning_effort", effort),
        }
    }
}

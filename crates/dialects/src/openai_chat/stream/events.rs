//! From chunks to neutral events.

use backstop_chat::{Event, Text};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::answer::Malformed;
use crate::members::as_string;
use crate::openai_chat::answer::{Content, Details, Piece, stop_reason, tool_id};

#[derive(Deserialize)]
struct Chunk<'a> {
    id: Option<String>,
    model: Option<String>,
    created: Option<serde_json::Number>,
    #[serde(borrow, default)]
    choices: Option<Vec<Entry<'a>>>,
}

#[derive(Deserialize)]
struct Entry<'a> {
    index: Option<u32>,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    content: Option<Content>,
    refusal: Option<Text>,
    reasoning_content: Option<Text>,
    reasoning: Option<Text>,
    reasoning_details: Option<Details>,
    #[serde(borrow)]
    tool_calls: Option<Vec<Call<'a>>>,
}

#[derive(Deserialize)]
struct Call<'a> {
    index: Option<u64>,
    id: Option<String>,
    #[serde(borrow)]
    function: Option<Function<'a>>,
}

#[derive(Deserialize)]
struct Function<'a> {
    name: Option<String>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

/// Makes events of one stream's chunks.
#[derive(Debug, Default)]
pub(super) struct Events {
    id: String,
    started: bool,
    stopped: Vec<u32>,
    tools: Vec<Tool>,
}

/// A tool call under way.
#[derive(Debug)]
struct Tool {
    choice: u32,
    /// Its number in our events.
    number: u32,
    /// Its number on the wire, where numbers may skip, start at 1, or be absent.
    index: Option<u64>,
    id: String,
    /// Whether its name was seen, and so its start was told.
    named: bool,
    /// Arguments that came before the name.
    early: String,
}

impl Events {
    /// The events of one chunk, appended to `out`.
    pub(super) fn read(&mut self, data: &[u8], out: &mut Vec<Event>) -> Result<(), Malformed> {
        let chunk: Chunk<'_> = serde_json::from_slice(data)
            .map_err(|_| Malformed::shape("an event of the wrong shape"))?;
        let choices = chunk.choices.unwrap_or_default();
        if !self.started && !choices.is_empty() {
            self.started = true;
            self.id = chunk.id.unwrap_or_default();
            out.push(Event::Start {
                id: self.id.clone(),
                model: chunk.model.unwrap_or_default(),
                created: chunk.created.and_then(|created| created.as_u64()),
            });
        }
        for entry in choices {
            let choice = entry.index.unwrap_or(0);
            if let Some(delta) = entry.delta {
                self.delta(choice, delta, out);
            }
            let reason = entry.finish_reason.filter(|reason| !reason.is_empty());
            if let Some(reason) = reason
                && !self.stopped.contains(&choice)
            {
                self.stopped.push(choice);
                out.push(Event::Stop {
                    choice,
                    reason: stop_reason(reason),
                    stop_sequence: None,
                });
            }
        }
        Ok(())
    }

    fn delta(&mut self, choice: u32, delta: Delta<'_>, out: &mut Vec<Event>) {
        let open = delta.reasoning.or(delta.reasoning_content);
        reasoning(choice, open, delta.reasoning_details, out);
        match delta.content {
            Some(Content::Text(text)) => words(choice, text, out),
            Some(Content::Pieces(pieces)) => {
                for piece in pieces {
                    match piece {
                        Piece::Text { text } => words(choice, text, out),
                        Piece::Thinking { thinking } => {
                            for text in thinking.into_iter().filter_map(|thought| thought.text) {
                                thought(choice, text, out);
                            }
                        }
                        Piece::Other => {}
                    }
                }
            }
            None => {}
        }
        if let Some(text) = delta.refusal.filter(|text| !text.is_empty()) {
            out.push(Event::Refusal { choice, text });
        }
        for call in delta.tool_calls.into_iter().flatten() {
            self.call(choice, call, out);
        }
    }

    fn call(&mut self, choice: u32, call: Call<'_>, out: &mut Vec<Event>) {
        let id = call.id.filter(|id| !id.is_empty());
        let (name, arguments) = call
            .function
            .map_or((None, None), |function| (function.name, function.arguments));
        let arguments = arguments
            .filter(|value| value.get() != "null")
            .map(|value| as_string(value).unwrap_or_else(|| value.get().to_owned()))
            .unwrap_or_default();
        let place = self
            .place(choice, call.index, id.as_deref())
            .unwrap_or_else(|| self.begin(choice, call.index, id));
        let tool = &mut self.tools[place];
        let number = tool.number;
        if !tool.named {
            let Some(name) = name.filter(|name| !name.is_empty()) else {
                tool.early.push_str(&arguments);
                return;
            };
            tool.named = true;
            out.push(Event::ToolStart {
                choice,
                tool: number,
                id: tool.id.clone(),
                name,
            });
        }
        let mut pending = std::mem::take(&mut tool.early);
        pending.push_str(&arguments);
        if !pending.is_empty() {
            out.push(Event::ToolArguments {
                choice,
                tool: number,
                arguments: pending.into(),
            });
        }
    }

    /// The call under way that a piece belongs to. Same number and no contradicting id, or, where
    /// numbers are missing, the same id, or the latest call.
    fn place(&self, choice: u32, index: Option<u64>, id: Option<&str>) -> Option<usize> {
        let of_choice = |tool: &Tool| tool.choice == choice;
        let same_id = |tool: &Tool| id.is_none_or(|id| tool.id == id);
        match (index, id) {
            (Some(_), _) => self
                .tools
                .iter()
                .rposition(|tool| of_choice(tool) && tool.index == index && same_id(tool)),
            (None, Some(_)) => self
                .tools
                .iter()
                .rposition(|tool| of_choice(tool) && same_id(tool)),
            (None, None) => self.tools.iter().rposition(of_choice),
        }
    }

    fn begin(&mut self, choice: u32, index: Option<u64>, id: Option<String>) -> usize {
        let before = self
            .tools
            .iter()
            .filter(|tool| tool.choice == choice)
            .count();
        let number = u32::try_from(before).unwrap_or(u32::MAX);
        self.tools.push(Tool {
            choice,
            number,
            index,
            id: id.unwrap_or_else(|| tool_id(&self.id, choice, number)),
            named: false,
            early: String::new(),
        });
        self.tools.len() - 1
    }
}

/// Reasoning, with its signatures where there are any, else in the open.
fn reasoning(choice: u32, open: Option<Text>, details: Option<Details>, out: &mut Vec<Event>) {
    let before = out.len();
    for detail in details.into_iter().flatten() {
        match detail.kind.as_deref() {
            Some("reasoning.text") => {
                if let Some(text) = detail.text {
                    thought(choice, text, out);
                }
                if let Some(signature) = detail.signature.filter(|text| !text.is_empty()) {
                    out.push(Event::ReasoningSignature { choice, signature });
                }
            }
            Some("reasoning.encrypted") => {
                if let Some(data) = detail.data.filter(|data| !data.is_empty()) {
                    out.push(Event::RedactedReasoning { choice, data });
                }
            }
            _ => {}
        }
    }
    if out.len() == before
        && let Some(text) = open
    {
        thought(choice, text, out);
    }
}

fn thought(choice: u32, text: Text, out: &mut Vec<Event>) {
    if !text.is_empty() {
        out.push(Event::Reasoning { choice, text });
    }
}

fn words(choice: u32, text: Text, out: &mut Vec<Event>) {
    if !text.is_empty() {
        out.push(Event::Text { choice, text });
    }
}

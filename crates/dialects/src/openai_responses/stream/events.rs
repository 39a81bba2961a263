//! From wire events to neutral ones.

use std::borrow::Cow;

use backstop_chat::{Event, Text, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::answer::Malformed;
use crate::openai_responses::answer::seconds;
use crate::openai_responses::item::{self, Call, Item, PARAGRAPH, Piece};

#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    output_index: Option<u64>,
    content_index: Option<u64>,
    summary_index: Option<u64>,
    // Events of provider-side tools may use these names for anything.
    #[serde(borrow)]
    delta: Option<&'a RawValue>,
    text: Option<&'a RawValue>,
    refusal: Option<&'a RawValue>,
    arguments: Option<&'a RawValue>,
    part: Option<&'a RawValue>,
    item: Option<&'a RawValue>,
    response: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Begun {
    id: Option<String>,
    model: Option<String>,
    created_at: Option<serde_json::Number>,
}

#[derive(Deserialize)]
struct Ended<'a> {
    status: Option<String>,
    incomplete_details: Option<Incomplete>,
    #[serde(borrow, default)]
    output: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
struct Incomplete {
    reason: Option<String>,
}

/// Makes neutral events of one stream's.
#[derive(Debug, Default)]
pub(super) struct Events {
    started: bool,
    /// The pieces of messages that were told, by item and place in it.
    said: Vec<(u64, u64)>,
    thoughts: Vec<Thought>,
    calls: Vec<Tool>,
    /// The item whose reasoning was the last thing told.
    thinking: Option<u64>,
    stopped: bool,
}

/// An item of reasoning under way.
#[derive(Debug)]
struct Thought {
    item: u64,
    /// Whether it is told by its summary, and not as it was thought. Never both.
    summary: bool,
    part: u64,
}

/// A call under way.
#[derive(Debug)]
struct Tool {
    item: u64,
    /// The call's number in our events.
    number: u32,
    said: bool,
}

const SHAPE: Malformed = Malformed::shape("an event of the wrong shape");

impl Events {
    /// The events of one wire event, appended to `out`; `usage` is what it reports.
    pub(super) fn read(
        &mut self,
        data: &[u8],
        usage: Option<Usage>,
        out: &mut Vec<Event>,
    ) -> Result<(), Malformed> {
        let wire: Wire<'_> = serde_json::from_slice(data).map_err(|_| SHAPE)?;
        let index = wire.output_index.unwrap_or(0);
        let place = (index, wire.content_index.unwrap_or(0));
        match &*wire.kind {
            "response.created" | "response.queued" | "response.in_progress" => {
                self.start(wire.response, out)?;
            }
            "response.output_text.delta" => self.text(place, words(wire.delta)?, out),
            "response.refusal.delta" => self.refusal(place, words(wire.delta)?, out),
            "response.output_text.done" if !self.said.contains(&place) => {
                self.text(place, words(wire.text)?, out);
            }
            "response.refusal.done" if !self.said.contains(&place) => {
                self.refusal(place, words(wire.refusal)?, out);
            }
            "response.content_part.added" | "response.content_part.done" => {
                self.part(place, wire.part, out)?;
            }
            "response.reasoning_text.delta" | "response.reasoning.delta" => {
                self.thought(index, false, place.1, words(wire.delta)?, out);
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_summary.delta" => {
                let part = wire.summary_index.unwrap_or(0);
                self.thought(index, true, part, words(wire.delta)?, out);
            }
            "response.function_call_arguments.delta" => {
                self.arguments(index, words(wire.delta)?, out);
            }
            "response.function_call_arguments.done" => {
                let told = self
                    .calls
                    .iter()
                    .any(|call| call.item == index && call.said);
                if !told {
                    self.arguments(index, words(wire.arguments)?, out);
                }
            }
            "response.output_item.added" => {
                if let Item::Call(call) = item::read(wire.item.ok_or(SHAPE)?)? {
                    self.call(index, call, out);
                }
            }
            "response.output_item.done" => self.item(index, wire.item.ok_or(SHAPE)?, out)?,
            "response.completed" | "response.incomplete" => {
                self.end(wire.response.ok_or(SHAPE)?, usage, out)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether the end was told.
    pub(super) const fn is_over(&self) -> bool {
        self.stopped
    }

    fn start(
        &mut self,
        response: Option<&RawValue>,
        out: &mut Vec<Event>,
    ) -> Result<(), Malformed> {
        let Some(response) = response.filter(|_| !self.started) else {
            return Ok(());
        };
        self.started = true;
        let begun: Begun = serde_json::from_str(response.get()).map_err(|_| SHAPE)?;
        out.push(Event::Start {
            id: begun.id.unwrap_or_default(),
            model: begun.model.unwrap_or_default(),
            created: begun.created_at.as_ref().and_then(seconds),
        });
        Ok(())
    }

    fn text(&mut self, place: (u64, u64), text: Option<Text>, out: &mut Vec<Event>) {
        if let Some(text) = text {
            self.tell(place);
            out.push(Event::Text { choice: 0, text });
        }
    }

    fn refusal(&mut self, place: (u64, u64), text: Option<Text>, out: &mut Vec<Event>) {
        if let Some(text) = text {
            self.tell(place);
            out.push(Event::Refusal { choice: 0, text });
        }
    }

    fn tell(&mut self, place: (u64, u64)) {
        self.thinking = None;
        if self.said.last() != Some(&place) && !self.said.contains(&place) {
            self.said.push(place);
        }
    }

    /// A piece that came whole, unless it was told before.
    fn part(
        &mut self,
        place: (u64, u64),
        part: Option<&RawValue>,
        out: &mut Vec<Event>,
    ) -> Result<(), Malformed> {
        let Some(part) = part.filter(|_| !self.said.contains(&place)) else {
            return Ok(());
        };
        // Pieces of reasoning have deltas of their own, and their item says all of it again.
        let of_message = part.get().contains("output_text") || part.get().contains("refusal");
        if of_message {
            let piece: Piece<'_> = serde_json::from_str(part.get()).map_err(|_| SHAPE)?;
            self.piece(place, piece, out);
        }
        Ok(())
    }

    fn piece(&mut self, place: (u64, u64), piece: Piece<'_>, out: &mut Vec<Event>) {
        let some = |text: &Text| !text.is_empty();
        self.refusal(place, piece.refusal.filter(some), out);
        self.text(place, piece.text.filter(some), out);
    }

    fn thought(
        &mut self,
        item: u64,
        summary: bool,
        part: u64,
        text: Option<Text>,
        out: &mut Vec<Event>,
    ) {
        let Some(mut text) = text else {
            return;
        };
        match self.thoughts.iter_mut().find(|known| known.item == item) {
            Some(known) if known.summary != summary => return,
            Some(known) => {
                if std::mem::replace(&mut known.part, part) != part {
                    let mut apart = Text::from(PARAGRAPH);
                    apart.push_str(&text);
                    text = apart;
                }
            }
            None => self.thoughts.push(Thought {
                item,
                summary,
                part,
            }),
        }
        self.thinking = Some(item);
        out.push(Event::Reasoning { choice: 0, text });
    }

    fn call(&mut self, item: u64, call: Call, out: &mut Vec<Event>) {
        self.thinking = None;
        let number = u32::try_from(self.calls.len()).unwrap_or(u32::MAX);
        self.calls.push(Tool {
            item,
            number,
            said: false,
        });
        out.push(Event::ToolStart {
            choice: 0,
            tool: number,
            id: call.id,
            name: call.name,
        });
        let some = Some(call.arguments).filter(|text| !text.is_empty());
        self.arguments(item, some, out);
    }

    fn arguments(&mut self, item: u64, arguments: Option<Text>, out: &mut Vec<Event>) {
        let call = self.calls.iter_mut().rev().find(|call| call.item == item);
        if let Some(call) = call
            && let Some(arguments) = arguments
        {
            call.said = true;
            self.thinking = None;
            out.push(Event::ToolArguments {
                choice: 0,
                tool: call.number,
                arguments,
            });
        }
    }

    /// An item that is complete: what was not told of it yet.
    fn item(&mut self, index: u64, item: &RawValue, out: &mut Vec<Event>) -> Result<(), Malformed> {
        match item::read(item)? {
            Item::Message(pieces) => {
                if !self.said.iter().any(|(of, _)| *of == index) {
                    for (place, piece) in (0..).zip(pieces) {
                        self.piece((index, place), piece, out);
                    }
                }
            }
            Item::Call(call) => match self.calls.iter().rfind(|known| known.item == index) {
                None => {
                    self.call(index, call, out);
                    self.complete(index, None, out);
                }
                Some(_) => self.complete(index, Some(call.arguments), out),
            },
            Item::Reasoning { text, seal } => self.reasoning(index, text, seal, out),
            Item::Other(_) => {}
        }
        Ok(())
    }

    /// A call of which no arguments were told: those of its item, and where it has none either, an
    /// empty object.
    fn complete(&mut self, index: u64, arguments: Option<Text>, out: &mut Vec<Event>) {
        let told = self
            .calls
            .iter()
            .any(|call| call.item == index && call.said);
        if !told {
            let arguments = arguments.filter(|text| !text.is_empty());
            self.arguments(index, Some(arguments.unwrap_or_else(|| "{}".into())), out);
        }
    }

    fn reasoning(&mut self, index: u64, text: Text, seal: Option<Text>, out: &mut Vec<Event>) {
        let choice = 0;
        let known = self.thoughts.iter().any(|thought| thought.item == index);
        if !known && !text.is_empty() {
            self.thought(index, true, 0, Some(text), out);
        }
        match seal {
            Some(signature) if self.thinking == Some(index) => {
                out.push(Event::ReasoningSignature { choice, signature });
            }
            Some(data) if !known => out.push(Event::RedactedReasoning { choice, data }),
            // It comes too late to be put behind its text.
            _ => {}
        }
        self.thinking = None;
    }

    fn end(
        &mut self,
        response: &RawValue,
        usage: Option<Usage>,
        out: &mut Vec<Event>,
    ) -> Result<(), Malformed> {
        let ended: Ended<'_> = serde_json::from_str(response.get()).map_err(|_| SHAPE)?;
        self.start(Some(response), out)?;
        let nothing = self.said.is_empty() && self.thoughts.is_empty() && self.calls.is_empty();
        if nothing {
            // Some servers tell all of it at the end.
            for (index, item) in (0..).zip(ended.output.unwrap_or_default()) {
                if !matches!(item::read(item)?, Item::Reasoning { ref text, .. } if text.is_empty())
                {
                    self.item(index, item, out)?;
                }
            }
        }
        if !std::mem::replace(&mut self.stopped, true) {
            let status = ended.status.as_deref().unwrap_or("completed");
            let reason = ended.incomplete_details.and_then(|details| details.reason);
            out.push(Event::Stop {
                choice: 0,
                reason: item::stop_reason(status, reason, !self.calls.is_empty()),
                stop_sequence: None,
            });
            out.extend(usage.map(Event::Usage));
            out.push(Event::End);
        }
        Ok(())
    }
}

/// The string a member holds; `None` when absent, null or empty.
fn words(value: Option<&RawValue>) -> Result<Option<Text>, Malformed> {
    let Some(value) = value else {
        return Ok(None);
    };
    let text: Option<Text> = serde_json::from_str(value.get()).map_err(|_| SHAPE)?;
    Ok(text.filter(|text| !text.is_empty()))
}

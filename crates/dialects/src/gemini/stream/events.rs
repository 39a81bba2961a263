//! From wire events to neutral ones.

use backstop_chat::{Event, StopReason};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::answer::{Finish, finish, or_hash};
use super::super::part::{Call, Piece};
use super::super::signature::made_up;
use super::partial::Partial;
use crate::answer::Malformed;

const SHAPE: Malformed = Malformed::shape("an event of the wrong shape");

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    #[serde(borrow, default)]
    candidates: Option<Vec<Candidate<'a>>>,
    model_version: Option<String>,
    response_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    #[serde(borrow)]
    content: Option<Content<'a>>,
    finish_reason: Option<String>,
    index: Option<u32>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow)]
    parts: Option<Vec<&'a RawValue>>,
}

/// Makes neutral events of one stream's.
#[derive(Debug, Default)]
pub(super) struct Events {
    /// What names the answer in ids that we make up; empty before its first event.
    id: String,
    /// Calls so far, by choice.
    tools: Vec<(u32, u32)>,
    stopped: Vec<u32>,
    /// Calls whose arguments come in steps.
    open: Vec<Open>,
}

#[derive(Debug)]
struct Open {
    choice: u32,
    tool: u32,
    arguments: Partial,
}

impl Events {
    /// The events of one wire event, appended to `out`; `blocked`: it says that the prompt was
    /// refused.
    pub(super) fn read(
        &mut self,
        data: &[u8],
        blocked: bool,
        out: &mut Vec<Event>,
    ) -> Result<(), Malformed> {
        let body: Body<'_> = serde_json::from_slice(data).map_err(|_| SHAPE)?;
        let candidates = body.candidates.unwrap_or_default();
        if self.id.is_empty() && (blocked || !candidates.is_empty()) {
            let id = body.response_id.unwrap_or_default();
            self.id = or_hash(&id, data);
            out.push(Event::Start {
                id,
                model: body.model_version.unwrap_or_default(),
                created: None,
            });
        }
        if blocked && candidates.is_empty() {
            self.stop(0, StopReason::ContentFilter, out);
        }
        for candidate in candidates {
            let choice = candidate.index.unwrap_or(0);
            let parts = candidate.content.and_then(|content| content.parts);
            for value in parts.unwrap_or_default() {
                let piece = serde_json::from_str(value.get()).map_err(|_| SHAPE)?;
                self.piece(choice, piece, out)?;
            }
            if let Finish::Ended(reason) = finish(candidate.finish_reason.as_deref()) {
                self.stop(choice, reason, out);
            }
        }
        Ok(())
    }

    fn piece(
        &mut self,
        choice: u32,
        piece: Piece<'_>,
        out: &mut Vec<Event>,
    ) -> Result<(), Malformed> {
        if let Some(call) = piece.function_call {
            return self.call(choice, call, piece.thought_signature.as_deref(), out);
        }
        let thought = piece.thought == Some(true);
        if let Some(text) = piece.text.filter(|text| !text.is_empty()) {
            out.push(if thought {
                Event::Reasoning { choice, text }
            } else {
                Event::Text { choice, text }
            });
        }
        if thought && let Some(signature) = piece.thought_signature {
            let signature = signature.into();
            out.push(Event::ReasoningSignature { choice, signature });
        }
        Ok(())
    }

    fn call(
        &mut self,
        choice: u32,
        mut call: Call<'_>,
        signature: Option<&str>,
        out: &mut Vec<Event>,
    ) -> Result<(), Malformed> {
        let goes_on = call.will_continue == Some(true);
        let named = call.name.take().filter(|name| !name.is_empty());
        let Some(name) = named else {
            // A further step of the call that is open, or its end.
            let place = self.open.iter().rposition(|open| open.choice == choice);
            let Some(place) = place else { return Ok(()) };
            let open = &mut self.open[place];
            for step in call.partial_args.into_iter().flatten() {
                open.arguments.step(step).ok_or(SHAPE)?;
            }
            if !goes_on {
                self.close(place, out);
            }
            return Ok(());
        };
        self.close_all(choice, out);
        let tool = self.number(choice);
        out.push(Event::ToolStart {
            choice,
            tool,
            id: call.packed_id(signature, made_up(&self.id, choice, tool)),
            name,
        });
        if !goes_on && call.partial_args.is_none() {
            out.push(Event::ToolArguments {
                choice,
                tool,
                arguments: call.arguments().into(),
            });
            return Ok(());
        }
        let mut arguments = Partial::default();
        for step in call.partial_args.into_iter().flatten() {
            arguments.step(step).ok_or(SHAPE)?;
        }
        self.open.push(Open {
            choice,
            tool,
            arguments,
        });
        if !goes_on {
            self.close(self.open.len() - 1, out);
        }
        Ok(())
    }

    /// The next call's number.
    fn number(&mut self, choice: u32) -> u32 {
        if let Some((_, count)) = self.tools.iter_mut().find(|(of, _)| *of == choice) {
            *count += 1;
            return *count - 1;
        }
        self.tools.push((choice, 1));
        0
    }

    fn close(&mut self, place: usize, out: &mut Vec<Event>) {
        let open = self.open.remove(place);
        out.push(Event::ToolArguments {
            choice: open.choice,
            tool: open.tool,
            arguments: open.arguments.into_json().into(),
        });
    }

    fn close_all(&mut self, choice: u32, out: &mut Vec<Event>) {
        while let Some(place) = self.open.iter().position(|open| open.choice == choice) {
            self.close(place, out);
        }
    }

    fn stop(&mut self, choice: u32, reason: StopReason, out: &mut Vec<Event>) {
        if self.stopped.contains(&choice) {
            return;
        }
        self.stopped.push(choice);
        self.close_all(choice, out);
        // A call ends like any other answer here.
        let called = self.tools.iter().any(|(of, _)| *of == choice);
        let reason = match reason {
            StopReason::EndTurn if called => StopReason::ToolUse,
            reason => reason,
        };
        out.push(Event::Stop {
            choice,
            reason,
            stop_sequence: None,
        });
    }
}

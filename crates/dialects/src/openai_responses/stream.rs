//! Streamed answers.
//!
//! What an event is stands in its `type` member; the `event:` line says the same and is not relied
//! upon, since OpenRouter and Bedrock leave it out. There is no end marker by the book; one that
//! comes all the same is read over.
//!
//! A failure comes in two events, in either order: `error` with the reason, and `response.failed`
//! which has it too at OpenAI and is empty at Azure. An empty one only announces the other.

mod events;
mod write;

use backstop_chat::{Event, Usage};
use backstop_stream::Meaning;

use crate::answer::{Malformed, is_hollow, says_error};
use crate::scan::{Fault, Kind, Scanner, Str};
use crate::stream::Reading;
use events::Events;
pub(crate) use write::Writer;

/// Reads the events of one stream.
#[derive(Debug)]
pub(crate) struct Reader {
    /// Present when the stream is translated.
    events: Option<Events>,
    started: bool,
    /// The id of the response, until it is asked for.
    id: Option<String>,
}

/// What was found in one event.
#[derive(Debug, Default)]
struct Found<'a> {
    kind: Option<Str<'a>>,
    /// An error stands in the event, or in the response it tells of.
    error: bool,
    /// The `type` of the item in it.
    item: Option<Str<'a>>,
    /// Whether any content came.
    said: bool,
    usage: Option<Usage>,
    /// The response's id.
    id: Option<Str<'a>>,
}

impl Reader {
    pub(crate) fn new(translate: bool) -> Self {
        Self {
            events: translate.then(Events::default),
            started: false,
            id: None,
        }
    }

    /// The id that the stream's first event gave the response; once.
    pub(crate) fn take_id(&mut self) -> Option<String> {
        self.id.take()
    }

    pub(crate) fn read(&mut self, data: &[u8]) -> Result<Reading, Malformed> {
        if data.starts_with(b"[DONE]") {
            let mut done = Reading::of(Meaning::Done);
            let untold = self.events.as_ref().is_some_and(|events| !events.is_over());
            done.events.extend(untold.then_some(Event::End));
            return Ok(done);
        }
        let found = scan(data)?;
        let meaning = self.meaning(&found)?;
        let mut reading = Reading {
            meaning,
            usage: found.usage,
            events: Vec::new(),
        };
        let says_nothing = matches!(
            meaning,
            Meaning::Error | Meaning::Failing | Meaning::Unrecognised
        );
        if let Some(events) = &mut self.events
            && !says_nothing
        {
            events.read(data, reading.usage, &mut reading.events)?;
        }
        Ok(reading)
    }

    fn meaning(&mut self, found: &Found<'_>) -> Result<Meaning, Malformed> {
        let said = if found.said {
            Meaning::Output
        } else {
            Meaning::Startup
        };
        let kind = found.kind.map(Str::decode).unwrap_or_default();
        Ok(match &*kind {
            "error" => Meaning::Error,
            _ if found.error => Meaning::Error,
            // Two answers in one stream: whatever sits in front of us retried after output.
            "response.created" if self.started => {
                return Err(Malformed::shape("a second response.created"));
            }
            "response.created" => {
                self.started = true;
                self.id = found.id.map(|id| id.decode().into_owned());
                Meaning::Startup
            }
            "response.queued" | "response.in_progress" | "keepalive" | "ping" => Meaning::Startup,
            "response.completed" | "response.incomplete" => Meaning::Terminal,
            "response.failed" => Meaning::Failing,
            "response.output_item.added" | "response.output_item.done" => match found.item {
                // A message that is yet to come, or reasoning of which nothing will be shown.
                Some(item) if item.is("message") || item.is("reasoning") => said,
                Some(_) => Meaning::Output,
                None => Meaning::Unrecognised,
            },
            "response.output_text.annotation.added" => Meaning::Output,
            tool if tool.starts_with("response.") && tool.contains("_call.") => Meaning::Output,
            piece
                if piece.starts_with("response.")
                    && [".delta", ".done", "_part.added"]
                        .iter()
                        .any(|end| piece.ends_with(end)) =>
            {
                said
            }
            _ => Meaning::Unrecognised,
        })
    }
}

fn scan(data: &[u8]) -> Result<Found<'_>, Malformed> {
    let mut s = Scanner::over(data)?;
    if s.peek()? != Kind::Object {
        s.skip()?;
        return Err(Malformed::shape("an event that is not a JSON object"));
    }
    let mut found = Found::default();
    s.object(|s, member| {
        match &*member.key.decode() {
            "type" => found.kind = s.string_or_skip()?,
            "error" => found.error |= says_error(s)?,
            "delta" | "text" | "refusal" | "arguments" => found.said |= is_said(s.skip()?),
            "part" => s.object_or_skip(|s, member| {
                let said = is_said(s.skip()?);
                found.said |= said && (member.is("text") || member.is("refusal"));
                Ok::<(), Fault>(())
            })?,
            "item" => s.object_or_skip(|s, member| {
                match &*member.key.decode() {
                    "type" => found.item = s.string_or_skip()?,
                    "content" | "summary" | "encrypted_content" => {
                        found.said |= is_said(s.skip()?);
                    }
                    _ => drop(s.skip()?),
                }
                Ok::<(), Fault>(())
            })?,
            "response" => s.object_or_skip(|s, member| {
                match &*member.key.decode() {
                    "error" => found.error |= says_error(s)?,
                    "id" => found.id = s.string_or_skip()?,
                    "usage" => found.usage = super::usage::scan(s)?,
                    _ => drop(s.skip()?),
                }
                Ok::<(), Fault>(())
            })?,
            _ => drop(s.skip()?),
        }
        Ok::<(), Fault>(())
    })?;
    s.finish()?;
    Ok(found)
}

/// Whether a value, as written, says anything.
fn is_said(written: &str) -> bool {
    !matches!(written, "null" | "\"\"") && !is_hollow(written)
}

#[cfg(test)]
mod tests;

//! Streamed answers.
//!
//! What an event is stands in the headers of its frame. Text and reasoning begin with their first
//! delta; only a call is announced. The stop reason is not the end: the counts come after it.

mod events;
mod write;

use backstop_chat::Usage;
use backstop_stream::{Frame, Meaning};

use super::answer::{Stop, stop};
use super::usage;
use crate::answer::Malformed;
use crate::scan::{Fault, Kind, Scanner};
use crate::stream::Reading;
use events::Events;
pub(crate) use write::Writer;

/// Reads the frames of one stream.
#[derive(Debug)]
pub(crate) struct Reader {
    /// Present when the stream is translated.
    events: Option<Events>,
    started: bool,
    stopped: bool,
}

/// What was found in one event.
#[derive(Debug, Default)]
struct Found {
    /// The block or delta in it is of a kind that is known here.
    known: bool,
    /// There is a block or delta in it at all.
    any: bool,
    /// It holds words, reasoning, a call.
    said: bool,
    stop: Option<Stop>,
    usage: Option<Usage>,
}

impl Reader {
    pub(crate) fn new(translate: bool) -> Self {
        Self {
            events: translate.then(Events::default),
            started: false,
            stopped: false,
        }
    }

    pub(crate) fn read(&mut self, frame: &Frame) -> Result<Reading, Malformed> {
        if !frame.is_terminated() {
            return Err(Malformed {
                truncated: true,
                ..Malformed::shape("a frame that is cut off")
            });
        }
        let kind = match frame.header(":message-type") {
            Some("exception" | "error") => return Ok(Reading::of(Meaning::Error)),
            Some("event") | None => frame.header(":event-type").unwrap_or_default(),
            Some(_) => return Ok(Reading::of(Meaning::Unrecognised)),
        };
        let found = scan(frame.data())?;
        let mut reading = Reading {
            meaning: self.meaning(kind, &found)?,
            usage: found.usage,
            events: Vec::new(),
        };
        if let Some(events) = &mut self.events
            && !matches!(reading.meaning, Meaning::Error | Meaning::Unrecognised)
        {
            events.read(kind, frame.data(), reading.usage, &mut reading.events)?;
        }
        Ok(reading)
    }

    fn meaning(&mut self, kind: &str, found: &Found) -> Result<Meaning, Malformed> {
        Ok(match kind {
            // Two answers in one stream: whatever sits in front of us retried after output.
            "messageStart" if self.started => {
                return Err(Malformed::shape("a second messageStart"));
            }
            "messageStart" => {
                self.started = true;
                Meaning::Startup
            }
            "contentBlockStart" | "contentBlockDelta" if found.said => Meaning::Output,
            "contentBlockStart" | "contentBlockDelta" if found.known || !found.any => {
                Meaning::Startup
            }
            "contentBlockStop" => Meaning::Startup,
            "messageStop" => match found.stop {
                Some(Stop::Failed) => Meaning::Error,
                Some(Stop::Ended(_)) => {
                    self.stopped = true;
                    Meaning::Terminal
                }
                None => Meaning::Startup,
            },
            "metadata" if self.stopped => Meaning::Done,
            "metadata" => Meaning::Usage,
            _ => Meaning::Unrecognised,
        })
    }
}

fn scan(data: &[u8]) -> Result<Found, Malformed> {
    let mut s = Scanner::over(data)?;
    if s.peek()? != Kind::Object {
        s.skip()?;
        return Err(Malformed::shape("an event that is not a JSON object"));
    }
    let mut found = Found::default();
    s.object(|s, member| {
        match &*member.key.decode() {
            "start" => s.object_or_skip(|s, member| {
                found.any = true;
                found.known |= member.is("toolUse");
                found.said |= member.is("toolUse");
                s.skip().map(drop)
            })?,
            "delta" => s.object_or_skip(|s, member| {
                found.any = true;
                match &*member.key.decode() {
                    "text" => {
                        found.known = true;
                        found.said |= s.string_or_skip()?.is_some_and(|text| !text.is_empty());
                        Ok(())
                    }
                    "toolUse" | "reasoningContent" => {
                        found.known = true;
                        s.object_or_skip(|s, _| {
                            found.said |= s.string_or_skip()?.is_some_and(|text| !text.is_empty());
                            Ok::<(), Fault>(())
                        })
                    }
                    "citation" => {
                        found.said = true;
                        s.skip().map(drop)
                    }
                    _ => s.skip().map(drop),
                }
            })?,
            "stopReason" => found.stop = s.string_or_skip()?.map(|word| stop(&word.decode())),
            "usage" => found.usage = usage::scan(s)?,
            _ => drop(s.skip()?),
        }
        Ok::<(), Fault>(())
    })?;
    s.finish()?;
    Ok(found)
}

#[cfg(test)]
mod tests;

//! Streamed answers.

mod events;
mod write;

use backstop_chat::{Event, Usage};
use backstop_stream::Meaning;

use super::answer::{Finish, finish};
use crate::answer::{Malformed, says_error};
use crate::scan::{Fault, Kind, Scanner};
use crate::stream::Reading;
use events::Events;
pub(crate) use write::Writer;

/// Reads the events of one stream.
#[derive(Debug)]
pub(crate) struct Reader {
    /// Present when the stream is translated.
    events: Option<Events>,
}

/// What was found in one event.
#[derive(Debug, Default)]
struct Chunk {
    kind: Option<String>,
    /// Words, a plan, a call, a citation.
    said: bool,
    failed: bool,
    usage: Option<Usage>,
}

impl Reader {
    pub(crate) fn new(translate: bool) -> Self {
        Self {
            events: translate.then(Events::default),
        }
    }

    pub(crate) fn read(&mut self, data: &[u8]) -> Result<Reading, Malformed> {
        if data.starts_with(b"[DONE]") {
            let mut done = Reading::of(Meaning::Done);
            done.events
                .extend(self.events.is_some().then_some(Event::End));
            return Ok(done);
        }
        let chunk = scan(data)?;
        let mut reading = Reading {
            meaning: meaning(&chunk),
            usage: chunk.usage,
            events: Vec::new(),
        };
        if let Some(events) = &mut self.events
            && reading.meaning != Meaning::Error
        {
            events.read(data, &mut reading.events)?;
            reading.events.extend(reading.usage.map(Event::Usage));
        }
        Ok(reading)
    }
}

fn meaning(chunk: &Chunk) -> Meaning {
    match chunk.kind.as_deref() {
        _ if chunk.failed => Meaning::Error,
        Some("message-end") => Meaning::Terminal,
        Some("tool-call-start") => Meaning::Output,
        Some(
            "message-start" | "content-start" | "content-delta" | "content-end" | "tool-plan-delta"
            | "tool-call-delta" | "tool-call-end" | "citation-start" | "citation-end",
        ) => {
            if chunk.said {
                Meaning::Output
            } else {
                Meaning::Startup
            }
        }
        _ => Meaning::Unrecognised,
    }
}

fn scan(data: &[u8]) -> Result<Chunk, Malformed> {
    let mut s = Scanner::over(data)?;
    if s.peek()? != Kind::Object {
        s.skip()?;
        return Err(Malformed::shape("an event that is not a JSON object"));
    }
    let mut chunk = Chunk::default();
    let mut words = false;
    s.object(|s, member| {
        match &*member.key.decode() {
            "type" => chunk.kind = s.string_or_skip()?.map(|kind| kind.decode().into_owned()),
            "delta" => s.object_or_skip(|s, member| {
                match &*member.key.decode() {
                    "message" => chunk.said |= says(s)?,
                    "error" => chunk.failed |= says_error(s)?,
                    "finish_reason" => {
                        let word = s.string_or_skip()?.map(|word| word.decode());
                        chunk.failed |= word.is_some_and(|word| finish(&word) == Finish::Failed);
                    }
                    "usage" => chunk.usage = super::usage::scan(s)?,
                    _ => drop(s.skip()?),
                }
                Ok::<(), Fault>(())
            })?,
            "error" => chunk.failed |= says_error(s)?,
            // An error's words, as a body tells them.
            "message" => words |= s.string_or_skip()?.is_some(),
            _ => drop(s.skip()?),
        }
        Ok::<(), Fault>(())
    })?;
    s.finish()?;
    chunk.failed |= words && chunk.kind.is_none();
    Ok(chunk)
}

/// Whether the message that comes next says anything but who speaks.
fn says(s: &mut Scanner<'_>) -> Result<bool, Fault> {
    let mut said = false;
    s.object_or_skip(|s, member| {
        match &*member.key.decode() {
            "role" => drop(s.skip()?),
            "content" | "tool_calls" | "citations" if s.peek()? == Kind::Object => {
                s.object(|s, member| {
                    let written = s.skip()?;
                    said |= !member.is("type") && written != "\"\"" && written != "null";
                    Ok::<(), Fault>(())
                })?;
            }
            _ => said |= says_error(s)?,
        }
        Ok::<(), Fault>(())
    })?;
    Ok(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_event_means_one_thing() {
        use Meaning::{Done, Error, Output, Startup, Terminal, Unrecognised};
        for (data, expected) in [
            ("[DONE]", Done),
            (
                r#"{"type":"message-start","delta":{"message":{"role":"assistant","content":[],"tool_plan":"","tool_calls":[],"citations":[]}}}"#,
                Startup,
            ),
            (
                r#"{"type":"content-start","index":0,"delta":{"message":{"content":{"type":"text","text":""}}}}"#,
                Startup,
            ),
            (
                r#"{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":""}}}}"#,
                Startup,
            ),
            (
                r#"{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"hi"}}}}"#,
                Output,
            ),
            (
                r#"{"type":"content-delta","index":0,"delta":{"message":{"content":{"thinking":"hm"}}}}"#,
                Output,
            ),
            (r#"{"type":"content-end","index":0}"#, Startup),
            (
                r#"{"type":"tool-plan-delta","delta":{"message":{"tool_plan":"I"}}}"#,
                Output,
            ),
            (
                r#"{"type":"tool-call-start","index":0,"delta":{"message":{"tool_calls":{"id":"x","function":{"name":"f","arguments":""}}}}}"#,
                Output,
            ),
            (
                r#"{"type":"citation-start","index":0,"delta":{"message":{"citations":{"start":1}}}}"#,
                Output,
            ),
            (
                r#"{"type":"message-end","delta":{"finish_reason":"COMPLETE","usage":{"tokens":{"input_tokens":3}}}}"#,
                Terminal,
            ),
            (
                r#"{"type":"message-end","delta":{"error":"internal server error","finish_reason":"ERROR"}}"#,
                Error,
            ),
            (
                r#"{"type":"message-end","delta":{"finish_reason":"TIMEOUT"}}"#,
                Error,
            ),
            (r#"{"id":"x","message":"too many requests"}"#, Error),
            (
                r#"{"type":"hologram","delta":{"message":{"x":1}}}"#,
                Unrecognised,
            ),
        ] {
            let reading = Reader::new(false).read(data.as_bytes()).expect(data);
            assert_eq!(reading.meaning, expected, "{data}");
        }
    }
}

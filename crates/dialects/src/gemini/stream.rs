//! Streamed answers: each event is a `GenerateContentResponse`, and the last one is not marked.

mod events;
mod partial;
mod write;

use backstop_chat::{Event, Usage};
use backstop_stream::Meaning;

use super::answer::{BROKEN, Finish, finish, is_blocked};
use crate::answer::{Malformed, says_error};
use crate::choices::Choices;
use crate::scan::{Fault, Kind, Member, Scanner};
use crate::stream::Reading;
use events::Events;
pub(crate) use write::Writer;

/// Reads the events of one stream.
#[derive(Debug)]
pub(crate) struct Reader {
    /// Present when the stream is translated.
    events: Option<Events>,
    choices: Choices,
}

/// What was found in one event.
#[derive(Debug, Default)]
struct Chunk {
    error: bool,
    blocked: bool,
    candidates: usize,
    finished: bool,
    broken: bool,
    output: bool,
    unknown: bool,
    /// It has a member that this dialect's events have.
    known: bool,
    usage: Option<Usage>,
}

impl Reader {
    pub(crate) fn new(translate: bool) -> Self {
        Self {
            events: translate.then(Events::default),
            choices: Choices::default(),
        }
    }

    pub(crate) fn read(&mut self, data: &[u8]) -> Result<Reading, Malformed> {
        let chunk = self.scan(data)?;
        if chunk.broken {
            return Err(BROKEN);
        }
        let mut reading = Reading {
            meaning: self.meaning(&chunk),
            usage: chunk.usage,
            events: Vec::new(),
        };
        if let Some(events) = &mut self.events
            && reading.meaning != Meaning::Error
        {
            events.read(data, chunk.blocked, &mut reading.events)?;
            reading.events.extend(reading.usage.map(Event::Usage));
        }
        Ok(reading)
    }

    /// The strongest meaning of an event.
    fn meaning(&self, chunk: &Chunk) -> Meaning {
        let finished = chunk.finished && self.choices.all_finished();
        match chunk {
            Chunk { error: true, .. } => Meaning::Error,
            Chunk {
                blocked: true,
                candidates: 0,
                ..
            } => Meaning::Terminal,
            _ if finished => Meaning::Terminal,
            _ if chunk.output || chunk.finished => Meaning::Output,
            _ if chunk.unknown || !chunk.known => Meaning::Unrecognised,
            _ => Meaning::Startup,
        }
    }

    fn scan(&mut self, data: &[u8]) -> Result<Chunk, Malformed> {
        let mut s = Scanner::over(data)?;
        if s.peek()? != Kind::Object {
            s.skip()?;
            return Err(Malformed::shape("an event that is not a JSON object"));
        }
        let mut chunk = Chunk::default();
        s.object(|s, member| {
            match &*member.key.decode() {
                "candidates" if s.peek()? == Kind::Array => {
                    chunk.known = true;
                    s.array(|s| {
                        chunk.candidates += 1;
                        self.candidate(s, &mut chunk)
                    })?;
                }
                "error" => chunk.error |= says_error(s)?,
                "usageMetadata" => {
                    chunk.known = true;
                    chunk.usage = super::usage::scan(s)?;
                }
                "promptFeedback" => {
                    chunk.known = true;
                    chunk.blocked |= is_blocked(s)?;
                }
                "modelVersion" | "responseId" | "createTime" => {
                    chunk.known = true;
                    s.skip()?;
                }
                _ => drop(s.skip()?),
            }
            Ok::<(), Fault>(())
        })?;
        s.finish()?;
        Ok(chunk)
    }

    fn candidate(&mut self, s: &mut Scanner<'_>, chunk: &mut Chunk) -> Result<(), Fault> {
        let mut index = 0;
        let mut finished = false;
        s.object_or_skip(|s, member| {
            match &*member.key.decode() {
                "index" => index = s.count_or_skip()?.unwrap_or(0),
                "content" => s.object_or_skip(|s, member| {
                    if member.is("parts") {
                        return s.array_or_skip(|s| part(s, chunk));
                    }
                    s.skip().map(drop)
                })?,
                "finishReason" => {
                    let word = s.string_or_skip()?.map(|word| word.decode());
                    let finish = finish(word.as_deref());
                    finished = finish != Finish::Open;
                    chunk.broken |= finish == Finish::Broken;
                }
                _ => drop(s.skip()?),
            }
            Ok::<(), Fault>(())
        })?;
        self.choices.note(index, finished);
        chunk.finished |= finished;
        Ok(())
    }
}

fn part(s: &mut Scanner<'_>, chunk: &mut Chunk) -> Result<(), Fault> {
    s.object_or_skip(|s, member: Member<'_>| {
        let written = s.skip()?;
        match &*member.key.decode() {
            "text" => chunk.output |= !matches!(written, "\"\"" | "null"),
            "thought" | "thoughtSignature" => {}
            "functionCall"
            | "inlineData"
            | "fileData"
            | "executableCode"
            | "codeExecutionResult" => chunk.output = true,
            _ => chunk.unknown = true,
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_event_means_one_thing() {
        use Meaning::{Error, Output, Startup, Terminal, Unrecognised};
        for (data, expected) in [
            (r#"{"usageMetadata":{"promptTokenCount":9}}"#, Startup),
            (
                r#"{"usageMetadata":{"trafficType":"ON_DEMAND"},"modelVersion":"m"}"#,
                Startup,
            ),
            (r#"{"candidates":[]}"#, Startup),
            (r#"{"candidates":[{"content":{"role":"model"}}]}"#, Startup),
            (r#"{"candidates":[{"content":{"parts":[]}}]}"#, Startup),
            (
                r#"{"candidates":[{"content":{"parts":[{"text":""}]},"index":0}]}"#,
                Startup,
            ),
            (
                r#"{"candidates":[{"content":{"parts":[{"text":"","thoughtSignature":"x"}]}}]}"#,
                Startup,
            ),
            (r#"{"promptFeedback":{"safetyRatings":[]}}"#, Startup),
            (
                r#"{"candidates":[{"content":{"parts":[{"text":"hi"}]}}]}"#,
                Output,
            ),
            (
                r#"{"candidates":[{"content":{"parts":[{"text":"hm","thought":true}]}}]}"#,
                Output,
            ),
            (
                r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f"}}]}}]}"#,
                Output,
            ),
            (
                r#"{"candidates":[{"content":{"parts":[{"inlineData":{"data":"x"}}]}}]}"#,
                Output,
            ),
            (
                r#"{"candidates":[{"content":{"parts":[{"hologram":1}]}}]}"#,
                Unrecognised,
            ),
            (r#"{"something":"else"}"#, Unrecognised),
            (
                r#"{"candidates":[{"content":{"parts":[{"text":""}]},"finishReason":"STOP"}]}"#,
                Terminal,
            ),
            (r#"{"candidates":[{"finishReason":"SAFETY"}]}"#, Terminal),
            (
                r#"{"promptFeedback":{"blockReason":"MODEL_ARMOR"}}"#,
                Terminal,
            ),
            (
                r#"{"error":{"code":503,"message":"m","status":"UNAVAILABLE"}}"#,
                Error,
            ),
        ] {
            let reading = Reader::new(false).read(data.as_bytes()).expect(data);
            assert_eq!(reading.meaning, expected, "{data}");
        }
    }

    #[test]
    fn a_turn_that_the_model_broke_off_is_no_answer() {
        for word in ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"] {
            let data = format!(r#"{{"candidates":[{{"finishReason":"{word}"}}]}}"#);
            assert_eq!(Reader::new(true).read(data.as_bytes()), Err(BROKEN));
            let inspected = crate::inspect_answer(crate::Dialect::Gemini, data.as_bytes());
            assert_eq!(inspected, Err(BROKEN));
            let read = crate::read_answer(crate::Dialect::Gemini, data.as_bytes());
            assert_eq!(read, Err(BROKEN));
        }
    }

    #[test]
    fn the_last_of_several_candidates_ends_the_answer() {
        let mut reader = Reader::new(false);
        let mut meaning = |data: &str| reader.read(data.as_bytes()).expect(data).meaning;
        let text = |n| {
            format!(r#"{{"candidates":[{{"index":{n},"content":{{"parts":[{{"text":"x"}}]}}}}]}}"#)
        };
        let stop = |n| format!(r#"{{"candidates":[{{"index":{n},"finishReason":"STOP"}}]}}"#);
        let all = [text(0), text(1), stop(0), stop(1)].map(|data| meaning(&data));
        use Meaning::{Output, Terminal};
        assert_eq!(all, [Output, Output, Output, Terminal]);
    }
}

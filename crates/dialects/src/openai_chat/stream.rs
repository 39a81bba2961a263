//! Streamed answers.

mod events;
mod write;

use backstop_chat::{Event, Usage};
use backstop_stream::Meaning;

use crate::answer::{Malformed, is_hollow, says_error};
use crate::choices::Choices;
use crate::scan::{Fault, Kind, Member, Scanner};
use crate::stream::Reading;
use events::Events;
pub(crate) use write::Writer;

/// Reads the chunks of one stream.
#[derive(Debug)]
pub(crate) struct Reader {
    /// Present when the stream is translated.
    events: Option<Events>,
    choices: Choices,
}

/// What was found in one chunk.
#[derive(Debug, Default)]
struct Chunk {
    error: bool,
    /// `None` when there is no such member.
    choices: Option<usize>,
    finished: bool,
    output: bool,
    unknown: bool,
    usage: Option<Usage>,
    /// Groq's place for usage, which newer versions say again at the top.
    own_usage: Option<Usage>,
}

impl Reader {
    pub(crate) fn new(translate: bool) -> Self {
        Self {
            events: translate.then(Events::default),
            choices: Choices::default(),
        }
    }

    pub(crate) fn read(&mut self, event: Option<&str>, data: &[u8]) -> Result<Reading, Malformed> {
        if data.starts_with(b"[DONE]") {
            let mut done = Reading::of(Meaning::Done);
            done.events
                .extend(self.events.is_some().then_some(Event::End));
            return Ok(done);
        }
        if event == Some("error") {
            return Ok(Reading::of(Meaning::Error));
        }
        let chunk = self.scan(data)?;
        let mut reading = Reading {
            meaning: self.meaning(&chunk),
            usage: chunk.usage.or(chunk.own_usage),
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

    /// The strongest meaning of a chunk.
    fn meaning(&self, chunk: &Chunk) -> Meaning {
        let finished = chunk.finished && self.choices.all_finished();
        let usage = chunk.usage.or(chunk.own_usage).is_some();
        match chunk.choices {
            _ if chunk.error => Meaning::Error,
            _ if finished => Meaning::Terminal,
            _ if chunk.output || chunk.finished => Meaning::Output,
            _ if chunk.unknown => Meaning::Unrecognised,
            // Usage beside choices is not alone: some servers count along in every chunk.
            None | Some(0) if usage => Meaning::Usage,
            None => Meaning::Unrecognised,
            Some(_) => Meaning::Startup,
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
                "choices" if s.peek()? == Kind::Array => {
                    let mut count = 0;
                    s.array(|s| {
                        count += 1;
                        self.choice(s, &mut chunk)
                    })?;
                    chunk.choices = Some(count);
                }
                "error" => chunk.error |= says_error(s)?,
                // How older vLLM and Mistral mark an error.
                "object" => chunk.error |= s.string_or_skip()?.is_some_and(|kind| kind.is("error")),
                "usage" => chunk.usage = super::usage::scan(s)?,
                "x_groq" => s.object_or_skip(|s, member| {
                    if member.is("usage") {
                        chunk.own_usage = super::usage::scan(s)?;
                    } else if member.is("error") {
                        chunk.error |= says_error(s)?;
                    } else {
                        s.skip()?;
                    }
                    Ok::<(), Fault>(())
                })?,
                _ => drop(s.skip()?),
            }
            Ok::<(), Fault>(())
        })?;
        s.finish()?;
        Ok(chunk)
    }

    fn choice(&mut self, s: &mut Scanner<'_>, chunk: &mut Chunk) -> Result<(), Fault> {
        let mut index = 0;
        let mut finished = false;
        s.object_or_skip(|s, member| {
            match &*member.key.decode() {
                "index" => index = s.count_or_skip()?.unwrap_or(0),
                "delta" => s.object_or_skip(|s, member| delta(s, member, chunk))?,
                "finish_reason" => {
                    let reason = s.string_or_skip()?.filter(|reason| !reason.is_empty());
                    finished = reason.is_some();
                    chunk.error |= reason.is_some_and(|reason| reason.is("error"));
                }
                "error" => chunk.error |= says_error(s)?,
                // A whole message where a delta belongs.
                "message" => chunk.unknown |= is_said(s.skip()?),
                _ => drop(s.skip()?),
            }
            Ok::<(), Fault>(())
        })?;
        self.choices.note(index, finished);
        chunk.finished |= finished;
        Ok(())
    }
}

fn delta(s: &mut Scanner<'_>, member: Member<'_>, chunk: &mut Chunk) -> Result<(), Fault> {
    let said = is_said(s.skip()?);
    match &*member.key.decode() {
        _ if !said => {}
        // Groq names the channel its reasoning comes through; Mistral's fixture repeats the index.
        "role" | "index" | "channel" | "obfuscation" => {}
        "content" | "refusal" | "tool_calls" | "function_call" | "audio" | "annotations" => {
            chunk.output = true;
        }
        name if name.starts_with("reasoning") => chunk.output = true,
        _ => chunk.unknown = true,
    }
    Ok(())
}

/// Whether a value, as written, says anything.
fn is_said(written: &str) -> bool {
    !matches!(written, "null" | "\"\"") && !is_hollow(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meanings(chunks: &[&str]) -> Vec<Meaning> {
        let mut reader = Reader::new(false);
        chunks
            .iter()
            .map(|data| reader.read(None, data.as_bytes()).expect(data).meaning)
            .collect()
    }

    #[test]
    fn each_chunk_means_one_thing() {
        use Meaning::{Done, Error, Output, Startup, Terminal, Unrecognised, Usage};
        for (data, expected) in [
            ("[DONE]", Done),
            (
                r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null}}]}"#,
                Startup,
            ),
            (r#"{"choices":[{"delta":{}}],"usage":null}"#, Startup),
            (
                r#"{"choices":[{"delta":{"content":null,"reasoning_content":""}}]}"#,
                Startup,
            ),
            (
                r#"{"choices":[{"delta":{"tool_calls":[ ],"annotations":[]}}]}"#,
                Startup,
            ),
            (
                r#"{"choices":[],"id":"","prompt_filter_results":[{"prompt_index":0}]}"#,
                Startup,
            ),
            (
                r#"{"choices":[{"index":0,"finish_reason":null,"content_filter_offsets":{}}],"usage":null}"#,
                Startup,
            ),
            (
                r#"{"choices":[{"delta":{"role":"assistant","content":""}}],"usage":{"prompt_tokens":9}}"#,
                Startup,
            ),
            (r#"{"choices":[{"delta":{"content":"hi"}}]}"#, Output),
            (
                r#"{"choices":[{"delta":{"content":[{"type":"thinking"}]}}]}"#,
                Output,
            ),
            (r#"{"choices":[{"delta":{"refusal":"no"}}]}"#, Output),
            (
                r#"{"choices":[{"delta":{"role":"assistant","content":null,"tool_calls":[{"index":0}]}}]}"#,
                Output,
            ),
            (
                r#"{"choices":[{"delta":{"function_call":{"name":"f"}}}]}"#,
                Output,
            ),
            (
                r#"{"choices":[{"delta":{"reasoning":"We","channel":"analysis"}}]}"#,
                Output,
            ),
            (
                r#"{"choices":[{"delta":{"reasoning_details":[{"text":"We"}]}}]}"#,
                Output,
            ),
            (r#"{"choices":[{"delta":{"audio":{"id":"a"}}}]}"#, Output),
            (r#"{"choices":[{"delta":{"hologram":"x"}}]}"#, Unrecognised),
            (r#"{"choices":[{"message":{"content":"x"}}]}"#, Unrecognised),
            (r#"{"something":"else"}"#, Unrecognised),
            (
                r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#,
                Terminal,
            ),
            (
                r#"{"choices":[{"delta":{"content":"x"},"finish_reason":"length"}],"usage":{"prompt_tokens":1}}"#,
                Terminal,
            ),
            (
                r#"{"choices":[{"delta":{},"finish_reason":"content_filter"}]}"#,
                Terminal,
            ),
            (
                r#"{"choices":[],"usage":{"prompt_tokens":26,"completion_tokens":104}}"#,
                Usage,
            ),
            (r#"{"usage":{"prompt_tokens":26}}"#, Usage),
            (r#"{"error":{"message":"TimeoutError","code":504}}"#, Error),
            (r#"{"error":"busy"}"#, Error),
            (
                r#"{"error":{"code":400},"choices":[{"delta":{"content":"x"},"finish_reason":"error"}]}"#,
                Error,
            ),
            (
                r#"{"choices":[{"delta":{},"finish_reason":"error"}]}"#,
                Error,
            ),
            (r#"{"object":"error","message":"no"}"#, Error),
            (
                r#"{"error":null,"choices":[{"delta":{"content":"x"}}]}"#,
                Output,
            ),
        ] {
            assert_eq!(meanings(&[data]), [expected], "{data}");
        }
    }

    #[test]
    fn the_last_of_several_choices_ends_the_answer() {
        use Meaning::{Output, Startup, Terminal};
        let stop =
            |n| format!(r#"{{"choices":[{{"index":{n},"delta":{{}},"finish_reason":"stop"}}]}}"#);
        assert_eq!(
            meanings(&[
                r#"{"choices":[{"index":0,"delta":{"role":"assistant"}}]}"#,
                r#"{"choices":[{"index":1,"delta":{"content":"x"}}]}"#,
                &stop(1),
                &stop(0),
            ]),
            [Startup, Output, Output, Terminal]
        );
    }

    #[test]
    fn a_named_error_event_is_one_whatever_it_holds() {
        for data in [r#"{"error":{"message":"x"}}"#, "{}", "out of order"] {
            let reading = Reader::new(false).read(Some("error"), data.as_bytes());
            assert_eq!(reading.expect("an error event").meaning, Meaning::Error);
        }
    }

    #[test]
    fn broken_data_is_malformed() {
        for (data, truncated) in [
            ("oops", false),
            ("[]", false),
            (r#"{"choices":[{"delta":{"content":"h"#, true),
            (r#"{"choices":[]} trailing"#, false),
        ] {
            let broken = Reader::new(false)
                .read(None, data.as_bytes())
                .expect_err(data);
            assert_eq!(broken.truncated, truncated, "{data}");
        }
    }

    #[test]
    fn usage_is_found_where_servers_put_it() {
        for data in [
            r#"{"choices":[],"usage":{"prompt_tokens":7}}"#,
            r#"{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":7}}"#,
            r#"{"choices":[{"delta":{},"finish_reason":"stop"}],"x_groq":{"id":"r","usage":{"prompt_tokens":7}}}"#,
        ] {
            let reading = Reader::new(false).read(None, data.as_bytes()).expect(data);
            let input = reading.usage.and_then(|usage| usage.input);
            assert_eq!(input.map(|tokens| tokens.0), Some(7), "{data}");
        }
    }
}

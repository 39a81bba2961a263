//! Streamed answers.
//!
//! What an event is stands in its `type` member; the `event:` line says the same and is not relied
//! upon, since some servers leave it out.

mod events;
mod write;

use backstop_chat::Usage;
use backstop_stream::Meaning;

use super::usage::Counts;
use crate::answer::{Malformed, says_error};
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
    counts: Counts,
}

/// What was found in one event.
#[derive(Debug, Default)]
struct Found<'a> {
    kind: Option<Str<'a>>,
    error: bool,
    /// The `type` of the block or delta in it.
    inner: Option<Str<'a>>,
    /// Whether the block or delta in it holds any content.
    said: bool,
    stop: bool,
    counts: Option<Counts>,
}

impl Reader {
    pub(crate) fn new(translate: bool) -> Self {
        Self {
            events: translate.then(Events::default),
            started: false,
            counts: Counts::default(),
        }
    }

    pub(crate) fn read(&mut self, data: &[u8]) -> Result<Reading, Malformed> {
        let found = scan(data)?;
        let meaning = self.meaning(&found)?;
        let mut reading = Reading {
            meaning,
            usage: self.usage(&found),
            events: Vec::new(),
        };
        if let Some(events) = &mut self.events
            && !matches!(meaning, Meaning::Error | Meaning::Unrecognised)
        {
            events.read(data, reading.usage, &mut reading.events)?;
        }
        Ok(reading)
    }

    fn meaning(&mut self, found: &Found<'_>) -> Result<Meaning, Malformed> {
        let kind = found.kind.map(Str::decode);
        let inner = found.inner.map(Str::decode).unwrap_or_default();
        Ok(match kind.as_deref() {
            _ if found.error => Meaning::Error,
            Some("error") => Meaning::Error,
            // Two answers in one stream: whatever sits in front of us retried after output.
            Some("message_start") if self.started => {
                return Err(Malformed::shape("a second message_start"));
            }
            Some("message_start") => {
                self.started = true;
                Meaning::Startup
            }
            Some("ping" | "content_block_stop") => Meaning::Startup,
            Some("content_block_start") => match &*inner {
                "text" | "thinking" if found.said => Meaning::Output,
                "text" | "thinking" => Meaning::Startup,
                "tool_use" | "server_tool_use" | "mcp_tool_use" | "redacted_thinking" => {
                    Meaning::Output
                }
                result if result.ends_with("_tool_result") => Meaning::Output,
                _ => Meaning::Unrecognised,
            },
            Some("content_block_delta") => match &*inner {
                "text_delta" | "thinking_delta" | "input_json_delta" | "signature_delta"
                    if !found.said =>
                {
                    Meaning::Startup
                }
                "text_delta" | "thinking_delta" | "input_json_delta" | "signature_delta"
                | "citations_delta" => Meaning::Output,
                _ => Meaning::Unrecognised,
            },
            Some("message_delta") if found.stop => Meaning::Terminal,
            Some("message_delta") => Meaning::Startup,
            Some("message_stop") => Meaning::Done,
            _ => Meaning::Unrecognised,
        })
    }

    /// The counts so far, if this event added to them. What `message_start` says of the output is
    /// where counting begins, not a count, so it is left out.
    fn usage(&mut self, found: &Found<'_>) -> Option<Usage> {
        let mut counts = found.counts?;
        if found.kind.is_some_and(|kind| kind.is("message_start")) {
            counts.output = None;
        }
        self.counts = self.counts.updated(counts);
        self.counts.usage()
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
            "usage" => found.counts = Some(Counts::scan(s)?),
            "message" => s.object_or_skip(|s, member| {
                if member.is("usage") {
                    found.counts = Some(Counts::scan(s)?);
                } else {
                    s.skip()?;
                }
                Ok::<(), Fault>(())
            })?,
            "content_block" | "delta" => s.object_or_skip(|s, member| {
                match &*member.key.decode() {
                    "type" => found.inner = s.string_or_skip()?,
                    "text" | "thinking" | "partial_json" | "signature" => {
                        found.said |= s.string_or_skip()?.is_some_and(|text| !text.is_empty());
                    }
                    "stop_reason" => found.stop = s.string_or_skip()?.is_some(),
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

#[cfg(test)]
mod tests {
    use super::*;
    use backstop_units::Tokens;

    #[test]
    fn each_event_means_one_thing() {
        use Meaning::{Done, Error, Output, Startup, Terminal, Unrecognised};
        for (data, expected) in [
            (
                r#"{"type":"message_start","message":{"id":"m","usage":{"input_tokens":1}}}"#,
                Startup,
            ),
            (r#"{"type": "ping"}"#, Startup),
            (
                r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}   }"#,
                Startup,
            ),
            (
                r#"{"type":"content_block_start","content_block":{"type":"text","text":"x"}}"#,
                Output,
            ),
            (
                r#"{"type":"content_block_start","content_block":{"type":"thinking","thinking":"","signature":""}}"#,
                Startup,
            ),
            (
                r#"{"type":"content_block_start","content_block":{"type":"redacted_thinking","data":"E"}}"#,
                Output,
            ),
            (
                r#"{"type":"content_block_start","content_block":{"type":"tool_use","id":"t","input":{}}}"#,
                Output,
            ),
            (
                r#"{"type":"content_block_start","content_block":{"type":"server_tool_use"}}"#,
                Output,
            ),
            (
                r#"{"type":"content_block_start","content_block":{"type":"tool_search_tool_result"}}"#,
                Output,
            ),
            (
                r#"{"type":"content_block_start","content_block":{"type":"hologram"}}"#,
                Unrecognised,
            ),
            (
                r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":""}}"#,
                Startup,
            ),
            (
                r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"x"}}"#,
                Output,
            ),
            (
                r#"{"delta":{"thinking":"x","type":"thinking_delta"},"type":"content_block_delta"}"#,
                Output,
            ),
            (
                r#"{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":""}}"#,
                Startup,
            ),
            (
                r#"{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"{"}}"#,
                Output,
            ),
            (
                r#"{"type":"content_block_delta","delta":{"type":"citations_delta","citation":{}}}"#,
                Output,
            ),
            (
                r#"{"type":"content_block_delta","delta":{"type":"hologram_delta"}}"#,
                Unrecognised,
            ),
            (r#"{"type":"content_block_stop","index":0      }"#, Startup),
            (
                r#"{"type":"message_delta","delta":{"stop_reason":null}}"#,
                Startup,
            ),
            (
                r#"{"type":"message_delta","delta":{"stop_reason":"refusal"},"usage":{"output_tokens":5}}"#,
                Terminal,
            ),
            (r#"{"type":"message_stop"   }"#, Done),
            (
                r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
                Error,
            ),
            (r#"{"error":{"message":"no type"}}"#, Error),
            (r#"{"type":"interlude"}"#, Unrecognised),
        ] {
            let reading = Reader::new(false).read(data.as_bytes()).expect(data);
            assert_eq!(reading.meaning, expected, "{data}");
        }
    }

    #[test]
    fn a_second_answer_in_one_stream_is_malformed() {
        let start = br#"{"type":"message_start","message":{"id":"m"}}"#;
        let mut reader = Reader::new(false);
        assert!(reader.read(start).is_ok());
        assert_eq!(
            reader.read(start).expect_err("spliced").what,
            "a second message_start"
        );
    }

    #[test]
    fn counts_are_put_together_from_both_ends() {
        let mut reader = Reader::new(false);
        let start = reader
            .read(br#"{"type":"message_start","message":{"usage":{"input_tokens":21,"cache_read_input_tokens":1733,"cache_creation_input_tokens":0,"output_tokens":7}}}"#)
            .expect("valid");
        let usage = start.usage.expect("counts");
        assert_eq!((usage.input, usage.output), (Some(Tokens(1754)), None));
        let end = reader
            .read(br#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":30,"output_tokens":13}}"#)
            .expect("valid");
        let usage = end.usage.expect("counts");
        assert_eq!(
            (usage.input, usage.output),
            (Some(Tokens(1763)), Some(Tokens(13)))
        );
        assert_eq!(usage.cache_read, Some(Tokens(1733)));
    }
}

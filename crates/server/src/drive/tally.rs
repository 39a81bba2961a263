//! Output tokens, roughly counted, for a hold that ends after so many of them.

use backstop_chat::Event;
use backstop_dialects::{Dialect, StreamReader};
use backstop_stream::Frame;
use backstop_units::Tokens;

/// Bytes of text that make a token. What providers name as a rule of thumb for English; other
/// scripts take fewer characters and more bytes a character, which comes to about the same.
const BYTES_A_TOKEN: usize = 4;

/// Counts one attempt's output. Providers tell their own count only at the end, when a window has
/// long been over, so this is an estimate: a quarter of the bytes of text, reasoning, refusal and
/// tool arguments, rounded up for each event, so that one event is at least one token.
#[derive(Debug)]
pub(super) enum Tally {
    /// Nobody asked.
    Off,
    /// The stream is translated: its events are there.
    Translated,
    /// It is passed on as it is: the tally reads on its own, as long as output is held.
    Passed(Box<StreamReader>),
}

impl Tally {
    /// A tally of a stream in `dialect`, where one is asked for.
    pub(super) fn new(asked: bool, dialect: Dialect, translated: bool) -> Self {
        match (asked, translated) {
            (false, _) => Self::Off,
            (true, true) => Self::Translated,
            (true, false) => Self::Passed(Box::new(StreamReader::new(dialect, true))),
        }
    }

    /// The output tokens in `frame`, whose events are `translated` where they were read.
    pub(super) fn count(&mut self, frame: &Frame, translated: &[Event]) -> Tokens {
        match self {
            Self::Off => Tokens(0),
            Self::Translated => tokens_in(translated),
            // A frame that cannot be read this closely passes all the same; it counts for nothing.
            Self::Passed(reader) => reader
                .read(frame)
                .map_or(Tokens(0), |reading| tokens_in(&reading.events)),
        }
    }

    /// Nothing is held any more.
    pub(super) fn stop(&mut self) {
        *self = Self::Off;
    }
}

fn tokens_in(events: &[Event]) -> Tokens {
    let bytes: usize = events.iter().map(output_bytes).sum();
    Tokens(bytes.div_ceil(BYTES_A_TOKEN) as u64)
}

fn output_bytes(event: &Event) -> usize {
    match event {
        Event::Text { text, .. } | Event::Refusal { text, .. } | Event::Reasoning { text, .. } => {
            text.len()
        }
        Event::ToolStart { name, .. } => name.len(),
        Event::ToolArguments { arguments, .. } => arguments.len(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use backstop_stream::Framer;

    use super::*;

    const DIALECTS: [(Dialect, &str); 2] = [
        (
            Dialect::OpenAiChat,
            r#"{"choices":[{"index":0,"delta":{"content":"@"},"finish_reason":null}]}"#,
        ),
        (
            Dialect::AnthropicMessages,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"@"}}"#,
        ),
    ];

    #[test]
    fn a_quarter_of_the_text_rounded_up_for_each_event() {
        for (dialect, template) in DIALECTS {
            for (text, want) in [("a", 1), ("four", 1), ("fives", 2), ("ａｂｃｄ", 3)] {
                let mut framer = Framer::default();
                let frames = [
                    r#"data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#.to_owned(),
                    format!("data: {}", template.replace('@', text)),
                ];
                let skip = usize::from(dialect == Dialect::OpenAiChat);
                let wire = frames[skip..].join("\n\n") + "\n\n";
                framer.push(wire.into_bytes().into());
                let mut reader = StreamReader::new(dialect, true);
                let mut passed = Tally::new(true, dialect, false);
                let mut translated = Tally::new(true, dialect, true);
                let (mut by_passed, mut by_events) = (0, 0);
                while let Some(frame) = framer.next().expect("in bounds") {
                    let events = reader.read(&frame).expect("sound").events;
                    by_passed += passed.count(&frame, &[]).0;
                    by_events += translated.count(&frame, &events).0;
                }
                assert_eq!((by_passed, by_events), (want, want), "{dialect:?} {text}");
            }
        }
    }
}

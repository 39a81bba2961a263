//! What a stream's frames say, in the words every dialect shares.

#[cfg(test)]
mod tests;

use backstop_chat::{Event, Usage};
use backstop_stream::{Frame, Framing, Meaning, Sentinel};

use crate::answer::Malformed;
use crate::dialect::Dialect;
use crate::translate::Stamp;
use crate::{
    anthropic_messages, bedrock_converse, cohere_v2, gemini, openai_chat, openai_responses,
};

impl Dialect {
    /// How a stream of this dialect is cut into events; `json`: its content type says that it is
    /// JSON. `None` where a stream cannot come like that.
    #[must_use]
    pub const fn framing(self, json: bool) -> Option<Framing> {
        match (self, json) {
            (Self::BedrockConverse, false) => Some(Framing::Messages),
            (_, false) => Some(Framing::Events),
            (Self::Gemini, true) => Some(Framing::JsonArray),
            (_, true) => None,
        }
    }

    /// Whether a stream of this dialect can be whole without its end marker.
    #[must_use]
    pub const fn sentinel(self) -> Sentinel {
        match self {
            Self::OpenAiChat
            | Self::OpenAiResponses
            | Self::Gemini
            | Self::CohereV2
            | Self::BedrockConverse => Sentinel::Optional,
            Self::AnthropicMessages => Sentinel::Required,
        }
    }
}

/// What one frame says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// What it does to the stream. [`Meaning::Usage`] is given only to a frame that can be left
    /// out for a caller who did not ask for usage.
    pub meaning: Meaning,
    /// Tokens spent so far, when this frame reports any. A later reading replaces an earlier one.
    pub usage: Option<Usage>,
    /// What it says, in order. Empty unless the reader translates.
    pub events: Vec<Event>,
}

impl Reading {
    pub(crate) const fn of(meaning: Meaning) -> Self {
        Self {
            meaning,
            usage: None,
            events: Vec::new(),
        }
    }
}

/// Reads one attempt's frames. A new attempt gets a new reader.
///
/// ```
/// use backstop_dialects::{Dialect, StreamReader};
/// use backstop_stream::{Framer, Meaning};
///
/// let mut framer = Framer::default();
/// framer.push(b"data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n".as_slice().into());
/// let frame = framer.next()?.expect("a whole block");
/// let reading = StreamReader::new(Dialect::OpenAiChat, false).read(&frame)?;
/// assert_eq!(reading.meaning, Meaning::Output);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct StreamReader {
    state: State,
}

#[derive(Debug)]
enum State {
    OpenAiChat(openai_chat::stream::Reader),
    OpenAiResponses(openai_responses::stream::Reader),
    AnthropicMessages(anthropic_messages::stream::Reader),
    Gemini(gemini::stream::Reader),
    CohereV2(cohere_v2::stream::Reader),
    BedrockConverse(bedrock_converse::stream::Reader),
}

impl StreamReader {
    /// A reader of a stream in `dialect`; with `translate` it also gives the events. Without, it
    /// only scans each frame once and copies nothing.
    #[must_use]
    pub fn new(dialect: Dialect, translate: bool) -> Self {
        let state = match dialect {
            Dialect::OpenAiChat => State::OpenAiChat(openai_chat::stream::Reader::new(translate)),
            Dialect::OpenAiResponses => {
                State::OpenAiResponses(openai_responses::stream::Reader::new(translate))
            }
            Dialect::AnthropicMessages => {
                State::AnthropicMessages(anthropic_messages::stream::Reader::new(translate))
            }
            Dialect::Gemini => State::Gemini(gemini::stream::Reader::new(translate)),
            Dialect::CohereV2 => State::CohereV2(cohere_v2::stream::Reader::new(translate)),
            Dialect::BedrockConverse => {
                State::BedrockConverse(bedrock_converse::stream::Reader::new(translate))
            }
        };
        Self { state }
    }

    /// What `frame` says.
    ///
    /// # Errors
    ///
    /// The frame's data is not what the dialect allows there. In a frame without its blank line
    /// this is the stump of a cut event.
    pub fn read(&mut self, frame: &Frame) -> Result<Reading, Malformed> {
        if let (State::Gemini(reader), Some(bare)) = (&mut self.state, frame.bare_json()) {
            return reader.read(bare);
        }
        if let State::BedrockConverse(reader) = &mut self.state {
            return reader.read(frame);
        }
        if frame.is_comment() || frame.data().is_empty() {
            return Ok(Reading::of(Meaning::Comment));
        }
        match &mut self.state {
            State::OpenAiChat(reader) => reader.read(frame.event(), frame.data()),
            State::OpenAiResponses(reader) => reader.read(frame.data()),
            State::AnthropicMessages(reader) => reader.read(frame.data()),
            State::Gemini(reader) => reader.read(frame.data()),
            State::CohereV2(reader) => reader.read(frame.data()),
            State::BedrockConverse(reader) => reader.read(frame),
        }
    }
}

impl StreamReader {
    /// What the provider keeps the answer under, once it said so, and once only; `None` in a dialect
    /// that knows of no such thing.
    pub fn take_id(&mut self) -> Option<String> {
        match &mut self.state {
            State::OpenAiResponses(reader) => reader.take_id(),
            _ => None,
        }
    }
}

/// Writes a stream in the caller's dialect from neutral events. Every event it writes is safe:
/// no id, model name or text can start a field of its own.
///
/// A stream that breaks gets [`error_event`](crate::error_event) and nothing more: without
/// [`Event::End`] no end marker is written, and none before an [`Event::Stop`]. Some servers send
/// no end marker of their own: when such a stream ended whole
/// ([`Ending::Whole`](backstop_stream::Ending::Whole)), write [`Event::End`] for it. A second one
/// writes nothing.
///
/// ```
/// use backstop_chat::Event;
/// use backstop_dialects::{Dialect, Stamp, StreamWriter};
///
/// let stamp = Stamp { id: "r-1", model: "fast", created: 0 };
/// let mut writer = StreamWriter::new(Dialect::OpenAiChat, &stamp, false);
/// let mut out = Vec::new();
/// writer.write(&Event::Text { choice: 0, text: "hi".into() }, &mut out);
/// assert!(String::from_utf8(out)?.starts_with("data: {\"id\":\"r-1\","));
/// # Ok::<(), std::string::FromUtf8Error>(())
/// ```
#[derive(Debug)]
pub struct StreamWriter {
    target: Target,
}

#[derive(Debug)]
enum Target {
    OpenAiChat(openai_chat::stream::Writer),
    OpenAiResponses(openai_responses::stream::Writer),
    AnthropicMessages(anthropic_messages::stream::Writer),
    Gemini(gemini::stream::Writer),
    CohereV2(cohere_v2::stream::Writer),
    BedrockConverse(bedrock_converse::stream::Writer),
}

impl StreamWriter {
    /// A writer in `dialect`. `stamp` says what the provider's stream leaves out;
    /// `include_usage` is whether the caller asked for usage, where the dialect lets it choose.
    #[must_use]
    pub fn new(dialect: Dialect, stamp: &Stamp<'_>, include_usage: bool) -> Self {
        let target = match dialect {
            Dialect::OpenAiChat => {
                Target::OpenAiChat(openai_chat::stream::Writer::new(stamp, include_usage))
            }
            Dialect::OpenAiResponses => {
                Target::OpenAiResponses(openai_responses::stream::Writer::new(stamp))
            }
            Dialect::AnthropicMessages => {
                Target::AnthropicMessages(anthropic_messages::stream::Writer::new(stamp))
            }
            Dialect::Gemini => Target::Gemini(gemini::stream::Writer::new(stamp)),
            Dialect::CohereV2 => Target::CohereV2(cohere_v2::stream::Writer::new(stamp)),
            Dialect::BedrockConverse => {
                Target::BedrockConverse(bedrock_converse::stream::Writer::new(stamp))
            }
        };
        Self { target }
    }

    /// Appends what `event` comes to on the wire: any number of events, often none.
    pub fn write(&mut self, event: &Event, out: &mut Vec<u8>) {
        match &mut self.target {
            Target::OpenAiChat(writer) => writer.write(event, out),
            Target::OpenAiResponses(writer) => writer.write(event, out),
            Target::AnthropicMessages(writer) => writer.write(event, out),
            Target::Gemini(writer) => writer.write(event, out),
            Target::CohereV2(writer) => writer.write(event, out),
            Target::BedrockConverse(writer) => writer.write(event, out),
        }
    }
}

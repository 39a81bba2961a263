//! What a scripted provider does: the keys it knows, its steps in order, and what an attempt gets
//! that finds no step.

mod item;
mod placeholder;
mod read;

use std::time::Duration;

use backstop_units::Secret;
use serde_json::Value;

pub use self::item::{Damage, Frame, Item};
pub(crate) use self::placeholder::Fill;
use crate::Error;
use crate::door::Door;
use crate::fault::Fault;

/// How many attempts a simulator remembers unless told otherwise. Each keeps its request body.
const RETAIN: usize = 10_000;

/// The whole behaviour of one simulated provider.
///
/// ```
/// use backstop_faultsim::{End, Fault, Script, Step};
///
/// let script = Script::new()
///     .key("old", "sk-old")
///     .step(Step::fault(Fault::InvalidKey).key("old"))
///     .step(Step::stream_text(["Hello ", "world"]).then(End::Cut));
/// assert_eq!(script.steps().len(), 2);
/// ```
#[derive(Debug, Clone)]
pub struct Script {
    pub(crate) keys: Vec<(String, Secret)>,
    pub(crate) steps: Vec<Step>,
    pub(crate) otherwise: Otherwise,
    pub(crate) keep_alive: bool,
    pub(crate) retain: usize,
    pub(crate) door: Door,
}

impl Script {
    /// A provider that must never be called: no step, and every attempt is unexpected.
    #[must_use]
    pub fn new() -> Self {
        Self {
            keys: Vec::new(),
            steps: Vec::new(),
            otherwise: Otherwise::Unexpected,
            keep_alive: true,
            retain: RETAIN,
            door: Door::Plain,
        }
    }

    /// A provider that answers everything plausibly.
    #[must_use]
    pub fn healthy() -> Self {
        Self::new().otherwise(Otherwise::Healthy)
    }

    /// Reads a script from JSON: an object with `keys`, `script`, `otherwise`, `keep_alive`, or
    /// an array of steps alone.
    ///
    /// # Errors
    /// [`Error::Script`] with line, column, place and what would be accepted.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        read::script(text)
    }

    /// Names the secret of a key. Steps and logs use the label, requests present the secret.
    #[must_use]
    pub fn key(mut self, label: impl Into<String>, secret: impl Into<String>) -> Self {
        self.keys.push((label.into(), Secret::new(secret)));
        self
    }

    /// Adds a step at the end.
    #[must_use]
    pub fn step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// Adds steps at the end.
    #[must_use]
    pub fn with_steps(mut self, steps: impl IntoIterator<Item = Step>) -> Self {
        self.steps.extend(steps);
        self
    }

    /// What an attempt gets that finds no step. Default: [`Otherwise::Unexpected`].
    #[must_use]
    pub const fn otherwise(mut self, otherwise: Otherwise) -> Self {
        self.otherwise = otherwise;
        self
    }

    /// Whether connections stay open after a whole answer, where a step does not say. Default:
    /// `true`.
    #[must_use]
    pub const fn keep_alive(mut self, keep_alive: bool) -> Self {
        self.keep_alive = keep_alive;
        self
    }

    /// How connections begin; fixed when the simulator is made. Default: [`Door::Plain`].
    #[must_use]
    pub const fn door(mut self, door: Door) -> Self {
        self.door = door;
        self
    }

    /// How many attempts to remember, the newest. Default: 10,000. Counts go on beyond it.
    #[must_use]
    pub const fn retain(mut self, attempts: usize) -> Self {
        self.retain = attempts;
        self
    }

    /// The steps, in order.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The label of a presented secret, if the script names it.
    pub(crate) fn label_of(&self, presented: &str) -> Option<&str> {
        self.keys
            .iter()
            .find(|(_, secret)| secret.is(presented))
            .map(|(label, _)| label.as_str())
    }
}

impl Default for Script {
    fn default() -> Self {
        Self::new()
    }
}

/// What an attempt gets that finds no step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Otherwise {
    /// 599, and the attempt is recorded as unexpected.
    #[default]
    Unexpected,
    /// A plausible completion.
    Healthy,
}

/// One answer, with the conditions under which it is given.
///
/// An attempt takes the first step that is not used up and whose conditions it meets.
#[derive(Debug, Clone)]
pub struct Step {
    pub(crate) key: Option<String>,
    pub(crate) when: When,
    pub(crate) on: Option<On>,
    pub(crate) repeat: Repeat,
    pub(crate) status: Status,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) content: Content,
    pub(crate) coding: Option<Coding>,
    pub(crate) delay: Duration,
    pub(crate) then: End,
    pub(crate) end_after: Option<usize>,
    pub(crate) trickle: Option<Pace>,
    pub(crate) keep_alive: Option<bool>,
    pub(crate) close_idle_after: Option<Duration>,
}

impl Step {
    fn with(content: Content) -> Self {
        Self {
            key: None,
            when: When::default(),
            on: None,
            repeat: Repeat::Times(1),
            status: Status::Usual,
            headers: Vec::new(),
            content,
            coding: None,
            delay: Duration::ZERO,
            then: End::Close,
            end_after: None,
            trickle: None,
            keep_alive: None,
            close_idle_after: None,
        }
    }

    /// A whole answer with this text, in the caller's dialect, streamed when it asks for it.
    #[must_use]
    pub fn ok_text(text: impl Into<String>) -> Self {
        Self::with(Content::Reply(Reply::text(vec![text.into()], None)))
    }

    /// A stream with these pieces of text, in the caller's dialect. Its terminal events are sent
    /// only when it ends by [`End::Close`].
    #[must_use]
    pub fn stream_text<T: Into<String>>(pieces: impl IntoIterator<Item = T>) -> Self {
        let pieces = pieces.into_iter().map(Into::into).collect();
        Self::with(Content::Reply(Reply::text(pieces, Some(true))))
    }

    /// A tool call in the caller's dialect, streamed when it asks for it.
    #[must_use]
    pub fn tool_call(name: impl Into<String>, arguments: Value) -> Self {
        Self::with(Content::Reply(Reply::ToolCall {
            name: name.into(),
            arguments,
        }))
    }

    /// A well-known failure, with the status and body of the caller's dialect.
    #[must_use]
    pub fn fault(fault: Fault) -> Self {
        Self::with(Content::Reply(Reply::Fault(fault)))
    }

    /// A stream that opens with 200, sends these pieces, then an error event in the caller's
    /// dialect. Without pieces the error is its first event.
    #[must_use]
    pub fn stream_fault<T: Into<String>>(
        pieces: impl IntoIterator<Item = T>,
        fault: Fault,
    ) -> Self {
        Self::with(Content::Reply(Reply::Text {
            pieces: pieces.into_iter().map(Into::into).collect(),
            streamed: Some(true),
            gap: Duration::ZERO,
            fault: Some(fault),
        }))
    }

    /// A status with a JSON body.
    #[must_use]
    pub fn json(status: u16, body: Value) -> Self {
        Self::with(Content::Json(body)).status(status)
    }

    /// A failure status with a JSON body; [`Step::json`] under a name that reads well.
    #[must_use]
    pub fn error(status: u16, body: Value) -> Self {
        Self::json(status, body)
    }

    /// A status with raw text, as proxies answer.
    #[must_use]
    pub fn text(status: u16, body: impl Into<String>) -> Self {
        Self::with(Content::Text(body.into())).status(status)
    }

    /// A stream of exactly these items, status 200.
    #[must_use]
    pub fn sse(items: impl IntoIterator<Item = Item>) -> Self {
        Self::with(Content::Stream(Media::Events, items.into_iter().collect()))
    }

    /// A binary event stream of these frames, status 200.
    #[must_use]
    pub fn frames(items: impl IntoIterator<Item = Frame>) -> Self {
        let items = items.into_iter().map(Item::from).collect();
        Self::with(Content::Stream(Media::Frames, items))
    }

    /// A binary event stream of exactly these items, status 200: bytes of any kind among them.
    #[must_use]
    pub fn framed(items: impl IntoIterator<Item = Item>) -> Self {
        Self::with(Content::Stream(Media::Frames, items.into_iter().collect()))
    }

    /// No response at all: the connection ends as `end` says.
    #[must_use]
    pub fn silent(end: End) -> Self {
        let mut step = Self::with(Content::Empty).then(end);
        step.status = Status::Silent;
        step
    }

    /// Only for attempts that present this key: a label of the script, or the secret itself.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Only for attempts that ask for this model.
    #[must_use]
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.when.model = Some(model.into());
        self
    }

    /// Only for the `n`-th attempt this provider sees, counted from 1.
    #[must_use]
    pub const fn nth(mut self, n: u64) -> Self {
        self.when.attempt = Some(Count {
            from: n,
            to: Some(n),
        });
        self
    }

    /// Only under these conditions. Replaces those set before by [`Step::model`] and
    /// [`Step::nth`].
    #[must_use]
    pub fn when(mut self, when: When) -> Self {
        self.when = when;
        self
    }

    /// Only on a fresh, or only on a reused connection.
    #[must_use]
    pub const fn on(mut self, on: On) -> Self {
        self.on = Some(on);
        self
    }

    /// This step `times` over.
    #[must_use]
    pub const fn repeat(mut self, times: u32) -> Self {
        self.repeat = Repeat::Times(times);
        self
    }

    /// This step for every attempt that meets its conditions; it is never left over.
    #[must_use]
    pub const fn always(mut self) -> Self {
        self.repeat = Repeat::Always;
        self
    }

    /// The status line. Default: 200, or the status that belongs to a fault.
    #[must_use]
    pub const fn status(mut self, status: u16) -> Self {
        self.status = Status::Code(status);
        self
    }

    /// Adds a response header. It replaces one the simulator would have set itself.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sends the body in this content coding, whatever was asked for. A stream is flushed after each
    /// of its items.
    #[must_use]
    pub const fn coded(mut self, coding: Coding) -> Self {
        self.coding = Some(coding);
        self
    }

    /// Waits before the response starts.
    #[must_use]
    pub const fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Waits between the pieces of a text. Other contents are left alone.
    #[must_use]
    pub fn every(mut self, wait: Duration) -> Self {
        if let Content::Reply(Reply::Text { gap, .. }) = &mut self.content {
            *gap = wait;
        }
        self
    }

    /// How the response ends. Default: [`End::Close`].
    #[must_use]
    pub const fn then(mut self, end: End) -> Self {
        self.then = end;
        self
    }

    /// Strikes the ending after this many bytes of the body, at any place inside it.
    #[must_use]
    pub const fn end_after(mut self, bytes: usize) -> Self {
        self.end_after = Some(bytes);
        self
    }

    /// Writes the response in small pieces with waits between them.
    #[must_use]
    pub const fn trickle(mut self, pace: Pace) -> Self {
        self.trickle = Some(pace);
        self
    }

    /// Whether the connection stays open after a whole answer.
    #[must_use]
    pub const fn keep_alive(mut self, keep_alive: bool) -> Self {
        self.keep_alive = Some(keep_alive);
        self
    }

    /// Closes the kept connection when no further request came within this time.
    #[must_use]
    pub const fn close_idle_after(mut self, idle: Duration) -> Self {
        self.keep_alive = Some(true);
        self.close_idle_after = Some(idle);
        self
    }
}

/// How a response ends. Connections that never come to a request are a matter of the
/// [`Door`](crate::Door).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// Properly framed.
    #[default]
    Close,
    /// The connection is closed without finishing the framing; over HTTP/2 the stream is reset.
    Cut,
    /// TCP reset; on a [`Wire`](crate::Wire) its equal.
    Reset,
    /// Nothing more, connection open until the peer closes it.
    Hang,
    /// Filler without meaning, in small pieces at the step's pace (one byte a second unless
    /// set), until the peer closes: never silent, never useful. Silent over HTTP/2.
    Trickle,
    /// HTTP/2: the connection is left with GOAWAY. Without a response it says that the request was
    /// not processed; after a part of one it cuts it. Over HTTP/1.1 the same as [`End::Cut`].
    Goaway,
    /// HTTP/2, without a response: the stream is refused, which says that it was not processed.
    /// After a part of a response, and over HTTP/1.1, the same as [`End::Cut`].
    Refuse,
}

/// The pace of a slow writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Bytes in one write, at least 1.
    pub bytes: usize,
    /// The wait before each write but the first.
    pub every: Duration,
    /// Whether the head is written so, too.
    pub head: bool,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            bytes: 1,
            every: Duration::from_secs(1),
            head: false,
        }
    }
}

/// Which connection a step is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    /// The first request of its connection.
    Fresh,
    /// A connection that has carried a request before.
    Reused,
}

/// How often a step may be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    /// This many times.
    Times(u32),
    /// Without limit.
    Always,
}

/// Further conditions of a step; all that are given must hold.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(
    deny_unknown_fields,
    default,
    expecting = "an object of conditions: model, path, stream, attempt, key_attempt, header, \
                 body_contains, after_ms, before_ms"
)]
pub struct When {
    /// The model asked for, in the body or in the path.
    pub model: Option<String>,
    /// How the path ends, without its query.
    pub path: Option<String>,
    /// Whether a stream is asked for.
    pub stream: Option<bool>,
    /// Which attempt at this provider it is.
    pub attempt: Option<Count>,
    /// Which attempt with its presented key it is.
    pub key_attempt: Option<Count>,
    /// Request headers that must be there with exactly this value.
    #[serde(deserialize_with = "read::pairs")]
    pub header: Vec<(String, String)>,
    /// Text that the raw request body contains.
    pub body_contains: Option<String>,
    /// From this long after the simulator's start, in milliseconds.
    pub after_ms: Option<u64>,
    /// Until this long after the simulator's start, in milliseconds.
    pub before_ms: Option<u64>,
}

/// A range of counts, from 1, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// The first.
    pub from: u64,
    /// The last; `None`: no end.
    pub to: Option<u64>,
}

impl Count {
    pub(crate) fn holds(self, n: u64) -> bool {
        n >= self.from && self.to.is_none_or(|to| n <= to)
    }
}

/// The status line of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// 200, or what the fault is known by.
    Usual,
    Code(u16),
    /// No response at all.
    Silent,
}

/// What a response carries.
#[derive(Debug, Clone)]
pub(crate) enum Content {
    Empty,
    Json(Value),
    Text(String),
    Stream(Media, Vec<Item>),
    Reply(Reply),
}

/// What kind of stream a body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Media {
    /// Server-sent events.
    Events,
    /// Length-prefixed binary frames.
    Frames,
}

/// A content coding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Coding {
    /// gzip (RFC 1952).
    Gzip,
    /// br (RFC 7932).
    #[serde(rename = "br")]
    Brotli,
    /// zstd (RFC 8878).
    Zstd,
}

/// An answer that takes its shape from the request's dialect.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    Text {
        pieces: Vec<String>,
        /// `None`: as the request asks.
        streamed: Option<bool>,
        gap: Duration,
        fault: Option<Fault>,
    },
    ToolCall {
        name: String,
        arguments: Value,
    },
    Fault(Fault),
}

impl Reply {
    fn text(pieces: Vec<String>, streamed: Option<bool>) -> Self {
        Self::Text {
            pieces,
            streamed,
            gap: Duration::ZERO,
            fault: None,
        }
    }
}

#[cfg(test)]
mod tests;

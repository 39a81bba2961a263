//! What the gateway must know of a request before it is sent, read in one pass over its bytes.
//!
//! No tree is built and nothing is copied but the few strings that are kept. The spans found here
//! let [`splice_request`](crate::splice_request) change exactly what must change. Duplicate
//! top-level keys are refused because two parsers may disagree on which one counts, and policy
//! and provider must see the same model.

mod needs;
mod responses;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::ops::Range;

use backstop_chat::{Encoding, Need, Needs};
use backstop_units::{ModelName, ProviderId};

use crate::dialect::Dialect;
use crate::operation::Operation;
use crate::scan::{Fault, Kind, MAX_DEPTH, Member, Scanner};
use needs::NeedsScan;

/// Longest piece of a caller's own spelling that an error message repeats, in bytes.
const MAX_ECHO: usize = 64;

/// What a request says that the gateway acts upon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope {
    /// The `model` member: a route's name or `provider/model`. Empty where it stands in the path
    /// ([`Envelope::addressed`]).
    pub model: String,
    /// The `stream` member; false when absent or null.
    pub stream: bool,
    /// The caller's explicit chain, in its order; empty when absent.
    pub fallbacks: Vec<Fallback>,
    /// Whether the caller asked for usage at the end of a stream
    /// (`stream_options.include_usage`); true for a dialect that always sends it.
    pub usage_asked: bool,
    /// What the request needs from whoever serves it.
    pub needs: Needs,
    /// Whether it may be sent twice.
    pub replay: Replay,
    /// How vectors are asked for, where they are.
    pub vectors: VectorForm,
    /// What it goes on from, by the id under which a provider keeps it: an earlier response or a
    /// conversation.
    pub goes_on_from: Option<String>,
    pub(crate) spans: Spans,
}

/// How a request asks for vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VectorForm {
    /// How many are asked for, one for each input; 0 where that was not understood.
    pub inputs: usize,
    /// Whether it is a list of requests where the dialect has another shape for a single one.
    pub batch: bool,
    /// How their numbers are to be written.
    pub encoding: Encoding,
}

/// Whether a request may be sent once more when nobody knows what became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replay {
    /// It asks for an answer and nothing else.
    Safe,
    /// The provider keeps what it answers: twice sent is twice kept, unless the caller's own
    /// idempotency key says that both are one.
    Keyed,
    /// The provider does more than answer: it works on in the background, or its tools have effects
    /// of their own.
    Unsafe,
}

impl Envelope {
    /// A request without a body, about an answer of `model` that a provider keeps.
    #[must_use]
    pub fn about_kept(model: String, stream: bool) -> Self {
        let needs = Needs::default();
        Self {
            model,
            stream,
            fallbacks: Vec::new(),
            usage_asked: true,
            needs: if stream {
                needs.with(Need::Streaming)
            } else {
                needs
            },
            replay: Replay::Safe,
            vectors: VectorForm::default(),
            goes_on_from: None,
            spans: Spans::default(),
        }
    }

    /// Whether the provider may keep its answer, to be asked about later.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        self.replay != Replay::Safe
    }

    /// The same for a dialect whose path says which model is meant, and whether the answer is
    /// streamed ([`Dialect::model_in_path`]).
    #[must_use]
    pub fn addressed(mut self, model: String, stream: bool) -> Self {
        self.model = model;
        self.stream = stream;
        if stream {
            self.needs = self.needs.with(Need::Streaming);
        }
        self
    }
}

/// One entry of `fallbacks`: `provider/model`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fallback {
    /// What stands before the first slash.
    pub provider: ProviderId,
    /// What stands after it; may hold slashes.
    pub model: ModelName,
}

/// Where things stand in the body.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Spans {
    /// The value of `model`, quotes included.
    pub(crate) model: Range<usize>,
    /// The `fallbacks` member and the one comma that goes with it.
    pub(crate) fallbacks: Option<Range<usize>>,
    pub(crate) stream_options: StreamOptions,
    /// Where the body repeats the name of a model that stands in the path, quotes included.
    pub(crate) repeated_models: Vec<Range<usize>>,
    /// Just after the last member's value.
    pub(crate) end: usize,
}

/// Where and how usage is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum StreamOptions {
    /// There is no such member.
    #[default]
    Absent,
    /// The member's value is null.
    Null(Range<usize>),
    /// An object without `include_usage`; just after its opening brace.
    Silent { inside: usize, empty: bool },
    /// An object whose `include_usage` has this value.
    Said(Range<usize>),
}

/// A request refused before anything was sent: the caller's fault, status 400.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct BadRequest {
    /// Stable, for programs: `invalid_json`, `nesting_too_deep`, `duplicate_key`, `not_an_object`,
    /// `missing_model`, `invalid_model`, `invalid_fallbacks`, `invalid_type`, `missing_field`.
    pub code: &'static str,
    /// The member at fault, where there is one.
    pub param: Option<String>,
    /// For people. Never repeats the conversation.
    pub message: String,
}

impl BadRequest {
    pub(crate) fn new(code: &'static str, param: &str, message: impl Into<String>) -> Self {
        Self {
            code,
            param: (!param.is_empty()).then(|| param.to_owned()),
            message: message.into(),
        }
    }

    pub(crate) fn wrong_type(param: &str, expected: &str) -> Self {
        Self::new(
            "invalid_type",
            param,
            format!("`{param}` must be {expected}"),
        )
    }
}

impl From<Fault> for BadRequest {
    fn from(fault: Fault) -> Self {
        let (code, message) = match fault {
            Fault::Syntax(at) => (
                "invalid_json",
                format!("the body is not valid JSON: unexpected byte at offset {at}"),
            ),
            Fault::Ended => (
                "invalid_json",
                "the body is not valid JSON: it ends inside a value".to_owned(),
            ),
            Fault::TooDeep => (
                "nesting_too_deep",
                format!("the body nests deeper than {MAX_DEPTH} levels"),
            ),
        };
        Self::new(code, "", message)
    }
}

/// Reads the envelope of a request in `dialect`.
///
/// # Errors
///
/// The body is not a JSON object, nests too deep, repeats a top-level key, has no usable `model`,
/// or has a `stream`, `stream_options` or `fallbacks` of the wrong form.
///
/// ```
/// use backstop_dialects::{Dialect, read_envelope};
///
/// let body = br#"{"model":"fast","stream":true,"messages":[]}"#;
/// let envelope = read_envelope(Dialect::OpenAiChat, body)?;
/// assert_eq!(envelope.model, "fast");
/// assert!(envelope.stream && !envelope.usage_asked);
/// # Ok::<(), backstop_dialects::BadRequest>(())
/// ```
pub fn read_envelope(dialect: Dialect, body: &[u8]) -> Result<Envelope, BadRequest> {
    read_envelope_for(Operation::Generate, dialect, body)
}

/// Reads the envelope of a request for any operation in `dialect`.
///
/// # Errors
///
/// As [`read_envelope`].
///
/// ```
/// use backstop_chat::{Encoding, Need};
/// use backstop_dialects::{Dialect, Operation, read_envelope_for};
///
/// let body = br#"{"model":"m","input":["a","b"],"encoding_format":"base64"}"#;
/// let envelope = read_envelope_for(Operation::Embed, Dialect::OpenAiChat, body)?;
/// assert_eq!(envelope.vectors.inputs, 2);
/// assert_eq!(envelope.vectors.encoding, Encoding::Base64);
/// assert!(envelope.needs.has(Need::Embeddings) && envelope.needs.has(Need::ManyInputs));
/// # Ok::<(), backstop_dialects::BadRequest>(())
/// ```
pub fn read_envelope_for(
    operation: Operation,
    dialect: Dialect,
    body: &[u8],
) -> Result<Envelope, BadRequest> {
    let mut scanner = Scanner::over(body)?;
    if scanner.peek()? != Kind::Object {
        scanner.skip()?;
        return Err(BadRequest::new(
            "not_an_object",
            "",
            "the body must be a JSON object",
        ));
    }
    let mut reading = EnvelopeScan {
        operation,
        dialect,
        keys: Keys::default(),
        model: None,
        stream: false,
        fallbacks: Vec::new(),
        fallbacks_first: false,
        usage_asked: !dialect.usage_is_asked_for(),
        needs: NeedsScan::of(operation),
        spans: Spans::default(),
    };
    scanner.object(|inside, member| reading.member(inside, member))?;
    scanner.finish()?;
    reading.finish()
}

struct EnvelopeScan<'a> {
    operation: Operation,
    dialect: Dialect,
    keys: Keys<'a>,
    model: Option<String>,
    stream: bool,
    fallbacks: Vec<Fallback>,
    /// `fallbacks` was the first member: its span ends where the next member begins.
    fallbacks_first: bool,
    usage_asked: bool,
    needs: NeedsScan,
    spans: Spans,
}

impl<'a> EnvelopeScan<'a> {
    fn member(&mut self, s: &mut Scanner<'a>, member: Member<'a>) -> Result<(), BadRequest> {
        self.keys.note(member)?;
        if std::mem::take(&mut self.fallbacks_first)
            && let Some(span) = &mut self.spans.fallbacks
        {
            span.end = member.at;
        }
        let generates = self.operation == Operation::Generate;
        if member.is("model") && (generates || !self.dialect.model_in_path()) {
            self.model(s)?;
        } else if member.is("stream") && generates {
            self.stream = match s.peek()? {
                Kind::Bool | Kind::Null => s.bool_or_skip()?.unwrap_or(false),
                _ => return Err(BadRequest::wrong_type("stream", "true or false")),
            };
        } else if member.is("fallbacks") {
            self.fallbacks(s)?;
            self.fallbacks_first = member.comma.is_none();
            self.spans.fallbacks = Some(member.comma.unwrap_or(member.at)..s.at());
        } else if member.is("stream_options") && generates && self.dialect.usage_is_asked_for() {
            self.stream_options(s)?;
        } else {
            self.needs.member(self.dialect, s, member)?;
        }
        self.spans.end = s.at();
        Ok(())
    }

    fn model(&mut self, s: &mut Scanner<'a>) -> Result<(), BadRequest> {
        if s.peek()? != Kind::String {
            return Err(BadRequest::new(
                "invalid_model",
                "model",
                "`model` must be a string",
            ));
        }
        let start = s.at();
        let model = s.string()?.decode();
        if model.trim().is_empty() {
            return Err(BadRequest::new(
                "invalid_model",
                "model",
                "`model` must not be empty",
            ));
        }
        self.spans.model = start..s.at();
        self.model = Some(model.into_owned());
        Ok(())
    }

    fn fallbacks(&mut self, s: &mut Scanner<'a>) -> Result<(), BadRequest> {
        match s.peek()? {
            Kind::Null => return Ok(s.skip().map(drop)?),
            Kind::Array => {}
            _ => return Err(bad_fallbacks("`fallbacks` must be an array")),
        }
        s.array(|s| {
            let place = self.fallbacks.len();
            let entry = s.string_or_skip()?.map(|entry| entry.decode());
            let parts = entry.as_deref().and_then(|entry| entry.split_once('/'));
            match parts {
                Some((provider, model))
                    if !provider.trim().is_empty() && !model.trim().is_empty() =>
                {
                    self.fallbacks.push(Fallback {
                        provider: ProviderId::new(provider),
                        model: ModelName::new(model),
                    });
                    Ok(())
                }
                _ => Err(bad_fallbacks(format!(
                    "`fallbacks[{place}]` must be a string of the form `provider/model`"
                ))),
            }
        })
    }

    fn stream_options(&mut self, s: &mut Scanner<'a>) -> Result<(), BadRequest> {
        let kind = s.peek()?;
        let start = s.at();
        match kind {
            Kind::Null => {
                s.skip()?;
                self.spans.stream_options = StreamOptions::Null(start..s.at());
                return Ok(());
            }
            Kind::Object => {}
            _ => return Err(BadRequest::wrong_type("stream_options", "an object")),
        }
        let mut options = StreamOptions::Silent {
            inside: start + 1,
            empty: true,
        };
        let mut asked = false;
        s.object(|s, member| {
            if !member.is("include_usage") {
                if let StreamOptions::Silent { empty, .. } = &mut options {
                    *empty = false;
                }
                return Ok(s.skip().map(drop)?);
            }
            if matches!(options, StreamOptions::Said(_)) {
                return Err(duplicate("stream_options.include_usage"));
            }
            if !matches!(s.peek()?, Kind::Bool | Kind::Null) {
                return Err(BadRequest::wrong_type(
                    "stream_options.include_usage",
                    "true or false",
                ));
            }
            let start = s.at();
            asked = s.bool_or_skip()?.unwrap_or(false);
            options = StreamOptions::Said(start..s.at());
            Ok(())
        })?;
        self.usage_asked = asked;
        self.spans.stream_options = options;
        Ok(())
    }

    fn finish(mut self) -> Result<Envelope, BadRequest> {
        let model = self
            .model
            .or_else(|| self.dialect.model_in_path().then(String::new))
            .ok_or_else(|| BadRequest::new("missing_model", "model", "`model` is required"))?;
        let mut spans = self.spans;
        spans.repeated_models = self.needs.repeated_models.clone();
        Ok(Envelope {
            model,
            stream: self.stream,
            fallbacks: self.fallbacks,
            usage_asked: self.usage_asked,
            replay: self.needs.replay(self.dialect),
            vectors: self.needs.vectors,
            goes_on_from: self.needs.goes_on_from.take(),
            needs: self.needs.finish(self.stream),
            spans,
        })
    }
}

/// The top-level keys seen so far. A handful is compared one by one; a body made of nothing but
/// keys must not cost the square of its length.
#[derive(Default)]
struct Keys<'a> {
    few: Vec<std::borrow::Cow<'a, str>>,
    many: HashSet<std::borrow::Cow<'a, str>>,
}

impl<'a> Keys<'a> {
    const FEW: usize = 32;

    fn note(&mut self, member: Member<'a>) -> Result<(), BadRequest> {
        let key = member.key.decode();
        if self.few.contains(&key) || self.many.contains(&key) {
            return Err(duplicate(&key));
        }
        if self.few.len() < Self::FEW {
            self.few.push(key);
        } else {
            self.many.insert(key);
        }
        Ok(())
    }
}

fn duplicate(key: &str) -> BadRequest {
    let shown: String = key.chars().take(MAX_ECHO).collect();
    BadRequest::new(
        "duplicate_key",
        &shown,
        format!("`{shown}` appears more than once"),
    )
}

fn bad_fallbacks(message: impl Into<String>) -> BadRequest {
    BadRequest::new("invalid_fallbacks", "fallbacks", message)
}

//! The few fields of an error body that say what happened.
//!
//! One pass over the bytes fills [`Facts`] and builds no tree. What is not an error field (answers,
//! echoed input, `failed_generation`, `flagged_input`) is skipped unread. A body that was cut off
//! is closed where it ends and read again; JSON inside a string is read as a body of its own.

mod read;
mod repair;

use std::borrow::Cow;

use serde::de::DeserializeSeed;

use crate::hints::Hint;
use crate::verdict::Field;
use read::{Place, Seed};

/// How much of a body is read, in bytes: 32 KiB.
///
/// Errors are small; what stands further back is an echo of the request. A longer body is read like
/// one that was cut off there. With 64 KiB the worst hostile body would take 240 us of the 250 that
/// a verdict may cost, on a machine that does nothing else; with 32 it takes 120.
pub const BODY_LIMIT: usize = 32 * 1024;

/// How deep an error may hide in strings: `metadata.raw`, or a message that is JSON.
const NESTING: u8 = 2;

/// How many JSON values, or lines of data, of one body are looked at.
const MANY: usize = 256;

/// How deep `error` objects are told apart.
const LEVELS: usize = 3;

/// What a body says about a failure.
#[derive(Default)]
pub(crate) struct Facts<'a> {
    /// The fields, by how many `error` objects they stand in; deeper is more specific.
    pub(crate) levels: [Level<'a>; LEVELS],
    /// Whether this is a provider's error body: JSON with an error field.
    pub(crate) is_error: bool,
    /// Whether a validator named the fields of the request that it refused.
    pub(crate) is_validation: bool,
    /// `google.rpc.RetryInfo`.
    pub(crate) retry_delay: Option<Hint>,
    /// The error of the provider behind this one.
    pub(crate) inner: Option<Box<Facts<'a>>>,
    /// `metadata.raw` and the like: an upstream's body as a string.
    raw: Option<Cow<'a, str>>,
}

/// One JSON value of a body, as facts.
struct Value<'a>(Facts<'a>);

impl<'a> serde::Deserialize<'a> for Value<'a> {
    fn deserialize<D: serde::Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        let mut facts = Facts::default();
        Seed::new(&mut facts, Place::Top).deserialize(deserializer)?;
        Ok(Self(facts))
    }
}

/// The error fields of one object.
#[derive(Default)]
pub(crate) struct Level<'a> {
    codes: [Option<Cow<'a, str>>; Field::COUNT],
    pub(crate) messages: Vec<Cow<'a, str>>,
    pub(crate) param: Option<Cow<'a, str>>,
    /// A status number, from `code`, `status_code` and `status`, the first of them that has one.
    numbers: [Option<u16>; 3],
}

impl<'a> Facts<'a> {
    /// Reads a body; text that is neither JSON nor HTML counts as a message.
    pub(crate) fn read(text: &'a str, cut: bool) -> Self {
        Self::read_nested(text, cut, NESTING)
    }

    fn read_nested(text: &'a str, cut: bool, nesting: u8) -> Self {
        let text = text.trim_start_matches('\u{FEFF}').trim();
        let mut facts = Self::default();
        if text.is_empty() || is_html(text) {
            return facts;
        }
        if is_event(text) {
            let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
            for data in data.take(MANY) {
                // `[DONE]` and keep-alives are no JSON; the error may stand in the next line.
                facts.read_json_or_cut(data.trim(), cut);
                if facts.is_error {
                    break;
                }
            }
        } else if !facts.read_json_or_cut(text, cut) {
            let last = text.floor_char_boundary(2 * 1024);
            facts.levels[0].messages.push(Cow::Borrowed(&text[..last]));
            return facts;
        }
        facts.open_strings(nesting);
        facts
    }

    /// Every field that holds a code, the most specific first.
    pub(crate) fn codes(&self) -> impl Iterator<Item = (Field, &str)> {
        self.by_depth().flat_map(|level| {
            Field::ORDER
                .into_iter()
                .zip(&level.codes)
                .filter_map(|(field, code)| Some((field, code.as_deref()?)))
        })
    }

    /// Every message, the most specific first.
    pub(crate) fn messages(&self) -> impl Iterator<Item = &str> {
        self.by_depth()
            .flat_map(|level| level.messages.iter().map(AsRef::as_ref))
    }

    /// The field of the request that the error names.
    pub(crate) fn param(&self) -> Option<&str> {
        self.by_depth().find_map(|level| level.param.as_deref())
    }

    /// The status number that the body itself gives.
    pub(crate) fn number(&self) -> Option<u16> {
        self.by_depth()
            .find_map(|level| level.numbers.iter().copied().find_map(|n| n))
    }

    /// The explicit hint of this body, or of the one inside it.
    pub(crate) fn hint(&self) -> Option<Hint> {
        self.retry_delay.or_else(|| self.inner.as_ref()?.hint())
    }

    /// Whether a validator refused fields of the request, here or inside.
    pub(crate) fn refuses_fields(&self) -> bool {
        self.is_validation
            || self
                .inner
                .as_ref()
                .is_some_and(|inner| inner.refuses_fields())
    }

    fn by_depth(&self) -> impl Iterator<Item = &Level<'a>> {
        let nested = self.inner.iter().flat_map(|inner| {
            let deepest = inner
                .inner
                .iter()
                .flat_map(|facts| facts.levels.iter().rev());
            deepest.chain(inner.levels.iter().rev())
        });
        nested.chain(self.levels.iter().rev())
    }

    /// Reads the JSON values in the text, one after the other, up to the first that is an error.
    /// Fields read before a fault stay; the fault says whether the text merely ended.
    fn read_json(&mut self, text: &'a str) -> Result<(), serde_json::Error> {
        let mut rest = text;
        for _ in 0..MANY {
            let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value<'a>>();
            match values.next() {
                None => return Ok(()),
                Some(Ok(Value(facts))) => {
                    let done = facts.is_error;
                    if done || !self.has_codes() {
                        *self = facts;
                    }
                    if done {
                        return Ok(());
                    }
                }
                Some(Err(fault)) if fault.is_eof() => return Err(fault),
                Some(Err(fault)) => {
                    // Read once more for what stood before the fault.
                    let mut input = serde_json::Deserializer::from_str(rest);
                    return Seed::new(self, Place::Top)
                        .deserialize(&mut input)
                        .and(Err(fault));
                }
            }
            rest = &rest[values.byte_offset()..];
        }
        Ok(())
    }

    /// As `read_json`; a text that was cut off is closed and read again. False when it is no JSON.
    fn read_json_or_cut(&mut self, text: &'a str, cut: bool) -> bool {
        let Err(fault) = self.read_json(text) else {
            return true;
        };
        let ended = text.starts_with(['{', '[']) && (fault.is_eof() || cut);
        if ended && let Some(closed) = repair::close(text) {
            let mut whole = Facts::default();
            // What can be read of it is read; a second fault changes nothing.
            let _ = whole.read_json(&closed);
            *self = whole.into_owned();
        }
        self.is_error || self.has_codes()
    }

    fn has_codes(&self) -> bool {
        self.codes().next().is_some() || self.messages().next().is_some()
    }

    /// Reads JSON that stands in strings: an upstream's body, or a message that holds one.
    fn open_strings(&mut self, nesting: u8) {
        if nesting == 0 {
            return;
        }
        if let Some(raw) = self.raw.take() {
            self.inner = Some(Box::new(match raw {
                Cow::Borrowed(raw) => Facts::read_nested(raw, false, nesting - 1),
                Cow::Owned(raw) => Facts::read_nested(&raw, false, nesting - 1).into_owned(),
            }));
            return;
        }
        let wrapped = self.messages().find_map(|message| {
            let inner = Facts::read_nested(json_in(message)?, false, nesting - 1);
            inner.is_error.then(|| inner.into_owned())
        });
        if let Some(inner) = wrapped {
            for level in &mut self.levels {
                level.messages.retain(|message| json_in(message).is_none());
            }
            self.inner = Some(Box::new(inner));
        }
    }

    /// The same facts, free of the text they were read from.
    fn into_owned(self) -> Facts<'static> {
        Facts {
            levels: self.levels.map(Level::into_owned),
            is_error: self.is_error,
            is_validation: self.is_validation,
            retry_delay: self.retry_delay,
            inner: self.inner.map(|inner| Box::new(inner.into_owned())),
            raw: self.raw.map(owned),
        }
    }
}

impl Level<'_> {
    fn into_owned(self) -> Level<'static> {
        Level {
            codes: self.codes.map(|code| code.map(owned)),
            messages: self.messages.into_iter().map(owned).collect(),
            param: self.param.map(owned),
            numbers: self.numbers,
        }
    }
}

fn owned(text: Cow<'_, str>) -> Cow<'static, str> {
    Cow::Owned(text.into_owned())
}

/// Pages begin with a tag; no provider's message does.
fn is_html(text: &str) -> bool {
    text.starts_with('<')
}

/// Whether the text is server-sent events as they came.
fn is_event(text: &str) -> bool {
    ["data:", "event:", "id:", "retry:"]
        .iter()
        .any(|field| text.starts_with(field))
        || text.starts_with(':') && text.contains("\ndata:")
}

/// The JSON object in a message, when the message is one, or is a client's wrapping of one: a short
/// opening with a status number or an exception's name (`Error code: 429 - {...}`).
fn json_in(message: &str) -> Option<&str> {
    let open = memchr::memchr(b'{', message.as_bytes())?;
    let (opening, json) = message.split_at(open);
    let opening = opening.trim();
    if !json[1..].trim_start().starts_with('"') {
        return None;
    }
    let status = |word: &str| word.len() == 3 && matches!(word.parse::<u16>(), Ok(400..=599));
    let wraps = opening.is_empty()
        || opening.len() <= 96
            && opening
                .split(|c: char| !c.is_ascii_alphanumeric())
                .any(|word| {
                    status(word)
                        || word.ends_with("Exception")
                        || word.len() > 5 && word.ends_with("Error")
                });
    wraps.then_some(json)
}

#[cfg(test)]
mod tests;

//! One walk over a JSON body that keeps error fields and skips the rest unread.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{Facts, LEVELS};
use crate::hints;
use crate::verdict::Field;

/// Where in the body the walk stands.
#[derive(Clone, Copy)]
pub(super) enum Place {
    /// The body, or an element of an array that wraps it.
    Top,
    /// An `error` object, this many deep; one more than the levels told apart is the deepest.
    Error(usize),
    /// `response` of a Responses event, `delta` of a Cohere one: only an `error` counts.
    Envelope,
    /// `details`, `errors` or `detail` of this level.
    List(usize),
    /// An element of those.
    Item(usize),
    /// `metadata`.
    Metadata(usize),
    /// `innererror`.
    InnerError(usize),
    /// A field that holds a code.
    Code(usize, Field),
    /// A field that holds a number only.
    Number(usize, usize),
    /// A field that holds a message.
    Message(usize),
    /// `param`.
    Param(usize),
    /// An upstream's body, as a string or as it is.
    Raw,
}

/// Reads the value at a place into the facts.
pub(super) struct Seed<'f, 'a> {
    facts: &'f mut Facts<'a>,
    place: Place,
}

impl<'f, 'a> Seed<'f, 'a> {
    pub(super) fn new(facts: &'f mut Facts<'a>, place: Place) -> Self {
        Self { facts, place }
    }

    fn text(self, text: Cow<'a, str>) {
        let facts = self.facts;
        match self.place {
            Place::Top => facts.levels[0].message(text),
            // An error that is a string: a message, and where it is one word also a code.
            Place::Error(depth) => {
                let level = &mut facts.levels[depth.min(LEVELS - 1)];
                if text.is_empty() {
                    return;
                }
                facts.is_error = true;
                if is_token(&text) {
                    let code = &mut level.codes[Field::Code as usize];
                    code.get_or_insert_with(|| text.clone());
                }
                level.message(text);
            }
            Place::Message(depth) | Place::List(depth) => {
                facts.is_error = true;
                facts.levels[depth].message(text);
            }
            Place::Code(depth, field) => {
                facts.is_error |= field == Field::Exception;
                facts.levels[depth].code(field, text);
            }
            Place::Param(_) if matches!(&*text, "" | "None" | "null") => {}
            Place::Param(depth) => facts.levels[depth].param = Some(text),
            Place::Raw => facts.raw = Some(text),
            _ => {}
        }
    }

    fn number(self, number: u64) {
        let (depth, slot) = match self.place {
            Place::Code(depth, Field::Status) => (depth, 2),
            Place::Code(depth, _) => (depth, 0),
            Place::Number(depth, slot) => (depth, slot),
            _ => return,
        };
        let level = &mut self.facts.levels[depth];
        match u16::try_from(number) {
            Ok(status @ 400..=599) => level.numbers[slot] = Some(status),
            _ if number < 1_000 => {}
            // A provider's own numbering, in a field of any name.
            _ => {
                let field = match self.place {
                    Place::Code(_, field) => field,
                    _ => Field::Code,
                };
                level.codes[field as usize].get_or_insert_with(|| number.to_string().into());
            }
        }
    }
}

/// How many messages of one object are kept.
const MESSAGES: usize = 8;

impl<'a> super::Level<'a> {
    fn message(&mut self, text: Cow<'a, str>) {
        if !text.is_empty() && self.messages.len() < MESSAGES {
            self.messages.push(text);
        }
    }

    fn code(&mut self, field: Field, text: Cow<'a, str>) {
        match &*text {
            "" | "None" | "null" | "error" | "Error" | "failed" | "response.failed" => {}
            word => {
                if let (3, Ok(status @ 400..=599)) = (word.len(), word.parse::<u16>()) {
                    self.numbers[if field == Field::Status { 2 } else { 0 }] = Some(status);
                } else {
                    self.codes[field as usize] = Some(text);
                }
            }
        }
    }
}

fn is_token(text: &str) -> bool {
    text.len() <= 64
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b))
}

impl<'a> DeserializeSeed<'a> for Seed<'_, 'a> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'a> Visitor<'a> for Seed<'_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'a str) -> Result<(), E> {
        self.text(Cow::Borrowed(text));
        Ok(())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.text(Cow::Owned(text.to_owned()));
        Ok(())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<(), E> {
        self.number(number);
        Ok(())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut seq: A) -> Result<(), A::Error> {
        let place = match self.place {
            Place::Top => Place::Top,
            Place::List(depth) => Place::Item(depth),
            // `"error": [{...}]` and a list of messages.
            Place::Error(depth) => Place::Error(depth),
            Place::Message(depth) => Place::Item(depth),
            _ => {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                return Ok(());
            }
        };
        while seq
            .next_element_seed(Seed::new(self.facts, place))?
            .is_some()
        {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'a>>(self, map: A) -> Result<(), A::Error> {
        match self.place {
            Place::Item(depth) => item(self.facts, depth, map),
            Place::Error(depth) => {
                self.facts.is_error = true;
                fields(self.facts, Place::Error(depth.min(LEVELS - 1)), map)
            }
            Place::Raw => {
                // An upstream's body that was not wrapped in a string.
                let mut inner = Facts::default();
                fields(&mut inner, Place::Top, map)?;
                self.facts.inner = Some(Box::new(inner));
                Ok(())
            }
            place => fields(self.facts, place, map),
        }
    }
}

/// Walks an object, sending each field that counts to its place.
fn fields<'a, A: MapAccess<'a>>(
    facts: &mut Facts<'a>,
    place: Place,
    mut map: A,
) -> Result<(), A::Error> {
    while let Some(key) = map.next_key::<Key<'a>>()? {
        match next(place, &key.0) {
            Some(Place::Error(depth)) if key.0.ends_with("Exception") => {
                // An event-stream frame: its key is the exception's name.
                let level = &mut facts.levels[depth.min(LEVELS - 1)];
                level.codes[Field::Exception as usize] = Some(key.0);
                map.next_value_seed(Seed::new(facts, Place::Error(depth)))?;
            }
            Some(next) => map.next_value_seed(Seed::new(facts, next))?,
            None => {
                map.next_value::<IgnoredAny>()?;
            }
        }
    }
    Ok(())
}

/// Where a field of an object at a place leads.
fn next(place: Place, key: &str) -> Option<Place> {
    let depth = match place {
        Place::Top => 0,
        Place::Error(depth) => depth,
        Place::Envelope => return (key == "error").then_some(Place::Error(1)),
        Place::Message(depth) => return (key == "detail").then_some(Place::List(depth)),
        Place::List(depth) => return next(Place::Error(depth.max(1)), key),
        Place::InnerError(depth) => {
            return (key == "code").then_some(Place::Code(depth, Field::InnerCode));
        }
        Place::Metadata(depth) => {
            return match key {
                "raw" => Some(Place::Raw),
                "error_type" => Some(Place::Code(depth, Field::ErrorType)),
                _ => None,
            };
        }
        _ => return None,
    };
    let inside = depth > 0;
    Some(match key {
        "error" => Place::Error(depth + 1),
        "code" | "error_code" | "errorCode" => Place::Code(depth, Field::Code),
        "type" => Place::Code(depth, Field::Type),
        "error_type" | "errorType" => Place::Code(depth, Field::ErrorType),
        "reason" if inside => Place::Code(depth, Field::Reason),
        "status" => Place::Code(depth, Field::Status),
        "__type" => Place::Code(depth, Field::Exception),
        "status_code" | "statusCode" | "http_code" => Place::Number(depth, 1),
        "message" | "Message" | "msg" | "error_message" | "errorMessage" | "error_msg"
        | "error_description" | "title" => Place::Message(depth),
        "originalMessage" => Place::Message(depth),
        "detail" => Place::List(depth),
        "param" => Place::Param(depth),
        "metadata" if inside => Place::Metadata(depth),
        "innererror" | "inner_error" => Place::InnerError(depth),
        "details" | "errors" => Place::List(depth),
        "response" | "delta" if !inside => Place::Envelope,
        "base_resp" if !inside => Place::Error(1),
        "status_msg" if inside => Place::Message(depth),
        _ if !inside && key.ends_with("Exception") => Place::Error(1),
        _ => return None,
    })
}

/// An element of a list of details: a `google.rpc` detail, a validator's finding, an error.
fn item<'a, A: MapAccess<'a>>(
    facts: &mut Facts<'a>,
    depth: usize,
    mut map: A,
) -> Result<(), A::Error> {
    let mut message = None;
    let mut delay = None;
    let mut located = false;
    while let Some(key) = map.next_key::<Key<'a>>()? {
        match &*key.0 {
            "reason" => {
                if let Scalar::Text(reason) = map.next_value()? {
                    facts.levels[depth].codes[Field::Reason as usize].get_or_insert(reason);
                }
            }
            "retryDelay" => {
                let text = match map.next_value()? {
                    Scalar::Text(text) => text,
                    Scalar::Other => Cow::Borrowed(""),
                };
                delay = Some(hints::protobuf_duration(&text));
            }
            "loc" => {
                located = true;
                map.next_value::<IgnoredAny>()?;
            }
            "msg" | "message" => {
                if let Scalar::Text(text) = map.next_value()? {
                    message = Some(text);
                }
            }
            _ => {
                map.next_value::<IgnoredAny>()?;
            }
        }
    }
    facts.retry_delay = facts.retry_delay.or(delay);
    facts.is_validation |= located;
    facts.is_error |= message.is_some();
    if let Some(message) = message {
        facts.levels[depth].message(message);
    }
    Ok(())
}

/// An object's key.
struct Key<'a>(Cow<'a, str>);

impl<'a> serde::Deserialize<'a> for Key<'a> {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        match Scalar::deserialize(deserializer)? {
            Scalar::Text(text) => Ok(Self(text)),
            Scalar::Other => Ok(Self(Cow::Borrowed(""))),
        }
    }
}

/// A string, or anything else unread.
enum Scalar<'a> {
    Text(Cow<'a, str>),
    Other,
}

impl<'a> serde::Deserialize<'a> for Scalar<'a> {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        struct Words;
        impl<'a> Visitor<'a> for Words {
            type Value = Scalar<'a>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any JSON value")
            }
            fn visit_borrowed_str<E: Error>(self, text: &'a str) -> Result<Scalar<'a>, E> {
                Ok(Scalar::Text(Cow::Borrowed(text)))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Scalar<'a>, E> {
                Ok(Scalar::Text(Cow::Owned(text.to_owned())))
            }
            fn visit_u64<E: Error>(self, _: u64) -> Result<Scalar<'a>, E> {
                Ok(Scalar::Other)
            }
            fn visit_i64<E: Error>(self, _: i64) -> Result<Scalar<'a>, E> {
                Ok(Scalar::Other)
            }
            fn visit_f64<E: Error>(self, _: f64) -> Result<Scalar<'a>, E> {
                Ok(Scalar::Other)
            }
            fn visit_bool<E: Error>(self, _: bool) -> Result<Scalar<'a>, E> {
                Ok(Scalar::Other)
            }
            fn visit_unit<E: Error>(self) -> Result<Scalar<'a>, E> {
                Ok(Scalar::Other)
            }
            fn visit_seq<A: SeqAccess<'a>>(self, mut seq: A) -> Result<Scalar<'a>, A::Error> {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Scalar::Other)
            }
            fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Scalar<'a>, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Scalar::Other)
            }
        }
        deserializer.deserialize_any(Words)
    }
}

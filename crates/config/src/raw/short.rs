//! Entries with a short spelling beside the full one.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Unexpected, Visitor};

use super::amount::{Millis, Whole};
use super::{RawChannel, RawKey, RawRoute};

/// A key: a table, or its value alone.
pub(crate) enum RawKeyEntry {
    Value(String),
    Full(Box<RawKey>),
}

/// A channel: a table, or `"provider/model"`.
#[derive(Clone)]
pub(crate) enum RawChannelEntry {
    Short(String),
    Full(RawChannel),
}

/// A route: a table; a list of channels, each a group of its own, in order; or one channel.
pub(crate) enum RawRouteEntry {
    One(String),
    InOrder(Vec<RawChannelEntry>),
    Full(RawRoute),
}

/// When a stream's first bytes go out.
#[derive(Clone, Copy)]
pub(crate) enum RawCommit {
    FirstOutput,
    Complete,
    Window(RawWindow),
}

/// How long output is held; at least one of the two.
#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawWindow {
    /// The longest time since the first output.
    pub(crate) window_ms: Option<Millis>,
    /// Until so many output tokens have come, roughly counted.
    pub(crate) window_tokens: Option<Whole>,
}

/// A schema with more than one spelling.
trait Spelled: Sized {
    /// What would be accepted.
    const ACCEPTED: &'static str;

    fn from_text<E: de::Error>(text: &str) -> Result<Self, E>;

    fn from_table<'de, A: MapAccess<'de>>(table: A) -> Result<Self, A::Error>;

    fn from_list<'de, A: SeqAccess<'de>>(_list: A) -> Result<Self, A::Error> {
        Err(de::Error::invalid_type(Unexpected::Seq, &Self::ACCEPTED))
    }
}

impl Spelled for RawKeyEntry {
    const ACCEPTED: &'static str = "a table with name and value, or the value alone";

    fn from_text<E: de::Error>(text: &str) -> Result<Self, E> {
        Ok(Self::Value(text.to_owned()))
    }

    fn from_table<'de, A: MapAccess<'de>>(table: A) -> Result<Self, A::Error> {
        RawKey::deserialize(MapAccessDeserializer::new(table))
            .map(Box::new)
            .map(Self::Full)
    }
}

impl Spelled for RawChannelEntry {
    const ACCEPTED: &'static str = "\"provider/model\", or a table with provider and model";

    fn from_text<E: de::Error>(text: &str) -> Result<Self, E> {
        Ok(Self::Short(text.to_owned()))
    }

    fn from_table<'de, A: MapAccess<'de>>(table: A) -> Result<Self, A::Error> {
        RawChannel::deserialize(MapAccessDeserializer::new(table)).map(Self::Full)
    }
}

impl Spelled for RawRouteEntry {
    const ACCEPTED: &'static str =
        "a table with groups, a list of \"provider/model\", or one of them";

    fn from_text<E: de::Error>(text: &str) -> Result<Self, E> {
        Ok(Self::One(text.to_owned()))
    }

    fn from_table<'de, A: MapAccess<'de>>(table: A) -> Result<Self, A::Error> {
        RawRoute::deserialize(MapAccessDeserializer::new(table)).map(Self::Full)
    }

    fn from_list<'de, A: SeqAccess<'de>>(list: A) -> Result<Self, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(list)).map(Self::InOrder)
    }
}

impl Spelled for RawCommit {
    const ACCEPTED: &'static str =
        "\"first_output\", \"complete\", or { window_ms = …, window_tokens = … }";

    fn from_text<E: de::Error>(text: &str) -> Result<Self, E> {
        match text {
            "first_output" => Ok(Self::FirstOutput),
            "complete" => Ok(Self::Complete),
            _ => Err(E::invalid_value(Unexpected::Str(text), &Self::ACCEPTED)),
        }
    }

    fn from_table<'de, A: MapAccess<'de>>(table: A) -> Result<Self, A::Error> {
        RawWindow::deserialize(MapAccessDeserializer::new(table)).map(Self::Window)
    }
}

struct Read<T>(PhantomData<T>);

impl<'de, T: Spelled> Visitor<'de> for Read<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::ACCEPTED)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        T::from_text(text)
    }

    fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<T, A::Error> {
        T::from_table(table)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<T, A::Error> {
        T::from_list(list)
    }
}

macro_rules! deserialize {
    ($($entry:ty),*) => {$(
        impl<'de> Deserialize<'de> for $entry {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(Read(PhantomData))
            }
        }
    )*};
}

deserialize!(RawKeyEntry, RawChannelEntry, RawRouteEntry, RawCommit);

//! A tree read by a serde schema, with the way to each mistake.

use std::fmt;

use serde::de::{
    self, DeserializeSeed, Deserializer, EnumAccess, Error as _, MapAccess, SeqAccess, Unexpected,
    VariantAccess, Visitor, value::StrDeserializer,
};
use serde::forward_to_deserialize_any;

use super::{Entry, Node, Value};
use crate::fault::Problem;
use crate::path::Step;

/// What the schema did not accept, and where, innermost step first. Values of the file are never
/// part of it: they may be keys.
#[derive(Debug)]
pub(crate) struct Misread {
    pub(crate) steps: Vec<Step>,
    pub(crate) problem: Problem,
}

impl Misread {
    fn here(problem: Problem) -> Self {
        Self {
            steps: Vec::new(),
            problem,
        }
    }

    fn under(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }
}

impl fmt::Display for Misread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.problem.fmt(f)
    }
}

impl std::error::Error for Misread {}

impl de::Error for Misread {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::here(Problem::Unusable {
            reason: message.to_string(),
        })
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::here(Problem::WrongKind {
            found: kind(&found),
            accepted: in_words(&expected.to_string()),
        })
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::here(Problem::WrongValue {
            found: number(&found),
            accepted: in_words(&expected.to_string()),
        })
    }

    fn unknown_variant(_typed: &str, accepted: &'static [&'static str]) -> Self {
        Self::here(Problem::NotOneOf {
            accepted: accepted.to_vec(),
            nearest: None,
        })
    }

    fn unknown_field(name: &str, accepted: &'static [&'static str]) -> Self {
        Self::here(Problem::unknown_field(name, accepted))
    }
}

/// What stands there, by kind alone.
fn kind(found: &Unexpected<'_>) -> &'static str {
    match found {
        Unexpected::Bool(true) => "true",
        Unexpected::Bool(false) => "false",
        Unexpected::Unsigned(_) | Unexpected::Signed(_) => "a whole number",
        Unexpected::Float(_) => "a number",
        Unexpected::Char(_) | Unexpected::Str(_) => "a string",
        Unexpected::Unit | Unexpected::Option => "null",
        Unexpected::Seq => "a list",
        Unexpected::Map => "a table",
        Unexpected::Other("a date") => "a date",
        Unexpected::Other("a number that is far too large") => "a number that is far too large",
        _ => "something else",
    }
}

/// A number of the file, which is no secret; any other value stays unsaid.
fn number(found: &Unexpected<'_>) -> Option<String> {
    match found {
        Unexpected::Unsigned(value) => Some(value.to_string()),
        Unexpected::Signed(value) => Some(value.to_string()),
        Unexpected::Float(value) => Some(value.to_string()),
        _ => None,
    }
}

/// Serde's words for what it expects, in an operator's.
fn in_words(expected: &str) -> String {
    match expected {
        "u64" | "usize" => "a whole number, 0 or more".to_owned(),
        "u32" => format!("a whole number, 0 to {}", u32::MAX),
        "f64" | "f32" => "a number".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a sequence" => "a list".to_owned(),
        "a map" => "a table".to_owned(),
        other if other.starts_with("struct ") => "a table".to_owned(),
        other if other.starts_with("enum ") || other == "variant identifier" => "a name".to_owned(),
        other => other.to_owned(),
    }
}

impl<'de> Deserializer<'de> for &'de Node {
    type Error = Misread;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misread> {
        match &self.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Unsigned(value) => visitor.visit_u64(*value),
            Value::Signed(value) => visitor.visit_i64(*value),
            Value::Float(value) => visitor.visit_f64(*value),
            Value::Text(text) => visitor.visit_borrowed_str(text),
            Value::Alien(kind) => Err(Misread::invalid_type(Unexpected::Other(kind), &visitor)),
            Value::List(items) => visitor.visit_seq(Items { rest: items.iter() }),
            Value::Table(entries) => visitor.visit_map(Members {
                rest: entries.iter(),
                current: None,
            }),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misread> {
        match self.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Misread> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misread> {
        match &self.value {
            Value::Text(text) if variants.contains(&text.as_str()) => {
                visitor.visit_enum(Variant(text))
            }
            Value::Text(text) => Err(Misread::here(Problem::not_one_of(text, variants))),
            _ => Err(Misread::here(Problem::NotOneOf {
                accepted: variants.to_vec(),
                nearest: None,
            })),
        }
    }

    /// Only a table is one: serde would also fill a struct from a list, by position.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misread> {
        match &self.value {
            Value::List(_) => Err(Misread::invalid_type(Unexpected::Seq, &"a table")),
            _ => self.deserialize_any(visitor),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map identifier ignored_any
    }
}

/// The name of a variant that is known to be one.
struct Variant<'de>(&'de str);

impl<'de> EnumAccess<'de> for Variant<'de> {
    type Error = Misread;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Misread> {
        let value = seed.deserialize(StrDeserializer::<Misread>::new(self.0))?;
        Ok((value, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'de> {
    type Error = Misread;

    fn unit_variant(self) -> Result<(), Misread> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, _: T) -> Result<T::Value, Misread> {
        Err(Misread::invalid_type(Unexpected::UnitVariant, &"a table"))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Misread> {
        Err(Misread::invalid_type(Unexpected::UnitVariant, &visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misread> {
        Err(Misread::invalid_type(Unexpected::UnitVariant, &visitor))
    }
}

struct Items<'de> {
    rest: std::slice::Iter<'de, (usize, Node)>,
}

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = Misread;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Misread> {
        let Some((index, node)) = self.rest.next() else {
            return Ok(None);
        };
        seed.deserialize(node)
            .map(Some)
            .map_err(|misread| misread.under(Step::Item(*index)))
    }
}

struct Members<'de> {
    rest: std::slice::Iter<'de, Entry>,
    current: Option<&'de Entry>,
}

impl<'de> MapAccess<'de> for Members<'de> {
    type Error = Misread;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Misread> {
        let Some(entry) = self.rest.next() else {
            return Ok(None);
        };
        self.current = Some(entry);
        seed.deserialize(StrDeserializer::<Misread>::new(&entry.name))
            .map(Some)
            .map_err(|misread| misread.under(Step::Field(entry.name.clone())))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Misread> {
        let entry = self
            .current
            .take()
            .expect("a value is asked for after its name");
        seed.deserialize(&entry.node)
            .map_err(|misread| misread.under(Step::Field(entry.name.clone())))
    }
}

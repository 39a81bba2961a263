//! Amounts as typed, each with its unit.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use serde::de::{self, Deserialize, Deserializer, Unexpected, Visitor};

/// Milliseconds in a field whose name ends in `_ms`: a bare whole number, at most ten years.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Millis(pub(crate) Duration);

/// A duration in a field whose name says no unit: milliseconds, or a text such as `"500ms"`,
/// `"5s"`, `"2m"`, `"1h"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span(pub(crate) Duration);

/// A size: bytes, or a text such as `"32MiB"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size(pub(crate) u64);

/// A count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Whole(pub(crate) u64);

/// Ten years: longer is a mistake, and sums of such durations cannot overflow.
const LONGEST_MS: u64 = 10 * 365 * 24 * 60 * 60 * 1000;

/// An amount: what it is made of.
trait Amount: Sized {
    /// What would be accepted.
    const ACCEPTED: &'static str;

    fn from_number(number: u64) -> Option<Self>;

    fn from_text(_text: &str) -> Option<Self> {
        None
    }

    /// Whether a text is a spelling of it at all.
    const TEXT: bool = false;
}

impl Amount for Millis {
    const ACCEPTED: &'static str = "a whole number of milliseconds, without unit";

    fn from_number(number: u64) -> Option<Self> {
        (number <= LONGEST_MS).then(|| Self(Duration::from_millis(number)))
    }
}

impl Amount for Span {
    const ACCEPTED: &'static str =
        "a whole number of milliseconds, or a duration such as \"500ms\", \"5s\" or \"2m\"";
    const TEXT: bool = true;

    fn from_number(number: u64) -> Option<Self> {
        (number <= LONGEST_MS).then(|| Self(Duration::from_millis(number)))
    }

    fn from_text(text: &str) -> Option<Self> {
        const UNITS: [(&str, u64); 4] = [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000)];
        with_unit(text, &UNITS).and_then(Self::from_number)
    }
}

impl Amount for Size {
    const ACCEPTED: &'static str =
        "a whole number of bytes, or a size such as \"512KiB\", \"32MiB\" or \"1GiB\"";
    const TEXT: bool = true;

    fn from_number(number: u64) -> Option<Self> {
        Some(Self(number))
    }

    fn from_text(text: &str) -> Option<Self> {
        const UNITS: [(&str, u64); 4] = [
            ("KiB", 1 << 10),
            ("MiB", 1 << 20),
            ("GiB", 1 << 30),
            ("B", 1),
        ];
        with_unit(text, &UNITS).map(Self)
    }
}

impl Amount for Whole {
    const ACCEPTED: &'static str = "a whole number, 0 or more";

    fn from_number(number: u64) -> Option<Self> {
        Some(Self(number))
    }
}

/// `"5s"` or `"5 s"`: a whole number and one of the units.
fn with_unit(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let text = text.trim();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let (_, factor) = units.iter().find(|(name, _)| *name == unit.trim_start())?;
    number.parse::<u64>().ok()?.checked_mul(*factor)
}

struct Read<T>(PhantomData<T>);

impl<T: Amount> Visitor<'_> for Read<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::ACCEPTED)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
        T::from_number(number).ok_or_else(|| E::invalid_value(Unexpected::Unsigned(number), &self))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
        match u64::try_from(number) {
            Ok(number) => self.visit_u64(number),
            Err(_) => Err(E::invalid_value(Unexpected::Signed(number), &self)),
        }
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        if !T::TEXT {
            return Err(E::invalid_type(Unexpected::Str(text), &self));
        }
        T::from_text(text).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }
}

macro_rules! deserialize {
    ($($amount:ty),*) => {$(
        impl<'de> Deserialize<'de> for $amount {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(Read(PhantomData))
            }
        }
    )*};
}

deserialize!(Millis, Span, Size, Whole);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_sizes_need_a_unit_we_know() {
        for (text, millis) in [
            ("500ms", Some(500)),
            ("5s", Some(5000)),
            (" 5 s ", Some(5000)),
            ("2m", Some(120_000)),
            ("1h", Some(3_600_000)),
            ("0s", Some(0)),
            ("5", None),
            ("s", None),
            ("", None),
            ("-5s", None),
            ("1.5s", None),
            ("5S", None),
            ("5 sec", None),
            ("99999999999999999999s", None),
            ("9999999999999h", None),
        ] {
            let read = Span::from_text(text).map(|Span(duration)| duration.as_millis());
            assert_eq!(read, millis, "{text:?}");
        }
        for (text, bytes) in [
            ("32MiB", Some(32 << 20)),
            ("1 GiB", Some(1 << 30)),
            ("10KiB", Some(10 << 10)),
            ("7B", Some(7)),
            ("32MB", None),
            ("32", None),
            ("99999999999GiB", None),
        ] {
            assert_eq!(
                Size::from_text(text).map(|Size(size)| size),
                bytes,
                "{text:?}"
            );
        }
    }
}

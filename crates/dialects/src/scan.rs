//! A strict JSON scanner that hands out spans instead of building a tree.
//!
//! Everything it walks over is checked against RFC 8259, so a document that was scanned to its end
//! is valid JSON. Depth is held at [`MAX_DEPTH`], the same limit `serde_json` keeps, so what was
//! accepted here is never refused later for its depth.

use std::borrow::Cow;

/// Deepest nesting of objects and arrays, as `serde_json` allows it.
pub(crate) const MAX_DEPTH: u8 = 127;

/// Why scanning stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Not JSON, noticed at this byte.
    Syntax(usize),
    /// The document ends inside a value.
    Ended,
    /// More than [`MAX_DEPTH`] levels.
    TooDeep,
}

/// What kind of value comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Object,
    Array,
    String,
    Number,
    Bool,
    Null,
}

/// A string as it stands in the document, without its quotes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Str<'a> {
    raw: &'a str,
    escaped: bool,
}

impl<'a> Str<'a> {
    /// The text it stands for. A string whose escapes name no character (half a surrogate pair)
    /// is given as written.
    pub(crate) fn decode(self) -> Cow<'a, str> {
        if !self.escaped {
            return Cow::Borrowed(self.raw);
        }
        serde_json::from_str(&format!("\"{}\"", self.raw))
            .map_or(Cow::Borrowed(self.raw), Cow::Owned)
    }

    /// Whether it stands for `text`.
    pub(crate) fn is(self, text: &str) -> bool {
        if self.escaped {
            self.decode() == text
        } else {
            self.raw == text
        }
    }

    pub(crate) fn is_empty(self) -> bool {
        self.raw.is_empty()
    }

    /// Bytes it takes in the document.
    pub(crate) fn len(self) -> usize {
        self.raw.len()
    }

    pub(crate) fn starts_with(self, text: &str) -> bool {
        if self.escaped {
            self.decode().starts_with(text)
        } else {
            self.raw.starts_with(text)
        }
    }
}

/// A member of an object, before its value is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Member<'a> {
    pub(crate) key: Str<'a>,
    /// Where the key's opening quote stands.
    pub(crate) at: usize,
    /// Where the comma before it stands; `None` for the first member.
    pub(crate) comma: Option<usize>,
}

impl Member<'_> {
    pub(crate) fn is(&self, name: &str) -> bool {
        self.key.is(name)
    }
}

/// Walks over one document.
pub(crate) struct Scanner<'a> {
    text: &'a str,
    at: usize,
    depth: u8,
}

impl<'a> Scanner<'a> {
    pub(crate) const fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            depth: 0,
        }
    }

    /// A scanner over bytes; a [`Fault::Syntax`] where they stop being UTF-8, a [`Fault::Ended`]
    /// where they end inside a character.
    pub(crate) fn over(bytes: &'a [u8]) -> Result<Self, Fault> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Self::new(text)),
            Err(error) if error.error_len().is_none() => Err(Fault::Ended),
            Err(error) => Err(Fault::Syntax(error.valid_up_to())),
        }
    }

    /// Where the scanner stands.
    pub(crate) const fn at(&self) -> usize {
        self.at
    }

    /// The kind of the next value, after white space.
    pub(crate) fn peek(&mut self) -> Result<Kind, Fault> {
        Ok(match self.next_byte()? {
            b'{' => Kind::Object,
            b'[' => Kind::Array,
            b'"' => Kind::String,
            b'-' | b'0'..=b'9' => Kind::Number,
            b't' | b'f' => Kind::Bool,
            b'n' => Kind::Null,
            _ => return Err(Fault::Syntax(self.at)),
        })
    }

    /// Walks over the object that comes next. `each` must walk over exactly one value.
    pub(crate) fn object<E: From<Fault>>(
        &mut self,
        mut each: impl FnMut(&mut Self, Member<'a>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.open(b'{')?;
        let mut comma = None;
        if self.next_byte()? == b'}' {
            return self.close();
        }
        loop {
            self.next_byte()?;
            let at = self.at;
            let key = self.string()?;
            if self.next_byte()? != b':' {
                return Err(Fault::Syntax(self.at).into());
            }
            self.at += 1;
            each(self, Member { key, at, comma })?;
            match self.next_byte()? {
                b',' => {
                    comma = Some(self.at);
                    self.at += 1;
                }
                b'}' => return self.close(),
                _ => return Err(Fault::Syntax(self.at).into()),
            }
        }
    }

    /// Walks over the array that comes next. `each` must walk over exactly one value.
    pub(crate) fn array<E: From<Fault>>(
        &mut self,
        mut each: impl FnMut(&mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        self.open(b'[')?;
        if self.next_byte()? == b']' {
            return self.close();
        }
        loop {
            self.next_byte()?;
            each(self)?;
            match self.next_byte()? {
                b',' => self.at += 1,
                b']' => return self.close(),
                _ => return Err(Fault::Syntax(self.at).into()),
            }
        }
    }

    /// Walks over the next value and gives it as written.
    pub(crate) fn skip(&mut self) -> Result<&'a str, Fault> {
        let kind = self.peek()?;
        let start = self.at;
        match kind {
            Kind::Object => self.object(|inside, _| inside.skip().map(drop))?,
            Kind::Array => self.array(|inside| inside.skip().map(drop))?,
            Kind::String => drop(self.string()?),
            Kind::Number => self.number()?,
            Kind::Bool => drop(self.boolean()?),
            Kind::Null => self.literal("null")?,
        }
        Ok(&self.text[start..self.at])
    }

    /// The next value if it is a string; any other value is walked over.
    pub(crate) fn string_or_skip(&mut self) -> Result<Option<Str<'a>>, Fault> {
        if self.peek()? == Kind::String {
            return self.string().map(Some);
        }
        self.skip().map(|_| None)
    }

    /// The next value if it is a boolean; any other value is walked over.
    pub(crate) fn bool_or_skip(&mut self) -> Result<Option<bool>, Fault> {
        if self.peek()? == Kind::Bool {
            return self.boolean().map(Some);
        }
        self.skip().map(|_| None)
    }

    /// The next value if it is a whole number of at least zero; any other value is walked over.
    pub(crate) fn count_or_skip(&mut self) -> Result<Option<u64>, Fault> {
        self.skip().map(|written| written.parse().ok())
    }

    /// Walks over the next value, into it with `each` if it is an object.
    pub(crate) fn object_or_skip<E: From<Fault>>(
        &mut self,
        each: impl FnMut(&mut Self, Member<'a>) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.peek()? == Kind::Object {
            return self.object(each);
        }
        self.skip()?;
        Ok(())
    }

    /// Walks over the next value, into it with `each` if it is an array.
    pub(crate) fn array_or_skip<E: From<Fault>>(
        &mut self,
        each: impl FnMut(&mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.peek()? == Kind::Array {
            return self.array(each);
        }
        self.skip()?;
        Ok(())
    }

    /// The next value, which must be a string.
    pub(crate) fn string(&mut self) -> Result<Str<'a>, Fault> {
        if self.next_byte()? != b'"' {
            return Err(Fault::Syntax(self.at));
        }
        let start = self.at + 1;
        let bytes = self.text.as_bytes();
        let mut at = start;
        let mut escaped = false;
        loop {
            let rest = bytes.get(at..).ok_or(Fault::Ended)?;
            let found = memchr::memchr2(b'"', b'\\', rest);
            let plain = &rest[..found.unwrap_or(rest.len())];
            if plain.iter().any(|byte| *byte < 0x20) {
                let control = plain.iter().take_while(|byte| **byte >= 0x20).count();
                return Err(Fault::Syntax(at + control));
            }
            at += found.ok_or(Fault::Ended)?;
            if bytes[at] == b'"' {
                self.at = at + 1;
                let raw = &self.text[start..at];
                return Ok(Str { raw, escaped });
            }
            escaped = true;
            at += escape(bytes, at)?;
        }
    }

    /// White space up to the end of the document, and nothing else.
    pub(crate) fn finish(mut self) -> Result<(), Fault> {
        match self.next_byte() {
            Err(Fault::Ended) => Ok(()),
            _ => Err(Fault::Syntax(self.at)),
        }
    }

    fn boolean(&mut self) -> Result<bool, Fault> {
        if self.next_byte()? == b't' {
            return self.literal("true").map(|()| true);
        }
        self.literal("false").map(|()| false)
    }

    fn literal(&mut self, word: &str) -> Result<(), Fault> {
        let rest = &self.text.as_bytes()[self.at..];
        if rest.starts_with(word.as_bytes()) {
            self.at += word.len();
            return Ok(());
        }
        if word.as_bytes().starts_with(rest) {
            return Err(Fault::Ended);
        }
        Err(Fault::Syntax(self.at))
    }

    fn number(&mut self) -> Result<(), Fault> {
        let bytes = self.text.as_bytes();
        if bytes[self.at] == b'-' {
            self.at += 1;
        }
        match bytes.get(self.at) {
            Some(b'0') => self.at += 1,
            _ => self.digits()?,
        }
        if bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(bytes.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(bytes.get(self.at), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    /// At least one digit.
    fn digits(&mut self) -> Result<(), Fault> {
        let rest = &self.text.as_bytes()[self.at..];
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if count == 0 {
            return Err(if rest.is_empty() {
                Fault::Ended
            } else {
                Fault::Syntax(self.at)
            });
        }
        self.at += count;
        Ok(())
    }

    fn open(&mut self, bracket: u8) -> Result<(), Fault> {
        if self.next_byte()? != bracket {
            return Err(Fault::Syntax(self.at));
        }
        if self.depth == MAX_DEPTH {
            return Err(Fault::TooDeep);
        }
        self.depth += 1;
        self.at += 1;
        Ok(())
    }

    fn close<E>(&mut self) -> Result<(), E> {
        self.depth -= 1;
        self.at += 1;
        Ok(())
    }

    /// The next byte that is not white space, left unread.
    fn next_byte(&mut self) -> Result<u8, Fault> {
        let bytes = self.text.as_bytes();
        while let Some(byte) = bytes.get(self.at) {
            if !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
                return Ok(*byte);
            }
            self.at += 1;
        }
        Err(Fault::Ended)
    }
}

/// The length of the escape that begins at `at`.
fn escape(bytes: &[u8], at: usize) -> Result<usize, Fault> {
    match bytes.get(at + 1).ok_or(Fault::Ended)? {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Ok(2),
        b'u' => {
            for place in at + 2..at + 6 {
                if !bytes.get(place).ok_or(Fault::Ended)?.is_ascii_hexdigit() {
                    return Err(Fault::Syntax(place));
                }
            }
            Ok(6)
        }
        _ => Err(Fault::Syntax(at + 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn scan(text: &str) -> Result<(), Fault> {
        let mut scanner = Scanner::new(text);
        scanner.skip()?;
        scanner.finish()
    }

    #[test]
    fn agrees_with_the_grammar() {
        for (text, expected) in [
            ("{}", Ok(())),
            (" [ ] ", Ok(())),
            (r#"{"a":[1,-0.5e+3,true,false,null,"\u00e9\n"]}"#, Ok(())),
            ("", Err(Fault::Ended)),
            ("  ", Err(Fault::Ended)),
            ("{", Err(Fault::Ended)),
            (r#"{"a":1"#, Err(Fault::Ended)),
            (r#"{"a""#, Err(Fault::Ended)),
            ("tru", Err(Fault::Ended)),
            ("1.", Err(Fault::Ended)),
            (r#""\u12"#, Err(Fault::Ended)),
            ("[1,]", Err(Fault::Syntax(3))),
            (r#"{"a":1,}"#, Err(Fault::Syntax(7))),
            ("01", Err(Fault::Syntax(1))),
            ("[+1]", Err(Fault::Syntax(1))),
            ("\"a\nb\"", Err(Fault::Syntax(2))),
            (r#""\x""#, Err(Fault::Syntax(2))),
            ("{} {}", Err(Fault::Syntax(3))),
            ("{a:1}", Err(Fault::Syntax(1))),
            ("\u{feff}{}", Err(Fault::Syntax(0))),
        ] {
            assert_eq!(scan(text), expected, "{text}");
        }
    }

    #[test]
    fn depth_is_held_where_serde_json_holds_it() {
        for depth in [127, 128] {
            let text = "[".repeat(depth) + &"]".repeat(depth);
            let theirs = serde_json::from_str::<serde_json::Value>(&text).is_ok();
            assert_eq!(scan(&text).is_ok(), theirs, "{depth}");
        }
        assert_eq!(scan(&"[".repeat(1_000_000)), Err(Fault::TooDeep));
    }

    #[test]
    fn escaped_keys_are_read_as_what_they_mean() {
        let mut scanner = Scanner::new(r#"{"mod\u0065l":1}"#);
        let mut seen = Vec::new();
        scanner
            .object(|inside, member| {
                seen.push((member.is("model"), member.key.decode().into_owned()));
                inside.skip().map(drop)
            })
            .expect("valid JSON");
        assert_eq!(seen, [(true, "model".to_owned())]);
    }

    proptest! {
        #[test]
        fn accepts_what_serde_json_accepts(text in r#"[\[\]{}",:0-9a-ftrulse.\\ \-+E]{0,24}"#) {
            prop_assert_eq!(scan(&text).is_ok(), serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok());
        }

        #[test]
        fn never_panics_on_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(mut scanner) = Scanner::over(&bytes) {
                let _ = scanner.skip();
            }
        }
    }
}

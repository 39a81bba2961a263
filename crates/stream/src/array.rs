//! A stream that is one JSON array: each entry a frame.
//!
//! Google's `streamGenerateContent` without `alt=sse` answers like this. Where an entry begins and
//! ends is told by brackets outside strings; whether it is JSON is for its reader to say. A bare
//! object is taken for an only entry: errors come without the array around them.

use std::fmt;

use backstop_units::ByteCount;
use bytes::BytesMut;

use crate::error::Error;
use crate::frame::Frame;
use crate::framer::Framer;

/// Cuts a body that is a JSON array into [`Frame`]s, one an entry. Commas, brackets and white space
/// before an entry belong to its frame; what follows the last entry is a frame without data.
///
/// Used as [`Framer`] is. The same bytes give the same frames however they are cut into chunks.
pub struct ArrayFramer {
    limit: ByteCount,
    buffer: BytesMut,
    /// How much of the buffer was looked at.
    seen: usize,
    at: Place,
    /// Where the entry begins in the buffer.
    start: usize,
    overrun: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Place {
    /// Before an entry.
    Between,
    /// Inside one, under so many brackets.
    Entry { depth: usize },
    /// Inside a string of an entry.
    Text { depth: usize },
    /// Inside a string, behind a backslash.
    Escape { depth: usize },
    /// In something that is no entry: it ends with the input.
    Lost,
}

impl ArrayFramer {
    /// A framer that refuses entries, and white space between them, longer than `limit`.
    #[must_use]
    pub fn new(limit: ByteCount) -> Self {
        Self {
            limit,
            buffer: BytesMut::new(),
            seen: 0,
            at: Place::Between,
            start: 0,
            overrun: false,
        }
    }

    /// Takes the next bytes of the stream.
    pub fn push(&mut self, chunk: &[u8]) {
        if !self.overrun {
            self.buffer.extend_from_slice(chunk);
        }
    }

    /// The next entry that is complete, or `None` until more bytes are pushed.
    ///
    /// # Errors
    /// [`Error::TooLong`] when an entry outgrows the limit; every later call says so again.
    #[expect(
        clippy::should_implement_trait,
        reason = "None is no end: more may be pushed"
    )]
    pub fn next(&mut self) -> Result<Option<Frame>, Error> {
        while !self.overrun
            && let Some(&byte) = self.buffer.get(self.seen)
        {
            let begins = self.at == Place::Between;
            self.at = self.at.after(byte);
            if begins && self.at != Place::Between {
                self.start = self.seen;
            }
            self.seen += 1;
            if !begins && self.at == Place::Between {
                return Ok(Some(self.frame(true)));
            }
            let length = self.seen - self.start;
            self.overrun = length > self.limit.as_len();
        }
        if self.overrun {
            self.buffer.clear();
            return Err(Error::TooLong { limit: self.limit });
        }
        Ok(None)
    }

    /// What is still inside when no byte will follow: complete entries first, then the stump of a
    /// cut one or the end of the array, then `None`.
    ///
    /// # Errors
    /// As for [`next`](Self::next).
    pub fn finish(&mut self) -> Result<Option<Frame>, Error> {
        if let Some(frame) = self.next()? {
            return Ok(Some(frame));
        }
        if self.buffer.is_empty() {
            return Ok(None);
        }
        if self.at == Place::Between {
            self.start = self.seen;
            return Ok(Some(self.frame(true)));
        }
        Ok(Some(self.frame(false)))
    }

    fn frame(&mut self, terminated: bool) -> Frame {
        let raw = self.buffer.split_to(self.seen).freeze();
        let entry = self.start..self.seen;
        (self.seen, self.start, self.at) = (0, 0, Place::Between);
        Frame::of_entry(raw, entry, terminated)
    }
}

impl Place {
    const fn after(self, byte: u8) -> Self {
        match (self, byte) {
            (Self::Between, b'{') => Self::Entry { depth: 1 },
            (Self::Between, b'[' | b']' | b',' | b' ' | b'\t' | b'\r' | b'\n') => Self::Between,
            (Self::Between | Self::Lost, _) => Self::Lost,
            (Self::Entry { depth }, b'"') => Self::Text { depth },
            (Self::Entry { depth }, b'{' | b'[') => Self::Entry { depth: depth + 1 },
            (Self::Entry { depth: 1 }, b'}' | b']') => Self::Between,
            (Self::Entry { depth }, b'}' | b']') => Self::Entry { depth: depth - 1 },
            (Self::Text { depth }, b'"') => Self::Entry { depth },
            (Self::Text { depth }, b'\\') => Self::Escape { depth },
            (Self::Escape { depth }, _) => Self::Text { depth },
            (inside, _) => inside,
        }
    }
}

impl fmt::Debug for ArrayFramer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArrayFramer")
            .field("limit", &self.limit)
            .field("buffered_bytes", &self.buffer.len())
            .field("overrun", &self.overrun)
            .finish_non_exhaustive()
    }
}

impl Default for ArrayFramer {
    fn default() -> Self {
        Self::new(Framer::DEFAULT_LIMIT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BODY: &str = "[{\n  \"a\": \"}]\\\"{\"\n}\r\n,\r\n{\"b\": [{}, []]}\n]\n";

    /// Each frame's data, whether it is whole, and that the raw bytes are the input.
    fn frames(chunks: &[&[u8]]) -> Vec<(String, bool)> {
        let mut framer = ArrayFramer::default();
        let (mut all, mut raw) = (Vec::new(), Vec::new());
        let mut note = |frame: Frame| {
            raw.extend_from_slice(frame.raw());
            let data = String::from_utf8_lossy(frame.data()).into_owned();
            all.push((data, frame.is_terminated()));
        };
        for chunk in chunks {
            framer.push(chunk);
            while let Some(frame) = framer.next().expect("short") {
                note(frame);
            }
        }
        while let Some(frame) = framer.finish().expect("short") {
            note(frame);
        }
        assert_eq!(raw, chunks.concat());
        all
    }

    #[test]
    fn an_entry_is_a_frame() {
        let rows: &[(&str, &[(&str, bool)])] = &[
            ("", &[]),
            ("[]", &[("", true)]),
            (
                BODY,
                &[
                    ("{\n  \"a\": \"}]\\\"{\"\n}", true),
                    ("{\"b\": [{}, []]}", true),
                    ("", true),
                ],
            ),
            ("[{\"a\":1}", &[("{\"a\":1}", true)]),
            ("[{\"a\":1},{\"b", &[("{\"a\":1}", true), ("{\"b", false)]),
            ("{\"error\":{}}", &[("{\"error\":{}}", true)]),
            ("<html>", &[("<html>", false)]),
        ];
        for (body, expected) in rows {
            let expected: Vec<_> = expected
                .iter()
                .map(|(data, whole)| ((*data).to_owned(), *whole))
                .collect();
            assert_eq!(frames(&[body.as_bytes()]), expected, "{body}");
        }
    }

    #[test]
    fn on_the_wire_an_entry_is_an_event() {
        let mut framer = ArrayFramer::default();
        framer.push(b"[{\"a\":\n1}]");
        let frame = framer.next().expect("short").expect("whole");
        assert!(!frame.is_comment() && frame.has_data());
        assert_eq!(frame.into_wire(), "data: {\"a\":\ndata: 1}\n\n");
        let end = framer.finish().expect("short").expect("the bracket");
        assert!(end.is_comment());
        assert!(end.into_wire().is_empty());
    }

    #[test]
    fn an_entry_that_never_ends_is_refused() {
        let mut framer = ArrayFramer::new(ByteCount(8));
        framer.push(b"[      {\"a\":1},{\"abcdefgh");
        assert!(framer.next().expect("in bounds").is_some());
        for _ in 0..2 {
            let limit = ByteCount(8);
            assert_eq!(framer.next(), Err(Error::TooLong { limit }));
        }
    }

    proptest! {
        #[test]
        fn no_split_changes_the_frames(cuts in prop::collection::vec(0..=BODY.len(), 0..6)) {
            let mut cuts = cuts;
            cuts.sort_unstable();
            let mut chunks = Vec::new();
            let mut from = 0;
            for cut in cuts {
                chunks.push(&BODY.as_bytes()[from..cut]);
                from = cut;
            }
            chunks.push(&BODY.as_bytes()[from..]);
            prop_assert_eq!(frames(&chunks), frames(&[BODY.as_bytes()]));
        }

        #[test]
        fn no_bytes_are_lost(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = frames(&[&bytes]);
        }
    }
}

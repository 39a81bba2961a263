//! One block of a stream: its bytes, and the fields found in them.

use std::fmt;
use std::ops::Range;

use bytes::{BufMut, Bytes, BytesMut};
use memchr::memchr2;

use crate::write::write_event;

/// The byte order mark that may open a stream, in UTF-8.
pub(crate) const BOM: [u8; 3] = [0xEF, 0xBB, 0xBF];

/// One block of an event stream, from its first byte through its blank line.
///
/// `Debug` shows sizes, never content.
#[derive(Clone, PartialEq, Eq)]
pub struct Frame {
    raw: Bytes,
    bom: bool,
    terminated: bool,
    fields: bool,
    event: Option<Range<usize>>,
    data: Data,
    /// Of a binary frame: its headers that are text, by name.
    headers: Vec<(String, String)>,
}

/// The `data` lines of a block; ranges point into its raw bytes.
#[derive(Clone, PartialEq, Eq)]
enum Data {
    Absent,
    Line(Range<usize>),
    Joined(Vec<u8>),
    /// No lines: an entry of a JSON array, empty behind the last one.
    Entry(Range<usize>),
    /// No lines: the payload of a binary frame.
    Payload(Range<usize>),
}

impl Frame {
    /// An entry of a JSON array, which lies at `entry` in `raw`; `terminated`: its end is there.
    pub(crate) fn of_entry(raw: Bytes, entry: Range<usize>, terminated: bool) -> Self {
        Self {
            raw,
            bom: false,
            terminated,
            fields: !entry.is_empty(),
            event: None,
            data: Data::Entry(entry),
            headers: Vec::new(),
        }
    }

    /// A binary frame with these headers, whose payload lies at `payload` in `raw`; `terminated`: all
    /// of it is there.
    pub(crate) fn of_message(
        raw: Bytes,
        headers: Vec<(String, String)>,
        payload: Range<usize>,
        terminated: bool,
    ) -> Self {
        Self {
            raw,
            bom: false,
            terminated,
            fields: true,
            event: None,
            data: Data::Payload(payload),
            headers,
        }
    }

    /// Reads the fields of a block. `opens_stream`: it is the first of its stream, so a byte order
    /// mark is no content; `terminated`: its blank line is there.
    pub(crate) fn read(raw: Bytes, opens_stream: bool, terminated: bool) -> Self {
        let bom = opens_stream && raw.starts_with(&BOM);
        let mut frame = Self {
            raw: Bytes::new(),
            bom,
            terminated,
            fields: false,
            event: None,
            data: Data::Absent,
            headers: Vec::new(),
        };
        let mut start = if bom { BOM.len() } else { 0 };
        while start < raw.len() {
            let length = memchr2(b'\n', b'\r', &raw[start..]).unwrap_or(raw.len() - start);
            frame.read_line(&raw, start..start + length);
            start += length + 1;
        }
        frame.raw = raw;
        frame
    }

    fn read_line(&mut self, raw: &[u8], line: Range<usize>) {
        let bytes = &raw[line.clone()];
        if matches!(bytes.first(), None | Some(b':')) {
            return;
        }
        self.fields = true;
        if let Some(offset) = value_of(bytes, b"data") {
            let value = line.start + offset..line.end;
            self.data = match std::mem::replace(&mut self.data, Data::Absent) {
                Data::Absent => Data::Line(value),
                Data::Line(first) => Data::Joined([&raw[first], b"\n", &raw[value]].concat()),
                entry @ (Data::Entry(_) | Data::Payload(_)) => entry,
                Data::Joined(mut joined) => {
                    joined.push(b'\n');
                    joined.extend_from_slice(&raw[value]);
                    Data::Joined(joined)
                }
            };
        } else if let Some(offset) = value_of(bytes, b"event") {
            self.event = Some(line.start + offset..line.end);
        }
    }

    /// The event's name: the last `event` field. `None` when absent, empty, or not UTF-8.
    #[must_use]
    pub fn event(&self) -> Option<&str> {
        let name = &self.raw[self.event.clone()?];
        std::str::from_utf8(name)
            .ok()
            .filter(|name| !name.is_empty())
    }

    /// The text of a binary frame's header, such as `:event-type`; `None` when there is none of that
    /// name, or when it is no text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let (_, value) = self.headers.iter().find(|(own, _)| own == name)?;
        Some(value)
    }

    /// The values of all `data` fields, joined by `\n`, or the payload of a binary frame; empty when
    /// there is none. Borrowed from the raw bytes unless there are several.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        match &self.data {
            Data::Absent => &[],
            Data::Line(value) | Data::Entry(value) | Data::Payload(value) => {
                &self.raw[value.clone()]
            }
            Data::Joined(joined) => joined,
        }
    }

    /// Whether there is any `data` field, be it empty. A client dispatches no block without one.
    #[must_use]
    pub fn has_data(&self) -> bool {
        match &self.data {
            Data::Absent => false,
            Data::Entry(value) | Data::Payload(value) => !value.is_empty(),
            Data::Line(_) | Data::Joined(_) => true,
        }
    }

    /// A JSON object that stands in the stream without any `data:` before it: how Google's servers
    /// are known to tell an error in the middle of a stream.
    #[must_use]
    pub fn bare_json(&self) -> Option<&[u8]> {
        let bare = self.raw.trim_ascii();
        (!self.has_data() && bare.starts_with(b"{")).then_some(bare)
    }

    /// Whether there is no field at all: only comments, blank lines, or a byte order mark.
    /// Any client reads over such a block.
    #[must_use]
    pub fn is_comment(&self) -> bool {
        !self.fields
    }

    /// Whether the block came with its blank line. The last block of a stream may not: it is
    /// either whole but for that line (some servers end on `data: [DONE]`), or the stump of a cut
    /// event. Data that does not parse in an unterminated frame is a stump: drop the frame and end
    /// with [`InputEnd::Broken`](crate::InputEnd::Broken).
    #[must_use]
    pub fn is_terminated(&self) -> bool {
        self.terminated
    }

    /// Every byte of the block, with comments, the byte order mark and the blank line. The raw
    /// bytes of all frames, one after another, are the stream.
    #[must_use]
    pub fn raw(&self) -> &Bytes {
        &self.raw
    }

    /// The bytes to put on a wire behind other blocks: [`raw`](Self::raw) without a byte order
    /// mark, which is one only at the very start and would spoil a field's name elsewhere, and
    /// with the blank line a client waits for, should it be missing. Copies in that last case only. An
    /// entry of a JSON array becomes an event, and what follows the last one nothing. A binary frame
    /// stays as it came.
    #[must_use]
    pub fn into_wire(mut self) -> Bytes {
        if let Data::Entry(value) = &self.data {
            let mut event = BytesMut::new();
            if !value.is_empty() {
                write_event(&mut event, None, self.data());
            }
            return event.freeze();
        }
        if matches!(self.data, Data::Payload(_)) {
            return self.raw;
        }
        if self.bom {
            self.raw = self.raw.slice(BOM.len()..);
        }
        if self.terminated || self.raw.is_empty() {
            return self.raw;
        }
        // After a CR the first LF only completes a CRLF.
        let missing: &[u8] = if self.raw.ends_with(b"\n") {
            b"\n"
        } else {
            b"\n\n"
        };
        let mut whole = BytesMut::with_capacity(self.raw.len() + missing.len());
        whole.put_slice(&self.raw);
        whole.put_slice(missing);
        whole.freeze()
    }
}

/// Where the value begins in a line of the field `name`: after the colon and one space.
fn value_of(line: &[u8], name: &[u8]) -> Option<usize> {
    match line.strip_prefix(name)? {
        [] => Some(name.len()),
        [b':', b' ', ..] => Some(name.len() + 2),
        [b':', ..] => Some(name.len() + 1),
        _ => None,
    }
}

impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Frame")
            .field("raw_bytes", &self.raw.len())
            .field("data_bytes", &self.data().len())
            .field("terminated", &self.terminated)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(raw: &'static str) -> Frame {
        Frame::read(Bytes::from_static(raw.as_bytes()), true, true)
    }

    #[test]
    fn fields_are_read_as_the_specification_says() {
        // raw, event, data, has data, is comment
        type Row = (&'static str, Option<&'static str>, &'static str, bool, bool);
        let rows: &[Row] = &[
            ("data: a\n\n", None, "a", true, false),
            ("data:a\r\n\r\n", None, "a", true, false),
            ("data:  a \r\r", None, " a ", true, false),
            ("data\n\n", None, "", true, false),
            ("data:\n\n", None, "", true, false),
            ("data: a\ndata: b\n\n", None, "a\nb", true, false),
            (
                "data:a\r\n: between\r\ndata\r\ndata:c\r\n\r\n",
                None,
                "a\n\nc",
                true,
                false,
            ),
            ("event: x\ndata: a\n\n", Some("x"), "a", true, false),
            ("event: x\nevent:y\n\n", Some("y"), "", false, false),
            ("event: x\nevent\n\n", None, "", false, false),
            ("id: 1\nretry: 5\n\n", None, "", false, false),
            ("database: 1\nDATA: 1\n data: 1\n\n", None, "", false, false),
            ("data : 1\n\n", None, "", false, false),
            (": only\n\n", None, "", false, true),
            (":\n\n", None, "", false, true),
            ("\n\r\n", None, "", false, true),
            ("\u{feff}", None, "", false, true),
            ("\u{feff}data: a\n\n", None, "a", true, false),
            ("\n\u{feff}data: a\n\n", None, "", false, false),
            ("\u{feff}\u{feff}data: a\n\n", None, "", false, false),
            ("{\n  \"error\": {}\n}\n", None, "", false, false),
        ];
        for &(raw, event, data, has_data, comment) in rows {
            let frame = read(raw);
            assert_eq!(frame.event(), event, "{raw:?}");
            assert_eq!(frame.data(), data.as_bytes(), "{raw:?}");
            assert_eq!(frame.has_data(), has_data, "{raw:?}");
            assert_eq!(frame.is_comment(), comment, "{raw:?}");
            assert_eq!(frame.raw(), raw.as_bytes());
        }
    }

    #[test]
    fn a_byte_order_mark_counts_at_the_start_alone() {
        let later = Frame::read(
            Bytes::from_static("\u{feff}data: a\n\n".as_bytes()),
            false,
            true,
        );
        assert!(!later.has_data());
        assert!(!later.is_comment());
    }

    #[test]
    fn an_event_name_that_is_not_utf8_is_no_name() {
        let frame = Frame::read(Bytes::from_static(b"event: \xff\ndata: a\n\n"), false, true);
        assert_eq!((frame.event(), frame.data()), (None, &b"a"[..]));
    }

    #[test]
    fn a_single_line_is_borrowed_from_the_raw_bytes() {
        let frame = read("event: x\ndata: payload\n\n");
        let raw = frame.raw().as_ptr_range();
        assert!(raw.contains(&frame.data().as_ptr()));
    }

    #[test]
    fn the_wire_form_stands_behind_any_other_block() {
        for (raw, terminated, wire) in [
            ("data: a\n\n", true, "data: a\n\n"),
            ("data: a\r\n\r", true, "data: a\r\n\r"),
            ("\u{feff}data: a\n\n", true, "data: a\n\n"),
            ("\u{feff}", true, ""),
            ("data: a", false, "data: a\n\n"),
            ("data: a\n", false, "data: a\n\n"),
            ("data: a\r\n", false, "data: a\r\n\n"),
            ("data: a\r", false, "data: a\r\n\n"),
        ] {
            let frame = Frame::read(Bytes::from_static(raw.as_bytes()), true, terminated);
            assert_eq!(frame.into_wire(), wire.as_bytes(), "{raw:?}");
        }
    }

    #[test]
    fn debug_shows_no_content() {
        let shown = format!("{:?}", read("data: private\n\n"));
        assert!(!shown.contains("private"), "{shown}");
    }
}

//! Events of our own making, from text that anyone may have chosen.
//!
//! A model name, an id or an error text with a line end in it could open a field of its own on the
//! wire. Here it cannot: every line end in the input, CR, LF or CRLF, begins a new line *of the
//! same field*, or becomes a space where a field has one line only.

use bytes::BufMut;
use memchr::memchr2;

/// Appends one event: an `event` line when there is a name, a `data` line for each line of `data`
/// (at least one), a blank line. Read back, the data is `data` with its line ends as `\n`.
///
/// `out` must be able to grow, as `Vec<u8>` and `BytesMut` are.
///
/// ```
/// let mut out = Vec::new();
/// backstop_stream::write_event(&mut out, Some("error\ndata: x"), b"one\r\rdata: two");
/// assert_eq!(out, b"event: error data: x\ndata: one\ndata: \ndata: data: two\n\n");
/// ```
pub fn write_event(out: &mut impl BufMut, event: Option<&str>, data: &[u8]) {
    if let Some(name) = event.filter(|name| !name.is_empty()) {
        out.put_slice(b"event:");
        each_line(name.as_bytes(), |line| {
            out.put_u8(b' ');
            out.put_slice(line);
        });
        out.put_u8(b'\n');
    }
    each_line(data, |line| {
        out.put_slice(b"data: ");
        out.put_slice(line);
        out.put_u8(b'\n');
    });
    out.put_u8(b'\n');
}

/// Appends a comment block, which every client reads over: the keep-alive that no SDK mistakes for
/// an event. `out` must be able to grow.
pub fn write_comment(out: &mut impl BufMut, text: &str) {
    each_line(text.as_bytes(), |line| {
        out.put_slice(b": ");
        out.put_slice(line);
        out.put_u8(b'\n');
    });
    out.put_u8(b'\n');
}

/// Calls `line` for what stands before, between and after the line ends of `text`.
fn each_line(text: &[u8], mut line: impl FnMut(&[u8])) {
    let mut rest = text;
    while let Some(end) = memchr2(b'\n', b'\r', rest) {
        line(&rest[..end]);
        let crlf = rest[end..].starts_with(b"\r\n");
        rest = &rest[end + 1 + usize::from(crlf)..];
    }
    line(rest);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::framer::Framer;
    use bytes::Bytes;
    use proptest::prelude::*;

    #[test]
    fn events_and_comments_have_one_form() {
        for (event, data, wire) in [
            (None, "[DONE]", "data: [DONE]\n\n"),
            (None, "", "data: \n\n"),
            (Some(""), "a", "data: a\n\n"),
            (Some("error"), "{}", "event: error\ndata: {}\n\n"),
            (
                Some("a\r\ndata: b\rid: c"),
                "d",
                "event: a data: b id: c\ndata: d\n\n",
            ),
            (
                None,
                "a\r\n\r\nevent: b\n",
                "data: a\ndata: \ndata: event: b\ndata: \n\n",
            ),
            (None, " lead", "data:  lead\n\n"),
        ] {
            let mut out = Vec::new();
            write_event(&mut out, event, data.as_bytes());
            assert_eq!(String::from_utf8(out).unwrap(), wire);
        }
        let mut out = Vec::new();
        write_comment(&mut out, "keep\r\n\ndata: x");
        assert_eq!(out, b": keep\n: \n: data: x\n\n");
    }

    /// Text in which line ends and field names are likely.
    fn hostile() -> impl Strategy<Value = String> {
        let piece = prop::sample::select(vec![
            "\r", "\n", "\r\n", "data: x", "event: y", "id: 7", "retry: 1", ":", " ", "a", "é",
            "\u{2028}", "\u{feff}", "\0",
        ]);
        prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
    }

    fn one_line(text: &str, end: &str) -> String {
        text.replace("\r\n", "\n")
            .replace('\r', "\n")
            .replace('\n', end)
    }

    proptest! {
        #[test]
        fn no_text_starts_another_field(name in hostile(), data in hostile(), note in hostile()) {
            let mut out = Vec::new();
            write_comment(&mut out, &note);
            write_event(&mut out, Some(&name), data.as_bytes());
            let mut framer = Framer::default();
            framer.push(Bytes::from(out));
            let comment = framer.next().unwrap().unwrap();
            prop_assert!(comment.is_comment());
            let frame = framer.next().unwrap().unwrap();
            let name = one_line(&name, " ");
            let data = one_line(&data, "\n");
            prop_assert_eq!(frame.event(), Some(name.as_str()).filter(|name| !name.is_empty()));
            prop_assert_eq!(frame.data(), data.as_bytes());
            for line in frame.raw().split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
                prop_assert!(line.starts_with(b"data: ") || line.starts_with(b"event: "));
            }
            prop_assert_eq!(framer.finish(), Ok(None));
        }
    }
}

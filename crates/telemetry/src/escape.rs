//! Text from outside, made safe for a terminal and for a log of one event a line.
//!
//! A value that holds a line break can forge a log line, one that holds an escape sequence can
//! rewrite the operator's screen (RUSTSEC-2025-0055 is such a case), and one that holds a bidi
//! override can make a line read backwards. All of them are written as escapes.

use std::fmt;
use std::io;

/// Whether `c` may do more to a terminal or a log than stand in its place.
fn is_active(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{61c}' | '\u{200e}' | '\u{200f}' // direction marks
            | '\u{2028}' | '\u{2029}' // line and paragraph separators
            | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') // embeddings, overrides, isolates
}

/// Writes everything that is formatted through it with active characters as Rust escapes.
pub(crate) struct Plain<'a, W>(pub(crate) &'a mut W);

impl<W: fmt::Write> fmt::Write for Plain<'_, W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text;
        while let Some((at, c)) = rest.char_indices().find(|(_, c)| is_active(*c)) {
            self.0.write_str(&rest[..at])?;
            write!(self.0, "{}", c.escape_default())?;
            rest = &rest[at + c.len_utf8()..];
        }
        self.0.write_str(rest)
    }
}

/// Writes JSON lines on, with the active characters JSON lets stand (DEL, C1, bidi) as `\uXXXX`.
///
/// Outside of strings JSON holds only ASCII, and inside them control characters below U+0020 are
/// escaped already, so the only raw one is the line end. The subscriber writes one event a call.
pub(crate) struct JsonLines<W>(pub(crate) W);

impl<W: io::Write> io::Write for JsonLines<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        if !text.chars().any(|c| c != '\n' && is_active(c)) {
            self.0.write_all(line)?;
            return Ok(line.len());
        }
        let mut safe = String::with_capacity(text.len() + 16);
        for c in text.chars() {
            if c != '\n' && is_active(c) {
                // Every active character lies below U+10000: four digits name it.
                safe.push_str(&format!("\\u{:04x}", u32::from(c)));
            } else {
                safe.push(c);
            }
        }
        self.0.write_all(safe.as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::io::Write as _;

    use super::*;

    #[test]
    fn active_characters_become_escapes_and_the_rest_stays() {
        for (typed, written) in [
            ("gpt-4o", "gpt-4o"),
            ("Grüße, 世界 🦀", "Grüße, 世界 🦀"),
            ("a\nINFO forged", r"a\nINFO forged"),
            ("\u{1b}[2Jgone", r"\u{1b}[2Jgone"),
            ("\u{9b}31m", r"\u{9b}31m"),
            ("\u{7f}\r\t\0", r"\u{7f}\r\t\u{0}"),
            ("user\u{202e}drow", r"user\u{202e}drow"),
            ("", ""),
        ] {
            let mut out = String::new();
            write!(Plain(&mut out), "{typed}").unwrap();
            assert_eq!(out, written);
        }
    }

    #[test]
    fn json_stays_json_and_means_the_same() {
        for typed in ["plain", "c1 \u{9b}31m", "del \u{7f}", "bidi \u{202e}x", "ü"] {
            let mut out = Vec::new();
            let line = format!("{}\n", serde_json::json!({ "said": typed }));
            JsonLines(&mut out).write_all(line.as_bytes()).unwrap();
            let text = String::from_utf8(out).unwrap();
            assert!(!text.trim_end().chars().any(is_active), "{text:?}");
            let back: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!(back["said"], typed);
        }
    }
}

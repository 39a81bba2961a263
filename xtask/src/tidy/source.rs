//! Just enough of Rust's surface to find functions and test modules: what is code, and which
//! braces belong together.

use std::ops::Range;

/// A file's code with comments, strings and characters blanked out; every line stays in its place.
pub(super) struct Code(Vec<u8>);

/// A function with a body.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Function {
    pub(super) name: String,
    /// The line its signature starts on, from 1.
    pub(super) line: usize,
    /// Lines from the signature to the closing brace.
    pub(super) lines: usize,
}

impl Code {
    pub(super) fn new(source: &str) -> Self {
        let mut code = source.as_bytes().to_vec();
        let mut at = 0;
        while at < code.len() {
            let end = at + opaque(&code[at..], at.checked_sub(1).map(|before| code[before]));
            if end == at {
                at += 1;
                continue;
            }
            for byte in &mut code[at..end] {
                if *byte != b'\n' {
                    *byte = b' ';
                }
            }
            at = end;
        }
        Self(code)
    }

    /// Lines outside of test modules.
    pub(super) fn lines(&self) -> usize {
        let all = self.newlines(0..self.0.len());
        let tests = self.test_modules();
        all - tests.into_iter().map(|t| self.newlines(t)).sum::<usize>()
    }

    /// Every function with a body, nested ones too, outside of test modules.
    pub(super) fn functions(&self) -> Vec<Function> {
        let tests = self.test_modules();
        let mut functions = Vec::new();
        for at in self.find(b"fn ") {
            let in_word = at > 0 && is_word(self.0[at - 1]);
            if in_word || tests.iter().any(|test| test.contains(&at)) {
                continue;
            }
            let name = self.word(at + 3);
            if name.is_empty() {
                continue;
            }
            if let Some(body) = self.body(at) {
                functions.push(Function {
                    name,
                    line: 1 + self.newlines(0..at),
                    lines: 1 + self.newlines(at..body.end),
                });
            }
        }
        functions
    }

    /// The modules written in the file under `#[cfg(test)]`.
    fn test_modules(&self) -> Vec<Range<usize>> {
        let marks = self.find(b"#[cfg(test)]");
        marks
            .filter_map(|at| Some(at..self.body(at + b"#[cfg(test)]".len())?.end))
            .collect()
    }

    /// The first braced block after `from` that no semicolon comes before.
    fn body(&self, from: usize) -> Option<Range<usize>> {
        let mut nested = 0_usize;
        let mut start = None;
        for (at, byte) in (from..).zip(&self.0[from..]) {
            match byte {
                b';' if nested == 0 => return None,
                b'(' | b'[' => nested += 1,
                b')' | b']' => nested = nested.saturating_sub(1),
                b'{' => {
                    if nested == 0 {
                        start = Some(at);
                    }
                    nested += 1;
                }
                b'}' => {
                    nested = nested.saturating_sub(1);
                    if let (0, Some(start)) = (nested, start) {
                        return Some(start..at + 1);
                    }
                }
                _ => {}
            }
        }
        None
    }

    fn word(&self, from: usize) -> String {
        let word = self.0[from..].iter().take_while(|b| is_word(**b));
        word.map(|b| char::from(*b)).collect()
    }

    fn find(&self, what: &'static [u8]) -> impl Iterator<Item = usize> {
        let windows = self.0.windows(what.len()).enumerate();
        windows.filter_map(move |(at, window)| (window == what).then_some(at))
    }

    fn newlines(&self, range: Range<usize>) -> usize {
        self.0[range].iter().filter(|b| **b == b'\n').count()
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The length of the comment, string or character that `rest` starts with, 0 when it is code.
fn opaque(rest: &[u8], before: Option<u8>) -> usize {
    match rest {
        [b'/', b'/', ..] => until(rest, b"\n"),
        [b'/', b'*', ..] => block_comment(rest),
        [b'"', ..] => quoted(rest, b'"'),
        [b'\'', b'\\', ..] => quoted(rest, b'\''),
        [b'\'', first, ..] => {
            // A character ends right after its one scalar; a lifetime does not end.
            let width = match first {
                0..0x80 => 1,
                0x80..0xe0 => 2,
                0xe0..0xf0 => 3,
                _ => 4,
            };
            match rest.get(1 + width) {
                Some(b'\'') => width + 2,
                _ => 0,
            }
        }
        [b'r', b'"' | b'#', ..]
            if !before.is_some_and(|b| is_word(b) && b != b'b' && b != b'c') =>
        {
            raw_string(rest)
        }
        _ => 0,
    }
}

/// The length up to and without `end`.
fn until(rest: &[u8], end: &[u8]) -> usize {
    let found = rest.windows(end.len()).position(|window| window == end);
    found.unwrap_or(rest.len())
}

fn block_comment(rest: &[u8]) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    at
}

fn quoted(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() && rest[at] != quote {
        at += if rest[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(rest.len())
}

fn raw_string(rest: &[u8]) -> usize {
    let hashes = rest[1..].iter().take_while(|b| **b == b'#').count();
    let open = hashes + 2;
    if rest.get(open - 1) != Some(&b'"') {
        return 0; // a raw identifier
    }
    let mut close = vec![b'"'];
    close.resize(1 + hashes, b'#');
    (open + until(&rest[open..], &close) + close.len()).min(rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn functions(source: &str) -> Vec<(String, usize, usize)> {
        let functions = Code::new(source).functions();
        let rows = functions.into_iter().map(|f| (f.name, f.line, f.lines));
        rows.collect()
    }

    fn row(name: &str, line: usize, lines: usize) -> (String, usize, usize) {
        (name.to_owned(), line, lines)
    }

    #[test]
    fn functions_are_measured_from_signature_to_brace() {
        for (source, expected) in [
            ("fn a() {}\n", vec![row("a", 1, 1)]),
            (
                "\nfn a()\n{\n}\nfn b() {\n}\n",
                vec![row("a", 2, 3), row("b", 5, 2)],
            ),
            ("trait T { fn a(); fn b() {\n} }", vec![row("b", 1, 2)]),
            ("fn a(x: [u8; 4]) {\n}", vec![row("a", 1, 2)]),
            (
                "fn a() { fn b() {\n}\n}",
                vec![row("a", 1, 3), row("b", 1, 2)],
            ),
            ("type F = fn (u8);\nlet dysfn  = 1;", vec![]),
            (
                "fn a() { \"}\"; '}'; '\\''; // }\n /* } /* } */ */\n}",
                vec![row("a", 1, 3)],
            ),
            (
                "fn a<'x>(s: &'x str) { r#\"}\"#; br\"}\"; b'}'; '世'\n}",
                vec![row("a", 1, 2)],
            ),
            ("fn a() { r#fn; \"\\\"}\" }\n", vec![row("a", 1, 1)]),
            ("// fn a() {}\n/// fn b() {}\n", vec![]),
        ] {
            assert_eq!(functions(source), expected, "{source}");
        }
    }

    #[test]
    fn test_modules_do_not_count() {
        let source = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {\n    }\n}\nfn c() {}\n";
        assert_eq!(functions(source), [row("a", 1, 1), row("c", 7, 1)]);
        assert_eq!(Code::new(source).lines(), 3);
        let outside = "#[cfg(test)]\nmod tests;\nfn a() {}\n";
        assert_eq!(functions(outside), [row("a", 3, 1)]);
    }

    #[test]
    fn unfinished_source_ends() {
        for source in ["\"", "'\\", "/*", "r#\"", "fn a() {", "r", "'", "fn "] {
            let _ = (functions(source), Code::new(source).lines());
        }
    }
}

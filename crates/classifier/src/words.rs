//! Messages and codes as plain words.
//!
//! A provider quotes its caller: a field name, a tool id, a piece of a prompt. Such text must not
//! decide, so a message is first brought to [`Prose`]: lower-case words between single spaces, with
//! every quotation, bracket and URL reduced to a mark. Identifiers (`rate_limit`, `messages.2`) stay
//! one word each, so that no phrase of words meets them.

use memchr::memchr_iter;

/// How many bytes of words are kept over all messages of one answer. The reason stands early.
const PROSE_LIMIT: usize = 3 * 1024;

/// The mark for a quotation.
const QUOTED: &[u8] = b"_ ";

/// The mark for a quotation or word that names a model resource.
const MODEL: &[u8] = b"@model ";

/// The mark at the start of a message that opens with the path of a field.
const PATH: &[u8] = b"@path ";

/// The mark between messages, which no phrase crosses.
pub(crate) const BREAK: &[u8] = b"| ";

/// Text as words, each between single spaces.
pub(crate) struct Prose {
    text: Vec<u8>,
}

impl Prose {
    /// No words yet, with room for about so many bytes of them.
    pub(crate) fn with_room(bytes: usize) -> Self {
        let mut text = Vec::with_capacity(1 + bytes.min(PROSE_LIMIT + 256));
        text.push(b' ');
        Self { text }
    }

    #[cfg(test)]
    fn new() -> Self {
        Self::with_room(0)
    }

    /// The words as bytes, each between spaces.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.text
    }

    #[cfg(test)]
    pub(crate) fn from_words(text: &str) -> Self {
        Self { text: text.into() }
    }

    /// Adds a provider's message.
    pub(crate) fn push_message(&mut self, message: &str) {
        if self.text.len() > 1 {
            self.text.extend_from_slice(BREAK);
        }
        if opens_with_path(message) {
            self.text.extend_from_slice(PATH);
        }
        let room = PROSE_LIMIT.saturating_sub(self.text.len());
        Reader::new(&message[..message.floor_char_boundary(2 * room)]).read(&mut self.text, room);
    }

    /// A code as words, cut at separators, camel humps and acronym ends.
    pub(crate) fn push_code(&mut self, code: &str) {
        let bytes = &code.as_bytes()[..code.len().min(PROSE_LIMIT)];
        let mut open = false;
        for (i, &b) in bytes.iter().enumerate() {
            if !b.is_ascii_alphanumeric() && b.is_ascii() {
                if open {
                    self.text.push(b' ');
                    open = false;
                }
                continue;
            }
            let hump = b.is_ascii_uppercase() && i > 0 && {
                let before = bytes[i - 1];
                let after = bytes.get(i + 1).copied().unwrap_or(b'A');
                before.is_ascii_lowercase()
                    || before.is_ascii_uppercase() && after.is_ascii_lowercase()
            };
            if hump && open {
                self.text.push(b' ');
            }
            self.text.push(b.to_ascii_lowercase());
            open = true;
        }
        if open {
            self.text.push(b' ');
        }
    }
}

/// Walks through a message once.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Marks that were looked for without success: nothing behind here closes them.
    lost: Lost,
}

#[derive(Default)]
struct Lost {
    single: bool,
    square: bool,
    angle: bool,
}

impl<'a> Reader<'a> {
    fn new(message: &'a str) -> Self {
        Self {
            bytes: message.as_bytes(),
            at: 0,
            lost: Lost::default(),
        }
    }

    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(b' ')
    }

    fn read(&mut self, out: &mut Vec<u8>, room: usize) {
        let stop = out.len() + room;
        while self.at < self.bytes.len() && out.len() < stop {
            match self.peek(0) {
                b if b.is_ascii_whitespace() => self.at += 1,
                quote @ (b'"' | b'`') => self.quotation(quote, out),
                b'\'' if self.after_word() => self.at += 1,
                b'\'' if !self.lost.single => match self.close(b'\'') {
                    Some(end) => self.mark(end, out),
                    None => {
                        self.lost.single = true;
                        self.at += 1;
                    }
                },
                b'[' if !self.lost.square => match self.balance(b'[', b']') {
                    Some(end) => self.mark(end, out),
                    None => {
                        self.lost.square = true;
                        self.at += 1;
                    }
                },
                b'<' if !self.lost.angle && self.opens_tag() => match self.balance(b'<', b'>') {
                    Some(end) => self.mark(end, out),
                    None => {
                        self.lost.angle = true;
                        self.at += 1;
                    }
                },
                b'{' => {
                    let end = self.balance(b'{', b'}').unwrap_or(self.bytes.len());
                    self.mark(end, out);
                }
                0xE2 if self.at_curly(0x9C) => {
                    let end = find(&self.bytes[self.at..], "\u{201D}".as_bytes())
                        .map_or(self.bytes.len(), |i| self.at + i + 3);
                    self.mark(end, out);
                }
                // A closing one without its opening.
                0xE2 if self.at_curly(0x9D) => self.at += 3,
                b if is_word(b) => self.word(out),
                _ => self.at += 1,
            }
        }
    }

    /// A double or back quotation. One that never closes was cut off: its rest is not ours.
    fn quotation(&mut self, quote: u8, out: &mut Vec<u8>) {
        let end = self.close(quote).unwrap_or(self.bytes.len());
        self.mark(end, out);
    }

    /// Behind the closing quote: one with no letter behind it and no backslash before it.
    fn close(&self, quote: u8) -> Option<usize> {
        let rest = &self.bytes[self.at + 1..];
        let closes = |&i: &usize| {
            let behind = rest.get(i + 1).copied().unwrap_or(b' ');
            !behind.is_ascii_alphanumeric() && (i == 0 || rest[i - 1] != b'\\')
        };
        memchr_iter(quote, rest)
            .find(closes)
            .map(|i| self.at + i + 2)
    }

    /// Behind the bracket that closes the one here.
    fn balance(&self, open: u8, close: u8) -> Option<usize> {
        let mut depth = 0_usize;
        for (i, &b) in self.bytes[self.at..].iter().enumerate() {
            if b == open {
                depth += 1;
            } else if b == close {
                depth -= 1;
                if depth == 0 {
                    return Some(self.at + i + 1);
                }
            }
        }
        None
    }

    /// Whether a word ends right here, so that a single quote is an apostrophe.
    fn after_word(&self) -> bool {
        self.at > 0 && self.bytes[self.at - 1].is_ascii_alphanumeric()
    }

    fn opens_tag(&self) -> bool {
        let next = self.peek(1);
        next.is_ascii_alphabetic() || matches!(next, b'/' | b'!' | b'|')
    }

    fn at_curly(&self, last: u8) -> bool {
        self.peek(1) == 0x80 && self.peek(2) == last
    }

    /// Writes the mark for what lies between here and `end`.
    fn mark(&mut self, end: usize, out: &mut Vec<u8>) {
        let inside = &self.bytes[self.at..end];
        out.extend_from_slice(if names_model(inside) { MODEL } else { QUOTED });
        self.at = end;
    }

    /// A word of nothing but letters, the common case; false leaves everything as it was.
    fn plain_word(&mut self, out: &mut Vec<u8>) -> bool {
        let rest = &self.bytes[self.at..];
        let mut cases = 0;
        let letters = rest.iter().take_while(|b| {
            cases |= !**b;
            b.is_ascii_alphabetic()
        });
        let len = letters.count();
        let ends = matches!(
            rest.get(len),
            None | Some(b' ' | b',' | b';' | b')' | b'\n')
        );
        if len == 0 || !ends {
            return false;
        }
        let start = out.len();
        out.extend_from_slice(&rest[..len]);
        // The bit that upper-case letters lack; the byte behind the word may lack it too.
        if cases & 0x20 != 0 {
            out[start..].make_ascii_lowercase();
        }
        out.push(b' ');
        self.at += len;
        true
    }

    /// One run of word bytes: a word, two words with a hyphen, an identifier, or a URL.
    fn word(&mut self, out: &mut Vec<u8>) {
        let start = self.at;
        if self.plain_word(out) {
            return;
        }
        let schemes = [b"http://".as_slice(), b"https://"];
        let opens = |scheme: &[u8]| self.bytes[start..].starts_with(scheme);
        if self.bytes[start] == b'h' && schemes.into_iter().any(opens) {
            let ends = |b: &u8| b.is_ascii_whitespace() || matches!(b, b'"' | b'`' | b'<' | b')');
            let rest = &self.bytes[start..];
            self.at += rest.iter().position(ends).unwrap_or(rest.len());
            return;
        }
        let mut hyphens = 0;
        let mut plain = true;
        while self.at < self.bytes.len() {
            let b = self.bytes[self.at];
            if b.is_ascii_alphabetic() {
                self.at += 1;
                continue;
            }
            if b == 0xE2 && (self.at_curly(0x9C) || self.at_curly(0x9D)) {
                break;
            }
            match b {
                b'-' => hyphens += 1,
                _ if is_word(b) => plain = false,
                // A sentence that begins without a space, as in "exceeded.Please".
                b'.' if self.peek(1).is_ascii_uppercase() && plain && hyphens == 0 => break,
                b'\'' | b'.' | b':' | b'/' | b'=' | b'@' | b'#' | b'+' | b'~' | b'%' | b'&'
                | b'$' | b'*' | b'?' | b'!'
                    if is_word(self.peek(1)) || b == b'/' && self.peek(1) == b'/' =>
                {
                    plain = false;
                }
                _ => break,
            }
            self.at += 1;
        }
        let token = &self.bytes[start..self.at];
        let token = &token[..token.len() - token.iter().rev().take_while(|b| **b == b'-').count()];
        if token.is_empty() {
            return;
        }
        if !plain && names_model(token) {
            out.extend_from_slice(MODEL);
            return;
        }
        let echoes = self.peek(0) == b':' && ECHOES.contains(&token);
        push_word(out, token, plain && hyphens == 1);
        if echoes {
            self.mark(self.bytes.len(), out);
        }
    }
}

/// Words that, before a colon, announce the caller's own text; it goes on to the end of the message.
const ECHOES: &[&[u8]] = &[
    b"Given",
    b"Got",
    b"Input",
    b"Prompt",
    b"Received",
    b"argument",
    b"arguments",
    b"contains",
    b"field",
    b"function",
    b"given",
    b"got",
    b"name",
    b"near",
    b"parameter",
    b"property",
    b"role",
    b"said",
    b"supplied",
    b"tool",
];

/// Writes one word in lower case, its curly apostrophes straightened.
fn push_word(out: &mut Vec<u8>, token: &[u8], split_hyphen: bool) {
    let start = out.len();
    let curly = if token.is_ascii() {
        None
    } else {
        find(token, "\u{2019}".as_bytes())
    };
    if let Some(at) = curly {
        out.extend_from_slice(&token[..at]);
        out.push(b'\'');
        out.extend_from_slice(&token[at + 3..]);
    } else {
        out.extend_from_slice(token);
    }
    let word = &mut out[start..];
    word.make_ascii_lowercase();
    if split_hyphen && let Some(hyphen) = memchr::memchr(b'-', word) {
        word[hyphen] = b' ';
    }
    out.push(b' ');
}

/// The longest path of a request field that is recognised, in bytes.
const PATH_LEN: usize = 128;

/// Whether a message opens with the path of a request field (`messages.2:`, `tools[0].name:`).
fn opens_with_path(message: &str) -> bool {
    let opening = &message.as_bytes()[..message.len().min(PATH_LEN)];
    let Some(colon) = memchr::memchr(b':', opening) else {
        return false;
    };
    let path = &message[..colon];
    let part = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'[' | b']');
    message.as_bytes().get(colon + 1) == Some(&b' ')
        && path.bytes().all(part)
        && path.starts_with(|c: char| c.is_ascii_lowercase())
        && path.contains(['.', '['])
        && path
            .split(['.', '[', ']'])
            .any(|piece| piece.parse::<u32>().is_ok())
}

/// Word bytes: letters, digits, `_`, `-`, and everything beyond ASCII.
fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b == b'-' || !b.is_ascii()
}

/// Whether the text names a model as a resource: `models/x`, `.../publishers/y/models/x`, an ARN.
fn names_model(text: &[u8]) -> bool {
    memchr::memchr(b'/', text).is_some()
        && ["models/", "foundation-model/", "inference-profile/"]
            .iter()
            .any(|mark| find(text, mark.as_bytes()).is_some())
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    memchr::memmem::find(text, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prose(message: &str) -> String {
        let mut prose = Prose::new();
        prose.push_message(message);
        String::from_utf8(prose.text).unwrap().trim().to_owned()
    }

    #[test]
    fn messages_become_words() {
        for (message, want) in [
            (
                "The model `gpt-4` does not exist.",
                "the model _ does not exist",
            ),
            (
                "Invalid 'temperature': got \"rate limit\"",
                "invalid _ got _",
            ),
            (
                "messages.2: toolu_rate_limit",
                "@path messages.2 toolu_rate_limit",
            ),
            (
                "on-demand throughput isn\u{2019}t supported",
                "on demand throughput isn't supported",
            ),
            ("see https://x.test/rate-limit/exceeded now", "see now"),
            ("extraneous key [rate limit] is", "extraneous key _ is"),
            ("got {\"a\": \"rate limit\"} here", "got _ here"),
            ("got \"{\"a\": \"rate limit exceeded\"}\" here", "got _ _ _"),
            ("cut off: \"rate limit exc", "cut off _"),
            ("the users' rate limit", "the users rate limit"),
            ("models/gemini-x is not found", "@model is not found"),
            ("denied on '//a/models/x' here", "denied on @model here"),
            ("value <= 2, or <b>", "value 2 or _"),
            (
                "tokens per min (TPM): Limit 3",
                "tokens per min tpm limit 3",
            ),
            ("limit exceeded.Please wait", "limit exceeded please wait"),
            ("stray \u{201D} mark", "stray mark"),
            ("unknown field: rate limit", "unknown field _"),
            ("bad. Input: rate limit", "bad input _"),
            ("bad input: rate limit", "bad input rate limit"),
            ("a \u{201C}rate limit\u{201D} b", "a _ b"),
            ("rate-limited gpt-4o-mini", "rate limited gpt-4o-mini"),
        ] {
            assert_eq!(prose(message), want, "{message}");
        }
    }

    #[test]
    fn codes_become_words() {
        for (code, want) in [
            ("insufficient_quota", "insufficient quota"),
            ("RateLimitReached", "rate limit reached"),
            ("API_KEY_INVALID", "api key invalid"),
            ("APIKeyInvalid", "api key invalid"),
            ("invalid-argument", "invalid argument"),
            (
                "Some resource has been exhausted",
                "some resource has been exhausted",
            ),
            ("1113", "1113"),
        ] {
            let mut words = Prose::new();
            words.push_code(code);
            assert_eq!(String::from_utf8(words.text).unwrap().trim(), want);
        }
    }
}

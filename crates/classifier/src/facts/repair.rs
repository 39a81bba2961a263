//! Closing a JSON text that was cut off.

/// How many brackets may stand open: as many as the parser takes.
const DEPTH: usize = 127;

/// The text with its open string and brackets closed, so that what came before the cut is read.
///
/// A half-written escape, literal or key is dropped. The result need not be JSON when the text was
/// not the beginning of any; `None` when it is nested deeper than any error is.
pub(super) fn close(text: &str) -> Option<String> {
    let mut open = Vec::new();
    let mut in_string = false;
    let mut string_at = 0;
    let mut escaped = false;
    for (i, &b) in text.as_bytes().iter().enumerate() {
        if in_string {
            match b {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match b {
            b'"' => {
                in_string = true;
                string_at = i;
            }
            b'{' | b'[' if open.len() >= DEPTH => return None,
            b'{' => open.push(b'}'),
            b'[' => open.push(b']'),
            b'}' | b']' => {
                open.pop();
            }
            _ => {}
        }
    }
    let mut closed = String::with_capacity(text.len() + open.len() + 8);
    if in_string {
        let is_value = before(text, string_at) == Some(':') || open.last() == Some(&b']');
        if is_value {
            closed.push_str(whole_escapes(text, string_at));
            closed.push('"');
        } else {
            closed.push_str(&text[..string_at]);
        }
    } else {
        let literal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+');
        closed.push_str(text.trim_end_matches(literal));
    }
    let kept = closed.trim_end().trim_end_matches(',').len();
    closed.truncate(kept);
    match closed.chars().next_back() {
        Some(':') => closed.push_str("null"),
        // A key without its colon: the cut came between the two.
        Some('"') if open.last() == Some(&b'}') && !in_string && is_key(&closed) => {
            closed.push_str(":null");
        }
        _ => {}
    }
    closed.extend(open.iter().rev().map(|b| char::from(*b)));
    Some(closed)
}

/// The text up to a half-written escape in the string that opens at `string_at`.
fn whole_escapes(text: &str, string_at: usize) -> &str {
    let tail_at = text
        .floor_char_boundary(text.len().saturating_sub(6))
        .max(string_at + 1);
    let tail = &text[tail_at..];
    let Some(slash) = tail.rfind('\\') else {
        return text;
    };
    let slashes = tail[..=slash]
        .bytes()
        .rev()
        .take_while(|b| *b == b'\\')
        .count();
    let half_unicode = tail[slash + 1..].starts_with('u') && tail.len() - slash < 6;
    let half = slashes % 2 == 1 && (slash + 1 == tail.len() || half_unicode);
    if half { &text[..tail_at + slash] } else { text }
}

fn before(text: &str, at: usize) -> Option<char> {
    text[..at].trim_end().chars().next_back()
}

/// Whether the string that ends the text stands where a key stands.
fn is_key(text: &str) -> bool {
    let inside = &text[..text.len() - 1];
    inside
        .rfind('"')
        .is_some_and(|start| matches!(before(text, start), Some('{' | ',')))
}

#[cfg(test)]
mod tests {
    use super::close;

    #[test]
    fn every_cut_of_an_error_can_be_closed() {
        let whole = r#"{"type":"error","error":{"type":"a\"b","n":[1,-2.5e3,{"x":true}],"m":"é\u00e9\\ z"}}"#;
        for cut in (1..whole.len()).filter(|i| whole.is_char_boundary(*i)) {
            let closed = close(&whole[..cut]).unwrap();
            let read: Result<serde_json::Value, _> = serde_json::from_str(&closed);
            assert!(read.is_ok(), "{} -> {closed}", &whole[..cut]);
        }
    }
}

//! A name as one segment of a path.

use std::fmt::Write as _;

/// Appends `text` to `path` so that it stays one segment: all but the unreserved characters of
/// RFC 3986, 2.3 is percent-encoded, slashes and colons too.
pub(crate) fn segment(text: &str, path: &mut String) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            path.push(char::from(byte));
        } else {
            let _ = write!(path, "%{byte:02X}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_never_becomes_two_segments() {
        for (name, want) in [
            ("gpt-4o_mini.2~", "gpt-4o_mini.2~"),
            ("us.amazon.nova-micro-v1:0", "us.amazon.nova-micro-v1%3A0"),
            ("a/../b?c#d", "a%2F..%2Fb%3Fc%23d"),
            ("größe%", "gr%C3%B6%C3%9Fe%25"),
        ] {
            let mut path = String::new();
            segment(name, &mut path);
            assert_eq!(path, want);
        }
    }
}

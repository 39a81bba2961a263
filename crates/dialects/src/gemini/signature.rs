//! Ids of calls, and the signatures that travel in them.
//!
//! Gemini 3 refuses a conversation whose calls come back without the signature it gave them
//! (ai.google.dev/gemini-api/docs/thought-signatures, read 2026-11). Clients of other dialects drop
//! fields they do not know, but every client hands back a call's id: so the signature travels in
//! it, spelled in characters that all of them take.

/// Between a call's own id and its signature.
const MARK: &str = "_gts_";
/// Begins an id that we made because there was none. Never sent to Google.
const OURS: &str = "gcall_";

/// `id` with `signature` packed behind it.
pub(super) fn pack(id: String, signature: Option<&str>) -> String {
    let Some(signature) = signature.filter(|text| !text.is_empty()) else {
        return id;
    };
    let mut packed = id;
    packed.push_str(MARK);
    for byte in signature.bytes() {
        if byte.is_ascii_alphanumeric() || byte == b'-' {
            packed.push(char::from(byte));
        } else {
            packed.push_str(&format!("_{byte:02x}"));
        }
    }
    packed
}

/// The id without its signature, and the signature.
pub(super) fn unpack(packed: &str) -> (&str, Option<String>) {
    let signed = packed
        .rsplit_once(MARK)
        .and_then(|(id, spelled)| Some((id, spelled_out(spelled)?)));
    match signed {
        Some((id, signature)) => (id, Some(signature)),
        None => (packed, None),
    }
}

fn spelled_out(spelled: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(spelled.len());
    let mut rest = spelled.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'_' {
            bytes.push(byte);
            continue;
        }
        let digits = [rest.next()?, rest.next()?];
        let digits = std::str::from_utf8(&digits).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
    }
    String::from_utf8(bytes).ok()
}

/// An id for a call that came without one: the same for the same call, and another one in another
/// answer.
pub(super) fn made_up(answer: &str, choice: u32, tool: u32) -> String {
    let safe: String = answer
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .take(32)
        .collect();
    format!("{OURS}{safe}_{choice}_{tool}")
}

/// Whether we made this id.
pub(super) fn is_made_up(id: &str) -> bool {
    id.starts_with(OURS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_signature_comes_back_as_it_was() {
        let packed = pack("j80tal12".to_owned(), Some("CiMB+a/b=="));
        assert_eq!(packed, "j80tal12_gts_CiMB_2ba_2fb_3d_3d");
        assert_eq!(unpack(&packed), ("j80tal12", Some("CiMB+a/b==".to_owned())));
        for plain in ["call_abc", "toolu_gts", "x_gts__zz", "x_gts__2"] {
            assert_eq!(unpack(plain), (plain, None));
        }
        assert_eq!(pack("a".to_owned(), None), "a");
        assert!(is_made_up(&made_up("Cr-FaqLb", 0, 1)));
        assert_ne!(made_up("Cr-FaqLb", 0, 1), made_up("Cr-FaqLc", 0, 1));
    }

    proptest! {
        #[test]
        fn any_signature_survives(id in "[a-z0-9_]{0,12}", signature in ".{1,40}") {
            let packed = pack(id.clone(), Some(&signature));
            prop_assert!(packed.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b)));
            prop_assert_eq!(unpack(&packed), (id.as_str(), Some(signature)));
        }
    }
}

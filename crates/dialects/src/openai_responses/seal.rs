//! Encrypted reasoning, and who can read it.
//!
//! `encrypted_content` means something to the service that wrote it and to nobody else; another
//! provider refuses the whole request for it. The neutral shape has no place for whose it is, so a
//! seal of this dialect's own services carries a mark there, and a seal from elsewhere carries one
//! on this wire. Either way the words that were sealed come back as they were.

use std::borrow::Cow;

use backstop_chat::Text;

/// On seals of this dialect in the neutral shape.
const OURS: &str = "openai-responses:";
/// On seals of other dialects on this wire.
const FOREIGN: &str = "backstop:";

/// The seal that `encrypted_content` holds; `None` for an empty one.
pub(super) fn from_wire(data: &str) -> Option<Text> {
    if data.is_empty() {
        return None;
    }
    Some(match data.strip_prefix(FOREIGN) {
        Some(theirs) => theirs.into(),
        None => format!("{OURS}{data}").into(),
    })
}

/// The `encrypted_content` for a caller who will hand it back.
pub(super) fn to_caller(seal: &str) -> Cow<'_, str> {
    match seal.strip_prefix(OURS) {
        Some(data) => Cow::Borrowed(data),
        None => Cow::Owned(format!("{FOREIGN}{seal}")),
    }
}

/// The `encrypted_content` for a provider, where its own kind sealed it.
pub(super) fn to_provider(seal: &str) -> Option<&str> {
    seal.strip_prefix(OURS)
}

/// Whether a seal in the neutral shape can only be read by a service of this dialect.
pub(crate) fn is_ours(seal: &str) -> bool {
    seal.starts_with(OURS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_comes_back_as_it_was_and_only_to_its_own() {
        for (wire, ours) in [("gAAAA", true), ("backstop:EqRk", false)] {
            let seal = from_wire(wire).expect("something");
            assert_eq!(to_caller(&seal), wire);
            assert_eq!(is_ours(&seal), ours);
            assert_eq!(to_provider(&seal), ours.then_some(wire));
        }
        assert_eq!(from_wire(""), None);
    }
}

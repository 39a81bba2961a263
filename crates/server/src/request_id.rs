//! The end-to-end identity of a request: the caller's own, if it is fit to travel, or ours.

use backstop_dialects::Dialect;
use backstop_units::RequestId;
use http::{HeaderMap, HeaderValue};

/// The header both sides use.
pub(crate) const HEADER: &str = "x-request-id";

/// The longest id taken over from a caller. Our choice: a UUID with a prefix fits twice.
const MAX_LENGTH: usize = 128;

/// Where AWS' clients look for it.
const AMAZON: &str = "x-amzn-requestid";

/// Tells a caller who speaks `dialect` which request this is.
pub(crate) fn put(dialect: Dialect, id: &RequestId, headers: &mut HeaderMap) {
    if let Ok(id) = HeaderValue::from_str(id.as_str()) {
        if dialect == Dialect::BedrockConverse {
            headers.insert(AMAZON, id.clone());
        }
        headers.insert(HEADER, id);
    }
}

/// The caller's `x-request-id` where it is short and made of characters that are safe in headers,
/// logs and JSON; else a new one from `chance`.
pub(crate) fn request_id(headers: &HeaderMap, chance: impl FnOnce() -> u128) -> RequestId {
    let given = headers
        .get(HEADER)
        .and_then(|value| value.to_str().ok())
        .filter(|id| is_fit(id));
    match given {
        Some(id) => RequestId::new(id),
        None => RequestId::new(format!("req_{:032x}", chance())),
    }
}

fn is_fit(id: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b':');
    !id.is_empty() && id.len() <= MAX_LENGTH && id.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_callers_id_is_kept_only_where_it_is_safe() {
        for (given, kept) in [
            ("req-77", true),
            ("3f2a:b_c.d", true),
            ("", false),
            ("a b", false),
            ("<script>", false),
            (&"x".repeat(129), false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(
                HEADER,
                HeaderValue::from_str(given).expect("a header value"),
            );
            let id = request_id(&headers, || 7);
            assert_eq!(id.as_str() == given, kept, "{given}");
        }
        assert_eq!(request_id(&HeaderMap::new(), || 7).as_str().len(), 4 + 32);
    }
}

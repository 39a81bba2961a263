//! What must hold for any input of the fuzz target; plain tests replay its corpus with it.

use std::time::SystemTime;

use backstop_classifier::{Class, Evidence, Family, HINT_MAX, HINT_MIN, classify};
use http::{HeaderMap, HeaderValue};

/// Reads the input as evidence and checks its verdict.
///
/// The first byte picks the family, the next two the status, the fourth what else there is (bit 0:
/// inside a stream, bit 1: no status, bit 2: the first line of the rest is a `retry-after`); the
/// rest is the body.
pub fn check(data: &[u8]) {
    let Some((&[family, high, low, flags], rest)) = data.split_first_chunk() else {
        return;
    };
    let family = Family::ALL[usize::from(family) % Family::ALL.len()];
    let status = 200 + u16::from_be_bytes([high, low]) % 400;
    let (hint, body) = if flags & 4 == 0 {
        (None, rest)
    } else {
        let end = rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
        (Some(&rest[..end]), &rest[end..])
    };
    let mut headers = HeaderMap::new();
    if let Some(value) = hint.and_then(|hint| HeaderValue::from_bytes(hint).ok()) {
        headers.insert("retry-after", value);
    }
    let evidence = Evidence {
        status: (flags & 2 == 0).then_some(status),
        in_stream: flags & 1 == 1,
        ..Evidence::response(family, status, body, SystemTime::UNIX_EPOCH)
    };
    let verdict = classify(&evidence.with_headers(&headers));

    assert_eq!(verdict.status, evidence.status);
    if let Some(wait) = verdict.retry_after {
        assert!((HINT_MIN..=HINT_MAX).contains(&wait));
    }
    if let Some(code) = verdict.code {
        let token = |b: u8| b.is_ascii_alphanumeric() || b"_.-".contains(&b);
        assert!(code.as_str().len() <= 64 && code.as_str().bytes().all(token));
    }
    // The classes that only the gateway's own clock and caller give.
    assert!(!matches!(verdict.class, Class::Timeout | Class::Cancelled));
    match verdict.status {
        Some(402) => assert_eq!(verdict.class, Class::Quota),
        Some(429) => assert!(matches!(verdict.class, Class::Quota | Class::RateLimit)),
        Some(401 | 403) => assert!(!matches!(
            verdict.class,
            Class::RateLimit | Class::Transient | Class::CallerFault
        )),
        _ => {}
    }
    // The same evidence gives the same verdict, and nothing of it needs the body's text.
    assert_eq!(classify(&evidence.with_headers(&headers)), verdict);
    let _ = (verdict.to_string(), verdict.fail_reason());
}

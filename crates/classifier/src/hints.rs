//! How long the provider asks to be left alone.
//!
//! Three explicit hints are read in this order: `google.rpc.RetryInfo` in the body,
//! `retry-after-ms`, `Retry-After` in seconds or as an HTTP date (RFC 9110 section 10.2.3). The first
//! that can be read wins. Prose and rate-limit reset headers are no hints: they say when a limit
//! refills, not how long this request must wait.

use std::time::{Duration, SystemTime};

use http::HeaderMap;

/// The shortest hint. A zero, or a date that has passed, still asks for a pause.
pub const HINT_MIN: Duration = Duration::from_secs(1);

/// The longest hint. Anything beyond is a matter for another key or another day.
pub const HINT_MAX: Duration = Duration::from_secs(300);

/// The hint of a failure: the body's first, then the headers'.
pub(crate) fn retry_after(
    body: Option<Duration>,
    headers: Option<&HeaderMap>,
    now: SystemTime,
) -> Option<Duration> {
    let hint = body.or_else(|| headers.and_then(|headers| from_headers(headers, now)))?;
    Some(hint.clamp(HINT_MIN, HINT_MAX))
}

/// `x-should-retry`, which Anthropic and OpenAI send to their own clients.
pub(crate) fn should_retry(headers: &HeaderMap) -> Option<bool> {
    match headers.get("x-should-retry")?.as_bytes() {
        b"true" => Some(true),
        b"false" => Some(false),
        _ => None,
    }
}

/// A protobuf duration in its JSON form: decimal seconds with an `s` behind them.
pub(crate) fn protobuf_duration(text: &str) -> Option<Duration> {
    amount(text.trim().strip_suffix('s')?, 1_000.0)
}

fn from_headers(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| Some(headers.get(name)?.to_str().ok()?.trim());
    if let Some(hint) = text("retry-after-ms").and_then(|value| amount(value, 1.0)) {
        return Some(hint);
    }
    let value = text("retry-after")?;
    amount(value, 1_000.0).or_else(|| {
        let at = httpdate::parse_http_date(value).ok()?;
        Some(at.duration_since(now).unwrap_or(Duration::ZERO))
    })
}

/// A decimal number without sign or exponent, in milliseconds; no more than [`HINT_MAX`].
fn amount(text: &str, millis: f64) -> Option<Duration> {
    let digits = |b: u8| b.is_ascii_digit() || b == b'.';
    if text.is_empty() || !text.bytes().all(digits) {
        return None;
    }
    let value: f64 = text.parse().ok()?;
    let value = (value * millis).min(300_000.0);
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 0 and 300,000; the fraction of a millisecond is meant to go"
    )]
    let whole = value as u64;
    Some(Duration::from_millis(whole))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn check(rows: &[(&'static str, &'static str)], want: Option<u64>) {
        let mut headers = HeaderMap::new();
        for (name, value) in rows {
            headers.insert(*name, HeaderValue::from_static(value));
        }
        let now = httpdate::parse_http_date("Mon, 30 Nov 2026 07:00:00 GMT").unwrap();
        let got = retry_after(None, Some(&headers), now);
        assert_eq!(got, want.map(Duration::from_millis), "{rows:?}");
    }

    #[test]
    fn header_hints() {
        check(&[], None);
        check(&[("retry-after", "42")], Some(42_000));
        check(&[("retry-after", "0")], Some(1_000));
        check(&[("retry-after", "2.5")], Some(2_500));
        check(&[("retry-after", "86400")], Some(300_000));
        check(
            &[("retry-after", "99999999999999999999999999")],
            Some(300_000),
        );
        check(&[("retry-after", "-5")], None);
        check(&[("retry-after", "soon")], None);
        check(&[("retry-after", "nan")], None);
        check(&[("retry-after", "inf")], None);
        check(&[("retry-after", "1e9")], None);
        check(&[("retry-after", ".")], None);
        check(&[("retry-after", "")], None);
        check(
            &[("retry-after", "Mon, 30 Nov 2026 07:00:42 GMT")],
            Some(42_000),
        );
        check(
            &[("retry-after", "Mon, 30 Nov 2026 06:00:00 GMT")],
            Some(1_000),
        );
        check(
            &[("retry-after", "Mon, 30 Nov 2026 09:00:00 GMT")],
            Some(300_000),
        );
        check(&[("retry-after-ms", "2750.5")], Some(2_750));
        check(
            &[("retry-after-ms", "1500"), ("retry-after", "60")],
            Some(1_500),
        );
        check(
            &[("retry-after-ms", "soon"), ("retry-after", "60")],
            Some(60_000),
        );
        check(&[("x-ratelimit-reset-tokens", "29.1s")], None);
    }

    #[test]
    fn body_hints() {
        assert_eq!(protobuf_duration("39s"), Some(Duration::from_secs(39)));
        assert_eq!(
            protobuf_duration("0.383s"),
            Some(Duration::from_millis(383))
        );
        assert_eq!(protobuf_duration("-1s"), None);
        assert_eq!(protobuf_duration("39"), None);
        assert_eq!(protobuf_duration("s"), None);
    }
}

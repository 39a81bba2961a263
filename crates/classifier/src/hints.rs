//! How long the provider asks to be left alone.
//!
//! Three explicit hints are read in this order: `google.rpc.RetryInfo` in the body,
//! `retry-after-ms`, `Retry-After` in seconds or as an HTTP date (RFC 9110 section 10.2.3). The first
//! that is present decides, also when it cannot be read: then there is no hint, since a provider
//! that garbles the one is not trusted with the other. Of a header that came twice the first line
//! counts. Prose and rate-limit reset headers are no hints: they say when a limit
//! refills, not how long this request must wait.

use std::time::{Duration, SystemTime};

use http::HeaderMap;

/// The shortest hint. A zero, or a date that has passed, still asks for a pause.
pub const HINT_MIN: Duration = Duration::from_secs(1);

/// The longest hint. Anything beyond is a matter for another key or another day.
pub const HINT_MAX: Duration = Duration::from_secs(300);

/// A hint that was present, and what it says: nothing, when it cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hint(Option<Duration>);

/// The hint of a failure: the body's first, then the headers'.
pub(crate) fn retry_after(
    body: Option<Hint>,
    headers: Option<&HeaderMap>,
    now: SystemTime,
) -> Option<Duration> {
    let Hint(hint) = body.or_else(|| headers.and_then(|headers| from_headers(headers, now)))?;
    Some(hint?.clamp(HINT_MIN, HINT_MAX))
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
pub(crate) fn protobuf_duration(text: &str) -> Hint {
    let seconds = text.trim().strip_suffix('s');
    Hint(seconds.and_then(|seconds| amount(seconds, 1_000.0)))
}

fn from_headers(headers: &HeaderMap, now: SystemTime) -> Option<Hint> {
    // A value that is not text is present all the same.
    let text = |name: &str| Some(headers.get(name)?.to_str().unwrap_or_default().trim());
    if let Some(value) = text("retry-after-ms") {
        return Some(Hint(amount(value, 1.0)));
    }
    let value = text("retry-after")?;
    let date = || {
        let at = httpdate::parse_http_date(value).ok()?;
        Some(at.duration_since(now).unwrap_or(Duration::ZERO))
    };
    Some(Hint(amount(value, 1_000.0).or_else(date)))
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
            headers.append(*name, HeaderValue::from_static(value));
        }
        let now = httpdate::parse_http_date("Mon, 30 Nov 2026 07:00:00 GMT").unwrap();
        let got = retry_after(None, Some(&headers), now);
        assert_eq!(got, want.map(Duration::from_millis), "{rows:?}");
    }

    #[test]
    fn retry_after_in_seconds_or_as_a_date() {
        for (value, want) in [
            ("42", Some(42_000)),
            ("0", Some(1_000)),
            ("0.4", Some(1_000)),
            ("2.5", Some(2_500)),
            ("  7  ", Some(7_000)),
            ("300", Some(300_000)),
            ("301", Some(300_000)),
            ("86400", Some(300_000)),
            ("99999999999999999999999999", Some(300_000)),
            ("Mon, 30 Nov 2026 07:00:42 GMT", Some(42_000)),
            ("Mon, 30 Nov 2026 07:00:00 GMT", Some(1_000)),
            ("Mon, 30 Nov 2026 06:00:00 GMT", Some(1_000)),
            ("Mon, 30 Nov 2026 09:00:00 GMT", Some(300_000)),
            ("Monday, 30-Nov-26 07:00:42 GMT", Some(42_000)),
            ("Mon Nov 30 07:00:42 2026", Some(42_000)),
            ("-5", None),
            ("+5", None),
            ("5s", None),
            ("5, 5", None),
            ("5 6", None),
            ("1e99", None),
            ("0x10", None),
            ("1.2.3", None),
            ("soon", None),
            ("nan", None),
            ("inf", None),
            (".", None),
            ("", None),
            ("   ", None),
            ("30 Nov 2026", None),
            ("2026-11-30T07:00:42Z", None),
        ] {
            check(&[("retry-after", value)], want);
        }
    }

    #[test]
    fn the_first_present_hint_decides() {
        check(&[], None);
        check(&[("x-ratelimit-reset-tokens", "29.1s")], None);
        check(
            &[("anthropic-ratelimit-tokens-reset", "2026-11-30T07:01:00Z")],
            None,
        );
        for (millis, want) in [
            ("1500", Some(1_500)),
            ("2750.5", Some(2_750)),
            ("0", Some(1_000)),
            ("99999999", Some(300_000)),
            // Present and unreadable: the seconds behind it are not asked.
            ("soon", None),
            ("-1", None),
            ("1e3", None),
            ("", None),
        ] {
            check(&[("retry-after-ms", millis), ("retry-after", "60")], want);
        }
        check(&[("retry-after", "7"), ("retry-after", "60")], Some(7_000));
        check(&[("retry-after", "soon"), ("retry-after", "60")], None);
    }

    #[test]
    fn the_hint_of_the_body_stands_before_the_headers() {
        let mut headers = HeaderMap::new();
        headers.insert("retry-after", HeaderValue::from_static("60"));
        for (delay, want) in [
            ("39s", Some(39_000)),
            ("1.5s", Some(1_500)),
            ("34.074824224s", Some(34_074)),
            ("0.383s", Some(1_000)),
            ("0s", Some(1_000)),
            ("3600s", Some(300_000)),
            ("-1s", None),
            ("39", None),
            ("s", None),
            ("", None),
        ] {
            let body = Some(protobuf_duration(delay));
            let got = retry_after(body, Some(&headers), SystemTime::UNIX_EPOCH);
            assert_eq!(got, want.map(Duration::from_millis), "{delay}");
        }
    }
}

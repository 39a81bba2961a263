//! Recorded failures as rows, and the check that each row gets its class.
//!
//! A row is one JSON object: what came over the wire, the class it should be given, and where it
//! was seen. The crate's own rows lie under `corpus/`; any tool can check a file of them:
//!
//! ```
//! use backstop_classifier::corpus::Row;
//!
//! let line = r#"{"id":"openai-429-plain-1","provider":"openai","status":429,"headers":{},
//!     "body":"","in_stream":false,"want":{"class":"rate_limit","retry_after_ms":null}}"#;
//! let row = Row::parse(line).unwrap();
//! assert_eq!(row.check(), Ok(()));
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};

use crate::decide::classify;
use crate::evidence::{Clock, Evidence, Family, Transport};
use crate::verdict::Verdict;

/// The provider name of endings without a response.
const LOCAL: &str = "gateway-local";

/// The header that is none: the clock against which a `Retry-After` date is read.
const TEST_NOW: &str = "x-test-now";

/// One recorded failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// Unique: provider, status, what it is, a number.
    pub id: String,
    /// A [`Family`] by name, or `gateway-local` for an ending without a response.
    pub provider: String,
    /// HTTP status as received; 0 without a response.
    pub status: u16,
    /// The response headers that matter, in lower case.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The body as text.
    #[serde(default)]
    pub body: String,
    /// The body's bytes, where they are no valid UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_base64: Option<String>,
    /// Whether the body is an event inside a stream that began with a 200.
    #[serde(default)]
    pub in_stream: bool,
    /// What ended the attempt, for `gateway-local` rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<String>,
    /// What the row should be given.
    pub want: Want,
    /// The classes that are also defensible; empty when only `want` is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accept: Vec<String>,
    /// Whether the class table leaves the row open.
    #[serde(default)]
    pub ambiguous: bool,
    /// Whether the body was built in a documented shape rather than seen.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub constructed: bool,
    /// Which signal decides.
    #[serde(default)]
    pub why: String,
    /// Where it was seen.
    #[serde(default)]
    pub source: String,
    /// The day it was written down, `YYYY-MM-DD`.
    #[serde(default)]
    pub date: String,
}

/// What a row should be given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Want {
    /// The class by name.
    pub class: String,
    /// The explicit hint in milliseconds, after clamping; absent without one.
    #[serde(default)]
    pub retry_after_ms: Option<u64>,
}

/// How a verdict differs from its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Difference {
    /// Whether the class is none of those the row takes.
    pub class: bool,
    /// Whether the hint differs.
    pub hint: bool,
    /// What came out.
    pub verdict: Verdict,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "got {}", self.verdict)?;
        if self.hint {
            write!(f, ", retry after {:?}", self.verdict.retry_after)?;
        }
        Ok(())
    }
}

impl Row {
    /// Reads one row from its JSON.
    ///
    /// # Errors
    /// When the text is not one row; the message names the field, never the body.
    pub fn parse(json: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(json)
    }

    /// Classifies the row; a `Retry-After` date is read against its `x-test-now`.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.verdict_at(SystemTime::UNIX_EPOCH)
    }

    /// The same, where a row without `x-test-now` was received at `now`.
    #[must_use]
    pub fn verdict_at(&self, now: SystemTime) -> Verdict {
        let family = Family::from_name(&self.provider).unwrap_or_default();
        let test_now = self.headers.get(TEST_NOW);
        let now = test_now
            .and_then(|at| httpdate::parse_http_date(at).ok())
            .unwrap_or(now);
        if self.provider == LOCAL {
            let name = self.transport.as_deref().unwrap_or_default();
            return classify(&Evidence::transport(family, transport(name), now));
        }
        let bytes = self.body_base64.as_deref().map(from_base64);
        let headers = self.header_map();
        classify(&Evidence {
            family,
            status: Some(self.status),
            headers: Some(&headers),
            body: bytes.as_deref().unwrap_or(self.body.as_bytes()),
            in_stream: self.in_stream,
            transport: None,
            now,
        })
    }

    /// Whether the row gets its class, or one it accepts, and its hint.
    ///
    /// # Errors
    /// With what differs.
    pub fn check(&self) -> Result<(), Box<Difference>> {
        let verdict = self.verdict();
        let got = verdict.class.name();
        let class = got != self.want.class && !self.accept.iter().any(|class| class == got);
        let hint = verdict.retry_after != self.want.retry_after_ms.map(Duration::from_millis);
        if class || hint {
            return Err(Box::new(Difference {
                class,
                hint,
                verdict,
            }));
        }
        Ok(())
    }

    /// The classes that are right, the preferred one first: `quota` or `quota|rate_limit`.
    #[must_use]
    pub fn wanted(&self) -> String {
        let mut wanted = self.want.class.clone();
        for class in self
            .accept
            .iter()
            .filter(|class| **class != self.want.class)
        {
            wanted.push('|');
            wanted.push_str(class);
        }
        wanted
    }

    fn header_map(&self) -> HeaderMap {
        let pairs = self.headers.iter().filter_map(|(name, value)| {
            let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
            Some((name, HeaderValue::from_str(value).ok()?))
        });
        pairs.collect()
    }
}

/// The transport error of a corpus name.
fn transport(name: &str) -> Transport {
    match name {
        "dns_failure" | "dns_timeout" => Transport::Dns,
        "connect_refused" | "connection_refused" => Transport::Refused,
        "host_unreachable" | "network_unreachable" => Transport::Unreachable,
        "connect_timeout" => Transport::Timeout(Clock::Connect),
        "tls_name_mismatch" => Transport::TlsName,
        "tls_untrusted" | "tls_expired" => Transport::TlsTrust,
        name if name.starts_with("tls") => Transport::Tls,
        "reset_before_headers" | "connection_reset" => Transport::ResetBeforeResponse,
        "closed_before_headers" | "eof_before_headers" => Transport::ClosedBeforeResponse,
        "eof_in_body" | "reset_in_body" | "upstream_cut" => Transport::CutBody,
        "request_timeout" | "headers_timeout" => Transport::Timeout(Clock::Headers),
        "ttft_timeout" => Transport::Timeout(Clock::FirstOutput),
        "idle_timeout" | "stream_idle_timeout" => Transport::Timeout(Clock::Idle),
        "request_deadline" => Transport::Timeout(Clock::Deadline),
        "goaway" | "refused_stream" | "not_processed" => Transport::NotProcessed,
        name if name.starts_with("caller") => Transport::CallerGone,
        name if name.contains("reset") => Transport::ResetBeforeResponse,
        name if name.contains("eof") || name.contains("cut") => Transport::CutBody,
        name if name.contains("timeout") => Transport::Timeout(Clock::Headers),
        _ => Transport::Http,
    }
}

/// Base64 in the standard alphabet; padding and line breaks are skipped.
fn from_base64(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let mut held = 0_u32;
    let mut bits = 0;
    for b in text.bytes() {
        let six = match b {
            b'A'..=b'Z' => b - b'A',
            b'a'..=b'z' => b - b'a' + 26,
            b'0'..=b'9' => b - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => continue,
        };
        held = held << 6 | u32::from(six);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push(
                (held >> bits & 0xFF)
                    .try_into()
                    .expect("eight bits are a byte"),
            );
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_reads_back() {
        assert_eq!(from_base64("eyJhIjoi/yJ9"), b"{\"a\":\"\xFF\"}");
        assert_eq!(from_base64("YQ=="), b"a");
        assert_eq!(from_base64(""), b"");
    }

    #[test]
    fn every_provider_name_of_the_families_reads_back() {
        for family in Family::ALL {
            assert_eq!(Family::from_name(family.name()), Some(*family));
        }
    }
}

//! A raw response, as people have it at hand.

use std::fmt;

use backstop_classifier::corpus::Row;
use http::{HeaderMap, HeaderName, HeaderValue};

/// What was handed in.
#[derive(Debug)]
pub(super) enum Input<'a> {
    /// A response with its status.
    Response(Response<'a>),
    /// A line of a failure corpus, or one in its format.
    Row(Box<Row>),
}

/// A response with its status, and headers where they were there.
#[derive(Debug)]
pub(super) struct Response<'a> {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: &'a [u8],
}

/// Why the input is no response; the message says what to do instead.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// Nothing but space.
    Empty,
    /// A body alone.
    NoStatus,
    /// A response that names a status, and `--status` with it.
    TwoStatuses,
    /// The first line begins like a status line and is none.
    StatusLine,
    /// A line among the headers, counted from 1, is no header.
    Header(usize),
    /// The body's bytes are still compressed.
    Compressed,
    /// More than one row.
    Rows,
    /// A row whose fields are of other types.
    Row(&'static str),
}

impl std::error::Error for Unusable {}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str(
                "the input is empty; hand in what `curl -i` printed, or give --status for a response without a body",
            ),
            Self::NoStatus => f.write_str(
                "the input has no status line; add --status (say, --status 429), or --in-stream for an error event, or hand in what `curl -i` printed",
            ),
            Self::TwoStatuses => f.write_str(
                "the response has a status line of its own; leave out --status",
            ),
            Self::StatusLine => f.write_str(
                "the first line is no status line; it should read like `HTTP/1.1 429 Too Many Requests` or `HTTP/2 429`",
            ),
            Self::Header(line) => write!(
                f,
                "line {line} is no header; headers are `name: value`, and an empty line stands between them and the body",
            ),
            Self::Compressed => f.write_str(
                "the body is still compressed; run curl again with --compressed",
            ),
            Self::Rows => f.write_str(
                "several JSON lines; hand in one (`sed -n 3p FILE | backstop classify`)",
            ),
            Self::Row(what) => write!(
                f,
                "the JSON line is not read: {what}; it should have `status` (a number), and may have `provider`, `headers`, `body`, `in_stream`",
            ),
        }
    }
}

/// Reads a response in whichever form it came.
pub(super) fn read(
    bytes: &[u8],
    status: Option<u16>,
    in_stream: bool,
) -> Result<Input<'_>, Unusable> {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let opening = bytes.trim_ascii_start();
    if opening.starts_with(b"HTTP/") {
        if status.is_some() {
            return Err(Unusable::TwoStatuses);
        }
        let before = bytes.len() - opening.len();
        let line = 1 + lines_in(&bytes[..before]);
        return response(opening, line).map(Input::Response);
    }
    // An event of a stream has the 200 that the stream began with.
    if let Some(status) = status.or(in_stream.then_some(200)) {
        return Ok(Input::Response(Response {
            status,
            headers: HeaderMap::new(),
            body: bytes,
        }));
    }
    if opening.is_empty() {
        return Err(Unusable::Empty);
    }
    row(opening)?.map(Input::Row).ok_or(Unusable::NoStatus)
}

fn lines_in(bytes: &[u8]) -> usize {
    bytes.iter().filter(|b| **b == b'\n').count()
}

/// What `curl -i` printed. Of several header blocks (`100 Continue`, a proxy's `CONNECT`, redirects
/// that `-L` followed) the last one counts, with the body behind it.
fn response(bytes: &[u8], first_line: usize) -> Result<Response<'_>, Unusable> {
    let mut rest = bytes;
    let mut line = first_line;
    loop {
        let (status, after) = status_line(rest).ok_or(Unusable::StatusLine)?;
        rest = after;
        line += 1;
        let mut headers = HeaderMap::new();
        loop {
            let (text, after) = cut_line(rest);
            if text.is_empty() {
                rest = after;
                line += 1;
                break;
            }
            let (name, value) = header(text).ok_or(Unusable::Header(line))?;
            headers.append(name, value);
            rest = after;
            line += 1;
        }
        if !rest.starts_with(b"HTTP/") || status_line(rest).is_none() {
            let encoded = headers.contains_key(http::header::CONTENT_ENCODING);
            if encoded && std::str::from_utf8(rest).is_err() {
                return Err(Unusable::Compressed);
            }
            return Ok(Response {
                status,
                headers,
                body: rest,
            });
        }
    }
}

/// `HTTP/1.1 429 Too Many Requests` or `HTTP/2 429`, and what stands behind its line.
fn status_line(bytes: &[u8]) -> Option<(u16, &[u8])> {
    let (line, rest) = cut_line(bytes);
    let line = std::str::from_utf8(line).ok()?;
    let mut words = line.split_ascii_whitespace();
    words.next()?.strip_prefix("HTTP/")?;
    let status = words.next()?.parse().ok()?;
    (100..=999).contains(&status).then_some((status, rest))
}

/// A line without its end, and what follows.
fn cut_line(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes.iter().position(|b| *b == b'\n');
    let (line, rest) = end.map_or((bytes, &bytes[bytes.len()..]), |end| {
        (&bytes[..end], &bytes[end + 1..])
    });
    (line.strip_suffix(b"\r").unwrap_or(line), rest)
}

fn header(line: &[u8]) -> Option<(HeaderName, HeaderValue)> {
    let colon = line.iter().position(|b| *b == b':')?;
    let name = HeaderName::from_bytes(&line[..colon]).ok()?;
    let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii()).ok()?;
    Some((name, value))
}

/// A line of the corpus format, with or without what a corpus needs besides; `None` for any other
/// body.
fn row(text: &[u8]) -> Result<Option<Box<Row>>, Unusable> {
    let mut values = serde_json::Deserializer::from_slice(text).into_iter::<serde_json::Value>();
    let Some(Ok(serde_json::Value::Object(mut fields))) = values.next() else {
        return Ok(None);
    };
    // A provider's own body may hold a `status`; it holds no body of its own.
    let is_row = fields.contains_key("status")
        && ["body", "body_base64", "headers", "transport"]
            .iter()
            .any(|name| fields.contains_key(*name));
    if !is_row {
        return Ok(None);
    }
    if values.next().is_some() {
        return Err(Unusable::Rows);
    }
    let transport = fields.contains_key("transport");
    let provider = if transport {
        "gateway-local"
    } else {
        "general"
    };
    for (name, value) in [
        ("id", serde_json::json!("")),
        ("provider", serde_json::json!(provider)),
        ("want", serde_json::json!({"class": ""})),
    ] {
        fields.entry(name).or_insert(value);
    }
    let row = serde_json::from_value(serde_json::Value::Object(fields));
    // The message may quote a value, so only what kind of fault it is is told.
    row.map(|row| Some(Box::new(row))).map_err(|error| {
        Unusable::Row(match error.classify() {
            serde_json::error::Category::Data => "a field is missing or of another type",
            _ => "it is not JSON",
        })
    })
}

#[cfg(test)]
mod tests;

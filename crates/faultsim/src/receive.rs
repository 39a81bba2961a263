//! Reading one HTTP/1.1 request off a connection.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_LENGTH, EXPECT, HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;

use crate::conn::Conn;

/// The longest request head.
const MAX_HEAD: usize = 64 * 1024;
/// The longest request body: twice the gateway's own default limit.
const MAX_BODY: usize = 64 << 20;

/// A request as it came.
pub(crate) struct Received {
    /// When its first byte was there.
    pub(crate) arrived: Instant,
    pub(crate) method: String,
    /// Path and query.
    pub(crate) target: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// Why no request was received.
pub(crate) enum NoRequest {
    /// The peer left between requests.
    Left,
    /// Nothing came in the time allowed for it.
    Idle,
    /// What came is no request.
    Broken(Broken),
}

/// What was wrong with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// The connection ended inside it.
    Unfinished,
    /// Its head is not HTTP/1.1, or longer than 64 KiB.
    Head,
    /// Its body has no valid framing, or is longer than 64 MiB.
    Body,
}

type Io<T> = Result<T, Broken>;

/// Waits for the next request, for at most `idle` until its first byte.
pub(crate) async fn receive<I: AsyncRead + AsyncWrite + Unpin>(
    conn: &mut Conn<I>,
    idle: Option<Duration>,
) -> Result<Received, NoRequest> {
    if conn.input().is_empty() {
        let first = match idle {
            None => conn.fill().await,
            Some(idle) => tokio::time::timeout(idle, conn.fill())
                .await
                .map_err(|_| NoRequest::Idle)?,
        };
        first.map_err(|_| NoRequest::Left)?;
    }
    request(conn).await.map_err(NoRequest::Broken)
}

async fn request<I: AsyncRead + AsyncWrite + Unpin>(conn: &mut Conn<I>) -> Io<Received> {
    let arrived = Instant::now();
    let head = until(conn, b"\r\n\r\n", MAX_HEAD, Broken::Head).await?;
    let (method, target, headers) = parse_head(&head).ok_or(Broken::Head)?;
    if headers
        .get(EXPECT)
        .is_some_and(|value| value == "100-continue")
    {
        let _ = conn.write(b"HTTP/1.1 100 Continue\r\n\r\n").await;
    }
    let body = if headers.contains_key(TRANSFER_ENCODING) {
        if headers[TRANSFER_ENCODING] != "chunked" || headers.contains_key(CONTENT_LENGTH) {
            return Err(Broken::Body);
        }
        chunked(conn).await?
    } else {
        let length = match headers.get(CONTENT_LENGTH) {
            None => 0,
            Some(length) => length
                .to_str()
                .ok()
                .and_then(|text| text.parse().ok())
                .ok_or(Broken::Body)?,
        };
        if length > MAX_BODY {
            return Err(Broken::Body);
        }
        exactly(conn, length).await?
    };
    Ok(Received {
        arrived,
        method,
        target,
        headers,
        body,
    })
}

fn parse_head(head: &[u8]) -> Option<(String, String, HeaderMap)> {
    let mut lines = head
        .strip_suffix(b"\r\n\r\n")?
        .split(|byte| *byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let first = std::str::from_utf8(lines.next()?).ok()?;
    let mut words = first.split(' ');
    let (method, target, version) = (words.next()?, words.next()?, words.next()?);
    if method.is_empty() || target.is_empty() || version != "HTTP/1.1" || words.next().is_some() {
        return None;
    }
    let mut headers = HeaderMap::new();
    for line in lines {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let name = HeaderName::from_bytes(&line[..colon]).ok()?;
        let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii()).ok()?;
        headers.append(name, value);
    }
    Some((method.to_owned(), target.to_owned(), headers))
}

async fn chunked<I: AsyncRead + AsyncWrite + Unpin>(conn: &mut Conn<I>) -> Io<Bytes> {
    let mut body = BytesMut::new();
    loop {
        let line = until(conn, b"\r\n", 1024, Broken::Body).await?;
        let text = std::str::from_utf8(&line).map_err(|_| Broken::Body)?;
        let size = text.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(size, 16).map_err(|_| Broken::Body)?;
        if size > MAX_BODY || body.len() + size > MAX_BODY {
            return Err(Broken::Body);
        }
        if size == 0 {
            break;
        }
        let chunk = exactly(conn, size + 2).await?;
        body.extend_from_slice(chunk.strip_suffix(b"\r\n").ok_or(Broken::Body)?);
    }
    while until(conn, b"\r\n", MAX_HEAD, Broken::Body).await?.len() > 2 {}
    Ok(body.freeze())
}

/// The input up to and including `mark`.
async fn until<I: AsyncRead + AsyncWrite + Unpin>(
    conn: &mut Conn<I>,
    mark: &[u8],
    limit: usize,
    over: Broken,
) -> Io<Bytes> {
    let mut seen = 0;
    loop {
        let found = conn.input()[seen..]
            .windows(mark.len())
            .position(|window| window == mark);
        if let Some(at) = found {
            let end = seen + at + mark.len();
            return if end > limit {
                Err(over)
            } else {
                Ok(conn.take(end))
            };
        }
        if conn.input().len() > limit {
            return Err(over);
        }
        seen = conn.input().len().saturating_sub(mark.len() - 1);
        conn.fill().await.map_err(|_| Broken::Unfinished)?;
    }
}

async fn exactly<I: AsyncRead + AsyncWrite + Unpin>(conn: &mut Conn<I>, count: usize) -> Io<Bytes> {
    while conn.input().len() < count {
        conn.fill().await.map_err(|_| Broken::Unfinished)?;
    }
    Ok(conn.take(count))
}

//! An HTTP/1.1 client by hand: it shows every byte, breaks the rules and leaves when it likes.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use backstop_upstream::BoxIo;
use bytes::{Buf, Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::patience::soon;
use crate::sse::{self, Event};

/// A request to be made, on a connection of its own.
#[derive(Debug, Clone)]
pub struct Call {
    address: SocketAddr,
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    chunk: Option<usize>,
}

impl Call {
    pub(crate) fn new(address: SocketAddr, method: &str, path: &str) -> Self {
        Self {
            address,
            method: method.to_owned(),
            path: path.to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
            chunk: None,
        }
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets the body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// Sends the body in chunks of this size, its length not announced.
    #[must_use]
    pub const fn chunked(mut self, size: usize) -> Self {
        self.chunk = Some(size);
        self
    }

    /// Sends the request and reads the whole answer.
    pub async fn send(&self) -> Answer {
        let live = self.open().await;
        soon("the whole answer", live.whole()).await
    }

    /// Sends the request and reads the head of the answer.
    ///
    /// # Panics
    /// When none comes.
    pub async fn open(&self) -> Live {
        let peer = self.start().await;
        soon("the answer's head", Live::of(peer)).await
    }

    /// Sends the request and reads nothing: what is returned may be dropped, which is a hang-up.
    pub async fn start(&self) -> Peer {
        let mut peer = Peer::connect(self.address).await;
        peer.write(&self.wire()).await;
        peer
    }

    /// Sends the request on a connection that is there, and reads the whole answer.
    ///
    /// # Panics
    /// When none comes.
    pub async fn send_on(&self, mut peer: Peer) -> (Answer, Peer) {
        peer.write(&self.wire()).await;
        let mut live = soon("the answer's head", Live::of(peer)).await;
        let answer = soon("the whole answer", live.read_whole()).await;
        (answer, live.peer)
    }

    /// The bytes of the request.
    pub(crate) fn wire(&self) -> Vec<u8> {
        let mut request = format!(
            "{} {} HTTP/1.1\r\nhost: gateway\r\n",
            self.method, self.path
        );
        for (name, value) in &self.headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        if self.chunk.is_some() {
            request.push_str("transfer-encoding: chunked\r\n");
        } else if self.method != "GET" || !self.body.is_empty() {
            request.push_str(&format!("content-length: {}\r\n", self.body.len()));
        }
        request.push_str("\r\n");
        let mut wire = request.into_bytes();
        match self.chunk {
            None => wire.extend_from_slice(&self.body),
            Some(size) => {
                for chunk in self.body.chunks(size) {
                    wire.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                    wire.extend_from_slice(chunk);
                    wire.extend_from_slice(b"\r\n");
                }
                wire.extend_from_slice(b"0\r\n\r\n");
            }
        }
        wire
    }
}

/// A caller's end of a connection. Dropping it is a hang-up.
pub struct Peer {
    stream: BoxIo,
    input: BytesMut,
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unread = self.input.len();
        f.debug_struct("Peer")
            .field("unread", &unread)
            .finish_non_exhaustive()
    }
}

impl Peer {
    /// A new connection.
    ///
    /// # Panics
    /// When it is refused.
    pub async fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.expect("a listener");
        Self::over(Box::new(stream))
    }

    /// The caller's end of a connection that is there.
    pub(crate) fn over(stream: BoxIo) -> Self {
        Self {
            stream,
            input: BytesMut::new(),
        }
    }

    /// Writes bytes; a peer that no longer reads is not an error here, since its answer may say
    /// why.
    pub async fn write(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes).await;
    }

    /// Says that nothing more will be written.
    pub async fn finish(&mut self) {
        let _ = self.stream.shutdown().await;
    }

    /// Everything up to the end of the connection.
    pub async fn rest(&mut self) -> Bytes {
        while self.fill().await.is_ok() {}
        self.input.split().freeze()
    }

    async fn fill(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.input).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    async fn line(&mut self) -> io::Result<String> {
        loop {
            if let Some(end) = self.input.windows(2).position(|two| two == b"\r\n") {
                let line = String::from_utf8_lossy(&self.input[..end]).into_owned();
                self.input.advance(end + 2);
                return Ok(line);
            }
            self.fill().await?;
        }
    }

    async fn head(&mut self) -> io::Result<(u16, HeaderMap)> {
        let status = self.line().await?;
        let status = status
            .split(' ')
            .nth(1)
            .and_then(|code| code.parse().ok())
            .ok_or(io::ErrorKind::InvalidData)?;
        let mut headers = HeaderMap::new();
        loop {
            let line = self.line().await?;
            if line.is_empty() {
                return Ok((status, headers));
            }
            let (name, value) = line.split_once(':').ok_or(io::ErrorKind::InvalidData)?;
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(io::Error::other)?;
            let value = HeaderValue::from_str(value.trim()).map_err(io::Error::other)?;
            headers.append(name, value);
        }
    }
}

/// How the end of a body is known.
#[derive(Debug, Clone, Copy)]
enum Framing {
    Length(usize),
    Chunked { first: bool },
    UntilClose,
}

impl Framing {
    fn of(headers: &HeaderMap) -> Self {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        if text("transfer-encoding").is_some_and(|coding| coding.contains("chunked")) {
            return Self::Chunked { first: true };
        }
        text("content-length")
            .and_then(|length| length.parse().ok())
            .map_or(Self::UntilClose, Self::Length)
    }
}

/// An answer that is still coming. Dropping it is a hang-up.
#[derive(Debug)]
pub struct Live {
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    peer: Peer,
    framing: Framing,
    /// Bytes of the body that make no whole event yet.
    seen: BytesMut,
}

impl Live {
    async fn of(peer: Peer) -> Self {
        Self::begin(peer).await.expect("a head")
    }

    /// Reads the head.
    ///
    /// # Errors
    /// When none comes.
    pub(crate) async fn begin(mut peer: Peer) -> io::Result<Self> {
        let (status, headers) = peer.head().await?;
        let framing = Framing::of(&headers);
        Ok(Self {
            status,
            headers,
            peer,
            framing,
            seen: BytesMut::new(),
        })
    }

    /// The next bytes of the body; `None` at its proper end.
    ///
    /// # Errors
    /// When the connection ends before the body does.
    pub async fn chunk(&mut self) -> io::Result<Option<Bytes>> {
        match &mut self.framing {
            Framing::Length(0) => Ok(None),
            Framing::Length(left) => {
                if self.peer.input.is_empty() {
                    self.peer.fill().await?;
                }
                let size = self.peer.input.len().min(*left);
                *left -= size;
                Ok(Some(self.peer.input.split_to(size).freeze()))
            }
            Framing::UntilClose => {
                if self.peer.input.is_empty() && self.peer.fill().await.is_err() {
                    return Ok(None);
                }
                Ok(Some(self.peer.input.split().freeze()))
            }
            Framing::Chunked { first } => {
                if !std::mem::replace(first, false) {
                    self.peer.line().await?;
                }
                let size = self.peer.line().await?;
                let size = usize::from_str_radix(size.trim(), 16).map_err(io::Error::other)?;
                if size == 0 {
                    while !self.peer.line().await?.is_empty() {}
                    self.framing = Framing::Length(0);
                    return Ok(None);
                }
                while self.peer.input.len() < size {
                    self.peer.fill().await?;
                }
                Ok(Some(self.peer.input.split_to(size).freeze()))
            }
        }
    }

    /// The next event with data; `None` at the proper end of the stream.
    ///
    /// # Panics
    /// When the connection breaks, or no event comes.
    pub async fn event(&mut self) -> Option<Event> {
        loop {
            if let Some(end) = self.seen.windows(2).position(|two| two == b"\n\n") {
                let block = self.seen.split_to(end + 2);
                if let Some(event) = sse::events(&block).pop() {
                    return Some(event);
                }
                continue;
            }
            let chunk = soon("the next event", self.chunk()).await;
            self.seen
                .extend_from_slice(&chunk.expect("a stream that does not break")?);
        }
    }

    /// The whole answer.
    ///
    /// # Panics
    /// When the connection breaks.
    pub async fn whole(mut self) -> Answer {
        self.read_whole().await
    }

    async fn read_whole(&mut self) -> Answer {
        let mut body = self.seen.split();
        while let Some(chunk) = self.chunk().await.expect("a body that does not break") {
            body.extend_from_slice(&chunk);
        }
        Answer {
            status: self.status,
            headers: std::mem::take(&mut self.headers),
            body: body.freeze(),
        }
    }

    /// The header `name`; empty when it is not there.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        header(&self.headers, name)
    }
}

/// A whole answer.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, unframed.
    pub body: Bytes,
}

impl Answer {
    /// The header `name`; empty when it is not there.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        header(&self.headers, name)
    }

    /// The request id.
    #[must_use]
    pub fn id(&self) -> &str {
        self.header("x-request-id")
    }

    /// The body as text.
    ///
    /// # Panics
    /// When it is none.
    #[must_use]
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("a body of text")
    }

    /// The body as JSON; `Null` when it is none.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    /// The rows of the attempt trail.
    ///
    /// # Panics
    /// When the answer has none.
    #[must_use]
    pub fn trail(&self) -> Vec<Value> {
        match &self.json()["extra_fields"]["attempt_trail"] {
            Value::Array(rows) => rows.clone(),
            _ => panic!("no trail in {}", self.text()),
        }
    }

    /// The error's code; empty when there is none.
    #[must_use]
    pub fn code(&self) -> String {
        let code = &self.json()["error"]["code"];
        code.as_str().unwrap_or_default().to_owned()
    }

    /// What the assistant said, in either dialect, streamed or not.
    #[must_use]
    pub fn said(&self) -> String {
        let body = self.json();
        let whole = body["choices"][0]["message"]["content"]
            .as_str()
            .or_else(|| body["content"][0]["text"].as_str());
        match whole {
            Some(text) => text.to_owned(),
            None => self.events().iter().map(Event::text).collect(),
        }
    }

    /// The events of a streamed body.
    #[must_use]
    pub fn events(&self) -> Vec<Event> {
        sse::events(&self.body)
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default()
}

//! A caller that reads whatever comes, however it is broken, and says what it heard.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// How long an answer may take. Far above every clock that a soak sets.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a caller sends.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    pub(crate) path: &'static str,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: String,
}

impl Ask {
    /// The bytes of the request, on a connection for this request alone.
    pub(crate) fn wire(&self) -> Vec<u8> {
        let mut head = format!(
            "POST {} HTTP/1.1\r\nhost: gateway\r\ncontent-type: application/json\r\n\
             connection: close\r\ncontent-length: {}\r\n",
            self.path,
            self.body.len()
        );
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        head.push_str(&self.body);
        head.into_bytes()
    }

    /// Sends the request and hears the answer to its end.
    pub(crate) async fn hear(&self, address: SocketAddr) -> Heard {
        let mut bytes = Vec::new();
        let heard = timeout(PATIENCE, async {
            let mut socket = TcpStream::connect(address).await?;
            socket.write_all(&self.wire()).await?;
            socket.read_to_end(&mut bytes).await
        });
        let end = match heard.await {
            Err(_) => Some("the answer did not end".to_owned()),
            Ok(Err(error)) => Some(format!("the connection broke: {error}")),
            Ok(Ok(_)) => None,
        };
        Heard::of(&bytes, end)
    }
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Heard {
    pub(crate) status: u16,
    pub(crate) body: String,
    /// Why the answer is not even an HTTP answer.
    pub(crate) broken: Option<String>,
    /// The events of a stream.
    pub(crate) events: Vec<String>,
    /// Bytes behind the last event.
    pub(crate) stump: bool,
}

impl Heard {
    fn of(bytes: &[u8], broken: Option<String>) -> Self {
        let mut heard = Self {
            status: 0,
            body: String::new(),
            broken,
            events: Vec::new(),
            stump: false,
        };
        let Some(head) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
            heard
                .broken
                .get_or_insert_with(|| "closed without an answer".to_owned());
            return heard;
        };
        let text = String::from_utf8_lossy(&bytes[..head]).to_ascii_lowercase();
        let status = text.split(' ').nth(1).and_then(|code| code.parse().ok());
        heard.status = status.unwrap_or(0);
        let body = &bytes[head + 4..];
        let (body, whole) = if text.contains("transfer-encoding: chunked") {
            unchunk(body)
        } else {
            let length = text
                .split_once("content-length: ")
                .and_then(|(_, rest)| rest.lines().next()?.trim().parse::<usize>().ok());
            (body.to_vec(), length == Some(body.len()))
        };
        if !whole {
            heard
                .broken
                .get_or_insert_with(|| "the body is not whole".to_owned());
        }
        match String::from_utf8(body) {
            Ok(body) => heard.body = body,
            Err(bad) => {
                heard.body = String::from_utf8_lossy(bad.as_bytes()).into_owned();
                heard
                    .broken
                    .get_or_insert_with(|| "the body is not UTF-8".to_owned());
            }
        }
        if heard.status == 200 && text.contains("text/event-stream") {
            let lines = heard.body.replace("\r\n", "\n");
            heard.stump = !lines.is_empty() && !lines.ends_with("\n\n");
            heard.events = lines.split("\n\n").filter_map(data).collect();
        }
        heard
    }

    /// What was said, in either dialect.
    pub(crate) fn said(&self) -> String {
        self.values().filter_map(|value| said(&value)).collect()
    }

    /// Whether an end marker was heard.
    pub(crate) fn is_done(&self) -> bool {
        self.events.iter().any(|data| {
            data == "[DONE]"
                || serde_json::from_str(data).is_ok_and(|v: Value| v["type"] == "message_stop")
        })
    }

    /// Whether a reason for the end was heard.
    pub(crate) fn has_reason(&self) -> bool {
        self.values().any(|value| {
            value["choices"][0]["finish_reason"].is_string()
                || value["delta"]["stop_reason"].is_string()
        })
    }

    /// The places of error events among the events.
    pub(crate) fn errors(&self) -> Vec<usize> {
        let errors = self.events.iter().enumerate().filter(|(_, data)| {
            serde_json::from_str(data).is_ok_and(|value: Value| !value["error"].is_null())
        });
        errors.map(|(place, _)| place).collect()
    }

    fn values(&self) -> impl Iterator<Item = Value> {
        self.events
            .iter()
            .filter_map(|data| serde_json::from_str(data).ok())
    }
}

/// The text or the tool arguments in one event.
fn said(value: &Value) -> Option<String> {
    let delta = &value["choices"][0]["delta"];
    let text = delta["content"]
        .as_str()
        .or_else(|| delta["tool_calls"][0]["function"]["arguments"].as_str())
        .or_else(|| value["delta"]["text"].as_str())
        .or_else(|| value["delta"]["partial_json"].as_str());
    text.map(str::to_owned)
}

/// The data of an event; `None` where it has none.
fn data(block: &str) -> Option<String> {
    let lines: Vec<&str> = block
        .lines()
        .filter_map(|line| line.strip_prefix("data:"))
        .map(|line| line.strip_prefix(' ').unwrap_or(line))
        .collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Undoes chunked framing, and says whether it came to its end.
fn unchunk(mut rest: &[u8]) -> (Vec<u8>, bool) {
    let mut out = Vec::new();
    loop {
        let Some(end) = rest.windows(2).position(|two| two == b"\r\n") else {
            return (out, false);
        };
        let size = std::str::from_utf8(&rest[..end])
            .ok()
            .and_then(|text| usize::from_str_radix(text.trim(), 16).ok());
        let (Some(size), start) = (size, end + 2) else {
            return (out, false);
        };
        if size == 0 {
            return (out, true);
        }
        let Some(chunk) = rest.get(start..start + size) else {
            out.extend_from_slice(&rest[start.min(rest.len())..]);
            return (out, false);
        };
        out.extend_from_slice(chunk);
        rest = rest.get(start + size + 2..).unwrap_or_default();
    }
}

/// How a caller leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leave {
    /// It closes its socket.
    Close,
    /// It resets the connection, as a killed process may.
    Reset,
}

/// A caller that will leave.
pub(crate) struct Leaver {
    socket: TcpStream,
    pub(crate) heard: usize,
}

impl Leaver {
    pub(crate) async fn connect(address: SocketAddr) -> io::Result<Self> {
        let socket = TcpStream::connect(address).await?;
        socket.set_nodelay(true)?;
        Ok(Self { socket, heard: 0 })
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.socket.write_all(bytes).await
    }

    /// Reads until so many bytes of the answer were heard, or it ends.
    pub(crate) async fn hear(&mut self, bytes: usize) -> io::Result<()> {
        let mut some = [0; 4096];
        while self.heard < bytes {
            match self.socket.read(&mut some).await? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => self.heard += count,
            }
        }
        Ok(())
    }

    pub(crate) fn leave(self, how: Leave) {
        if how == Leave::Reset {
            let _ = self.socket.set_zero_linger();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_heard_is_told_as_it_is() {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
                    transfer-encoding: chunked\r\n\r\n";
        let event = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
        let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
        let whole = format!(
            "{head}{}{}0\r\n\r\n",
            chunk(event),
            chunk("data: [DONE]\n\n")
        );
        let heard = Heard::of(whole.as_bytes(), None);
        assert_eq!((heard.said().as_str(), heard.is_done()), ("a", true));
        assert!(heard.broken.is_none() && !heard.stump && heard.errors().is_empty());

        let cut = Heard::of(format!("{head}{}", chunk(event)).as_bytes(), None);
        assert!(cut.broken.is_some() && !cut.is_done());
        let stump = format!(
            "{head}{}0\r\n\r\n",
            chunk("data: {\"error\":{}}\n\ndata: x")
        );
        let stump = Heard::of(stump.as_bytes(), None);
        assert_eq!((stump.stump, stump.errors()), (true, vec![0]));
        assert!(Heard::of(b"", None).broken.is_some());
    }
}

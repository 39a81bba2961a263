//! The caller: one HTTP/1.1 request over a plain socket, read as a client would.

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Duration, timeout};

/// What the caller sends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ask {
    /// The route.
    pub(crate) model: &'static str,
    /// Whether it asks for a stream.
    pub(crate) stream: bool,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) request_id: String,
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
    stream: bool,
}

/// Sends one request and reads the answer to its end.
pub(crate) async fn ask(address: &str, ask: &Ask) -> Result<Seen> {
    let request_id = "demo".to_owned();
    let body = json!({
        "model": ask.model,
        "stream": ask.stream,
        "messages": [{"role": "user", "content": "Say hello."}],
    })
    .to_string();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
         x-request-id: {request_id}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let mut socket = TcpStream::connect(address)
        .await
        .context("the gateway is not there")?;
    socket.write_all(head.as_bytes()).await?;
    socket.write_all(body.as_bytes()).await?;
    let mut answer = Vec::new();
    timeout(Duration::from_secs(30), socket.read_to_end(&mut answer))
        .await
        .context("the gateway did not answer within 30 s")??;
    parse(&answer, request_id, ask.stream)
}

fn parse(answer: &[u8], request_id: String, stream: bool) -> Result<Seen> {
    let Some(end) = answer.windows(4).position(|four| four == b"\r\n\r\n") else {
        bail!("the gateway closed without an answer");
    };
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    let mut lines = head.lines();
    let status = lines
        .next()
        .and_then(|line| line.split(' ').nth(1)?.parse().ok())
        .context("no status line")?;
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let chunked = headers
        .iter()
        .any(|(name, value)| name == "transfer-encoding" && value.eq_ignore_ascii_case("chunked"));
    let body = &answer[end + 4..];
    let body = if chunked {
        unchunk(body)
    } else {
        body.to_vec()
    };
    let body = String::from_utf8_lossy(&body).into_owned();
    Ok(Seen {
        request_id,
        status,
        headers,
        body,
        stream,
    })
}

/// Undoes chunked framing, as far as it goes.
fn unchunk(mut rest: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    while let Some(end) = rest.windows(2).position(|two| two == b"\r\n") {
        let size = std::str::from_utf8(&rest[..end])
            .ok()
            .and_then(|text| usize::from_str_radix(text.trim(), 16).ok())
            .unwrap_or(0);
        let Some(chunk) = rest
            .get(end + 2..end + 2 + size)
            .filter(|chunk| !chunk.is_empty())
        else {
            break;
        };
        out.extend_from_slice(chunk);
        rest = rest.get(end + 4 + size..).unwrap_or_default();
    }
    out
}

impl Seen {
    /// A header of the answer.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    /// The answer's text, whether it came whole or in pieces.
    pub(crate) fn text(&self) -> String {
        self.values()
            .iter()
            .filter_map(|value| {
                let choice = &value["choices"][0];
                choice["message"]["content"]
                    .as_str()
                    .or(choice["delta"]["content"].as_str())
            })
            .collect()
    }

    /// The code of the error in it, if there is one.
    pub(crate) fn error(&self) -> Option<String> {
        self.values().iter().find_map(|value| {
            let error = value.get("error")?;
            Some(
                error["code"]
                    .as_str()
                    .or(error["type"].as_str())
                    .unwrap_or("?")
                    .to_owned(),
            )
        })
    }

    /// Whether the stream says that it is finished.
    pub(crate) fn is_done(&self) -> bool {
        self.body.lines().any(|line| line == "data: [DONE]")
    }

    fn values(&self) -> Vec<Value> {
        if !self.stream || self.status != 200 {
            return serde_json::from_str(&self.body).into_iter().collect();
        }
        let data = self
            .body
            .lines()
            .filter_map(|line| line.strip_prefix("data: "));
        data.filter_map(|data| serde_json::from_str(data).ok())
            .collect()
    }

    /// One line for people.
    pub(crate) fn summary(&self) -> String {
        let mut words = vec![format!("HTTP {}", self.status)];
        let text = self.text();
        if !text.is_empty() {
            words.push(format!("\"{text}\""));
        }
        if let Some(error) = self.error() {
            words.push(format!("error {error}"));
        }
        if self.stream && self.status == 200 {
            words.push(
                if self.is_done() {
                    "then [DONE]"
                } else {
                    "and no [DONE]"
                }
                .to_owned(),
            );
        }
        if let (Some(provider), Some(model), Some(action)) = (
            self.header("x-backstop-provider"),
            self.header("x-backstop-model"),
            self.header("x-backstop-action"),
        ) {
            words.push(format!("served by {provider}/{model} ({action})"));
        }
        words.join(", ")
    }
}

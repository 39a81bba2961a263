//! The callers of a scenario: they send what is written, leave when it says so, and note what they
//! hear and when.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use bytes::BytesMut;
use http::HeaderMap;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::data::{Ask, Scenario};
use super::stage::Stage;
use crate::client::{Call, Live, Peer};
use crate::sse::{self, Event};

/// How long a caller waits for anything before it is called a failure of the scenario.
const PATIENCE: Duration = Duration::from_secs(120);

/// What a padding is made of.
const FILLER: &str = "~";

/// What one caller sent and heard.
#[derive(Debug, Clone)]
pub(crate) struct Heard {
    /// The place in the sequence, from 1.
    pub(crate) place: usize,
    /// Which repetition, from 1.
    pub(crate) nth: u32,
    /// The request id it sent.
    pub(crate) id: String,
    pub(crate) streamed: bool,
    /// The words of the caller that nobody may keep.
    pub(crate) prompt: String,
    pub(crate) sent: Instant,
    pub(crate) status: Option<u16>,
    pub(crate) headers: HeaderMap,
    pub(crate) body: BytesMut,
    /// Every event with data, and when its last byte came.
    pub(crate) events: Vec<(Instant, Event)>,
    pub(crate) ended: Instant,
    pub(crate) end: End,
}

/// How a caller's side ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The answer came to its proper end.
    Whole,
    /// The connection broke.
    Cut,
    /// The caller left.
    Left,
    /// Nothing happened for longer than anyone waits.
    Stuck,
}

impl Heard {
    /// The body as JSON; `Null` when it is none.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    /// The body as text, whatever it is.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The header `name`; empty when it is not there.
    pub(crate) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default()
    }

    /// When the caller left.
    pub(crate) fn left_at(&self) -> Option<Instant> {
        (self.end == End::Left).then_some(self.ended)
    }

    pub(crate) fn name(&self) -> String {
        format!("request {}.{}", self.place, self.nth)
    }
}

/// Sends one request and hears it out.
pub(crate) async fn ask(
    stage: &Stage,
    scenario: &Scenario,
    place: usize,
    nth: u32,
) -> Result<Heard, String> {
    let ask = &scenario.client.0[place - 1];
    let own = ask.headers.get("x-request-id").and_then(Value::as_str);
    let id = own.map_or_else(|| format!("{}-{place}-{nth}", scenario.id), str::to_owned);
    let (call, prompt) = call(scenario, ask, &id)?;
    let now = Instant::now();
    let mut heard = Heard {
        place,
        nth,
        id,
        streamed: ask.stream,
        prompt,
        sent: now,
        status: None,
        headers: HeaderMap::new(),
        body: BytesMut::new(),
        events: Vec::new(),
        ended: now,
        end: End::Stuck,
    };
    let leaves = ask.cancel_after_ms.map(Duration::from_millis);
    let until = now + leaves.unwrap_or(PATIENCE);
    let outcome = timeout_at(until, hear(stage, &call, &mut heard)).await;
    heard.ended = Instant::now();
    heard.end = match outcome {
        Ok(Ok(())) => End::Whole,
        Ok(Err(_)) => End::Cut,
        Err(_) if leaves.is_some() => End::Left,
        Err(_) => End::Stuck,
    };
    Ok(heard)
}

/// The connection lives in here: whoever drops this future hangs up.
async fn hear(stage: &Stage, call: &Call, heard: &mut Heard) -> io::Result<()> {
    let mut peer = Peer::over(stage.connect().await?);
    peer.write(&call.wire()).await;
    let mut live = Live::begin(peer).await?;
    heard.status = Some(live.status);
    heard.headers = live.headers.clone();
    let mut unread = 0;
    while let Some(bytes) = live.chunk().await? {
        heard.body.extend_from_slice(&bytes);
        while let Some(end) = block_end(&heard.body[unread..]).filter(|_| heard.streamed) {
            let block = &heard.body[unread..unread + end];
            let event = sse::events(block).pop();
            unread += end;
            heard
                .events
                .extend(event.map(|event| (Instant::now(), event)));
        }
    }
    Ok(())
}

/// Where the first whole block of a stream ends.
fn block_end(bytes: &[u8]) -> Option<usize> {
    let ends = [&b"\n\n"[..], b"\r\n\r\n"];
    let ends = ends.into_iter().filter_map(|end| {
        let at = bytes.windows(end.len()).position(|window| window == end);
        at.map(|at| at + end.len())
    });
    ends.min()
}

/// The request as it goes out, and the words in it.
fn call(scenario: &Scenario, ask: &Ask, id: &str) -> Result<(Call, String), String> {
    let mut body = ask.body.clone();
    if ask.stream {
        body["stream"] = true.into();
    }
    if let Some(pad) = ask.body_pad_bytes {
        let last = body["messages"]
            .as_array_mut()
            .and_then(|messages| messages.last_mut());
        let last = last.ok_or("client.body_pad_bytes: there is no message to pad")?;
        let words = last["content"].as_str().unwrap_or_default();
        last["content"] = format!("{words} {}", FILLER.repeat(pad)).into();
    }
    let prompt = body["messages"]
        .as_array()
        .and_then(|messages| messages.last())
        .and_then(|message| message["content"].as_str())
        .unwrap_or_default()
        .to_owned();
    let nowhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let mut call = Call::new(nowhere, "POST", &ask.endpoint)
        .header("content-type", "application/json")
        .body(body.to_string());
    let mut named = false;
    for (name, value) in &ask.headers {
        let value = value.as_str().ok_or("client.headers: not a text")?;
        named |= name.eq_ignore_ascii_case("x-request-id");
        call = call.header(name, value);
    }
    if !named {
        call = call.header("x-request-id", id);
    }
    if let Some(deadline) = ask.deadline_ms {
        call = call.header("x-backstop-deadline-ms", &deadline.to_string());
    }
    if scenario.expect.scan_for_secret.is_some() {
        // Its answer then holds the trail, one more place in which a secret may not be.
        call = call.header("x-backstop-trail", "1");
    }
    match ask.transfer.as_deref() {
        None => {}
        Some("chunked, no content-length") => call = call.chunked(64 * 1024),
        Some(other) => return Err(format!("client.transfer: {other:?} is not understood")),
    }
    Ok((call, prompt))
}

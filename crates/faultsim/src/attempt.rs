//! What the provider saw of one attempt, and how it went.

use std::fmt;
use std::sync::Arc;

use backstop_units::Secret;
use bytes::Bytes;
use http::HeaderMap;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::conn::PeerClose;

/// One request that reached the provider whole. Cheap to clone; its answer's progress is live.
///
/// It keeps what was sent, secrets and prompts included, for tests to ask. Its `Debug` shows
/// neither.
#[derive(Clone)]
pub struct Attempt(Arc<Record>);

pub(crate) struct Record {
    pub(crate) seq: u64,
    pub(crate) connection: u64,
    pub(crate) nth_on_connection: u64,
    pub(crate) arrived: Instant,
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: Option<String>,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) presented: Option<Secret>,
    pub(crate) key: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) stream: bool,
    pub(crate) step: Option<usize>,
    pub(crate) unexpected: bool,
    pub(crate) progress: watch::Receiver<Progress>,
    pub(crate) closed: watch::Receiver<Option<PeerClose>>,
}

/// How far an answer has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// The status sent, or about to be sent; `None`: no response at all.
    pub status: Option<u16>,
    /// When the head went out.
    pub started: Option<Instant>,
    /// When the first byte of the body went out.
    pub first_body: Option<Instant>,
    /// When the answer ended.
    pub ended: Option<Instant>,
    /// How it ended.
    pub ending: Option<Ending>,
    /// Bytes of the body sent, without framing.
    pub body_bytes: usize,
}

/// How an answer ended, as the provider knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Whole and properly framed.
    Complete,
    /// By closing without finishing the framing, as scripted.
    Cut,
    /// By a reset, as scripted.
    Reset,
    /// The peer closed first, whether it had to (hang, trickle) or not.
    PeerClosed,
}

impl Attempt {
    pub(crate) fn new(record: Record) -> Self {
        Self(Arc::new(record))
    }

    /// Its place among all attempts at this provider, from 1.
    #[must_use]
    pub fn seq(&self) -> u64 {
        self.0.seq
    }

    /// Which connection carried it, from 1.
    #[must_use]
    pub fn connection(&self) -> u64 {
        self.0.connection
    }

    /// Whether the connection had carried a request before.
    #[must_use]
    pub fn on_reused_connection(&self) -> bool {
        self.0.nth_on_connection > 1
    }

    /// When its first byte was there. The attempt appears in the log once it is whole.
    #[must_use]
    pub fn arrived(&self) -> Instant {
        self.0.arrived
    }

    /// The request method.
    #[must_use]
    pub fn method(&self) -> &str {
        &self.0.method
    }

    /// The path without its query.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.0.path
    }

    /// The query, without its question mark.
    #[must_use]
    pub fn query(&self) -> Option<&str> {
        self.0.query.as_deref()
    }

    /// All request headers.
    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        &self.0.headers
    }

    /// The first value of a request header, when it is text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.0.headers.get(name)?.to_str().ok()
    }

    /// The request body, byte for byte.
    #[must_use]
    pub fn body(&self) -> &Bytes {
        &self.0.body
    }

    /// The request body as JSON; `Null` when it is none.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.0.body).unwrap_or(Value::Null)
    }

    /// The key it presented.
    #[must_use]
    pub fn presented(&self) -> Option<&Secret> {
        self.0.presented.as_ref()
    }

    /// The script's label for the key it presented.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        self.0.key.as_deref()
    }

    /// The model asked for, in the body or in the path.
    #[must_use]
    pub fn model(&self) -> Option<&str> {
        self.0.model.as_deref()
    }

    /// Whether it asked for a stream.
    #[must_use]
    pub fn asked_for_stream(&self) -> bool {
        self.0.stream
    }

    /// Index of the step it took, from 0. `None` for the healthy answer and the unexpected.
    #[must_use]
    pub fn step(&self) -> Option<usize> {
        self.0.step
    }

    /// Whether no step was left for it.
    #[must_use]
    pub fn is_unexpected(&self) -> bool {
        self.0.unexpected
    }

    /// How far its answer has got.
    #[must_use]
    pub fn progress(&self) -> Progress {
        *self.0.progress.borrow()
    }

    /// When and how the peer closed its connection, if it has.
    #[must_use]
    pub fn peer_close(&self) -> Option<PeerClose> {
        *self.0.closed.borrow()
    }

    /// Waits until its answer has ended. `None`: the simulator was stopped before.
    pub async fn finished(&self) -> Option<Ending> {
        let mut progress = self.0.progress.clone();
        let ended = progress
            .wait_for(|progress| progress.ending.is_some())
            .await;
        ended.ok().and_then(|progress| progress.ending)
    }

    /// Waits until the peer closes the connection that carried it. `None`: the provider ended
    /// the connection itself, so the peer's close cannot be seen.
    pub async fn closed_by_peer(&self) -> Option<PeerClose> {
        let mut closed = self.0.closed.clone();
        closed
            .wait_for(Option::is_some)
            .await
            .ok()
            .and_then(|closed| *closed)
    }
}

impl fmt::Debug for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attempt")
            .field("seq", &self.0.seq)
            .field("connection", &self.0.connection)
            .field("method", &self.0.method)
            .field("path", &self.0.path)
            .field("key", &self.0.key)
            .field("model", &self.0.model)
            .field("step", &self.0.step)
            .field("unexpected", &self.0.unexpected)
            .field("progress", &self.progress())
            .field("peer_close", &self.peer_close())
            .finish_non_exhaustive()
    }
}

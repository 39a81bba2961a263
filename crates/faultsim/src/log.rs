//! What happens at a provider, as events and as lines of a log.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::attempt::{Attempt, Ending};
use crate::conn::{CloseKind, PeerClose};
use crate::receive::Broken;

/// Something a provider saw or did.
#[derive(Debug)]
pub enum Event<'a> {
    /// An attempt is there, and its step is chosen.
    Arrived(&'a Attempt),
    /// Its answer has ended.
    Ended(&'a Attempt),
    /// The peer closed a connection.
    PeerClosed {
        /// The connection's number, from 1.
        connection: u64,
        /// When and how.
        close: PeerClose,
    },
    /// What came was no request.
    Broken(Broken),
}

/// Is told every event, with the moment the simulator started. It must not block.
pub type Observer = Arc<dyn Fn(Instant, &Event<'_>) + Send + Sync>;

impl Event<'_> {
    /// The event as one JSON object: times in milliseconds since `start`, keys by label, neither
    /// secrets nor bodies.
    #[must_use]
    pub fn to_json(&self, start: Instant) -> Value {
        let ms = |at: Instant| millis(at.saturating_duration_since(start));
        match self {
            Self::Arrived(attempt) => json!({
                "event": "arrived",
                "attempt": attempt.seq(),
                "at_ms": ms(attempt.arrived()),
                "connection": attempt.connection(),
                "reused": attempt.on_reused_connection(),
                "method": attempt.method(),
                "path": attempt.path(),
                "key": attempt.key(),
                "presented_key": attempt.presented().is_some(),
                "model": attempt.model(),
                "stream": attempt.asked_for_stream(),
                "body_bytes": attempt.body().len(),
                "step": attempt.step(),
                "unexpected": attempt.is_unexpected(),
            }),
            Self::Ended(attempt) => {
                let progress = attempt.progress();
                json!({
                    "event": "ended",
                    "attempt": attempt.seq(),
                    "status": progress.status,
                    "started_ms": progress.started.map(ms),
                    "first_body_ms": progress.first_body.map(ms),
                    "ended_ms": progress.ended.map(ms),
                    "ending": progress.ending.map(Ending::name),
                    "body_bytes": progress.body_bytes,
                })
            }
            Self::PeerClosed { connection, close } => json!({
                "event": "peer_closed",
                "connection": connection,
                "at_ms": ms(close.at),
                "how": match close.how {
                    CloseKind::Fin => "fin",
                    CloseKind::Reset => "reset",
                },
            }),
            Self::Broken(broken) => json!({
                "event": "broken_request",
                "what": match broken {
                    Broken::Unfinished => "unfinished",
                    Broken::Head => "head",
                    Broken::Body => "body",
                },
            }),
        }
    }
}

impl Ending {
    const fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Cut => "cut",
            Self::Reset => "reset",
            Self::PeerClosed => "peer_closed",
        }
    }
}

/// Milliseconds with microseconds behind the point.
fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

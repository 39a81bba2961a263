//! What the gateway's log says of one request.

use anyhow::Result;
use serde_json::Value;

use crate::running::Running;

/// What the log says of one request.
#[derive(Debug, Default)]
pub(crate) struct Trail {
    /// The rows of the trail, as logged.
    pub(crate) attempts: Vec<Value>,
    /// The routing log.
    pub(crate) sentences: Vec<String>,
    /// The terminal reason, with the way to it.
    pub(crate) outcome: String,
}

impl Trail {
    /// Reads the log up to the end of a journey.
    pub(crate) async fn read(gateway: &mut Running, request_id: &str) -> Result<Self> {
        let mut trail = Self::default();
        loop {
            let line = gateway.log_line().await?;
            let Ok(event) = serde_json::from_str::<Value>(&line) else {
                continue;
            };
            if event["request_id"] != request_id {
                continue;
            }
            match event["target"].as_str() {
                Some("backstop::attempt") => trail.attempts.push(event),
                Some("backstop::routing") => {
                    trail
                        .sentences
                        .extend(event["sentence"].as_str().map(str::to_owned));
                }
                Some("backstop::journey") => {
                    trail.outcome = event["outcome"].as_str().unwrap_or_default().to_owned();
                    return Ok(trail);
                }
                _ => {}
            }
        }
    }
}

//! What a drill looks at from outside: what providers saw, and what the gateway says of its
//! breakers.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use backstop_faultsim::{Event, Observer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

/// Counts the calls that reach a provider.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    /// For the model that the drill is about.
    all: AtomicU64,
    /// Of those, calls of requests from a mark on.
    marked: AtomicU64,
    mark: Mutex<Option<u64>>,
}

impl Calls {
    /// Calls so far.
    pub(crate) fn all(&self) -> u64 {
        self.all.load(Ordering::SeqCst)
    }

    /// Calls for requests that were sent after the mark was set.
    pub(crate) fn marked(&self) -> u64 {
        self.marked.load(Ordering::SeqCst)
    }

    /// From the request with this number on, calls are counted apart.
    pub(crate) fn set_mark(&self, number: u64) {
        *self.mark.lock().unwrap_or_else(PoisonError::into_inner) = Some(number);
    }

    /// Counts the calls for `model`.
    pub(crate) fn observer(self: &Arc<Self>, model: &'static str) -> Observer {
        let calls = Arc::clone(self);
        Arc::new(move |_, event| {
            let Event::Arrived(attempt) = event else {
                return;
            };
            if attempt.model() != Some(model) {
                return;
            }
            calls.all.fetch_add(1, Ordering::SeqCst);
            let id = attempt.header("x-request-id").unwrap_or_default();
            let number = id.rsplit('-').next().and_then(|text| text.parse().ok());
            let mark = *calls.mark.lock().unwrap_or_else(PoisonError::into_inner);
            if mark.is_some_and(|mark| number >= Some(mark)) {
                calls.marked.fetch_add(1, Ordering::SeqCst);
            }
        })
    }
}

/// Waits until the channel's breaker is in `state`.
pub(crate) async fn breaker_is(
    address: &str,
    channel: &str,
    state: &str,
    patience: Duration,
) -> Result<()> {
    timeout(patience, async {
        loop {
            let page = metrics(address).await?;
            if in_state(&page, channel, state) {
                return Ok(());
            }
            sleep(Duration::from_millis(20)).await;
        }
    })
    .await
    .with_context(|| format!("the breaker of {channel} was not {state} within {patience:?}"))?
}

fn in_state(page: &str, channel: &str, state: &str) -> bool {
    page.lines().any(|line| {
        line.starts_with("backstop_breaker_state{")
            && line.contains(&format!("channel=\"{channel}\""))
            && line.contains(&format!("state=\"{state}\""))
            && line.ends_with(" 1")
    })
}

async fn metrics(address: &str) -> Result<String> {
    let mut socket = TcpStream::connect(address).await?;
    let request = "GET /metrics HTTP/1.1\r\nhost: gateway\r\nconnection: close\r\n\r\n";
    socket.write_all(request.as_bytes()).await?;
    let mut page = String::new();
    socket.read_to_string(&mut page).await?;
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_breakers_state_is_read_off_the_page() {
        let page = "# HELP x\n\
            backstop_breaker_state{channel=\"north/m\",state=\"closed\"} 0\n\
            backstop_breaker_state{channel=\"north/m\",state=\"open\"} 1\n";
        assert!(in_state(page, "north/m", "open"));
        assert!(!in_state(page, "north/m", "closed"));
        assert!(!in_state(page, "south/m", "open"));
    }
}

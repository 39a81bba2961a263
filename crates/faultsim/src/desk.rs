//! Where attempts are written down and steps are handed out.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use backstop_units::Secret;
use http::HeaderMap;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::asked::Asked;
use crate::attempt::{Attempt, Progress, Record};
use crate::conn::PeerClose;
use crate::log::{Event, Observer};
use crate::playbook::{Facts, Playbook};
use crate::receive::{Broken, Received};
use crate::script::{Script, Step};

/// What every connection of a simulator shares.
pub(crate) struct Desk {
    started: Instant,
    state: Mutex<State>,
    seen: watch::Sender<u64>,
    observer: Option<Observer>,
}

struct State {
    book: Playbook,
    attempts: VecDeque<Attempt>,
    by_key: HashMap<String, u64>,
    broken: Vec<Broken>,
    seen: u64,
    connections: u64,
}

/// An attempt written down, with what is needed to answer it.
pub(crate) struct Arrived {
    pub(crate) attempt: Attempt,
    pub(crate) asked: Asked,
    pub(crate) step: Option<Arc<Step>>,
    /// Whether good health is the answer when there is no step.
    pub(crate) healthy: bool,
    pub(crate) keep_alive: bool,
    pub(crate) progress: watch::Sender<Progress>,
}

impl Desk {
    pub(crate) fn new(script: Script, observer: Option<Observer>) -> Self {
        Self {
            started: Instant::now(),
            state: Mutex::new(State {
                book: Playbook::new(script),
                attempts: VecDeque::new(),
                by_key: HashMap::new(),
                broken: Vec::new(),
                seen: 0,
                connections: 0,
            }),
            seen: watch::Sender::new(0),
            observer,
        }
    }

    /// The number of a new connection, from 1.
    pub(crate) fn connect(&self) -> u64 {
        let mut state = self.state();
        state.connections += 1;
        state.connections
    }

    /// Writes an attempt down and takes its step.
    pub(crate) fn arrive(
        &self,
        received: Received,
        connection: u64,
        nth_on_connection: u64,
        closed: watch::Receiver<Option<PeerClose>>,
    ) -> Arrived {
        let Received {
            arrived,
            method,
            target,
            headers,
            body,
        } = received;
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path.to_owned(), Some(query.to_owned())),
            None => (target, None),
        };
        let asked = Asked::read(&path, &body);
        let presented = presented(&headers, query.as_deref());
        let (progress, watched) = watch::channel(Progress::default());

        let mut state = self.state();
        state.seen += 1;
        let seq = state.seen;
        let by_key = state
            .by_key
            .entry(presented.clone().unwrap_or_default())
            .or_default();
        *by_key += 1;
        let key_attempt = *by_key;
        let facts = Facts {
            presented: presented.as_deref(),
            model: asked.model.as_deref(),
            path: &path,
            stream: asked.stream,
            attempt: seq,
            key_attempt,
            headers: &headers,
            body: &body,
            since_start: arrived.saturating_duration_since(self.started),
            reused: nth_on_connection > 1,
        };
        let (index, step) = state.book.choose(&facts).unzip();
        let healthy = state.book.is_healthy_otherwise();
        let script = state.book.script();
        let (keep_alive, retain) = (script.keep_alive, script.retain);
        let key = presented
            .as_deref()
            .and_then(|key| script.label_of(key))
            .map(str::to_owned);
        let attempt = Attempt::new(Record {
            seq,
            connection,
            nth_on_connection,
            arrived,
            method,
            path,
            query,
            headers,
            body,
            presented: presented.map(Secret::new),
            key,
            model: asked.model.clone(),
            stream: asked.stream,
            step: index,
            unexpected: step.is_none() && !healthy,
            progress: watched,
            closed,
        });
        state.attempts.push_back(attempt.clone());
        while state.attempts.len() > retain {
            state.attempts.pop_front();
        }
        drop(state);
        self.seen.send_replace(seq);
        self.observe(&Event::Arrived(&attempt));
        Arrived {
            attempt,
            asked,
            step,
            healthy,
            keep_alive,
            progress,
        }
    }

    pub(crate) fn ended(&self, attempt: &Attempt) {
        self.observe(&Event::Ended(attempt));
    }

    pub(crate) fn closed(&self, connection: u64, close: PeerClose) {
        self.observe(&Event::PeerClosed { connection, close });
    }

    pub(crate) fn broken(&self, broken: Broken) {
        self.state().broken.push(broken);
        self.observe(&Event::Broken(broken));
    }

    pub(crate) const fn started(&self) -> Instant {
        self.started
    }

    pub(crate) fn seen(&self) -> watch::Receiver<u64> {
        self.seen.subscribe()
    }

    pub(crate) fn attempts(&self) -> Vec<Attempt> {
        self.state().attempts.iter().cloned().collect()
    }

    pub(crate) fn broken_requests(&self) -> Vec<Broken> {
        self.state().broken.clone()
    }

    pub(crate) fn connections(&self) -> u64 {
        self.state().connections
    }

    pub(crate) fn left_over(&self) -> Vec<(usize, u32)> {
        self.state().book.left_over()
    }

    pub(crate) fn push(&self, step: Step) {
        self.state().book.push(step);
    }

    pub(crate) fn set_script(&self, script: Script) {
        self.state().book = Playbook::new(script);
    }

    fn observe(&self, event: &Event<'_>) {
        if let Some(observer) = &self.observer {
            observer(self.started, event);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The key a request presents, wherever a provider would look for it.
fn presented(headers: &HeaderMap, query: Option<&str>) -> Option<String> {
    let header = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let authorization = header("authorization").and_then(|value| {
        let (scheme, rest) = value.split_once(' ')?;
        if scheme.eq_ignore_ascii_case("bearer") {
            Some(rest.trim())
        } else {
            // A signed request shows the id of its key: Credential=ID/date/region/…
            rest.split_once("Credential=")?.1.split('/').next()
        }
    });
    authorization
        .or_else(|| {
            ["x-api-key", "api-key", "x-goog-api-key"]
                .into_iter()
                .find_map(header)
        })
        .or_else(|| query?.split('&').find_map(|pair| pair.strip_prefix("key=")))
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    #[test]
    fn the_key_is_found_wherever_it_is_presented() {
        let rows = [
            ("authorization", "Bearer sk-1", None, Some("sk-1")),
            ("authorization", "bearer sk-1", None, Some("sk-1")),
            (
                "authorization",
                "AWS4-HMAC-SHA256 Credential=AKID/20260101/us-east-1/bedrock/aws4_request, S=1",
                None,
                Some("AKID"),
            ),
            ("x-api-key", "sk-2", None, Some("sk-2")),
            ("api-key", "sk-3", None, Some("sk-3")),
            ("x-goog-api-key", "sk-4", None, Some("sk-4")),
            ("x-other", "sk-5", Some("alt=sse&key=sk-6"), Some("sk-6")),
            ("x-other", "sk-5", None, None),
        ];
        for (name, value, query, want) in rows {
            let mut headers = HeaderMap::new();
            headers.insert(
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            );
            assert_eq!(
                presented(&headers, query).as_deref(),
                want,
                "{name}: {value}"
            );
        }
    }
}

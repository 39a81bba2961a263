//! One fetch of a token: asked once, within its own clocks, and what the answer means.

use std::time::{Duration, SystemTime};

use backstop_classifier::{Class, Clock, Code, Field, Signal, Transport, Verdict};
use backstop_providers::TokenSource;
use backstop_units::{ByteCount, Secret};
use bytes::Bytes;
use http::{HeaderValue, Request, StatusCode, header};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::{Instant, timeout};

use super::{Token, proof};
use crate::{Clocks, End, Upstream};

/// The clocks of a fetch. Our choice; real ones take a fraction of a second.
const CLOCKS: Clocks = Clocks {
    connect: Duration::from_secs(5),
    headers: Duration::from_secs(10),
};

/// Between two pieces of the answer.
const IDLE: Duration = Duration::from_secs(5);

/// The longest time for all of it.
const WHOLE: Duration = Duration::from_secs(15);

/// The most that is read of an answer. Real ones are 1 to 3 KiB.
const ANSWER: ByteCount = ByteCount::kib(64);

/// How long a token is taken to live that does not say so.
const UNSAID: Duration = Duration::from_secs(300);

/// The longest life that is believed.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// The errors that say that the proof is refused: RFC 6749, 5.2 and 4.1.2.1, and Google's own. Asking
/// again with the same proof does not help.
const REFUSALS: [&str; 13] = [
    "invalid_grant",
    "invalid_client",
    "unauthorized_client",
    "access_denied",
    "invalid_scope",
    "invalid_request",
    "invalid_resource",
    "unsupported_grant_type",
    "deleted_client",
    "disabled_client",
    "admin_policy_enforced",
    "org_internal",
    "interaction_required",
];

/// Asks `source` for a token.
pub(super) async fn fetch(
    upstream: &Upstream,
    source: &TokenSource,
    wall: SystemTime,
) -> Result<Token, Box<Verdict>> {
    let asked = Instant::now();
    let Some(form) = proof::form(source, wall) else {
        return Err(refusing(Signal::Shape, None));
    };
    match timeout(WHOLE, exchange(upstream, source, form)).await {
        Ok(Ok((status, body))) => read(status, &body, asked),
        Ok(Err(transport)) => Err(unavailable(Signal::Transport(transport))),
        Err(_) => {
            let transport = Transport::Timeout(Clock::Headers);
            Err(unavailable(Signal::Transport(transport)))
        }
    }
}

/// On a connection of its own: one fetch an hour would find any other one stale.
async fn exchange(
    upstream: &Upstream,
    source: &TokenSource,
    form: String,
) -> Result<(StatusCode, Bytes), Transport> {
    let mut request = Request::post(source.endpoint().clone())
        .body(Bytes::from(form))
        .expect("an address that was parsed before");
    let headers = request.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, "application/x-www-form-urlencoded"),
        (header::ACCEPT, "application/json"),
        (
            header::USER_AGENT,
            concat!("backstop/", env!("CARGO_PKG_VERSION")),
        ),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let answer = upstream.send_fresh(request, &CLOCKS).await;
    let response = answer.map_err(|failure| failure.transport)?;
    let status = response.status;
    let collected = response.body_bounded(ANSWER, IDLE).await;
    match collected.end {
        End::Whole => Ok((status, collected.bytes)),
        // What came decides nothing.
        End::OverLimit => Ok((status, Bytes::new())),
        End::Cut(failure) => Err(failure.transport),
    }
}

/// A token endpoint's answer (RFC 6749, 5.1).
#[derive(Deserialize)]
struct Answer {
    access_token: String,
    /// Seconds; some say them in quotes.
    expires_in: Option<Value>,
}

#[derive(Deserialize)]
struct Refusal {
    error: String,
}

fn read(status: StatusCode, body: &[u8], asked: Instant) -> Result<Token, Box<Verdict>> {
    if !status.is_success() {
        return Err(refused(status, body));
    }
    let unreadable = || unavailable(Signal::Shape);
    let answer: Answer = serde_json::from_slice(body).map_err(|_| unreadable())?;
    let fits = |byte: u8| byte.is_ascii_graphic();
    if answer.access_token.is_empty() || !answer.access_token.bytes().all(fits) {
        return Err(unreadable());
    }
    let lifetime = match &answer.expires_in {
        None => UNSAID,
        Some(Value::String(seconds)) => seconds.parse().map_or(UNSAID, Duration::from_secs),
        Some(seconds) => seconds.as_u64().map_or(UNSAID, Duration::from_secs),
    };
    let secret = Secret::new(answer.access_token);
    Ok(Token::new(secret, asked, lifetime.min(LONGEST)))
}

fn refused(status: StatusCode, body: &[u8]) -> Box<Verdict> {
    let said = serde_json::from_slice::<Refusal>(body).ok();
    let passing = status.is_server_error()
        || [StatusCode::TOO_MANY_REQUESTS, StatusCode::REQUEST_TIMEOUT].contains(&status);
    let known = said
        .and_then(|said| REFUSALS.into_iter().find(|known| *known == said.error))
        .filter(|_| !passing);
    if let Some(code) = known.and_then(Code::new) {
        let signal = Signal::Code {
            field: Field::Code,
            code: Some(code),
        };
        return refusing(signal, Some(code));
    }
    let signal = Signal::Status(status.as_u16());
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => refusing(signal, None),
        _ => unavailable(signal),
    }
}

fn refusing(signal: Signal, code: Option<Code>) -> Box<Verdict> {
    Box::new(Verdict::no_token(Class::Credential, signal, code))
}

fn unavailable(signal: Signal) -> Box<Verdict> {
    Box::new(Verdict::no_token(Class::Transient, signal, None))
}

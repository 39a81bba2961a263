//! What the caller gets when someone answered: the body, who served it, and by which right.

use backstop_config::TrailChoice;
use backstop_dialects::{Dialect, add_member};
use backstop_ledger::trail_json;
use backstop_policy::Phase;
use backstop_stream::Framing;
use backstop_units::Moment;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header, response};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::drive::Request;
use crate::error::Told;
use crate::journal::Journal;
use crate::request_id;

/// An answer that is ready to go out.
pub(crate) struct Answered {
    pub(crate) status: u16,
    /// The provider's headers.
    pub(crate) headers: HeaderMap,
    /// In the caller's dialect.
    pub(crate) body: Bytes,
    pub(crate) same_dialect: bool,
    /// Request fields that were dropped on the way.
    pub(crate) dropped: Vec<String>,
}

/// Provider headers a caller may see, by their beginnings: limits and ids, never cookies or
/// routing of the provider's own. `retry-after` on a success is not among them.
const PASSED_ON: [&str; 5] = [
    "x-ratelimit-",
    "anthropic-ratelimit-",
    "openai-processing-ms",
    "openai-version",
    "openai-model",
];

/// The whole answer.
pub(crate) fn whole(
    request: &Request,
    journal: &Journal,
    answered: Answered,
    now: Moment,
) -> Response<Bytes> {
    let wants_extra = is_openai(request) || wants_trail(request);
    let extra = wants_extra
        .then(|| extra_fields(request, journal, now, Ok(&answered.dropped)))
        .flatten();
    let body = match &extra {
        Some(extra) => add_member(&answered.body, "extra_fields", extra.get().as_bytes())
            .map_or(answered.body, Bytes::from),
        None => answered.body,
    };
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(answered.status).unwrap_or(StatusCode::OK);
    let headers = response.headers_mut();
    if answered.same_dialect {
        pass_on(&answered.headers, headers);
    }
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    disclose(journal, request.dialect, headers);
    response
}

/// An error, with the evidence.
pub(crate) fn failed(
    request: &Request,
    journal: &Journal,
    told: &Told,
    now: Moment,
) -> Response<Bytes> {
    let wants_extra = is_openai(request) || wants_trail(request);
    let extra = wants_extra
        .then(|| extra_fields(request, journal, now, Err(told)))
        .flatten();
    let id = &journal.record.request_id;
    let mut response = told.answer(request.dialect, id, extra.as_deref());
    let attempts = HeaderValue::from(journal.journey.sends());
    response
        .headers_mut()
        .insert("x-backstop-attempts", attempts);
    response
}

/// The head of a stream: with its first output it says who serves it; with a keepalive before that
/// nobody knows yet.
pub(crate) fn stream_head(journal: &Journal, dialect: Dialect) -> response::Parts {
    let mut response = Response::new(());
    let headers = response.headers_mut();
    let kind = match dialect.framing(false) {
        Some(Framing::Messages) => "application/vnd.amazon.eventstream",
        _ => "text/event-stream; charset=utf-8",
    };
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    let by_hook = journal.journey.answered_by().is_some();
    if by_hook || journal.journey.phase() == Phase::AfterOutput {
        disclose(journal, dialect, headers);
    } else {
        request_id::put(dialect, &journal.record.request_id, headers);
    }
    response.into_parts().0
}

/// Who answered, and by which right.
fn disclose(journal: &Journal, dialect: Dialect, headers: &mut HeaderMap) {
    let mut put = |name: &'static str, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    };
    if let Some(hook) = journal.journey.answered_by() {
        put("x-backstop-hook", hook);
    } else if let Some(candidate) = journal.journey.candidate() {
        put("x-backstop-provider", candidate.channel.provider.as_str());
        put("x-backstop-model", candidate.channel.model.as_str());
        put("x-backstop-action", journal.journey.served_by().as_str());
    }
    put("x-backstop-attempts", &journal.journey.sends().to_string());
    request_id::put(dialect, &journal.record.request_id, headers);
}

fn pass_on(from: &HeaderMap, to: &mut HeaderMap) {
    for (name, value) in from {
        if PASSED_ON
            .iter()
            .any(|beginning| name.as_str().starts_with(beginning))
        {
            to.append(name.clone(), value.clone());
        }
    }
}

/// Whether the caller reads OpenAI-shaped JSON, whose clients keep members they do not know.
const fn is_openai(request: &Request) -> bool {
    matches!(
        request.dialect,
        Dialect::OpenAiChat | Dialect::OpenAiResponses
    )
}

fn wants_trail(request: &Request) -> bool {
    request.asked.trail || request.snapshot.trail == TrailChoice::Always
}

/// The `extra_fields` object.
fn extra_fields(
    request: &Request,
    journal: &Journal,
    now: Moment,
    outcome: Result<&[String], &Told>,
) -> Option<Box<RawValue>> {
    let mut extra = Map::new();
    let hook = journal.journey.answered_by();
    let candidate = journal.journey.candidate().filter(|_| hook.is_none());
    if let Some(hook) = hook {
        extra.insert("hook".into(), hook.into());
    }
    if let Some(candidate) = candidate {
        extra.insert(
            "provider".into(),
            candidate.channel.provider.as_str().into(),
        );
    }
    extra.insert(
        "model_requested".into(),
        request.envelope.model.as_str().into(),
    );
    if let (Some(candidate), Ok(_)) = (candidate, outcome) {
        extra.insert(
            "model_served".into(),
            candidate.channel.model.as_str().into(),
        );
    }
    extra.insert(
        "latency".into(),
        now.since(journal.record.started).as_secs_f64().into(),
    );
    if let Ok(dropped) = outcome
        && !dropped.is_empty()
    {
        extra.insert("dropped_fields".into(), dropped.into());
    }
    if let Some(wait) = outcome.err().and_then(|told| told.retry_after) {
        let millis = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        extra.insert("retry_after_ms".into(), millis.into());
    }
    if wants_trail(request) {
        extra.insert("attempt_trail".into(), trail_json(journal.journey.trail()));
    }
    serde_json::value::to_raw_value(&Value::Object(extra)).ok()
}

//! The one place where an error of ours, or a provider's, becomes the caller's answer.

use std::borrow::Cow;
use std::time::Duration;

use backstop_admission::Denied;
use backstop_classifier::{Class, Kind, Verdict};
use backstop_dialects::{
    BadRequest, CallerError, Dialect, add_member, error_body, error_header, error_name, read_error,
};
use backstop_ledger::Unrecorded;
use backstop_policy::{Cause, FinalError};
use backstop_units::{ByteCount, RequestId};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::request_id;
use crate::scrub::Scrubber;

/// Why the gateway turns a request away before anything is sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    #[error(
        "no such path: {path}. Served are /v1/chat/completions, /v1/responses, /v1/messages, /v1/embeddings and /v1/models"
    )]
    NoSuchPath { path: String },
    #[error("{path} answers {allowed} only")]
    WrongMethod { path: String, allowed: &'static str },
    #[error("the request body is larger than {limit}")]
    TooLarge { limit: ByteCount },
    #[error("the request body broke off before its announced end")]
    BodyCut,
    #[error("the request body did not arrive in time")]
    BodyStalled,
    #[error("request bodies must not be encoded; send the plain JSON")]
    Encoded,
    #[error("the gateway holds as many request bytes as it may; try again shortly")]
    Overloaded,
    #[error("the gateway cannot write its ledger, and serves nothing that is not in it")]
    Unrecorded,
    #[error("{0}")]
    Body(BadRequest),
    #[error("the header {name} is not understood; accepted: {accepted}")]
    BadHeader {
        name: &'static str,
        accepted: &'static str,
    },
    #[error(
        "unknown model `{model}`: neither a route nor `provider/model` of a configured provider"
    )]
    UnknownModel { model: String },
    #[error("the request's head can be read in more than one way: {what}")]
    Ambiguous { what: &'static str },
    #[error("{0}")]
    Denied(Denied),
    #[error(
        "Response with id '{id}' not found: it was not made through this gateway, or so long ago that \
         the gateway has forgotten who keeps it."
    )]
    UnknownResponse { id: String },
    #[error("the query parameter `{name}` is not understood here")]
    UnknownParameter { name: String },
    #[error("provider {provider} has no key named `{key}` for this model")]
    UnknownKey { key: String, provider: String },
}

impl From<Denied> for Refused {
    fn from(denied: Denied) -> Self {
        Self::Denied(denied)
    }
}

impl From<Unrecorded> for Refused {
    fn from(_: Unrecorded) -> Self {
        Self::Unrecorded
    }
}

impl From<BadRequest> for Refused {
    fn from(bad: BadRequest) -> Self {
        Self::Body(bad)
    }
}

impl Refused {
    const fn status(&self) -> u16 {
        match self {
            Self::NoSuchPath { .. } | Self::UnknownModel { .. } | Self::UnknownResponse { .. } => {
                404
            }
            Self::WrongMethod { .. } => 405,
            Self::TooLarge { .. } => 413,
            Self::BodyStalled => 408,
            Self::Ambiguous { .. } => 400,
            Self::Encoded => 415,
            Self::Denied(denied) => match denied {
                Denied::NoKey | Denied::UnknownKey | Denied::Expired => 401,
                Denied::Requests { .. }
                | Denied::Tokens { .. }
                | Denied::InFlight
                | Denied::Money { .. } => 429,
                _ => 403,
            },
            Self::Overloaded | Self::Unrecorded => 503,
            Self::BodyCut
            | Self::Body(_)
            | Self::BadHeader { .. }
            | Self::UnknownParameter { .. }
            | Self::UnknownKey { .. } => 400,
        }
    }

    const fn code(&self) -> &'static str {
        match self {
            Self::NoSuchPath { .. } => "unknown_path",
            Self::WrongMethod { .. } => "method_not_allowed",
            Self::TooLarge { .. } => "request_too_large",
            Self::BodyCut => "body_cut_off",
            Self::BodyStalled => "body_timed_out",
            Self::Encoded => "unsupported_encoding",
            Self::Overloaded => "gateway_overloaded",
            Self::Unrecorded => "ledger_unavailable",
            Self::Body(bad) => bad.code,
            Self::BadHeader { .. } => "invalid_header",
            Self::UnknownModel { .. } => "model_not_found",
            Self::UnknownResponse { .. } => "response_not_found",
            Self::UnknownParameter { .. } => "unknown_parameter",
            Self::UnknownKey { .. } => "unknown_key",
            Self::Ambiguous { .. } => "ambiguous_request",
            Self::Denied(denied) => denied.code(),
        }
    }
}

/// What the caller is told, whoever's error it is.
#[derive(Debug, Clone, Default)]
pub(crate) struct Told {
    /// The status.
    pub(crate) status: u16,
    /// The dialect's `type`; the status's own where absent.
    pub(crate) kind: Option<String>,
    /// The stable code.
    pub(crate) code: Cow<'static, str>,
    /// The words, scrubbed.
    pub(crate) message: String,
    /// The member at fault.
    pub(crate) param: Option<String>,
    /// How long to wait, where waiting helps.
    pub(crate) retry_after: Option<Duration>,
    /// Layers above should not repeat the request.
    pub(crate) do_not_retry: bool,
    /// The methods allowed.
    pub(crate) allow: Option<&'static str>,
    /// A provider's own body in the caller's dialect, scrubbed: it is told as it is.
    pub(crate) verbatim: Option<Vec<u8>>,
}

impl From<Refused> for Told {
    fn from(refused: Refused) -> Self {
        let told = Self {
            status: refused.status(),
            code: refused.code().into(),
            message: refused.to_string(),
            ..Self::default()
        };
        match refused {
            Refused::Body(bad) => Self {
                param: bad.param,
                ..told
            },
            Refused::UnknownModel { .. } => Self {
                param: Some("model".to_owned()),
                ..told
            },
            Refused::UnknownResponse { .. } => Self {
                param: Some("id".to_owned()),
                ..told
            },
            Refused::UnknownParameter { name } => Self {
                param: Some(name),
                ..told
            },
            Refused::WrongMethod { allowed, .. } => Self {
                allow: Some(allowed),
                ..told
            },
            Refused::Denied(denied) => Self {
                retry_after: denied.retry_after(),
                // Only a minute's limit, or a place among others, comes back soon.
                do_not_retry: !matches!(
                    denied,
                    Denied::Requests {
                        retry_after: Some(_)
                    } | Denied::Tokens {
                        retry_after: Some(_)
                    } | Denied::InFlight
                ),
                ..told
            },
            Refused::Overloaded | Refused::Unrecorded => Self {
                retry_after: Some(Duration::from_secs(1)),
                ..told
            },
            _ => told,
        }
    }
}

/// A provider's error as it was kept for the ending.
#[derive(Debug)]
pub(crate) struct Kept<'a> {
    /// The provider's dialect.
    pub(crate) dialect: Dialect,
    /// The body, or the event's data.
    pub(crate) body: &'a [u8],
    /// The error's `type`, where a header said it.
    pub(crate) name: Option<&'a str>,
    /// What must not leave.
    pub(crate) scrubber: Scrubber<'a>,
}

impl Told {
    /// What the caller is told when a journey ended without an answer.
    pub(crate) fn of_ending(
        error: &FinalError,
        kept: Option<&Kept<'_>>,
        caller: Dialect,
        excluded: &str,
    ) -> Self {
        let own = |status, code: &'static str, message: &str| Self {
            status,
            code: code.into(),
            message: message.to_owned(),
            ..Self::default()
        };
        let told = match (error.cause, &error.verdict) {
            (Cause::CredentialsExhausted, _) => own(
                502,
                "upstream_credentials_exhausted",
                "Every configured key of the provider was refused. Your own key is fine; the \
                 gateway's operator must renew the provider's credentials or credit.",
            ),
            (Cause::Hook, _) => error.stopped.as_ref().map_or_else(
                || {
                    own(
                        500,
                        "stopped",
                        "The gateway's own policy stopped the request.",
                    )
                },
                |stopped| Self {
                    status: stopped.status(),
                    code: stopped.code().to_owned().into(),
                    message: stopped.message().to_owned(),
                    ..Self::default()
                },
            ),
            (Cause::Deadline, _) => own(
                504,
                "request_timed_out",
                "The request's deadline passed before an answer came.",
            ),
            (Cause::NothingEligible, _) => own(
                400,
                "contract_not_served",
                &format!("No channel of this route can serve the request as it is{excluded}."),
            ),
            (Cause::GroupsFull, _) => own(
                429,
                "route_requests_limit",
                "Every group of this route has had as many requests in this minute as it may.",
            ),
            (Cause::NoKeyServes, _) => own(
                404,
                "model_not_served",
                "No configured key of the provider serves this model.",
            ),
            (Cause::Upstream, Some(verdict)) => Self::of_provider(verdict, kept, caller),
            (Cause::Upstream | Cause::NotSent, _) => {
                own(503, "nothing_available", "No channel could be tried now.")
            }
        };
        Self {
            retry_after: error.retry_after,
            do_not_retry: error.do_not_retry,
            ..told
        }
    }

    /// A provider's failure: in its own words where it had some and they could be scrubbed.
    pub(crate) fn of_provider(verdict: &Verdict, kept: Option<&Kept<'_>>, caller: Dialect) -> Self {
        let status = status_of(verdict, caller);
        let own = Self {
            status,
            code: code_of(verdict).into(),
            message: words_of(verdict),
            ..Self::default()
        };
        let Some(kept) = kept else {
            return own;
        };
        let Some(theirs) = read_error(kept.dialect, kept.body) else {
            return own;
        };
        let scrub = |text: String| kept.scrubber.scrub(&text);
        let kind = theirs.kind.or(kept.name.map(str::to_owned));
        let kind = match (kept.dialect == caller, kind) {
            (true, Some(kind)) => Some(scrub(kind)),
            _ => None,
        };
        Self {
            kind,
            code: theirs.code.map_or(own.code, |code| scrub(code).into()),
            message: if theirs.message.is_empty() {
                own.message
            } else {
                scrub(theirs.message)
            },
            param: theirs.param.map(scrub),
            verbatim: (kept.dialect == caller)
                .then(|| verbatim(kept, caller))
                .flatten(),
            ..own
        }
    }

    /// The body in the caller's dialect.
    pub(crate) fn body(
        &self,
        dialect: Dialect,
        request_id: &RequestId,
        extra: Option<&RawValue>,
    ) -> Vec<u8> {
        if let Some(body) = &self.verbatim
            && let Some(body) = identified(body, request_id, extra)
        {
            return body;
        }
        error_body(dialect, &self.as_caller_error(request_id, extra))
    }

    /// The error in the dialects' own shape.
    pub(crate) fn as_caller_error<'a>(
        &'a self,
        request_id: &'a RequestId,
        extra: Option<&'a RawValue>,
    ) -> CallerError<'a> {
        CallerError {
            status: self.status,
            kind: self.kind.as_deref(),
            code: Some(&self.code),
            message: &self.message,
            param: self.param.as_deref(),
            request_id: Some(request_id.as_str()),
            extra,
        }
    }

    /// The whole answer.
    pub(crate) fn answer(
        &self,
        dialect: Dialect,
        request_id: &RequestId,
        extra: Option<&RawValue>,
    ) -> Response<Bytes> {
        let mut response = Response::new(Bytes::from(self.body(dialect, request_id, extra)));
        *response.status_mut() =
            StatusCode::from_u16(self.status).unwrap_or(StatusCode::BAD_GATEWAY);
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        );
        request_id::put(dialect, request_id, headers);
        if let Some(name) = error_header(dialect)
            && let Ok(kind) = HeaderValue::from_str(&error_name(
                dialect,
                &self.as_caller_error(request_id, None),
            ))
        {
            headers.insert(HeaderName::from_static(name), kind);
        }
        if let Some(wait) = self.retry_after {
            let millis = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            headers.insert(
                header::RETRY_AFTER,
                HeaderValue::from(millis.div_ceil(1000).max(1)),
            );
        }
        if self.do_not_retry {
            headers.insert("x-should-retry", HeaderValue::from_static("false"));
        }
        if let Some(allow) = self.allow {
            headers.insert(header::ALLOW, HeaderValue::from_static(allow));
        }
        response
    }
}

/// A provider's own body, scrubbed, where it is an error in the caller's dialect.
fn verbatim(kept: &Kept<'_>, caller: Dialect) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(kept.body).ok()?;
    let value: Value = serde_json::from_str(text).ok()?;
    let told = value
        .get("error")?
        .get("message")
        .is_some_and(Value::is_string);
    let shaped = match caller {
        Dialect::OpenAiChat => told,
        // An event has members that a body has not.
        Dialect::OpenAiResponses => told && value.get("type").is_none(),
        Dialect::AnthropicMessages => told && value.get("type")? == "error",
        // Told anew: the name of a Bedrock error stands in a header.
        Dialect::CohereV2 | Dialect::BedrockConverse => false,
        Dialect::Gemini => {
            told && value
                .get("error")?
                .get("status")
                .is_some_and(Value::is_string)
        }
    };
    if !shaped {
        return None;
    }
    Some(kept.scrubber.scrub(text).into_bytes())
}

/// The body with our request id, and with `extra_fields` where there are some.
fn identified(body: &[u8], request_id: &RequestId, extra: Option<&RawValue>) -> Option<Vec<u8>> {
    let id = serde_json::to_string(request_id.as_str()).ok()?;
    let body = add_member(body, "request_id", id.as_bytes())?;
    match extra {
        Some(extra) => add_member(&body, "extra_fields", extra.get().as_bytes()),
        None => Some(body),
    }
}

/// The status for a provider's failure: its own where that is an error's, else the one that tells
/// the caller's SDK what happened.
fn status_of(verdict: &Verdict, caller: Dialect) -> u16 {
    if let Some(status @ 400..=599) = verdict.status {
        return status;
    }
    match (verdict.class, verdict.kind, caller) {
        (Class::Transient, Some(Kind::Overloaded), Dialect::AnthropicMessages) => 529,
        (Class::Transient, _, _) if verdict.status.is_some() => 503,
        (Class::RateLimit | Class::Quota, _, _) => 429,
        (Class::Timeout, _, _) => 504,
        (Class::CallerFault, _, _) => 400,
        (Class::ModelAccess | Class::ModelGone, _, _) => 404,
        (Class::Credential, Some(Kind::ContentPolicy), _) | (Class::RegionBlocked, _, _) => 403,
        _ => 502,
    }
}

const fn code_of(verdict: &Verdict) -> &'static str {
    match verdict.class {
        Class::Credential => "upstream_credential_rejected",
        Class::Quota => "upstream_quota_exhausted",
        Class::ModelAccess => "upstream_model_unavailable",
        Class::ModelGone => "upstream_model_gone",
        Class::RegionBlocked => "upstream_region_blocked",
        Class::RateLimit => "upstream_rate_limited",
        Class::Transient => "upstream_unavailable",
        Class::Timeout => "upstream_timed_out",
        Class::Malformed => "upstream_malformed_answer",
        Class::Unknown => "upstream_unknown_error",
        Class::CallerFault => "upstream_refused_request",
        Class::Cancelled => "cancelled",
    }
}

fn words_of(verdict: &Verdict) -> String {
    if verdict.kind == Some(Kind::TokenFetch) {
        return format!(
            "The gateway could not get an access token for the provider ({}).",
            verdict.fail_reason()
        );
    }
    let what = match verdict.class {
        Class::Timeout => "did not answer in time",
        Class::Malformed => "sent an answer that breaks its own contract",
        Class::RateLimit => "is rate limiting",
        Class::Transient => "could not be reached or failed",
        _ => "refused the request",
    };
    match verdict.status {
        Some(status) => format!(
            "The provider {what} (HTTP {status}, {}).",
            verdict.fail_reason()
        ),
        None => format!("The provider {what} ({}).", verdict.fail_reason()),
    }
}

#[cfg(test)]
mod tests {
    use backstop_units::Secret;

    use super::*;

    #[test]
    fn a_providers_words_are_told_scrubbed_with_our_request_id() {
        let secret = Secret::new("sk-live-0000111122223333");
        let kept = Kept {
            name: None,
            dialect: Dialect::OpenAiChat,
            body: br#"{"error":{"message":"bad key sk-live-0000111122223333","type":"invalid_request_error","code":"invalid_api_key","inner":1.0}}"#,
            scrubber: Scrubber { secrets: vec![&secret], host: None },
        };
        let verdict = Verdict::malformed(Kind::UnreadableAnswer, Some(401));
        let id = RequestId::new("r-1");
        for (caller, want) in [
            (
                Dialect::OpenAiChat,
                r#"{"error":{"message":"bad key [redacted]","type":"invalid_request_error","code":"invalid_api_key","inner":1.0},"request_id":"r-1"}"#,
            ),
            (
                Dialect::AnthropicMessages,
                r#"{"type":"error","error":{"type":"authentication_error","message":"bad key [redacted]","code":"invalid_api_key"},"request_id":"r-1"}"#,
            ),
        ] {
            let told = Told::of_provider(&verdict, Some(&kept), caller);
            assert_eq!(told.status, 401);
            assert_eq!(
                String::from_utf8(told.body(caller, &id, None)).expect("text"),
                want
            );
        }
    }

    #[test]
    fn every_refusal_has_a_status_and_a_stable_code() {
        let path = || "/x".to_owned();
        for (refused, status, code) in [
            (Refused::NoSuchPath { path: path() }, 404, "unknown_path"),
            (
                Refused::WrongMethod {
                    path: path(),
                    allowed: "POST",
                },
                405,
                "method_not_allowed",
            ),
            (
                Refused::TooLarge {
                    limit: ByteCount::mib(32),
                },
                413,
                "request_too_large",
            ),
            (
                Refused::UnknownModel { model: path() },
                404,
                "model_not_found",
            ),
            (Refused::Overloaded, 503, "gateway_overloaded"),
            (Refused::Unrecorded, 503, "ledger_unavailable"),
        ] {
            let answer =
                Told::from(refused).answer(Dialect::OpenAiChat, &RequestId::new("r"), None);
            assert_eq!(answer.status(), status);
            let body: Value = serde_json::from_slice(answer.body()).expect("JSON");
            assert_eq!(body["error"]["code"], code);
            assert_eq!(body["request_id"], "r");
        }
    }
}

//! One attempt, as its builder needs it.

use backstop_dialects::{Dialect, Operation};
use backstop_units::{ModelName, RequestId, Secret};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};

/// One attempt, as its builder needs it.
#[derive(Debug, Clone)]
pub struct Call<'a> {
    /// The model as the provider names it. Dialects that carry it in the body have it there already.
    pub model: &'a ModelName,
    /// The body in one of the provider's dialects, exactly as it will be sent.
    pub body: Bytes,
    /// Which dialect that is; `None` for the provider's first.
    pub dialect: Option<Dialect>,
    /// What is asked for.
    pub operation: Operation,
    /// Whether the body is a list of requests, where the dialect has another path for a single one.
    pub batch: bool,
    /// What is asked about an answer that the provider keeps, in place of a new one.
    pub kept: Option<&'a Kept>,
    /// The key chosen for this attempt; `None` for a keyless provider.
    pub key: Option<&'a Secret>,
    /// Whether the key is a short-lived token: it goes out as a bearer, wherever the provider's
    /// other keys go.
    pub is_token: bool,
    /// The header with the caller's own token, for a provider that takes those. It goes out as it
    /// came, in the place of a key.
    pub callers_own: Option<(&'a HeaderName, &'a HeaderValue)>,
    /// Whether the request is signed once it is built ([`Provider::to_sign`](crate::Provider::to_sign)),
    /// and carries no key until then.
    pub signed_later: bool,
    /// Goes out as `x-request-id`, so that layers can be matched end to end.
    pub request_id: &'a RequestId,
    /// Goes out as `x-backstop-attempt`. Counts from 1 over all channels of the request.
    pub attempt: u32,
    /// Whether the answer is asked for as a stream.
    pub stream: bool,
    /// The caller's own headers. Only those the provider's adapter names are taken over.
    pub caller: Option<&'a HeaderMap>,
}

/// A request about an answer that the provider keeps under an id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The method.
    pub method: Method,
    /// What stands behind the dialect's own path, with its query: `/resp_1/cancel`.
    pub path: String,
}

impl<'a> Call<'a> {
    /// A first attempt without key and without stream.
    #[must_use]
    pub fn new(model: &'a ModelName, body: Bytes, request_id: &'a RequestId) -> Self {
        Self {
            model,
            body,
            dialect: None,
            operation: Operation::Generate,
            batch: false,
            kept: None,
            key: None,
            is_token: false,
            callers_own: None,
            signed_later: false,
            request_id,
            attempt: 1,
            stream: false,
            caller: None,
        }
    }
}

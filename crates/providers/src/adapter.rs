//! The questions a kind of provider answers about its wire.

use std::fmt;

use backstop_classifier::Family;
use backstop_dialects::{Dialect, Operation};
use backstop_units::ModelName;
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};

use crate::{Address, AwsKey, Call, Error, KeyForm, Needed, Provider, Setting};

/// What we call ourselves.
const OURS: HeaderValue = HeaderValue::from_static(concat!("backstop/", env!("CARGO_PKG_VERSION")));
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const SSE: HeaderValue = HeaderValue::from_static("text/event-stream");

pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const ATTEMPT: HeaderName = HeaderName::from_static("x-backstop-attempt");

/// How a request proves who pays for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signature {
    /// `Authorization: Bearer <key>`.
    Bearer,
    /// The key alone in a header of the provider's own, such as `x-api-key`.
    Header(&'static str),
    /// `Authorization: Bearer <token>`, the token a short-lived one that is fetched.
    Token,
    /// A signature of AWS' over the finished request ([`ToSign`]); a key that is a plain value goes
    /// out as a bearer.
    Aws {
        /// The name of the service in it, which is not that of its host.
        service: &'static str,
    },
}

/// What a finished request still lacks: a signature over it, made right before it is sent.
#[derive(Debug, Clone, Copy)]
pub struct ToSign<'a> {
    /// The name of the service.
    pub service: &'a str,
    /// Where the service computes.
    pub region: &'a str,
    /// What it is signed with.
    pub key: &'a AwsKey,
}

/// What a kind of provider says about its wire. Quirks are answers here, never a match on a name
/// elsewhere.
pub trait Adapter: Send + Sync + fmt::Debug {
    /// The wire shape of its requests and answers.
    fn dialect(&self) -> Dialect;

    /// The wire shape for one of its models, where the model decides.
    fn dialect_of(&self, _model: &ModelName) -> Dialect {
        self.dialect()
    }

    /// Whose table of failures is read first.
    fn family(&self) -> Family;

    /// The path below the version, such as `/chat/completions`.
    fn path(&self) -> &'static str;

    /// The path of this call below the version, with its query, where it depends on the call; `None`
    /// where it is [`path`](Self::path).
    fn call_path(&self, _provider: &Provider, _call: &Call<'_>) -> Option<String> {
        None
    }

    /// The body of this call, where it is not the dialect's own to the letter. Spliced, never
    /// taken apart.
    fn body(&self, call: &Call<'_>) -> Bytes {
        call.body.clone()
    }

    /// What it needs to know besides address and keys.
    fn needs(&self) -> &'static [Needed] {
        &[]
    }

    /// Its public address, where that depends on what is known of the account.
    fn base_url(&self, _settings: &[(Setting, String)]) -> Option<String> {
        None
    }

    /// Where its requests go and how it speaks there, where that depends on the address an operator
    /// wrote or on what is known of the account; `None` for the address as it is.
    ///
    /// # Errors
    /// When the address is none of its own.
    fn settled(
        &self,
        _address: &Address,
        _settings: &[(Setting, String)],
    ) -> Result<Option<(Address, &'static dyn Adapter)>, Error> {
        Ok(None)
    }

    /// The forms in which its keys can be written; the first is that of its well-known variable.
    fn key_forms(&self) -> &'static [KeyForm] {
        &[KeyForm::Value]
    }

    /// The path below the version of a call for anything but an answer, `call.operation`; `None`
    /// where the provider, or its model, has no such call. Asked about a call without a body, too,
    /// since a channel that cannot answer is not planned with.
    fn operation_path(&self, _provider: &Provider, _call: &Call<'_>) -> Option<String> {
        None
    }

    /// The further dialects it speaks, each with its path. A caller who speaks one of them is
    /// served in it; all others in the first, [`dialect`](Self::dialect).
    fn also(&self) -> &'static [(Dialect, &'static str)] {
        &[]
    }

    /// The version segment that is added to an address which names none; empty when the provider
    /// has no versions in its paths.
    fn version(&self) -> &'static str {
        "/v1"
    }

    /// Where the key goes.
    fn signature(&self) -> Signature {
        Signature::Bearer
    }

    /// The caller's headers that may travel on, in lower case.
    fn forwards(&self) -> &'static [HeaderName] {
        &[]
    }

    /// Those of [`forwards`](Self::forwards) that are lists, so that the operator's entries and the
    /// caller's are both sent.
    fn joins(&self) -> &'static [HeaderName] {
        &[]
    }

    /// Whether a translated request says `max_tokens` where OpenAI itself wants
    /// `max_completion_tokens`: most servers know the older name only.
    fn says_max_tokens(&self) -> bool {
        false
    }

    /// Headers of the provider's own, written before the caller's and the operator's.
    ///
    /// # Errors
    /// When the call holds something that no header may carry.
    fn own_headers(&self, _call: &Call<'_>, _headers: &mut HeaderMap) -> Result<(), Error> {
        Ok(())
    }

    /// The whole request for one attempt: headers from nothing, the body as it was given.
    ///
    /// # Errors
    /// When a key is needed and missing, or something cannot be written as a header or a path.
    fn build(&self, provider: &Provider, call: &Call<'_>) -> Result<Request<Bytes>, Error> {
        let mut headers = HeaderMap::with_capacity(16);
        headers.insert(CONTENT_TYPE, JSON);
        headers.insert(ACCEPT, if call.stream { SSE } else { JSON });
        headers.insert(USER_AGENT, OURS);
        self.own_headers(call, &mut headers)?;
        forward(self.forwards(), call.caller, &mut headers);
        add_operators(self.joins(), provider.extra_headers(), &mut headers);
        headers.insert(REQUEST_ID, request_id(call)?);
        headers.insert(ATTEMPT, HeaderValue::from(call.attempt));
        if let Some((name, value)) = self.signed(provider, call)? {
            headers.insert(name, value);
        }

        let mut request = Request::new(self.body(call));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = if call.operation == Operation::Generate {
            match self.call_path(provider, call) {
                Some(path) => provider.address().join(self.version(), &path)?,
                None => provider.target_in(call.dialect).clone(),
            }
        } else {
            let path = self.operation_path(provider, call);
            let path = path.ok_or_else(|| Error::NoSuchOperation {
                provider: provider.id().clone(),
                operation: call.operation,
            })?;
            provider.address().join(self.version(), &path)?
        };
        *request.headers_mut() = headers;
        if let Some(kept) = call.kept {
            *request.method_mut() = kept.method.clone();
            *request.uri_mut() = below(request.uri(), &kept.path)?;
            request.headers_mut().remove(CONTENT_TYPE);
        }
        Ok(request)
    }

    /// The header that carries the key; `None` for a call without one to a provider that needs
    /// none.
    ///
    /// # Errors
    /// When a key is needed and missing, or cannot be written as a header.
    fn signed(
        &self,
        provider: &Provider,
        call: &Call<'_>,
    ) -> Result<Option<(HeaderName, HeaderValue)>, Error> {
        if let Some((name, value)) = call.callers_own {
            let mut value = value.clone();
            value.set_sensitive(true);
            return Ok(Some((name.clone(), value)));
        }
        let Some(key) = call.key else {
            return if provider.may_be_keyless() || call.signed_later {
                Ok(None)
            } else {
                Err(Error::KeyMissing {
                    provider: provider.id().clone(),
                })
            };
        };
        let signature = match self.signature() {
            _ if call.is_token => Signature::Token,
            own => own,
        };
        let (name, value) = match signature {
            Signature::Bearer | Signature::Token | Signature::Aws { .. } => (
                AUTHORIZATION,
                HeaderValue::from_maybe_shared(Bytes::from(
                    ["Bearer ", key.expose()].concat().into_bytes(),
                )),
            ),
            Signature::Header(name) => (
                HeaderName::from_static(name),
                HeaderValue::from_str(key.expose()),
            ),
        };
        let mut value = value.map_err(|_| Error::KeyUnfit {
            provider: provider.id().clone(),
        })?;
        value.set_sensitive(true);
        Ok(Some((name, value)))
    }
}

/// The address `path` further down; the queries of both stay.
fn below(target: &Uri, path: &str) -> Result<Uri, Error> {
    let mut whole = format!("{}{path}", target.path());
    if let Some(query) = target.query() {
        whole.push(if path.contains('?') { '&' } else { '?' });
        whole.push_str(query);
    }
    let mut parts = target.clone().into_parts();
    parts.path_and_query = Some(whole.parse().map_err(|_| Error::AddressHost)?);
    Uri::from_parts(parts).map_err(|_| Error::AddressHost)
}

/// The request id as a header.
pub(crate) fn request_id(call: &Call<'_>) -> Result<HeaderValue, Error> {
    HeaderValue::from_str(call.request_id.as_str()).map_err(|_| Error::RequestId)
}

/// Takes over those of the caller's headers that are named.
fn forward(names: &[HeaderName], caller: Option<&HeaderMap>, headers: &mut HeaderMap) {
    let Some(caller) = caller else { return };
    for name in names {
        let mut values = caller.get_all(name).iter();
        let Some(first) = values.next() else { continue };
        headers.insert(name, first.clone());
        for further in values {
            headers.append(name, further.clone());
        }
    }
}

/// Writes the operator's headers over what is there, except for lists, which are joined.
fn add_operators(joins: &[HeaderName], extra: &HeaderMap, headers: &mut HeaderMap) {
    for name in extra.keys() {
        if !joins.contains(name) {
            headers.remove(name);
        }
        for value in extra.get_all(name) {
            headers.append(name, value.clone());
        }
    }
    for name in joins {
        join(name, headers);
    }
}

/// Several values of a list header as one, since not every server reads repeated headers.
fn join(name: &HeaderName, headers: &mut HeaderMap) {
    let mut values = headers.get_all(name).iter();
    let (Some(first), Some(second)) = (values.next(), values.next()) else {
        return;
    };
    let mut whole = first.as_bytes().to_vec();
    for value in std::iter::once(second).chain(values) {
        whole.push(b',');
        whole.extend_from_slice(value.as_bytes());
    }
    if let Ok(value) = HeaderValue::from_maybe_shared(Bytes::from(whole)) {
        headers.insert(name, value);
    }
}

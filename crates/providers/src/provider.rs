//! A registry row with an operator's address, keys and headers.

use std::collections::HashMap;

use backstop_classifier::Family;
use backstop_dialects::Dialect;
use backstop_units::{KeyId, ProviderId, Secret};
use bytes::Bytes;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, COOKIE,
    EXPECT, HOST, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderName, Request, Uri};

use crate::{Adapter, Address, Call, Error, Row};

/// One API account family, ready to be called. Immutable; shared by every request.
#[derive(Debug, Clone)]
pub struct Provider {
    id: ProviderId,
    row: &'static Row,
    /// The row's own, or that of the row it resembles.
    adapter: &'static dyn Adapter,
    address: Address,
    /// Where requests go: the address with version and path.
    target: Uri,
    keys: HashMap<KeyId, Secret>,
    extra_headers: HeaderMap,
}

impl Provider {
    /// The provider as its row describes it, at its public address, without keys.
    ///
    /// # Errors
    /// When the row has no address of its own: see [`Provider::at`].
    pub fn new(id: ProviderId, row: &'static Row) -> Result<Self, Error> {
        let base = row
            .base_url
            .ok_or(Error::AddressMissing { kind: row.kind })?;
        Self::at(id, row, Address::parse(base)?)
    }

    /// The provider at an address of the operator's.
    ///
    /// # Errors
    /// When address and path do not make a whole.
    pub fn at(id: ProviderId, row: &'static Row, address: Address) -> Result<Self, Error> {
        let target = address.join(row.adapter.version(), row.adapter.path())?;
        Ok(Self {
            id,
            row,
            adapter: row.adapter,
            address,
            target,
            keys: HashMap::new(),
            extra_headers: HeaderMap::new(),
        })
    }

    /// The same, speaking on the wire as `other` does: its dialect, its signature, its table of
    /// failures.
    ///
    /// # Errors
    /// When address and path do not make a whole.
    pub fn resembling(mut self, other: &Row) -> Result<Self, Error> {
        self.adapter = other.adapter;
        self.target = self
            .address
            .join(self.adapter.version(), self.adapter.path())?;
        Ok(self)
    }

    /// The same with these keys.
    #[must_use]
    pub fn with_keys(mut self, keys: HashMap<KeyId, Secret>) -> Self {
        self.keys = keys;
        self
    }

    /// The same with headers that go out with every request. All of them are treated as secret,
    /// since some of them are.
    #[must_use]
    pub fn with_extra_headers(mut self, mut headers: HeaderMap) -> Self {
        for value in headers.values_mut() {
            value.set_sensitive(true);
        }
        self.extra_headers = headers;
        self
    }

    /// The name that the operator gave it.
    #[must_use]
    pub fn id(&self) -> &ProviderId {
        &self.id
    }

    /// The registry row it is made from.
    #[must_use]
    pub fn row(&self) -> &'static Row {
        self.row
    }

    /// Where it is.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Where requests go.
    #[must_use]
    pub fn target(&self) -> &Uri {
        &self.target
    }

    /// The wire shape of its requests and answers.
    #[must_use]
    pub fn dialect(&self) -> Dialect {
        self.adapter.dialect()
    }

    /// Whose table of failures is read first.
    #[must_use]
    pub fn family(&self) -> Family {
        self.adapter.family()
    }

    /// Whether a translated request says `max_tokens` here: see [`Adapter::says_max_tokens`].
    #[must_use]
    pub fn says_max_tokens(&self) -> bool {
        self.adapter.says_max_tokens()
    }

    /// Whether a call without a key is in order: the row allows it and no key is configured.
    #[must_use]
    pub fn may_be_keyless(&self) -> bool {
        self.row.keyless && self.keys.is_empty()
    }

    /// The value of a key, for the attempt that presents it.
    #[must_use]
    pub fn secret(&self, key: &KeyId) -> Option<&Secret> {
        self.keys.get(key)
    }

    /// Its keys, in no order.
    pub fn keys(&self) -> impl Iterator<Item = (&KeyId, &Secret)> {
        self.keys.iter()
    }

    /// The headers that go out with every request.
    #[must_use]
    pub fn extra_headers(&self) -> &HeaderMap {
        &self.extra_headers
    }

    /// The request for one attempt.
    ///
    /// # Errors
    /// When a key is needed and missing, or something cannot be written as a header.
    pub fn build(&self, call: &Call<'_>) -> Result<Request<Bytes>, Error> {
        self.adapter.build(self, call)
    }
}

/// Whether an operator may set this header: not one that frames the message, picks its encoding or
/// carries our own ids.
#[must_use]
pub fn may_be_configured(name: &HeaderName) -> bool {
    static OURS: [HeaderName; 13] = [
        ACCEPT,
        ACCEPT_ENCODING,
        CONNECTION,
        CONTENT_ENCODING,
        CONTENT_LENGTH,
        CONTENT_TYPE,
        COOKIE,
        EXPECT,
        HOST,
        TE,
        TRAILER,
        TRANSFER_ENCODING,
        UPGRADE,
    ];
    !OURS.contains(name)
        && ![
            "keep-alive",
            "proxy-authorization",
            "proxy-connection",
            "x-request-id",
        ]
        .contains(&name.as_str())
        && !name.as_str().starts_with("x-backstop-")
}

#[cfg(test)]
mod tests;

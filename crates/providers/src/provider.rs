//! A registry row with an operator's address, keys and headers.

use std::collections::HashMap;

use backstop_classifier::Family;
use backstop_dialects::{Dialect, Operation};
use backstop_units::{KeyId, ModelName, ProviderId, RequestId, Secret};
use bytes::Bytes;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, COOKIE,
    EXPECT, HOST, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderName, Request, Uri};

use crate::adapter::{Signature, ToSign};
use crate::{Adapter, Address, Call, Credential, Error, Row, Setting};

/// One API account family, ready to be called. Immutable; shared by every request.
#[derive(Debug, Clone)]
pub struct Provider {
    id: ProviderId,
    row: &'static Row,
    /// The row's own, or that of the row it resembles.
    said: &'static dyn Adapter,
    /// The same, as it speaks at this address.
    adapter: &'static dyn Adapter,
    /// As the operator wrote it.
    written: Address,
    /// What requests go below.
    address: Address,
    /// Where requests go in its first dialect: the address with version and path.
    target: Uri,
    /// Where they go in its further dialects.
    also: Vec<(Dialect, Uri)>,
    keys: HashMap<KeyId, Credential>,
    aliases: HashMap<KeyId, HashMap<ModelName, ModelName>>,
    settings: Vec<(Setting, String)>,
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
        let said = row.adapter;
        let (address_below, adapter) = settle(said, &address, &[])?;
        let (target, also) = targets(adapter, &address_below)?;
        Ok(Self {
            id,
            row,
            said,
            adapter,
            written: address,
            address: address_below,
            target,
            also,
            keys: HashMap::new(),
            aliases: HashMap::new(),
            settings: Vec::new(),
            extra_headers: HeaderMap::new(),
        })
    }

    /// The same, speaking on the wire as `other` does: its dialect, its signature, its table of
    /// failures.
    ///
    /// # Errors
    /// When address and path do not make a whole.
    pub fn resembling(mut self, other: &Row) -> Result<Self, Error> {
        self.said = other.adapter;
        self.settled()
    }

    /// The same with these keys.
    #[must_use]
    pub fn with_keys(mut self, keys: HashMap<KeyId, Credential>) -> Self {
        self.keys = keys;
        self
    }

    /// The same with keys that have names of their own for some models: what the provider calls
    /// them, by what callers do.
    #[must_use]
    pub fn with_aliases(mut self, aliases: HashMap<KeyId, HashMap<ModelName, ModelName>>) -> Self {
        self.aliases = aliases;
        self
    }

    /// The same with what an operator says about the account.
    ///
    /// # Errors
    /// When address and path do not make a whole with it.
    pub fn with_settings(mut self, settings: Vec<(Setting, String)>) -> Result<Self, Error> {
        self.settings = settings;
        self.settled()
    }

    /// The same, once more where and how its requests go.
    fn settled(mut self) -> Result<Self, Error> {
        (self.address, self.adapter) = settle(self.said, &self.written, &self.settings)?;
        (self.target, self.also) = targets(self.adapter, &self.address)?;
        Ok(self)
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

    /// Where it is: what its requests go below.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Where requests go.
    #[must_use]
    pub fn target(&self) -> &Uri {
        &self.target
    }

    /// Where requests in `dialect` go; `None` is its first dialect, and so is one it does not speak.
    #[must_use]
    pub fn target_in(&self, dialect: Option<Dialect>) -> &Uri {
        self.also
            .iter()
            .find(|(also, _)| Some(*also) == dialect)
            .map_or(&self.target, |(_, target)| target)
    }

    /// The wire shape of its requests and answers, where the caller's is none of its own.
    #[must_use]
    pub fn dialect(&self) -> Dialect {
        self.adapter.dialect()
    }

    /// The wire shape of one of its models, where the caller's is none of its own.
    #[must_use]
    pub fn dialect_of(&self, model: &ModelName) -> Dialect {
        self.adapter.dialect_of(model)
    }

    /// The wire shape in which `model` serves a caller who speaks `caller`: the same where the
    /// provider speaks it too, so that nothing needs translation, else the model's own.
    ///
    /// ```
    /// use backstop_dialects::Dialect;
    /// use backstop_providers::{Provider, row};
    /// use backstop_units::{ModelName, ProviderId};
    ///
    /// let openai = Provider::new(ProviderId::new("openai"), row("openai").expect("a known kind"))?;
    /// let spoken = |caller| openai.dialect_for(caller, &ModelName::new("gpt-4o"));
    /// assert_eq!(spoken(Dialect::OpenAiResponses), Dialect::OpenAiResponses);
    /// assert_eq!(spoken(Dialect::AnthropicMessages), Dialect::OpenAiChat);
    /// # Ok::<(), backstop_providers::Error>(())
    /// ```
    #[must_use]
    pub fn dialect_for(&self, caller: Dialect, model: &ModelName) -> Dialect {
        if self.also.iter().any(|(also, _)| *also == caller) {
            caller
        } else {
            self.dialect_of(model)
        }
    }

    /// Every wire shape it speaks, the first one first.
    pub fn dialects(&self) -> impl Iterator<Item = Dialect> {
        let also = self.also.iter().map(|(dialect, _)| *dialect);
        std::iter::once(self.dialect()).chain(also)
    }

    /// Whether it can be asked for `operation` on `model`, speaking `dialect`. An address that is the
    /// whole one of its conversations leads nowhere else.
    ///
    /// ```
    /// use backstop_dialects::{Dialect, Operation};
    /// use backstop_providers::{Provider, row};
    /// use backstop_units::{ModelName, ProviderId};
    ///
    /// let openai = Provider::new(ProviderId::new("openai"), row("openai").expect("a known kind"))?;
    /// let model = ModelName::new("text-embedding-3-small");
    /// assert!(openai.performs(Operation::Embed, Dialect::OpenAiChat, &model));
    /// assert!(!openai.performs(Operation::CountTokens, Dialect::OpenAiChat, &model));
    /// # Ok::<(), backstop_providers::Error>(())
    /// ```
    #[must_use]
    pub fn performs(&self, operation: Operation, dialect: Dialect, model: &ModelName) -> bool {
        if operation == Operation::Generate {
            return true;
        }
        let id = RequestId::new("");
        let call = Call {
            dialect: Some(dialect),
            operation,
            ..Call::new(model, Bytes::new(), &id)
        };
        !self.address.ends_with(self.adapter.path())
            && self.adapter.operation_path(self, &call).is_some()
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

    /// What a key is made of.
    #[must_use]
    pub fn credential(&self, key: &KeyId) -> Option<&Credential> {
        self.keys.get(key)
    }

    /// The value of a key, for the attempt that presents it; `None` for one whose tokens are
    /// fetched, and for one that signs.
    #[must_use]
    pub fn secret(&self, key: &KeyId) -> Option<&Secret> {
        self.keys.get(key)?.plain()
    }

    /// Whether it is shown the caller's own token, and no key of the operator's.
    #[must_use]
    pub fn takes_callers_own(&self) -> bool {
        self.keys
            .values()
            .any(|key| matches!(key, Credential::Caller))
    }

    /// Its keys, in no order.
    pub fn keys(&self) -> impl Iterator<Item = (&KeyId, &Credential)> {
        self.keys.iter()
    }

    /// What a request built for `key` lacks until it is signed; `None` for a key that goes out
    /// itself.
    #[must_use]
    pub fn to_sign(&self, key: &KeyId) -> Option<ToSign<'_>> {
        let Signature::Aws { service } = self.adapter.signature() else {
            return None;
        };
        Some(ToSign {
            service,
            region: self.setting(Setting::Region)?,
            key: self.keys.get(key)?.aws()?,
        })
    }

    /// What `model` is called where `key` is used: the deployment or resource that the key's
    /// aliases name, else the same.
    #[must_use]
    pub fn named<'a>(&'a self, key: Option<&KeyId>, model: &'a ModelName) -> &'a ModelName {
        let aliases = key.and_then(|key| self.aliases.get(key));
        aliases
            .and_then(|aliases| aliases.get(model))
            .unwrap_or(model)
    }

    /// The names that keys have for some models.
    #[must_use]
    pub fn aliases(&self) -> &HashMap<KeyId, HashMap<ModelName, ModelName>> {
        &self.aliases
    }

    /// What an operator says about the account.
    #[must_use]
    pub fn setting(&self, setting: Setting) -> Option<&str> {
        crate::setting::said(&self.settings, setting)
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

/// What requests go below, and how the provider speaks there.
fn settle(
    adapter: &'static dyn Adapter,
    address: &Address,
    settings: &[(Setting, String)],
) -> Result<(Address, &'static dyn Adapter), Error> {
    let settled = adapter.settled(address, settings)?;
    Ok(settled.unwrap_or_else(|| (address.clone(), adapter)))
}

/// Where requests go in each dialect. An address that is already a whole one, path and all, is for
/// the dialect of that path alone.
fn targets(
    adapter: &'static dyn Adapter,
    address: &Address,
) -> Result<(Uri, Vec<(Dialect, Uri)>), Error> {
    let version = adapter.version();
    let target = address.join(version, adapter.path())?;
    if address.ends_with(adapter.path()) {
        return Ok((target, Vec::new()));
    }
    let also = adapter.also().iter();
    let also = also.map(|(dialect, path)| Ok((*dialect, address.join(version, path)?)));
    Ok((target, also.collect::<Result<_, Error>>()?))
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

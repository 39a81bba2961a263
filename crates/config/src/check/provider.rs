//! `providers`.

mod aws;
mod key;
mod terms;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use backstop_chat::{Capabilities, Need};
use backstop_dialects::{Dialect, capabilities};
use backstop_keypool::Pool;
use backstop_policy::Channel;
use backstop_providers::{
    Adapter, Address, Needed, Provider, Row, Setting, When, may_be_configured, row, rows,
};
use backstop_units::{ChannelId, ModelName, ProviderId, Tokens};
use http::{HeaderMap, HeaderName, HeaderValue};

use self::key::Keys;
use super::{A_NAME, Check, is_name};
use crate::fault::{Problem, nearest};
use crate::path::FieldPath;
use crate::raw::{RawContract, RawCredentials, RawProvider, Whole};

/// A provider, and the channel that any of its models gets when no route says more.
pub(crate) struct Station {
    pub(crate) provider: Arc<Provider>,
    pub(crate) pattern: Arc<Channel>,
}

/// The providers by name; nothing for one that has a fault, so that its routes have none of their
/// own.
pub(crate) type Stations = BTreeMap<String, Option<Station>>;

impl Check<'_> {
    pub(super) fn providers(
        &mut self,
        at: &FieldPath,
        raw: BTreeMap<String, RawProvider>,
        listen: SocketAddr,
    ) -> Stations {
        raw.into_iter()
            .map(|(name, raw)| {
                let station = self.station(&at.field(&name), &name, &raw, listen);
                (name, station)
            })
            .collect()
    }

    fn station(
        &mut self,
        at: &FieldPath,
        name: &str,
        raw: &RawProvider,
        listen: SocketAddr,
    ) -> Option<Station> {
        let before = self.faults.len();
        if !is_name(name) {
            self.fault(at, Problem::BadName { accepted: A_NAME });
        }
        let id = ProviderId::new(name);
        let row = self.kind(at, name, raw.kind.as_deref())?;
        let like = self.resembles(at, row, raw.resembles.as_deref());
        let adapter = like.unwrap_or(row).adapter;
        let keys = if raw.credentials == Some(RawCredentials::Caller) {
            self.callers_own(at, &id, raw)
        } else {
            self.keys(&at.field("keys"), &id, row, adapter, raw.keys.as_deref())
        };
        let settings = self.settings(at, row, adapter, raw, keys.as_ref());
        let address = self.address(at, row, raw, &settings, listen);
        let headers = self.headers(&at.field("extra_headers"), raw.extra_headers.as_ref());
        let network = raw.network_config.as_ref();
        let retry = self.retry(&at.field("network_config"), network);
        let clocks = self.clocks(&at.field("timeouts"), raw.timeouts.as_ref());
        let breaker = self.breaker(&at.field("breaker"), raw.breaker.as_ref());
        let dialect = adapter.dialect();
        let mut contract = capabilities(dialect);
        contract.context_window = self.window(&at.field("context_window"), raw.context_window);
        let contract = self.narrow(&at.field("contract"), dialect, contract, raw.contract);
        if self.faults.len() > before {
            return None;
        }

        let Keys {
            pool,
            credentials,
            aliases,
            ..
        } = keys?;
        let provider = Provider::at(id.clone(), row, address?)
            .and_then(|provider| match like {
                Some(like) => provider.resembling(like),
                None => Ok(provider),
            })
            .and_then(|provider| provider.with_settings(settings));
        let provider = self
            .take(&at.field("base_url"), provider.map_err(Problem::from))?
            .with_keys(credentials)
            .with_aliases(aliases)
            .with_extra_headers(headers);
        let holds = network.and_then(|network| network.hold_refused_keys);
        let pool = match holds {
            Some(holds) if !pool.is_keyless() => pool.remembering(holds),
            _ => pool,
        };
        let model = ModelName::new("");
        Some(Station {
            pattern: Arc::new(Channel {
                id: ChannelId::new(&id, &model, &[]),
                provider: id,
                model,
                keys: Vec::new(),
                priority: 0,
                weight: 1.0,
                contract,
                verified: raw.verified.unwrap_or(false),
                pool: Arc::new(pool),
                retry,
                breaker,
                clocks,
            }),
            provider: Arc::new(provider),
        })
    }

    /// The registry row: the kind as typed, or by the provider's own name, or `custom`.
    fn kind(&mut self, at: &FieldPath, name: &str, typed: Option<&str>) -> Option<&'static Row> {
        let found = match typed {
            None => Ok(row(name).unwrap_or_else(custom)),
            Some(kind) => known(kind),
        };
        self.take(&at.field("kind"), found)
    }

    fn resembles(
        &mut self,
        at: &FieldPath,
        own: &Row,
        typed: Option<&str>,
    ) -> Option<&'static Row> {
        let like = known(typed?).and_then(|like| {
            if own.kind == custom().kind {
                Ok(like)
            } else {
                Err(Problem::ResemblesKnown)
            }
        });
        self.take(&at.field("resembles"), like)
    }

    fn address(
        &mut self,
        at: &FieldPath,
        row: &Row,
        raw: &RawProvider,
        settings: &[(Setting, String)],
        listen: SocketAddr,
    ) -> Option<Address> {
        let at = at.field("base_url");
        let own = || {
            let own = row.adapter.base_url(settings);
            own.or_else(|| row.base_url.map(str::to_owned))
                .or_else(|| self.resolver.variable(row.base_url_variable?))
        };
        let typed = match (&raw.base_url, own()) {
            (Some(typed), _) => self.resolver.resolve(typed, "an address"),
            (None, Some(own)) => Ok(own),
            // What is missing for an address of its own was said.
            (None, None) if row.adapter.needs().iter().any(places) => return None,
            (None, None) => {
                Err(backstop_providers::Error::AddressMissing { kind: row.kind }.into())
            }
        };
        let address = typed.and_then(|typed| {
            let address = Address::parse(&typed)?;
            let allowed = raw.allow_plain_http.unwrap_or(false);
            if address.is_plain() && !address.is_private() && !allowed {
                return Err(Problem::PlainHttp);
            }
            if address.is_loopback() && address.port() == listen.port() {
                return Err(Problem::OwnAddress);
            }
            Ok(address)
        });
        self.take(&at, address)
    }

    /// What the kind needs to know besides address and keys: as typed, else as a key's credentials
    /// or the well-known variable say.
    fn settings(
        &mut self,
        at: &FieldPath,
        row: &Row,
        adapter: &dyn Adapter,
        raw: &RawProvider,
        keys: Option<&Keys>,
    ) -> Vec<(Setting, String)> {
        let typed = |setting| match setting {
            Setting::Project => raw.project.as_deref(),
            Setting::Location => raw.location.as_deref(),
            Setting::Region => raw.region.as_deref(),
            Setting::ApiVersion => raw.api_version.as_deref(),
        };
        let signs =
            keys.is_some_and(|keys| keys.credentials.values().any(|key| key.aws().is_some()));
        let mut settings = Vec::new();
        for &setting in Setting::ALL {
            let at = at.field(setting.field());
            let accepted = setting.accepted();
            let mut needed = adapter.needs().iter();
            let Some(needed) = needed.find(|needed| needed.setting == setting) else {
                if typed(setting).is_some() {
                    self.fault(&at, Problem::SettingUnfit { kind: row.kind });
                }
                continue;
            };
            let value = match typed(setting) {
                Some(typed) => self.resolver.resolve(typed, accepted),
                None => {
                    let mut variables = needed.variables.iter();
                    let found = keys
                        .and_then(|keys| keys.setting(setting))
                        .or_else(|| variables.find_map(|name| self.resolver.variable(name)));
                    let must = match needed.when {
                        When::Always => true,
                        When::Addressing => raw.base_url.is_none() || signs,
                        When::Never => false,
                    };
                    if found.is_none() && !must {
                        continue;
                    }
                    found.ok_or(Problem::Missing { accepted })
                }
            };
            let value = value.and_then(|value| {
                if setting.fits(&value) {
                    Ok(value)
                } else {
                    Err(Problem::BadSetting { accepted })
                }
            });
            if let Some(value) = self.take(&at, value) {
                settings.push((setting, value));
            }
        }
        settings
    }

    fn headers(&mut self, at: &FieldPath, typed: Option<&BTreeMap<String, String>>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in typed.into_iter().flatten() {
            let at = at.field(name);
            let header = HeaderName::from_bytes(name.as_bytes())
                .map_err(|_| Problem::HeaderName)
                .and_then(|name| {
                    if may_be_configured(&name) {
                        Ok(name)
                    } else {
                        Err(Problem::HeaderReserved)
                    }
                })
                .and_then(|name| {
                    let value = self
                        .resolver
                        .resolve(value, "a value, env.NAME or file.PATH")?;
                    let value = HeaderValue::from_str(&value).map_err(|_| Problem::HeaderValue)?;
                    Ok((name, value))
                });
            if let Some((name, value)) = self.take(&at, header)
                && headers.insert(name.clone(), value).is_some()
            {
                let name = name.as_str().to_owned();
                self.fault(&at, Problem::Twice { name });
            }
        }
        headers
    }

    /// A context window, in tokens.
    pub(super) fn window(&mut self, at: &FieldPath, typed: Option<Whole>) -> Option<Tokens> {
        let Whole(tokens) = typed?;
        Some(Tokens(self.count(at, Some(tokens), 1, (1, 1_000_000_000))))
    }

    /// What can be carried, narrowed (or widened again) by what is typed, never beyond the dialect.
    pub(super) fn narrow(
        &mut self,
        at: &FieldPath,
        dialect: Dialect,
        base: Capabilities,
        typed: Option<RawContract>,
    ) -> Capabilities {
        let reach = capabilities(dialect);
        let mut contract = base;
        for (need, typed) in typed.iter().flat_map(needs) {
            match typed {
                Some(false) => contract = contract.without(need),
                Some(true) if reach.set.has(need) => contract = contract.with(need),
                Some(true) => {
                    let dialect = dialect.as_str();
                    self.fault(&at.field(need.as_str()), Problem::BeyondDialect { dialect });
                }
                None => {}
            }
        }
        contract
    }
}

/// What a contract says about each need.
fn needs(raw: &RawContract) -> [(Need, Option<bool>); 17] {
    [
        (Need::Streaming, raw.streaming),
        (Need::Tools, raw.tools),
        (Need::ParallelTools, raw.parallel_tools),
        (Need::ProviderTools, raw.provider_tools),
        (Need::JsonSchema, raw.json_schema),
        (Need::JsonObject, raw.json_object),
        (Need::Images, raw.images),
        (Need::ImageUrls, raw.image_urls),
        (Need::Audio, raw.audio),
        (Need::Files, raw.files),
        (Need::ManyChoices, raw.many_choices),
        (Need::Logprobs, raw.logprobs),
        (Need::Reasoning, raw.reasoning),
        (Need::Embeddings, raw.embeddings),
        (Need::ManyInputs, raw.many_inputs),
        (Need::TokenInputs, raw.token_inputs),
        (Need::CountTokens, raw.count_tokens),
    ]
}

/// Whether an address hangs on the setting.
fn places(needed: &Needed) -> bool {
    needed.when != When::Never
}

fn custom() -> &'static Row {
    row("custom").expect("the registry has a row for servers it does not know")
}

fn known(kind: &str) -> Result<&'static Row, Problem> {
    row(kind).ok_or_else(|| Problem::UnknownKind {
        nearest: nearest(kind, rows().iter().map(|row| row.kind)),
        accepted: rows().iter().map(|row| row.kind).collect(),
    })
}

/// The keys of a provider that needs none.
fn keyless() -> Keys {
    Keys {
        pool: Pool::keyless(),
        credentials: std::collections::HashMap::new(),
        project: None,
        region: None,
        aliases: std::collections::HashMap::new(),
    }
}

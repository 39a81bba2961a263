//! `providers.<name>.keys`.

use std::collections::{BTreeMap, HashMap, HashSet};

use backstop_keypool::{Key, ModelList, Pool};
use backstop_providers::{Adapter, Credential, KeyForm, Row, Setting, TokenSource};
use backstop_units::{KeyId, ModelName, ProviderId, Secret};

use super::keyless;
use crate::check::{A_NAME, Check, is_name};
use crate::fault::Problem;
use crate::path::FieldPath;
use crate::raw::{RawAws, RawEntra, RawKey, RawKeyEntry, RawProvider};
use crate::snapshot::is_model;

/// The pool that chooses, and what stands behind its names.
pub(super) struct Keys {
    pub(super) pool: Pool,
    pub(super) credentials: HashMap<KeyId, Credential>,
    /// The project that the first key's credentials belong to.
    pub(super) project: Option<String>,
    /// The region of the first key's profile.
    pub(super) region: Option<String>,
    /// What the provider calls some models where a key is used.
    pub(super) aliases: HashMap<KeyId, HashMap<ModelName, ModelName>>,
}

impl Keys {
    /// What the keys themselves say about the account.
    pub(super) fn setting(&self, setting: Setting) -> Option<String> {
        match setting {
            Setting::Project => self.project.clone(),
            Setting::Region => self.region.clone(),
            Setting::Location | Setting::ApiVersion => None,
        }
    }
}

pub(super) const A_KEY: &str = "env.NAME, file.PATH or the key itself";
const A_FILE: &str = "file.PATH of a Google credentials file";
const A_TENANT: &str = "the id of a directory, or its domain";
const AN_APPLICATION: &str = "the id of an application";
const AN_AUTHORITY: &str = "an address such as \"https://login.microsoftonline.com\"";
const AN_ALIAS: &str = "\"public-name\" = \"deployment or ARN\"";
const MODELS: &str = "[\"*\"] or the names of models";

impl Check<'_> {
    /// The keys as typed; without any, the kind's well-known variable.
    pub(super) fn keys(
        &mut self,
        at: &FieldPath,
        provider: &ProviderId,
        row: &Row,
        adapter: &dyn Adapter,
        typed: Option<&[RawKeyEntry]>,
    ) -> Option<Keys> {
        let variable = row.key_variable;
        let entries = match typed {
            Some([]) => None,
            Some(entries) => Some(entries.iter().map(RawKey::from).collect()),
            None => variable
                .filter(|name| self.resolver.variable(name).is_some())
                .map(|name| vec![self.of_variable(row, name)])
                .or_else(|| self.of_aws(adapter)),
        };
        let Some(entries): Option<Vec<RawKey>> = entries else {
            if row.keyless {
                return Some(keyless());
            }
            let kind = row.kind;
            self.fault(at, Problem::NoKeys { kind, variable });
            return None;
        };

        let mut keys = Vec::with_capacity(entries.len());
        let mut credentials = HashMap::with_capacity(entries.len());
        let (mut project, mut region) = (None, None);
        let mut all_aliases = HashMap::new();
        let mut names = HashSet::with_capacity(entries.len());
        for (index, entry) in entries.iter().enumerate() {
            let at = at.item(index);
            let name = self.key_name(&at, provider, index, entry);
            if !names.insert(name.clone()) {
                let name = name.clone();
                self.fault(&at.field("name"), Problem::Twice { name });
            }
            let credential = self.credential(&at, row.kind, adapter, entry, &mut region);
            let aliases = self.aliases(&at.field("aliases"), adapter, entry.aliases.as_ref());
            let models = self.models(&at.field("models"), entry.models.as_deref(), &aliases);
            let id = KeyId::new(provider, &name);
            let key = Key::new(id.clone(), entry.weight.unwrap_or(1.0), models);
            let key = self.take(&at.field("weight"), key.map_err(Problem::Keypool));
            let (Some(key), Some(credential)) = (key, credential) else {
                continue;
            };
            if credential.secrets().any(|secret| secret.is(&name)) {
                // The name is shown wherever the key is used.
                self.fault(&at.field("name"), Problem::BadName { accepted: A_NAME });
            }
            let source = credential.token_source();
            project = project.or_else(|| source?.project().map(str::to_owned));
            if !aliases.is_empty() {
                all_aliases.insert(id.clone(), aliases);
            }
            if credentials.insert(id, credential).is_none() {
                keys.push(key);
            }
        }
        let pool = Pool::new(keys).map_err(Problem::Keypool);
        let pool = self.take(at, pool)?;
        Some(Keys {
            pool,
            credentials,
            project,
            region,
            aliases: all_aliases,
        })
    }

    /// The pool of a provider that is shown its callers' own tokens: one name for all of them. A
    /// refusal of one says nothing about the next, so none is remembered.
    pub(super) fn callers_own(
        &mut self,
        at: &FieldPath,
        provider: &ProviderId,
        raw: &RawProvider,
    ) -> Option<Keys> {
        let contradiction = Problem::Contradiction {
            other: "credentials = \"caller\"",
            accepted: "keys of the operator's, or the caller's own, not both",
        };
        if raw.keys.is_some() {
            self.fault(&at.field("keys"), contradiction);
        }
        let remembers = raw.network_config.as_ref();
        let remembers = remembers.and_then(|network| network.hold_refused_keys);
        if remembers == Some(true) {
            let at = at.field("network_config").field("hold_refused_keys");
            let problem = Problem::Contradiction {
                other: "credentials = \"caller\"",
                accepted: "false: what one caller's token met is nothing to another's",
            };
            self.fault(&at, problem);
        }
        let id = KeyId::new(provider, "caller");
        let key = Key::new(id.clone(), 1.0, ModelList::Any).map_err(Problem::Keypool);
        let pool = key.and_then(|key| Pool::new(vec![key]).map_err(Problem::Keypool));
        let pool = self
            .take(&at.field("credentials"), pool)?
            .remembering(false);
        Some(Keys {
            pool,
            credentials: HashMap::from([(id, Credential::Caller)]),
            project: None,
            region: None,
            aliases: HashMap::new(),
        })
    }

    fn key_name(
        &mut self,
        at: &FieldPath,
        provider: &ProviderId,
        index: usize,
        entry: &RawKey,
    ) -> String {
        match &entry.name {
            None => format!("{provider}-key-{}", index + 1),
            Some(name) => {
                if !is_name(name) {
                    self.fault(&at.field("name"), Problem::BadName { accepted: A_NAME });
                }
                name.clone()
            }
        }
    }

    /// The models a key serves: those listed and those it has names for; all, where neither is
    /// said.
    fn models(
        &mut self,
        at: &FieldPath,
        typed: Option<&[String]>,
        aliases: &HashMap<ModelName, ModelName>,
    ) -> ModelList {
        let public = aliases.keys().map(ModelName::as_str);
        let Some(typed) = typed else {
            return if aliases.is_empty() {
                ModelList::Any
            } else {
                ModelList::new(public)
            };
        };
        if typed.is_empty() {
            self.fault(at, Problem::Empty { accepted: MODELS });
        }
        for (index, name) in typed.iter().enumerate() {
            if !is_model(name) {
                self.fault(&at.item(index), Problem::BadName { accepted: MODELS });
            }
        }
        ModelList::new(typed.iter().map(String::as_str).chain(public))
    }

    /// What the provider calls some models where a key is used.
    fn aliases(
        &mut self,
        at: &FieldPath,
        adapter: &dyn Adapter,
        typed: Option<&BTreeMap<String, String>>,
    ) -> HashMap<ModelName, ModelName> {
        let mut aliases = HashMap::new();
        if typed.is_some_and(BTreeMap::is_empty) {
            self.fault(at, Problem::Empty { accepted: AN_ALIAS });
        }
        for (public, own) in typed.into_iter().flatten() {
            let at = at.field(public);
            if !is_model(public) || public == "*" || !is_model(own) {
                self.fault(&at, Problem::BadName { accepted: AN_ALIAS });
                continue;
            }
            let (public, own) = (
                ModelName::new(public.as_str()),
                ModelName::new(own.as_str()),
            );
            if adapter.dialect_of(&public) != adapter.dialect_of(&own) {
                self.fault(&at, Problem::AliasDialect);
            }
            aliases.insert(public, own);
        }
        aliases
    }

    /// What a key is made of, in whichever one of its forms it is written.
    fn credential(
        &mut self,
        at: &FieldPath,
        kind: &'static str,
        adapter: &dyn Adapter,
        entry: &RawKey,
        region: &mut Option<String>,
    ) -> Option<Credential> {
        let written = [
            (KeyForm::Value, entry.value.is_some()),
            (KeyForm::ServiceAccount, entry.service_account.is_some()),
            (KeyForm::Entra, entry.entra.is_some()),
            (KeyForm::Aws, entry.aws.is_some()),
        ];
        let mut written = written.iter().filter(|(_, written)| *written);
        let form = written.next().map_or(KeyForm::Value, |(form, _)| *form);
        let at_form = at.field(form.field());
        if let Some((second, _)) = written.next() {
            let problem = Problem::Contradiction {
                other: form.field(),
                accepted: "one of them",
            };
            self.fault(&at.field(second.field()), problem);
            return None;
        }
        let forms = adapter.key_forms();
        if !forms.contains(&form) {
            let problem = Problem::KeyFormUnfit {
                kind,
                accepted: forms.iter().map(|form| form.field()).collect(),
            };
            self.fault(&at_form, problem);
            return None;
        }
        match (&entry.service_account, &entry.entra, &entry.aws) {
            (Some(typed), ..) => {
                let text = self.resolver.resolve(typed, A_FILE);
                let source = text.and_then(|text| Ok(TokenSource::google(&text)?));
                self.take(&at_form, source).map(Credential::from)
            }
            (None, Some(entra), _) => self.entra(&at_form, entra).map(Credential::from),
            (None, None, Some(aws)) => {
                let (key, its_region) = self.aws(&at_form, aws)?;
                *region = region.take().or(its_region);
                Some(Credential::from(key))
            }
            (None, None, None) => {
                let secret = self.secret(&at_form, entry.value.as_deref(), A_KEY);
                secret.map(Credential::from)
            }
        }
    }

    fn entra(&mut self, at: &FieldPath, raw: &RawEntra) -> Option<TokenSource> {
        let tenant = self.text(&at.field("tenant"), raw.tenant.as_deref(), A_TENANT);
        let client_id = raw.client_id.as_deref();
        let client_id = self.text(&at.field("client_id"), client_id, AN_APPLICATION);
        let secret = raw.client_secret.as_deref();
        let secret = self.secret(&at.field("client_secret"), secret, A_KEY);
        let authority = match raw.authority.as_deref() {
            None => None,
            typed => Some(self.text(&at.field("authority"), typed, AN_AUTHORITY)?),
        };
        let source = TokenSource::entra(authority.as_deref(), &tenant?, client_id?, secret?);
        let culprit = match source {
            Err(backstop_providers::Error::TokenAddress) => "authority",
            _ => "tenant",
        };
        self.take(&at.field(culprit), source.map_err(Problem::from))
    }

    fn text(
        &mut self,
        at: &FieldPath,
        typed: Option<&str>,
        accepted: &'static str,
    ) -> Option<String> {
        let text = match typed {
            None => Err(Problem::Missing { accepted }),
            Some(typed) => self.resolver.resolve(typed, accepted),
        };
        self.take(at, text)
    }

    pub(super) fn secret(
        &mut self,
        at: &FieldPath,
        typed: Option<&str>,
        accepted: &'static str,
    ) -> Option<Secret> {
        let value = match typed {
            None => Err(Problem::Missing { accepted }),
            Some(typed) => self.resolver.resolve(typed, accepted).and_then(usable),
        };
        self.take(at, value).map(Secret::new)
    }

    /// The key that AWS' own variables or files stand for, where the kind signs with one.
    fn of_aws(&self, adapter: &dyn Adapter) -> Option<Vec<RawKey>> {
        let signs = adapter.key_forms().contains(&KeyForm::Aws);
        (signs && self.resolver.has_aws_key()).then(|| {
            vec![RawKey {
                aws: Some(RawAws::default()),
                ..RawKey::default()
            }]
        })
    }

    /// The key that the kind's well-known variable stands for: its value, or the file it names.
    fn of_variable(&self, row: &Row, name: &str) -> RawKey {
        if row.adapter.key_forms().first() == Some(&KeyForm::ServiceAccount) {
            let file = self.resolver.variable(name);
            return RawKey {
                service_account: file.map(|path| format!("file.{path}")),
                ..RawKey::default()
            };
        }
        RawKey {
            value: Some(format!("env.{name}")),
            ..RawKey::default()
        }
    }
}

/// A key that a header can carry and that is not the stand-in of an example.
pub(super) fn usable(value: String) -> Result<String, Problem> {
    if !value.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Problem::SecretUnfit);
    }
    let plain = value.to_ascii_lowercase().replace(['-', '_'], "");
    let stand_ins = [
        "changeme",
        "yourapikey",
        "yourkey",
        "apikey",
        "todo",
        "replaceme",
        "xxx",
    ];
    let stands_in = value.contains("...")
        || value.starts_with('<')
        || plain.bytes().all(|byte| byte == b'x' || byte == b'*')
        || stand_ins.contains(&plain.strip_prefix("sk").unwrap_or(&plain));
    if stands_in {
        return Err(Problem::SecretPlaceholder);
    }
    Ok(value)
}

impl From<&RawKeyEntry> for RawKey {
    fn from(entry: &RawKeyEntry) -> Self {
        match entry {
            RawKeyEntry::Full(key) => RawKey::clone(key),
            RawKeyEntry::Value(value) => Self {
                value: Some(value.clone()),
                ..Self::default()
            },
        }
    }
}

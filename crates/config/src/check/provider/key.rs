//! `providers.<name>.keys`.

use std::collections::{HashMap, HashSet};

use backstop_keypool::{Key, ModelList, Pool};
use backstop_providers::Row;
use backstop_units::{KeyId, ProviderId, Secret};

use super::keyless;
use crate::check::{A_NAME, Check, is_name};
use crate::fault::Problem;
use crate::path::FieldPath;
use crate::raw::{RawKey, RawKeyEntry};
use crate::snapshot::is_model;

/// The pool that chooses, and the values behind its names.
pub(super) struct Keys {
    pub(super) pool: Pool,
    pub(super) secrets: HashMap<KeyId, Secret>,
}

const A_KEY: &str = "env.NAME, file.PATH or the key itself";
const MODELS: &str = "[\"*\"] or the names of models";

impl Check<'_> {
    /// The keys as typed; without any, the kind's well-known variable.
    pub(super) fn keys(
        &mut self,
        at: &FieldPath,
        provider: &ProviderId,
        row: &Row,
        typed: Option<&[RawKeyEntry]>,
    ) -> Option<Keys> {
        let variable = row.key_variable;
        let entries = match typed {
            Some([]) => None,
            Some(entries) => Some(entries.iter().map(RawKey::from).collect()),
            None => variable
                .filter(|name| self.resolver.variable(name).is_some())
                .map(|name| vec![RawKey::of_variable(name)]),
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
        let mut secrets = HashMap::with_capacity(entries.len());
        let mut names = HashSet::with_capacity(entries.len());
        for (index, entry) in entries.iter().enumerate() {
            let at = at.item(index);
            let name = self.key_name(&at, provider, index, entry);
            if !names.insert(name.clone()) {
                let name = name.clone();
                self.fault(&at.field("name"), Problem::Twice { name });
            }
            let secret = self.secret(&at.field("value"), entry.value.as_deref());
            let models = self.models(&at.field("models"), entry.models.as_deref());
            let id = KeyId::new(provider, &name);
            let key = Key::new(id.clone(), entry.weight.unwrap_or(1.0), models);
            let key = self.take(&at.field("weight"), key.map_err(Problem::Keypool));
            let (Some(key), Some(secret)) = (key, secret) else {
                continue;
            };
            if secret.is(&name) {
                // The name is shown wherever the key is used.
                self.fault(&at.field("name"), Problem::BadName { accepted: A_NAME });
            }
            if secrets.insert(id, secret).is_none() {
                keys.push(key);
            }
        }
        let pool = Pool::new(keys).map_err(Problem::Keypool);
        let pool = self.take(at, pool)?;
        Some(Keys { pool, secrets })
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

    fn models(&mut self, at: &FieldPath, typed: Option<&[String]>) -> ModelList {
        let Some(typed) = typed else {
            return ModelList::Any;
        };
        if typed.is_empty() {
            self.fault(at, Problem::Empty { accepted: MODELS });
        }
        for (index, name) in typed.iter().enumerate() {
            if !is_model(name) {
                self.fault(&at.item(index), Problem::BadName { accepted: MODELS });
            }
        }
        ModelList::new(typed.iter().map(String::as_str))
    }

    fn secret(&mut self, at: &FieldPath, typed: Option<&str>) -> Option<Secret> {
        let value = match typed {
            None => Err(Problem::Missing { accepted: A_KEY }),
            Some(typed) => self.resolver.resolve(typed, A_KEY).and_then(usable),
        };
        self.take(at, value).map(Secret::new)
    }
}

/// A key that a header can carry and that is not the stand-in of an example.
fn usable(value: String) -> Result<String, Problem> {
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

impl RawKey {
    fn of_variable(name: &str) -> Self {
        Self {
            value: Some(format!("env.{name}")),
            ..Self::default()
        }
    }
}

impl From<&RawKeyEntry> for RawKey {
    fn from(entry: &RawKeyEntry) -> Self {
        match entry {
            RawKeyEntry::Full(key) => key.clone(),
            RawKeyEntry::Value(value) => Self {
                value: Some(value.clone()),
                ..Self::default()
            },
        }
    }
}

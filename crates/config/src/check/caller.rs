//! `callers` and `prices`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::str::FromStr;
use std::sync::Arc;

use backstop_admission::{
    Allowed, Border, Caller, KeyHash, Limits, Permissions, Price, Register, expiry,
};
use backstop_policy::Route;
use backstop_units::{CallerName, MicroUsd, ProviderId, RouteName, Tokens};

use super::provider::Station;
use super::{A_NAME, Check, is_name};
use crate::fault::{Problem, nearest};
use crate::path::FieldPath;
use crate::raw::{RawCaller, RawMay, RawPrice, Whole};
use crate::snapshot::is_model;

const A_KEY: &str = "sha256:…, as `backstop keys new` prints it, or env.NAME or file.PATH of a key";
const A_TIME: &str = "a time such as \"2027-01-31T00:00:00Z\"";
const NAMES: &str = "[\"*\"] or names";
const DOLLARS: &str = "0 to 1000000 US dollars";
/// Shorter keys can be guessed: 128 bits in base64.
const SHORTEST_KEY: usize = 22;

/// The providers as checked so far.
type Stations = BTreeMap<String, Option<Station>>;

impl Check<'_> {
    /// Everybody who may ask.
    pub(super) fn callers(
        &mut self,
        at: &FieldPath,
        typed: BTreeMap<String, RawCaller>,
        routes: &HashMap<RouteName, Arc<Route>>,
        providers: &[String],
    ) -> Register {
        let mut register = Vec::with_capacity(typed.len());
        let mut owners: HashMap<KeyHash, String> = HashMap::new();
        for (name, raw) in typed {
            let at = at.field(&name);
            if !is_name(&name) {
                self.fault(&at, Problem::BadName { accepted: A_NAME });
            }
            let keys = self.caller_keys(&at.field("keys"), raw.keys.as_deref());
            for (index, hash) in keys.iter().enumerate() {
                if let Some(owner) = owners.insert(*hash, name.clone()) {
                    let at = at.field("keys").item(index);
                    self.fault(&at, Problem::KeyTaken { owner });
                }
            }
            let known: Vec<&str> = routes.keys().map(RouteName::as_str).collect();
            let routes = self.names(&at.field("routes"), raw.routes.as_deref(), &known);
            let known: Vec<&str> = providers.iter().map(String::as_str).collect();
            let providers = self.names(&at.field("providers"), raw.providers.as_deref(), &known);
            let limits = self.caller_limits(&at, &raw);
            let expires = raw.expires.as_deref().and_then(|typed| {
                let time = expiry(typed).ok_or(Problem::WrongValue {
                    found: None,
                    accepted: A_TIME.to_owned(),
                });
                self.take(&at.field("expires"), time)
            });
            let may = raw.may.unwrap_or_default();
            register.push(Caller {
                keys,
                border: Border {
                    routes: allowed(routes, RouteName::new),
                    providers: allowed(providers, ProviderId::new),
                    direct: raw.direct.unwrap_or(true),
                },
                may: Permissions {
                    fallbacks: may.contains(&RawMay::Fallbacks),
                    substitutions: may.contains(&RawMay::Substitutions),
                    pin_keys: may.contains(&RawMay::PinKeys),
                },
                limits,
                expires,
                ..Caller::named(CallerName::new(name))
            });
        }
        // Shared keys were reported above, each where it stands.
        Register::new(register).unwrap_or_default()
    }

    /// The hashes of a caller's keys. A key that stands in the file itself is refused: the file would
    /// be as secret as the key.
    fn caller_keys(&mut self, at: &FieldPath, typed: Option<&[String]>) -> Vec<KeyHash> {
        let Some(typed) = typed.filter(|typed| !typed.is_empty()) else {
            self.fault(at, Problem::Missing { accepted: A_KEY });
            return Vec::new();
        };
        let mut hashes = Vec::with_capacity(typed.len());
        for (index, entry) in typed.iter().enumerate() {
            let at = at.item(index);
            let hash = if entry.trim_start().starts_with("sha256:") {
                KeyHash::from_str(entry.trim()).map_err(|_| Problem::WrongValue {
                    found: None,
                    accepted: A_KEY.to_owned(),
                })
            } else {
                self.resolver.reference(entry, A_KEY).and_then(|key| {
                    if key.len() < SHORTEST_KEY {
                        Err(Problem::KeyTooShort {
                            least: SHORTEST_KEY,
                        })
                    } else {
                        Ok(KeyHash::of(&key))
                    }
                })
            };
            hashes.extend(self.take(&at, hash));
        }
        hashes
    }

    /// Names of what there is; `None` for all.
    fn names(
        &mut self,
        at: &FieldPath,
        typed: Option<&[String]>,
        known: &[&str],
    ) -> Option<Vec<String>> {
        let typed = typed?;
        if typed.is_empty() {
            self.fault(at, Problem::Empty { accepted: NAMES });
        }
        if typed == ["*"] {
            return None;
        }
        for (index, name) in typed.iter().enumerate() {
            if !known.contains(&name.as_str()) {
                let problem = Problem::UnknownName {
                    name: name.clone(),
                    nearest: nearest(name, known.iter().copied()),
                    accepted: known.iter().map(|&name| name.to_owned()).collect(),
                };
                self.fault(&at.item(index), problem);
            }
        }
        Some(typed.to_vec())
    }

    fn caller_limits(&mut self, at: &FieldPath, raw: &RawCaller) -> Limits {
        let mut most = |name: &str, typed: Option<Whole>, most: u64| {
            let Whole(number) = typed?;
            Some(self.count(&at.field(name), Some(number), 0, (0, most)))
        };
        let small = u64::from(u32::MAX);
        let narrow = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        let requests = most("requests_per_minute", raw.requests_per_minute, small);
        let tokens = most("tokens_per_minute", raw.tokens_per_minute, 1 << 50);
        let in_flight = most("in_flight", raw.in_flight, small);
        Limits {
            requests_per_minute: requests.map(narrow),
            tokens_per_minute: tokens.map(Tokens),
            in_flight: in_flight.map(narrow),
            money_per_day: self.dollars(&at.field("usd_per_day"), raw.usd_per_day),
            money_per_month: self.dollars(&at.field("usd_per_month"), raw.usd_per_month),
        }
    }

    /// What models cost, by `provider/model`.
    pub(super) fn prices(
        &mut self,
        at: &FieldPath,
        typed: BTreeMap<String, RawPrice>,
        stations: &Stations,
    ) -> HashMap<String, Price> {
        let mut prices = HashMap::with_capacity(typed.len());
        for (label, raw) in typed {
            let at = at.field(&label);
            let parts = label.split_once('/').filter(|(_, model)| is_model(model));
            match parts {
                None => self.fault(&at, Problem::BadChannel),
                Some((provider, _)) if !stations.contains_key(provider) => {
                    let problem = Problem::UnknownProvider {
                        name: provider.to_owned(),
                        nearest: nearest(provider, stations.keys().map(String::as_str)),
                        accepted: stations.keys().cloned().collect(),
                    };
                    self.fault(&at, problem);
                }
                Some(_) => {}
            }
            let mut required = |name: &str, typed: Option<f64>| {
                if typed.is_none() {
                    self.fault(&at.field(name), Problem::Missing { accepted: DOLLARS });
                }
                self.dollars(&at.field(name), typed).unwrap_or_default()
            };
            let (input, output) = (required("input", raw.input), required("output", raw.output));
            let cache_read = self.dollars(&at.field("cache_read"), raw.cache_read);
            let cache_write = self.dollars(&at.field("cache_write"), raw.cache_write);
            prices.insert(
                label,
                Price {
                    input: whole(input),
                    output: whole(output),
                    cache_read: cache_read.map(whole),
                    cache_write: cache_write.map(whole),
                },
            );
        }
        prices
    }

    /// US dollars, kept in whole millionths.
    fn dollars(&mut self, at: &FieldPath, typed: Option<f64>) -> Option<MicroUsd> {
        /// More in one day, or for a million tokens, is a mistake in the unit.
        const MOST: f64 = 1e6;
        let dollars = typed?;
        if !(0.0..=MOST).contains(&dollars) {
            let problem = Problem::OutOfRange {
                found: dollars.to_string(),
                accepted: DOLLARS.to_owned(),
            };
            self.fault(at, problem);
            return None;
        }
        #[allow(
            clippy::cast_possible_truncation,
            reason = "at most 1e12, as checked above"
        )]
        let micros = (dollars * 1e6).round() as i64;
        Some(MicroUsd(micros))
    }
}

fn whole(amount: MicroUsd) -> u64 {
    u64::try_from(amount.0).unwrap_or_default()
}

fn allowed<T: Ord>(names: Option<Vec<String>>, make: impl Fn(String) -> T) -> Allowed<T> {
    match names {
        None => Allowed::All,
        Some(names) => Allowed::Only(names.into_iter().map(make).collect::<BTreeSet<T>>()),
    }
}

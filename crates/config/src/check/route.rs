//! `routes`.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use backstop_classifier::Class;
use backstop_policy::{Channel, Choice, Group, Route, Substitution};
use backstop_units::{ChannelId, GroupName, KeyId, ModelName, RouteName};

use super::provider::{Station, Stations};
use super::{A_NAME, Check, is_name};
use crate::fault::{Problem, nearest};
use crate::path::FieldPath;
use crate::raw::{
    RawChannel, RawChannelEntry, RawChoice, RawGroup, RawRoute, RawRouteEntry, RawSubstitution,
    Whole,
};
use crate::snapshot::{Defaults, is_model};

/// The heaviest weight, as for keys.
const HEAVIEST: f64 = 1e6;

/// The classes that the decision table lets through to a substitution. A caller's fault is among
/// them for the one kind that a larger model can serve.
const MAY_SUBSTITUTE: [Class; 9] = [
    Class::Credential,
    Class::Quota,
    Class::ModelAccess,
    Class::ModelGone,
    Class::RegionBlocked,
    Class::RateLimit,
    Class::Transient,
    Class::Timeout,
    Class::CallerFault,
];

const GROUPS: &str = "groups = [{ channels = [\"provider/model\"] }]";
const CHANNELS: &str = "channels = [\"provider/model\"]";
const A_CHANNEL: &str = "\"provider/model\", or a table with provider and model";

/// What one route has used up so far.
#[derive(Default)]
struct Seen {
    channels: HashSet<ChannelId>,
    groups: HashSet<String>,
}

impl Check<'_> {
    pub(super) fn routes(
        &mut self,
        at: &FieldPath,
        raw: BTreeMap<String, RawRouteEntry>,
        stations: &Stations,
        defaults: Defaults,
    ) -> HashMap<RouteName, Arc<Route>> {
        let mut routes = HashMap::with_capacity(raw.len());
        for (name, entry) in raw {
            let at = at.field(&name);
            if !is_model(&name) {
                let accepted = "1 to 256 characters without blanks";
                self.fault(&at, Problem::BadName { accepted });
            }
            let route = self.route(&at, &name, entry, stations, defaults);
            routes.insert(route.name.clone(), Arc::new(route));
        }
        routes
    }

    fn route(
        &mut self,
        at: &FieldPath,
        name: &str,
        entry: RawRouteEntry,
        stations: &Stations,
        defaults: Defaults,
    ) -> Route {
        let mut seen = Seen::default();
        let (groups, raw) = match entry {
            RawRouteEntry::One(channel) => {
                let channel = RawChannelEntry::Short(channel);
                let channel = self.channel(at, &channel, stations, &mut seen);
                (in_order(vec![channel]), RawRoute::default())
            }
            RawRouteEntry::InOrder(entries) => {
                if entries.is_empty() {
                    self.fault(at, Problem::Empty { accepted: GROUPS });
                }
                let channels = entries.iter().enumerate().map(|(index, entry)| {
                    self.channel(&at.item(index), entry, stations, &mut seen)
                });
                (in_order(channels.collect()), RawRoute::default())
            }
            RawRouteEntry::Full(raw) => {
                let groups = self.groups(at, raw.groups.as_deref(), stations, &mut seen);
                (groups, raw)
            }
        };
        let substitutions = raw.substitutions.as_deref().unwrap_or_default();
        let at_substitutions = at.field("substitutions");
        let substitutions = substitutions
            .iter()
            .enumerate()
            .filter_map(|(index, entry)| {
                self.substitution(&at_substitutions.item(index), entry, stations, &mut seen)
            });
        let substitutions = substitutions.collect();
        let bounds = self.bounds(at, &raw.bounds(), defaults);
        Route {
            name: RouteName::new(name),
            groups,
            substitutions,
            limits: bounds.limits,
            commit: bounds.commit,
            lossy: bounds.lossy,
        }
    }

    fn groups(
        &mut self,
        at: &FieldPath,
        raw: Option<&[RawGroup]>,
        stations: &Stations,
        seen: &mut Seen,
    ) -> Vec<Group> {
        let at = at.field("groups");
        match raw {
            None => self.fault(&at, Problem::Missing { accepted: GROUPS }),
            Some([]) => self.fault(&at, Problem::Empty { accepted: GROUPS }),
            Some(_) => {}
        }
        let groups = raw.unwrap_or_default().iter().enumerate();
        groups
            .map(|(index, raw)| self.group(&at.item(index), index, raw, stations, seen))
            .collect()
    }

    fn group(
        &mut self,
        at: &FieldPath,
        index: usize,
        raw: &RawGroup,
        stations: &Stations,
        seen: &mut Seen,
    ) -> Group {
        let name = raw.name.clone().unwrap_or_else(|| default_name(index));
        if !is_name(&name) {
            self.fault(&at.field("name"), Problem::BadName { accepted: A_NAME });
        }
        if !seen.groups.insert(name.clone()) {
            let name = name.clone();
            self.fault(&at.field("name"), Problem::Twice { name });
        }
        let requests_per_minute = raw.requests_per_minute.map(|Whole(number)| {
            let most = u64::from(u32::MAX);
            let number = self.count(
                &at.field("requests_per_minute"),
                Some(number),
                most,
                (0, most),
            );
            u32::try_from(number).unwrap_or(u32::MAX)
        });
        let at = at.field("channels");
        match raw.channels.as_deref() {
            None => self.fault(&at, Problem::Missing { accepted: CHANNELS }),
            Some([]) => self.fault(&at, Problem::Empty { accepted: CHANNELS }),
            Some(_) => {}
        }
        let channels = raw
            .channels
            .as_deref()
            .unwrap_or_default()
            .iter()
            .enumerate();
        Group {
            name: GroupName::new(name),
            requests_per_minute,
            choice: match raw.choice {
                Some(RawChoice::Weighted) => Choice::Weighted,
                Some(RawChoice::LeastLatency) => Choice::LeastLatency,
                Some(RawChoice::LeastBusy) => Choice::LeastBusy,
                Some(RawChoice::Priority) | None => Choice::Priority,
            },
            channels: channels
                .filter_map(|(index, entry)| self.channel(&at.item(index), entry, stations, seen))
                .collect(),
        }
    }

    fn substitution(
        &mut self,
        at: &FieldPath,
        raw: &RawSubstitution,
        stations: &Stations,
        seen: &mut Seen,
    ) -> Option<Substitution> {
        let on = self.classes(&at.field("on"), raw.on.as_deref());
        let at_window = at.field("context_window");
        let window = self.window(&at_window, raw.context_window);
        let at = at.field("channel");
        let Some(entry) = &raw.channel else {
            self.fault(
                &at,
                Problem::Missing {
                    accepted: A_CHANNEL,
                },
            );
            return None;
        };
        if let (
            Some(_),
            RawChannelEntry::Full(RawChannel {
                context_window: Some(_),
                ..
            }),
        ) = (window, entry)
        {
            let problem = Problem::Contradiction {
                other: "channel.context_window",
                accepted: "one of the two",
            };
            self.fault(&at_window, problem);
        }
        let mut channel = self.channel(&at, entry, stations, seen)?;
        if window.is_some() {
            let contract = &mut Arc::make_mut(&mut channel).contract;
            contract.context_window = window;
        }
        Some(Substitution {
            channel,
            on,
            on_content_policy: raw.on_content_policy.unwrap_or(false),
        })
    }

    fn classes(&mut self, at: &FieldPath, typed: Option<&[String]>) -> Vec<Class> {
        let accepted: Vec<&'static str> = MAY_SUBSTITUTE.map(Class::name).to_vec();
        if let Some([]) = typed {
            let accepted = "classes of failure; without `on` it is all of them";
            self.fault(at, Problem::Empty { accepted });
        }
        let mut classes = Vec::new();
        for (index, name) in typed.unwrap_or_default().iter().enumerate() {
            match MAY_SUBSTITUTE.iter().find(|class| class.name() == name) {
                Some(class) => classes.push(*class),
                None => self.fault(&at.item(index), Problem::not_one_of(name, &accepted)),
            }
        }
        classes
    }

    /// A channel of a route. Nothing when it has a fault, or its provider has.
    fn channel(
        &mut self,
        at: &FieldPath,
        entry: &RawChannelEntry,
        stations: &Stations,
        seen: &mut Seen,
    ) -> Option<Arc<Channel>> {
        let before = self.faults.len();
        let (raw, at_provider, at_model) = match entry {
            RawChannelEntry::Short(label) => {
                let (provider, model) = self.take(at, split(label))?;
                let raw = RawChannel {
                    provider: Some(provider.to_owned()),
                    model: Some(model.to_owned()),
                    ..RawChannel::default()
                };
                (raw, at.clone(), at.clone())
            }
            RawChannelEntry::Full(raw) => (raw.clone(), at.field("provider"), at.field("model")),
        };
        let model = self.model(&at_model, raw.model.as_deref());
        let station = self.station_of(&at_provider, raw.provider.as_deref(), stations)?;
        let channel = self.over_pattern(at, &raw, station, model?);
        if !seen.channels.insert(channel.id.clone()) {
            let channel = channel.label();
            self.fault(at, Problem::ChannelTwice { channel });
        }
        let is_served = match channel.keys.as_slice() {
            _ if channel.pool.is_keyless() => true,
            [] => channel
                .pool
                .keys()
                .iter()
                .any(|key| key.serves(&channel.model)),
            subset => channel
                .pool
                .keys()
                .iter()
                .any(|key| subset.contains(key.id()) && key.serves(&channel.model)),
        };
        if !is_served && self.faults.len() == before {
            let problem = Problem::Unserved {
                provider: channel.provider.to_string(),
                model: channel.model.to_string(),
            };
            self.fault(&at_model, problem);
        }
        (self.faults.len() == before).then(|| Arc::new(channel))
    }

    fn model(&mut self, at: &FieldPath, typed: Option<&str>) -> Option<ModelName> {
        let name = match typed {
            None => Err(Problem::Missing {
                accepted: "the model as the provider names it",
            }),
            Some(name) if is_model(name) => Ok(ModelName::new(name)),
            Some(_) => Err(Problem::BadName {
                accepted: "1 to 256 characters without blanks",
            }),
        };
        self.take(at, name)
    }

    fn station_of<'s>(
        &mut self,
        at: &FieldPath,
        typed: Option<&str>,
        stations: &'s Stations,
    ) -> Option<&'s Station> {
        let found = match typed {
            None => Err(Problem::Missing {
                accepted: "the name of a provider",
            }),
            Some(name) => stations.get(name).ok_or_else(|| Problem::UnknownProvider {
                name: name.to_owned(),
                nearest: nearest(name, stations.keys().map(String::as_str)),
                accepted: stations.keys().cloned().collect(),
            }),
        };
        self.take(at, found)?.as_ref()
    }

    /// The provider's pattern with what the route says over it.
    fn over_pattern(
        &mut self,
        at: &FieldPath,
        raw: &RawChannel,
        station: &Station,
        model: ModelName,
    ) -> Channel {
        let pattern = &station.pattern;
        let keys = self.subset(&at.field("keys"), raw.keys.as_deref(), pattern);
        let mut contract = pattern.contract;
        if let Some(Whole(_)) = raw.context_window {
            contract.context_window = self.window(&at.field("context_window"), raw.context_window);
        }
        let at_contract = at.field("contract");
        let contract = self.narrow(
            &at_contract,
            station.provider.dialect_of(&model),
            contract,
            raw.contract,
        );
        let mut retry = pattern.retry.clone();
        retry.max_retries =
            self.max_retries(&at.field("max_retries"), raw.max_retries, retry.max_retries);
        let weight = raw.weight.unwrap_or(1.0);
        if !(0.0..=HEAVIEST).contains(&weight) {
            let problem = Problem::OutOfRange {
                found: weight.to_string(),
                accepted: format!("0 to {HEAVIEST}"),
            };
            self.fault(&at.field("weight"), problem);
        }
        Channel {
            id: ChannelId::new(&pattern.provider, &model, &keys),
            model,
            keys,
            priority: raw.priority.unwrap_or(0),
            weight,
            contract,
            verified: raw.verified.unwrap_or(pattern.verified),
            retry,
            ..Channel::clone(pattern)
        }
    }

    fn subset(
        &mut self,
        at: &FieldPath,
        typed: Option<&[String]>,
        pattern: &Channel,
    ) -> Vec<KeyId> {
        if let Some([]) = typed {
            let accepted = "names of keys; without `keys` it is all that serve the model";
            self.fault(at, Problem::Empty { accepted });
        }
        let mut keys: Vec<KeyId> = Vec::new();
        for (index, name) in typed.unwrap_or_default().iter().enumerate() {
            let id = KeyId::new(&pattern.provider, name);
            let at = at.item(index);
            if keys.contains(&id) {
                let name = name.clone();
                self.fault(&at, Problem::Twice { name });
            } else if pattern.pool.keys().iter().any(|key| *key.id() == id) {
                keys.push(id);
            } else {
                let names: Vec<&str> = pattern
                    .pool
                    .keys()
                    .iter()
                    .map(|key| key.id().name())
                    .collect();
                let problem = Problem::UnknownKey {
                    provider: pattern.provider.to_string(),
                    name: name.clone(),
                    nearest: nearest(name, names.iter().copied()),
                    accepted: names.into_iter().map(str::to_owned).collect(),
                };
                self.fault(&at, problem);
            }
        }
        keys
    }
}

/// Every channel of every route, once: the first to say something about it is the one.
pub(super) fn channels(
    routes: &HashMap<RouteName, Arc<Route>>,
) -> HashMap<ChannelId, Arc<Channel>> {
    let mut in_order: Vec<&Arc<Route>> = routes.values().collect();
    in_order.sort_by(|a, b| a.name.cmp(&b.name));
    let mut channels = HashMap::new();
    for route in in_order {
        let listed = route.groups.iter().flat_map(|group| &group.channels);
        let substitutes = route.substitutions.iter().map(|entry| &entry.channel);
        for channel in listed.chain(substitutes) {
            channels
                .entry(channel.id.clone())
                .or_insert_with(|| Arc::clone(channel));
        }
    }
    channels
}

/// A group for each channel, in order.
fn in_order(channels: Vec<Option<Arc<Channel>>>) -> Vec<Group> {
    let present = channels.into_iter().flatten().enumerate();
    present
        .map(|(index, channel)| {
            backstop_policy::single(GroupName::new(default_name(index)), channel)
        })
        .collect()
}

fn default_name(index: usize) -> String {
    format!("group-{}", index + 1)
}

/// `provider/model`, split at the first slash.
fn split(label: &str) -> Result<(&str, &str), Problem> {
    match label.split_once('/') {
        Some((provider, model)) if !provider.is_empty() && !model.is_empty() => {
            Ok((provider, model))
        }
        _ => Err(Problem::BadChannel),
    }
}

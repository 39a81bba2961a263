//! The plan of one request: which channels may serve it, in which order, and why others may not.

use std::sync::Arc;

use backstop_chat::{Capabilities, Need, NeedSet, Needs, uncovered};
use backstop_classifier::{Class, Verdict};
use backstop_units::{GroupName, Roll, RouteName, Tokens};

use crate::choice::{Load, ordered};
use crate::decision::{Reach, conduct};
use crate::route::{Channel, Choice, Group, Lossy, Route};
use crate::session::Binding;

/// What a request asks of a route.
#[derive(Clone)]
pub struct Ask<'a> {
    /// What the request needs to be carried.
    pub needs: &'a Needs,
    /// The caller's own chain, in order.
    pub fallbacks: Vec<CallerFallback>,
    /// The chance that orders equals.
    pub roll: Roll,
    /// What a channel can carry for this caller: its contract, less what is lost on the way between
    /// the caller's dialect and the channel's.
    pub carries: &'a dyn Fn(&Channel) -> Capabilities,
    /// Why a channel may not serve this caller at all, where it may not.
    pub barred: &'a dyn Fn(&Channel) -> Option<Exclusion>,
    /// What is going on at a channel. Asked only where a group's choice goes by it.
    pub load: &'a dyn Fn(&Channel) -> Load,
    /// Who served the caller's session before, the latest first; empty without one.
    pub session: &'a [Binding],
}

/// One entry of the caller's `fallbacks`.
#[derive(Debug, Clone)]
pub enum CallerFallback {
    /// A channel that can be tried.
    Channel(Arc<Channel>),
    /// `provider/model` of a provider that is not configured.
    MissingProvider(String),
}

/// The channels that may serve one request, in the order they are tried.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Eligible channels; the first is the primary.
    pub candidates: Vec<Candidate>,
    /// Channels that were left out, each with its reason.
    pub excluded: Vec<Excluded>,
    /// The limits of the route's groups, by place.
    pub(crate) quotas: Vec<Option<Quota>>,
}

/// How many requests may come to one group of a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quota {
    /// The route.
    pub route: RouteName,
    /// The group.
    pub group: GroupName,
    /// Requests in any minute.
    pub per_minute: u32,
}

/// A channel in its place in a plan.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// The channel.
    pub channel: Arc<Channel>,
    /// By what right it may serve.
    pub leg: Leg,
    /// Which group it stands in; each entry of the caller's own chain and each substitution is a
    /// group of its own.
    pub group: usize,
}

/// By what right a channel may serve a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Leg {
    /// In the route's first group.
    Primary,
    /// In a later group of the route: the same contract.
    SameContract,
    /// Named by the operator as another model that may answer.
    Substitution {
        /// The classes that may lead here; empty: whatever the decision table lets through.
        on: Vec<Class>,
        /// Whether a refusal by content policy may lead here.
        on_content_policy: bool,
    },
    /// Named by the caller in `fallbacks`.
    CallerFallback {
        /// Whether it serves the very model the primary serves.
        same_model: bool,
    },
}

/// A channel that may not serve the request.
#[derive(Debug, Clone, PartialEq)]
pub struct Excluded {
    /// `provider/model`.
    pub channel: String,
    /// Which group it would stand in: its place among the candidates.
    pub group: usize,
    /// Why.
    pub reason: Exclusion,
}

/// Why a channel may not serve a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Exclusion {
    /// The request needs something the channel's contract does not cover.
    #[error("its contract does not cover {}", .0.as_str())]
    Uncovered(Need),
    /// Its weight is 0.
    #[error("it is drained (weight 0)")]
    Drained,
    /// The caller named a provider that is not configured.
    #[error("its provider is not configured")]
    MissingProvider,
    /// Its provider is beyond the caller's border.
    #[error("it is not open to this caller")]
    NotAllowed,
    /// It takes its callers' own tokens, and this one brought none.
    #[error("it takes the caller's own token, and none was sent")]
    NoToken,
    /// It stands in the plan already; a second visit would be a retry by another name.
    #[error("it stands earlier in the plan")]
    Repeated,
}

impl Plan {
    /// A plan that has no choice.
    #[must_use]
    pub fn only(channel: Arc<Channel>) -> Self {
        Self {
            candidates: vec![Candidate {
                channel,
                leg: Leg::Primary,
                group: 0,
            }],
            excluded: Vec::new(),
            quotas: Vec::new(),
        }
    }

    /// Orders the channels of `route` that cover what the request needs.
    #[must_use]
    pub fn new(route: &Route, ask: &Ask<'_>) -> Self {
        let mut plan = Self {
            candidates: Vec::new(),
            excluded: Vec::new(),
            quotas: Vec::new(),
        };
        let mut roll = ask.roll;
        for (place, group) in route.groups.iter().enumerate() {
            plan.quotas
                .push(group.requests_per_minute.map(|per_minute| Quota {
                    route: route.name.clone(),
                    group: group.name.clone(),
                    per_minute,
                }));
            for channel in ordered(group, ask, &mut roll) {
                let leg = if place == 0 {
                    Leg::Primary
                } else {
                    Leg::SameContract
                };
                plan.admit(channel, leg, place, ask, route.lossy);
            }
        }
        let mut place = route.groups.len();
        let own = route.groups.iter().flat_map(|group| &group.channels);
        for fallback in &ask.fallbacks {
            match fallback {
                CallerFallback::Channel(channel) => {
                    let same_model = own.clone().any(|own| own.model == channel.model);
                    let leg = Leg::CallerFallback { same_model };
                    plan.admit(Arc::clone(channel), leg, place, ask, route.lossy);
                }
                CallerFallback::MissingProvider(label) => plan.excluded.push(Excluded {
                    channel: label.clone(),
                    group: place,
                    reason: Exclusion::MissingProvider,
                }),
            }
            place += 1;
        }
        for substitution in &route.substitutions {
            let leg = Leg::Substitution {
                on: substitution.on.clone(),
                on_content_policy: substitution.on_content_policy,
            };
            plan.admit(
                Arc::clone(&substitution.channel),
                leg,
                place,
                ask,
                route.lossy,
            );
            place += 1;
        }
        plan
    }

    fn admit(
        &mut self,
        channel: Arc<Channel>,
        leg: Leg,
        group: usize,
        ask: &Ask<'_>,
        lossy: Lossy,
    ) {
        let repeated = self
            .candidates
            .iter()
            .any(|candidate| candidate.channel.id == channel.id);
        let reason = if repeated {
            Some(Exclusion::Repeated)
        } else if let Some(barred) = (ask.barred)(&channel) {
            Some(barred)
        } else if channel.weight <= 0.0 {
            Some(Exclusion::Drained)
        } else {
            missing(ask, &channel, lossy).map(Exclusion::Uncovered)
        };
        match reason {
            Some(reason) => {
                self.excluded.push(Excluded {
                    channel: channel.label(),
                    group,
                    reason,
                });
            }
            None => self.candidates.push(Candidate {
                channel,
                leg,
                group,
            }),
        }
    }
}

/// What the request needs and `channel` cannot carry. Fields may be dropped where the route says
/// so; a stream, what is asked at all and room for the request are not fields.
fn missing(ask: &Ask<'_>, channel: &Channel, lossy: Lossy) -> Option<Need> {
    let carries = (ask.carries)(channel);
    match lossy {
        Lossy::Refuse => uncovered(ask.needs, &carries),
        Lossy::Drop => {
            let kept = |need: &Need| {
                matches!(
                    need,
                    Need::Streaming
                        | Need::StoredState
                        | Need::Embeddings
                        | Need::ManyInputs
                        | Need::TokenInputs
                        | Need::CountTokens
                        | Need::Context
                )
            };
            let set: NeedSet = ask.needs.set.iter().filter(kept).collect();
            uncovered(&Needs { set, ..*ask.needs }, &carries)
        }
    }
}

impl Candidate {
    /// Gate 1, between channels: may a failure of this kind be followed up here?
    ///
    /// `failed_window` is the declared context window of the channel that failed.
    #[must_use]
    pub fn admits(&self, failure: &Verdict, failed_window: Option<Tokens>) -> bool {
        let rules = conduct(failure);
        let reach = match &self.leg {
            Leg::Primary | Leg::SameContract | Leg::CallerFallback { same_model: true } => {
                rules.fallback
            }
            // A refusal by content policy has a name of its own, whatever its class.
            Leg::Substitution { on, .. }
                if rules.substitution != Reach::NamedForPolicy
                    && !on.is_empty()
                    && !on.contains(&failure.class) =>
            {
                Reach::Closed
            }
            Leg::Substitution { .. } => rules.substitution,
            Leg::CallerFallback { same_model: false } => rules.substitution,
        };
        match reach {
            Reach::Open => true,
            Reach::Verified => self.channel.verified,
            Reach::LargerWindow => match (self.channel.context_window(), failed_window) {
                (Some(here), Some(there)) => here > there,
                (Some(_), None) | (None, _) => false,
            },
            Reach::NamedForPolicy => matches!(
                self.leg,
                Leg::Substitution {
                    on_content_policy: true,
                    ..
                }
            ),
            Reach::Closed => false,
        }
    }

    /// Whether an answer from here is another model's.
    #[must_use]
    pub const fn is_substitution(&self) -> bool {
        matches!(
            self.leg,
            Leg::Substitution { .. } | Leg::CallerFallback { same_model: false }
        )
    }
}

/// A group made of a single channel, as routes minted from `provider/model` have.
#[must_use]
pub fn single(name: GroupName, channel: Arc<Channel>) -> Group {
    Group {
        name,
        choice: Choice::Priority,
        requests_per_minute: None,
        channels: vec![channel],
    }
}

#[cfg(test)]
mod tests;

//! The plan of one request, from what its route lists and what its body asks for.
//!
//! Here, apart from the handler, so that `backstop explain` plans with the very same code.

use backstop_admission::Caller;
use backstop_chat::{Need, Needs};
use backstop_config::Snapshot;
use backstop_dialects::{Dialect, Fallback, Operation, capabilities_for};
use backstop_policy::{Ask, Binding, CallerFallback, Channel, Exclusion, Load, Plan, Route};
use backstop_state::{Answering, Keeper, State};
use backstop_units::{Moment, ProviderId, Roll};

/// What a request brings to its plan.
#[derive(Debug, Clone, Copy)]
pub struct PlanAsk<'a> {
    /// The caller's dialect.
    pub dialect: Dialect,
    /// What is asked for.
    pub operation: Operation,
    /// What must be carried.
    pub needs: &'a Needs,
    /// The caller's own chain, in order.
    pub fallbacks: &'a [Fallback],
    /// The chance that orders equals.
    pub roll: Roll,
    /// What is going on at the channels, and when; without it each looks as if nobody had used it.
    pub live: Option<(&'a State, Moment)>,
    /// Whether the caller sent a token of its own for a provider.
    pub has_token: bool,
    /// Who asks, where that is known.
    pub caller: Option<&'a Caller>,
    /// Who served the caller's session before, the latest first; empty without one.
    pub session: &'a [Binding],
    /// Who keeps what the request goes on from, where that is known.
    pub keeper: Option<&'a Keeper>,
}

/// Which channels of `route` may serve the request, in which order, and why others may not.
#[must_use]
pub fn plan_for(snapshot: &Snapshot, route: &Route, asked: &PlanAsk<'_>) -> Plan {
    let fallbacks = asked.fallbacks.iter().map(|fallback| {
        let label = format!("{}/{}", fallback.provider, fallback.model);
        match snapshot.channel(&label) {
            Some(channel) => CallerFallback::Channel(channel),
            None => CallerFallback::MissingProvider(label),
        }
    });
    let home = home(snapshot, route, asked);
    let carries = |channel: &Channel| {
        let Some(provider) = snapshot.providers.get(&channel.provider) else {
            return channel.contract;
        };
        let spoken = provider.dialect_for(asked.dialect, &channel.model);
        let carried = capabilities_for(asked.operation, asked.dialect, spoken, &channel.model);
        let carried = match asked.operation.need() {
            Some(need) if !provider.performs(asked.operation, spoken, &channel.model) => {
                carried.without(need)
            }
            _ => carried,
        };
        let keeper = asked.keeper.and_then(|keeper| keeper.key.as_ref());
        let at_home = home.is_none_or(|home| *home == channel.provider)
            && keeper.is_none_or(|key| channel.has_key(key));
        let carried = if at_home {
            carried
        } else {
            carried.without(Need::StoredState)
        };
        channel.contract.and(carried)
    };
    let answering = if asked.needs.set.has(Need::Streaming) {
        Answering::Streamed
    } else {
        Answering::Whole
    };
    let load = |channel: &Channel| {
        let live = asked
            .live
            .and_then(|(state, now)| Some((state.peek(&channel.id)?, now)));
        live.map_or_else(Load::default, |(cell, now)| cell.load(now, answering))
    };
    Plan::new(
        route,
        &Ask {
            needs: asked.needs,
            fallbacks: fallbacks.collect(),
            roll: asked.roll,
            carries: &carries,
            barred: &|channel| barred(snapshot, asked, channel),
            load: &load,
            session: asked.session,
        },
    )
}

/// Why the channel may not serve this caller, where it may not.
fn barred(snapshot: &Snapshot, asked: &PlanAsk<'_>, channel: &Channel) -> Option<Exclusion> {
    let mut border = asked.caller.iter().map(|caller| &caller.border.providers);
    if border.any(|providers| !providers.has(&channel.provider)) {
        return Some(Exclusion::NotAllowed);
    }
    let provider = snapshot.providers.get(&channel.provider)?;
    (provider.takes_callers_own() && !asked.has_token).then_some(Exclusion::NoToken)
}

/// Where the state that the request builds upon is: at the provider that is known to keep it, else,
/// so it is taken, at the first provider of the route that speaks the caller's dialect, the one that
/// answers when nothing fails. No other has it, and so none is asked. `None` for a request that needs
/// no state.
fn home<'s>(snapshot: &Snapshot, route: &'s Route, asked: &PlanAsk<'s>) -> Option<&'s ProviderId> {
    if !asked.needs.has(Need::StoredState) {
        return None;
    }
    if let Some(keeper) = asked.keeper {
        return Some(&keeper.provider);
    }
    let channels = route.groups.iter().flat_map(|group| &group.channels);
    let speaks = |channel: &Channel| {
        let provider = snapshot.providers.get(&channel.provider);
        provider.is_some_and(|provider| {
            provider.dialect_for(asked.dialect, &channel.model) == asked.dialect
        })
    };
    channels
        .map(|channel| &**channel)
        .find(|channel| speaks(channel))
        .map(|channel| &channel.provider)
}

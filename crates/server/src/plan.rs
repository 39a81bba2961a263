//! The plan of one request, from what its route lists and what its body asks for.
//!
//! Here, apart from the handler, so that `backstop explain` plans with the very same code.

use backstop_chat::{Need, Needs};
use backstop_config::Snapshot;
use backstop_dialects::{Dialect, Fallback, capabilities_between};
use backstop_policy::{Ask, Binding, CallerFallback, Channel, Load, Plan, Route};
use backstop_state::{Answering, State};
use backstop_units::{Moment, Roll};

/// What a request brings to its plan.
#[derive(Debug, Clone, Copy)]
pub struct PlanAsk<'a> {
    /// The caller's dialect.
    pub dialect: Dialect,
    /// What must be carried.
    pub needs: &'a Needs,
    /// The caller's own chain, in order.
    pub fallbacks: &'a [Fallback],
    /// The chance that orders equals.
    pub roll: Roll,
    /// What is going on at the channels, and when; without it each looks as if nobody had used it.
    pub live: Option<(&'a State, Moment)>,
    /// Who served the caller's session before, the latest first; empty without one.
    pub session: &'a [Binding],
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
    let carries = |channel: &Channel| match snapshot.providers.get(&channel.provider) {
        Some(provider) => channel
            .contract
            .and(capabilities_between(asked.dialect, provider.dialect())),
        None => channel.contract,
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
            load: &load,
            session: asked.session,
        },
    )
}

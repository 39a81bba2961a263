//! From a checked configuration to the running parts.

use std::sync::Arc;

use anyhow::Context;
use backstop_config::Snapshot;
use backstop_keypool::HoldParams;
use backstop_ledger::Ledger;
use backstop_server::{Chance, Clock, ConnectionLimits, Gateway, Parts, Reloader};
use backstop_state::{Limits, State};
use backstop_telemetry::Metrics;
use backstop_upstream::{Options, Upstream};

/// Builds the gateway.
pub(crate) fn compose(snapshot: Snapshot) -> anyhow::Result<(Arc<Gateway>, Reloader)> {
    let upstream = Upstream::new(Options::default()).context("cannot build the client")?;
    let state = State::new(Limits {
        typed_channels: snapshot.limits.minted_channels,
        holds: HoldParams::default(),
    });
    let ledger = Ledger::new(snapshot.limits.kept_journeys);
    Ok(Gateway::new(Parts {
        snapshot: Arc::new(snapshot),
        state,
        upstream,
        metrics: Arc::new(Metrics::new()),
        ledger,
        clock: Clock::start(),
        chance: Chance::default(),
        hooks: Vec::new(),
    }))
}

/// What the listener allows its peers under this configuration.
pub(crate) fn connection_limits(snapshot: &Snapshot) -> ConnectionLimits {
    ConnectionLimits {
        connections: snapshot.limits.connections,
        first_byte: snapshot.server.head,
        headers: snapshot.server.head,
        stall: snapshot.server.stall,
        drain: snapshot.server.drain,
    }
}

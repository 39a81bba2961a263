//! From a checked configuration to the running parts.

use std::sync::Arc;

use anyhow::Context;
use backstop_config::{LedgerParams, Snapshot};
use backstop_keypool::HoldParams;
use backstop_ledger::{Durability, Ledger, OnFailure, Settings};
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
    let kept = snapshot.limits.kept_journeys;
    let ledger = match &snapshot.ledger {
        None => Ledger::new(kept),
        Some(params) => Ledger::open(kept, settings(params))
            .with_context(|| format!("no ledger at {}", params.path.display()))?,
    };
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

/// The ledger that the configuration asks for.
fn settings(params: &LedgerParams) -> Settings {
    Settings {
        path: params.path.clone(),
        durability: if params.survives_power {
            Durability::Power
        } else {
            Durability::Process
        },
        retention: params.retention,
        max_bytes: params.max_bytes,
        on_failure: if params.closed_on_failure {
            OnFailure::Closed
        } else {
            OnFailure::Open
        },
    }
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

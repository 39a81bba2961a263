//! Scenarios: faults that happened to people who run gateways, played against the real server.
//!
//! A scenario is data: what providers do, how the gateway is set, what callers send, what must hold
//! and what must not happen. [`play`] opens the house, plays it, and looks at every expectation
//! through a check of its own; an expectation that no check knows is a fault. The project's own
//! scenarios lie in `tests/scenarios`; any file of the format can be played.
//!
//! The one invariant: a scenario passes only when everything it says was looked at and holds.

mod caller;
mod check;
mod data;
mod facts;
mod metrics;
mod phrase;
mod play;
mod settings;
mod stage;
mod timeline;

use std::path::{Path, PathBuf};

pub use check::Finding;
pub use data::{Scenario, Unreadable, read};

use check::{Scene, check};

/// How a scenario went.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// It cannot be played yet: what it needs is not built.
    Waits(Vec<String>),
    /// It was played.
    Played {
        /// What was looked at.
        findings: Vec<Finding>,
        /// What the callers and the providers did, a line each, in order of time.
        timeline: Vec<String>,
    },
}

impl Outcome {
    /// Whether it was played and everything holds.
    #[must_use]
    pub fn passed(&self) -> bool {
        matches!(self, Self::Played { .. }) && self.faults().is_empty()
    }

    /// What does not hold: the expectation, and what is wrong with it.
    #[must_use]
    pub fn faults(&self) -> Vec<(&str, &str)> {
        match self {
            Self::Waits(_) => Vec::new(),
            Self::Played { findings, .. } => findings
                .iter()
                .filter_map(|found| Some((found.what.as_str(), found.fault.as_deref()?)))
                .collect(),
        }
    }
}

/// Where the project's own scenarios lie.
#[must_use]
pub fn own() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios")
}

/// Plays one, in a runtime of its own: on a paused clock with connections in memory, or over
/// loopback sockets in real time where its endings need them.
///
/// # Panics
/// When no runtime can be had.
#[must_use]
pub fn play(scenario: &Scenario) -> Outcome {
    let needs = settings::needs(scenario);
    if !needs.is_empty() {
        return Outcome::Waits(needs);
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(!stage::needs_sockets(scenario))
        .build()
        .expect("a runtime of one thread");
    runtime.block_on(async {
        match play::play(scenario).await {
            Ok(played) => Outcome::Played {
                findings: check(&Scene {
                    scenario,
                    played: &played,
                }),
                timeline: timeline::lines(&played),
            },
            Err(fault) => Outcome::Played {
                findings: vec![Finding {
                    what: "it can be played".to_owned(),
                    fault: Some(fault),
                }],
                timeline: Vec::new(),
            },
        }
    })
}

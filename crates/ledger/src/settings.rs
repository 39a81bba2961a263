//! What an operator chooses about the ledger.

use std::path::PathBuf;
use std::time::Duration;

use backstop_units::ByteCount;

/// How a ledger on disk is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The folder; made where it is missing, readable by the gateway's user alone.
    pub path: PathBuf,
    /// What a record survives before the attempt it announces is sent.
    pub durability: Durability,
    /// How long journeys are kept. Default 30 days.
    pub retention: Duration,
    /// The most that journeys take on disk; beyond it the oldest go. Default 1 GiB.
    pub max_bytes: ByteCount,
    /// What becomes of requests while records cannot be written.
    pub on_failure: OnFailure,
}

impl Settings {
    /// A ledger at `path`, everything else by default.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            durability: Durability::Process,
            retention: Duration::from_secs(30 * 24 * 60 * 60),
            max_bytes: ByteCount::mib(1024),
            on_failure: OnFailure::Open,
        }
    }
}

/// What a record survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// The end of the process, however sudden. Not that of the machine. The default.
    Process,
    /// That of the machine: each send waits until the disk has the record, together with others.
    Power,
}

/// What becomes of requests while records cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFailure {
    /// They are served; what is lost is counted. The default.
    Open,
    /// New ones are refused.
    Closed,
}

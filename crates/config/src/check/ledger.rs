//! `ledger`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use backstop_units::ByteCount;

use super::Check;
use crate::fault::Problem;
use crate::path::FieldPath;
use crate::raw::{RawDurability, RawLedger, RawOnFailure, Size, Whole};
use crate::snapshot::LedgerParams;

const A_FOLDER: &str = "a folder such as \"/var/lib/backstop\"";

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl Check<'_> {
    /// Nothing where nothing is to be written.
    pub(super) fn ledger(&mut self, at: &FieldPath, raw: &RawLedger) -> Option<LedgerParams> {
        let default = LedgerParams::at(PathBuf::new());
        let days = raw.retention_days.map(|Whole(days)| days);
        let days = self.count(&at.field("retention_days"), days, 30, (1, 3650));
        let size = raw.max_bytes.map(|Size(bytes)| bytes);
        let bounds = (16 << 20, 1 << 44);
        let most = self.count(&at.field("max_bytes"), size, default.max_bytes.0, bounds);
        if raw.durability == Some(RawDurability::Memory) {
            return None;
        }
        let path = match &raw.path {
            Some(typed) => self.resolver.resolve(typed, A_FOLDER),
            None => self.state_folder(),
        };
        let path = self.take(&at.field("path"), path)?;
        Some(LedgerParams {
            path: self.resolver.beside(Path::new(&path)),
            survives_power: raw.durability == Some(RawDurability::Power),
            retention: DAY * u32::try_from(days).unwrap_or(u32::MAX),
            max_bytes: ByteCount(most),
            closed_on_failure: raw.on_failure == Some(RawOnFailure::Closed),
        })
    }

    /// Where a program of this machine keeps what should outlive it.
    fn state_folder(&self) -> Result<String, Problem> {
        let below = |variable, folder| {
            let state = self.resolver.variable(variable)?;
            Some(format!("{state}{folder}"))
        };
        // systemd may name several folders; the first is the unit's own.
        let unit = self.resolver.variable("STATE_DIRECTORY");
        unit.and_then(|folders| folders.split(':').next().map(str::to_owned))
            .or_else(|| below("XDG_STATE_HOME", "/backstop"))
            .or_else(|| below("HOME", "/.local/state/backstop"))
            .ok_or(Problem::Missing { accepted: A_FOLDER })
    }
}

//! Questions to a ledger on disk, while its gateway works and after it died.
//!
//! Segments are read before the archive: what is indexed meanwhile is then found twice rather than
//! not at all, and told once.

use std::collections::BTreeSet;
use std::path::Path;

use crate::Error;
use crate::archive::{Archive, Filter, Journey, Sqlite, merged_rows};
use crate::durable::{DATABASE, is_written};
use crate::frame::decode;
use crate::storage::{Folder, Storage};

/// A ledger that is only read.
#[derive(Debug)]
pub struct Reader {
    archive: Sqlite,
    /// What segments hold.
    fresh: Sqlite,
    written: bool,
}

impl Reader {
    /// Reads what the folder holds now.
    ///
    /// # Errors
    /// When there is no ledger, or it cannot be read.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let database = path.join(DATABASE);
        if !database.exists() {
            return Err(Error::Missing {
                path: path.to_owned(),
            });
        }
        let written = is_written(path);
        let mut fresh = Sqlite::in_memory()?;
        let folder = Folder::at(path);
        for name in folder.list()? {
            // One that is gone meanwhile is in the archive.
            if let Ok(bytes) = folder.read(&name, 0) {
                fresh.put(&name, 0, &decode(&bytes).entries)?;
            }
        }
        Ok(Self {
            archive: Sqlite::read(&database)?,
            fresh,
            written,
        })
    }

    /// Whether a gateway writes it at this time.
    #[must_use]
    pub const fn is_written(&self) -> bool {
        self.written
    }

    /// The latest journeys that `filter` takes, newest first.
    ///
    /// # Errors
    /// When the archive cannot be read.
    pub fn journeys(&self, filter: &Filter) -> Result<Vec<Journey>, Error> {
        let mut ids: BTreeSet<i64> = self.fresh.ids()?.into_iter().collect();
        let mut found = Vec::new();
        for journey in self.archive.journeys(filter)? {
            if !ids.contains(&journey.id) {
                found.push(journey);
            }
        }
        while let Some(id) = ids.pop_last() {
            let old = self.archive.journey(id)?;
            let journey = match (self.fresh.journey(id)?, old) {
                (Some(fresh), Some(old)) => fresh.merged(old),
                (Some(journey), None) => journey,
                (None, Some(mut old)) => {
                    let rows = self.fresh.rows(id)?;
                    old.attempt_trail = merged_rows(rows, old.attempt_trail);
                    old
                }
                // A row whose journey was lost on a full disk.
                (None, None) => continue,
            };
            found.push(journey);
        }
        for journey in &mut found {
            self.settle(journey);
        }
        found.retain(|journey| filter.takes(journey));
        found.sort_by_key(|journey| std::cmp::Reverse(journey.id));
        found.truncate(filter.limit);
        Ok(found)
    }

    /// Without a gateway nothing is under way.
    fn settle(&self, journey: &mut Journey) {
        if self.written {
            return;
        }
        let unknown = || "unknown".to_owned();
        journey.terminal_reason.get_or_insert_with(unknown);
        for row in &mut journey.attempt_trail {
            row.outcome.get_or_insert_with(unknown);
        }
    }
}

//! Where indexed records are kept for questions: an embedded database today, another one later.

mod query;
mod schema;
mod sqlite;

use std::fmt::Debug;

pub(crate) use query::merged_rows;
pub use query::{Attempt, Filter, Journey};
pub(crate) use sqlite::Sqlite;

use crate::Error;
use crate::entry::Entry;

/// Keeps records by journey. Whatever is put twice is kept once, so that a segment can be indexed
/// again from any place.
pub(crate) trait Archive: Debug + Send {
    /// How far a segment is indexed.
    fn offset(&mut self, segment: &str) -> Result<u64, Error>;
    /// Puts `entries`, and remembers in the same step that the segment is indexed up to `offset`.
    fn put(&mut self, segment: &str, offset: u64, entries: &[Entry<'_>]) -> Result<(), Error>;
    /// Forgets a segment that is gone.
    fn forget(&mut self, segment: &str) -> Result<(), Error>;
    /// Journeys with a lower id belong to processes that are gone: what did not end in them never
    /// will, and how it ended is unknown.
    fn settle_before(&mut self, id: i64) -> Result<(), Error>;
    /// Removes some of the journeys that started before `started_ms`; how many.
    fn prune_before(&mut self, started_ms: i64) -> Result<usize, Error>;
    /// Removes some of the oldest journeys; how many.
    fn prune_oldest(&mut self) -> Result<usize, Error>;
    /// Gives space of removed journeys back.
    fn shrink(&mut self) -> Result<(), Error>;
    /// Bytes that are in use.
    fn size(&mut self) -> Result<u64, Error>;
    /// The highest id of a journey.
    fn last_id(&mut self) -> Result<Option<i64>, Error>;
    /// The highest name of a segment that is remembered.
    fn last_segment(&mut self) -> Result<Option<String>, Error>;
}

//! The ledger: the latest journeys in memory, and where it is wished for all of them on disk.

use std::time::SystemTime;

use backstop_policy::AttemptRow;
use backstop_units::{MicroUsd, Moment};

use crate::Error;
use crate::durable::Durable;
use crate::entry::{AttemptEntry, Entry, JourneyEntry, Place, millis};
use crate::frame::encode;
use crate::memory::Recent;
use crate::record::JourneyRecord;
use crate::settings::{OnFailure, Settings};
use crate::writer::Batch;

/// What attempts cost, where they have a price.
pub type Price<'a> = &'a dyn Fn(&AttemptRow) -> Option<MicroUsd>;

/// Journeys, kept as evidence.
#[derive(Debug)]
pub struct Ledger {
    recent: Recent,
    pub(crate) durable: Option<Durable>,
}

/// A journey that is being written down.
#[derive(Debug, Default)]
pub struct Trace {
    id: i64,
    started_ms: i64,
    /// Rows that are on disk with their end.
    recorded: usize,
    /// What the latest send speaks to its provider.
    spoken: Option<&'static str>,
}

/// A request that must not be served, since it cannot be written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unrecorded;

/// A record's place; some sends wait until the disk has it.
#[derive(Debug, Clone, Copy)]
pub struct Position(Option<u64>);

/// What the ledger did since the start, and holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Facts {
    /// Records that reached a segment.
    pub written: u64,
    /// Records that were lost.
    pub dropped: u64,
    /// Records that reached the archive, those of earlier processes too.
    pub indexed: u64,
    /// Bytes in segments that the archive does not have yet.
    pub lag_bytes: u64,
    /// Bytes on disk.
    pub size_bytes: u64,
    /// Whether records cannot be written now.
    pub failing: bool,
}

impl Ledger {
    /// A ledger in memory, of at most `capacity` journeys; 0 keeps none.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self {
            recent: Recent::new(capacity),
            durable: None,
        }
    }

    /// A ledger on disk, with the latest `capacity` journeys in memory as well.
    ///
    /// # Errors
    /// When another gateway uses it, a later build wrote it, or the folder cannot be used.
    pub fn open(capacity: usize, settings: Settings) -> Result<Self, Error> {
        Ok(Self {
            recent: Recent::new(capacity),
            durable: Some(Durable::open(settings)?),
        })
    }

    /// Writes down that a journey was accepted, at `wall`.
    ///
    /// # Errors
    /// When it cannot be written, and the operator wants no request served that is not.
    pub fn begin(&self, record: &JourneyRecord, wall: SystemTime) -> Result<Trace, Unrecorded> {
        let Some(durable) = &self.durable else {
            return Ok(Trace::default());
        };
        let since = wall.duration_since(SystemTime::UNIX_EPOCH);
        let trace = Trace {
            id: durable.next_id(),
            started_ms: since.map_or(0, |since| signed(millis(since))),
            ..Trace::default()
        };
        let entry = Entry::Begin(JourneyEntry::begun(trace.id, trace.started_ms, record));
        let closed = durable.settings.on_failure == OnFailure::Closed;
        let written = durable.writer.append(batch(&[entry]), !closed);
        if closed && written.is_err() {
            return Err(Unrecorded);
        }
        Ok(trace)
    }

    /// Writes down that the last of `rows` is about to be sent, in `dialect`, and how those before
    /// it ended.
    pub fn sending(
        &self,
        trace: &mut Trace,
        record: &JourneyRecord,
        rows: &[AttemptRow],
        dialect: &'static str,
        price: Price<'_>,
    ) -> Position {
        let (Some(durable), Some((last, before))) = (&self.durable, rows.split_last()) else {
            return Position(None);
        };
        let mut entries = Vec::with_capacity(2);
        ended(trace, record, before, price, &mut entries);
        trace.spoken = Some(dialect);
        let place = place(trace, record, rows, before.len());
        entries.push(Entry::Sending(AttemptEntry::sending(place, last)));
        Position(durable.writer.append(batch(&entries), true).ok())
    }

    /// Waits until the disk has what was written up to `position`, where the operator asks for that.
    /// A disk that takes too long is not waited for: the ledger counts as failing.
    pub async fn secured(&self, position: Position) {
        if let (Some(durable), Position(Some(position))) = (&self.durable, position) {
            durable.secured(position).await;
        }
    }

    /// Writes down how the attempts so far ended, before a pause.
    pub fn settled(
        &self,
        trace: &mut Trace,
        record: &JourneyRecord,
        rows: &[AttemptRow],
        price: Price<'_>,
    ) {
        let Some(durable) = &self.durable else {
            return;
        };
        let mut entries = Vec::new();
        ended(trace, record, rows, price, &mut entries);
        if !entries.is_empty() {
            // Lost ones are counted.
            let _ = durable.writer.append(batch(&entries), true);
        }
    }

    /// Takes a finished journey.
    pub fn end(&self, mut trace: Trace, record: JourneyRecord, price: Price<'_>) {
        if let Some(durable) = &self.durable {
            let mut entries = Vec::with_capacity(2);
            ended(&mut trace, &record, &record.rows, price, &mut entries);
            let end = JourneyEntry::ended(trace.id, trace.started_ms, &record);
            entries.push(Entry::End(end));
            let _ = durable.writer.append(batch(&entries), true);
        }
        self.recent.append(record);
    }

    /// Takes a finished journey whose beginning was not written down.
    pub fn append(&self, record: JourneyRecord) {
        let wall = SystemTime::now();
        if let Ok(trace) = self.begin(&record, wall) {
            self.end(trace, record, &|_| None);
        }
    }

    /// The latest journey with this request id, of those in memory. A caller may use an id more than
    /// once.
    #[must_use]
    pub fn find(&self, request_id: &str) -> Option<JourneyRecord> {
        self.recent.find(request_id)
    }

    /// The latest journeys in memory, newest first, at most `limit`.
    #[must_use]
    pub fn latest(&self, limit: usize) -> Vec<JourneyRecord> {
        self.recent.latest(limit)
    }

    /// How many journeys were ever taken.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.recent.written()
    }

    /// How many journeys are in memory.
    #[must_use]
    pub fn len(&self) -> usize {
        self.recent.len()
    }

    /// Whether none is in memory.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.recent.is_empty()
    }

    /// What it did and holds on disk; `None` for one in memory.
    #[must_use]
    pub fn facts(&self) -> Option<Facts> {
        self.durable.as_ref().map(Durable::facts)
    }

    /// Indexes what was written and lets go of the files. Nothing is written afterwards.
    pub fn close(&self) {
        if let Some(durable) = &self.durable {
            durable.close();
        }
    }
}

/// Those of `rows` whose end is not on disk yet.
fn ended<'a>(
    trace: &mut Trace,
    record: &JourneyRecord,
    rows: &'a [AttemptRow],
    price: Price<'_>,
    entries: &mut Vec<Entry<'a>>,
) {
    for (at, row) in rows.iter().enumerate().skip(trace.recorded) {
        let place = place(trace, record, rows, at);
        entries.push(Entry::Attempt(AttemptEntry::ended(place, row, price(row))));
    }
    trace.recorded = trace.recorded.max(rows.len());
}

/// Where the row `at` stands.
fn place(trace: &Trace, record: &JourneyRecord, rows: &[AttemptRow], at: usize) -> Place {
    let row = &rows[at];
    let before = rows[..at].iter().rev().find(|row| row.attempt.is_some());
    let free: Moment = before.map_or(record.started, |row| row.started + row.total);
    let after = row.started.since(record.started);
    Place {
        journey: trace.id,
        seq: u32::try_from(at + 1).unwrap_or(u32::MAX),
        config_version: record.config_version,
        started_ms: trace.started_ms + signed(millis(after)),
        queue: row.started.since(free).saturating_sub(row.waited),
        dialect: trace.spoken.filter(|_| row.attempt.is_some()),
    }
}

fn batch(entries: &[Entry<'_>]) -> Batch {
    let mut bytes = Vec::with_capacity(512 * entries.len());
    for entry in entries {
        encode(&mut bytes, entry);
    }
    let records = entries.len() as u64;
    Batch { bytes, records }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

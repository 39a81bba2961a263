//! Takes records out of segments and into the archive, in the background; removes what is indexed and
//! what is too old.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use crate::Error;
use crate::archive::Archive;
use crate::entry::Entry;
use crate::frame::{decode, encode};
use crate::settings::Settings;
use crate::storage::Storage;
use crate::writer::{Batch, Writer};

/// How often segments are looked at.
const EVERY: Duration = Duration::from_millis(250);

/// How often old journeys are looked for.
const PRUNE_EVERY: Duration = Duration::from_secs(60);

/// The most steps of pruning at a time; there is more to do than that.
const PRUNE_STEPS: usize = 200;

/// How often lasting trouble is said again.
const REPEAT: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct Indexer {
    pub(crate) archive: Box<dyn Archive>,
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) writer: Arc<Writer>,
    pub(crate) settings: Settings,
    /// The first journey of this process.
    pub(crate) first_id: i64,
    settled: bool,
    pruned_at: Option<Instant>,
    said_at: Option<Instant>,
}

impl Indexer {
    pub(crate) fn new(
        archive: Box<dyn Archive>,
        storage: Arc<dyn Storage>,
        writer: Arc<Writer>,
        settings: Settings,
        first_id: i64,
    ) -> Self {
        Self {
            archive,
            storage,
            writer,
            settings,
            first_id,
            settled: false,
            pruned_at: None,
            said_at: None,
        }
    }

    /// Works until `stop` is set, and then once more.
    pub(crate) fn run(mut self, stop: &AtomicBool) {
        loop {
            let last = stop.load(Ordering::Acquire);
            self.writer.recover(mark);
            if let Err(error) = self.pass(last) {
                self.say(&error);
            }
            if last {
                return;
            }
            thread::park_timeout(EVERY);
        }
    }

    /// Indexes what there is; `last` when nothing will be appended any more.
    pub(crate) fn pass(&mut self, last: bool) -> Result<(), Error> {
        let lag = self.index(last)?;
        if !self.settled {
            // What other processes left is all in now.
            self.archive.settle_before(self.first_id)?;
            self.settled = true;
        }
        let now = Instant::now();
        let due = |at: Instant| now.duration_since(at) >= PRUNE_EVERY;
        if self.pruned_at.is_none_or(due) {
            self.pruned_at = Some(now);
            self.prune()?;
        }
        let counts = &self.writer.counts;
        counts.lag_bytes.store(lag, Ordering::Relaxed);
        let size = self.archive.size()? + self.segments()?;
        counts.size_bytes.store(size, Ordering::Relaxed);
        Ok(())
    }

    /// Indexes every segment; answers with the bytes that are left.
    fn index(&mut self, last: bool) -> Result<u64, Error> {
        let mut left = 0;
        // Asked before any is read: what is not current now will not grow.
        let Some(current) = self.writer.current_name() else {
            return Ok(self.segments()?);
        };
        for name in self.storage.list()? {
            let complete = last || name != current;
            let offset = self.archive.offset(&name)?;
            let bytes = match self.storage.read(&name, offset) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                read => read?,
            };
            let decoded = decode(&bytes);
            if decoded.consumed > 0 {
                let reached = offset + decoded.consumed as u64;
                self.archive.put(&name, reached, &decoded.entries)?;
                let indexed = decoded.entries.len() as u64;
                let counts = &self.writer.counts;
                counts.indexed.fetch_add(indexed, Ordering::Relaxed);
            }
            let torn = bytes.len() - decoded.consumed;
            if decoded.foreign > 0 {
                tracing::warn!(
                    segment = name,
                    records = decoded.foreign,
                    "records that this build does not know were passed over"
                );
            }
            if complete {
                if torn > 0 {
                    tracing::warn!(
                        segment = name,
                        bytes = torn,
                        "the end of a segment is torn, and passed over"
                    );
                }
                self.storage.remove(&name)?;
                self.archive.forget(&name)?;
            } else {
                left += torn as u64;
            }
        }
        Ok(left)
    }

    /// Bytes of all segments.
    fn segments(&self) -> io::Result<u64> {
        let names = self.storage.list()?;
        // One that is gone takes no place.
        Ok(names
            .iter()
            .filter_map(|name| self.storage.size(name).ok())
            .sum())
    }

    /// Removes what is older than it may be, and then the oldest while there is too much.
    fn prune(&mut self) -> Result<(), Error> {
        let wall = wall_ms();
        let age = i64::try_from(self.settings.retention.as_millis()).unwrap_or(i64::MAX);
        let mut removed = 0;
        for _ in 0..PRUNE_STEPS {
            match self.archive.prune_before(wall.saturating_sub(age))? {
                0 => break,
                some => removed += some,
            }
        }
        let most = self.settings.max_bytes.0;
        if self.archive.size()? > most {
            // A tenth less, so that it is not the same again a moment later.
            for _ in 0..PRUNE_STEPS {
                if self.archive.size()? <= most - most / 10 {
                    break;
                }
                match self.archive.prune_oldest()? {
                    0 => break,
                    some => removed += some,
                }
            }
        }
        if removed > 0 {
            tracing::info!(
                journeys = removed,
                "old journeys were removed from the ledger"
            );
            self.archive.shrink()?;
        }
        Ok(())
    }

    /// Segments that cannot be indexed do not fill the disk: the oldest are dropped.
    fn bound_segments(&self) -> io::Result<()> {
        let current = self.writer.current_name();
        let mut all = self.segments()?;
        for name in self.storage.list()? {
            if all <= self.settings.max_bytes.0 || Some(&name) == current.as_ref() {
                break;
            }
            let size = self.storage.size(&name)?;
            let lost = decode(&self.storage.read(&name, 0)?).entries.len() as u64;
            self.storage.remove(&name)?;
            let counts = &self.writer.counts;
            counts.dropped.fetch_add(lost, Ordering::Relaxed);
            all = all.saturating_sub(size);
        }
        Ok(())
    }

    /// Trouble of the archive: the segments keep what it does not take.
    fn say(&mut self, error: &Error) {
        if let Ok(bytes) = self.segments() {
            self.writer.counts.lag_bytes.store(bytes, Ordering::Relaxed);
        }
        let bounded = self.bound_segments();
        let now = Instant::now();
        if self
            .said_at
            .is_some_and(|at| now.duration_since(at) < REPEAT)
        {
            return;
        }
        self.said_at = Some(now);
        let cause = std::error::Error::source(error).map(ToString::to_string);
        tracing::error!(cause, "the ledger cannot be indexed: {error}");
        if let Err(error) = bounded {
            tracing::error!("segments of the ledger cannot be removed: {error}");
        }
    }
}

/// Wall time, milliseconds since 1970.
pub(crate) fn wall_ms() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    })
}

/// A record that says nothing.
fn mark() -> Batch {
    let mut bytes = Vec::new();
    encode(&mut bytes, &Entry::Mark);
    Batch { bytes, records: 0 }
}

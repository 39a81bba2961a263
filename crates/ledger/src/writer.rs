//! Appends records to the current segment, on the path of a request: one write, never a wait for a
//! disk that does not answer, never a failure of the request.
//!
//! Records that cannot be written are kept in a bounded backlog and tried again; beyond it they are
//! dropped and counted. A failed write is cut off again, so that a segment holds whole records up to
//! its torn end.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::storage::{Segment, Storage};

/// How much is written to one file, and how much is kept while none takes it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// The segment's size from which on the next one is begun, bytes.
    pub(crate) segment: u64,
    /// Bytes of records that are kept while the disk takes none.
    pub(crate) backlog: usize,
}

impl Default for Bounds {
    /// 4 MiB each: some thousand requests.
    fn default() -> Self {
        Self {
            segment: 4 * 1024 * 1024,
            backlog: 4 * 1024 * 1024,
        }
    }
}

/// How long a request waits for a write of another one. A write into the page cache takes
/// microseconds; one that takes longer meets a disk that is stuck, and is not waited for again until
/// it is through.
pub(crate) const PATIENCE: Duration = Duration::from_millis(5);

/// After a failed write: how long until the next try.
const PAUSE: Duration = Duration::from_millis(500);

/// How often a lasting failure is said again.
const REPEAT: Duration = Duration::from_secs(60);

/// Counts of what the ledger did with its records since the start.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) written: AtomicU64,
    pub(crate) written_bytes: AtomicU64,
    pub(crate) dropped: AtomicU64,
    pub(crate) indexed: AtomicU64,
    pub(crate) lag_bytes: AtomicU64,
    pub(crate) size_bytes: AtomicU64,
}

/// One or more encoded records that belong together.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) bytes: Vec<u8>,
    pub(crate) records: u64,
}

/// The records were not written, and wait in the backlog or are lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotWritten;

#[derive(Debug)]
pub(crate) struct Writer {
    storage: Arc<dyn Storage>,
    current: Mutex<Current>,
    backlog: Mutex<Backlog>,
    trouble: Mutex<Trouble>,
    /// Read by every append: whether records go straight to the backlog.
    failing: AtomicBool,
    /// Somebody waits for a disk that is stuck.
    stuck: AtomicBool,
    bounds: Bounds,
    pub(crate) counts: Counts,
}

#[derive(Debug)]
struct Current {
    segment: Option<Open>,
    /// Names of segments rise.
    next_name: u64,
    /// Batches appended so far.
    position: u64,
    /// Segments with records that the disk may not have yet; filled only where that matters.
    unsynced: Vec<Arc<dyn Segment>>,
    keep_unsynced: bool,
}

#[derive(Debug)]
struct Open {
    name: String,
    file: Arc<dyn Segment>,
    length: u64,
    /// A failed write could not be cut off: nothing may follow it.
    torn: bool,
}

#[derive(Debug, Default)]
struct Backlog {
    batches: VecDeque<Batch>,
    bytes: usize,
}

#[derive(Debug, Default)]
struct Trouble {
    retry_at: Option<Instant>,
    said_at: Option<Instant>,
    dropped_before: u64,
}

impl Writer {
    /// A writer with its first segment. `first_name` is higher than that of any segment that is
    /// there; `keep_unsynced` where somebody calls [`sync`](Self::sync).
    pub(crate) fn open(
        storage: Arc<dyn Storage>,
        first_name: u64,
        keep_unsynced: bool,
        bounds: Bounds,
    ) -> io::Result<Self> {
        let mut current = Current {
            segment: None,
            next_name: first_name,
            position: 0,
            unsynced: Vec::new(),
            keep_unsynced,
        };
        current.rotate(&*storage)?;
        Ok(Self {
            storage,
            current: Mutex::new(current),
            backlog: Mutex::default(),
            trouble: Mutex::default(),
            failing: AtomicBool::new(false),
            stuck: AtomicBool::new(false),
            bounds,
            counts: Counts::default(),
        })
    }

    /// Whether records cannot be written now.
    pub(crate) fn is_failing(&self) -> bool {
        self.failing.load(Ordering::Relaxed)
    }

    /// Appends the batch. Its position is what [`sync`](Self::sync) answers with once the disk has
    /// it. `keep`: whether a batch that cannot be written waits for a better time.
    pub(crate) fn append(&self, batch: Batch, keep: bool) -> Result<u64, NotWritten> {
        if self.is_failing() && !self.may_retry() {
            self.put_back(batch, keep);
            return Err(NotWritten);
        }
        let patience = if self.stuck.load(Ordering::Relaxed) {
            Duration::ZERO
        } else {
            PATIENCE
        };
        let Some(mut current) = self.current.try_lock_for(patience) else {
            self.stuck.store(true, Ordering::Relaxed);
            self.put_back(batch, keep);
            self.fails(&"a write has not come back yet");
            return Err(NotWritten);
        };
        self.stuck.store(false, Ordering::Relaxed);
        let written = self
            .write_backlog(&mut current)
            .and_then(|()| self.write(&mut current, &batch));
        let position = current.position;
        drop(current);
        match written {
            Ok(()) => {
                self.works();
                Ok(position)
            }
            Err(error) => {
                self.put_back(batch, keep);
                self.fails(&error);
                Err(NotWritten)
            }
        }
    }

    /// Tries again to write what waits; `mark` is written where nothing does.
    pub(crate) fn recover(&self, mark: impl FnOnce() -> Batch) {
        if !self.is_failing() && self.backlog.lock().batches.is_empty() {
            return;
        }
        // A background thread may wait for the disk, but not for ever: it has more to do.
        let Some(mut current) = self.current.try_lock_for(PATIENCE) else {
            return;
        };
        self.stuck.store(false, Ordering::Relaxed);
        let waits = !self.backlog.lock().batches.is_empty();
        let written = if waits {
            self.write_backlog(&mut current)
        } else {
            self.write(&mut current, &mark())
        };
        drop(current);
        match written {
            Ok(()) => self.works(),
            Err(error) => self.fails(&error),
        }
    }

    /// The segment that is appended to; all others are complete. `None` while the disk is stuck.
    pub(crate) fn current_name(&self) -> Option<String> {
        let current = self.current.try_lock_for(PATIENCE)?;
        current.segment.as_ref().map(|open| open.name.clone())
    }

    /// Has the disk take everything that was appended, and says up to which position.
    pub(crate) fn sync(&self) -> io::Result<u64> {
        let (files, position) = {
            let mut current = self.current.lock();
            let mut files = std::mem::take(&mut current.unsynced);
            files.extend(current.segment.as_ref().map(|open| Arc::clone(&open.file)));
            (files, current.position)
        };
        for (at, file) in files.iter().enumerate() {
            if let Err(error) = file.sync() {
                self.current
                    .lock()
                    .unsynced
                    .extend(files[at..].iter().cloned());
                self.fails(&error);
                return Err(error);
            }
        }
        Ok(position)
    }

    fn write(&self, current: &mut Current, batch: &Batch) -> io::Result<()> {
        let full = current
            .segment
            .as_ref()
            .is_none_or(|open| open.torn || open.length >= self.bounds.segment);
        if full {
            current.rotate(&*self.storage)?;
        }
        let open = current.segment.as_mut().expect("rotated to one");
        if let Err(error) = open.file.append(&batch.bytes) {
            open.torn = open.file.truncate(open.length).is_err();
            return Err(error);
        }
        let bytes = batch.bytes.len() as u64;
        open.length += bytes;
        current.position += 1;
        self.counts
            .written
            .fetch_add(batch.records, Ordering::Relaxed);
        self.counts
            .written_bytes
            .fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    fn write_backlog(&self, current: &mut Current) -> io::Result<()> {
        loop {
            let Some(batch) = self.take_back() else {
                return Ok(());
            };
            if let Err(error) = self.write(current, &batch) {
                let mut backlog = self.backlog.lock();
                backlog.bytes += batch.bytes.len();
                backlog.batches.push_front(batch);
                return Err(error);
            }
        }
    }

    fn take_back(&self) -> Option<Batch> {
        let mut backlog = self.backlog.lock();
        let batch = backlog.batches.pop_front()?;
        backlog.bytes -= batch.bytes.len();
        Some(batch)
    }

    /// Keeps the batch for later, or drops it where the backlog is full.
    fn put_back(&self, batch: Batch, keep: bool) {
        if !keep {
            return;
        }
        let mut backlog = self.backlog.lock();
        if backlog.bytes + batch.bytes.len() > self.bounds.backlog {
            self.counts
                .dropped
                .fetch_add(batch.records, Ordering::Relaxed);
            return;
        }
        backlog.bytes += batch.bytes.len();
        backlog.batches.push_back(batch);
    }

    fn may_retry(&self) -> bool {
        let now = Instant::now();
        let mut trouble = self.trouble.lock();
        let due = trouble.retry_at.is_none_or(|at| at <= now);
        if due {
            // One request tries, the others need not.
            trouble.retry_at = Some(now + PAUSE);
        }
        due
    }

    pub(crate) fn fails(&self, error: &dyn std::fmt::Display) {
        let now = Instant::now();
        let mut trouble = self.trouble.lock();
        trouble.retry_at = Some(now + PAUSE);
        self.failing.store(true, Ordering::Relaxed);
        if trouble
            .said_at
            .is_some_and(|at| now.duration_since(at) < REPEAT)
        {
            return;
        }
        trouble.said_at = Some(now);
        let dropped = self.counts.dropped.load(Ordering::Relaxed);
        tracing::error!(dropped, "the ledger cannot be written: {error}");
    }

    fn works(&self) {
        if !self.failing.swap(false, Ordering::Relaxed) {
            return;
        }
        let mut trouble = self.trouble.lock();
        trouble.retry_at = None;
        trouble.said_at = None;
        let dropped = self.counts.dropped.load(Ordering::Relaxed);
        let lost = dropped - std::mem::replace(&mut trouble.dropped_before, dropped);
        tracing::warn!(lost, "the ledger can be written again");
    }
}

impl Current {
    /// Ends the segment and begins the next.
    fn rotate(&mut self, storage: &dyn Storage) -> io::Result<()> {
        let name = format!("{:020}", self.next_name);
        let file = storage.create(&name)?;
        self.next_name += 1;
        let next = Open {
            name,
            file,
            length: 0,
            torn: false,
        };
        if let Some(old) = self.segment.replace(next)
            && self.keep_unsynced
        {
            self.unsynced.push(old.file);
        }
        Ok(())
    }
}

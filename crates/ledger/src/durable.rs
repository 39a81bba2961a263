//! A ledger on disk, put together: its folder, its writer, its threads.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::Error;
use crate::archive::{Archive, Sqlite};
use crate::indexer::{Indexer, wall_ms};
use crate::ledger::Facts;
use crate::settings::{Durability, Settings};
use crate::storage::{Folder, Storage};
use crate::writer::{Bounds, Writer};

/// The database.
pub(crate) const DATABASE: &str = "ledger.sqlite3";

/// Held by the gateway that writes.
const LOCK: &str = "lock";

/// How long a send waits for a disk that syncs. Our choice: longer than a busy disk takes, shorter
/// than a caller's patience.
const SYNC_PATIENCE: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(crate) struct Durable {
    pub(crate) settings: Settings,
    pub(crate) writer: Arc<Writer>,
    next_id: AtomicI64,
    stop: Arc<AtomicBool>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    syncing: Option<Syncing>,
    /// Others see by it that a gateway is at work.
    _lock: File,
}

/// Whoever waits for the disk asks here.
#[derive(Debug)]
struct Syncing {
    thread: thread::Thread,
    synced: watch::Receiver<u64>,
}

impl Durable {
    pub(crate) fn open(settings: Settings) -> Result<Self, Error> {
        let storage = Arc::new(Folder::open(&settings.path)?);
        Self::with(settings, storage, Bounds::default())
    }

    /// A ledger whose segments lie in `storage`.
    pub(crate) fn with(
        settings: Settings,
        storage: Arc<dyn Storage>,
        bounds: Bounds,
    ) -> Result<Self, Error> {
        let path = &settings.path;
        let lock = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(path.join(LOCK))?;
        if lock.try_lock().is_err() {
            return Err(Error::InUse { path: path.clone() });
        }
        let survives_power = settings.durability == Durability::Power;
        let mut archive = Sqlite::open(&path.join(DATABASE), survives_power)?;

        // Microseconds since 1970, so that numbers rise over restarts; and where the clock was set
        // back, higher than what is there.
        let now = wall_ms().saturating_mul(1000);
        let first_id = archive.last_id()?.map_or(now, |last| now.max(last + 1));
        let names = storage.list()?.into_iter().chain(archive.last_segment()?);
        let last_name = names.filter_map(|name| name.parse::<u64>().ok()).max();
        let now = u64::try_from(now).unwrap_or(0);
        let first_name = last_name.map_or(now, |last| now.max(last + 1));
        let writer = Writer::open(Arc::clone(&storage), first_name, survives_power, bounds)?;
        let writer = Arc::new(writer);

        let stop = Arc::new(AtomicBool::new(false));
        let mut threads = Vec::new();
        let indexer = Indexer::new(
            Box::new(archive),
            storage,
            Arc::clone(&writer),
            settings.clone(),
            first_id,
        );
        let stopped = Arc::clone(&stop);
        threads.push(spawn("backstop-ledger", move || indexer.run(&stopped))?);
        let syncing = if survives_power {
            let (publish, synced) = watch::channel(0);
            let (writer, stopped) = (Arc::clone(&writer), Arc::clone(&stop));
            let thread = spawn("backstop-sync", move || {
                sync(&writer, &publish, &stopped);
            })?;
            let syncing = Syncing {
                thread: thread.thread().clone(),
                synced,
            };
            threads.push(thread);
            Some(syncing)
        } else {
            None
        };
        Ok(Self {
            settings,
            writer,
            next_id: AtomicI64::new(first_id),
            stop,
            threads: Mutex::new(threads),
            syncing,
            _lock: lock,
        })
    }

    pub(crate) fn next_id(&self) -> i64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) async fn secured(&self, position: u64) {
        let Some(syncing) = &self.syncing else {
            return;
        };
        syncing.thread.unpark();
        let mut synced = syncing.synced.clone();
        let wait = synced.wait_for(|synced| *synced >= position);
        if tokio::time::timeout(SYNC_PATIENCE, wait).await.is_err() {
            self.writer.fails(&"the disk does not sync");
        }
    }

    pub(crate) fn facts(&self) -> Facts {
        let counts = &self.writer.counts;
        let read = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Relaxed);
        Facts {
            written: read(&counts.written),
            dropped: read(&counts.dropped),
            indexed: read(&counts.indexed),
            lag_bytes: read(&counts.lag_bytes),
            size_bytes: read(&counts.size_bytes),
            failing: self.writer.is_failing(),
        }
    }

    pub(crate) fn close(&self) {
        self.stop.store(true, Ordering::Release);
        let threads = std::mem::take(&mut *self.threads.lock());
        for thread in &threads {
            thread.thread().unpark();
        }
        for thread in threads {
            // One that panicked has said so.
            let _ = thread.join();
        }
    }
}

impl Drop for Durable {
    fn drop(&mut self) {
        self.close();
    }
}

/// Syncs whenever somebody waits, for all who wait at once.
fn sync(writer: &Writer, publish: &watch::Sender<u64>, stop: &AtomicBool) {
    loop {
        let last = stop.load(Ordering::Acquire);
        if let Ok(position) = writer.sync() {
            publish.send_replace(position);
        }
        if last {
            return;
        }
        thread::park_timeout(Duration::from_secs(1));
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name(name.to_owned()).spawn(work)
}

/// Whether a gateway writes the ledger in this folder.
pub(crate) fn is_written(path: &Path) -> bool {
    let lock: PathBuf = path.join(LOCK);
    File::open(lock).is_ok_and(|lock| lock.try_lock_shared().is_err())
}

#[cfg(test)]
mod tests;

//! Ledgers that live, die, meet full and stuck disks, and grow old.

use std::os::unix::fs::PermissionsExt;
use std::sync::mpsc;
use std::time::SystemTime;

use backstop_classifier::Class;
use backstop_policy::{AttemptAction, AttemptRow, Outcome, Phase, UpstreamPhase};
use backstop_units::{ByteCount, ChannelId, KeyId, ModelName, Moment, ProviderId, RequestId};

use super::*;
use crate::entry::Entry;
use crate::frame::encode;
use crate::ledger::{Ledger, Trace};
use crate::storage::Segment;
use crate::writer::{Batch, Bounds};
use crate::{Filter, Journey, JourneyRecord, OnFailure, Reader};

fn row(attempt: u32) -> AttemptRow {
    let (provider, model) = (ProviderId::new("openai"), ModelName::new("gpt-4o"));
    AttemptRow {
        attempt: Some(attempt),
        action: AttemptAction::Direct,
        channel: ChannelId::new(&provider, &model, &[]),
        key: Some(KeyId::new(&provider, "openai-key-1")),
        provider,
        model,
        outcome: Outcome::Failed,
        class: Some(Class::Quota),
        kind: None,
        signal: Some("code insufficient_quota".to_owned()),
        fail_reason: None,
        code: None,
        status: Some(429),
        phase: Phase::BeforeOutput,
        upstream_phase: UpstreamPhase::Headers,
        retry_after: None,
        connection_reused: Some(false),
        waited: Duration::ZERO,
        started: Moment::from_millis(5),
        connect: None,
        headers: Some(Duration::from_millis(7)),
        first_output: None,
        total: Duration::from_millis(9),
        usage: None,
    }
}

fn record(id: &str) -> JourneyRecord {
    JourneyRecord {
        route: "fast".to_owned(),
        dialect: "openai-chat",
        config_version: 3,
        ..JourneyRecord::begun(RequestId::new(id), "fast")
    }
}

fn begin(ledger: &Ledger, id: &str) -> Trace {
    let begun = ledger.begin(&record(id), SystemTime::now());
    begun.expect("accepted")
}

/// A journey with one attempt under way.
fn send(ledger: &Ledger, id: &str) -> Trace {
    let mut trace = begin(ledger, id);
    let dialect = "openai-chat";
    let _ = ledger.sending(&mut trace, &record(id), &[row(1)], dialect, &|_| None);
    trace
}

fn end(ledger: &Ledger, trace: Trace, id: &str) {
    let ended = JourneyRecord {
        rows: vec![row(1)],
        terminal: "exhausted",
        status: Some(429),
        ..record(id)
    };
    ledger.end(trace, ended, &|_| None);
}

fn ask(path: &Path, id: &str) -> Vec<Journey> {
    let reader = Reader::open(path).expect("a ledger");
    let filter = Filter {
        request_id: Some(id.to_owned()),
        limit: 10,
        ..Filter::default()
    };
    reader.journeys(&filter).expect("readable")
}

fn reasons(path: &Path, id: &str) -> Vec<(Option<String>, Vec<Option<String>>)> {
    let outcomes = |journey: &Journey| {
        let rows = journey.attempt_trail.iter();
        rows.map(|row| row.outcome.clone()).collect()
    };
    let journeys = ask(path, id);
    let told = journeys.iter();
    told.map(|journey| (journey.terminal_reason.clone(), outcomes(journey)))
        .collect()
}

fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[test]
fn a_reader_beside_the_gateway_sees_it_under_way_and_ended() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new").join("ledger");
    let ledger = Ledger::open(10, Settings::at(&path)).unwrap();
    let trace = send(&ledger, "a");
    assert_eq!(reasons(&path, "a"), [(None, vec![None])]);
    end(&ledger, trace, "a");
    let ended = [(text("exhausted"), vec![text("failed")])];
    assert_eq!(reasons(&path, "a"), ended);
    ledger.close();
    assert_eq!(reasons(&path, "a"), ended);
    assert_eq!(Folder::at(&path).list().unwrap(), [""; 0], "all is indexed");
    let journey = ask(&path, "a").remove(0);
    let row = &journey.attempt_trail[0];
    assert_eq!(row.dialect.as_deref(), Some("openai-chat"));
    assert_eq!(row.key_name.as_deref(), Some("openai-key-1"));
    assert_eq!((row.queue_ms, row.config_version), (Some(5), Some(3)));
    assert_eq!(row.input_tokens, None, "absent is not zero");
    let facts = ledger.facts().unwrap();
    assert_eq!((facts.written, facts.dropped, facts.indexed), (4, 0, 4));
}

#[test]
fn filters_hold_together() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(10, Settings::at(folder.path())).unwrap();
    for id in ["a", "b"] {
        let trace = send(&ledger, id);
        end(&ledger, trace, id);
    }
    let _open = send(&ledger, "c");
    let all = Filter {
        limit: 10,
        ..Filter::default()
    };
    let count = |filter: &Filter| {
        let reader = Reader::open(folder.path()).unwrap();
        reader.journeys(filter).unwrap().len()
    };
    for indexed in [false, true] {
        if indexed {
            ledger.close();
        }
        let last = if indexed { "unknown" } else { "under_way" };
        let _free = indexed.then(|| std::fs::remove_file(folder.path().join(LOCK)));
        for (filter, found) in [
            (all.clone(), 3),
            (
                Filter {
                    limit: 2,
                    ..all.clone()
                },
                2,
            ),
            (
                Filter {
                    class: text("quota"),
                    ..all.clone()
                },
                2,
            ),
            (
                Filter {
                    class: text("timeout"),
                    ..all.clone()
                },
                0,
            ),
            (
                Filter {
                    route: text("fast"),
                    ..all.clone()
                },
                3,
            ),
            (
                Filter {
                    route: text("slow"),
                    ..all.clone()
                },
                0,
            ),
            (
                Filter {
                    provider: text("openai"),
                    ..all.clone()
                },
                3,
            ),
            (
                Filter {
                    caller: text("team"),
                    ..all.clone()
                },
                0,
            ),
            (
                Filter {
                    outcome: text("exhausted"),
                    ..all.clone()
                },
                2,
            ),
            (
                Filter {
                    outcome: text(last),
                    ..all.clone()
                },
                1,
            ),
            (
                Filter {
                    since_ms: Some(i64::MAX),
                    ..all.clone()
                },
                0,
            ),
        ] {
            assert_eq!(count(&filter), found, "{filter:?}, indexed: {indexed}");
        }
    }
}

/// A folder as a killed process leaves it: segments, and a database that has not seen them.
fn killed(path: &Path, harm: impl FnOnce(&mut Vec<u8>)) {
    Ledger::open(0, Settings::at(path)).unwrap().close();
    let live = tempfile::tempdir().unwrap();
    let mut bytes = {
        let ledger = Ledger::open(0, Settings::at(live.path())).unwrap();
        // What a segment would hold, without the thread that takes it away.
        let record = record("a");
        let mut bytes = Vec::new();
        let begun = crate::entry::JourneyEntry::begun(7, 1000, &record);
        encode(&mut bytes, &Entry::Begin(begun));
        let place = crate::entry::Place {
            journey: 7,
            seq: 1,
            config_version: 3,
            started_ms: 1000,
            queue: Duration::ZERO,
            dialect: None,
        };
        let row = row(1);
        encode(
            &mut bytes,
            &Entry::Sending(crate::entry::AttemptEntry::sending(place, &row)),
        );
        encode(
            &mut bytes,
            &Entry::Attempt(crate::entry::AttemptEntry::ended(place, &row, None)),
        );
        drop(ledger);
        bytes
    };
    harm(&mut bytes);
    std::fs::write(path.join("00000000000000000001.segment"), bytes).unwrap();
}

#[test]
fn what_a_killed_process_left_is_found_before_and_after_the_next_start() {
    for (torn, rows) in [(0, vec![text("failed")]), (3, vec![text("unknown")])] {
        let folder = tempfile::tempdir().unwrap();
        killed(folder.path(), |bytes| bytes.truncate(bytes.len() - torn));
        let found = [(text("unknown"), rows)];
        assert_eq!(
            reasons(folder.path(), "a"),
            found,
            "nobody has started again"
        );
        let mut old = Settings::at(folder.path());
        old.retention = Duration::from_secs(200 * 365 * 24 * 60 * 60);
        for start in 1..=2 {
            let ledger = Ledger::open(0, old.clone()).unwrap();
            ledger.close();
            drop(ledger);
            assert_eq!(reasons(folder.path(), "a"), found, "start {start}");
            assert_eq!(Folder::at(folder.path()).list().unwrap(), [""; 0]);
        }
    }
}

#[test]
fn a_segment_that_is_read_twice_is_told_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut archive = Sqlite::open(&folder.path().join(DATABASE), false).unwrap();
    killed(&folder.path().join("other"), |_| {});
    let bytes = Folder::at(&folder.path().join("other"))
        .read("00000000000000000001", 0)
        .unwrap();
    let entries = crate::frame::decode(&bytes).entries;
    for _ in 0..3 {
        archive.put("1", 10, &entries).unwrap();
    }
    // Also the other way round: an end does not lose what it knows to a beginning.
    let reversed: Vec<_> = entries.into_iter().rev().collect();
    archive.put("1", 20, &reversed).unwrap();
    assert_eq!(archive.offset("1").unwrap(), 20);
    assert_eq!(
        reasons(folder.path(), "a"),
        [(text("unknown"), vec![text("failed")])]
    );
}

/// Segments in a folder, on a disk that can be full, or stuck.
#[derive(Debug)]
struct Bad {
    folder: Folder,
    disk: Arc<Disk>,
}

#[derive(Debug, Default)]
struct Disk {
    full: AtomicBool,
    /// The next append says that it is there, and then waits to be let go.
    gate: Mutex<Option<(mpsc::SyncSender<()>, mpsc::Receiver<()>)>>,
}

#[derive(Debug)]
struct BadSegment(Arc<dyn Segment>, Arc<Disk>);

impl Storage for Bad {
    fn create(&self, name: &str) -> io::Result<Arc<dyn Segment>> {
        let segment = self.folder.create(name)?;
        Ok(Arc::new(BadSegment(segment, Arc::clone(&self.disk))))
    }
    fn list(&self) -> io::Result<Vec<String>> {
        self.folder.list()
    }
    fn read(&self, name: &str, offset: u64) -> io::Result<Vec<u8>> {
        self.folder.read(name, offset)
    }
    fn size(&self, name: &str) -> io::Result<u64> {
        self.folder.size(name)
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        self.folder.remove(name)
    }
}

impl Segment for BadSegment {
    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        let gate = self.1.gate.lock().take();
        if let Some((there, go)) = gate {
            there.send(()).unwrap();
            go.recv().unwrap();
        }
        if self.1.full.load(Ordering::SeqCst) {
            // Half of it fits.
            self.0.append(&bytes[..bytes.len() / 2])?;
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.0.append(bytes)
    }
    fn truncate(&self, length: u64) -> io::Result<()> {
        self.0.truncate(length)
    }
    fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }
}

fn on_bad_disk(path: &Path, on_failure: OnFailure) -> (Ledger, Arc<Disk>) {
    let disk = Arc::new(Disk::default());
    let storage = Bad {
        folder: Folder::open(path).unwrap(),
        disk: Arc::clone(&disk),
    };
    let settings = Settings {
        on_failure,
        ..Settings::at(path)
    };
    let bounds = Bounds {
        segment: 2048,
        backlog: 16 * 1024,
    };
    let mut ledger = Ledger::new(10);
    ledger.durable = Some(Durable::with(settings, Arc::new(storage), bounds).unwrap());
    (ledger, disk)
}

fn recover(ledger: &Ledger) {
    let writer = &ledger.durable.as_ref().unwrap().writer;
    while writer.is_failing() {
        writer.recover(|| Batch {
            bytes: Vec::new(),
            records: 0,
        });
    }
}

#[test]
fn a_full_disk_stops_no_request_and_what_fits_in_memory_is_written_later() {
    let folder = tempfile::tempdir().unwrap();
    let (ledger, disk) = on_bad_disk(folder.path(), OnFailure::Open);
    let before = send(&ledger, "before");
    disk.full.store(true, Ordering::SeqCst);
    end(&ledger, before, "before");
    for id in ["a", "b"] {
        let trace = send(&ledger, id);
        end(&ledger, trace, id);
    }
    assert!(ledger.facts().unwrap().failing);
    assert!(ask(folder.path(), "a").is_empty());
    disk.full.store(false, Ordering::SeqCst);
    recover(&ledger);
    ledger.close();
    for id in ["before", "a", "b"] {
        let ended = [(text("exhausted"), vec![text("failed")])];
        assert_eq!(reasons(folder.path(), id), ended, "{id}");
    }
    assert_eq!(ledger.facts().unwrap().dropped, 0);
}

#[test]
fn what_does_not_fit_in_memory_is_dropped_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let (ledger, disk) = on_bad_disk(folder.path(), OnFailure::Open);
    disk.full.store(true, Ordering::SeqCst);
    while ledger.facts().unwrap().dropped == 0 {
        let _ = send(&ledger, "many");
    }
    disk.full.store(false, Ordering::SeqCst);
    recover(&ledger);
    let facts = ledger.facts().unwrap();
    assert!(!facts.failing && facts.written > 10, "{facts:?}");
}

#[test]
fn a_closed_ledger_refuses_what_it_cannot_write_until_it_can() {
    let folder = tempfile::tempdir().unwrap();
    let (ledger, disk) = on_bad_disk(folder.path(), OnFailure::Closed);
    disk.full.store(true, Ordering::SeqCst);
    for _ in 0..3 {
        assert!(ledger.begin(&record("refused"), SystemTime::now()).is_err());
    }
    disk.full.store(false, Ordering::SeqCst);
    recover(&ledger);
    let trace = send(&ledger, "a");
    end(&ledger, trace, "a");
    ledger.close();
    assert!(ask(folder.path(), "refused").is_empty());
    assert_eq!(ask(folder.path(), "a").len(), 1);
}

#[test]
fn a_stuck_disk_holds_up_the_one_that_met_it_and_nobody_else() {
    let folder = tempfile::tempdir().unwrap();
    let (ledger, disk) = on_bad_disk(folder.path(), OnFailure::Open);
    let (there, arrived) = mpsc::sync_channel(1);
    let (go, gate) = mpsc::sync_channel(1);
    *disk.gate.lock() = Some((there, gate));
    thread::scope(|scope| {
        let stuck = scope.spawn(|| send(&ledger, "stuck"));
        arrived.recv().unwrap();
        for id in ["a", "b", "c"] {
            let trace = send(&ledger, id);
            end(&ledger, trace, id);
        }
        assert!(ledger.facts().unwrap().failing);
        go.send(()).unwrap();
        let trace = stuck.join().unwrap();
        end(&ledger, trace, "stuck");
    });
    recover(&ledger);
    ledger.close();
    for id in ["a", "b", "c", "stuck"] {
        assert_eq!(ask(folder.path(), id).len(), 1, "{id}");
    }
}

#[tokio::test]
async fn a_ledger_that_survives_power_has_synced_before_the_send() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings {
        durability: Durability::Power,
        ..Settings::at(folder.path())
    };
    let ledger = Ledger::open(0, settings).unwrap();
    let mut trace = begin(&ledger, "a");
    let position = ledger.sending(&mut trace, &record("a"), &[row(1)], "openai-chat", &|_| {
        None
    });
    ledger.secured(position).await;
    let synced = *ledger
        .durable
        .as_ref()
        .unwrap()
        .syncing
        .as_ref()
        .unwrap()
        .synced
        .borrow();
    assert!(synced >= 2, "{synced}");
    assert!(!ledger.facts().unwrap().failing);
}

#[test]
fn the_old_and_the_too_many_go() {
    let folder = tempfile::tempdir().unwrap();
    let mut archive = Sqlite::open(&folder.path().join(DATABASE), false).unwrap();
    let record = record("old");
    let journey =
        |id, started_ms| Entry::Begin(crate::entry::JourneyEntry::begun(id, started_ms, &record));
    let old: Vec<_> = (1..=700).map(|id| journey(id, 1000)).collect();
    let young: Vec<_> = (701..=4000).map(|id| journey(id, wall_ms())).collect();
    archive.put("1", 1, &old).unwrap();
    archive.put("1", 1, &young).unwrap();
    let full = archive.size().unwrap();
    let storage: Arc<dyn Storage> = Arc::new(Folder::open(folder.path()).unwrap());
    let mut settings = Settings::at(folder.path());
    let prune = |archive: Sqlite, settings: &Settings, name| {
        let writer =
            Arc::new(Writer::open(Arc::clone(&storage), name, false, Bounds::default()).unwrap());
        let storage = Arc::clone(&storage);
        let mut indexer = Indexer::new(Box::new(archive), storage, writer, settings.clone(), 1);
        indexer.pass(true).unwrap();
    };
    let ids = || {
        Sqlite::read(&folder.path().join(DATABASE))
            .unwrap()
            .ids()
            .unwrap()
    };
    prune(archive, &settings, 1);
    assert_eq!(
        ids(),
        (701..=4000).collect::<Vec<i64>>(),
        "the old are gone"
    );
    settings.max_bytes = ByteCount(full / 2);
    let archive = Sqlite::open(&folder.path().join(DATABASE), false).unwrap();
    prune(archive, &settings, 2);
    let left = ids();
    assert!(
        left.len() < 3300 && left.last() == Some(&4000),
        "the oldest went: {}",
        left.len()
    );
    let size = Sqlite::open(&folder.path().join(DATABASE), false)
        .unwrap()
        .size()
        .unwrap();
    assert!(size <= full / 2, "{size} of {full}");
}

#[test]
fn a_folder_has_one_writer_and_its_files_one_reader() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(0, Settings::at(folder.path())).unwrap();
    let again = Ledger::open(0, Settings::at(folder.path()));
    assert!(matches!(again, Err(Error::InUse { .. })));
    let _open = send(&ledger, "a");
    for file in std::fs::read_dir(folder.path()).unwrap() {
        let file = file.unwrap();
        let mode = file.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{:?}", file.file_name());
    }
}

#[test]
fn schemas_are_brought_up_to_date_and_later_ones_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(DATABASE);
    assert!(matches!(
        Reader::open(folder.path()),
        Err(Error::Missing { .. })
    ));
    std::fs::write(&file, "").unwrap();
    assert!(matches!(
        Reader::open(folder.path()),
        Err(Error::OlderSchema { found: 0, .. })
    ));
    drop(Sqlite::open(&file, false).unwrap());
    assert!(Reader::open(folder.path()).is_ok());
    let connection = rusqlite::Connection::open(&file).unwrap();
    let vacuum: i64 = connection
        .query_row("PRAGMA auto_vacuum", [], |row| row.get(0))
        .unwrap();
    assert_eq!(vacuum, 2, "incremental");
    connection.pragma_update(None, "user_version", 99).unwrap();
    drop(connection);
    assert!(matches!(
        Sqlite::open(&file, false),
        Err(Error::NewerSchema { found: 99, .. })
    ));
    assert!(matches!(
        Reader::open(folder.path()),
        Err(Error::NewerSchema { found: 99, .. })
    ));
}

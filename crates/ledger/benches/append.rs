//! What a ledger on disk adds to one request: begin, send, end; beside the one in memory.
//!
//! `cargo bench -p backstop-ledger`. The three appends happen on the path of the request; indexing is
//! measured apart, since a thread of its own does it.

use std::time::{Duration, SystemTime};

use backstop_ledger::{JourneyRecord, Ledger, Settings};
use backstop_policy::{AttemptAction, AttemptRow, Outcome, Phase, UpstreamPhase};
use backstop_units::{ChannelId, KeyId, ModelName, Moment, ProviderId, RequestId};

fn main() {
    divan::main();
}

fn row() -> AttemptRow {
    let (provider, model) = (ProviderId::new("openai"), ModelName::new("gpt-4o"));
    AttemptRow {
        attempt: Some(1),
        action: AttemptAction::Direct,
        channel: ChannelId::new(&provider, &model, &[]),
        key: Some(KeyId::new(&provider, "openai-key-1")),
        provider,
        model,
        outcome: Outcome::Success,
        class: None,
        kind: None,
        signal: None,
        fail_reason: None,
        code: None,
        status: Some(200),
        phase: Phase::AfterOutput,
        upstream_phase: UpstreamPhase::Output,
        retry_after: None,
        connection_reused: Some(true),
        waited: Duration::ZERO,
        started: Moment::from_millis(1),
        connect: None,
        headers: Some(Duration::from_millis(300)),
        first_output: Some(Duration::from_millis(310)),
        total: Duration::from_millis(900),
        usage: None,
    }
}

fn journey(ledger: &Ledger) {
    let record = JourneyRecord {
        route: "fast".to_owned(),
        dialect: "openai-chat",
        ..JourneyRecord::begun(RequestId::new("req-0123456789abcdef"), "fast")
    };
    let mut trace = ledger
        .begin(&record, SystemTime::UNIX_EPOCH)
        .expect("an open ledger");
    let rows = vec![row()];
    let _ = ledger.sending(&mut trace, &record, &rows, "openai-chat", &|_| None);
    let ended = JourneyRecord {
        rows,
        terminal: "success",
        status: Some(200),
        ..record
    };
    ledger.end(trace, ended, &|_| None);
}

#[divan::bench]
fn in_memory(bencher: divan::Bencher<'_, '_>) {
    let ledger = Ledger::new(1000);
    bencher.bench(|| journey(&ledger));
}

#[divan::bench]
fn on_disk(bencher: divan::Bencher<'_, '_>) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut settings = Settings::at(folder.path());
    // The wall time above is 1970; it is not to be pruned while it is measured.
    settings.retention = Duration::from_secs(200 * 365 * 24 * 60 * 60);
    let ledger = Ledger::open(1000, settings).expect("a ledger");
    bencher.bench(|| journey(&ledger));
    let facts = ledger.facts().expect("on disk");
    assert_eq!(facts.dropped, 0);
}

/// A thousand journeys from first append to the last row in the database.
#[divan::bench(sample_count = 20, sample_size = 1)]
fn a_thousand_appended_and_indexed(bencher: divan::Bencher<'_, '_>) {
    bencher
        .with_inputs(|| tempfile::tempdir().expect("a folder"))
        .bench_refs(|folder| {
            let ledger = Ledger::open(0, Settings::at(folder.path())).expect("a ledger");
            for _ in 0..1000 {
                journey(&ledger);
            }
            ledger.close();
        });
}

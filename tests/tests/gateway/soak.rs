//! A short soak: some hundreds of broken streams and hang-ups under fixed seeds. Its long form is
//! `cargo xtask soak journey`.

use std::sync::Arc;

use backstop_tests::soak::{Findings, Promise, Soak};

/// Each plays other configurations. A seed that once found a fault stays here.
const SEEDS: [u64; 2] = [1, 2];

const CASES: u64 = 150;

fn soak(seed: u64) -> Arc<Soak> {
    Arc::new(Soak {
        seed,
        breaks: CASES,
        hangups: CASES,
        ..Soak::default()
    })
}

/// All promises but the one that is a time: a busy machine is no fault.
fn all_kept(seed: u64, findings: &Findings) {
    let counts = Promise::ALL
        .into_iter()
        .filter(|promise| *promise != Promise::UpstreamClosed);
    let broken: u64 = counts.map(|promise| findings.times(promise)).sum();
    assert_eq!(broken, 0, "seed {seed}: {:#?}", findings.told);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_that_break() {
    for seed in SEEDS {
        let findings = soak(seed).play_breaks().await;
        all_kept(seed, &findings);
        assert_eq!(findings.played("breaks"), CASES);
        for kind in ["answered whole", "broken after output, told so"] {
            assert!(findings.played(kind) > 0, "seed {seed}: none was {kind}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_who_leave() {
    for seed in SEEDS {
        let findings = soak(seed).play_hangups().await;
        all_kept(seed, &findings);
        assert!(findings.played("journeys cancelled") > CASES / 3);
    }
}

//! A changed file, or SIGHUP: checked, built, swapped. A bad file changes a log line and a gauge.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use backstop_config::{Snapshot, diff};
use backstop_server::{Reloader, Tls};
use notify::{RecursiveMode, Watcher};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::sleep;

use crate::environment::read;

/// How long a file must be left alone before it is read: editors and mounts write in steps.
const SETTLE: Duration = Duration::from_millis(100);

/// Why the configuration is read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Nudge {
    FileChanged,
    Hangup,
}

/// Takes over changed configurations for as long as it is polled.
pub(crate) async fn follow(
    reloader: Reloader,
    file: Option<PathBuf>,
    tls: Option<Tls>,
) -> anyhow::Result<()> {
    let mut hangup = signal(SignalKind::hangup()).context("cannot listen for SIGHUP")?;
    let (nudge, mut nudges) = mpsc::channel::<()>(1);
    // Kept alive for as long as the loop runs.
    let _watcher = match &file {
        Some(file) => Some(watch(file, &reloader.current().files, nudge)?),
        None => None,
    };
    loop {
        let why = tokio::select! {
            _ = hangup.recv() => Nudge::Hangup,
            Some(()) = nudges.recv() => Nudge::FileChanged,
        };
        sleep(SETTLE).await;
        while nudges.try_recv().is_ok() {}
        take_over(&reloader, file.as_deref(), tls.as_ref(), why);
    }
}

/// Watches folders rather than files: editors and mounted volumes replace files by renaming. The
/// configuration's must be there; one that holds secrets may not let itself be watched.
fn watch(
    file: &Path,
    secrets: &[PathBuf],
    nudge: mpsc::Sender<()>,
) -> anyhow::Result<impl Watcher + use<>> {
    let folder = folder(file);
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        if event.is_ok_and(|event| !event.kind.is_access()) {
            // A nudge that is already waiting is as good as two.
            let _ = nudge.try_send(());
        }
    })
    .context("cannot watch for changes")?;
    watcher
        .watch(&folder, RecursiveMode::NonRecursive)
        .with_context(|| format!("cannot watch {}", folder.display()))?;
    let mut also: Vec<PathBuf> = secrets.iter().map(|file| self::folder(file)).collect();
    also.sort();
    also.dedup();
    for further in also.iter().filter(|further| **further != folder) {
        if let Err(error) = watcher.watch(further, RecursiveMode::NonRecursive) {
            tracing::warn!(%error, folder = %further.display(), "cannot watch for changed secrets");
        }
    }
    Ok(watcher)
}

fn folder(file: &Path) -> PathBuf {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

fn take_over(reloader: &Reloader, file: Option<&Path>, tls: Option<&Tls>, why: Nudge) {
    let current = reloader.current();
    match read(file, current.version + 1) {
        // The folders hold other files; what says the same, secrets included, needs no swap. SIGHUP
        // is an order.
        Ok(next) if why == Nudge::FileChanged && says_the_same(&current, &next) => {
            reloader.unchanged();
        }
        Ok(next) => {
            if next.server.listen != current.server.listen {
                tracing::warn!(
                    listening = %current.server.listen,
                    configured = %next.server.listen,
                    "the address to listen on changes with a restart only"
                );
            }
            if next.ledger != current.ledger {
                tracing::warn!("the ledger changes with a restart only");
            }
            match (tls, &next.tls) {
                (Some(tls), Some(files)) => {
                    let shown = tls.show(&files.certificate, files.private_key.expose());
                    if let Err(error) = shown {
                        reloader.refused();
                        tracing::error!(
                            version = current.version,
                            "configuration refused, the one in force stays: {error}"
                        );
                        return;
                    }
                }
                (None, None) => {}
                _ => tracing::warn!("TLS comes or goes with a restart only"),
            }
            let version = next.version;
            reloader.swap(&Arc::new(next));
            tracing::info!(version, "configuration taken over");
        }
        Err(error) => {
            reloader.refused();
            tracing::error!(
                version = current.version,
                "configuration refused, the one in force stays: {error}"
            );
        }
    }
}

/// Whether two configurations have the same text and the same secrets behind it.
fn says_the_same(current: &Snapshot, next: &Snapshot) -> bool {
    next.hash == current.hash && next.tls == current.tls && diff(current, next).keys.is_empty()
}

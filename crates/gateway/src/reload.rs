//! A changed file, or SIGHUP: checked, built, swapped. A bad file changes a log line and a gauge.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use backstop_server::Reloader;
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
pub(crate) async fn follow(reloader: Reloader, file: Option<PathBuf>) -> anyhow::Result<()> {
    let mut hangup = signal(SignalKind::hangup()).context("cannot listen for SIGHUP")?;
    let (nudge, mut nudges) = mpsc::channel::<()>(1);
    // Kept alive for as long as the loop runs.
    let _watcher = match &file {
        Some(file) => Some(watch(file, nudge)?),
        None => None,
    };
    loop {
        let why = tokio::select! {
            _ = hangup.recv() => Nudge::Hangup,
            Some(()) = nudges.recv() => Nudge::FileChanged,
        };
        sleep(SETTLE).await;
        while nudges.try_recv().is_ok() {}
        take_over(&reloader, file.as_deref(), why);
    }
}

/// Watches the folder rather than the file: editors and mounted volumes replace files by renaming.
fn watch(file: &Path, nudge: mpsc::Sender<()>) -> anyhow::Result<impl Watcher + use<>> {
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    };
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
    Ok(watcher)
}

fn take_over(reloader: &Reloader, file: Option<&Path>, why: Nudge) {
    let current = reloader.current();
    match read(file, current.version + 1) {
        // The folder holds other files; a text that is the same needs no swap. SIGHUP is an order,
        // since secrets behind the text may have changed.
        Ok(next) if next.hash == current.hash && why == Nudge::FileChanged => {
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

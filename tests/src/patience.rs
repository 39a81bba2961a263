//! Waiting for something to have happened.

use std::time::Duration;

/// How long anything may take before a test fails. Far above what a busy machine needs; nothing
/// is ever measured against it.
const PATIENCE: Duration = Duration::from_secs(30);

/// The outcome of `work`.
///
/// # Panics
/// When it does not come; `what` names it.
pub async fn soon<T>(what: &str, work: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, work).await {
        Ok(done) => done,
        Err(_) => panic!("waited in vain: {what}"),
    }
}

/// Waits until `holds` says something, giving all tasks of the runtime their turns in between.
///
/// # Panics
/// When it never does; `what` names it.
pub async fn until<T>(what: &str, mut holds: impl FnMut() -> Option<T>) -> T {
    soon(what, async {
        loop {
            if let Some(found) = holds() {
                return found;
            }
            tokio::task::yield_now().await;
        }
    })
    .await
}

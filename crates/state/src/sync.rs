//! The locks and counters that requests share, named in one place so that a model checker can stand
//! in for them.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
pub(crate) use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// Locks `mutex`. What it guards is a plain value that is whole between any two statements, so a
/// request that panicked with the lock held takes nobody else down.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

//! What can keep a ledger from being opened or read.

use std::io;
use std::path::PathBuf;

/// Why a ledger cannot be opened or read. A ledger that cannot be *written* is no error: traffic
/// goes on, and it is counted.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another gateway writes there.
    #[error("{} is in use by another gateway; each needs a ledger of its own", path.display())]
    InUse {
        /// The folder.
        path: PathBuf,
    },
    /// There is no ledger.
    #[error("{} holds no ledger", path.display())]
    Missing {
        /// The folder.
        path: PathBuf,
    },
    /// It was written by a later build.
    #[error(
        "the ledger has schema {found}, this build knows {known}: it was written by a later one"
    )]
    NewerSchema {
        /// The file's version.
        found: usize,
        /// The latest that this build knows.
        known: usize,
    },
    /// It was written by an earlier build, and this one may only read.
    #[error("the ledger has schema {found}, this build reads {known}: start a gateway on it once")]
    OlderSchema {
        /// The file's version.
        found: usize,
        /// The one that this build reads.
        known: usize,
    },
    /// The folder or a file in it cannot be used.
    #[error("the ledger's folder cannot be used")]
    Files(#[from] io::Error),
    /// The database says no.
    #[error("the ledger's database cannot be used")]
    Database(#[from] rusqlite::Error),
}

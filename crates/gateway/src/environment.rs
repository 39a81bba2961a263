//! The real environment and the real files, as the configuration reads them.

use std::io;
use std::path::{Path, PathBuf};

use backstop_config::{Error, Snapshot, Sources, from_environment, load};

use crate::Source;

/// The process's environment and file system.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Process;

impl Sources for Process {
    #[allow(
        clippy::disallowed_methods,
        reason = "this is where configuration reads it"
    )]
    fn env(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn file(&self, path: &Path) -> io::Result<String> {
        std::fs::read_to_string(path)
    }
}

impl Source {
    /// The file that was named, or the one that lies here; `None`: the environment speaks.
    pub(crate) fn file(&self) -> Option<PathBuf> {
        self.config.clone().or_else(|| {
            ["backstop.toml", "config.json"]
                .iter()
                .map(PathBuf::from)
                .find(|path| path.exists())
        })
    }
}

/// Reads and checks the configuration.
pub(crate) fn read(file: Option<&Path>, version: u64) -> Result<Snapshot, Error> {
    match file {
        Some(file) => load(file, &Process, version),
        None => from_environment(&Process, version),
    }
}

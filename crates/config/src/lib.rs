//! What the operator's file means.
//!
//! A configuration has three shapes. *Raw* is the file as typed, JSON or TOML, one schema for both,
//! unknown names refused. *Checked* is its meaning, made of the parameter types of the crates that
//! use them. [`Snapshot`] is what requests see: providers, keys, channels and routes, built once
//! and never changed. The environment and mounted secrets are read through the [`Sources`] one is
//! given.
//!
//! This crate leaves to others when to read again and what to do with a bad file; it answers with
//! every fault it found, each with file, line, column, path and what would be accepted. The one
//! invariant: a snapshot that exists can be served. Every name in it leads somewhere, every number
//! is in range, and no key's value ever appears in a fault or in `Debug`.
//!
//! ```
//! use std::{io, path::Path};
//! use backstop_config::{Resolved, Sources, read};
//!
//! struct Environment;
//! impl Sources for Environment {
//!     fn env(&self, name: &str) -> Option<String> {
//!         (name == "OPENAI_API_KEY").then(|| "sk-example".to_owned())
//!     }
//!     fn file(&self, _: &Path) -> io::Result<String> {
//!         Err(io::ErrorKind::NotFound.into())
//!     }
//! }
//!
//! let text = "[routes]\nchat = [\"openai/gpt-4o\", \"openai/gpt-4o-mini\"]\n[providers.openai]";
//! let snapshot = read(Path::new("backstop.toml"), text, &Environment, 1)?;
//! assert!(matches!(snapshot.resolve("chat"), Some(Resolved::Configured(_))));
//! assert!(matches!(snapshot.resolve("openai/o3"), Some(Resolved::Minted(_))));
//! assert!(snapshot.resolve("gpt-4o").is_none());
//! # Ok::<(), backstop_config::Error>(())
//! ```

mod check;
mod diff;
mod fault;
mod path;
mod raw;
mod read;
mod snapshot;
mod sources;
mod tree;

pub use diff::{Delta, Diff, diff};
pub use fault::{Error, Fault, Faults, Problem};
pub use read::{from_environment, load, read};
pub use snapshot::{
    LedgerParams, Limits, Origin, Resolved, ServerParams, SessionParams, Snapshot, TlsFiles,
    TrailChoice,
};
pub use sources::Sources;
pub use tree::{Position, Spelling};

#[cfg(test)]
mod tests;

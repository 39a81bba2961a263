//! What can go wrong before a provider can be simulated.

use std::io;

/// Why a script was refused or a simulator could not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The script is not what the format allows. Lines and columns count from 1.
    #[error("line {line}, column {column}{}: {problem}", at(path))]
    Script {
        /// Where in the document, as in `script[2].sse[0].then`; empty at the top.
        path: String,
        /// Line of the fault.
        line: usize,
        /// Column of the fault.
        column: usize,
        /// What is wrong and what would be accepted.
        problem: String,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address as asked for.
        address: String,
        /// The system's answer.
        source: io::Error,
    },
}

fn at(path: &str) -> String {
    if path.is_empty() || path == "." {
        String::new()
    } else {
        format!(", at {path}")
    }
}

//! What can be wrong with a stream or with the limits set for one.

use backstop_units::ByteCount;
use thiserror::Error;

/// Why a stream cannot be read on, or a limit cannot be accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Error {
    /// A block grew beyond the framer's limit. The stream cannot be read on.
    #[error("a stream event is longer than {limit}")]
    TooLong {
        /// The most bytes a block may have.
        limit: ByteCount,
    },
    /// A binary frame whose lengths or checksums do not agree with its bytes, or whose headers cannot be
    /// read. Where the next one begins is unknown: the stream cannot be read on.
    #[error("a stream frame is corrupt")]
    Corrupt,
    /// The number of startup events to hold is out of range.
    #[error("held startup events must number 1 to {most}, not {events}")]
    HeldEvents {
        /// The number that was offered.
        events: usize,
        /// The largest number accepted.
        most: usize,
    },
    /// The size of the startup events to hold is out of range.
    #[error("held startup bytes must be 1 to {most}, not {bytes}")]
    HeldBytes {
        /// The size that was offered.
        bytes: ByteCount,
        /// The largest size accepted.
        most: ByteCount,
    },
    /// A commit window without an end, or of no length.
    #[error("a commit window needs a time or a number of tokens, each above zero")]
    EmptyWindow,
}

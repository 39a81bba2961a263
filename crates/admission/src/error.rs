//! What cannot be read or built.

use backstop_units::CallerName;

/// Settings that contradict themselves.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A hash is not `sha256:` and 64 hexadecimal digits.
    #[error("not a key's hash: expected `sha256:` and 64 hexadecimal digits")]
    Hash,
    /// Two callers, or one twice, hold the same key.
    #[error("callers `{first}` and `{second}` have the same key")]
    SharedKey {
        /// Who had it first.
        first: CallerName,
        /// Who has it too.
        second: CallerName,
    },
}

//! A value that is used and never shown.

use std::fmt;

use secrecy::{ExposeSecret, SecretString};
use subtle::ConstantTimeEq;

/// A provider key, caller key or token. Prints as a placeholder, is wiped when dropped, and is
/// compared in constant time.
#[derive(Clone)]
pub struct Secret(SecretString);

impl Secret {
    /// Takes custody of `value`.
    pub fn new(value: impl Into<String>) -> Self {
        Self(SecretString::from(value.into()))
    }

    /// The value itself, for the one place that puts it on the wire.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }

    /// Whether `other` is the same value, in time that depends on lengths alone.
    #[must_use]
    pub fn is(&self, other: &str) -> bool {
        self.expose().as_bytes().ct_eq(other.as_bytes()).into()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_prints_as_a_placeholder() {
        let secret = Secret::new("sk-very-private");
        assert_eq!(format!("{secret} {secret:?}"), "[secret] [secret]");
        assert!(secret.is("sk-very-private"));
        assert!(!secret.is("sk-very-privat"));
    }
}

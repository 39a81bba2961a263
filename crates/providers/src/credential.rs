//! What stands behind a key's name: a value that goes out as it is, or a source of tokens.

use backstop_units::Secret;

use crate::TokenSource;

/// What a key is made of.
#[derive(Debug, Clone)]
pub enum Credential {
    /// A value that goes out as it is.
    Plain(Secret),
    /// Where short-lived tokens come from, one of which goes out as a bearer.
    Token(TokenSource),
}

/// The forms in which an operator can write a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyForm {
    /// The key itself.
    Value,
    /// A credentials file of Google's.
    ServiceAccount,
    /// An application registered with Microsoft Entra.
    Entra,
}

impl KeyForm {
    /// The field of a key that holds it.
    #[must_use]
    pub const fn field(self) -> &'static str {
        match self {
            Self::Value => "value",
            Self::ServiceAccount => "service_account",
            Self::Entra => "entra",
        }
    }
}

impl Credential {
    /// The value that goes out as it is; `None` for a source of tokens.
    #[must_use]
    pub const fn plain(&self) -> Option<&Secret> {
        match self {
            Self::Plain(secret) => Some(secret),
            Self::Token(_) => None,
        }
    }

    /// Where its tokens come from; `None` for a plain value. A key that has such a source can be
    /// renewed.
    #[must_use]
    pub const fn token_source(&self) -> Option<&TokenSource> {
        match self {
            Self::Plain(_) => None,
            Self::Token(source) => Some(source),
        }
    }

    /// Whether both are the same, so that what is known about the one holds for the other.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Plain(secret), Self::Plain(other)) => secret.is(other.expose()),
            (Self::Token(source), Self::Token(other)) => source.is(other),
            _ => false,
        }
    }
}

impl From<Secret> for Credential {
    fn from(secret: Secret) -> Self {
        Self::Plain(secret)
    }
}

impl From<TokenSource> for Credential {
    fn from(source: TokenSource) -> Self {
        Self::Token(source)
    }
}

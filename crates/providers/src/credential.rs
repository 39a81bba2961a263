//! What stands behind a key's name: a value that goes out as it is, a source of tokens, or a key that
//! signs.

use std::sync::Arc;

use backstop_units::Secret;

use crate::{Grant, TokenSource};

/// What a key is made of.
#[derive(Debug, Clone)]
pub enum Credential {
    /// A value that goes out as it is.
    Plain(Secret),
    /// Where short-lived tokens come from, one of which goes out as a bearer.
    Token(TokenSource),
    /// What requests are signed with; none of it but its id goes out.
    Aws(Arc<AwsKey>),
    /// The caller's own token for this provider, which goes to no other.
    Caller,
}

/// An access key of AWS'.
#[derive(Debug)]
pub struct AwsKey {
    /// Which key it is; stands in every signature.
    pub access_key_id: Secret,
    /// What signatures are made with. Never sent.
    pub secret_access_key: Secret,
    /// What a temporary key is sent with.
    pub session_token: Option<Secret>,
}

impl AwsKey {
    fn is(&self, other: &Self) -> bool {
        let same_token = match (&self.session_token, &other.session_token) {
            (None, None) => true,
            (Some(token), Some(other)) => token.is(other.expose()),
            _ => false,
        };
        self.access_key_id.is(other.access_key_id.expose())
            && self.secret_access_key.is(other.secret_access_key.expose())
            && same_token
    }
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
    /// An access key of AWS'.
    Aws,
}

impl KeyForm {
    /// The field of a key that holds it.
    #[must_use]
    pub const fn field(self) -> &'static str {
        match self {
            Self::Value => "value",
            Self::ServiceAccount => "service_account",
            Self::Entra => "entra",
            Self::Aws => "aws",
        }
    }
}

impl Credential {
    /// The value that goes out as it is; `None` for a source of tokens and a key that signs.
    #[must_use]
    pub const fn plain(&self) -> Option<&Secret> {
        match self {
            Self::Plain(secret) => Some(secret),
            Self::Token(_) | Self::Aws(_) | Self::Caller => None,
        }
    }

    /// What requests are signed with; `None` for the other forms.
    #[must_use]
    pub fn aws(&self) -> Option<&AwsKey> {
        match self {
            Self::Aws(key) => Some(key),
            Self::Plain(_) | Self::Token(_) | Self::Caller => None,
        }
    }

    /// The form in which it was written.
    #[must_use]
    pub fn form(&self) -> KeyForm {
        match self {
            Self::Plain(_) | Self::Caller => KeyForm::Value,
            Self::Aws(_) => KeyForm::Aws,
            Self::Token(source) => match source.grant() {
                Grant::ClientCredentials { .. } => KeyForm::Entra,
                Grant::ServiceAccount { .. } | Grant::RefreshToken { .. } => {
                    KeyForm::ServiceAccount
                }
            },
        }
    }

    /// What a provider that was shown this key may repeat, so that it can be taken out of its
    /// words.
    pub fn secrets(&self) -> impl Iterator<Item = &Secret> {
        let aws = self.aws();
        [
            self.plain(),
            aws.map(|key| &key.access_key_id),
            aws.map(|key| &key.secret_access_key),
            aws.and_then(|key| key.session_token.as_ref()),
        ]
        .into_iter()
        .flatten()
    }

    /// Where its tokens come from; `None` for the other forms. A key that has such a source can be
    /// renewed.
    #[must_use]
    pub const fn token_source(&self) -> Option<&TokenSource> {
        match self {
            Self::Plain(_) | Self::Aws(_) | Self::Caller => None,
            Self::Token(source) => Some(source),
        }
    }

    /// Whether both are the same, so that what is known about the one holds for the other.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Plain(secret), Self::Plain(other)) => secret.is(other.expose()),
            (Self::Token(source), Self::Token(other)) => source.is(other),
            (Self::Aws(key), Self::Aws(other)) => key.is(other),
            (Self::Caller, Self::Caller) => true,
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

impl From<AwsKey> for Credential {
    fn from(key: AwsKey) -> Self {
        Self::Aws(Arc::new(key))
    }
}

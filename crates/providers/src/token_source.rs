//! Where short-lived tokens come from, as data: who asks, with what proof, at which address.
//!
//! Asking is left to the client. Docs: <https://developers.google.com/identity/protocols/oauth2/service-account>
//! and <https://learn.microsoft.com/entra/identity-platform/v2-oauth2-client-creds-grant-flow>, notes
//! of 2026-11.

use std::sync::Arc;

use backstop_units::Secret;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::Uri;
use serde::Deserialize;

use crate::{Address, Error};

/// Where Google's tokens are had, where a file does not say.
const GOOGLE_TOKEN_URI: &str = "https://oauth2.googleapis.com/token";

/// What a token for Vertex may do.
const GOOGLE_SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";

/// Where Entra's tokens are had.
const ENTRA_AUTHORITY: &str = "https://login.microsoftonline.com";

/// What a token for Azure's models may do.
const ENTRA_SCOPE: &str = "https://cognitiveservices.azure.com/.default";

/// The most that is read of a credentials file. Real ones are 2 to 3 KiB.
const FILE_BYTES: usize = 64 * 1024;

/// Who asks for tokens, with what proof, and where. Cheap to clone; prints no secret.
#[derive(Debug, Clone)]
pub struct TokenSource(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    endpoint: Uri,
    scope: &'static str,
    grant: Grant,
    project: Option<String>,
}

/// The proof with which a token is asked for.
#[derive(Debug)]
pub enum Grant {
    /// A statement signed with the account's private key (RFC 7523).
    ServiceAccount {
        /// Who signs.
        email: String,
        /// Which of the account's keys it is.
        key_id: Option<String>,
        /// The RSA key, in PEM.
        private_key: Secret,
    },
    /// A long-lived refresh token of a person (RFC 6749, 6).
    RefreshToken {
        /// The application the person signed in to.
        client_id: String,
        /// The application's secret.
        client_secret: Secret,
        /// The token.
        refresh_token: Secret,
    },
    /// An application's own secret (RFC 6749, 4.4).
    ClientCredentials {
        /// The application.
        client_id: String,
        /// Its secret.
        client_secret: Secret,
    },
}

impl TokenSource {
    /// Reads a credentials file of Google's: `service_account` or `authorized_user`.
    ///
    /// # Errors
    /// Says what is missing or wrong, never with a value of the file.
    pub fn google(text: &str) -> Result<Self, Error> {
        if text.len() > FILE_BYTES {
            return Err(Error::GoogleFile);
        }
        let file: GoogleFile = serde_json::from_str(text).map_err(|_| Error::GoogleFile)?;
        let endpoint = endpoint(file.token_uri.as_deref().unwrap_or(GOOGLE_TOKEN_URI))?;
        let grant = match file.kind.as_deref() {
            Some("service_account") => {
                let private_key = needed(file.private_key, "private_key")?;
                if !is_rsa_pem(&private_key) {
                    return Err(Error::PrivateKeyUnfit);
                }
                Grant::ServiceAccount {
                    email: needed(file.client_email, "client_email")?,
                    key_id: file.private_key_id.filter(|id| !id.is_empty()),
                    private_key: Secret::new(private_key),
                }
            }
            Some("authorized_user") => Grant::RefreshToken {
                client_id: needed(file.client_id, "client_id")?,
                client_secret: Secret::new(needed(file.client_secret, "client_secret")?),
                refresh_token: Secret::new(needed(file.refresh_token, "refresh_token")?),
            },
            Some(_) => return Err(Error::GoogleFileType),
            None => return Err(Error::GoogleFile),
        };
        Ok(Self(Arc::new(Parts {
            endpoint,
            scope: GOOGLE_SCOPE,
            grant,
            project: file.project_id.or(file.quota_project_id),
        })))
    }

    /// An application registered with Microsoft Entra, in a tenant's directory (its id or domain).
    /// `authority` is for clouds with their own, and for tests.
    ///
    /// # Errors
    /// When tenant and authority do not make an address.
    pub fn entra(
        authority: Option<&str>,
        tenant: &str,
        client_id: String,
        client_secret: Secret,
    ) -> Result<Self, Error> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        if tenant.is_empty() || !tenant.bytes().all(fits) {
            return Err(Error::EntraTenant);
        }
        let authority = authority.unwrap_or(ENTRA_AUTHORITY).trim_end_matches('/');
        Ok(Self(Arc::new(Parts {
            endpoint: endpoint(&format!("{authority}/{tenant}/oauth2/v2.0/token"))?,
            scope: ENTRA_SCOPE,
            grant: Grant::ClientCredentials {
                client_id,
                client_secret,
            },
            project: None,
        })))
    }

    /// Where the token is asked for.
    #[must_use]
    pub fn endpoint(&self) -> &Uri {
        &self.0.endpoint
    }

    /// What the token is to be good for.
    #[must_use]
    pub fn scope(&self) -> &'static str {
        self.0.scope
    }

    /// The proof.
    #[must_use]
    pub fn grant(&self) -> &Grant {
        &self.0.grant
    }

    /// The project that the credentials belong to, where they say so.
    #[must_use]
    pub fn project(&self) -> Option<&str> {
        self.0.project.as_deref()
    }

    /// Whether both ask for the same token with the same proof.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
            || (self.endpoint() == other.endpoint()
                && self.scope() == other.scope()
                && self.grant().is(other.grant()))
    }
}

impl Grant {
    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::ServiceAccount {
                    email,
                    key_id,
                    private_key,
                },
                Self::ServiceAccount {
                    email: other_email,
                    key_id: other_id,
                    private_key: other_key,
                },
            ) => email == other_email && key_id == other_id && private_key.is(other_key.expose()),
            (
                Self::RefreshToken {
                    client_id,
                    client_secret,
                    refresh_token,
                },
                Self::RefreshToken {
                    client_id: other_id,
                    client_secret: other_secret,
                    refresh_token: other_token,
                },
            ) => {
                client_id == other_id
                    && client_secret.is(other_secret.expose())
                    && refresh_token.is(other_token.expose())
            }
            (
                Self::ClientCredentials {
                    client_id,
                    client_secret,
                },
                Self::ClientCredentials {
                    client_id: other_id,
                    client_secret: other_secret,
                },
            ) => client_id == other_id && client_secret.is(other_secret.expose()),
            _ => false,
        }
    }
}

/// A credentials file. Members that are not asked for are not read.
#[derive(Deserialize)]
struct GoogleFile {
    #[serde(rename = "type")]
    kind: Option<String>,
    project_id: Option<String>,
    quota_project_id: Option<String>,
    private_key_id: Option<String>,
    private_key: Option<String>,
    client_email: Option<String>,
    client_id: Option<String>,
    client_secret: Option<String>,
    refresh_token: Option<String>,
    token_uri: Option<String>,
}

fn needed(value: Option<String>, field: &'static str) -> Result<String, Error> {
    value
        .filter(|value| !value.trim().is_empty())
        .ok_or(Error::GoogleFileField { field })
}

/// An address that secrets may be sent to: over TLS, or to a host inside.
fn endpoint(text: &str) -> Result<Uri, Error> {
    let address = Address::parse(text).map_err(|_| Error::TokenAddress)?;
    if address.is_plain() && !address.is_private() {
        return Err(Error::TokenAddress);
    }
    text.parse().map_err(|_| Error::TokenAddress)
}

/// Whether a text looks like an RSA key in PEM, PKCS#8 or PKCS#1: whether it is one is found out by
/// whoever signs with it.
fn is_rsa_pem(text: &str) -> bool {
    let text = text.trim();
    ["PRIVATE KEY", "RSA PRIVATE KEY"].iter().any(|label| {
        let inside = text
            .strip_prefix(&format!("-----BEGIN {label}-----"))
            .and_then(|rest| rest.strip_suffix(&format!("-----END {label}-----")));
        inside.is_some_and(|inside| {
            let inside: String = inside.split_ascii_whitespace().collect();
            !inside.is_empty() && STANDARD.decode(inside).is_ok()
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Put together here, so that nobody who looks for keys stops at this file.
    fn pem(label: &str) -> String {
        format!("-----BEGIN {label}-----\\nY2FuYXJ5\\n-----END {label}-----\\n")
    }

    fn account(more: &str) -> String {
        let key = pem("PRIVATE KEY");
        format!(
            r#"{{"type":"service_account","project_id":"p-1","private_key_id":"k","private_key":"{key}",
                "client_email":"a@p-1.iam.gserviceaccount.com","client_id":"1"{more}}}"#
        )
    }

    #[test]
    fn files_of_both_kinds_are_read() {
        let source = TokenSource::google(&account("")).unwrap();
        assert_eq!(source.endpoint(), GOOGLE_TOKEN_URI);
        assert_eq!(source.project(), Some("p-1"));
        assert!(matches!(source.grant(), Grant::ServiceAccount { .. }));
        let person = r#"{"type":"authorized_user","client_id":"c","client_secret":"canary-s",
            "refresh_token":"canary-r","quota_project_id":"p-2","token_uri":"http://127.0.0.1:9/t"}"#;
        let source = TokenSource::google(person).unwrap();
        assert_eq!(source.endpoint(), "http://127.0.0.1:9/t");
        assert_eq!(source.project(), Some("p-2"));
        assert!(!format!("{source:?}").contains("canary"));
    }

    #[test]
    fn what_cannot_be_used_is_named_and_never_repeated() {
        let public = account(r#","token_uri":"http://tokens.example.com/t""#);
        let odd_key = account("").replace("BEGIN PRIVATE", "BEGIN PUBLIC");
        for (text, want) in [
            ("", Error::GoogleFile),
            ("/run/secrets/canary.json", Error::GoogleFile),
            ("{}", Error::GoogleFile),
            (
                r#"{"type":"external_account","audience":"canary"}"#,
                Error::GoogleFileType,
            ),
            (
                r#"{"type":"service_account","client_email":"canary"}"#,
                Error::GoogleFileField {
                    field: "private_key",
                },
            ),
            (
                r#"{"type":"authorized_user","client_id":"canary","client_secret":"canary"}"#,
                Error::GoogleFileField {
                    field: "refresh_token",
                },
            ),
            (&odd_key, Error::PrivateKeyUnfit),
            (&public, Error::TokenAddress),
        ] {
            let error = TokenSource::google(text).expect_err(text);
            assert_eq!(error, want, "{text}");
            assert!(!error.to_string().contains("canary"));
        }
        let secret = || Secret::new("canary");
        for (authority, tenant, want) in [
            (None, "a/b", Error::EntraTenant),
            (None, "", Error::EntraTenant),
            (Some("login.example.com"), "t", Error::TokenAddress),
            (Some("http://login.example.com"), "t", Error::TokenAddress),
        ] {
            let error = TokenSource::entra(authority, tenant, "c".to_owned(), secret());
            assert_eq!(error.unwrap_err(), want);
        }
        let entra = TokenSource::entra(None, "t.example.com", "c".to_owned(), secret()).unwrap();
        assert_eq!(
            entra.endpoint(),
            "https://login.microsoftonline.com/t.example.com/oauth2/v2.0/token"
        );
    }

    #[test]
    fn two_sources_are_the_same_when_all_of_them_is() {
        let first = TokenSource::google(&account("")).unwrap();
        assert!(first.is(&TokenSource::google(&account("")).unwrap()));
        let other = account("").replace("Y2FuYXJ5", "Y2FuYXJz");
        assert!(!first.is(&TokenSource::google(&other).unwrap()));
        let secret = || Secret::new("s");
        let entra = |id: &str| TokenSource::entra(None, "t", id.to_owned(), secret()).unwrap();
        assert!(
            entra("a").is(&entra("a")) && !entra("a").is(&entra("b")) && !entra("a").is(&first)
        );
    }
}

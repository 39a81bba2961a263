//! What is said to a token endpoint: a form (RFC 6749) with the proof that the caller may ask.

use std::fmt::Write as _;
use std::time::{Duration, SystemTime};

use backstop_providers::{Grant, TokenSource};
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde::Serialize;

/// How long a signed statement holds; Google takes none that holds longer.
const STATEMENT: Duration = Duration::from_secs(3600);

/// The statement of a service account (RFC 7523, 3).
#[derive(Serialize)]
struct Claims<'a> {
    iss: &'a str,
    scope: &'a str,
    aud: String,
    iat: u64,
    exp: u64,
}

/// The form that asks `source` for a token; `None` where the private key cannot sign.
pub(super) fn form(source: &TokenSource, wall: SystemTime) -> Option<String> {
    let mut form = String::with_capacity(1024);
    let mut add = |name: &str, value: &str| {
        if !form.is_empty() {
            form.push('&');
        }
        form.push_str(name);
        form.push('=');
        encode_into(value, &mut form);
    };
    match source.grant() {
        Grant::ServiceAccount {
            email,
            key_id,
            private_key,
        } => {
            let now = wall.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_secs();
            let claims = Claims {
                iss: email,
                scope: source.scope(),
                aud: source.endpoint().to_string(),
                iat: now,
                exp: now + STATEMENT.as_secs(),
            };
            let mut header = Header::new(Algorithm::RS256);
            header.kid.clone_from(key_id);
            let key = EncodingKey::from_rsa_pem(private_key.expose().as_bytes()).ok()?;
            let statement = encode(&header, &claims, &key).ok()?;
            add("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer");
            add("assertion", &statement);
        }
        Grant::RefreshToken {
            client_id,
            client_secret,
            refresh_token,
        } => {
            add("grant_type", "refresh_token");
            add("client_id", client_id);
            add("client_secret", client_secret.expose());
            add("refresh_token", refresh_token.expose());
        }
        Grant::ClientCredentials {
            client_id,
            client_secret,
        } => {
            add("grant_type", "client_credentials");
            add("client_id", client_id);
            add("client_secret", client_secret.expose());
            add("scope", source.scope());
        }
    }
    Some(form)
}

/// Percent-encodes all but what never needs it (RFC 3986, 2.3).
fn encode_into(text: &str, form: &mut String) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            form.push(char::from(byte));
        } else {
            let _ = write!(form, "%{byte:02X}");
        }
    }
}

#[cfg(test)]
mod tests {
    use backstop_units::Secret;
    use jsonwebtoken::{DecodingKey, Validation, decode};
    use rcgen::{KeyPair, PKCS_RSA_SHA256, RsaKeySize};
    use serde_json::{Value, json};

    use super::*;

    const WALL: SystemTime = SystemTime::UNIX_EPOCH;

    #[test]
    fn a_statement_is_signed_for_an_hour() {
        let pair = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048).expect("a key");
        let file = json!({
            "type": "service_account", "client_email": "a@b", "private_key_id": "k-1",
            "private_key": pair.serialize_pem(), "token_uri": "https://t.test/token",
        });
        let source = TokenSource::google(&file.to_string()).expect("a good file");
        let form = form(&source, WALL + Duration::from_secs(1_000)).expect("it signs");
        let opening = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=";
        let statement = form.strip_prefix(opening).expect("the grant");
        let mut rules = Validation::new(Algorithm::RS256);
        rules.validate_exp = false;
        rules.set_audience(&["https://t.test/token"]);
        let public = pair.public_key_pem();
        let key = DecodingKey::from_rsa_pem(public.as_bytes()).expect("a key");
        let said = decode::<Value>(statement, &key, &rules).expect("signed with the key");
        assert_eq!(said.header.kid.as_deref(), Some("k-1"));
        let scope = "https://www.googleapis.com/auth/cloud-platform";
        assert_eq!(
            said.claims,
            json!({"iss": "a@b", "scope": scope, "aud": "https://t.test/token",
                "iat": 1_000, "exp": 4_600})
        );
    }

    #[test]
    fn a_key_that_cannot_sign_is_no_panic() {
        let key = [
            "-----BEGIN ",
            "PRIVATE KEY-----\nY2FuYXJ5\n-----END ",
            "PRIVATE KEY-----",
        ];
        let file = json!({
            "type": "service_account", "client_email": "a@b", "private_key": key.concat(),
        });
        let source = TokenSource::google(&file.to_string()).expect("it looks like one");
        assert_eq!(form(&source, WALL), None);
    }

    #[test]
    fn the_other_grants_are_forms_with_everything_encoded() {
        let file = json!({
            "type": "authorized_user", "client_id": "c", "client_secret": "s&=", "refresh_token": "1//x",
        });
        let person = TokenSource::google(&file.to_string()).expect("a good file");
        assert_eq!(
            form(&person, WALL).as_deref(),
            Some(
                "grant_type=refresh_token&client_id=c&client_secret=s%26%3D&refresh_token=1%2F%2Fx"
            )
        );
        let entra =
            TokenSource::entra(None, "t", "app".to_owned(), Secret::new("a~b+c")).expect("fits");
        assert_eq!(
            form(&entra, WALL).as_deref(),
            Some(
                "grant_type=client_credentials&client_id=app&client_secret=a~b%2Bc\
                 &scope=https%3A%2F%2Fcognitiveservices.azure.com%2F.default"
            )
        );
    }
}

//! AWS Signature Version 4: a finished request gets the headers that prove who sent it.
//!
//! The path is signed as it stands in the address with each of its percent signs encoded once more,
//! and the body as the bytes that are sent. Content type, host (with a port that is not the
//! scheme's own), date and session token are signed; what layers between here and the provider may
//! add or change is not. Source: <https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html>,
//! notes of 2026-11.

use std::time::SystemTime;

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign as sign_v4};
use aws_sigv4::sign::v4;
use backstop_providers::ToSign;
use bytes::Bytes;
use http::Request;
use http::header::CONTENT_TYPE;
use tracing::subscriber::{NoSubscriber, with_default};

use crate::Error;

/// What the signer calls where a key came from; it only shows in its own logs.
const SOURCE: &str = "configuration";

/// Signs `request` as of `now`, by the wall clock. The provider takes a signature for some minutes,
/// so every attempt is signed afresh, right before it is sent; nothing of the request may change
/// after that.
///
/// # Errors
/// When the request holds something that cannot be signed: an address without host, or a content
/// type that is no text.
pub fn sign(
    request: &mut Request<Bytes>,
    to_sign: &ToSign<'_>,
    now: SystemTime,
) -> Result<(), Error> {
    let session = to_sign.key.session_token.as_ref();
    let identity = Credentials::new(
        to_sign.key.access_key_id.expose(),
        to_sign.key.secret_access_key.expose(),
        session.map(|token| token.expose().to_owned()),
        None,
        SOURCE,
    )
    .into();
    let params = v4::SigningParams::builder()
        .identity(&identity)
        .region(to_sign.region)
        .name(to_sign.service)
        .time(now)
        // By default: the path encoded again, the token signed, the body's hash in no header.
        .settings(SigningSettings::default())
        .build()
        .map_err(|_| Error::Unsignable)?;
    let kind = request.headers().get(CONTENT_TYPE);
    let kind = kind.map(|kind| kind.to_str().map_err(|_| Error::Unsignable));
    let kind = kind.transpose()?.map(|kind| (CONTENT_TYPE.as_str(), kind));
    let signable = SignableRequest::new(
        request.method().as_str(),
        request.uri().to_string(),
        kind.into_iter(),
        SignableBody::Bytes(request.body()),
    )
    .map_err(|_| Error::Unsignable)?;
    // The signer writes down what it signs, session token and all, for whoever listens at `trace`.
    let signed = with_default(NoSubscriber::new(), || sign_v4(signable, &params.into()))
        .map_err(|_| Error::Unsignable)?;
    let (instructions, _) = signed.into_parts();
    instructions.apply_to_request_http1x(request);
    // An access key's id and a session token are nobody else's business either.
    for name in ["authorization", "x-amz-security-token"] {
        if let Some(value) = request.headers_mut().get_mut(name) {
            value.set_sensitive(true);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use backstop_providers::AwsKey;
    use backstop_units::Secret;
    use serde::Deserialize;

    use super::*;

    const VECTORS: &str = include_str!("../fixtures/sigv4/bedrock.json");

    #[derive(Deserialize)]
    struct Vectors {
        vectors: Vec<Vector>,
    }

    #[derive(Deserialize)]
    struct Vector {
        name: String,
        service: String,
        region: String,
        signing_date: String,
        access_key_id: String,
        secret_access_key: String,
        session_token: Option<String>,
        method: String,
        url: String,
        headers: std::collections::BTreeMap<String, String>,
        body: String,
        expected: Expected,
    }

    #[derive(Deserialize)]
    struct Expected {
        headers: std::collections::BTreeMap<String, String>,
    }

    fn key(vector: &Vector) -> AwsKey {
        AwsKey {
            access_key_id: Secret::new(vector.access_key_id.as_str()),
            secret_access_key: Secret::new(vector.secret_access_key.as_str()),
            session_token: vector.session_token.as_deref().map(Secret::new),
        }
    }

    fn request(vector: &Vector) -> Request<Bytes> {
        let mut request = Request::builder()
            .method(vector.method.as_str())
            .uri(&vector.url)
            // Neither is signed: proxies change the one, and the other is ours alone.
            .header("user-agent", "backstop")
            .header("x-backstop-attempt", "1");
        for (name, value) in &vector.headers {
            request = request.header(name, value);
        }
        request
            .body(Bytes::from(vector.body.clone()))
            .expect("a request")
    }

    /// 2025-01-02T03:04:05Z, when all vectors were made.
    fn then() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_735_787_045)
    }

    fn signed(vector: &Vector, now: SystemTime) -> Request<Bytes> {
        let key = key(vector);
        let to_sign = ToSign {
            service: &vector.service,
            region: &vector.region,
            key: &key,
        };
        let mut request = request(vector);
        sign(&mut request, &to_sign, now).expect(&vector.name);
        request
    }

    fn vectors() -> Vec<Vector> {
        let vectors: Vectors = serde_json::from_str(VECTORS).expect("the vectors");
        assert!(vectors.vectors.len() >= 5);
        vectors.vectors
    }

    #[test]
    fn every_vector_gets_the_signature_that_aws_makes() {
        for vector in vectors() {
            assert_eq!(vector.signing_date, "20250102T030405Z");
            let request = signed(&vector, then());
            for (name, want) in &vector.expected.headers {
                let value = request.headers().get(name).expect(name);
                assert_eq!(value, want, "{}: {name}", vector.name);
            }
            let added = request.headers().len() - vector.headers.len() - 2;
            assert_eq!(added, vector.expected.headers.len(), "{}", vector.name);
            assert_eq!(request.uri(), vector.url.as_str(), "{}", vector.name);
        }
    }

    #[test]
    fn another_time_another_signature() {
        let vector = vectors().swap_remove(0);
        let [first, again, later] = [0, 0, 1].map(|seconds| {
            let now = then() + Duration::from_secs(seconds);
            signed(&vector, now).headers()["authorization"].clone()
        });
        assert!(first == again && first != later);
    }

    #[test]
    fn nothing_that_proves_who_asks_is_printed() {
        for vector in vectors() {
            let shown = format!("{:?}", signed(&vector, then()).headers());
            assert!(!shown.contains("Signature=") && !shown.contains(&vector.access_key_id));
            if let Some(token) = &vector.session_token {
                assert!(!shown.contains(token.as_str()));
            }
            assert!(!format!("{:?}", key(&vector)).contains(&vector.secret_access_key));
        }
    }
}

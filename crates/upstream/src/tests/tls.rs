//! TLS: verified always, and its failures told apart.

use std::io;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use tokio::io::DuplexStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::peer::{CLOCKS, Conn, OK, in_memory, post};
use crate::{Failure, Options};
use backstop_classifier::{Sent, Transport};

/// A certificate authority of the test's own.
pub(super) struct Ca(CertifiedIssuer<'static, KeyPair>);

impl Ca {
    pub(super) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// Options of a client that trusts it.
    pub(super) fn options(&self) -> Options {
        Options {
            extra_ca: self.0.pem().into_bytes(),
            ..Options::default()
        }
    }

    /// Plays the server `name` on `io`, offering `protocols`.
    pub(super) async fn accept(
        &self,
        name: &str,
        protocols: &[&str],
        io: DuplexStream,
    ) -> io::Result<TlsStream<DuplexStream>> {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                rustls::pki_types::PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
            )
            .unwrap();
        config.alpn_protocols = protocols.iter().map(|p| p.as_bytes().to_vec()).collect();
        TlsAcceptor::from(Arc::new(config)).accept(io).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_trusted_server_answers() {
    for (name, uri) in [
        ("provider.test", "https://provider.test/v1"),
        ("127.0.0.1", "https://127.0.0.1:8443/v1"),
        ("::1", "https://[::1]/v1"),
    ] {
        let ca = Ca::new();
        let (upstream, mut peer) = in_memory(ca.options());
        let (answer, _conn) = tokio::join!(upstream.send(post(uri), &CLOCKS), async {
            let raw = peer.accept_raw().await;
            let mut conn = Conn(ca.accept(name, &["http/1.1"], raw).await.unwrap());
            conn.request().await;
            conn.write(OK).await;
            conn
        });
        let mut response = answer.unwrap();
        assert_eq!(response.version, http::Version::HTTP_11);
        assert_eq!(response.chunk().await.unwrap().unwrap(), "ok");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_cannot_be_verified_gets_no_request() {
    let ours = Ca::new();
    let theirs = Ca::new();
    for (signer, name, transport) in [
        (&ours, "other.test", Transport::TlsName),
        (&theirs, "provider.test", Transport::TlsTrust),
    ] {
        let (upstream, mut peer) = in_memory(ours.options());
        let (answer, served) = tokio::join!(
            upstream.send(post("https://provider.test/"), &CLOCKS),
            async {
                let raw = peer.accept_raw().await;
                signer.accept(name, &["http/1.1"], raw).await
            }
        );
        let expected = Failure {
            transport,
            sent: Sent::Never,
            reused: false,
            connect: None,
        };
        assert_eq!(answer.unwrap_err(), expected, "{name}");
        assert!(served.is_err(), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_speaks_no_tls() {
    for said in ["", "HTTP/1.1 400 Bad Request\r\n\r\n"] {
        let ca = Ca::new();
        let (upstream, mut peer) = in_memory(ca.options());
        let (answer, ()) = tokio::join!(
            upstream.send(post("https://provider.test/"), &CLOCKS),
            async { peer.accept().await.write(said).await }
        );
        let failure = answer.unwrap_err();
        assert_eq!(failure.transport, Transport::Tls, "{said:?}");
        assert_eq!(failure.sent, Sent::Never);
    }
}

//! How a connection to the provider begins: in clear text, under TLS, as HTTP/2, or not at all.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio_rustls::TlsAcceptor;

use crate::desk::Desk;
use crate::h2;
use crate::play::serve;

/// How a connection to the provider begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Door {
    /// HTTP/1.1 in clear text.
    #[default]
    Plain,
    /// HTTP/1.1 under TLS, with a certificate of the simulator's own authority
    /// ([`Sim::authority`](crate::Sim::authority)) for localhost, 127.0.0.1 and `*.example`.
    Tls,
    /// HTTP/2 under the same TLS.
    Http2,
    /// TLS with a certificate of an authority that nobody knows.
    UnknownAuthority,
    /// TLS with a certificate for another name.
    OtherName,
    /// The connection is closed in the middle of the TLS handshake.
    CutHandshake,
    /// Clear text is spoken where TLS is expected.
    NoTls,
}

impl Door {
    /// Whether callers must speak TLS there.
    #[must_use]
    pub const fn is_secure(self) -> bool {
        !matches!(self, Self::Plain)
    }
}

/// A door with what it takes to open it.
pub(crate) struct Entrance {
    door: Door,
    tls: Option<TlsAcceptor>,
    authority: String,
}

impl Entrance {
    pub(crate) fn new(door: Door) -> Self {
        let (tls, authority) = if door.is_secure() {
            let known = authority();
            let stranger = authority();
            let (issuer, names) = match door {
                Door::UnknownAuthority => (&stranger, NAMES),
                Door::OtherName => (&known, &["elsewhere.test"][..]),
                _ => (&known, NAMES),
            };
            let protocol = if door == Door::Http2 {
                "h2"
            } else {
                "http/1.1"
            };
            (Some(acceptor(issuer, names, protocol)), known.pem())
        } else {
            (None, String::new())
        };
        Self {
            door,
            tls,
            authority,
        }
    }

    pub(crate) const fn door(&self) -> Door {
        self.door
    }

    /// The authority's certificate, in PEM; empty where there is no TLS.
    pub(crate) fn authority(&self) -> &str {
        &self.authority
    }

    /// Serves one connection that came to the door. `reset` arms the stream to be reset when it is
    /// dropped.
    pub(crate) async fn serve<I>(&self, mut io: I, reset: impl FnOnce(&I), desk: Arc<Desk>)
    where
        I: AsyncRead + AsyncWrite + Unpin + Send,
    {
        let Some(tls) = &self.tls else {
            return serve(io, reset, desk).await;
        };
        match self.door {
            Door::CutHandshake | Door::NoTls => {
                desk.connect();
                let mut hello = [0; 1024];
                let _ = io.read(&mut hello).await;
                if self.door == Door::NoTls {
                    let _ = io.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
                }
                let _ = io.shutdown().await;
            }
            // A handshake that fails is the caller's decision: it is counted, and that is all.
            door => match tls.accept(io).await {
                Err(_) => _ = desk.connect(),
                Ok(stream) if door == Door::Http2 => {
                    h2::serve(stream, |stream| reset(stream.get_ref().0), desk).await;
                }
                Ok(stream) => serve(stream, |stream| reset(stream.get_ref().0), desk).await,
            },
        }
    }
}

/// The names that a provider in good order has.
const NAMES: &[&str] = &["localhost", "127.0.0.1", "*.example"];

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("the library can make keys");
    CertifiedIssuer::self_signed(params, key).expect("fixed parameters can be signed")
}

fn acceptor(
    issuer: &CertifiedIssuer<'static, KeyPair>,
    names: &[&str],
    protocol: &str,
) -> TlsAcceptor {
    let key = KeyPair::generate().expect("the library can make keys");
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let params = CertificateParams::new(names).expect("the names are names");
    let certificate = params
        .signed_by(&key, issuer)
        .expect("fixed parameters can be signed");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let secret = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the library speaks TLS 1.2 and 1.3")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], secret)
        .expect("a key and its own certificate");
    config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    TlsAcceptor::from(Arc::new(config))
}

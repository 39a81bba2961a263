//! TLS towards callers: the certificate we show, which can be replaced while connections are open.

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio_rustls::TlsAcceptor;

/// Why a certificate cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The text holds no certificate in PEM.
    #[error("server.tls.certificate holds no certificate in PEM")]
    NoCertificate,
    /// The text holds no private key in PEM.
    #[error("server.tls.private_key holds no private key in PEM")]
    NoKey,
    /// The two do not belong together, or are of a kind that cannot be used.
    #[error("server.tls: certificate and private key cannot be used together")]
    Unfit {
        /// Why.
        source: rustls::Error,
    },
}

/// What callers see of us: HTTP/2 and HTTP/1.1 over TLS 1.3 or 1.2.
#[derive(Clone)]
pub struct Tls {
    shown: Arc<Shown>,
    acceptor: TlsAcceptor,
}

impl Tls {
    /// Shows this certificate chain, leaf first, with its key; both in PEM.
    ///
    /// # Errors
    /// When they cannot be used.
    pub fn new(certificate: &str, key: &str) -> Result<Self, TlsError> {
        let shown = Arc::new(Shown(ArcSwap::from_pointee(certified(certificate, key)?)));
        // Named here and not installed for the process, as towards providers.
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|source| TlsError::Unfit { source })?
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(&shown) as Arc<dyn ResolvesServerCert>);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self {
            shown,
            acceptor: TlsAcceptor::from(Arc::new(config)),
        })
    }

    /// Shows another certificate from the next handshake on. A bad one changes nothing.
    ///
    /// # Errors
    /// When it cannot be used.
    pub fn show(&self, certificate: &str, key: &str) -> Result<(), TlsError> {
        self.shown.0.store(Arc::new(certified(certificate, key)?));
        Ok(())
    }

    pub(crate) const fn acceptor(&self) -> &TlsAcceptor {
        &self.acceptor
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

/// The certificate of the moment.
#[derive(Debug)]
struct Shown(ArcSwap<CertifiedKey>);

impl ResolvesServerCert for Shown {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.load_full())
    }
}

fn certified(certificate: &str, key: &str) -> Result<CertifiedKey, TlsError> {
    let chain: Vec<CertificateDer<'static>> =
        CertificateDer::pem_slice_iter(certificate.as_bytes())
            .collect::<Result<_, _>>()
            .map_err(|_| TlsError::NoCertificate)?;
    if chain.is_empty() {
        return Err(TlsError::NoCertificate);
    }
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|_| TlsError::NoKey)?;
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    CertifiedKey::from_der(chain, key, &provider).map_err(|source| TlsError::Unfit { source })
}

#[cfg(test)]
mod tests {
    use rcgen::generate_simple_self_signed;

    use super::*;

    #[test]
    fn what_cannot_be_shown_is_named_and_changes_nothing() {
        let one = generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
        let other = generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
        let (cert, key) = (one.cert.pem(), one.signing_key.serialize_pem());
        let tls = Tls::new(&cert, &key).expect("a pair");
        let before = tls.shown.0.load_full();
        let foreign = other.signing_key.serialize_pem();
        for (cert, key, want) in [
            ("", key.as_str(), "holds no certificate"),
            (
                "-----BEGIN CERTIFICATE-----\nAA",
                &key,
                "holds no certificate",
            ),
            (&cert, "", "holds no private key"),
            (&cert, &cert, "holds no private key"),
            (&cert, &foreign, "cannot be used together"),
        ] {
            let error = tls.show(cert, key).expect_err("unfit");
            assert!(error.to_string().contains(want), "{error}");
        }
        assert!(Arc::ptr_eq(&before, &tls.shown.0.load_full()));
        tls.show(&other.cert.pem(), &foreign).expect("another pair");
        assert!(!Arc::ptr_eq(&before, &tls.shown.0.load_full()));
    }
}

//! Whom we believe: the TLS settings, always with verification.

use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use crate::options::{Error, Options};

/// TLS settings with the system's roots (or the built-in ones where the system has none), the
/// operator's extra ones, and the protocols to offer.
pub(crate) fn client_config(options: &Options) -> Result<ClientConfig, Error> {
    let mut roots = system_roots();
    add_extra(&mut roots, &options.extra_ca)?;
    // The provider is named here and not installed for the process: a library must not decide that
    // for the binary.
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|source| Error::TlsVersions { source })?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = if options.http2 {
        vec![b"h2".to_vec(), b"http/1.1".to_vec()]
    } else {
        vec![b"http/1.1".to_vec()]
    };
    Ok(config)
}

fn system_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    let (added, ignored) = roots.add_parsable_certificates(found.certs);
    tracing::debug!(
        added,
        ignored,
        failed = found.errors.len(),
        "system roots read"
    );
    if roots.is_empty() {
        // A container without a certificate bundle: the public roots compiled in.
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    roots
}

fn add_extra(roots: &mut RootCertStore, pem: &[u8]) -> Result<(), Error> {
    if pem.is_empty() {
        return Ok(());
    }
    let mut count = 0;
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|source| Error::CaNotPem { source })?;
        count += 1;
        roots.add(certificate).map_err(|source| Error::CaUnusable {
            index: count,
            source,
        })?;
    }
    if count == 0 {
        Err(Error::CaEmpty)
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_ca(pem: &[u8]) -> Options {
        Options {
            extra_ca: pem.to_vec(),
            ..Options::default()
        }
    }

    #[test]
    fn what_the_extra_ca_may_be() {
        let good = rcgen::generate_simple_self_signed(vec!["ca.test".to_owned()]).unwrap();
        let refused = |pem: &[u8]| client_config(&with_ca(pem)).err().map(|e| e.to_string());
        assert_eq!(refused(good.cert.pem().as_bytes()), None);
        assert_eq!(
            refused(b"no certificate in here").unwrap(),
            "the extra CA file holds no certificate"
        );
        assert_eq!(
            refused(b"-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----\n").unwrap(),
            "the extra CA file is not valid PEM"
        );
        assert_eq!(
            refused(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").unwrap(),
            "certificate 1 of the extra CA file cannot be trusted as a CA"
        );
    }

    #[test]
    fn http2_is_offered_only_when_asked() {
        for (http2, offered) in [(true, vec!["h2", "http/1.1"]), (false, vec!["http/1.1"])] {
            let options = Options {
                http2,
                ..Options::default()
            };
            let config = client_config(&options).unwrap();
            let protocols: Vec<&str> = config
                .alpn_protocols
                .iter()
                .map(|p| std::str::from_utf8(p).unwrap())
                .collect();
            assert_eq!(protocols, offered);
        }
    }
}

//! Providers at their public addresses, played by simulators: TLS included, the internet not.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use backstop_faultsim::Sim;
use backstop_upstream::{BoxIo, Dial, Dialing, Options, Upstream};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::DuplexStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// A client for which each of `hosts` is its simulator, with a certificate it trusts. Every other
/// host refuses the connection.
///
/// # Panics
/// When certificates cannot be made.
#[must_use]
pub fn public(hosts: &[(&str, &Arc<Sim>)]) -> Upstream {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let ca = CertifiedIssuer::self_signed(params, key).expect("a certificate of our own");
    let places = hosts.iter().map(|(host, sim)| {
        let place = Place {
            tls: acceptor(host, &ca),
            sim: Arc::clone(sim),
        };
        ((*host).to_owned(), place)
    });
    let dial = Hosts {
        places: places.collect(),
        handshakes: Mutex::default(),
    };
    let options = Options {
        extra_ca: ca.pem().into_bytes(),
        ..Options::default()
    };
    Upstream::with_dial(options, Arc::new(dial)).expect("a client")
}

fn acceptor(host: &str, ca: &CertifiedIssuer<'static, KeyPair>) -> TlsAcceptor {
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec![host.to_owned()]).expect("a host name");
    let certificate = params.signed_by(&key, ca).expect("a certificate");
    let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a private key");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("TLS 1.2 and 1.3")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .expect("a fitting key");
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    TlsAcceptor::from(Arc::new(config))
}

#[derive(Clone)]
struct Place {
    tls: TlsAcceptor,
    sim: Arc<Sim>,
}

struct Hosts {
    places: HashMap<String, Place>,
    handshakes: Mutex<JoinSet<()>>,
}

impl Dial for Hosts {
    fn dial(&self, host: &str, port: u16) -> Dialing {
        let place = self.places.get(host).filter(|_| port == 443).cloned();
        let opened = place.map(|place| {
            let (ours, theirs) = tokio::io::duplex(64 * 1024);
            let mut handshakes = self
                .handshakes
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            handshakes.spawn(serve(place, theirs));
            Box::new(ours) as BoxIo
        });
        Box::pin(async move { opened.ok_or_else(|| io::ErrorKind::ConnectionRefused.into()) })
    }
}

async fn serve(place: Place, io: DuplexStream) {
    if let Ok(stream) = place.tls.accept(io).await {
        place.sim.serve_connection(stream);
    }
}

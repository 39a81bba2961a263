//! What an operator may set about connections to providers, and why it can be refused.

use std::fmt;
use std::time::Duration;

/// Settings of an [`Upstream`](crate::Upstream). Fixed for its lifetime; a reload builds a new one.
#[derive(Clone)]
pub struct Options {
    /// How long an idle connection is kept for the next request. Default 90 s (our choice). Where
    /// the provider closes idle ones earlier, a request now and then loses the race and fails as a
    /// [stale connection](crate::Failure::is_stale_connection), which is re-sent once.
    pub idle_timeout: Duration,
    /// How many idle connections are kept for one authority in one lane. Default 32. `0` keeps
    /// none: every request then opens its own connection.
    pub max_idle_per_host: usize,
    /// A connection older than this carries the request it was chosen for and is then closed, so
    /// that a changed DNS answer is noticed on a busy route too. Default 60 s.
    pub max_connection_age: Duration,
    /// Whether HTTP/2 is offered over TLS (ALPN decides). Default `true`. Cleartext connections
    /// always speak HTTP/1.1.
    pub http2: bool,
    /// How many exchanges share one lane, hence at most one HTTP/2 connection to an authority,
    /// before the next lane is opened. Default 100, the number of concurrent streams that RFC 9113
    /// section 6.5.2 recommends as the least a server should allow: above it, requests would
    /// queue unseen inside the connection. Values below 1 count as 1.
    pub exchanges_per_lane: usize,
    /// Certificates (PEM, any number) trusted in addition to the system's. Default none.
    pub extra_ca: Vec<u8>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            idle_timeout: Duration::from_secs(90),
            max_idle_per_host: 32,
            max_connection_age: Duration::from_secs(60),
            http2: true,
            exchanges_per_lane: 100,
            extra_ca: Vec::new(),
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("idle_timeout", &self.idle_timeout)
            .field("max_idle_per_host", &self.max_idle_per_host)
            .field("max_connection_age", &self.max_connection_age)
            .field("http2", &self.http2)
            .field("exchanges_per_lane", &self.exchanges_per_lane)
            .field("extra_ca_bytes", &self.extra_ca.len())
            .finish()
    }
}

/// Why an [`Upstream`](crate::Upstream) cannot be built from its [`Options`], or a request signed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The extra CA bytes are not PEM.
    #[error("the extra CA file is not valid PEM")]
    CaNotPem {
        /// What the PEM reader said.
        source: rustls::pki_types::pem::Error,
    },
    /// The extra CA bytes are PEM, but hold no certificate.
    #[error("the extra CA file holds no certificate")]
    CaEmpty,
    /// A certificate among the extra CA bytes cannot serve as a trust anchor.
    #[error("certificate {index} of the extra CA file cannot be trusted as a CA")]
    CaUnusable {
        /// Its position in the file, counted from 1.
        index: usize,
        /// What is wrong with it.
        source: rustls::Error,
    },
    /// The cryptographic library offers none of the TLS versions we speak.
    #[error("TLS 1.2 and 1.3 are not available")]
    TlsVersions {
        /// What the library said.
        source: rustls::Error,
    },
    /// A request holds something that no signature can cover.
    #[error("the request cannot be signed: its address or its content type is unusable")]
    Unsignable,
}

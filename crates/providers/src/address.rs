//! Where a provider is, as an operator writes it.

use std::fmt;
use std::net::IpAddr;

use http::Uri;
use http::uri::Scheme;

use crate::Error;

/// A checked `base_url`: `https://` or `http://`, a host, perhaps a port and a path. Holds no
/// credentials, no query, no fragment.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    uri: Uri,
}

impl Address {
    /// Reads an address. Slashes at its end mean nothing.
    ///
    /// # Errors
    /// Says which part is missing or does not belong. The text itself is never repeated, since a
    /// mistaken one may hold a password.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let lower = text.get(..8).unwrap_or(text).to_ascii_lowercase();
        if !(lower.starts_with("https://") || lower.starts_with("http://")) {
            return Err(Error::AddressScheme);
        }
        if text.contains(['?', '#']) {
            return Err(Error::AddressQuery);
        }
        let uri: Uri = text
            .trim_end_matches('/')
            .parse()
            .map_err(|_| Error::AddressHost)?;
        let authority = uri.authority().ok_or(Error::AddressHost)?;
        if authority.as_str().contains('@') {
            return Err(Error::AddressUser);
        }
        let written_port = authority
            .as_str()
            .strip_prefix(authority.host())
            .is_some_and(|rest| !rest.is_empty());
        if authority.host().is_empty() || (written_port && uri.port_u16().is_none_or(|p| p == 0)) {
            return Err(Error::AddressHost);
        }
        Ok(Self { uri })
    }

    /// The host, without brackets when it is an IPv6 address.
    #[must_use]
    pub fn host(&self) -> &str {
        let host = self.uri.host().unwrap_or_default();
        host.strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
            .unwrap_or(host)
    }

    /// The port, written or implied by the scheme.
    #[must_use]
    pub fn port(&self) -> u16 {
        let implied = if self.is_plain() { 80 } else { 443 };
        self.uri.port_u16().unwrap_or(implied)
    }

    /// Whether traffic goes out without TLS.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.uri.scheme() == Some(&Scheme::HTTP)
    }

    /// Whether the host is this machine.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        match self.host().parse::<IpAddr>() {
            Ok(ip) => ip.to_canonical().is_loopback(),
            Err(_) => {
                let host = self.host().to_ascii_lowercase();
                host == "localhost" || host.ends_with(".localhost")
            }
        }
    }

    /// Whether the host can only be reached inside: this machine, a private or link-local address,
    /// a name without dots (a container's or a service's), or one below `.local`, `.internal`,
    /// `.svc` or `.lan`.
    #[must_use]
    pub fn is_private(&self) -> bool {
        if self.is_loopback() {
            return true;
        }
        match self.host().parse::<IpAddr>().map(|ip| ip.to_canonical()) {
            Ok(IpAddr::V4(ip)) => ip.is_private() || ip.is_link_local(),
            Ok(IpAddr::V6(ip)) => ip.is_unique_local() || ip.is_unicast_link_local(),
            Err(_) => {
                let host = self.host().to_ascii_lowercase();
                let last = host.rsplit('.').next().unwrap_or_default();
                !host.contains('.') || ["local", "internal", "svc", "lan"].contains(&last)
            }
        }
    }

    /// Its path, without the slash at its end.
    pub(crate) fn path(&self) -> &str {
        self.uri.path().trim_end_matches('/')
    }

    /// The same host with another path.
    pub(crate) fn with_path(&self, path: &str) -> Result<Self, Error> {
        let mut parts = self.uri.clone().into_parts();
        parts.path_and_query = Some(path.parse().map_err(|_| Error::AddressHost)?);
        let uri = Uri::from_parts(parts).map_err(|_| Error::AddressHost)?;
        Ok(Self { uri })
    }

    /// Whether it is the address of `path` already, and of nothing else.
    #[must_use]
    pub(crate) fn ends_with(&self, path: &str) -> bool {
        self.uri.path().trim_end_matches('/').ends_with(path)
    }

    /// The whole address of `path` below this one. The version is added only when no segment of
    /// the address is one, so `/v1` never comes twice; an address that already ends in `path` is
    /// taken as it stands.
    ///
    /// # Errors
    /// When the parts do not make an address.
    pub fn join(&self, version: &str, path: &str) -> Result<Uri, Error> {
        let base = self.uri.path().trim_end_matches('/');
        let whole = if base.ends_with(path) {
            base.to_owned()
        } else if base.split('/').any(is_version) {
            [base, path].concat()
        } else {
            [base, version, path].concat()
        };
        let mut parts = self.uri.clone().into_parts();
        parts.path_and_query = Some(whole.parse().map_err(|_| Error::AddressHost)?);
        Uri::from_parts(parts).map_err(|_| Error::AddressHost)
    }
}

/// `v1`, `v4`, `v1beta`.
fn is_version(segment: &str) -> bool {
    segment
        .strip_prefix('v')
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.uri.fmt(f)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({})", self.uri)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_added_once_or_not_at_all() {
        for (base, version, path, whole) in [
            ("https://a.b", "/v1", "/messages", "https://a.b/v1/messages"),
            (
                "https://a.b/",
                "/v1",
                "/messages",
                "https://a.b/v1/messages",
            ),
            (
                "https://a.b/v1",
                "/v1",
                "/messages",
                "https://a.b/v1/messages",
            ),
            (
                "https://a.b/v1//",
                "/v1",
                "/messages",
                "https://a.b/v1/messages",
            ),
            (
                "http://h:8000",
                "/v1",
                "/chat/completions",
                "http://h:8000/v1/chat/completions",
            ),
            ("https://h/openai", "/v1", "/c", "https://h/openai/v1/c"),
            (
                "https://h/v1beta/openai",
                "/v1",
                "/c",
                "https://h/v1beta/openai/c",
            ),
            (
                "https://h/api/paas/v4",
                "/v1",
                "/c",
                "https://h/api/paas/v4/c",
            ),
            ("https://h/vertex", "/v1", "/c", "https://h/vertex/v1/c"),
            (
                "https://h",
                "",
                "/chat/completions",
                "https://h/chat/completions",
            ),
            (
                "https://h/odd/chat/completions",
                "/v1",
                "/chat/completions",
                "https://h/odd/chat/completions",
            ),
        ] {
            let uri = Address::parse(base).unwrap().join(version, path).unwrap();
            assert_eq!(uri, whole, "{base}");
        }
    }

    #[test]
    fn what_does_not_belong_in_an_address_is_refused() {
        for (text, want) in [
            ("api.openai.com/v1", Error::AddressScheme),
            ("localhost:8000", Error::AddressScheme),
            ("ftp://h/", Error::AddressScheme),
            ("", Error::AddressScheme),
            ("https://", Error::AddressHost),
            ("https:///v1", Error::AddressHost),
            ("https://h:99999", Error::AddressHost),
            ("https://h:0", Error::AddressHost),
            ("https://h:", Error::AddressHost),
            ("https://a b/", Error::AddressHost),
            ("https://me:secret@h/v1", Error::AddressUser),
            ("https://h/v1?key=secret", Error::AddressQuery),
            ("https://h/v1#x", Error::AddressQuery),
        ] {
            assert_eq!(Address::parse(text).unwrap_err(), want, "{text}");
        }
    }

    #[test]
    fn inside_and_outside_are_told_apart() {
        for (text, loopback, private) in [
            ("http://127.0.0.1:1", true, true),
            ("http://127.9.9.9", true, true),
            ("http://[::1]:1", true, true),
            ("http://[::ffff:127.0.0.1]", true, true),
            ("http://LOCALHOST:1", true, true),
            ("http://api.localhost", true, true),
            ("http://10.0.0.1", false, true),
            ("http://192.168.1.5:8000", false, true),
            ("http://172.32.0.1", false, false),
            ("http://[fd00::1]", false, true),
            ("http://vllm:8000", false, true),
            ("http://llm.default.svc", false, true),
            ("http://host.docker.internal", false, true),
            ("http://8.8.8.8", false, false),
            ("http://api.example.com", false, false),
            ("http://localhost.example.com", false, false),
            ("http://0.0.0.0", false, false),
        ] {
            let address = Address::parse(text).unwrap();
            assert_eq!(address.is_loopback(), loopback, "{text}");
            assert_eq!(address.is_private(), private, "{text}");
        }
    }

    #[test]
    fn the_port_is_written_or_implied() {
        for (text, port) in [
            ("http://h", 80),
            ("https://h", 443),
            ("http://[::1]:81/", 81),
        ] {
            assert_eq!(Address::parse(text).unwrap().port(), port);
        }
    }
}

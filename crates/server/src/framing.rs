//! Heads that two readers of HTTP could take for two different requests are refused, whole.
//!
//! A proxy in front and the gateway behind it must agree where a request ends and whom it is for; what
//! leaves room for doubt is how one request is smuggled inside another (RFC 9112, 6.3 and 11.2). hyper
//! reads several of these in one of their senses, so they are refused here, before anything is read.

use http::uri::Authority;
use http::{HeaderMap, Method, Request, Version, header};

use crate::error::Refused;
use crate::heads::Doubt;

/// Whether the head of a request means one thing only.
///
/// # Errors
/// Says what does not. The connection is to be closed: where the next request begins is not known.
pub(crate) fn check<B>(request: &Request<B>) -> Result<(), Refused> {
    let ambiguous = |what| Err(Refused::Ambiguous { what });
    if request.method() == Method::CONNECT {
        return ambiguous("CONNECT is not served");
    }
    if request.version() >= Version::HTTP_2 {
        // Framing is not the headers' there, and a host is part of the address.
        return Ok(());
    }
    if request.extensions().get::<Doubt>().is_some() {
        return ambiguous("both content-length and transfer-encoding, or a bare line feed");
    }
    let headers = request.headers();
    let lengths = headers.get_all(header::CONTENT_LENGTH).iter().count();
    if lengths > 1 {
        return ambiguous("more than one content-length");
    }
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
    if let Some(coding) = codings.next() {
        if lengths > 0 {
            return ambiguous("both content-length and transfer-encoding");
        }
        if codings.next().is_some() || !coding.as_bytes().eq_ignore_ascii_case(b"chunked") {
            return ambiguous("a transfer-encoding other than chunked alone");
        }
    }
    let host = host(headers, request.version())?;
    if let Some(meant) = request.uri().authority()
        && host.is_none_or(|host| !host.as_str().eq_ignore_ascii_case(meant.as_str()))
    {
        return ambiguous("the request line names another host than the host header");
    }
    Ok(())
}

/// The one host; `None` where an HTTP/1.0 request names none.
fn host(headers: &HeaderMap, version: Version) -> Result<Option<Authority>, Refused> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let host = match (hosts.next(), hosts.next()) {
        (None, _) if version == Version::HTTP_10 => return Ok(None),
        (None, _) => return Err(Refused::Ambiguous { what: "no host" }),
        (Some(_), Some(_)) => {
            return Err(Refused::Ambiguous {
                what: "more than one host",
            });
        }
        (Some(host), None) => host,
    };
    let authority = Authority::try_from(host.as_bytes()).ok();
    match authority.filter(|host| !host.as_str().contains('@')) {
        Some(host) => Ok(Some(host)),
        None => Err(Refused::Ambiguous {
            what: "a host that is none",
        }),
    }
}

//! What the connection decides about headers, whatever the request says.

use bytes::Bytes;
use http::header::{self, HeaderName, HeaderValue};
use http::{Request, Version};
use http_body_util::Full;

/// Headers that belong to one connection (RFC 9110 section 7.6.1), or that the client itself
/// derives from the address and the body. A `connection` header could otherwise name, and so
/// strip, `authorization`; a `host` could name another tenant than the one we dialled; `expect`
/// could hold the body back.
const OURS: [HeaderName; 11] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::EXPECT,
    header::HOST,
    header::CONTENT_LENGTH,
    header::PROXY_AUTHORIZATION,
];

/// The request as it goes out: no header of [`OURS`], no compressed answer wanted, the version
/// left to the connection.
pub(crate) fn outgoing(request: Request<Bytes>) -> Request<Full<Bytes>> {
    let mut request = request.map(Full::new);
    // On an HTTP/2 connection the client raises this by itself; asking for 2 here would refuse
    // every other connection.
    *request.version_mut() = Version::HTTP_11;
    let headers = request.headers_mut();
    for name in &OURS {
        headers.remove(name);
    }
    headers.insert(
        header::ACCEPT_ENCODING,
        HeaderValue::from_static("identity"),
    );
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_headers_never_leave_and_others_stay() {
        let mut request = Request::post("http://provider.test/v1")
            .version(Version::HTTP_2)
            .header("authorization", "Bearer x")
            .header("accept-encoding", "gzip")
            .header("x-mine", "1")
            .body(Bytes::from_static(b"{}"))
            .unwrap();
        for name in OURS {
            request
                .headers_mut()
                .insert(name, HeaderValue::from_static("authorization"));
        }
        let sent = outgoing(request);
        let mut names: Vec<&str> = sent.headers().keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["accept-encoding", "authorization", "x-mine"]);
        assert_eq!(sent.headers()["accept-encoding"], "identity");
        assert_eq!(sent.version(), Version::HTTP_11);
    }
}

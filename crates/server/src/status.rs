//! Whether the process lives, whether it wants traffic, and its numbers.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};

use crate::gateway::Gateway;

/// The process lives: it could answer this.
pub(crate) fn health() -> Response<Bytes> {
    text(StatusCode::OK, "ok\n")
}

/// Ready while it is not draining. A gateway whose providers are all down is still ready: taking
/// it out of rotation would not bring them back.
pub(crate) fn ready(gateway: &Gateway) -> Response<Bytes> {
    if gateway.is_draining() {
        text(StatusCode::SERVICE_UNAVAILABLE, "draining\n")
    } else {
        text(StatusCode::OK, "ready\n")
    }
}

/// Prometheus text.
pub(crate) fn metrics(gateway: &Gateway) -> Response<Bytes> {
    gateway.observe();
    let mut response = Response::new(Bytes::from(gateway.metrics.render()));
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

fn text(status: StatusCode, text: &'static str) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from_static(text.as_bytes()));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

//! Errors: `{"error":{"message","type","param","code"}}`.

/// The `type` for a status, as OpenAI's API reference and SDKs use it.
pub(crate) const fn kind(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        408 | 504 => "timeout_error",
        429 => "rate_limit_error",
        500.. => "server_error",
        _ => "invalid_request_error",
    }
}

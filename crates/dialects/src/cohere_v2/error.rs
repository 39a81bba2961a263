//! Errors: `{"id","message","error_type"}`.

/// An `error_type` for a status. Cohere sends one with few errors; these are words of ours in its
/// spelling.
pub(crate) const fn kind(status: u16) -> &'static str {
    match status {
        401 => "UNAUTHORIZED",
        403 => "FORBIDDEN",
        404 => "NOT_FOUND",
        408 | 504 => "TIMEOUT",
        429 => "TOO_MANY_REQUESTS",
        500.. => "INTERNAL_SERVER_ERROR",
        _ => "INVALID_REQUEST",
    }
}

//! Errors: `{"error":{"code","message","status","details"}}`.

use crate::error::CallerError;
use crate::json::Array;

/// The `status` for an HTTP status, as Google's API design guide pairs them
/// (google.aip.dev/193 and google/rpc/code.proto).
pub(crate) const fn kind(status: u16) -> &'static str {
    match status {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        408 | 504 => "DEADLINE_EXCEEDED",
        409 => "ABORTED",
        429 => "RESOURCE_EXHAUSTED",
        499 => "CANCELLED",
        501 => "UNIMPLEMENTED",
        502 | 503 | 529 => "UNAVAILABLE",
        500.. => "INTERNAL",
        _ => "INVALID_ARGUMENT",
    }
}

/// What an error says for programs: the reason, and the request member at fault.
pub(crate) fn details(error: &CallerError<'_>, all: &mut Array<'_>) {
    if let Some(code) = error.code {
        all.object(|info| {
            info.put("@type", "type.googleapis.com/google.rpc.ErrorInfo");
            info.put("reason", &code.to_ascii_uppercase());
            info.put("domain", "backstop");
        });
    }
    if let Some(param) = error.param {
        all.object(|info| {
            info.put("@type", "type.googleapis.com/google.rpc.BadRequest");
            info.array("fieldViolations", |all| {
                all.object(|violation| violation.put("field", param));
            });
        });
    }
}

//! Errors: `{"message"}`, with the exception's name in a header or, in a stream, in the frame's.

use backstop_stream::{Frame, write_message};
use serde_json::Value;

use crate::error::{CallerError, ProviderError};

/// The header that names an answer's exception, up to its colon.
pub(crate) const HEADER: &str = "x-amzn-errortype";

/// The exception for an HTTP status (API_runtime_Converse, Errors; a client knows its class by this
/// name).
pub(crate) const fn kind(status: u16) -> &'static str {
    match status {
        401 => "UnrecognizedClientException",
        403 => "AccessDeniedException",
        404 => "ResourceNotFoundException",
        408 | 504 => "ModelTimeoutException",
        424 => "ModelErrorException",
        429 => "ThrottlingException",
        502 | 503 | 529 => "ServiceUnavailableException",
        500.. => "InternalServerException",
        _ => "ValidationException",
    }
}

/// The exceptions that clients know in a stream (API_runtime_ConverseStreamOutput).
const IN_STREAM: [&str; 5] = [
    "validationException",
    "throttlingException",
    "modelStreamErrorException",
    "serviceUnavailableException",
    "internalServerException",
];

/// The exception of a stream that says the same as an HTTP status.
const fn kind_in_stream(status: u16) -> &'static str {
    match status {
        429 => "throttlingException",
        408 | 424 => "modelStreamErrorException",
        502..=504 | 529 => "serviceUnavailableException",
        500.. => "internalServerException",
        _ => "validationException",
    }
}

/// The frame that ends a broken stream.
pub(crate) fn frame(error: &CallerError<'_>, body: Vec<u8>) -> Vec<u8> {
    let known = error.kind.and_then(|kind| {
        let mut known = IN_STREAM.into_iter();
        known.find(|name| name.eq_ignore_ascii_case(kind))
    });
    let headers = [
        (
            ":exception-type",
            known.unwrap_or(kind_in_stream(error.status)),
        ),
        (":content-type", "application/json"),
        (":message-type", "exception"),
    ];
    let mut out = Vec::with_capacity(body.len() + 128);
    write_message(&mut out, &headers, body);
    out
}

/// The name of an exception as a header has it: in a stream it begins in lower case.
pub(crate) fn capital(name: &str) -> String {
    let mut letters = name.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// What an error frame says, as one JSON object whose only member is the exception: its name stands
/// in the headers, and of an error that nobody foresaw its words do as well.
pub(crate) fn told(frame: &Frame) -> Option<Vec<u8>> {
    let name = frame
        .header(":exception-type")
        .or_else(|| frame.header(":error-code"))?;
    let payload = serde_json::from_slice(frame.data()).unwrap_or_else(|_| {
        let words = frame.header(":error-message").unwrap_or_default();
        serde_json::json!({ "message": words })
    });
    let mut told = serde_json::Map::new();
    told.insert(name.to_owned(), payload);
    serde_json::to_vec(&told).ok()
}

/// The name and the words of what [`told`] gives; `None` for any other body.
pub(crate) fn read(body: &Value) -> Option<ProviderError> {
    let mut members = body.as_object()?.iter();
    let (Some((name, told)), None) = (members.next(), members.next()) else {
        return None;
    };
    told.as_object()?;
    let words = ["message", "Message"].iter().find_map(|of| told.get(of));
    Some(ProviderError {
        message: words.and_then(Value::as_str).unwrap_or_default().to_owned(),
        kind: Some(name.clone()),
        ..ProviderError::default()
    })
}

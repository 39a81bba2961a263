//! Errors: bodies as in OpenAI's other dialect, events of their own.

use crate::error::CallerError;
use crate::json::Object;

/// The data of the event that ends a broken stream. The reference shows its members beside `type`,
/// the service puts them into `error`, and the official clients raise only for the latter; both
/// stand here.
pub(crate) fn event(error: &CallerError<'_>, kind: &str) -> Vec<u8> {
    let mut data = Vec::with_capacity(256 + 2 * error.message.len());
    Object::write(&mut data, |out| {
        out.put("type", "error");
        out.put("code", &error.code);
        out.put("message", error.message);
        out.put("param", &error.param);
        out.object("error", |inner| {
            inner.put("type", kind);
            inner.put("code", &error.code);
            inner.put("message", error.message);
            inner.put("param", &error.param);
        });
        out.put_some("request_id", error.request_id);
    });
    data
}

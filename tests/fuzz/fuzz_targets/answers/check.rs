//! What must hold for any input of the fuzz target; plain tests replay its corpus with it.

use backstop_dialects::{
    CallerError, add_member, error_body, inspect_answer, read_answer, read_error, remove_member,
    write_answer,
};

#[path = "../dialects.rs"]
#[allow(dead_code, reason = "shared with targets that need more of it")]
mod dialects;

/// Reads the input as a whole answer and as an error, and writes both in every dialect.
///
/// The first byte picks the dialect, the rest is the body.
pub fn check(data: &[u8]) {
    let Some((&letter, body)) = data.split_first() else {
        return;
    };
    let dialect = dialects::dialect(letter);
    let inspected = inspect_answer(dialect, body);
    let answer = read_answer(dialect, body);
    let error = read_error(dialect, body);
    if !is_json(body) {
        assert!(inspected.is_err() && answer.is_err() && error.is_none());
        return;
    }
    if let Some(grown) = add_member(body, "extra_fields", b"{\"a\":1}") {
        assert!(is_json(&grown));
        let bare = remove_member(&grown, "extra_fields").expect("still an object");
        assert!(is_json(&bare));
    }
    for (_, target) in dialects::DIALECTS {
        if let Ok(answer) = &answer {
            let written = write_answer(target, answer, &dialects::STAMP);
            dialects::in_proportion(body.len(), written.body.len());
            let again = read_answer(target, &written.body);
            assert!(
                again.is_ok(),
                "{target} does not read what it wrote: {again:?}"
            );
        }
        if let Some(error) = &error {
            let told = CallerError {
                status: 500,
                kind: error.kind.as_deref(),
                code: error.code.as_deref(),
                message: &error.message,
                param: error.param.as_deref(),
                request_id: None,
                extra: None,
            };
            assert!(is_json(&error_body(target, &told)));
        }
    }
}

fn is_json(body: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(body).is_ok()
}

//! What must hold for any input of the fuzz target; plain tests replay its corpus with it.

use backstop_dialects::{Loss, WriteOptions, read_request, write_request};

#[path = "../dialects.rs"]
#[allow(dead_code, reason = "shared with targets that need more of it")]
mod dialects;

/// Reads the input as a request and writes it in every dialect, with and without losses.
///
/// The first byte picks the dialect, the rest is the body.
pub fn check(data: &[u8]) {
    let Some((&letter, body)) = data.split_first() else {
        return;
    };
    let request = match read_request(dialects::dialect(letter), body) {
        Ok(request) => request,
        Err(complaint) => {
            assert!(!complaint.code.is_empty() && complaint.message.len() < 1024);
            return;
        }
    };
    for (_, target) in dialects::DIALECTS {
        for loss in [Loss::Refuse, Loss::Drop] {
            let options = WriteOptions {
                loss,
                ..WriteOptions::default()
            };
            match write_request(target, &request, &options) {
                Ok(written) => {
                    dialects::in_proportion(body.len(), written.body.len());
                    let again = read_request(target, &written.body);
                    assert!(
                        again.is_ok(),
                        "{target} does not read what it wrote: {again:?}"
                    );
                }
                Err(refused) => assert!(!refused.field.is_empty()),
            }
        }
    }
}

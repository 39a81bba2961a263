//! Any bytes are an answer, an error or malformed: `cargo xtask fuzz answers`.

#![no_main]

#[path = "answers/check.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|data: &[u8]| check::check(data));

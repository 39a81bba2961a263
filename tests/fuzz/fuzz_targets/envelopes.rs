//! Any bytes are a request or a complaint: `cargo xtask fuzz envelopes`.

#![no_main]

#[path = "envelopes/check.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|data: &[u8]| check::check(data));

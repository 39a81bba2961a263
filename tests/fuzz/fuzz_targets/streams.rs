//! Any bytes are a stream of every dialect, however they are cut: `cargo xtask fuzz streams`.

#![no_main]

#[path = "streams/check.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|data: &[u8]| check::check(data));

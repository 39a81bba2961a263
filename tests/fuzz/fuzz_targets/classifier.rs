//! Any bytes give a verdict: `cargo xtask fuzz classifier`.

#![no_main]

#[path = "classifier/check.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|data: &[u8]| check::check(data));

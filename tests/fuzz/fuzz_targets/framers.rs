//! Any bytes are the same frames, however they are cut: `cargo xtask fuzz framers`.

#![no_main]

#[path = "framers/check.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|data: &[u8]| check::check(data));

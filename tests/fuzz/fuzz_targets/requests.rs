//! Any request goes on in every dialect, or a field is named that cannot: `cargo xtask fuzz requests`.

#![no_main]

#[path = "requests/check.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|data: &[u8]| check::check(data));

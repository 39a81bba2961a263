//! Any text is a configuration or a list of faults: `cargo xtask fuzz configuration`.

#![no_main]

#[path = "configuration/check.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|data: &[u8]| check::check(data));

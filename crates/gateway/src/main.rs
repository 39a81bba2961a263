//! The backstop binary.
fn main() {}

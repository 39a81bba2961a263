//! The faultsim binary.
fn main() {}

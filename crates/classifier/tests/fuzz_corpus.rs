//! What the fuzz target found worth keeping, replayed without it.

use std::fs;
use std::path::Path;

#[path = "../../../tests/fuzz/fuzz_targets/classifier/check.rs"]
#[allow(unreachable_pub, reason = "the file belongs to the fuzz target too")]
mod check;

#[test]
fn every_kept_input_holds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fuzz/corpus/classifier");
    let mut seen = 0;
    for entry in fs::read_dir(folder).unwrap() {
        check::check(&fs::read(entry.unwrap().path()).unwrap());
        seen += 1;
    }
    assert!(seen > 20, "{seen} inputs");
    // Too short to be evidence.
    for short in [&b""[..], b"a", b"abc"] {
        check::check(short);
    }
}

//! What the fuzz targets keep, replayed without them.

use std::fs;
use std::path::Path;

#[path = "../../../tests/fuzz/fuzz_targets/configuration/check.rs"]
#[allow(unreachable_pub, reason = "the file belongs to the fuzz target too")]
mod configuration;

fn replay(target: &str, check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fuzz/corpus");
    let mut seen = 0;
    for entry in fs::read_dir(folder.join(target)).expect("a folder of inputs") {
        let path = entry.expect("a readable folder").path();
        check(&fs::read(path).expect("a readable file"));
        seen += 1;
    }
    assert!(seen > 2, "{seen} inputs of {target}");
    for short in [&b""[..], b"a", b"ab"] {
        check(short);
    }
}

#[test]
fn every_kept_input_holds() {
    replay("configuration", configuration::check);
}

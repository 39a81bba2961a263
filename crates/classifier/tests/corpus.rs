//! Every recorded failure under `corpus/` gets the class in its file's name.

use std::fs;
use std::path::Path;

use backstop_classifier::corpus::Row;

#[test]
fn every_row_gets_its_class() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let folders = fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let files = folders
        .filter(|path| path.is_dir())
        .flat_map(|dir| fs::read_dir(dir).unwrap());
    let mut differing = Vec::new();
    for path in files.map(|entry| entry.unwrap().path()) {
        let row = Row::parse(&fs::read_to_string(&path).unwrap()).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        assert!(
            name.starts_with(&row.want.class) && !row.source.is_empty(),
            "{name}"
        );
        differing.extend(
            row.check()
                .err()
                .map(|difference| format!("{}: {difference}", row.id)),
        );
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

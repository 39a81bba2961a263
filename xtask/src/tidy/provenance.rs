//! Every file of a `fixtures`, `corpus` or `recordings` folder has a `README.md` that says where it
//! came from: in its own folder or in one above it, up to the first of those names. A provider's
//! recordings have one of their own, which names each file.

use std::collections::BTreeSet;

use super::house::{Complaint, House};

pub(super) fn check(house: &House) -> Vec<Complaint> {
    let bare: BTreeSet<&str> = house
        .files
        .iter()
        .filter(|file| !has_provenance(house, &file.path))
        .filter_map(|file| Some(file.path.rsplit_once('/')?.0))
        .collect();
    let bare = bare
        .into_iter()
        .map(|folder| Complaint::new(folder, "no README.md says where these files came from"));
    let unnamed = house
        .files
        .iter()
        .filter(|file| !is_named(house, &file.path))
        .map(|file| Complaint::new(&file.path, "its folder's README.md does not name it"));
    bare.chain(unnamed).collect()
}

/// Whether a file that lies directly in a provider's folder of recordings is named by the README
/// there, with its source and licence. Others need not be.
fn is_named(house: &House, path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    let [.., "recordings", _, name] = parts[..] else {
        return true;
    };
    let folder = path.strip_suffix(name).unwrap_or_default();
    let readme = house.file(&format!("{folder}README.md"));
    name == "README.md" || readme.is_some_and(|readme| readme.text.contains(&format!("| {name} |")))
}

/// Whether a file needs no provenance, or has it.
fn has_provenance(house: &House, path: &str) -> bool {
    let Some(top) = data_folder(path) else {
        return true;
    };
    let mut folder = path;
    while let Some((above, _)) = folder.rsplit_once('/') {
        if above.len() < top.len() {
            return false;
        }
        if let Some(readme) = house.file(&format!("{above}/README.md")) {
            return !readme.text.trim().is_empty();
        }
        folder = above;
    }
    false
}

/// The `fixtures`, `corpus` or `recordings` folder that a file lies in, the outermost when they are nested.
pub(super) fn data_folder(path: &str) -> Option<&str> {
    let mut end = 0;
    for part in path.split_inclusive('/') {
        end += part.len();
        if matches!(part, "fixtures/" | "corpus/" | "recordings/") {
            return Some(&path[..end - 1]);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_needs_a_readme_at_or_above_it() {
        for (files, complaints) in [
            (&[("crates/a/src/lib.rs", "")][..], 0),
            (&[("crates/a/fixtures/x/one.json", "{}")], 1),
            (
                &[
                    ("crates/a/fixtures/x/one.json", "{}"),
                    ("crates/a/fixtures/x/two.json", "{}"),
                ],
                1,
            ),
            (
                &[
                    ("crates/a/fixtures/x/one.json", "{}"),
                    ("crates/a/fixtures/x/README.md", "Ours."),
                ],
                0,
            ),
            (
                &[
                    ("crates/a/corpus/deep/er/one", "x"),
                    ("crates/a/corpus/README.md", "Ours."),
                ],
                0,
            ),
            (
                &[
                    ("crates/a/corpus/one", "x"),
                    ("crates/a/corpus/README.md", " \n"),
                ],
                1,
            ),
            (
                &[
                    ("crates/a/corpus/one", "x"),
                    ("crates/a/README.md", "Too far up."),
                ],
                1,
            ),
            (&[("fixtures.md", "a name, no folder")], 0),
            (
                &[
                    ("tests/recordings/README.md", "All."),
                    ("tests/recordings/a/README.md", "| one.json | ours |"),
                    ("tests/recordings/a/one.json", "{}"),
                    ("tests/recordings/a/snapshots/one.snap", "{}"),
                    ("tests/recordings/a/two.json", "{}"),
                ],
                1,
            ),
        ] {
            let house = House::of_files(files);
            assert_eq!(check(&house).len(), complaints, "{files:?}");
        }
    }
}

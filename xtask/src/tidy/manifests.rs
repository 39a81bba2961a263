//! Packages are called what their folder is called, take their lints and versions from the
//! workspace, and state no version of their own.

use toml::{Table, Value};

use super::house::{Complaint, House, Package};

/// Packages whose name does not follow from their folder: the binary carries the product's name,
/// and chores are called by theirs.
const NAMED: [(&str, &str); 2] = [("crates/gateway", "backstop"), ("xtask", "xtask")];

pub(super) fn check(house: &House) -> Vec<Complaint> {
    house
        .packages
        .iter()
        .flat_map(|package| {
            let manifest = format!("{}/Cargo.toml", package.folder);
            let mut complaints: Vec<_> = name(package).into_iter().collect();
            match house.file(&manifest).map(|file| file.text.parse::<Table>()) {
                Some(Ok(table)) => complaints.extend(feed(&table)),
                Some(Err(error)) => complaints.push(error.message().to_owned()),
                None => complaints.push("the manifest is missing".to_owned()),
            }
            complaints
                .into_iter()
                .map(move |what| Complaint::new(&manifest, what))
        })
        .collect()
}

/// A complaint when the package is not called what it should be.
fn name(package: &Package) -> Option<String> {
    let folder = package.folder.rsplit('/').next().unwrap_or_default();
    let expected = NAMED
        .iter()
        .find(|(named, _)| *named == package.folder)
        .map_or_else(
            || format!("backstop-{folder}"),
            |(_, name)| (*name).to_owned(),
        );
    (package.name != expected)
        .then(|| format!("the package is called `{}`, not `{expected}`", package.name))
}

/// Complaints about what the manifest does not leave to the workspace.
fn feed(manifest: &Table) -> Vec<String> {
    let mut complaints = Vec::new();
    if !from_workspace(manifest.get("lints")) {
        complaints.push("lints are not the workspace's (`[lints] workspace = true`)".to_owned());
    }
    let targets = manifest.get("target").and_then(Value::as_table);
    let targets = targets.into_iter().flat_map(Table::values);
    let tables = targets.filter_map(Value::as_table).chain([manifest]);
    for table in tables {
        for kind in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let dependencies = table.get(kind).and_then(Value::as_table);
            for (name, value) in dependencies.into_iter().flatten() {
                if !from_workspace(Some(value)) {
                    complaints.push(format!(
                        "`{name}` under [{kind}] is not `workspace = true`; versions sit in the root"
                    ));
                }
            }
        }
    }
    complaints
}

fn from_workspace(value: Option<&Value>) -> bool {
    let flag = value.and_then(|value| value.get("workspace"));
    flag.and_then(Value::as_bool) == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINTS: &str = "[lints]\nworkspace = true\n";

    fn complaints(folder: &str, name: &str, manifest: &str) -> usize {
        let mut house = House::of_files(&[(&format!("{folder}/Cargo.toml"), manifest)]);
        house.packages.push(Package {
            id: "p".to_owned(),
            name: name.to_owned(),
            folder: folder.to_owned(),
        });
        check(&house).len()
    }

    #[test]
    fn names_follow_folders() {
        for (folder, name, count) in [
            ("crates/units", "backstop-units", 0),
            ("crates/units", "units", 1),
            ("crates/gateway", "backstop", 0),
            ("crates/gateway", "backstop-gateway", 1),
            ("tests", "backstop-tests", 0),
            ("xtask", "xtask", 0),
        ] {
            assert_eq!(complaints(folder, name, LINTS), count, "{folder} {name}");
        }
    }

    #[test]
    fn versions_and_lints_come_from_the_workspace() {
        for (manifest, count) in [
            ("[dependencies]\nserde.workspace = true\n", 0),
            (
                "[dependencies]\nserde = { workspace = true, features = [\"rc\"] }\n",
                0,
            ),
            ("[dependencies]\nserde = \"1\"\n", 1),
            ("[dev-dependencies]\nserde = { version = \"1\" }\n", 1),
            ("[build-dependencies]\nunits = { path = \"../units\" }\n", 1),
            ("[target.'cfg(unix)'.dependencies]\nlibc = \"0.2\"\n", 1),
            ("[dependencies\n", 1),
        ] {
            let whole = format!("{LINTS}{manifest}");
            assert_eq!(complaints("xtask", "xtask", &whole), count, "{manifest}");
        }
        assert_eq!(complaints("xtask", "xtask", "[dependencies]\n"), 1);
    }
}

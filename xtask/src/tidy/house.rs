//! What the checks look at: the text files of the repository, and its packages.

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::shell::{command, output, root};

/// The workspace as the checks see it.
#[derive(Debug, Default)]
pub(super) struct House {
    /// Every text file that is or may be committed.
    pub(super) files: Vec<File>,
    /// Every package of the workspace.
    pub(super) packages: Vec<Package>,
    /// Every package in the resolved graph, ours and others', by its id.
    pub(super) graph: HashMap<String, Node>,
}

/// A text file.
#[derive(Debug)]
pub(super) struct File {
    /// Its path from the root, with `/` between folders.
    pub(super) path: String,
    pub(super) text: String,
}

/// A package of the workspace.
#[derive(Debug)]
pub(super) struct Package {
    pub(super) id: String,
    pub(super) name: String,
    /// Its folder from the root, such as `crates/units`.
    pub(super) folder: String,
}

/// A package in the resolved graph.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) name: String,
    /// The ids of its normal dependencies: neither for tests nor for build scripts.
    pub(super) uses: Vec<String>,
}

/// Something that is not as it should be.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Complaint {
    /// Where: a file, a folder or a package.
    pub(super) place: String,
    pub(super) line: Option<usize>,
    pub(super) what: String,
}

impl Complaint {
    pub(super) fn new(place: impl Into<String>, what: impl Into<String>) -> Self {
        Self {
            place: place.into(),
            line: None,
            what: what.into(),
        }
    }

    pub(super) fn at(self, line: usize) -> Self {
        Self {
            line: Some(line),
            ..self
        }
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.place, self.what),
            None => write!(f, "{}: {}", self.place, self.what),
        }
    }
}

impl House {
    /// Reads the repository this package lies in.
    pub(super) fn visit() -> Result<Self> {
        let metadata = output(&mut command(
            "cargo",
            &["metadata", "--format-version", "1"],
        ))?;
        let metadata = serde_json::from_str(&metadata).context("cannot read cargo's metadata")?;
        let mut house = Self::from_metadata(&metadata, root())
            .context("cargo's metadata is not of the shape we know")?;
        house.files = files()?;
        Ok(house)
    }

    /// The packages and their graph; `None` when the metadata has another shape.
    pub(super) fn from_metadata(metadata: &Value, root: &Path) -> Option<Self> {
        let mut house = Self::default();
        let members: Vec<&str> = texts(metadata.get("workspace_members")?)?;
        for package in metadata.get("packages")?.as_array()? {
            let id = package.get("id")?.as_str()?;
            let name = package.get("name")?.as_str()?;
            if members.contains(&id) {
                let manifest = Path::new(package.get("manifest_path")?.as_str()?);
                let folder = manifest.parent()?.strip_prefix(root).ok()?;
                house.packages.push(Package {
                    id: id.to_owned(),
                    name: name.to_owned(),
                    folder: folder.to_str()?.replace('\\', "/"),
                });
            }
            house.graph.insert(
                id.to_owned(),
                Node {
                    name: name.to_owned(),
                    uses: Vec::new(),
                },
            );
        }
        for node in metadata.get("resolve")?.get("nodes")?.as_array()? {
            let mut uses = Vec::new();
            for dependency in node.get("deps")?.as_array()? {
                let kinds = dependency.get("dep_kinds")?.as_array()?;
                if kinds.iter().any(|kind| kind["kind"].is_null()) {
                    uses.push(dependency.get("pkg")?.as_str()?.to_owned());
                }
            }
            house.graph.get_mut(node.get("id")?.as_str()?)?.uses = uses;
        }
        Some(house)
    }

    /// The file at `path`, when there is one.
    pub(super) fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// A house that holds only these files.
    #[cfg(test)]
    pub(super) fn of_files(files: &[(&str, &str)]) -> Self {
        let files = files.iter().map(|(path, text)| File {
            path: (*path).to_owned(),
            text: (*text).to_owned(),
        });
        Self {
            files: files.collect(),
            ..Self::default()
        }
    }
}

fn texts(value: &Value) -> Option<Vec<&str>> {
    value.as_array()?.iter().map(Value::as_str).collect()
}

/// Every text file that git tracks or would track.
fn files() -> Result<Vec<File>> {
    let listed = output(&mut command(
        "git",
        &[
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ],
    ))?;
    let mut files = Vec::new();
    for path in listed.split_terminator('\0') {
        // A tracked file may be deleted in the working tree, and a recording may be no text.
        if let Ok(text) = fs::read_to_string(root().join(path)) {
            let path = path.to_owned();
            files.push(File { path, text });
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_normal_dependencies_are_uses() {
        let metadata = json!({
            "workspace_members": ["ours"],
            "packages": [
                { "id": "ours", "name": "backstop-units", "manifest_path": "/r/crates/units/Cargo.toml" },
                { "id": "serde", "name": "serde", "manifest_path": "/elsewhere/serde/Cargo.toml" },
                { "id": "tokio", "name": "tokio", "manifest_path": "/elsewhere/tokio/Cargo.toml" },
            ],
            "resolve": { "nodes": [
                { "id": "ours", "deps": [
                    { "pkg": "serde", "dep_kinds": [{ "kind": "dev" }, { "kind": null }] },
                    { "pkg": "tokio", "dep_kinds": [{ "kind": "dev" }, { "kind": "build" }] },
                ] },
                { "id": "serde", "deps": [] },
                { "id": "tokio", "deps": [] },
            ] },
        });
        let house = House::from_metadata(&metadata, Path::new("/r")).unwrap();
        assert_eq!(house.packages.len(), 1);
        assert_eq!(house.packages[0].folder, "crates/units");
        assert_eq!(house.graph["ours"].uses, ["serde"]);
    }

    #[test]
    fn another_shape_is_not_taken_for_an_empty_house() {
        assert!(House::from_metadata(&json!({}), Path::new("/r")).is_none());
    }
}

//! What providers answered once: the files of `tests/recordings`, as steps of a simulator.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use backstop_faultsim::{Item, Step};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use serde::Deserialize;

use crate::soak::dice::Dice;
use crate::surface::Surface;

/// One recorded answer.
#[derive(Debug, Clone)]
pub struct Recording {
    /// `provider/name`.
    pub name: String,
    /// The dialect it is in.
    pub dialect: Surface,
    /// Whether it was streamed.
    pub streamed: bool,
    /// The status.
    pub status: u16,
    /// The headers that mean something.
    pub headers: BTreeMap<String, String>,
    /// The body.
    pub body: Bytes,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    dialect: String,
    stream: bool,
    status: u16,
    headers: BTreeMap<String, String>,
    body: Option<String>,
    body_base64: Option<String>,
    body_in: Option<PathBuf>,
}

impl Recording {
    /// The answer in pieces that the dice cut, in the middle of lines and characters too.
    #[must_use]
    pub fn step(&self, seed: u64) -> Step {
        let mut dice = Dice::of(seed, &[self.body.len() as u64]);
        let (mut rest, mut pieces) = (self.body.clone(), Vec::new());
        while !rest.is_empty() {
            // Few are long, many are tiny.
            let most = [3, 40, 400, 4000][dice.below(4)];
            pieces.push(Item::raw(
                rest.split_to(rest.len().min(1 + dice.below(most))),
            ));
        }
        let mut step = Step::sse(pieces).status(self.status);
        let usual = match (self.dialect, self.streamed) {
            (_, false) => "application/json",
            (Surface::BedrockConverse, true) => "application/vnd.amazon.eventstream",
            (_, true) => "text/event-stream",
        };
        if !self.headers.contains_key("content-type") {
            step = step.header("content-type", usual);
        }
        for (name, value) in &self.headers {
            step = step.header(name, value);
        }
        step
    }
}

/// All recordings, by name.
///
/// # Panics
/// When a file is not as its README says.
#[must_use]
pub fn recordings() -> Vec<Recording> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    for provider in entries(&root.join("recordings")) {
        for path in entries(&provider) {
            if path.extension().is_some_and(|kind| kind == "json") {
                found.push(
                    read(root, &path).unwrap_or_else(|fault| panic!("{}: {fault}", path.display())),
                );
            }
        }
    }
    found
}

/// What lies in a folder, by name; nothing in what is none.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let listed = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = listed.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn read(root: &Path, path: &Path) -> Result<Recording, String> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    let file: File = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let body = match (file.body, file.body_base64, file.body_in) {
        (Some(text), None, None) => Bytes::from(text),
        (None, Some(coded), None) => {
            let bytes = BASE64_STANDARD
                .decode(coded)
                .map_err(|error| error.to_string())?;
            Bytes::from(bytes)
        }
        (None, None, Some(elsewhere)) => {
            let bytes = fs::read(root.join("..").join(elsewhere));
            Bytes::from(bytes.map_err(|error| error.to_string())?)
        }
        _ => return Err("one body, in one form".to_owned()),
    };
    let name = path.with_extension("");
    let mut parts = name.iter().rev().map(|part| part.to_string_lossy());
    let (last, provider) = (
        parts.next().unwrap_or_default(),
        parts.next().unwrap_or_default(),
    );
    Ok(Recording {
        name: format!("{provider}/{last}"),
        dialect: Surface::named(&file.dialect).ok_or("an unknown dialect")?,
        streamed: file.stream,
        status: file.status,
        headers: file.headers,
        body,
    })
}

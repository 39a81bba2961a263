//! Where a fuzz target starts beside its kept inputs: fixtures and examples, in its form of input.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The letter of each dialect, as `tests/fuzz/fuzz_targets/dialects.rs` reads it.
const LETTERS: [(&str, u8); 6] = [
    ("openai-chat", b'c'),
    ("openai-responses", b'r'),
    ("anthropic-messages", b'a'),
    ("gemini", b'g'),
    ("cohere-v2", b'o'),
    ("bedrock-converse", b'b'),
];

/// Writes the seeds of `target` to `folder`, and says whether there are any.
pub(super) fn write(root: &Path, target: &str, folder: &Path) -> Result<bool> {
    let seeds = of(root, target)?;
    if seeds.is_empty() {
        return Ok(false);
    }
    if folder.is_dir() {
        fs::remove_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    for (number, seed) in seeds.iter().enumerate() {
        let path = folder.join(format!("seed-{number}"));
        fs::write(&path, seed).with_context(|| path.display().to_string())?;
    }
    Ok(true)
}

fn of(root: &Path, target: &str) -> Result<Vec<Vec<u8>>> {
    match target {
        "envelopes" | "requests" => of_dialects(root, &["requests"], &[]),
        "answers" => of_dialects(root, &["answers", "errors"], &[]),
        "streams" => of_dialects(root, &["streams"], b"7"),
        // Its first byte says where to cut; a letter does.
        "framers" => of_dialects(root, &["streams"], &[]),
        "configuration" => {
            let mut seeds = Vec::new();
            for file in files(&root.join("config"))? {
                let spelling = match file.extension().and_then(|ending| ending.to_str()) {
                    Some("json") => b'j',
                    Some("toml") => b'u',
                    _ => continue,
                };
                seeds.push(seed(&[spelling], &file)?);
            }
            Ok(seeds)
        }
        _ => Ok(Vec::new()),
    }
}

/// The fixtures of these kinds, each behind its dialect's letter and `more`.
fn of_dialects(root: &Path, kinds: &[&str], more: &[u8]) -> Result<Vec<Vec<u8>>> {
    let mut seeds = Vec::new();
    for (dialect, letter) in LETTERS {
        for kind in kinds {
            let folder = root
                .join("crates/dialects/fixtures")
                .join(dialect)
                .join(kind);
            for file in files(&folder)? {
                seeds.push(seed(&[&[letter], more].concat(), &file)?);
            }
        }
    }
    Ok(seeds)
}

fn seed(opening: &[u8], file: &Path) -> Result<Vec<u8>> {
    let bytes = fs::read(file).with_context(|| file.display().to_string())?;
    Ok([opening, &bytes].concat())
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_file() {
            all.push(path);
        }
    }
    all.sort();
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::root;

    #[test]
    fn every_decoder_starts_from_fixtures() {
        for (target, at_least) in [
            ("envelopes", 25),
            ("requests", 25),
            ("answers", 20),
            ("streams", 30),
            ("framers", 30),
            ("configuration", 4),
            ("classifier", 0),
        ] {
            let seeds = of(root(), target).unwrap();
            assert!(seeds.len() >= at_least, "{target}: {}", seeds.len());
        }
    }
}

//! `cargo xtask schema`: the pages under `docs/` that are made from code.

mod failures;
mod providers;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::shell::root;

/// Writes the generated pages under docs/, or checks that they are fresh
///
/// So far two pages: docs/failures.md, from the classifier's tables, and docs/providers.md, from the
/// registry. The configuration's schema and the list of metrics follow.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Write nothing; exit with status 1 when a page is not what would be written
    #[arg(long)]
    check: bool,
}

/// A page, by its path under the workspace's root, and what makes it.
type Page = (&'static str, fn() -> String);

const PAGES: [Page; 2] = [
    ("docs/failures.md", failures::page),
    ("docs/providers.md", providers::page),
];

/// Writes every page, or compares it.
pub(crate) fn run(args: &Args) -> Result<()> {
    if args.check {
        return check();
    }
    for (path, page) in PAGES {
        let page = page();
        if read(path).is_ok_and(|now| now == page) {
            println!("{path} is fresh");
            continue;
        }
        fs::write(at(path), page).with_context(|| format!("cannot write {path}"))?;
        println!("{path} written");
    }
    Ok(())
}

/// Fails when a page is stale.
pub(crate) fn check() -> Result<()> {
    let stale: Vec<_> = PAGES
        .into_iter()
        .filter(|(path, page)| read(path).ok() != Some(page()))
        .map(|(path, _)| path)
        .collect();
    if !stale.is_empty() {
        bail!("{} is stale; run `cargo xtask schema`", stale.join(", "));
    }
    println!("{} pages are fresh", PAGES.len());
    Ok(())
}

fn at(path: &str) -> PathBuf {
    root().join(path)
}

fn read(path: &str) -> Result<String> {
    fs::read_to_string(at(path)).with_context(|| format!("cannot read {path}"))
}

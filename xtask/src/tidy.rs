//! `cargo xtask tidy`: what neither the compiler nor clippy can see about the house.
//!
//! Each check is a pure function over the files and the package graph, in a file of its own, so
//! that its tests need no disk.

mod house;
mod manifests;
mod map;
mod modules;
mod provenance;
mod purity;
mod reasons;
mod secrets;
mod sizes;
mod source;

use anyhow::{Result, bail};

use house::{Complaint, House};

/// The map against the workspace, pure cores, module docs, provenance of fixtures, no secrets
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

type Check = fn(&House) -> Vec<Complaint>;

const CHECKS: [(&str, Check); 8] = [
    ("the map shows the workspace", map::check),
    ("cores are free of tokio and hyper", purity::check),
    (
        "packages are named and fed by the workspace",
        manifests::check,
    ),
    ("every rule and exception has a reason", reasons::check),
    ("every module opens with its purpose", modules::check),
    ("fixtures and corpora have provenance", provenance::check),
    ("no secrets", secrets::check),
    ("no room is too large", sizes::check),
];

/// Runs every check on the workspace.
pub(crate) fn run(_: &Args) -> Result<()> {
    check()
}

/// Runs every check on the workspace; prints a line a check and a line a complaint.
pub(crate) fn check() -> Result<()> {
    let house = House::visit()?;
    let mut total = 0;
    for (promise, check) in CHECKS {
        let complaints = check(&house);
        let verdict = if complaints.is_empty() {
            "ok"
        } else {
            "NOT SO"
        };
        println!("  {verdict:<6} {promise}");
        for complaint in &complaints {
            println!("         {complaint}");
        }
        total += complaints.len();
    }
    if total > 0 {
        bail!("{total} complaints");
    }
    Ok(())
}

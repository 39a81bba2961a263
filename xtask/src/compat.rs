//! `cargo xtask compat`: every caller's surface before every provider's dialect.

use std::fs;

use anyhow::{Context, Result, ensure};
use backstop_tests::compat::{Outcome, markdown, page, play};

/// Play every surface before every dialect, feature by feature, and write docs/compatibility.md
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Write nothing; fail when the page is not what was found
    #[arg(long)]
    check: bool,
}

/// Plays the table, prints it, and keeps it. Not a success when a cell fails.
pub(crate) fn run(args: &Args) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("no runtime")?;
    let cells = runtime.block_on(play());
    let found = markdown(&cells);
    println!("{found}");
    let (mut passed, mut failed) = (0, 0);
    for cell in &cells {
        match &cell.outcome {
            Outcome::Pass => passed += 1,
            Outcome::Refused(_) => {}
            Outcome::Fail(fault) => {
                failed += 1;
                let (surface, upstream) = (cell.surface.name(), cell.upstream.name());
                println!(
                    "FAIL {surface} before {upstream}, {:?}: {fault}",
                    cell.feature
                );
            }
        }
    }
    let refused = cells.len() - passed - failed;
    println!(
        "{} cells: {passed} pass, {refused} refused by contract, {failed} fail",
        cells.len()
    );
    if args.check {
        let kept = fs::read_to_string(page()).unwrap_or_default();
        ensure!(
            kept == found,
            "docs/compatibility.md is stale: run `cargo xtask compat`"
        );
    } else {
        fs::write(page(), found).context("cannot write docs/compatibility.md")?;
    }
    ensure!(failed == 0, "{failed} cells fail");
    Ok(())
}

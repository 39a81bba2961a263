//! `cargo xtask sdk`: the official client SDKs, which nobody here wrote, against the gateway.
//!
//! They live in a virtual environment at `target/sdk-venv`, where the tests look for
//! `bin/python`. Nothing is installed outside of it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::shell::{command, root, run as sh, succeeds};

/// Tests with the official OpenAI and Anthropic SDKs, installed into target/sdk-venv when missing
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Install the SDKs and stop there
    #[arg(long)]
    setup_only: bool,
}

/// The SDKs at the versions the tests were written against (PyPI, newest at the time of pinning).
/// What they depend on is left to pip, since the right builds differ by Python version.
const PINS: [&str; 2] = ["openai==3.57.0", "anthropic==2.14.0"];

/// Said when the SDKs cannot be there.
pub(crate) const NO_PYTHON: &str =
    "no python3 with venv on this machine, so the SDK tests are skipped";

/// Whether the SDKs can be used.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Sdks {
    Ready,
    /// There is no Python here to run them.
    NoPython,
}

/// Sets the SDKs up and runs the tests that use them.
pub(crate) fn run(args: &Args) -> Result<()> {
    if set_up()? == Sdks::NoPython {
        bail!(NO_PYTHON);
    }
    if args.setup_only {
        return Ok(());
    }
    sh(&mut command(
        "cargo",
        &["test", "--package", "backstop-tests", "--", "sdk"],
    ))
}

/// Makes sure that the virtual environment holds the pinned SDKs. A second call is quick, and a
/// machine without Python is a fact to report, not an error.
pub(crate) fn set_up() -> Result<Sdks> {
    let home = home();
    if is_set_up(&home) {
        println!("{} in {}", PINS.join(", "), home.display());
        return Ok(Sdks::Ready);
    }
    if !succeeds(&mut command("python3", &["-c", "import venv, ensurepip"])) {
        println!("{NO_PYTHON}");
        return Ok(Sdks::NoPython);
    }
    println!("installing {} into {}", PINS.join(", "), home.display());
    let mut venv = command("python3", &["-m", "venv", "--clear"]);
    sh(venv.arg(&home))?;
    let python = home.join("bin/python");
    let python = python
        .to_str()
        .context("the workspace's path is not text")?;
    let mut pip = command(python, &["-m", "pip", "install", "--quiet"]);
    sh(pip.arg("--disable-pip-version-check").args(PINS))?;
    // Written last: an installation that broke off is not taken for a whole one.
    fs::write(stamp(&home), wanted()).context("cannot note which SDKs are installed")?;
    Ok(Sdks::Ready)
}

fn home() -> PathBuf {
    root().join("target").join("sdk-venv")
}

fn stamp(home: &Path) -> PathBuf {
    home.join("pins.txt")
}

fn wanted() -> String {
    PINS.join("\n") + "\n"
}

fn is_set_up(home: &Path) -> bool {
    let noted = fs::read_to_string(stamp(home)).unwrap_or_default();
    // A venv breaks when the Python it was made from is removed, so the stamp alone is no proof.
    noted == wanted()
        && home.join("bin/python").to_str().is_some_and(|python| {
            succeeds(&mut command(python, &["-c", "import openai, anthropic"]))
        })
}

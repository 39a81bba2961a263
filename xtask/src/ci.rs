//! `cargo xtask ci`: the gate before a merge.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::shell::{command, run as sh};
use crate::{fuzz, schema, sdk, tidy};

/// Everything a merge needs, in the order that fails fastest
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// A step of the gate: its name, and how it is done.
struct Step {
    name: &'static str,
    act: fn() -> Result<Done>,
}

/// How a step went when it did not fail.
enum Done {
    Passed,
    /// Not done on this machine, with the reason.
    Skipped(&'static str),
}

/// Seconds first, minutes last. Doc tests are part of the tests.
const STEPS: [Step; 8] = [
    Step {
        name: "format",
        act: || cargo(&["fmt", "--all", "--check"]),
    },
    Step {
        name: "tidy",
        act: || tidy::check().map(|()| Done::Passed),
    },
    Step {
        name: "generated docs",
        act: || schema::check().map(|()| Done::Passed),
    },
    Step {
        name: "clippy",
        act: || {
            cargo(&[
                "clippy",
                "--locked",
                "--workspace",
                "--all-targets",
                "--",
                "-D",
                "warnings",
            ])
        },
    },
    Step {
        name: "client SDKs",
        act: || {
            Ok(match sdk::set_up()? {
                sdk::Sdks::Ready => Done::Passed,
                sdk::Sdks::NoPython => Done::Skipped(sdk::NO_PYTHON),
            })
        },
    },
    // The README's own test command, so that what it promises is what is checked.
    Step {
        name: "tests",
        act: || cargo(&["test", "--workspace"]),
    },
    Step {
        name: "docs",
        act: || {
            let mut doc = command("cargo", &["doc", "--workspace", "--no-deps"]);
            sh(doc.env("RUSTDOCFLAGS", "-D warnings")).map(|()| Done::Passed)
        },
    },
    // Long enough to meet what the kept inputs lead to; `cargo xtask fuzz` runs for a minute.
    Step {
        name: "fuzz",
        act: || {
            Ok(if fuzz::check(5)? {
                Done::Passed
            } else {
                Done::Skipped(fuzz::NO_FUZZER)
            })
        },
    },
];

/// Runs the steps up to the first that fails, then prints what each took.
pub(crate) fn run(_: &Args) -> Result<()> {
    let mut summary = Vec::new();
    let mut failure = None;
    for (number, step) in (1..).zip(&STEPS) {
        println!("==> {number}/{} {}", STEPS.len(), step.name);
        let start = Instant::now();
        let result = (step.act)();
        let verdict = match &result {
            Ok(Done::Passed) => "ok".to_owned(),
            Ok(Done::Skipped(why)) => format!("skipped: {why}"),
            Err(_) => "FAILED".to_owned(),
        };
        summary.push(row(step.name, start.elapsed(), &verdict));
        if let Err(error) = result {
            failure = Some(format!("{}: {error:#}", step.name));
            break;
        }
    }
    println!("==> summary");
    for row in &summary {
        println!("{row}");
    }
    match failure {
        Some(failure) => bail!(failure),
        None => Ok(()),
    }
}

fn row(name: &str, took: Duration, verdict: &str) -> String {
    format!("  {name:<14} {:>7.1} s  {verdict}", took.as_secs_f64())
}

fn cargo(args: &[&str]) -> Result<Done> {
    sh(&mut command("cargo", args)).map(|()| Done::Passed)
}

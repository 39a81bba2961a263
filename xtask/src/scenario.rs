//! `cargo xtask scenario`: faults from the field, played against the real server.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use backstop_tests::scenario::{Outcome, Scenario, own, play, read};

/// Play scenarios: one with its timeline, or all of a file with a line each
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The id of one of the project's scenarios, or a file (.json, .jsonl) or folder of them. All of
    /// the project's own when left out
    what: Option<String>,

    /// With a file: only the scenario with this id, with its timeline
    id: Option<String>,
}

/// Plays what is asked for.
pub(crate) fn run(args: &Args) -> Result<()> {
    let (scenarios, id) = match (&args.what, &args.id) {
        (None, _) => (read(&own())?, None),
        (Some(path), id) if Path::new(path).exists() => (read(Path::new(path))?, id.as_ref()),
        (Some(id), None) => (read(&own())?, Some(id)),
        (Some(path), Some(_)) => bail!("there is no file {path}"),
    };
    if let Some(id) = id {
        let mut known = scenarios.iter();
        let found = known.find(|scenario| scenario.id.eq_ignore_ascii_case(id));
        return tell(found.with_context(|| format!("no scenario is called {id}"))?);
    }
    play_all(&scenarios)
}

/// One scenario, with all that was seen and looked at.
fn tell(scenario: &Scenario) -> Result<()> {
    println!("{}  {}", scenario.id, scenario.title);
    println!("     {}", scenario.why);
    let outcome = play(scenario);
    match &outcome {
        Outcome::Waits(needs) => println!("waits: needs {}", needs.join(", ")),
        Outcome::Played { findings, timeline } => {
            println!();
            for line in timeline {
                println!("  {line}");
            }
            println!();
            for finding in findings {
                match &finding.fault {
                    None => println!("  ok      {}", finding.what),
                    Some(fault) => println!("  FAILED  {}: {fault}", finding.what),
                }
            }
        }
    }
    if let Some(open) = &scenario.open {
        println!("\n  reading: {open}");
    }
    summary(&[outcome])
}

fn play_all(scenarios: &[Scenario]) -> Result<()> {
    let mut outcomes = Vec::new();
    for scenario in scenarios {
        let outcome = play(scenario);
        let word = match &outcome {
            Outcome::Waits(needs) => format!("waits: needs {}", needs.join(", ")),
            _ if outcome.passed() => "passed".to_owned(),
            _ => "FAILED".to_owned(),
        };
        println!("{:<5} {word:<8} {}", scenario.id, scenario.title);
        for (what, fault) in outcome.faults() {
            println!("               {what}: {fault}");
        }
        outcomes.push(outcome);
    }
    summary(&outcomes)
}

/// `N of M passed`; not a success when one that was played failed.
fn summary(outcomes: &[Outcome]) -> Result<()> {
    let passed = outcomes.iter().filter(|outcome| outcome.passed()).count();
    let waits = outcomes
        .iter()
        .filter(|outcome| matches!(outcome, Outcome::Waits(_)));
    let waits = waits.count();
    let failed = outcomes.len() - passed - waits;
    let mut line = format!("{passed} of {} passed", outcomes.len());
    if failed > 0 {
        line.push_str(&format!(", {failed} failed"));
    }
    if waits > 0 {
        line.push_str(&format!(", {waits} wait for what is not built yet"));
    }
    println!("\n{line}");
    ensure!(
        failed == 0,
        "{failed} of {} scenarios failed",
        outcomes.len()
    );
    Ok(())
}

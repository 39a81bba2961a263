//! Chores of the workspace, in plain Rust: `cargo xtask <command>`.
//!
//! One command is one file with a `run`, and the doc line of its arguments is its help.
//! A chore that was typed by hand three times belongs here.

#![allow(
    clippy::disallowed_methods,
    reason = "chores run on a developer's machine: they time their steps by the real clock"
)]

mod ci;
mod compat;
mod corpus;
mod demo;
mod drill;
mod fuzz;
mod running;
mod scenario;
mod schema;
mod sdk;
mod shell;
mod soak;
mod tidy;
mod verdict;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Chores of the workspace.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Ci(ci::Args),
    Compat(compat::Args),
    Corpus(corpus::Args),
    Demo(demo::Args),
    Drill(drill::Args),
    Fuzz(fuzz::Args),
    Scenario(scenario::Args),
    Schema(schema::Args),
    Sdk(sdk::Args),
    Soak(soak::Args),
    Tidy(tidy::Args),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Ci(args) => ci::run(&args),
        Command::Compat(args) => compat::run(&args),
        Command::Corpus(args) => corpus::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Drill(args) => drill::run(&args),
        Command::Fuzz(args) => fuzz::run(&args),
        Command::Scenario(args) => scenario::run(&args),
        Command::Schema(args) => schema::run(&args),
        Command::Sdk(args) => sdk::run(&args),
        Command::Soak(args) => soak::run(&args),
        Command::Tidy(args) => tidy::run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

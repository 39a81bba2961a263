//! The binary `backstop`: reads arguments, checks the configuration, starts the parts, drains.
//!
//! It decides nothing about a request.

mod check;
mod classify;
mod compose;
mod environment;
mod explain;
mod keys;
mod ledger;
mod reload;
mod serve;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// An LLM gateway that recovers from failures only when the caller's contract can be kept, inside a
/// bounded deadline, with evidence for every attempt.
#[derive(Debug, Parser)]
#[command(name = "backstop", version, arg_required_else_help = true, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve callers until SIGTERM or Ctrl-C, then let answers in flight end
    Serve(serve::Args),
    /// Check a configuration and say what it means; exit status 2 when it is refused
    Check(check::Args),
    /// Say what a provider's failure is and what the gateway would do next
    Classify(classify::Args),
    /// Show whom a route would ask, in which order, and why not others
    Explain(explain::Args),
    /// Make keys for callers
    Keys(keys::Args),
    /// Show one request as a timeline: whom it asked, what came back, how it ended
    Trail(ledger::trail::Args),
    /// List requests, the latest first
    Journeys(ledger::journeys::Args),
}

/// Which configuration to read.
#[derive(Debug, clap::Args)]
struct Source {
    /// The configuration, TOML or JSON. Without it: backstop.toml, then config.json in this folder,
    /// then the well-known variables (OPENAI_API_KEY, ANTHROPIC_API_KEY, ...)
    #[arg(long, short, value_name = "FILE", env = "BACKSTOP_CONFIG")]
    config: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  OPENAI_API_KEY=sk-... backstop serve          serve on http://127.0.0.1:8080, no file needed
  backstop check --config backstop.toml         is it right, and what does it mean?
  curl -si ... | backstop classify              what is this failure, and what would follow?
  backstop explain --route fast                 whom would it ask, and why not the others?
  backstop keys new team-search                 a caller's key, and its lines for the file
  backstop journeys --since 1h --class quota    which requests met a spent quota?
  backstop trail REQUEST-ID                     what happened to this one?
  backstop serve --config backstop.toml         a changed file, or SIGHUP, is taken over while running

Then point a client at it:
  curl http://127.0.0.1:8080/v1/chat/completions -H 'content-type: application/json' \\
    -d '{\"model\":\"openai/gpt-4o-mini\",\"messages\":[{\"role\":\"user\",\"content\":\"Hello\"}]}'

Exit status: 0 done, 1 it could not run, 2 the configuration, the input or the arguments are wrong.";

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Serve(args) => serve::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Classify(args) => classify::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Keys(args) => keys::run(&args),
        Command::Trail(args) => ledger::trail::run(&args),
        Command::Journeys(args) => ledger::journeys::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read our output has read enough.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let refused = error.is::<backstop_config::Error>()
                || error.is::<backstop_server::TlsError>()
                || error.is::<classify::Unusable>()
                || error.is::<explain::Error>()
                || error.is::<ledger::Error>();
            eprintln!("backstop: {error:#}");
            ExitCode::from(if refused { 2 } else { 1 })
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let kind = error
        .downcast_ref::<std::io::Error>()
        .map(std::io::Error::kind);
    kind == Some(std::io::ErrorKind::BrokenPipe)
}

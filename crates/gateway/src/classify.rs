//! `backstop classify`: what a provider's failure is, and what the gateway would do next.

mod explain;
mod input;

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::Context;
use backstop_classifier::{Class, Evidence, Family, Signal, Verdict, classify};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use input::Input;
pub(crate) use input::Unusable;

/// More than this of a file is not read; the classifier itself reads far less.
const LARGEST: u64 = 16 * 1024 * 1024;

/// The arguments of `backstop classify`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The response: what `curl -i` printed, a bare body (with --status), or one JSON line with
    /// `status`, `headers` and `body`. Without it, or as `-`: standard input
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Whose codes and phrases are read first
    #[arg(long, short, value_name = "FAMILY", value_parser = families())]
    provider: Option<Family>,
    /// The HTTP status of a bare body
    #[arg(long, short, value_name = "STATUS", value_parser = clap::value_parser!(u16).range(200..=599))]
    status: Option<u16>,
    /// The body is an error event inside a stream that began with a 200
    #[arg(long)]
    in_stream: bool,
    /// One JSON object, for programs
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  curl -si https://api.openai.com/v1/chat/completions ... | backstop classify --provider openai
  echo '{\"error\":{\"code\":\"insufficient_quota\"}}' | backstop classify --status 429
  pbpaste | backstop classify --in-stream --provider anthropic      an `event: error` of a stream

The answer names the class of the failure, the signal that decided it (a code, a phrase of our
tables, a status), and for each further step whether the gateway may take it. It never repeats the
provider's text, so it can be pasted into a ticket. docs/failures.md lists what is known of whom.

Exit status: 0 explained, 1 it could not be read, 2 the input is not a response.";

/// The families by name; `general` is the default.
fn families() -> impl TypedValueParser<Value = Family> {
    let names = Family::ALL.iter().map(|family| match family {
        Family::General => PossibleValue::new("general").alias(family.name()),
        family => PossibleValue::new(family.name()),
    });
    PossibleValuesParser::new(names)
        .map(|name| Family::from_name(&name).expect("clap lets only names of families through"))
}

/// Reads a response and explains it.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let bytes = bytes(args.file.as_deref())?;
    let input = input::read(&bytes, args.status, args.in_stream)?;
    let verdict = verdict(&input, args);
    let mut out = io::stdout().lock();
    if is_good(&input, &verdict) {
        return explain::no_failure(args.json, &mut out).context("cannot write the answer");
    }
    let written = if args.json {
        explain::as_json(&verdict, &mut out)
    } else {
        explain::as_text(&verdict, &mut out)
    };
    written
        .and_then(|()| out.flush())
        .context("cannot write the answer")
}

fn bytes(file: Option<&Path>) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    match file {
        Some(path) if path.as_os_str() != "-" => {
            let file =
                File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
            file.take(LARGEST)
                .read_to_end(&mut bytes)
                .with_context(|| format!("cannot read {}", path.display()))?;
        }
        _ => {
            if io::stdin().is_terminal() {
                eprintln!("backstop: paste the response, then end it with Ctrl-D");
            }
            io::stdin()
                .take(LARGEST)
                .read_to_end(&mut bytes)
                .context("cannot read standard input")?;
        }
    }
    Ok(bytes)
}

fn verdict(input: &Input<'_>, args: &Args) -> Verdict {
    #[allow(
        clippy::disallowed_methods,
        reason = "a Retry-After date is read against now; a command is its own driver"
    )]
    let now = SystemTime::now();
    match input {
        Input::Row(row) => {
            let mut row = row.clone();
            if let Some(family) = args.provider {
                family.name().clone_into(&mut row.provider);
            }
            row.in_stream |= args.in_stream;
            row.verdict_at(now)
        }
        Input::Response(response) => classify(&Evidence {
            family: args.provider.unwrap_or_default(),
            status: Some(response.status),
            headers: Some(&response.headers),
            body: response.body,
            in_stream: args.in_stream,
            transport: None,
            now,
        }),
    }
}

/// Whether this is a plain success: nothing in it failed, so there is nothing to explain.
fn is_good(input: &Input<'_>, verdict: &Verdict) -> bool {
    let whole = match input {
        Input::Row(_) => false,
        Input::Response(response) => {
            (200..300).contains(&response.status)
                && serde_json::from_slice::<serde::de::IgnoredAny>(response.body).is_ok()
        }
    };
    whole && verdict.class == Class::Malformed && verdict.signal == Signal::Shape
}

//! `backstop explain`: whom a route would ask for a request, in which order, and why not others.

mod findings;
mod live;
mod page;

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Context;
use backstop_config::{Origin, Resolved, Snapshot};
use backstop_dialects::{BadRequest, Dialect, Envelope, Operation, read_envelope_for};

use crate::Source;
use crate::environment::read;
use findings::{Findings, Request};
use live::Live;

/// The arguments of `backstop explain`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    source: Source,

    /// The name a caller would put in `model`: a route, or provider/model
    #[arg(long, value_name = "NAME")]
    route: String,

    /// A request body to plan for; without it, for a request that needs nothing in particular
    #[arg(long, value_name = "FILE")]
    request: Option<PathBuf>,

    /// The dialect of the request
    #[arg(long, value_name = "DIALECT", default_value = "openai-chat",
          value_parser = ["openai-chat", "openai-responses", "anthropic-messages", "gemini"])]
    dialect: String,

    /// What the request asks for
    #[arg(long, value_name = "OPERATION", default_value = "generate",
          value_parser = ["generate", "embed", "count_tokens"])]
    operation: String,

    /// A running gateway whose breakers and retry budgets are shown, such as http://127.0.0.1:8080
    #[arg(long, value_name = "URL")]
    metrics: Option<String>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What is wrong with the arguments.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Error {
    /// Nothing is called so.
    UnknownRoute {
        name: String,
        nearest: Option<String>,
    },
    /// The body in the file is no request.
    BadRequest { file: PathBuf, bad: BadRequest },
    /// The address leads to no page of metrics.
    BadAddress { url: String },
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::UnknownRoute { name, nearest } => {
                write!(
                    f,
                    "{name} is neither a route nor provider/model of a configured provider"
                )?;
                match nearest {
                    Some(nearest) => write!(f, "; did you mean {nearest}?"),
                    None => Ok(()),
                }
            }
            Self::BadRequest { file, bad } => {
                write!(f, "{} holds no request: {bad}", file.display())
            }
            Self::BadAddress { url } => {
                write!(f, "{url} is no address; expected http://HOST:PORT")
            }
        }
    }
}

impl std::error::Error for Error {}

/// Plans, and prints the plan.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let file = args.source.file();
    let snapshot = read(file.as_deref(), 1)?;
    let resolved = resolve(&snapshot, &args.route)?;
    let dialect = match args.dialect.as_str() {
        "anthropic-messages" => Dialect::AnthropicMessages,
        "openai-responses" => Dialect::OpenAiResponses,
        "gemini" => Dialect::Gemini,
        _ => Dialect::OpenAiChat,
    };
    let operation = match args.operation.as_str() {
        "embed" => Operation::Embed,
        "count_tokens" => Operation::CountTokens,
        _ => Operation::Generate,
    };
    let envelope = match &args.request {
        None => None,
        Some(file) => Some(envelope(operation, dialect, file)?),
    };
    let (live, failed) = match args.metrics.as_deref().map(live::ask).transpose()? {
        None => (Live::NotAsked, None),
        Some((url, Ok(page))) => (Live::Answered(url, page), None),
        Some((url, Err(error))) => (Live::Silent(url.clone()), Some((url, error))),
    };
    let from = match &snapshot.origin {
        Origin::File(file) => file.display().to_string(),
        Origin::Environment => "the environment".to_owned(),
    };
    let request = Request {
        dialect,
        operation,
        envelope: envelope.as_ref(),
    };
    let findings = Findings::new(&snapshot, &resolved, &from, &request, &live);
    let mut out = io::stdout().lock();
    if args.json {
        writeln!(out, "{:#}", findings.to_json())?;
    } else {
        write!(out, "{findings}")?;
    }
    match failed {
        None => Ok(()),
        Some((url, error)) => {
            Err(anyhow::Error::new(error).context(format!("{url} gave no metrics")))
        }
    }
}

fn resolve(snapshot: &Snapshot, name: &str) -> Result<Resolved, Error> {
    snapshot.resolve(name).ok_or_else(|| Error::UnknownRoute {
        name: name.to_owned(),
        nearest: snapshot.nearest(name),
    })
}

fn envelope(operation: Operation, dialect: Dialect, file: &PathBuf) -> anyhow::Result<Envelope> {
    let body = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let envelope =
        read_envelope_for(operation, dialect, &body).map_err(|bad| Error::BadRequest {
            file: file.clone(),
            bad,
        })?;
    Ok(envelope)
}

#[cfg(test)]
mod tests;

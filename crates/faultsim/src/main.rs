//! The simulator as a program: `backstop-faultsim --script FILE.json`.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use backstop_faultsim::{Deviation, Observer, Script, Sim};
use clap::Parser;

/// A provider that fails on request.
///
/// Speaks the OpenAI (`/v1/chat/completions`, `/v1/models`) and Anthropic (`/v1/messages`)
/// dialects over HTTP/1.1, streaming or not. Without a script it answers everything plausibly, and
/// calls the first tool offered when the last message says "call a tool". The first line it
/// prints ends with its base URL.
#[derive(Debug, Parser)]
#[command(name = "backstop-faultsim", version, after_long_help = teach())]
struct Args {
    /// Address to listen on; port 0 takes a free one.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:0")]
    listen: String,
    /// What to answer, as JSON; see below. Without it: a healthy provider.
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// Writes a line of JSON for each attempt, its end, and each close by a peer. No secrets, no
    /// bodies.
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Where to write the authority's certificate (PEM), for scripts whose door wants TLS
    #[arg(long, value_name = "FILE")]
    authority: Option<PathBuf>,
}

const EXAMPLE: &str = include_str!("../examples/script.json");

/// The long help. Its marks are written `{{ n }}`: clap reads `{n}` as a line break.
fn teach() -> String {
    format!(
        "\
A script, step by step:

{EXAMPLE}
An attempt takes the first step that is not used up and whose conditions it meets. One that finds
none is answered 599 (or plausibly, with \"otherwise\": \"healthy\").

Conditions     key (a label of \"keys\", or the secret itself), on (\"fresh\" or \"reused\" connection),
               when {{model, path, stream, attempt, key_attempt, header, body_contains, after_ms,
               before_ms}}; counts are n or {{\"from\": n, \"to\": m}}; repeat (n or \"always\")
Answer         status (null: no response), headers, delay_ms, and one of
               text (dialect of the request; a list is always streamed; with fault: then an error
               event), fault, tool_call {{name, arguments}}, body (JSON), body_text, body_gzip,
               body_br, sse [{{delay_ms, repeat, and data with event, comment, raw or raw_b64}}],
               frames [{{delay_ms, headers, payload, damage}}]; coding (gzip, br or zstd) of any of them
Ending         then: close (whole), cut (closed unfinished), reset (TCP RST), hang (silent until the
               peer closes), trickle (filler until the peer closes), goaway (HTTP/2: not
               processed, or cut when a response has begun), refuse (HTTP/2: not processed); end_after_bytes strikes it
               inside the body; trickle {{bytes, every_ms, head}} writes slowly; keep_alive,
               close_idle_after_ms
Faults         invalid_key, insufficient_quota, permission_denied, region_blocked, model_not_found,
               rate_limited, invalid_request, context_too_long, content_policy, server_error,
               unavailable, overloaded
Door           door of the whole script: plain, tls, http2 (under TLS), unknown_authority,
               other_name, cut_handshake, no_tls
In strings     {{{{ n }}}} count of a repeat, {{{{ pad:4000 }}}} filler, {{{{ model }}}} and {{{{ key }}}} of the request

Try it:        backstop-faultsim --listen 127.0.0.1:9100 &
               curl http://127.0.0.1:9100/v1/chat/completions \\
                 -d '{{\"model\": \"sim-large\", \"messages\": [{{\"role\": \"user\", \"content\": \"hi\"}}]}}'
"
    )
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(Args::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("backstop-faultsim: {error:#}");
            ExitCode::from(2)
        }
    }
}

async fn run(args: Args) -> anyhow::Result<()> {
    let script = match &args.script {
        Some(path) => read(path)?,
        None => Script::healthy(),
    };
    let sim = match &args.log {
        Some(path) => Sim::observed(script, log_to(path)?),
        None => Sim::new(script),
    };
    sim.listen(&args.listen).await?;
    let mut out = std::io::stdout();
    let url = sim.url();
    writeln!(out, "listening on {url}").and_then(|()| out.flush())?;
    if let Some(path) = &args.authority {
        std::fs::write(path, sim.authority()).with_context(|| path.display().to_string())?;
    }
    stopped().await?;
    eprintln!("{}", summary(&sim));
    Ok(())
}

fn read(path: &Path) -> anyhow::Result<Script> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    Script::from_json(&text).with_context(|| path.display().to_string())
}

fn log_to(path: &Path) -> anyhow::Result<Observer> {
    let file = File::create(path).with_context(|| path.display().to_string())?;
    let file = Mutex::new(file);
    Ok(Arc::new(move |start, event| {
        let line = format!("{}\n", event.to_json(start));
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = file.write_all(line.as_bytes()) {
            eprintln!("backstop-faultsim: the log cannot be written: {error}");
        }
    }))
}

/// Waits for an interrupt or a request to terminate.
async fn stopped() -> anyhow::Result<()> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminate = signal(SignalKind::terminate())?;
        tokio::select! {
            interrupted = tokio::signal::ctrl_c() => interrupted?,
            _ = terminate.recv() => {}
        }
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await?;
    Ok(())
}

fn summary(sim: &Sim) -> String {
    let (mut unexpected, mut left, mut broken) = (0, 0, 0);
    for deviation in sim.deviations() {
        match deviation {
            Deviation::Unexpected(_) => unexpected += 1,
            Deviation::LeftOver { times, .. } => left += times,
            Deviation::Broken(_) => broken += 1,
        }
    }
    format!(
        "{} attempts on {} connections; {unexpected} unexpected, {left} steps left over, \
         {broken} broken requests",
        sim.attempt_count(),
        sim.connection_count()
    )
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn the_script_in_the_help_is_a_script() {
        let script = Script::from_json(EXAMPLE).unwrap();
        assert_eq!(script.steps().len(), 7);
    }
}

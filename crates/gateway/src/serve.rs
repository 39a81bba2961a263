//! `backstop serve`: build, announce the address, wait for a signal, drain with a limit.

use std::io::{self, IsTerminal, Write};
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context;
use backstop_config::Origin;
use backstop_server::{Tls, serve_over};
use backstop_telemetry::{Format, Options, init_logs};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::compose::{compose, connection_limits};
use crate::environment::read;
use crate::{Source, reload};

/// The arguments of `backstop serve`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    source: Source,

    /// Listen here instead of where the configuration says; loopback only while there are no callers
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,

    /// How logs are written: pretty or json
    #[arg(long, value_name = "FORMAT", default_value = "pretty", value_parser = ["pretty", "json"])]
    log_format: String,

    /// What is logged, as in tracing's filters: `info`, `backstop=debug`, `backstop::routing=warn`
    #[arg(long, value_name = "FILTER", default_value = "info")]
    log: String,
}

/// Serves until a signal comes.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let file = args.source.file();
    let snapshot = read(file.as_deref(), 1)?;
    init_logs(&Options {
        format: if args.log_format == "json" {
            Format::Json
        } else {
            Format::Pretty
        },
        filter: args.log.clone(),
        ansi: io::stderr().is_terminal(),
    })?;
    let listen = args.listen.unwrap_or(snapshot.server.listen);
    let open = !snapshot.callers.is_empty();
    anyhow::ensure!(
        open || listen.ip().is_loopback(),
        "{listen} is not a loopback address. Without callers in the configuration anyone who reaches \
         the gateway spends your provider keys, so it listens on loopback only; `backstop keys new` \
         makes a caller's key"
    );
    let limits = connection_limits(&snapshot);
    let (providers, routes) = (snapshot.providers.len(), snapshot.routes.len());
    let callers = snapshot.callers.callers().len();
    let origin = match &snapshot.origin {
        Origin::File(file) => file.display().to_string(),
        Origin::Environment => "the environment".to_owned(),
    };
    let tls = match &snapshot.tls {
        None => None,
        Some(files) => Some(Tls::new(&files.certificate, files.private_key.expose())?),
    };
    let kept_at = snapshot.ledger.as_ref().map(|ledger| ledger.path.clone());
    let (gateway, reloader) = compose(snapshot)?;
    let ledger = Arc::clone(&gateway);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let served = runtime.block_on(async {
        let listener = TcpListener::bind(listen)
            .await
            .with_context(|| format!("cannot listen on {listen}"))?;
        let address = listener
            .local_addr()
            .context("the listener has no address")?;
        // Before anyone knows that we are there: whoever reads the line may stop us at once.
        let stop = stop_signal()?;
        // The first line on standard output, for people and for programs that start us.
        let scheme = if tls.is_some() { "https" } else { "http" };
        writeln!(io::stdout(), "listening on {scheme}://{address}")?;
        tracing::info!(%address, providers, routes, callers, from = origin, "serving");
        if !open {
            tracing::warn!(
                "no callers are configured: anyone on this machine may ask, nobody else"
            );
        }
        match &kept_at {
            Some(path) => tracing::info!(path = %path.display(), "requests are kept in the ledger"),
            None => tracing::info!("requests are kept in memory; [ledger] would keep them on disk"),
        }
        tokio::select! {
            served = serve_over(listener, tls.clone(), gateway, limits, stop) => {
                served.context("the listener failed")
            }
            // It only ends when it cannot start.
            followed = reload::follow(reloader, file, tls.clone()) => followed,
        }
    });
    // Requests that were broken off have written down their end by now.
    drop(runtime);
    ledger.ledger().close();
    served
}

/// Ready at SIGTERM or Ctrl-C. A second one ends the process at once.
fn stop_signal() -> anyhow::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("stopping: answers in flight may end; a second signal ends them now");
        std::thread::spawn(move || {
            let Ok(runtime) = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
            else {
                return;
            };
            runtime.block_on(async move {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                }
            });
            std::process::exit(1);
        });
    })
}

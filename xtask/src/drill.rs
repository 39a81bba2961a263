//! `cargo xtask drill`: faults injected while a built gateway works, and what it makes of them.
//!
//! A drill starts the real binary and scripted providers on loopback, drives load at them, and
//! compares what was counted with what is promised. Counts are promises, latencies information:
//! the machine may be busy with other things.

mod kill;
mod load;
mod outage;
mod watch;

use anyhow::Result;

/// Faults injected into a working gateway; without a name, the list of drills
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    drill: Drill,
}

#[derive(Debug, clap::Subcommand)]
enum Drill {
    Kill(kill::Args),
    Outage(outage::Args),
}

/// Runs the drill that was named.
pub(crate) fn run(args: &Args) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        match &args.drill {
            Drill::Kill(args) => kill::run(args).await,
            Drill::Outage(args) => outage::run(args).await,
        }
    })
}

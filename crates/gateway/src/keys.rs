//! `backstop keys`: keys for callers. Shown once, kept as hashes.

use std::io::{self, IsTerminal, Write};

use backstop_admission::{KeyHash, mint};
use rand::TryRng;
use rand::rngs::SysRng;

/// The arguments of `backstop keys`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Make a key for a caller: the key on the first line, what the configuration wants on the next
    New {
        /// The caller's name, for the lines that go into the configuration
        #[arg(default_value = "my-app")]
        caller: String,
    },
    /// Print the hash of a key read from standard input
    Hash,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let mut out = io::stdout();
    match &args.command {
        Command::New { caller } => {
            let mut chance = [0; 32];
            SysRng.try_fill_bytes(&mut chance)?;
            let key = mint(&chance);
            let hash = KeyHash::of(key.expose());
            writeln!(out, "{}", key.expose())?;
            writeln!(out, "[callers.{caller}]\nkeys = [\"{hash}\"]")?;
            if out.is_terminal() {
                eprintln!(
                    "\nThe first line is the key: it is shown this once. The other two go into \
                     backstop.toml, which then lets nobody in without a key."
                );
            }
        }
        Command::Hash => {
            let mut key = String::new();
            io::stdin().read_line(&mut key)?;
            anyhow::ensure!(!key.trim().is_empty(), "no key on standard input");
            writeln!(out, "{}", KeyHash::of(key.trim()))?;
        }
    }
    Ok(())
}

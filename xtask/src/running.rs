//! The built gateway as a child process: demo and drills start it before scripted providers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, Command};
use tokio::time::timeout;

use crate::shell;

/// How long the gateway may take to start, to log, or to stop.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// What becomes of its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Log {
    /// Written as JSON, for whoever follows it.
    Followed,
    /// Nothing is logged.
    Off,
}

/// A running gateway. Killed when it is dropped.
pub(crate) struct Running {
    child: Child,
    address: String,
    log: Option<Lines<BufReader<ChildStderr>>>,
}

/// Builds the gateway's binary and says where it lies.
pub(crate) fn build(release: bool) -> Result<PathBuf> {
    let mut build = shell::command("cargo", &["build", "--quiet", "--package", "backstop"]);
    if release {
        build.arg("--release");
    }
    shell::run(&mut build)?;
    binary(release)
}

/// Where the binary lies once it is built.
pub(crate) fn binary(release: bool) -> Result<PathBuf> {
    let profile = if release { "release" } else { "debug" };
    Ok(shell::target_folder()?.join(profile).join("backstop"))
}

impl Running {
    /// Starts the gateway with `config`; `name` tells it from others that run at the same time.
    pub(crate) async fn start(binary: &Path, name: &str, config: &str, log: Log) -> Result<Self> {
        let folder = shell::target_folder()?.join("running").join(name);
        fs::create_dir_all(&folder).context("cannot make a folder for the configuration")?;
        let file = folder.join("backstop.toml");
        fs::write(&file, config).context("cannot write the configuration")?;
        let (filter, stderr) = match log {
            Log::Followed => ("info,backstop::attempt=debug", Stdio::piped()),
            Log::Off => ("off", Stdio::inherit()),
        };
        let mut child = Command::new(binary)
            .args(["serve", "--log-format", "json", "--log", filter])
            .arg("--config")
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {}", binary.display()))?;
        let stdout = child.stdout.take().context("no standard output")?;
        let mut log = child.stderr.take().map(|log| BufReader::new(log).lines());
        let first = timeout(PATIENCE, BufReader::new(stdout).lines().next_line()).await;
        let Ok(Ok(Some(first))) = first else {
            if let Some(log) = &mut log {
                while let Ok(Ok(Some(line))) = timeout(PATIENCE, log.next_line()).await {
                    eprintln!("{line}");
                }
            }
            bail!("the gateway did not say where it listens");
        };
        let address = first
            .rsplit_once("http://")
            .map(|(_, address)| address.to_owned())
            .with_context(|| format!("not an address: {first}"))?;
        Ok(Self {
            child,
            address,
            log,
        })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// The next line of a log that is followed.
    pub(crate) async fn log_line(&mut self) -> Result<String> {
        let log = self.log.as_mut().context("its log is off")?;
        timeout(PATIENCE, log.next_line())
            .await
            .context("the gateway's log went silent")??
            .context("the gateway's log ended")
    }

    /// Ends it without a word.
    pub(crate) async fn kill(mut self) -> Result<()> {
        self.child
            .kill()
            .await
            .context("the gateway cannot be killed")
    }

    /// Asks it to stop, and waits until it has.
    pub(crate) async fn stop(mut self) -> Result<()> {
        let id = self.child.id().context("the gateway is gone")?.to_string();
        shell::run(&mut shell::command("kill", &["-TERM", &id]))?;
        let status = timeout(PATIENCE, self.child.wait())
            .await
            .context("the gateway did not stop")??;
        if !status.success() {
            bail!("the gateway stopped with {status}");
        }
        Ok(())
    }
}

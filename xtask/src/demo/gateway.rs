//! The gateway under demonstration: the built binary as a child process, and what its log says.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, Command};
use tokio::time::timeout;

use crate::shell;

/// How long the gateway may take to start, to log, or to stop.
const PATIENCE: Duration = Duration::from_secs(20);

/// A running gateway. Killed when it is dropped.
pub(crate) struct Running {
    child: Child,
    address: String,
    log: Lines<BufReader<ChildStderr>>,
}

/// What the log says of one request.
#[derive(Debug, Default)]
pub(crate) struct Trail {
    /// The rows of the trail, as logged.
    pub(crate) attempts: Vec<Value>,
    /// The routing log.
    pub(crate) sentences: Vec<String>,
    /// The terminal reason, with the way to it.
    pub(crate) outcome: String,
}

/// Builds the gateway's binary and says where it lies.
pub(crate) fn build(release: bool) -> Result<PathBuf> {
    let mut build = shell::command("cargo", &["build", "--quiet", "--package", "backstop"]);
    if release {
        build.arg("--release");
    }
    shell::run(&mut build)?;
    let profile = if release { "release" } else { "debug" };
    Ok(shell::target_folder()?.join(profile).join("backstop"))
}

impl Running {
    /// Starts the gateway with `config`.
    pub(crate) async fn start(binary: &Path, config: &str) -> Result<Self> {
        let folder = shell::target_folder()?.join("demo");
        fs::create_dir_all(&folder).context("cannot make a folder for the configuration")?;
        let file = folder.join("backstop.toml");
        fs::write(&file, config).context("cannot write the configuration")?;
        let mut child = Command::new(binary)
            .args([
                "serve",
                "--log-format",
                "json",
                "--log",
                "info,backstop::attempt=debug",
            ])
            .arg("--config")
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {}", binary.display()))?;
        let stdout = child.stdout.take().context("no standard output")?;
        let stderr = child.stderr.take().context("no standard error")?;
        let mut log = BufReader::new(stderr).lines();
        let first = timeout(PATIENCE, BufReader::new(stdout).lines().next_line()).await;
        let Ok(Ok(Some(first))) = first else {
            while let Ok(Ok(Some(line))) = timeout(PATIENCE, log.next_line()).await {
                eprintln!("{line}");
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

    /// Reads the log up to the end of a journey.
    pub(crate) async fn trail(&mut self, request_id: &str) -> Result<Trail> {
        let mut trail = Trail::default();
        loop {
            let line = timeout(PATIENCE, self.log.next_line())
                .await
                .context("the gateway's log went silent")??
                .context("the gateway's log ended")?;
            let Ok(event) = serde_json::from_str::<Value>(&line) else {
                continue;
            };
            if event["request_id"] != request_id {
                continue;
            }
            match event["target"].as_str() {
                Some("backstop::attempt") => trail.attempts.push(event),
                Some("backstop::routing") => {
                    trail
                        .sentences
                        .extend(event["sentence"].as_str().map(str::to_owned));
                }
                Some("backstop::journey") => {
                    trail.outcome = event["outcome"].as_str().unwrap_or_default().to_owned();
                    return Ok(trail);
                }
                _ => {}
            }
        }
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

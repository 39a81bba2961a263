//! `cargo xtask drill kill`: the gateway is killed at random moments under load, again and again; what
//! its ledger says afterwards is compared with what the providers saw.
//!
//! Every request makes two attempts: the first channel answers 500, the second after a while. So a
//! kill meets attempts about to be sent, under way and just ended, and requests between two of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use backstop_faultsim::{Event, Fault, Observer, Script, Sim, Step};
use backstop_ledger::{Filter, Journey, Reader};
use tokio::time::sleep;

use super::load::Load;
use crate::running::{self, Log, Running};
use crate::shell;
use crate::verdict::Table;

/// The gateway is killed under load: what providers saw is in the ledger
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How often it is killed
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    kills: u32,

    /// Requests a second
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=5000))]
    rate: u32,

    /// Build and use the release build
    #[arg(long)]
    release: bool,
}

const MODEL: &str = "m";

/// What a provider saw: a request's id and the number of its attempt.
type Sends = HashMap<(String, u32), u64>;

/// Kills and compares.
pub(crate) async fn run(args: &Args) -> Result<()> {
    println!("building the gateway ...");
    let binary = running::build(args.release)?;
    let seen: Arc<Mutex<Sends>> = Arc::default();
    let failing = Step::fault(Fault::ServerError).model(MODEL).always();
    let north = provider(&seen, [failing]).await?;
    let slow = Duration::from_millis(15);
    let answering = Step::ok_text("well").model(MODEL).delay(slow).always();
    let south = provider(&seen, [answering]).await?;
    let ledger = shell::target_folder()?.join("running").join("kill-ledger");
    if ledger.exists() {
        std::fs::remove_dir_all(&ledger).context("cannot remove the last drill's ledger")?;
    }
    let config = config(&north, &south, &ledger.display().to_string());
    let mut answered = 0;
    let mut asked = 0;
    for kill in 0..args.kills {
        let gateway = Running::start(&binary, "kill", &config, Log::Off).await?;
        // Numbers rise over kills, so that every request is known by its id.
        let load = Load::from(gateway.address(), "pair", args.rate, u64::from(kill) << 32);
        // Spread over what a request takes and what the ledger's thread does meanwhile.
        let moment = Duration::from_micros(20_000 + u64::from(kill) * 7_919_777 % 400_000);
        let killed = async {
            sleep(moment).await;
            gateway.kill().await
        };
        let (tell, told) = tokio::sync::oneshot::channel::<()>();
        let (killed, report) = tokio::join!(
            async {
                let killed = killed.await;
                let _ = tell.send(());
                killed
            },
            load.drive(async {
                let _ = told.await;
            })
        );
        killed?;
        answered += report.statuses.get(&200).copied().unwrap_or(0);
        asked += report.took.len();
    }
    let before = compare(&ledger, &seen)?;
    // What was left is indexed by the next start.
    Running::start(&binary, "kill", &config, Log::Off)
        .await?
        .stop()
        .await?;
    let after = compare(&ledger, &seen)?;
    println!(
        "{} kills at {} requests/s: {asked} requests, {answered} answered, {} attempts seen by providers, \
         {} rows, {} of them unknown\n",
        args.kills, args.rate, before.seen, after.rows, after.unknown,
    );
    let mut table = Table::default();
    for (when, found) in [
        ("after the last kill", &before),
        ("after the next start", &after),
    ] {
        let missing = found.missing;
        let what = format!("attempts that a provider saw without a row, {when}");
        table.row(
            what,
            missing.to_string(),
            "0",
            missing == 0 && found.seen > 0,
        );
        let open = found.open;
        let what = format!("rows or journeys without any outcome, {when}");
        table.row(what, open.to_string(), "0", open == 0);
        let short = answered.saturating_sub(found.successes);
        let what = format!("answers that callers have without a row of success, {when}");
        table.row(what, short.to_string(), "0", short == 0);
    }
    print!("{table}");
    if table.is_broken() {
        bail!("a promise is broken");
    }
    Ok(())
}

async fn provider(seen: &Arc<Mutex<Sends>>, steps: impl IntoIterator<Item = Step>) -> Result<Sim> {
    let seen = Arc::clone(seen);
    let observer: Observer = Arc::new(move |_, event| {
        let Event::Arrived(attempt) = event else {
            return;
        };
        let header = |name| attempt.header(name).unwrap_or_default();
        let number = header("x-backstop-attempt").parse().unwrap_or(0);
        let id = header("x-request-id").to_owned();
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        *seen.entry((id, number)).or_default() += 1;
    });
    let script = Script::healthy().with_steps(steps).retain(16);
    let sim = Sim::observed(script, observer);
    sim.listen("127.0.0.1:0").await?;
    Ok(sim)
}

fn config(north: &Sim, south: &Sim, ledger: &str) -> String {
    let provider = |name: &str, sim: &Sim| {
        format!(
            r#"
[providers.{name}]
kind = "openai"
base_url = "{url}/v1"
keys = [{{ name = "{name}-1", value = "drill-{name}" }}]
breaker = {{ enabled = false }}
"#,
            url = sim.url(),
        )
    };
    format!(
        r#"# Written by `cargo xtask drill`.
[server]
listen = "127.0.0.1:0"
[ledger]
path = {ledger:?}
{north}{south}
[routes]
pair = ["north/{MODEL}", "south/{MODEL}"]
"#,
        north = provider("north", north),
        south = provider("south", south),
    )
}

/// What the ledger makes of what the providers saw.
#[derive(Debug, Default)]
struct Compared {
    seen: u64,
    rows: u64,
    missing: u64,
    open: u64,
    unknown: u64,
    successes: u64,
}

fn compare(ledger: &std::path::Path, seen: &Mutex<Sends>) -> Result<Compared> {
    let journeys = Reader::open(ledger)
        .and_then(|reader| {
            reader.journeys(&Filter {
                limit: usize::MAX,
                ..Filter::default()
            })
        })
        .context("the ledger cannot be read")?;
    let mut rows = Sends::new();
    let mut found = Compared::default();
    for journey in &journeys {
        found.book(journey, &mut rows);
    }
    let seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    for (send, times) in seen.iter() {
        found.seen += times;
        let written = rows.get(send).copied().unwrap_or(0);
        found.missing += times.saturating_sub(written);
    }
    Ok(found)
}

impl Compared {
    fn book(&mut self, journey: &Journey, rows: &mut Sends) {
        self.open += u64::from(journey.terminal_reason.is_none());
        self.successes += u64::from(journey.terminal_reason.as_deref() == Some("success"));
        for row in &journey.attempt_trail {
            let Some(attempt) = row.attempt else { continue };
            self.rows += 1;
            self.open += u64::from(row.outcome.is_none());
            self.unknown += u64::from(row.outcome.as_deref() == Some("unknown"));
            let send = (journey.request_id.clone(), attempt);
            *rows.entry(send).or_default() += 1;
        }
    }
}

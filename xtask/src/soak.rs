//! `cargo xtask soak`: thousands of cases by chance, against the server in this process.
//!
//! The cases themselves are `backstop_tests::soak`; a short form of them is among the tests.

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::{Result, bail};
use backstop_tests::soak::{Findings, Promise, Soak, percentile};
use tokio::time::{Instant, interval};

use crate::verdict::Table;

/// How long observing a hang-up may take, in 99 of 100 cases.
const OBSERVED_WITHIN: Duration = Duration::from_millis(100);

/// Thousands of cases by chance; without a name, the list of them
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    soak: Which,
}

#[derive(Debug, clap::Subcommand)]
enum Which {
    Journey(Journey),
}

/// Broken streams and hang-ups: nothing is replayed, nothing is sent for who has left
#[derive(Debug, clap::Args)]
struct Journey {
    /// How many streams break
    #[arg(long, default_value_t = 10_000)]
    breaks: u64,

    /// How many callers leave
    #[arg(long, default_value_t = 10_000)]
    hangups: u64,

    /// Where all chance comes from. Default: another one each time, and it is printed
    #[arg(long)]
    seed: Option<u64>,

    /// Some hundreds of each
    #[arg(long)]
    short: bool,

    /// One case again, told in full, such as `breaks/17` or `hangups/4`
    #[arg(long, value_name = "CASE")]
    case: Option<String>,
}

/// Plays the soak that was named.
pub(crate) fn run(args: &Args) -> Result<()> {
    let Which::Journey(journey) = &args.soak;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(journey.play())
}

impl Journey {
    fn soak(&self, seed: u64) -> Arc<Soak> {
        let short = |cases: u64| if self.short { cases.min(500) } else { cases };
        Arc::new(Soak {
            seed,
            breaks: short(self.breaks),
            hangups: short(self.hangups),
            case: self.case.clone(),
            ..Soak::default()
        })
    }

    async fn play(&self) -> Result<()> {
        let seed = self.seed.unwrap_or_else(any_seed);
        println!("seed {seed}");
        let soak = self.soak(seed);
        let breaks = watch(&soak, "breaks", soak.breaks, soak.play_breaks()).await;
        let soak = self.soak(seed);
        let hangups = watch(&soak, "hang-ups", soak.hangups, soak.play_hangups()).await;
        for story in breaks.stories.iter().chain(&hangups.stories) {
            println!("{story}");
        }
        let mut table = Table::default();
        stream_rows(&mut table, &breaks);
        hangup_rows(&mut table, &hangups);
        information(&breaks);
        information(&hangups);
        print!("\n{table}");
        let told: Vec<_> = breaks.told.iter().chain(&hangups.told).collect();
        for finding in &told {
            println!(
                "\n{}: {}\n  {}",
                finding.case, finding.promise, finding.what
            );
        }
        if let Some(finding) = told.first() {
            let case = &finding.case;
            println!("\nagain: cargo xtask soak journey --seed {seed} --case {case}");
        }
        println!("one case in full: cargo xtask soak journey --seed {seed} --case breaks/0");
        if table.is_broken() {
            bail!("a promise is broken");
        }
        Ok(())
    }
}

fn any_seed() -> u64 {
    let age = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    age.map_or(1, |age| {
        age.as_secs() * 1000 + u64::from(age.subsec_millis())
    })
}

/// Plays, and says on a terminal how far it has come.
async fn watch(
    soak: &Arc<Soak>,
    what: &str,
    all: u64,
    playing: impl Future<Output = Findings>,
) -> Findings {
    let began = Instant::now();
    let mut playing = std::pin::pin!(playing);
    let mut tick = interval(Duration::from_secs(3));
    tick.tick().await;
    let findings = loop {
        tokio::select! {
            findings = &mut playing => break findings,
            _ = tick.tick() => if std::io::stderr().is_terminal() {
                eprintln!("  {what}: {} of {all}", soak.progress.done());
            }
        }
    };
    let took = began.elapsed().as_secs_f64();
    println!("{what}: {} in {took:.1} s", soak.progress.done());
    findings
}

fn stream_rows(table: &mut Table, breaks: &Findings) {
    let played = format!("{} broken streams", breaks.played("breaks"));
    for promise in [
        Promise::NoReplay,
        Promise::NoFalseFinish,
        Promise::Faithful,
        Promise::TrailIsWire,
        Promise::Settled,
    ] {
        none(table, &played, breaks, promise);
    }
}

fn hangup_rows(table: &mut Table, hangups: &Findings) {
    let played = format!("{} hang-ups", hangups.played("hang-ups"));
    for promise in [
        Promise::NoLateAttempt,
        Promise::TrailIsWire,
        Promise::UpstreamClosed,
        Promise::Settled,
    ] {
        none(table, &played, hangups, promise);
    }
    let p99 = percentile(&hangups.observed, 990);
    table.row(
        format!("{played}: close observed, p99"),
        format!("{} ms", millis(p99)),
        format!("<= {} ms", OBSERVED_WITHIN.as_millis()),
        p99 <= OBSERVED_WITHIN,
    );
}

fn none(table: &mut Table, played: &str, findings: &Findings, promise: Promise) {
    let times = findings.times(promise);
    table.row(
        format!("{played}: {promise}"),
        times.to_string(),
        "0".to_owned(),
        times == 0,
    );
}

fn information(findings: &Findings) {
    println!();
    for (what, number) in &findings.counts {
        println!("  {number:>7}  {what}");
    }
    for (what, times) in [
        ("close observed", &findings.observed),
        ("upstream connection closed", &findings.closed),
    ] {
        if !times.is_empty() {
            let [p50, p99, last] = [500, 990, 1000].map(|share| millis(percentile(times, share)));
            println!("  {what}: p50 {p50} ms, p99 {p99} ms, longest {last} ms");
        }
    }
}

fn millis(time: Duration) -> String {
    format!("{:.1}", time.as_secs_f64() * 1000.0)
}

//! `cargo xtask drill outage`: providers go down, and the gateway must not make it worse.
//!
//! Four acts, each at every rate at the same time, with a gateway of its own for each rate: a total
//! outage with the breaker off, so that the retry budget stands alone; one with the breaker on and
//! ways of failing that change by the second; one by resets on connections that another model keeps
//! alive; then one provider down and one up, and the recovery.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use backstop_faultsim::{End, Fault, Script, Sim, Step};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::load::{Load, Report};
use super::watch::{Calls, breaker_is};
use crate::running::{self, Log, Running};
use crate::verdict::Table;

/// Providers go down: retries stay bounded, another one takes over, the first one comes back
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How long each outage lasts
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(2..=3600))]
    seconds: u64,

    /// Requests a second, several with commas between
    #[arg(long, value_delimiter = ',', default_value = "10,50,500",
          value_parser = clap::value_parser!(u32).range(1..=5000))]
    rates: Vec<u32>,

    /// Build and use the release build. Without it: that one if it is there, else a debug build
    #[arg(long)]
    release: bool,
}

/// The model that fails, as providers know it.
const MODEL: &str = "m";

/// One that works at the same provider.
const WELL: &str = "well";

/// The breaker's first open time and its growth, as they are by default.
const OPEN: Duration = Duration::from_secs(5);
const GROWTH: f64 = 1.5;
const LONGEST: Duration = Duration::from_secs(60);

/// What seeing a recovery may take on top: a look at the metrics, a busy machine.
const SLACK: Duration = Duration::from_millis(500);

/// Plays the acts and prints the verdicts.
pub(crate) async fn run(args: &Args) -> Result<()> {
    let binary = binary(args.release)?;
    let build = describe(&binary)?;
    let stage = Arc::new(Stage {
        binary,
        length: Duration::from_secs(args.seconds),
    });
    println!(
        "{build}, {} s an outage, {} requests/s, max_retries = 3\n",
        args.seconds,
        args.rates
            .iter()
            .map(u32::to_string)
            .collect::<Vec<_>>()
            .join(", "),
    );
    let mut table = Table::default();
    for act in [Act::BudgetAlone, Act::Changing, Act::Resets, Act::OneUp] {
        println!("{}", act.title());
        let mut playing = JoinSet::new();
        for (place, rate) in args.rates.iter().copied().enumerate() {
            let stage = Arc::clone(&stage);
            playing.spawn(async move {
                let played = match act {
                    Act::OneUp => one_up(&stage, rate).await,
                    _ => total(&stage, act, rate).await,
                };
                (place, rate, played)
            });
        }
        let mut played = playing.join_all().await;
        played.sort_by_key(|(place, ..)| *place);
        for (_, rate, played) in played {
            let played = played.with_context(|| format!("at {rate} requests/s"))?;
            println!("  {rate:>4}/s  {}", played.told);
            for (what, measured, promised, kept) in played.rows {
                let what = format!("{}, {rate}/s: {what}", act.name());
                table.row(what, measured, promised, kept);
            }
        }
        println!();
    }
    print!("{table}");
    if table.is_broken() {
        bail!("a promise is broken");
    }
    Ok(())
}

fn binary(release: bool) -> Result<PathBuf> {
    let built = running::binary(true)?;
    if !release && built.is_file() {
        return Ok(built);
    }
    println!("building the gateway ...");
    running::build(release)
}

/// Which build it is, and how old: an old one proves nothing about the code beside it.
fn describe(binary: &Path) -> Result<String> {
    let release = binary
        .components()
        .any(|part| part.as_os_str() == "release");
    let built = std::fs::metadata(binary)
        .and_then(|found| found.modified())
        .with_context(|| format!("cannot look at {}", binary.display()))?;
    let age = built.elapsed().unwrap_or_default().as_secs() / 60;
    let build = if release { "release" } else { "debug" };
    Ok(format!("{build} build of {age} min ago"))
}

/// What all acts share.
struct Stage {
    binary: PathBuf,
    length: Duration,
}

/// What an act is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    BudgetAlone,
    Changing,
    Resets,
    OneUp,
}

impl Act {
    const fn name(self) -> &'static str {
        match self {
            Self::BudgetAlone => "budget alone",
            Self::Changing => "changing faults",
            Self::Resets => "resets",
            Self::OneUp => "one up",
        }
    }

    const fn title(self) -> &'static str {
        match self {
            Self::BudgetAlone => "total outage, breaker off: every call is answered 503",
            Self::Changing => {
                "total outage, breaker on: 503, 500, overloaded, cut, reset, silence by the second"
            }
            Self::Resets => {
                "one model resets every call, breaker on, while another keeps connections alive"
            }
            Self::OneUp => "one provider down, one up, then both",
        }
    }

    /// What the dead provider does in a second of its outage.
    fn dead(self, second: u64) -> Step {
        let step = match (self, second % 6) {
            (Self::Resets, _) | (Self::Changing, 4) => Step::silent(End::Reset),
            (Self::Changing, 1) => Step::fault(Fault::ServerError),
            (Self::Changing, 2) => Step::fault(Fault::Overloaded),
            (Self::Changing, 3) => Step::silent(End::Cut),
            (Self::Changing, 5) => Step::silent(End::Hang),
            _ => Step::fault(Fault::Unavailable),
        };
        step.model(MODEL).always()
    }
}

/// What an act at one rate came to.
struct Played {
    told: String,
    rows: Vec<(String, String, String, bool)>,
}

fn script(steps: impl IntoIterator<Item = Step>) -> Script {
    Script::healthy().with_steps(steps).retain(16)
}

async fn provider(calls: &Arc<Calls>, script: Script) -> Result<Sim> {
    let sim = Sim::observed(script, calls.observer(MODEL));
    sim.listen("127.0.0.1:0").await?;
    Ok(sim)
}

fn config(north: &Sim, south: &Sim, breaker: bool) -> String {
    let provider = |name: &str, sim: &Sim| {
        format!(
            r#"
[providers.{name}]
kind = "openai"
base_url = "{url}/v1"
keys = [{{ name = "{name}-1", value = "drill-{name}" }}]
network_config = {{ max_retries = 3 }}
timeouts = {{ headers_ms = 1000 }}
breaker = {{ enabled = {breaker} }}
"#,
            url = sim.url(),
        )
    };
    format!(
        r#"# Written by `cargo xtask drill`.
[server]
listen = "127.0.0.1:0"
{north}{south}
[routes]
alone = "north/{MODEL}"
well = "north/{WELL}"
pair = ["north/{MODEL}", "south/{MODEL}"]
"#,
        north = provider("north", north),
        south = provider("south", south),
    )
}

/// A total outage of the only channel there is.
async fn total(stage: &Stage, act: Act, rate: u32) -> Result<Played> {
    let (calls, other) = (Arc::new(Calls::default()), Arc::new(Calls::default()));
    let north = provider(&calls, script([act.dead(0)])).await?;
    let south = provider(&other, script([])).await?;
    let config = config(&north, &south, act != Act::BudgetAlone);
    let gateway = start(stage, rate, &config).await?;
    let load = Load::new(gateway.address(), "alone", rate);
    let beside = Load::new(gateway.address(), "well", rate.div_ceil(2));
    let changing = async {
        let began = Instant::now();
        for second in 1.. {
            sleep((began + Duration::from_secs(second)).saturating_duration_since(Instant::now()))
                .await;
            north.set_script(script([act.dead(second)]));
        }
    };
    let length = stage.length;
    let loads = async {
        let beside = async {
            if act == Act::Resets {
                beside.drive(sleep(length)).await
            } else {
                Report::default()
            }
        };
        tokio::join!(load.drive(sleep(length)), beside)
    };
    let (report, beside) = tokio::select! {
        reports = loads => reports,
        () = changing => bail!("the outage ended early"),
    };
    gateway.stop().await?;
    let lasted = report.lasted.as_secs_f64();
    let bound = 1.2 * report.sent as f64 + lasted + 10.0;
    let made = calls.all();
    let mut rows = vec![(
        format!("provider calls for {} requests", report.sent),
        made.to_string(),
        format!("<= {bound:.0}"),
        made as f64 <= bound && made >= report.sent,
    )];
    rows.extend(driven(&report));
    let ratio = made as f64 / report.sent.max(1) as f64;
    let beside = if act == Act::Resets {
        format!(
            ", {:.1} % of the other model served",
            100.0 * beside.success()
        )
    } else {
        String::new()
    };
    Ok(Played {
        told: format!(
            "{made} calls for {} requests ({ratio:.3} each){beside}, answered by {}",
            report.sent,
            told(&report)
        ),
        rows,
    })
}

/// One provider down and one up; then the first one heals.
async fn one_up(stage: &Stage, rate: u32) -> Result<Played> {
    let act = Act::OneUp;
    let (down, up) = (Arc::new(Calls::default()), Arc::new(Calls::default()));
    let north = provider(&down, script([act.dead(0)])).await?;
    let south = provider(&up, script([])).await?;
    let gateway = start(stage, rate, &config(&north, &south, true)).await?;
    let channel = format!("north/{MODEL}");
    let load = Load::new(gateway.address(), "pair", rate);
    let (stop, stopped) = oneshot::channel::<()>();
    let directing = async {
        let began = Instant::now();
        breaker_is(gateway.address(), &channel, "open", stage.length).await?;
        let opened = began.elapsed();
        let mark = load.sent();
        down.set_mark(mark);
        up.set_mark(mark);
        sleep(stage.length.saturating_sub(opened)).await;
        let (marked, requests) = (down.marked() + up.marked(), load.sent() - mark);
        let probes = down.marked();
        north.set_script(script([]));
        let healed = Instant::now();
        // While its breaker is open the failed probes so far say how long.
        let period = OPEN.mul_f64(GROWTH.powf(probes as f64)).min(LONGEST);
        let seen = 4 * period + SLACK;
        breaker_is(gateway.address(), &channel, "closed", seen).await?;
        let recovered = healed.elapsed();
        sleep(Duration::from_secs(1)).await;
        let _ = stop.send(());
        anyhow::Ok((opened, mark, marked, requests, probes, period, recovered))
    };
    let stopping = async {
        let _ = stopped.await;
    };
    let driving = Arc::clone(&load).drive(stopping);
    let (directed, report) = tokio::join!(directing, driving);
    let (opened, mark, marked, requests, probes, period, recovered) = directed?;
    gateway.stop().await?;
    let early = down.all() + up.all() - down.marked() - up.marked();
    let first = early as f64 / mark.max(1) as f64;
    let each = marked as f64 / requests.max(1) as f64;
    let success = 100.0 * report.success();
    // A probe needs a request to be.
    let promised = period + Duration::from_secs_f64(1.0 / f64::from(rate)) + SLACK;
    let mut rows = vec![
        (
            format!("attempts a request once open ({marked} for {requests})"),
            format!("{each:.4}"),
            "<= 1.02".to_owned(),
            each <= 1.02 && requests > 0,
        ),
        (
            format!("answered, of {}", report.sent),
            format!("{success:.2} %"),
            ">= 99.9 %".to_owned(),
            success >= 99.9,
        ),
        (
            format!("recovery, with {probes} failed probes"),
            seconds(recovered),
            format!("<= {}", seconds(promised)),
            recovered <= promised,
        ),
    ];
    rows.extend(driven(&report));
    Ok(Played {
        told: format!(
            "open after {}; the {mark} requests until then took {first:.2} attempts each; one open period is {}; \
             answered by {}",
            seconds(opened),
            seconds(period),
            told(&report)
        ),
        rows,
    })
}

async fn start(stage: &Stage, rate: u32, config: &str) -> Result<Running> {
    let binary: &Path = &stage.binary;
    Running::start(binary, &format!("outage-{rate}"), config, Log::Off).await
}

/// That the driver itself did what it was asked to.
fn driven(report: &Report) -> Option<(String, String, String, bool)> {
    let unsent = report.withheld;
    (unsent > 0).then(|| {
        let what = "requests that the driver could not send".to_owned();
        (what, unsent.to_string(), "0".to_owned(), false)
    })
}

fn told(report: &Report) -> String {
    let statuses: Vec<String> = report
        .statuses
        .iter()
        .map(|(status, times)| format!("{status} x {times}"))
        .collect();
    let p99 = backstop_tests::soak::percentile(&report.took, 990);
    format!(
        "{}; p99 {:.0} ms; sent at most {:.0} ms late",
        statuses.join(", "),
        p99.as_secs_f64() * 1000.0,
        report.lateness.as_secs_f64() * 1000.0,
    )
}

fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}

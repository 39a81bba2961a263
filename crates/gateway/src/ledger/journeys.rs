//! `backstop journeys`: which requests there were.

use std::io::{self, Write};
use std::time::{Duration, SystemTime};

use backstop_ledger::{Filter, Journey};

use super::{Error, Where, span, stamp};

/// The arguments of `backstop journeys`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
All conditions must hold. Classes are those of docs/failures.md: credential, quota, rate_limit, \
transient, timeout, malformed, unknown, caller_fault, cancelled and more. Outcomes: success, exhausted, \
cancelled, partial, policy_stop, deadline; under_way; unknown (its process died first).

Examples:
  backstop journeys                             the latest 50
  backstop journeys --since 1h --class quota    that met a spent quota within the hour
  backstop journeys --route fast --outcome exhausted --limit 10
  backstop journeys --provider openai --json | jq length

Exit status: 0 listed, 1 the ledger cannot be read, 2 no ledger, or an argument is wrong.")]
pub(crate) struct Args {
    #[command(flatten)]
    place: Where,

    /// Accepted within this span: 30s, 15m, 1h, 7d
    #[arg(long, value_name = "SPAN")]
    since: Option<String>,

    /// With an attempt that failed with this class
    #[arg(long, value_name = "CLASS")]
    class: Option<String>,

    /// On this route; `direct` for provider/model
    #[arg(long, value_name = "ROUTE")]
    route: Option<String>,

    /// Of this caller
    #[arg(long, value_name = "NAME")]
    caller: Option<String>,

    /// That asked this provider
    #[arg(long, value_name = "PROVIDER")]
    provider: Option<String>,

    /// That ended so
    #[arg(long, value_name = "OUTCOME", value_parser = [
        "success", "exhausted", "cancelled", "partial", "policy_stop", "deadline", "under_way", "unknown",
    ])]
    outcome: Option<String>,

    /// At most this many, the latest
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,

    /// Print JSON: a list of journeys with their trails
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let since_ms = match &args.since {
        None => None,
        Some(typed) => Some(ago(typed)?),
    };
    let (reader, _) = args.place.open()?;
    let journeys = reader.journeys(&Filter {
        request_id: None,
        since_ms,
        class: args.class.clone(),
        route: args.route.clone(),
        caller: args.caller.clone(),
        provider: args.provider.clone(),
        outcome: args.outcome.clone(),
        limit: args.limit,
    })?;
    let mut out = io::stdout().lock();
    if args.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&journeys)?)?;
        return Ok(());
    }
    if journeys.is_empty() {
        eprintln!("no request is like that");
    }
    for journey in &journeys {
        writeln!(out, "{}", line(journey))?;
    }
    Ok(())
}

fn line(journey: &Journey) -> String {
    let rows = &journey.attempt_trail;
    let sends = rows.iter().filter(|row| row.attempt.is_some()).count();
    let classes: Vec<&str> = rows.iter().filter_map(|row| row.class.as_deref()).collect();
    let tamed: String = journey
        .request_id
        .chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect();
    format!(
        "{}  {:<11} {:>3}  {:>9}  {} attempt{:<1}  {:<16} {}  {}",
        stamp(journey.started_ms),
        journey.terminal_reason.as_deref().unwrap_or("under way"),
        journey
            .status
            .map_or_else(|| "-".to_owned(), |status| status.to_string()),
        journey.total_ms.map_or_else(|| "-".to_owned(), span),
        sends,
        if sends == 1 { "" } else { "s" },
        journey.route,
        tamed,
        classes.join(" > "),
    )
    .trim_end()
    .to_owned()
}

/// The wall time that lies this span back.
#[allow(
    clippy::disallowed_methods,
    reason = "a command asks once what time it is"
)]
fn ago(typed: &str) -> Result<i64, Error> {
    let bad = || Error::BadSpan {
        typed: typed.chars().take(40).collect(),
    };
    let back = read_span(typed).ok_or_else(bad)?;
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    Ok(i64::try_from(now.saturating_sub(back).as_millis()).unwrap_or(0))
}

fn read_span(typed: &str) -> Option<Duration> {
    let (number, unit) = typed.split_at_checked(typed.len().checked_sub(1)?)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return None,
    };
    let number: u64 = number.parse().ok()?;
    number.checked_mul(seconds).map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_need_a_unit_we_know() {
        for (typed, seconds) in [
            ("30s", Some(30)),
            ("15m", Some(900)),
            ("1h", Some(3600)),
            ("7d", Some(604_800)),
            ("1", None),
            ("h", None),
            ("", None),
            ("-1h", None),
            ("1h30m", None),
            ("1w", None),
        ] {
            let read = read_span(typed).map(|span| span.as_secs());
            assert_eq!(read, seconds, "{typed:?}");
        }
    }
}

//! `backstop trail`: one request as a timeline.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};

use backstop_ledger::{Attempt, Filter, Journey};

use super::{Error, Where, span, stamp};

/// The arguments of `backstop trail`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The id is the x-request-id of the answer; callers may set their own, and use one again: then each \
request is shown, the latest first. It works while the gateway runs and after it died. What a process \
had not ended when it died is `unknown`: the provider may have done the work.

Examples:
  backstop trail req-7f3a
  backstop trail req-7f3a --json | jq '.[0].attempt_trail[].class'
  backstop trail req-7f3a --ledger /var/lib/backstop

Exit status: 0 shown, 1 the ledger cannot be read, 2 no ledger or no such request.")]
pub(crate) struct Args {
    /// The request's id
    #[arg(value_name = "REQUEST-ID")]
    request_id: String,

    #[command(flatten)]
    place: Where,

    /// Print JSON: a list of journeys, the latest first
    #[arg(long)]
    json: bool,
}

/// Journeys of one id that are shown.
const MOST: usize = 100;

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let (reader, path) = args.place.open()?;
    let journeys = reader.journeys(&Filter {
        request_id: Some(args.request_id.clone()),
        limit: MOST,
        ..Filter::default()
    })?;
    if journeys.is_empty() {
        let id = args.request_id.chars().take(80).collect();
        return Err(Error::UnknownRequest { id, path }.into());
    }
    let mut out = io::stdout().lock();
    if args.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&journeys)?)?;
        return Ok(());
    }
    let paint = Paint(out.is_terminal());
    for (at, journey) in journeys.iter().enumerate() {
        if at > 0 {
            writeln!(out)?;
        }
        write!(out, "{}", page(journey, paint))?;
    }
    Ok(())
}

/// Colours, where somebody sees them.
#[derive(Debug, Clone, Copy)]
struct Paint(bool);

impl Paint {
    fn outcome(self, outcome: &str) -> String {
        let colour = match outcome {
            "success" => 32,
            "skipped" | "under way" | "cancelled" | "unknown" => 33,
            _ => 31,
        };
        if self.0 {
            format!("\x1b[{colour}m{outcome}\x1b[0m")
        } else {
            outcome.to_owned()
        }
    }
}

/// One journey, a line for each thing that happened. Text from callers and providers is cut to what
/// a terminal may see.
fn page(journey: &Journey, paint: Paint) -> String {
    let mut page = String::new();
    let caller = journey.caller.as_deref().map(|name| format!(" of {name}"));
    let _ = writeln!(
        page,
        "{}{}  {} -> route {}  {}{}",
        tame(&journey.request_id),
        caller.unwrap_or_default(),
        tame(&journey.model_requested),
        tame(&journey.route),
        journey.dialect,
        if journey.stream { ", stream" } else { "" },
    );
    let _ = writeln!(
        page,
        "{} UTC  accepted, configuration {}",
        stamp(journey.started_ms),
        journey.config_version
    );
    for row in &journey.attempt_trail {
        let _ = writeln!(page, "{}", line(journey, row, paint));
    }
    let reason = journey.terminal_reason.as_deref().unwrap_or("under way");
    let after = journey
        .total_ms
        .map_or_else(|| " ".repeat(11), |total| format!("+{:>10}", span(total)));
    let _ = write!(page, "  {after}  {}", paint.outcome(reason));
    if let Some(status) = journey.status {
        let _ = write!(page, ", the caller got {status}");
    }
    if let (Some(provider), Some(model)) = (&journey.provider, &journey.model_served) {
        let action = journey.action.as_deref().unwrap_or("direct");
        let _ = write!(
            page,
            ", served by {}/{} ({action})",
            tame(provider),
            tame(model)
        );
    }
    page.push('\n');
    page
}

fn line(journey: &Journey, row: &Attempt, paint: Paint) -> String {
    let started = row.started_ms.map_or(0, |at| at - journey.started_ms);
    let mut line = format!("  +{:>10}", span(started.max(0)));
    match row.attempt {
        Some(attempt) => {
            let _ = write!(line, "  #{attempt:<2}");
        }
        None => line.push_str("  -  "),
    }
    let text = |value: &Option<String>| tame(value.as_deref().unwrap_or_default());
    let _ = write!(line, " {:<12}", text(&row.action));
    let _ = write!(line, " {}/{}", text(&row.provider), text(&row.model));
    if row.key_name.is_some() {
        let _ = write!(line, " key {}", text(&row.key_name));
    }
    let outcome = row.outcome.as_deref().unwrap_or("under way");
    let _ = write!(line, ": {}", paint.outcome(outcome));
    let mut facts = Vec::new();
    if let Some(class) = &row.class {
        let kind = row.failure_kind.as_deref().map(|kind| format!(" ({kind})"));
        facts.push(format!("{class}{}", kind.unwrap_or_default()));
    }
    facts.extend(row.status.map(|status| format!("HTTP {status}")));
    facts.extend(
        row.signal
            .as_deref()
            .map(|signal| format!("by {}", tame(signal))),
    );
    facts.extend(row.fail_reason.as_deref().map(tame));
    if row.class.is_some() {
        facts.extend(row.phase.as_deref().map(|phase| phase.replace('_', " ")));
    }
    facts.extend(
        row.waited_ms
            .filter(|ms| *ms > 0)
            .map(|ms| format!("waited {}", span(ms))),
    );
    facts.extend(
        row.first_output_ms
            .map(|ms| format!("first output {}", span(ms))),
    );
    facts.extend(row.total_ms.map(|ms| format!("took {}", span(ms))));
    facts.extend(row.retry_after_ms.map(|ms| format!("hint {}", span(ms))));
    if let (Some(input), Some(output)) = (row.input_tokens, row.output_tokens) {
        facts.push(format!("{input} in, {output} out"));
    }
    if let Some(cost) = row.cost_micro_usd {
        facts.push(format!("${}.{:06}", cost / 1_000_000, cost % 1_000_000));
    }
    if !facts.is_empty() {
        let _ = write!(line, ", {}", facts.join(", "));
    }
    line
}

/// Text without what a terminal would obey.
fn tame(text: &str) -> String {
    let shown = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    text.chars().map(shown).collect()
}

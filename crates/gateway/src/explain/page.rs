//! The plan as a page for people: who is asked in which order, then what is to be known of each.

use std::fmt;
use std::time::Duration;

use backstop_chat::Need;
use backstop_policy::Channel;

use super::findings::{Findings, Row, commit, keys, lossy};
use super::live::Live;

const HEADINGS: [&str; 8] = [
    "#",
    "GROUP",
    "CHANNEL",
    "MAY SERVE",
    "KEYS",
    "RETRIES",
    "BUDGET",
    "BREAKER",
];

impl fmt::Display for Findings<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.head(f)?;
        writeln!(f)?;
        table(f, &self.rows)?;
        if !self.by_chance.is_empty() {
            let groups = self.by_chance.iter();
            let groups: Vec<_> = groups
                .map(|(group, by)| format!("{group} ({by})"))
                .collect();
            let groups = groups.join(", ");
            writeln!(
                f,
                "\nIn {groups} equals take turns, request by request; here they stand as listed."
            )?;
        }
        let mut said: Vec<&str> = Vec::new();
        for row in &self.rows {
            if let Some(channel) = &row.channel
                && !said.contains(&channel.id.as_str())
            {
                said.push(channel.id.as_str());
                details(f, row, channel)?;
            }
        }
        Ok(())
    }
}

impl Findings<'_> {
    fn head(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (route, limits) = (self.route, &self.route.limits);
        writeln!(f, "Route {} of {}", route.name, self.from)?;
        let dialect = self.request.dialect;
        match self.request.envelope {
            None => writeln!(
                f,
                "Request: any of {dialect} (--request FILE plans for one)"
            )?,
            Some(envelope) => {
                let needs = envelope.needs.set.iter().map(Need::as_str);
                let needs: Vec<_> = needs.collect();
                let needs = match needs.as_slice() {
                    [] => "nothing in particular".to_owned(),
                    needs => needs.join(", "),
                };
                write!(
                    f,
                    "Request: {dialect}, needs {needs}; about {} tokens of prompt",
                    envelope.needs.prompt.0
                )?;
                match envelope.needs.answer.0 {
                    0 => writeln!(f, ", no limit on the answer")?,
                    answer => writeln!(f, ", at most {answer} of answer")?,
                }
                if envelope.model != route.name.as_str() {
                    writeln!(f, "         its own model is {}", envelope.model)?;
                }
            }
        }
        write!(f, "Limits:  {} sends", limits.max_attempts)?;
        if let Some(primary) = limits.max_attempts_primary {
            write!(f, ", {primary} of them on the first group")?;
        }
        if let Some(behind) = limits.max_attempts_fallback {
            write!(f, ", {behind} of them behind it")?;
        }
        writeln!(
            f,
            ", in {}; a further one needs {}; commit {}; lossy {}",
            time(limits.deadline),
            time(limits.min_attempt),
            commit(route.commit),
            lossy(route.lossy),
        )?;
        match self.live {
            Live::NotAsked => writeln!(
                f,
                "Live:    no running gateway asked (--metrics URL asks one)"
            ),
            Live::Silent(url) => writeln!(f, "Live:    {url} gave no metrics"),
            Live::Answered(url, _) => {
                writeln!(f, "Live:    breakers, budgets and held keys from {url}")
            }
        }
    }
}

fn table(f: &mut fmt::Formatter<'_>, rows: &[Row]) -> fmt::Result {
    let cells: Vec<[String; 8]> = rows.iter().map(cells).collect();
    let mut widths = HEADINGS.map(str::len);
    for row in &cells {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut line = |row: &[String]| {
        let padded: Vec<String> = row
            .iter()
            .zip(widths)
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        writeln!(f, "{}", padded.join("  ").trim_end())
    };
    line(&HEADINGS.map(str::to_owned))?;
    cells.iter().try_for_each(|row| line(row))
}

fn cells(row: &Row) -> [String; 8] {
    let turn = row.turn.map_or("-".to_owned(), |turn| turn.to_string());
    let standing = match &row.standing {
        Ok(right) => right.clone(),
        Err(reason) => format!("no: {reason}"),
    };
    let facts = row.channel.as_ref().map(|channel| {
        let (serving, _) = keys(channel);
        let counted = if channel.pool.is_keyless() {
            "keyless".to_owned()
        } else {
            let held = match row.held.as_deref() {
                None | Some([]) => String::new(),
                Some(held) => format!(", {} held", held.len()),
            };
            format!("{}/{}{held}", serving.len(), channel.pool.keys().len())
        };
        let left = row.now.as_ref().and_then(|now| now.retries_left);
        let credit = channel.retry.budget.credit();
        let budget = match (&row.now, left) {
            (_, Some(left)) => format!("{left:.1}/{credit}"),
            (Some(_), None) => format!("{credit}/{credit}"),
            (None, None) => format!("?/{credit}"),
        };
        let breaker = match &row.now {
            None => "unknown",
            Some(now) => now.breaker.as_deref().unwrap_or("unused"),
        };
        let retries = channel.retry.max_retries.to_string();
        [counted, retries, budget, breaker.to_owned()]
    });
    let [keys, retries, budget, breaker] = facts.unwrap_or_default();
    let (group, label) = (row.group.clone(), row.label.clone());
    [turn, group, label, standing, keys, retries, budget, breaker]
}

fn details(f: &mut fmt::Formatter<'_>, row: &Row, channel: &Channel) -> fmt::Result {
    writeln!(f, "\n{}", channel.id)?;
    let lacks: Vec<_> = row.lacks.iter().map(Need::as_str).collect();
    let lacks = match lacks.as_slice() {
        [] => "covers all".to_owned(),
        lacks => format!("all but {}", lacks.join(", ")),
    };
    let window = channel
        .context_window()
        .map_or("window not declared".to_owned(), |tokens| {
            format!("window {} tokens", tokens.0)
        });
    let verified = if channel.verified { ", verified" } else { "" };
    writeln!(f, "  contract  {lacks}; {window}{verified}")?;
    let (serving, others) = keys(channel);
    let mut said: Vec<String> = serving.into_iter().map(str::to_owned).collect();
    said.extend(others.iter().map(|(key, why)| format!("{key} ({why})")));
    let said = match (said.as_slice(), channel.pool.is_keyless()) {
        (_, true) => "none needed".to_owned(),
        ([], false) => "none".to_owned(),
        (said, false) => said.join(", "),
    };
    writeln!(f, "  keys      {said}")?;
    let (retry, budget) = (&channel.retry, channel.retry.budget);
    writeln!(
        f,
        "  retries   {} after the first attempt, waits {} to {}; all requests together {} a request and \
         {} a second, {} saved up",
        retry.max_retries,
        time(retry.backoff.initial()),
        time(retry.backoff.max()),
        budget.ratio(),
        budget.per_second(),
        budget.credit(),
    )?;
    let streak = channel
        .breaker
        .streak()
        .map(|failures| format!("after {failures} failures in a row"));
    let ratio = channel.breaker.ratio().map(|rule| {
        format!(
            "below {} % success of at least {} in {}",
            rule.min_success * 100.0,
            rule.min_samples,
            time(rule.window)
        )
    });
    let opens: Vec<String> = streak.into_iter().chain(ratio).collect();
    let opens = match opens.as_slice() {
        [] => "never opens".to_owned(),
        opens => format!("opens {}", opens.join(", or ")),
    };
    writeln!(f, "  breaker   {opens}")?;
    let clocks = &channel.clocks;
    writeln!(
        f,
        "  clocks    connect {}, headers {}, first output {}, idle {}",
        time(clocks.connect),
        time(clocks.headers),
        time(clocks.first_output),
        time(clocks.idle),
    )
}

/// Whole seconds as such, else milliseconds.
fn time(time: Duration) -> String {
    if time.subsec_nanos() == 0 {
        format!("{} s", time.as_secs())
    } else {
        format!("{} ms", time.as_millis())
    }
}

//! A played scenario as lines for a reader: each attempt, and what each caller read.

use backstop_policy::AttemptRow;
use tokio::time::Instant;

use super::caller::{End, Heard};
use super::play::Played;

/// One line an attempt and a caller's event, in order of time; the first column is milliseconds
/// since the start.
pub(crate) fn lines(played: &Played) -> Vec<String> {
    let mut lines: Vec<(u128, String)> = Vec::new();
    for (heard, record) in &played.requests {
        let name = heard.name();
        lines.push((played.millis(heard.sent), format!("{name} sent")));
        for row in record.iter().flat_map(|record| &record.rows) {
            lines.push((row.started.elapsed().as_millis(), attempt(&name, row)));
        }
        lines.extend(heard_lines(played, heard));
        let ended = match (heard.end, heard.status) {
            (End::Whole, Some(status)) => format!("{name} answered: HTTP {status}"),
            (End::Left, _) => format!("{name}: the caller left"),
            (end, status) => format!("{name}: {end:?}, status {status:?}"),
        };
        let terminal = record
            .as_ref()
            .map_or("no record", |record| record.terminal);
        lines.push((played.millis(heard.ended), format!("{ended} ({terminal})")));
    }
    lines.sort_by_key(|(at, _)| *at);
    let lines = lines.into_iter();
    lines
        .map(|(at, line)| format!("{at:>6} ms  {line}"))
        .collect()
}

fn attempt(name: &str, row: &AttemptRow) -> String {
    let number = row.attempt.map_or("-".to_owned(), |n| n.to_string());
    let key = row.key.as_ref().map_or("no key", |key| key.name());
    let status = row
        .status
        .map_or(String::new(), |status| format!(" HTTP {status}"));
    let class = row.class.map_or("", |class| class.name());
    let reason = row.fail_reason.as_deref().unwrap_or_default();
    let waited = match row.waited.as_millis() {
        0 => String::new(),
        ms => format!(", after a wait of {ms} ms"),
    };
    let connection = match row.connection_reused {
        Some(true) => ", reused connection",
        Some(false) => "",
        None => ", no connection",
    };
    format!(
        "{name} attempt {number} {} {} with {key}: {} {} {class} {reason}{status} in {} ms{waited}{connection}",
        row.action,
        row.channel,
        row.outcome,
        row.phase,
        row.total.as_millis(),
    )
}

/// What a caller of a stream read; a run of events at one time is one line.
fn heard_lines(played: &Played, heard: &Heard) -> Vec<(u128, String)> {
    let mut lines: Vec<(Instant, String)> = Vec::new();
    for (at, event) in &heard.events {
        let text = event.text();
        let word = match event.json()["type"].as_str() {
            _ if event.is_error() => "error".to_owned(),
            _ if !text.is_empty() => format!("{text:?}"),
            Some(kind) => kind.to_owned(),
            None if event.data == "[DONE]" => event.data.clone(),
            None => "event".to_owned(),
        };
        match lines.last_mut() {
            Some((last, words)) if last == at => {
                words.push_str(", ");
                words.push_str(&word);
            }
            _ => lines.push((*at, word)),
        }
    }
    let name = heard.name();
    let lines = lines.into_iter();
    lines
        .map(|(at, words)| (played.millis(at), format!("{name} reads {words}")))
        .collect()
}

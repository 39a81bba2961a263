//! `cargo xtask corpus`: a file of recorded failures against the classifier.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use backstop_classifier::corpus::Row;

/// Classifies each row of a file of failures; prints those that differ and how many are right
///
/// A row is right when its class is `want.class` (or, where `ambiguous`, one of `accept`) and its
/// retry hint is exact. The exit status is 1 when a row that is not ambiguous differs, or any hint.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// One JSON object a line, as `backstop_classifier::corpus::Row` describes it
    file: PathBuf,
}

/// Prints the rows that differ, then the score.
pub(crate) fn run(args: &Args) -> Result<()> {
    let text = fs::read_to_string(&args.file)
        .with_context(|| format!("cannot read {}", args.file.display()))?;
    let score = check(&text, |line| println!("{line}"))?;
    let strict = score.strict;
    println!("{}", score.line());
    if strict > 0 {
        bail!("{strict} rows differ that are not ambiguous, or in their hint");
    }
    Ok(())
}

/// How a file of rows went.
#[derive(Debug, PartialEq, Eq)]
struct Score {
    rows: usize,
    right: usize,
    /// Rows that differ and are not ambiguous, or whose hint differs.
    strict: usize,
}

impl Score {
    fn line(&self) -> String {
        let percent = match self.rows {
            0 => 100.0,
            #[allow(clippy::cast_precision_loss, reason = "a file has some hundred rows")]
            rows => self.right as f64 * 100.0 / rows as f64,
        };
        format!("{} of {} right ({percent:.1} %)", self.right, self.rows)
    }
}

/// Checks every line; `differs` is handed one sentence a row that differs, without provider text.
fn check(text: &str, mut differs: impl FnMut(String)) -> Result<Score> {
    let mut score = Score {
        rows: 0,
        right: 0,
        strict: 0,
    };
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim().is_empty() {
            continue;
        }
        let row = Row::parse(line).with_context(|| format!("line {number} is not a row"))?;
        score.rows += 1;
        let Err(difference) = row.check() else {
            score.right += 1;
            continue;
        };
        let verdict = difference.verdict;
        score.strict += usize::from(!row.ambiguous || difference.hint);
        let mut sentence = format!(
            "{}: want {}, got {} ({})",
            row.id,
            row.wanted(),
            verdict.class,
            verdict.signal,
        );
        if difference.hint {
            let millis =
                |hint: Option<u128>| hint.map_or("none".to_owned(), |ms| format!("{ms} ms"));
            let want = millis(row.want.retry_after_ms.map(u128::from));
            let got = millis(verdict.retry_after.map(|hint| hint.as_millis()));
            sentence.push_str(&format!("; hint: want {want}, got {got}"));
        }
        differs(sentence);
    }
    Ok(score)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(status: u16, class: &str, more: &str) -> String {
        format!(
            r#"{{"id":"r","provider":"openai","status":{status},"headers":{{"retry-after":"7"}},"body":"","want":{{"class":"{class}","retry_after_ms":7000}}{more}}}"#
        )
    }

    #[test]
    fn strict_rows_count_ambiguous_ones_may_take_any_they_accept() {
        let text = [
            row(429, "rate_limit", ""),
            String::new(),
            row(429, "quota", ""),
            row(429, "quota", r#","ambiguous":true,"accept":["rate_limit"]"#),
            row(429, "quota", r#","ambiguous":true,"accept":["transient"]"#),
        ]
        .join("\n");
        let mut lines = Vec::new();
        let score = check(&text, |line| lines.push(line)).unwrap();
        assert_eq!(
            score,
            Score {
                rows: 4,
                right: 2,
                strict: 1
            }
        );
        assert_eq!(score.line(), "2 of 4 right (50.0 %)");
        assert_eq!(lines[0], "r: want quota, got rate_limit (status 429)");
        assert!(check("{}", |_| ()).is_err());
    }

    #[test]
    fn a_hint_must_be_exact() {
        let text = row(429, "rate_limit", "").replace("7000", "8000");
        let mut lines = Vec::new();
        check(&text, |line| lines.push(line)).unwrap();
        assert!(lines[0].ends_with("hint: want 8000 ms, got 7000 ms"));
    }
}

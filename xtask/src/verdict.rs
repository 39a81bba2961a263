//! A table of promises: what was measured, what was promised, and whether it was kept.

use std::fmt;

/// A verdict table in the making.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    what: String,
    measured: String,
    promised: String,
    kept: bool,
}

impl Table {
    /// Adds a promise.
    pub(crate) fn row(
        &mut self,
        what: impl Into<String>,
        measured: impl Into<String>,
        promised: impl Into<String>,
        kept: bool,
    ) {
        self.rows.push(Row {
            what: what.into(),
            measured: measured.into(),
            promised: promised.into(),
            kept,
        });
    }

    /// Whether a promise was broken, or nothing was promised at all.
    pub(crate) fn is_broken(&self) -> bool {
        self.rows.is_empty() || self.rows.iter().any(|row| !row.kept)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |text: fn(&Row) -> &str, head: &str| {
            let longest = self.rows.iter().map(|row| text(row).chars().count()).max();
            longest.unwrap_or(0).max(head.len())
        };
        let (one, two, three) = (
            width(|row| &row.what, "promise"),
            width(|row| &row.measured, "measured"),
            width(|row| &row.promised, "promised"),
        );
        writeln!(
            f,
            "{:<one$}  {:>two$}  {:<three$}  verdict",
            "promise", "measured", "promised"
        )?;
        for row in &self.rows {
            let verdict = if row.kept { "kept" } else { "BROKEN" };
            writeln!(
                f,
                "{:<one$}  {:>two$}  {:<three$}  {verdict}",
                row.what, row.measured, row.promised
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_broken_promise_breaks_the_table() {
        let mut table = Table::default();
        assert!(table.is_broken(), "nothing was shown");
        table.row("calls", "118", "<= 130", true);
        assert!(!table.is_broken());
        table.row("a longer promise", "7", "0", false);
        assert!(table.is_broken());
        let text = table.to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "promise           measured  promised  verdict");
        assert_eq!(lines[1], "calls                  118  <= 130    kept");
        assert_eq!(lines[2], "a longer promise         7  0         BROKEN");
    }
}

//! Questions to the ledger on disk: `backstop trail` and `backstop journeys`.

pub(crate) mod journeys;
pub(crate) mod trail;

use std::path::PathBuf;

use anyhow::Context;
use backstop_ledger::Reader;

use crate::Source;
use crate::environment::read;

/// Which ledger is asked.
#[derive(Debug, clap::Args)]
struct Where {
    #[command(flatten)]
    source: Source,

    /// The ledger's folder, in place of the one that the configuration names
    #[arg(long, value_name = "FOLDER")]
    ledger: Option<PathBuf>,
}

/// What is wrong with the question.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Error {
    /// There is nothing on disk to ask.
    NoLedger,
    /// Nothing is known of it.
    UnknownRequest { id: String, path: PathBuf },
    /// Not a span of time.
    BadSpan { typed: String },
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoLedger => f.write_str(
                "no ledger is configured, so requests are kept in memory alone; a [ledger] section in \
                 the configuration keeps them on disk, and --ledger names a folder",
            ),
            Self::UnknownRequest { id, path } => write!(
                f,
                "the ledger at {} knows no request {id}; `backstop journeys` lists those it knows",
                path.display()
            ),
            Self::BadSpan { typed } => {
                write!(f, "{typed} is no span of time; expected 30s, 15m, 1h or 7d")
            }
        }
    }
}

impl std::error::Error for Error {}

impl Where {
    fn path(&self) -> anyhow::Result<PathBuf> {
        if let Some(folder) = &self.ledger {
            return Ok(folder.clone());
        }
        let file = self.source.file();
        let snapshot = read(file.as_deref(), 1)?;
        let ledger = snapshot.ledger.ok_or(Error::NoLedger)?;
        Ok(ledger.path)
    }

    fn open(&self) -> anyhow::Result<(Reader, PathBuf)> {
        let path = self.path()?;
        let reader =
            Reader::open(&path).with_context(|| format!("cannot ask {}", path.display()))?;
        Ok((reader, path))
    }
}

/// Wall time as `2026-11-30 20:15:07.123` UTC.
fn stamp(millis: i64) -> String {
    let Ok(time) = jiff::Timestamp::from_millisecond(millis) else {
        return millis.to_string();
    };
    let text = time.to_string();
    let (date, clock) = text.split_once('T').unwrap_or((&text, ""));
    let clock = clock.trim_end_matches('Z');
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    format!("{date} {clock}.{fraction:0<3.3}")
}

/// A span as a person reads it.
fn span(millis: i64) -> String {
    match millis {
        0..1000 => format!("{millis} ms"),
        1000..60_000 => format!("{}.{} s", millis / 1000, millis % 1000 / 100),
        _ => format!("{} min {} s", millis / 60_000, millis % 60_000 / 1000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_for_people() {
        assert_eq!(stamp(1_796_068_507_120), "2026-11-30 19:55:07.120");
        assert_eq!(stamp(1_796_068_507_000), "2026-11-30 19:55:07.000");
        for (millis, text) in [(7, "7 ms"), (1250, "1.2 s"), (61_000, "1 min 1 s")] {
            assert_eq!(span(millis), text);
        }
    }
}

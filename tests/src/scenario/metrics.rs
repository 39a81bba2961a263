//! The metrics page as numbers, and the one table from scenarios' names to the gateway's.

use backstop_telemetry::Metrics;

use super::phrase::{self, Holes};

/// The samples of a metrics page.
#[derive(Debug, Clone)]
pub(crate) struct Numbers {
    page: String,
}

impl Numbers {
    pub(crate) fn of(metrics: &Metrics) -> Self {
        Self {
            page: metrics.render(),
        }
    }

    pub(crate) fn page(&self) -> &str {
        &self.page
    }

    /// The sum of all samples of `name` that have each of `labels`.
    pub(crate) fn sum(&self, name: &str, labels: &[(&str, Label<'_>)]) -> f64 {
        let samples = self.page.lines().filter(|line| !line.starts_with('#'));
        let fitting = samples.filter_map(|line| {
            let (series, value) = line.rsplit_once(' ')?;
            let (found, rest) = series.split_once('{').unwrap_or((series, ""));
            let has = |(label, wanted): &(&str, Label<'_>)| {
                let value = rest.split(&format!("{label}=\"")).nth(1)?;
                let value = value.split('"').next()?;
                Some(match wanted {
                    Label::Is(word) => value == *word,
                    Label::Begins(word) => value.starts_with(word),
                })
            };
            let fits = found == name && labels.iter().all(|label| has(label).unwrap_or(false));
            if fits {
                value.parse::<f64>().ok()
            } else {
                None
            }
        });
        fitting.sum()
    }

    pub(crate) fn gauge(&self, name: &str) -> f64 {
        self.sum(name, &[])
    }
}

/// What a label must say.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Label<'a> {
    Is(&'a str),
    Begins(&'a str),
}

/// A scenario's name for a counter, and how the gateway counts that.
type Row = (&'static str, fn(&Numbers, &Holes<'_>) -> f64);

/// Meaning, not spelling. Counters are compared as they grew since the start.
const TABLE: [Row; 6] = [
    ("requests{outcome=success}", |numbers, _| {
        // By what it took: `success`, `success_after_retry`, ...
        let label = Label::Begins("success");
        numbers.sum("backstop_requests_total", &[("outcome", label)])
    }),
    ("requests{outcome=<o>}", |numbers, holes| {
        let label = Label::Is(holes.text("o"));
        numbers.sum("backstop_requests_total", &[("outcome", label)])
    }),
    ("attempt_failures{class=<c>}", |numbers, holes| {
        let label = Label::Is(holes.text("c"));
        numbers.sum("backstop_attempts_total", &[("class", label)])
    }),
    ("breaker_failures{upstream=<u>}", |numbers, holes| {
        let label = Label::Is(holes.text("u"));
        numbers.sum("backstop_breaker_failures_total", &[("provider", label)])
    }),
    ("upstream_calls{<u>}", |numbers, holes| {
        let label = Label::Is(holes.text("u"));
        numbers.sum("backstop_attempts_total", &[("provider", label)])
    }),
    ("config_reloads{result=ok}", |numbers, _| {
        let label = Label::Is("taken");
        numbers.sum("backstop_config_reloads_total", &[("result", label)])
    }),
];

/// How much a counter grew from `before` to `after`; `None` when no row has its name.
pub(crate) fn growth(name: &str, before: &Numbers, after: &Numbers) -> Option<f64> {
    TABLE.iter().find_map(|(pattern, read)| {
        let holes = phrase::read(pattern, name)?;
        Some(read(after, &holes) - read(before, &holes))
    })
}

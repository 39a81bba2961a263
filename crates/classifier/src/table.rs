//! A provider's vocabulary as data, and its compiled form.

use crate::evidence::Family;
use crate::index::{Index, Patterns};
use crate::verdict::{Class, Kind};

/// What one provider says, with where that is documented.
#[derive(Debug)]
pub struct Table {
    /// Whose table this is.
    pub family: Family,
    /// Where it is documented; what was recorded lies under `corpus/` with its own source.
    pub source: &'static str,
    /// The day the rows were last revised, `YYYY-MM-DD`.
    pub revised: &'static str,
    /// Codes, types, status words and exception names.
    ///
    /// Case, camel humps and separators do not matter: `RateLimitReached` meets
    /// `rate_limit_reached`. A `*` stands for any words.
    pub codes: &'static [Rule],
    /// Phrases of whole words in messages, read top to bottom.
    ///
    /// ` .. ` stands for up to six words, `(a|b c)` for one of several wordings, a leading `^` for
    /// the start of the message, a closing `$` for its end, `_` for a quotation, `@model` for the name of a model resource, `@path` for that of a request field.
    pub phrases: &'static [Rule],
    /// Statuses that mean something else here than anywhere else; read last.
    pub statuses: &'static [(u16, Class)],
}

/// One row: what is said, and what it means.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// The code or phrase.
    pub pattern: &'static str,
    /// What it means.
    pub class: Class,
    /// Finer, where there is more to say.
    pub kind: Option<Kind>,
    /// Under which statuses the row is read.
    pub when: When,
    /// Whether the message is asked first: true for codes that say no more than a status does.
    pub weak: bool,
}

/// Under which statuses a row is read. Rows for a class that a status rules out are never read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Under all.
    Always,
    /// Where a request is refused for what it holds: 400, 409, 412, 413, 415, 422, or no status.
    Refused,
    /// As `Refused`, or a 404.
    RefusedOrMissing,
    /// Under one status alone.
    Only(u16),
    /// Anywhere but under a 5xx.
    NotServer,
    /// Under a 5xx, or inside a stream that began with a 200.
    ServerOrStream,
}

impl When {
    /// Whether the row is read under this status; `None` is an error in a stream without one.
    pub(crate) fn holds(self, status: Option<u16>) -> bool {
        let refused = matches!(status, None | Some(400 | 409 | 412 | 413 | 415 | 422));
        let server = matches!(status, Some(500..=599));
        match self {
            Self::Always => true,
            Self::Refused => refused,
            Self::RefusedOrMissing => refused || status == Some(404),
            Self::Only(only) => status == Some(only),
            Self::NotServer => !server,
            Self::ServerOrStream => server || status.is_none(),
        }
    }
}

impl Rule {
    /// A row read under all statuses.
    #[must_use]
    pub const fn new(pattern: &'static str, class: Class) -> Self {
        Self {
            pattern,
            class,
            kind: None,
            when: When::Always,
            weak: false,
        }
    }

    /// The same row with a finer reading.
    #[must_use]
    pub const fn kind(self, kind: Kind) -> Self {
        Self {
            kind: Some(kind),
            ..self
        }
    }

    /// The same row under some statuses only.
    #[must_use]
    pub const fn when(self, when: When) -> Self {
        Self { when, ..self }
    }

    /// The same row, but the message is asked first.
    #[must_use]
    pub const fn weak(self) -> Self {
        Self { weak: true, ..self }
    }
}

/// A table with its indexes, built once.
pub(crate) struct Compiled {
    pub(crate) table: &'static Table,
    pub(crate) codes: Index,
    pub(crate) phrases: Index,
}

impl Compiled {
    pub(crate) fn new(table: &'static Table) -> Self {
        let patterns = |rules: &'static [Rule]| rules.iter().map(|rule| rule.pattern);
        Self {
            table,
            codes: Index::new(Patterns::Codes, patterns(table.codes)),
            phrases: Index::new(Patterns::Phrases, patterns(table.phrases)),
        }
    }
}

//! Journeys as they are read back: of the file, and of segments that are not in it yet.

use rusqlite::{Row, ToSql, params_from_iter};
use serde::Serialize;

use super::Sqlite;
use crate::Error;

macro_rules! read_back {
    ($(#[$doc:meta])* $name:ident from $table:literal { $($(#[$field_doc:meta])* $field:ident: $type:ty),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Serialize)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $type,)+
            /// The rows of its trail, in order.
            #[serde(skip_serializing_if = "Vec::is_empty")]
            pub attempt_trail: Vec<Attempt>,
        }

        impl $name {
            const SELECT: &str = concat!("SELECT ", read_back!(@columns $($field),+), " FROM ", $table);

            fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
                Ok(Self {
                    $($field: row.get(stringify!($field))?,)+
                    attempt_trail: Vec::new(),
                })
            }
        }
    };
    (@columns $first:ident $(, $rest:ident)*) => {
        concat!(stringify!($first) $(, ", ", stringify!($rest))*)
    };
}

read_back! {
    /// One journey, as the ledger has it. What is not known is `None`.
    Journey from "journeys" {
        /// The ledger's own number of it; rises with the time of acceptance.
        id: i64,
        /// The request's id.
        request_id: String,
        /// Whose request it was.
        caller: Option<String>,
        /// The route; `direct` where the caller named `provider/model`.
        route: String,
        /// What the caller put in `model`.
        model_requested: String,
        /// The caller's dialect.
        dialect: String,
        /// What was asked for, such as `generate` or `embed`.
        operation: String,
        /// Whether a stream was asked for.
        stream: bool,
        /// Which repetition the caller's SDK said this was.
        caller_retry: Option<u32>,
        /// Wall time of acceptance, milliseconds since 1970.
        started_ms: i64,
        /// The configuration it ran under.
        config_version: i64,
        /// How it ended; `None` while it is under way, `unknown` when its process ended first.
        terminal_reason: Option<String>,
        /// The status the caller got.
        status: Option<u16>,
        /// Who answered.
        provider: Option<String>,
        /// With which model.
        model_served: Option<String>,
        /// By which right: `direct`, `retry`, `fallback`, `substitution`.
        action: Option<String>,
        /// From acceptance to the end, milliseconds.
        total_ms: Option<i64>,
        /// Events of a stream that reached the caller.
        delivered_events: Option<i64>,
    }
}

macro_rules! row_back {
    ($(#[$doc:meta])* $name:ident { $($field:ident: $type:ty),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Serialize)]
        #[allow(missing_docs, reason = "the columns of the table, which docs/ledger.md describes")]
        pub struct $name {
            /// Place in the trail.
            pub seq: u32,
            $(#[serde(skip_serializing_if = "Option::is_none")] pub $field: $type,)+
        }

        impl $name {
            const SELECT: &str = concat!(
                "SELECT journey, seq", $(", ", stringify!($field),)+
                " FROM attempts WHERE journey = ?1 ORDER BY seq"
            );

            fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
                Ok(Self {
                    seq: row.get("seq")?,
                    $($field: row.get(stringify!($field))?,)+
                })
            }

            /// What either knows; `self` first.
            fn or(self, other: Self) -> Self {
                Self {
                    seq: self.seq,
                    $($field: self.$field.or(other.$field),)+
                }
            }
        }
    };
}

row_back! {
    /// One row of a trail, as the ledger has it.
    Attempt {
        attempt: Option<u32>,
        action: Option<String>,
        channel: Option<String>,
        provider: Option<String>,
        model: Option<String>,
        key_name: Option<String>,
        dialect: Option<String>,
        config_version: Option<i64>,
        started_ms: Option<i64>,
        queue_ms: Option<i64>,
        waited_ms: Option<i64>,
        outcome: Option<String>,
        class: Option<String>,
        failure_kind: Option<String>,
        signal: Option<String>,
        fail_reason: Option<String>,
        provider_code: Option<String>,
        status: Option<u16>,
        phase: Option<String>,
        upstream_phase: Option<String>,
        started_output: Option<bool>,
        connection: Option<String>,
        connect_ms: Option<i64>,
        headers_ms: Option<i64>,
        first_output_ms: Option<i64>,
        total_ms: Option<i64>,
        retry_after_ms: Option<i64>,
        input_tokens: Option<i64>,
        cache_read_tokens: Option<i64>,
        cache_write_tokens: Option<i64>,
        output_tokens: Option<i64>,
        reasoning_tokens: Option<i64>,
        cost_micro_usd: Option<i64>,
    }
}

/// Which journeys are asked for. Every member that is set narrows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Of this request.
    pub request_id: Option<String>,
    /// Accepted at this wall time or later, milliseconds since 1970.
    pub since_ms: Option<i64>,
    /// With an attempt that failed with this class.
    pub class: Option<String>,
    /// On this route.
    pub route: Option<String>,
    /// Of this caller.
    pub caller: Option<String>,
    /// With an attempt at this provider.
    pub provider: Option<String>,
    /// With this terminal reason; `under_way` for those without one.
    pub outcome: Option<String>,
    /// At most this many, the latest.
    pub limit: usize,
}

/// What an operator may ask for that has no terminal reason yet.
pub(crate) const UNDER_WAY: &str = "under_way";

impl Filter {
    /// Whether a journey is among them.
    pub(crate) fn takes(&self, journey: &Journey) -> bool {
        let is = |asked: &Option<String>, found: Option<&str>| {
            asked.as_deref().is_none_or(|asked| found == Some(asked))
        };
        let mut rows = journey.attempt_trail.iter();
        is(&self.request_id, Some(&journey.request_id))
            && self
                .since_ms
                .is_none_or(|since| journey.started_ms >= since)
            && is(&self.route, Some(&journey.route))
            && is(&self.caller, journey.caller.as_deref())
            && is(
                &self.outcome,
                Some(journey.terminal_reason.as_deref().unwrap_or(UNDER_WAY)),
            )
            && self
                .class
                .as_ref()
                .is_none_or(|class| rows.clone().any(|row| row.class.as_ref() == Some(class)))
            && self.provider.as_ref().is_none_or(|provider| {
                rows.any(|row| row.attempt.is_some() && row.provider.as_ref() == Some(provider))
            })
    }
}

impl Sqlite {
    /// The latest journeys that `filter` takes, newest first, with their trails.
    pub(crate) fn journeys(&self, filter: &Filter) -> Result<Vec<Journey>, Error> {
        let mut question = format!("{} WHERE 1", Journey::SELECT);
        let mut values: Vec<&dyn ToSql> = Vec::new();
        let mut narrow = |condition: &str, value| {
            question.push_str(condition);
            values.push(value);
        };
        if let Some(id) = &filter.request_id {
            narrow(" AND request_id = ?", id);
        }
        if let Some(since) = &filter.since_ms {
            narrow(" AND started_ms >= ?", since);
        }
        if let Some(route) = &filter.route {
            narrow(" AND route = ?", route);
        }
        if let Some(caller) = &filter.caller {
            narrow(" AND caller = ?", caller);
        }
        if let Some(class) = &filter.class {
            narrow(
                " AND EXISTS (SELECT 1 FROM attempts WHERE journey = id AND class = ?)",
                class,
            );
        }
        if let Some(provider) = &filter.provider {
            narrow(
                " AND EXISTS (SELECT 1 FROM attempts WHERE journey = id AND attempt IS NOT NULL \
                 AND attempts.provider = ?)",
                provider,
            );
        }
        if let Some(outcome) = &filter.outcome {
            // What ended in a segment is still under way here, so its other ends are looked at too.
            narrow(
                " AND coalesce(terminal_reason, 'under_way') IN (?, 'under_way', 'unknown')",
                outcome,
            );
        }
        question.push_str(" ORDER BY id DESC LIMIT ");
        question.push_str(&filter.limit.saturating_mul(2).min(1_000_000).to_string());
        let mut question = self.connection().prepare(&question)?;
        let found = question.query_map(params_from_iter(values), Journey::from_row)?;
        let mut journeys: Vec<Journey> = found.collect::<Result<_, _>>()?;
        for journey in &mut journeys {
            journey.attempt_trail = self.rows(journey.id)?;
        }
        Ok(journeys)
    }

    /// One journey by the ledger's own number.
    pub(crate) fn journey(&self, id: i64) -> Result<Option<Journey>, Error> {
        let question = format!("{} WHERE id = ?1", Journey::SELECT);
        let mut question = self.connection().prepare_cached(&question)?;
        let mut found = question.query_map([id], Journey::from_row)?;
        let Some(journey) = found.next().transpose()? else {
            return Ok(None);
        };
        let attempt_trail = self.rows(id)?;
        Ok(Some(Journey {
            attempt_trail,
            ..journey
        }))
    }

    /// The rows of a journey, whether the journey itself is here or not.
    pub(crate) fn rows(&self, journey: i64) -> Result<Vec<Attempt>, Error> {
        let mut question = self.connection().prepare_cached(Attempt::SELECT)?;
        let rows = question.query_map([journey], Attempt::from_row)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The numbers of all journeys that anything is known of.
    pub(crate) fn ids(&self) -> Result<Vec<i64>, Error> {
        let question = "SELECT id FROM journeys UNION SELECT journey FROM attempts";
        let mut question = self.connection().prepare(question)?;
        let ids = question.query_map([], |row| row.get(0))?;
        Ok(ids.collect::<Result<_, _>>()?)
    }
}

impl Journey {
    /// One journey of which two places know something; the place that knows its end knows it all.
    pub(crate) fn merged(self, other: Self) -> Self {
        let (mut first, second) = if self.terminal_reason.is_some() {
            (self, other)
        } else {
            (other, self)
        };
        first.attempt_trail = merged_rows(first.attempt_trail, second.attempt_trail);
        first
    }
}

/// The rows that either place knows of.
pub(crate) fn merged_rows(mut rows: Vec<Attempt>, others: Vec<Attempt>) -> Vec<Attempt> {
    for other in others {
        match rows.iter_mut().find(|row| row.seq == other.seq) {
            Some(row) => *row = row.clone().or(other),
            None => rows.push(other),
        }
    }
    rows.sort_by_key(|row| row.seq);
    rows
}

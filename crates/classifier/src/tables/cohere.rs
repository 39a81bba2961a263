//! Cohere: `{"id","message"[,"error_type"]}`; most errors have words only.
//!
//! A trial key's limits are a 429 that says `limited to`. A removed model is a 404 that says so.

use Class::{CallerFault, Credential, RateLimit};
use Kind::ContextWindow;
use When::Refused;

use crate::evidence::Family;
use crate::table::{Rule, Table, When};
use crate::verdict::{Class, Kind};

pub(super) const TABLE: Table = Table {
    family: Family::Cohere,
    source: "https://docs.cohere.com/docs/rate-limits; the failure corpus under `corpus/`",
    revised: "2026-11-30",
    codes: &[Rule::new("too_many_tokens", CallerFault).kind(ContextWindow)],
    phrases: &[
        Rule::new("too many tokens", CallerFault)
            .kind(ContextWindow)
            .when(Refused),
        Rule::new("using a trial key .. limited to", RateLimit),
        Rule::new("invalid api token", Credential),
        Rule::new("no api key supplied", Credential),
    ],
    statuses: &[],
};

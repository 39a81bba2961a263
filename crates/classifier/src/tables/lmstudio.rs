//! LM Studio: OpenAI's envelope, or `{"error":"words"}`.
//!
//! A model that was unloaded between two requests, or crashed, is a 400.

use Class::{CallerFault, ModelAccess, Transient};
use Kind::ContextWindow;

use crate::evidence::Family;
use crate::table::{Rule, Table};
use crate::verdict::{Class, Kind};

pub(super) const TABLE: Table = Table {
    family: Family::LmStudio,
    source: "the failure corpus under `corpus/` alone",
    revised: "2026-11-30",
    codes: &[],
    phrases: &[
        Rule::new("no models loaded", ModelAccess),
        Rule::new("context length of only", CallerFault).kind(ContextWindow),
        Rule::new("^model unloaded", Transient),
        Rule::new("model has crashed", Transient),
        Rule::new("(model|operation) .. cancelled", Transient),
    ],
    statuses: &[],
};

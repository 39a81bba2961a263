//! llama.cpp's server: `{"error":{code,message,type}}` with the status as `code`; old builds answer in
//! plain text.

use Class::{CallerFault, Credential, Transient};
use Kind::ContextWindow;

use crate::evidence::Family;
use crate::table::{Rule, Table};
use crate::verdict::{Class, Kind};

pub(super) const TABLE: Table = Table {
    family: Family::LlamaCpp,
    source: "the failure corpus under `corpus/` alone",
    revised: "2026-11-30",
    codes: &[
        Rule::new("exceed_context_size_error", CallerFault).kind(ContextWindow),
        Rule::new("authentication_error", Credential),
        Rule::new("unavailable_error", Transient),
        Rule::new("server_error", Transient).weak(),
    ],
    phrases: &[
        Rule::new("available context size", CallerFault).kind(ContextWindow),
        Rule::new("^loading model", Transient),
    ],
    statuses: &[],
};

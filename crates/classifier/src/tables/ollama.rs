//! Ollama: `{"error":"words"}`, or OpenAI's envelope on its compatible route; no codes of its own.
//!
//! The hosted models add limits over time and subscriptions.

use Class::{CallerFault, ModelAccess, RateLimit, Transient};
use Kind::{ContextWindow, Overloaded};
use When::{NotServer, Refused};

use crate::evidence::Family;
use crate::table::{Rule, Table, When};
use crate::verdict::{Class, Kind};

pub(super) const TABLE: Table = Table {
    family: Family::Ollama,
    source: "the failure corpus under `corpus/` alone",
    revised: "2026-11-30",
    codes: &[],
    phrases: &[
        Rule::new("try pulling it first", ModelAccess),
        Rule::new("requires a subscription", ModelAccess).when(NotServer),
        Rule::new(
            "does not support (tools|thinking|chat|generate|embeddings|vision)",
            CallerFault,
        )
        .when(Refused),
        Rule::new("prompt too long", CallerFault).kind(ContextWindow),
        Rule::new("server busy", Transient).kind(Overloaded),
        Rule::new("(hourly|weekly|daily|session) usage limit", RateLimit),
        Rule::new("requires more system memory", Transient),
        Rule::new("runner process", Transient),
    ],
    statuses: &[],
};

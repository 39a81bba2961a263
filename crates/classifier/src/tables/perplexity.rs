//! Perplexity: OpenAI's envelope with an integer `code` and telling types.

use Class::{CallerFault, ModelAccess};
use Kind::ContextWindow;

use crate::evidence::Family;
use crate::table::{Rule, Table};
use crate::verdict::{Class, Kind};

pub(super) const TABLE: Table = Table {
    family: Family::Perplexity,
    source: "the failure corpus under `corpus/` alone",
    revised: "2026-11-30",
    codes: &[
        Rule::new("invalid_model", ModelAccess),
        Rule::new("too_many_prompt_tokens", CallerFault).kind(ContextWindow),
    ],
    phrases: &[],
    statuses: &[],
};

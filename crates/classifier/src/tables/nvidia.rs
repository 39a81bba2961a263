//! NVIDIA's hosted NIM: `{"status","title","detail"}`.
//!
//! A model this account lacks is a missing `Function`, without the word model.

use Class::{ModelAccess, ModelGone};

use crate::evidence::Family;
use crate::table::{Rule, Table};
use crate::verdict::Class;

pub(super) const TABLE: Table = Table {
    family: Family::Nvidia,
    source: "https://github.com/Alishahryar1/free-claude-code/issues/956; the failure corpus under `corpus/`",
    revised: "2026-11-30",
    codes: &[],
    phrases: &[
        Rule::new("not found for account", ModelAccess),
        Rule::new("end of life", ModelGone),
    ],
    statuses: &[],
};

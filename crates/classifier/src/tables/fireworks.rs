//! Fireworks: OpenAI's envelope with upper-case codes.
//!
//! An unpaid account is a 412 `PRECONDITION_FAILED`; a model this account cannot reach a 404 `NOT_FOUND`.

use Class::{ModelAccess, Quota};

use crate::evidence::Family;
use crate::table::{Rule, Table};
use crate::verdict::Class;

pub(super) const TABLE: Table = Table {
    family: Family::Fireworks,
    source: "https://docs.fireworks.ai/guides/inference-error-codes; the failure corpus under `corpus/`",
    revised: "2026-11-30",
    codes: &[],
    phrases: &[
        Rule::new("monthly spending limit", Quota),
        Rule::new("failure to pay", Quota),
        Rule::new("not found inaccessible", ModelAccess),
    ],
    statuses: &[],
};

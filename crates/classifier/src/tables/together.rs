//! Together: OpenAI's envelope, or `error` as the code itself beside `message`.
//!
//! `credit_limit` is the type of a plain limit per minute, so it decides nothing.

use Class::{CallerFault, ModelAccess};
use When::Refused;

use crate::evidence::Family;
use crate::table::{Rule, Table, When};
use crate::verdict::Class;

pub(super) const TABLE: Table = Table {
    family: Family::Together,
    source: "https://docs.together.ai/docs/error-codes; the failure corpus under `corpus/`",
    revised: "2026-11-30",
    codes: &[Rule::new("model_not_available", ModelAccess)],
    phrases: &[
        Rule::new("non serverless model", ModelAccess),
        Rule::new("input validation error", CallerFault).when(Refused),
    ],
    statuses: &[],
};

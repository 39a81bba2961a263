//! DeepSeek: OpenAI's envelope; `code` is `invalid_request_error` for nearly everything.
//!
//! A spent account is a 402.

use Class::{CallerFault, Credential, ModelAccess, Quota};
use Kind::ContentPolicy;

use crate::evidence::Family;
use crate::table::{Rule, Table};
use crate::verdict::{Class, Kind};

pub(super) const TABLE: Table = Table {
    family: Family::DeepSeek,
    source: "https://api-docs.deepseek.com/quick_start/error_codes; the failure corpus under `corpus/`",
    revised: "2026-11-30",
    codes: &[],
    phrases: &[
        Rule::new("model not exist", ModelAccess),
        Rule::new("insufficient balance", Quota),
        Rule::new("authentication fails", Credential),
        Rule::new("content exists risk", CallerFault).kind(ContentPolicy),
    ],
    statuses: &[],
};

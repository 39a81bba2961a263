//! Cerebras: OpenAI's fields at top level, without an `error` object.
//!
//! Codes say `quota` where they mean a limit over time.

use Class::{CallerFault, Credential, ModelAccess, Quota, RateLimit};
use Kind::{ContextWindow, Overloaded};

use crate::evidence::Family;
use crate::table::{Rule, Table};
use crate::verdict::{Class, Kind};

pub(super) const TABLE: Table = Table {
    family: Family::Cerebras,
    source: "https://inference-docs.cerebras.ai/support/error; the failure corpus under `corpus/`",
    revised: "2026-11-30",
    codes: &[
        Rule::new("request_quota_exceeded", RateLimit),
        Rule::new("token_quota_exceeded", RateLimit),
        Rule::new("queue_exceeded", RateLimit).kind(Overloaded),
        Rule::new("too_many_requests_error", RateLimit),
        Rule::new("wrong_api_key", Credential),
        Rule::new("model_not_found", ModelAccess),
        Rule::new("payment_required", Quota),
        Rule::new("context_length_exceeded", CallerFault).kind(ContextWindow),
    ],
    phrases: &[],
    statuses: &[],
};

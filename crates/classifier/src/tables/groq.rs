//! Groq: OpenAI's envelope plus `failed_generation`, which is the model's text and is never read.
//!
//! A limit per minute that one request exceeds alone is a 413 with code `rate_limit_exceeded`; 498 is a
//! full flex tier.

use Class::{CallerFault, Credential, ModelAccess, ModelGone, Quota, RateLimit, Transient};
use Kind::Overloaded;

use crate::evidence::Family;
use crate::table::{Rule, Table};
use crate::verdict::{Class, Kind};

pub(super) const TABLE: Table = Table {
    family: Family::Groq,
    source: "https://console.groq.com/docs/errors; the failure corpus under `corpus/`",
    revised: "2026-11-30",
    codes: &[
        Rule::new("model_decommissioned", ModelGone),
        Rule::new("model_permission_blocked_*", ModelAccess),
        Rule::new("model_terms_required", ModelAccess),
        Rule::new("model_not_found", ModelAccess),
        Rule::new("organization_restricted", Credential),
        Rule::new("blocked_api_access", Quota),
        Rule::new("spend_*", Quota),
        Rule::new("rate_limit_exceeded", RateLimit),
        Rule::new("capacity_exceeded", Transient).kind(Overloaded),
        Rule::new("tool_use_failed", CallerFault),
        Rule::new("json_validate_failed", CallerFault),
    ],
    phrases: &[Rule::new("requires terms acceptance", ModelAccess)],
    statuses: &[],
};

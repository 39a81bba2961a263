//! Azure OpenAI and AI Foundry: OpenAI's envelope, where `code` is a name or a status as a string.
//!
//! The prompt filter is a 400 with `content_filter` and an `innererror`. A 410 is a retired deployment.

use Class::{CallerFault, Credential, ModelAccess, ModelGone, Quota, RateLimit, Transient};
use Kind::Overloaded;

use crate::evidence::Family;
use crate::table::{Rule, Table};
use crate::verdict::{Class, Kind};

pub(super) const TABLE: Table = Table {
    family: Family::Azure,
    source: "the failure corpus under `corpus/` alone",
    revised: "2026-11-30",
    codes: &[
        Rule::new("deployment_not_found", ModelAccess),
        Rule::new("service_model_deprecating", ModelGone),
        Rule::new("service_model_deprecated", ModelGone),
        Rule::new("model_deprecated", ModelGone),
        Rule::new("rate_limit_reached", RateLimit),
        Rule::new("no_capacity", Transient).kind(Overloaded),
        Rule::new("operation_not_supported", CallerFault),
        Rule::new("access_denied_due_to_invalid_subscription_key", Credential),
        Rule::new("subscription_not_registered", Credential),
    ],
    phrases: &[
        Rule::new("exceeded your current quota", Quota),
        Rule::new("exceeded .. token rate limit", RateLimit),
        Rule::new("exceeded .. call rate limit", RateLimit),
    ],
    statuses: &[(410, ModelGone)],
};

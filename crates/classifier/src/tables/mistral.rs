//! Mistral: `{"detail"}` on a bad key and from its validator, else `{"object":"error",message,type,code}`.
//!
//! Codes are numbers as strings: 1300 is a limit, 1500 an unknown model, 3505 a full tier.

use Class::{CallerFault, ModelAccess, RateLimit, Transient};
use Kind::{ContentPolicy, Overloaded};
use When::Refused;

use crate::evidence::Family;
use crate::table::{Rule, Table, When};
use crate::verdict::{Class, Kind};

pub(super) const TABLE: Table = Table {
    family: Family::Mistral,
    source: "https://github.com/continuedev/continue/issues/6185 and https://github.com/raycast/extensions/issues/31107; the failure corpus under `corpus/`",
    revised: "2026-11-30",
    codes: &[
        Rule::new("invalid_model", ModelAccess),
        Rule::new("unknown_model", ModelAccess),
        Rule::new("model_not_found", ModelAccess),
        Rule::new("1500", ModelAccess),
        Rule::new("rate_limited", RateLimit),
        Rule::new("1300", RateLimit),
        Rule::new("service_tier_capacity_exceeded", Transient).kind(Overloaded),
        Rule::new("3505", Transient).kind(Overloaded),
        Rule::new("guardrail_violation", CallerFault).kind(ContentPolicy),
        Rule::new("invalid_request_*", CallerFault)
            .weak()
            .when(Refused),
    ],
    phrases: &[Rule::new("service tier capacity exceeded", Transient).kind(Overloaded)],
    statuses: &[],
};

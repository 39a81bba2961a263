//! OpenAI: `{"error":{message,type,param,code}}`.
//!
//! A spent account is a 429 with code `insufficient_quota`; a missing model is a 404 on chat and a 400 on
//! Responses, both with code `model_not_found`; a retired model has that code too and says so in words.

use Class::{CallerFault, Credential, Quota, Transient};
use Kind::{ContentPolicy, Overloaded};

use crate::evidence::Family;
use crate::table::{Rule, Table};
use crate::verdict::{Class, Kind};

pub(super) const TABLE: Table = Table {
    family: Family::OpenAi,
    source: "https://developers.openai.com/docs/guides/error-codes; the failure corpus under `corpus/`",
    revised: "2026-11-30",
    codes: &[
        Rule::new("slow_down", Transient).kind(Overloaded),
        Rule::new("credit_balance_exhausted", Quota),
        Rule::new("image_generation_user_error", CallerFault),
        Rule::new("mismatched_organization", Credential),
        Rule::new("invalid_organization", Credential),
        Rule::new("ip_not_authorized", Credential),
    ],
    phrases: &[
        Rule::new("exceeded your current quota", Quota),
        Rule::new("reached your usage limit", Quota),
        Rule::new("violation of our usage policies", CallerFault).kind(ContentPolicy),
    ],
    statuses: &[],
};

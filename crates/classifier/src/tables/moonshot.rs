//! Moonshot (Kimi): OpenAI's envelope; `type` names the failure, `code` is absent.
//!
//! An account without money is a 403 or 429 `exceeded_current_quota_error`; a busy engine is a 429.

use Class::{CallerFault, Credential, ModelAccess, Quota, RateLimit};
use Kind::{ContentPolicy, ContextWindow};
use When::Only;

use crate::evidence::Family;
use crate::table::{Rule, Table, When};
use crate::verdict::{Class, Kind};

pub(super) const TABLE: Table = Table {
    family: Family::Moonshot,
    source: "https://www.kimi.com/code/docs/en/kimi-code/error-reference.html and https://github.com/MoonshotAI/kimi-cli/issues/2011; the failure corpus under `corpus/`",
    revised: "2026-11-30",
    codes: &[
        Rule::new("exceeded_current_quota_error", Quota),
        Rule::new("rate_limit_reached_error", RateLimit),
        Rule::new("engine_overloaded_error", RateLimit),
        Rule::new("resource_not_found_error", ModelAccess)
            .weak()
            .when(Only(404)),
        Rule::new("invalid_authentication_error", Credential),
        Rule::new("incorrect_api_key_error", Credential),
        Rule::new("content_filter", CallerFault).kind(ContentPolicy),
    ],
    phrases: &[
        Rule::new("usage limit for this billing cycle", Quota),
        Rule::new("model token limit", CallerFault).kind(ContextWindow),
        Rule::new("not found the model", ModelAccess),
    ],
    statuses: &[],
};

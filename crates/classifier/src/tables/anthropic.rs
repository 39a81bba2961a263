//! Anthropic: `{"type":"error","error":{type,message},"request_id"}`.
//!
//! An empty account is a 400 `invalid_request_error`, a spend limit a 429 `rate_limit_error`: only the
//! message tells. A `not_found_error` that begins with `model:` names a model.

use Class::{CallerFault, Credential, ModelAccess, Quota, RateLimit, Transient};
use Kind::{ContentPolicy, ContextWindow, Overloaded};
use When::{Only, Refused};

use crate::evidence::Family;
use crate::table::{Rule, Table, When};
use crate::verdict::{Class, Kind};

pub(super) const TABLE: Table = Table {
    family: Family::Anthropic,
    source: "https://docs.claude.com/en/api/errors; the failure corpus under `corpus/`",
    revised: "2026-11-30",
    codes: &[
        Rule::new("overloaded_error", Transient).kind(Overloaded),
        Rule::new("rate_limit_error", RateLimit),
        Rule::new("authentication_error", Credential),
        Rule::new("billing_error", Quota),
        Rule::new("request_too_large", CallerFault),
        Rule::new("enforced_spend_limit_reached", Quota),
        Rule::new("conflict_error", CallerFault)
            .weak()
            .when(Refused),
        Rule::new("permission_error", ModelAccess)
            .weak()
            .when(Only(403)),
    ],
    phrases: &[
        Rule::new("credit balance is too low", Quota),
        Rule::new("api usage limits", Quota),
        Rule::new("usage limits .. regain access", Quota),
        Rule::new("spend limit", Quota),
        Rule::new("organization has been disabled", Credential),
        Rule::new("oauth authentication", Credential),
        Rule::new("api key .. not allowed", Credential),
        Rule::new("request not allowed", Credential).when(Only(403)),
        Rule::new("^model", ModelAccess).when(Only(404)),
        Rule::new("prompt is too long", CallerFault).kind(ContextWindow),
        Rule::new("exceed context limit", CallerFault).kind(ContextWindow),
        Rule::new("blocked by content filtering", CallerFault).kind(ContentPolicy),
    ],
    statuses: &[],
};

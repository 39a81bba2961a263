//! Alibaba DashScope (Qwen): OpenAI's envelope, or `{"code","message","request_id"}`.
//!
//! An unpaid account is a 400 `Arrearage` whose words read like a bad key.

use Class::{CallerFault, Credential, ModelAccess, Quota, RateLimit};
use Kind::{ContentPolicy, ContextWindow};

use crate::evidence::Family;
use crate::table::{Rule, Table};
use crate::verdict::{Class, Kind};

pub(super) const TABLE: Table = Table {
    family: Family::DashScope,
    source: "https://help.aliyun.com/en/model-studio/error-code; the failure corpus under `corpus/`",
    revised: "2026-11-30",
    codes: &[
        Rule::new("arrearage", Quota),
        Rule::new("throttling*", RateLimit),
        Rule::new("invalid_api_key", Credential),
        Rule::new("model_not_found", ModelAccess),
        Rule::new("access_denied_unpurchased", Quota),
        Rule::new("model_access_denied", ModelAccess),
        Rule::new("allocation_quota_free_tier_only", Quota),
        Rule::new("data_inspection_failed", CallerFault).kind(ContentPolicy),
    ],
    phrases: &[
        Rule::new("account is in good standing", Quota),
        Rule::new("range of input length", CallerFault).kind(ContextWindow),
    ],
    statuses: &[],
};

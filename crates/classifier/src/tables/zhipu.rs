//! Zhipu (GLM): OpenAI's envelope with four-digit codes as strings.

use Class::{CallerFault, Credential, ModelAccess, Quota, RateLimit};
use Kind::{ContentPolicy, ContextWindow, Overloaded};

use crate::evidence::Family;
use crate::table::{Rule, Table};
use crate::verdict::{Class, Kind};

pub(super) const TABLE: Table = Table {
    family: Family::Zhipu,
    source: "https://docs.bigmodel.cn/cn/api/api-code; the failure corpus under `corpus/`",
    revised: "2026-11-30",
    codes: &[
        Rule::new("1000", Credential),
        Rule::new("1001", Credential),
        Rule::new("1002", Credential),
        Rule::new("1003", Credential),
        Rule::new("1004", Credential),
        Rule::new("1110", Credential),
        Rule::new("1111", Credential),
        Rule::new("1112", Credential),
        Rule::new("1121", Credential),
        Rule::new("1113", Quota),
        Rule::new("1211", ModelAccess),
        Rule::new("1220", ModelAccess),
        Rule::new("1261", CallerFault).kind(ContextWindow),
        Rule::new("1300", CallerFault).kind(ContentPolicy),
        Rule::new("1301", CallerFault).kind(ContentPolicy),
        Rule::new("1302", RateLimit),
        Rule::new("1303", RateLimit),
        Rule::new("1304", RateLimit),
        Rule::new("1305", RateLimit),
        Rule::new("1308", RateLimit),
        Rule::new("1309", Quota),
        Rule::new("1310", RateLimit),
        Rule::new("1311", ModelAccess),
        Rule::new("1312", RateLimit).kind(Overloaded),
        Rule::new("1313", RateLimit),
        Rule::new("1210", CallerFault),
        Rule::new("1213", CallerFault),
        Rule::new("1214", CallerFault),
    ],
    phrases: &[
        Rule::new("insufficient balance", Quota),
        Rule::new("余额不足", Quota),
    ],
    statuses: &[],
};

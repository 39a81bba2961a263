//! MiniMax: Anthropic's or OpenAI's envelope, or `base_resp` with a number of its own.
//!
//! A plan's window of hours refills by waiting; it is a limit, not money.

use Class::{CallerFault, Credential, Quota, RateLimit};
use Kind::ContentPolicy;

use crate::evidence::Family;
use crate::table::{Rule, Table};
use crate::verdict::{Class, Kind};

pub(super) const TABLE: Table = Table {
    family: Family::MiniMax,
    source: "https://platform.minimax.io/docs/api-reference/errorcode.md (its opening); the failure corpus under `corpus/`",
    revised: "2026-11-30",
    codes: &[
        Rule::new("1002", RateLimit),
        Rule::new("1004", Credential),
        Rule::new("1008", Quota),
        Rule::new("1026", CallerFault).kind(ContentPolicy),
        Rule::new("1027", CallerFault).kind(ContentPolicy),
        Rule::new("1039", RateLimit),
        Rule::new("2013", CallerFault),
        Rule::new("2049", Credential),
        Rule::new("2056", RateLimit),
    ],
    phrases: &[Rule::new("usage limit .. resets at", RateLimit)],
    statuses: &[],
};

//! What stands before a provider: Cloudflare, nginx, load balancers, service meshes, and relays that
//! speak OpenAI's envelope.
//!
//! Their pages are HTML, which is not read: the status decides, and of the 4xx only 401, 402, 403 and
//! 429 say anything. A custom base URL that names no family reads this table as its own.

use Class::{Credential, ModelAccess, Quota, RateLimit, Transient};
use Kind::Overloaded;
use When::{NotServer, Only, ServerOrStream};

use crate::evidence::Family;
use crate::table::{Rule, Table, When};
use crate::verdict::{Class, Kind};

pub(super) const TABLE: Table = Table {
    family: Family::General,
    source: "https://developers.cloudflare.com/workers-ai/platform/errors/; the failure corpus under `corpus/`",
    revised: "2026-11-30",
    codes: &[
        Rule::new("budget_exceeded", Quota),
        Rule::new("insufficient_user_quota", Quota),
        Rule::new("token_not_found_in_db", Credential),
        Rule::new("throttling_error", RateLimit),
        Rule::new("upstream_overloaded", Transient).kind(Overloaded),
    ],
    phrases: &[
        Rule::new("error code 1015", RateLimit).when(Only(429)),
        Rule::new("(upstream connect error|no healthy upstream)", Transient),
        Rule::new(
            "(endpoint request|upstream request|upstream) (timed out|timeout)",
            Transient,
        )
        .when(ServerOrStream),
        Rule::new("no such model", ModelAccess),
        Rule::new("over budget", Quota),
        Rule::new("(daily|monthly) free allocation", RateLimit).when(NotServer),
    ],
    statuses: &[],
};

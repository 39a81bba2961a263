//! xAI: `{"code","error"}`, both strings, `code` often a sentence.
//!
//! A bad key is a 400 with code `invalid-argument`. One code stands for a limit and for spent credit: the
//! message tells.

use Class::{CallerFault, Credential, Quota, RateLimit};
use Kind::ContentPolicy;
use When::Refused;

use crate::evidence::Family;
use crate::table::{Rule, Table, When};
use crate::verdict::{Class, Kind};

pub(super) const TABLE: Table = Table {
    family: Family::Xai,
    source: "https://docs.x.ai/developers/debugging.md (its opening); the failure corpus under `corpus/`",
    revised: "2026-11-30",
    codes: &[
        Rule::new("some_resource_has_been_exhausted", RateLimit).weak(),
        Rule::new("the_caller_does_not_have_permission*", Credential).weak(),
        Rule::new("invalid_argument", CallerFault)
            .weak()
            .when(Refused),
        Rule::new("client_specified_an_invalid_argument", CallerFault)
            .weak()
            .when(Refused),
    ],
    phrases: &[
        Rule::new("incorrect api key provided", Credential),
        Rule::new("have any credits", Quota),
        Rule::new("all available credits", Quota),
        Rule::new("monthly spending limit", Quota),
        Rule::new("usage guidelines", CallerFault).kind(ContentPolicy),
    ],
    statuses: &[],
};

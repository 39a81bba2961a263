//! OpenRouter: `{"error":{code,message,metadata}}`, also with a 200; `metadata.raw` holds the upstream's
//! own body as a string, `metadata.flagged_input` the caller's text, which is never read.
//!
//! 402 is what the credit cannot pay for, whatever else it says.

use Class::{CallerFault, ModelAccess, Quota};
use Kind::ContentPolicy;

use crate::evidence::Family;
use crate::table::{Rule, Table};
use crate::verdict::{Class, Kind};

pub(super) const TABLE: Table = Table {
    family: Family::OpenRouter,
    source: "https://openrouter.ai/docs/api/reference/errors-and-debugging; the failure corpus under `corpus/`",
    revised: "2026-11-30",
    codes: &[],
    phrases: &[
        Rule::new("no endpoints found", ModelAccess),
        Rule::new("no endpoints available", ModelAccess),
        Rule::new("no allowed providers", ModelAccess),
        Rule::new("not a valid model id", ModelAccess),
        Rule::new("key limit exceeded", Quota),
        Rule::new("requires more credits", Quota),
        Rule::new("requires moderation", CallerFault).kind(ContentPolicy),
    ],
    statuses: &[],
};

//! How a message opens that names a part of the request and then echoes it.
//!
//! These rows are read before all other phrases, the provider's own included: what stands behind
//! such an opening is the caller's text, whatever it says.

use When::{Refused, RefusedOrMissing};

use crate::evidence::Family;
use crate::table::{Rule, Table, When};
use crate::verdict::Class;

pub(super) const TABLE: Table = Table {
    family: Family::General,
    source: "validation messages of all providers in the failure corpus",
    revised: "2026-11-30",
    codes: &[],
    phrases: PHRASES,
    statuses: &[],
};

const fn row(pattern: &'static str, when: When) -> Rule {
    Rule::new(pattern, Class::CallerFault).when(when)
}

const PHRASES: &[Rule] = &[
    row("^@path", Refused),
    row("^unrecognized request argument", RefusedOrMissing),
    row("^unknown parameter", RefusedOrMissing),
    row("^unsupported parameter", RefusedOrMissing),
    row("^unsupported value", RefusedOrMissing),
    row("^invalid value", RefusedOrMissing),
    row("^invalid type", RefusedOrMissing),
    row("^invalid schema", RefusedOrMissing),
    row("^invalid json", RefusedOrMissing),
    row("^invalid _", Refused),
    row("^invalid parameter", Refused),
    row("^missing required", Refused),
    row("^failed to deserialize", Refused),
    row("^failed to parse", Refused),
    row("^malformed input", Refused),
    row("^unknown field", Refused),
    row("^failed to call a function", Refused),
    row("^tool call validation failed", Refused),
    row("unknown name", Refused),
    row("extraneous key", Refused),
    row("extra inputs are not permitted", Refused),
    row("is not a valid field", Refused),
    row("field required", Refused),
    row("input should be", Refused),
    row("string should match", Refused),
    row("did not match schema", Refused),
    row("does not match any of the expected", Refused),
    row("tool messages responding to", Refused),
    row("ids were found without", Refused),
    row("parameter .. deprecated", Refused),
    row("field .. deprecated", Refused),
    row("deprecated for this model", Refused),
    row("not a chat model", RefusedOrMissing),
    row("only supported in", RefusedOrMissing),
    row("not supported in the", RefusedOrMissing),
    row("unsupported image", Refused),
    row("does not work with the specified model", Refused),
    row("no such file", RefusedOrMissing),
    row("file .. not found", RefusedOrMissing),
    row("response .. not found", RefusedOrMissing),
    row("found with id", RefusedOrMissing),
    row("no response found", RefusedOrMissing),
    row("container .. not found", RefusedOrMissing),
    row("conversation .. not found", RefusedOrMissing),
    row("thread .. not found", RefusedOrMissing),
    row("assistant .. not found", RefusedOrMissing),
    row("batch .. not found", RefusedOrMissing),
    row("item .. not found", RefusedOrMissing),
    row("vector store .. not found", RefusedOrMissing),
    row("cachedcontent not found", RefusedOrMissing),
    row("cached content .. not found", RefusedOrMissing),
];

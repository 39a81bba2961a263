//! What makes one class finer, or turns it into its more specific neighbour.
//!
//! These rows are read only after the class is known, so they may be looser than those that decide.

use std::sync::LazyLock;

use crate::index::{Index, Patterns, Words};
use crate::table::Rule;
use crate::verdict::{Class, Kind};

const fn row(class: Class, pattern: &'static str, kind: Kind) -> Rule {
    Rule::new(pattern, class).kind(kind)
}

const PHRASES: &[Rule] = &[
    row(Class::RateLimit, "limit 0", Kind::LimitZero),
    row(
        Class::RateLimit,
        "request too large",
        Kind::RequestLargerThanLimit,
    ),
    row(
        Class::RateLimit,
        "tokens must be reduced",
        Kind::RequestLargerThanLimit,
    ),
    row(
        Class::RateLimit,
        "request size .. exceeds",
        Kind::RequestLargerThanLimit,
    ),
    row(
        Class::RateLimit,
        "reduce your message size",
        Kind::RequestLargerThanLimit,
    ),
    row(Class::RateLimit, "overloaded", Kind::Overloaded),
    row(Class::RateLimit, "capacity", Kind::Overloaded),
    row(Class::RateLimit, "high demand", Kind::Overloaded),
    row(Class::RateLimit, "peak load", Kind::Overloaded),
    row(Class::RateLimit, "rate limited upstream", Kind::Overloaded),
    row(Class::Transient, "overloaded", Kind::Overloaded),
    row(Class::Transient, "capacity", Kind::Overloaded),
    row(Class::Transient, "high demand", Kind::Overloaded),
    row(Class::Transient, "server busy", Kind::Overloaded),
    row(Class::Transient, "server is busy", Kind::Overloaded),
    row(Class::Transient, "slow down", Kind::Overloaded),
    row(
        Class::Transient,
        "pending requests exceeded",
        Kind::Overloaded,
    ),
    row(
        Class::Credential,
        "requires moderation",
        Kind::ContentPolicy,
    ),
    row(Class::Credential, "guardrail", Kind::ContentPolicy),
    row(Class::Credential, "prompt injection", Kind::ContentPolicy),
    row(Class::Credential, "usage guidelines", Kind::ContentPolicy),
    row(Class::Credential, "token has expired", Kind::RenewableToken),
    row(Class::Credential, "token is expired", Kind::RenewableToken),
    row(Class::Credential, "token expired", Kind::RenewableToken),
    row(
        Class::Credential,
        "access token .. expired",
        Kind::RenewableToken,
    ),
    row(
        Class::Credential,
        "security token .. expired",
        Kind::RenewableToken,
    ),
    row(
        Class::Credential,
        "expected oauth 2 access token",
        Kind::RenewableToken,
    ),
    row(Class::CallerFault, "context window", Kind::ContextWindow),
    row(Class::CallerFault, "context length", Kind::ContextWindow),
    row(Class::CallerFault, "context limit", Kind::ContextWindow),
    row(
        Class::CallerFault,
        "prompt is too long",
        Kind::ContextWindow,
    ),
    row(Class::CallerFault, "input is too long", Kind::ContextWindow),
    row(
        Class::CallerFault,
        "maximum number of tokens",
        Kind::ContextWindow,
    ),
    row(Class::CallerFault, "content policy", Kind::ContentPolicy),
    row(
        Class::CallerFault,
        "content management policy",
        Kind::ContentPolicy,
    ),
    row(
        Class::CallerFault,
        "content filtering policy",
        Kind::ContentPolicy,
    ),
    row(Class::CallerFault, "safety system", Kind::ContentPolicy),
    row(Class::CallerFault, "moderation", Kind::ContentPolicy),
];

const CODES: &[Rule] = &[
    row(Class::RateLimit, "*capacity*", Kind::Overloaded),
    row(Class::RateLimit, "*overloaded*", Kind::Overloaded),
    row(
        Class::RateLimit,
        "model_not_ready_exception",
        Kind::Overloaded,
    ),
    row(Class::Transient, "*capacity*", Kind::Overloaded),
    row(Class::Transient, "*overloaded*", Kind::Overloaded),
    row(Class::Transient, "slow_down", Kind::Overloaded),
    row(Class::Credential, "expired_token*", Kind::RenewableToken),
    row(Class::Credential, "*token_expired*", Kind::RenewableToken),
    row(Class::CallerFault, "*context_length*", Kind::ContextWindow),
    row(Class::CallerFault, "*content_filter*", Kind::ContentPolicy),
    row(Class::CallerFault, "*content_policy*", Kind::ContentPolicy),
];

/// A model that cannot be reached because it was retired; a limit that is the account's money.
const REFINEMENTS: &[Rule] = &[
    Rule::new("deprecated", Class::ModelGone),
    Rule::new("decommissioned", Class::ModelGone),
    Rule::new("retired", Class::ModelGone),
    Rule::new("discontinued", Class::ModelGone),
    Rule::new("sunset", Class::ModelGone),
    Rule::new("no longer available", Class::ModelGone),
    Rule::new("no longer supported", Class::ModelGone),
    Rule::new("no longer exists", Class::ModelGone),
    Rule::new("was removed", Class::ModelGone),
    Rule::new("has been removed", Class::ModelGone),
    Rule::new("been shut down", Class::ModelGone),
    Rule::new("end of life", Class::ModelGone),
    Rule::new("end of its life", Class::ModelGone),
    Rule::new("spend limit", Class::Quota),
    Rule::new("spending limit", Class::Quota),
    Rule::new("spending cap", Class::Quota),
    Rule::new("spend cap", Class::Quota),
    Rule::new("credit balance", Class::Quota),
    Rule::new("insufficient balance", Class::Quota),
    Rule::new("insufficient credits", Class::Quota),
    Rule::new("insufficient funds", Class::Quota),
    Rule::new("out of credits", Class::Quota),
    Rule::new("credits .. depleted", Class::Quota),
    Rule::new("credits .. exhausted", Class::Quota),
    Rule::new("all available credits", Class::Quota),
];

static PHRASE_INDEX: LazyLock<Index> = LazyLock::new(|| index(Patterns::Phrases, PHRASES));
static CODE_INDEX: LazyLock<Index> = LazyLock::new(|| index(Patterns::Codes, CODES));
static REFINE_INDEX: LazyLock<Index> = LazyLock::new(|| index(Patterns::Phrases, REFINEMENTS));

fn index(style: Patterns, rows: &'static [Rule]) -> Index {
    Index::new(style, rows.iter().map(|row| row.pattern))
}

/// The indexes of this file that read messages.
pub(crate) fn phrase_indexes() -> [&'static Index; 2] {
    [&PHRASE_INDEX, &REFINE_INDEX]
}

/// The indexes of this file that read codes.
pub(crate) fn code_index() -> &'static Index {
    &CODE_INDEX
}

/// The kind that a message gives to a class.
pub(crate) fn by_phrase(class: Class, prose: &Words) -> Option<Kind> {
    let found = PHRASE_INDEX.first(prose, |i| PHRASES[i].class == class)?;
    PHRASES[found.rule].kind
}

/// The kind that a code gives to a class.
pub(crate) fn by_code(class: Class, words: &Words) -> Option<Kind> {
    let found = CODE_INDEX.first(words, |i| CODES[i].class == class)?;
    CODES[found.rule].kind
}

/// The phrase that makes the more specific class out of its neighbour.
pub(crate) fn refinement(class: Class, prose: &Words) -> Option<&'static str> {
    let found = REFINE_INDEX.first(prose, |i| REFINEMENTS[i].class == class)?;
    Some(REFINE_INDEX.spelling(found))
}

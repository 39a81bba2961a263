//! `docs/failures.md`: provider x class x signal, from the classifier's own tables.

use std::fmt::Write as _;

use backstop_classifier::{
    Class, Family, Kind, Rule, Table, When, echo_table, general_table, tables,
};

const OPENING: &str = "\
# Provider failures

Made by `cargo xtask schema` from the tables in `crates/classifier/src/tables/`; change those, not this page.

Somebody is being paged? Hand the response to the binary and read what it says:

```sh
curl -si https://api.openai.com/v1/chat/completions ... | backstop classify --provider openai
```

It names the class, the signal that decided, and what the gateway would do next. This page says why.

## The order of reading

1. **Some statuses decide alone.** 402 is `quota`. A 3xx is `malformed` and never followed.
2. **The provider's code**, most specific field first: exception name (`x-amzn-errortype`, `__type`, the key of an
   event-stream frame), `code`, `innererror.code`, `reason`, `error_type`, `type`, `status`. The innermost error is read
   first, also where it is JSON inside a string (`metadata.raw`, a message). Case, camel humps and separators do not
   matter. Codes marked † say no more than a status; they wait until the message was asked.
3. **A named field.** A 400, 404, 409, 413 or 422 that names a field of the request other than the model is a
   `caller_fault`.
4. **The message**, as whole words. What stands in quotes, brackets, URLs, or behind `got:` and its like is the caller's
   text and is not read; nor is a word inside an identifier. For each step the request's echoes are read first, then the
   provider's own table, then the shared one, each from top to bottom.
5. **A status number in the body**, then **the HTTP status**: 401 and 403 `credential`, 429 `rate_limit`, 5xx, 408, 424
   and 425 `transient`, 400, 409, 412, 413, 415 and 422 with a provider's error body `caller_fault`; anything else is
   `unknown`. HTML and empty bodies leave it to the status.

What a status rules out is never taken from a body: a 401 is about the key (only a code may name quota, model or region
instead), a 403 about the key, quota, model or region, a 429 `rate_limit` or `quota`, a 5xx `transient` unless a rate
limit is named. An error inside a 200 has no status but the one in its body.

**Retry hints**: `google.rpc.RetryInfo` in the body, then `retry-after-ms`, then `Retry-After` (seconds, decimals, an HTTP
date). The first that is present decides, kept within 1 s and 5 min; one that cannot be read is no hint. Prose and reset
headers are none. At most 32 KiB of a body are read.

## What follows a class

| class | means | same key again | next key | fallback | substitution |
|---|---|---|---|---|---|
| credential, quota, model_access, model_gone, region_blocked | the key, its money, its models, its place | never | at once, free | yes | yes |
| rate_limit | a limit over time | after the pool | after backoff | yes | yes |
| transient | the provider is in trouble | after backoff | no | yes | yes |
| timeout | our own clock ran out | no | no | yes | yes |
| malformed | a 2xx or 3xx that breaks its contract | no | no | verified channels | no |
| unknown | nothing says what it is: often a wrong base URL | no | no | yes | no |
| caller_fault, cancelled | the request, or the caller left | no | no | no | no |

Kinds refine it: `context_window` may go on to a permitted model with a larger window, `content_policy` only where a
substitution names it, `request_larger_than_limit` and `limit_zero` are not waited for, `renewable_token` is renewed once.
`token_fetch` says that such a token could not be had: nothing was sent, and the class is `credential` where the token
endpoint refused the proof, else `transient`.
";

/// The whole page.
pub(super) fn page() -> String {
    let mut page = OPENING.to_owned();
    page.push_str("\n## Signals, provider by class\n\nHow many codes and phrases a provider's own table has.\n\n");
    matrix(&mut page);
    page.push_str("\n## Reading a row\n\n`*` in a code stands for any words, ` .. ` in a phrase for up to six, `(a|b)` for either, `^` for the message's start and `$` for its end, `_` for a quotation, `@model` for a model's resource name, `@path` for the path of a field. In brackets: the statuses under which a row is read; *refused* is 400, 409, 412, 413, 415, 422, or an error in a stream without a status.\n");
    for table in tables() {
        section(&mut page, title(table), table);
    }
    section(&mut page, "shared by all", general_table());
    section(
        &mut page,
        "echoes of the request, read before all other phrases",
        echo_table(),
    );
    page
}

fn title(table: &Table) -> &'static str {
    match table.family {
        Family::General => "proxies and relays (a base URL that names no family)",
        family => family.name(),
    }
}

/// The classes that tables speak of.
fn classes() -> impl Iterator<Item = Class> {
    let told =
        |class: &Class| !matches!(class, Class::Timeout | Class::Malformed | Class::Cancelled);
    Class::ALL.iter().copied().filter(told)
}

fn matrix(page: &mut String) {
    let names: Vec<_> = classes().map(Class::name).collect();
    let _ = writeln!(page, "| provider | {} |", names.join(" | "));
    let _ = writeln!(page, "|---|{}", "---|".repeat(names.len()));
    let shared = [("shared by all", general_table())];
    let own = tables().iter().map(|table| match table.family {
        Family::General => ("proxies", *table),
        family => (family.name(), *table),
    });
    for (name, table) in own.chain(shared) {
        let counts = classes().map(|class| match rows(table, class).count() {
            0 => String::new(),
            count => count.to_string(),
        });
        let _ = writeln!(
            page,
            "| {name} | {} |",
            counts.collect::<Vec<_>>().join(" | ")
        );
    }
}

fn rows(table: &Table, class: Class) -> impl Iterator<Item = &Rule> {
    let rules = table.codes.iter().chain(table.phrases);
    rules.filter(move |rule| rule.class == class)
}

fn section(page: &mut String, title: &str, table: &Table) {
    let _ = writeln!(
        page,
        "\n### {title}\n\nRead on {}: {}.\n",
        table.revised, table.source
    );
    page.push_str("| class | codes | phrases |\n|---|---|---|\n");
    for class in classes() {
        let mut kinds: Vec<Option<Kind>> = rows(table, class).map(|rule| rule.kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        for kind in kinds {
            let cell = |rules: &[Rule], code: bool| {
                let cells = rules
                    .iter()
                    .filter(|rule| rule.class == class && rule.kind == kind)
                    .map(|rule| signal(rule, code));
                cells.collect::<Vec<_>>().join(", ")
            };
            let kind = kind.map(|kind| format!("/{kind}")).unwrap_or_default();
            let codes = cell(table.codes, true);
            let phrases = cell(table.phrases, false);
            let _ = writeln!(page, "| {class}{kind} | {codes} | {phrases} |");
        }
    }
    for (status, class) in table.statuses {
        let _ = writeln!(page, "| {class} | status {status} | |");
    }
}

/// One code or phrase with what narrows it.
fn signal(rule: &Rule, code: bool) -> String {
    let pattern = rule.pattern.replace('|', "\\|");
    let weak = if code && rule.weak { "†" } else { "" };
    let when = match rule.when {
        When::Always => String::new(),
        When::Refused => " (refused)".to_owned(),
        When::RefusedOrMissing => " (refused or 404)".to_owned(),
        When::Only(status) => format!(" ({status})"),
        When::NotServer => " (not 5xx)".to_owned(),
        When::ServerOrStream => " (5xx or stream)".to_owned(),
    };
    format!("`{pattern}`{weak}{when}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_provider_has_a_section_and_every_signal_a_place() {
        let page = page();
        for family in Family::ALL
            .iter()
            .filter(|family| **family != Family::General)
        {
            assert!(page.contains(&format!("\n### {family}\n")), "{family}");
        }
        for table in tables() {
            for rule in table.codes.iter().chain(table.phrases) {
                let told = signal(rule, true);
                let told = told.split('†').next().unwrap_or_default();
                let told = told.split(" (").next().unwrap_or_default();
                assert!(page.contains(told), "{told}");
            }
        }
    }
}

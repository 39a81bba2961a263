//! `docs/providers.md`: what is known of each kind of provider, from the registry.

use std::fmt::Write as _;

use backstop_providers::{KeyForm, Row, Signature, When, rows};

const OPENING: &str = "\
# Providers

Made by `cargo xtask schema` from the registry in `crates/providers`; change that, not this page.

A provider in the configuration is of a **kind**: the one it is named after, or what `kind` says. Everything in these
tables is what holds when the configuration says nothing else; `config/reference.toml` shows every field. A server that is
not listed is `kind = \"custom\"` with a `base_url`, and `resembles` names the kind whose wire it speaks.

A caller is served by any of them. Where a provider speaks the caller's dialect, the first one or a further one, requests
and answers pass as they are; elsewhere they are translated into its first dialect.

## Where they are, and what they speak

";

const KEYS: &str = "
## Keys

`value` is the key itself; the other forms are tables of a key, shown in `config/reference.toml`. Without `keys` the variable
is read. Any key may have `aliases`, the provider's own names for some models where that key is used.

";

const SETTINGS: &str = "
## What else an account needs

";

const QUIRKS: &str = "
## Quirks

- **azure** has three surfaces. At an address that ends in `/models`, or at a host of Foundry's, its model inference; with a
  dated `api_version` OpenAI's deployments, the model in the path; else the v1 surface, where Responses are spoken too. An
  address that ends in `/openai/v1` is the v1 surface whatever `api_version` says.
- **vertex** serves Google's models and Anthropic's, each in its own dialect: the name says which.
- **bedrock** is asked by one encoded segment of the path: an id, an inference profile or an ARN. A key in the form `aws`
  never leaves the gateway; each attempt is signed right before it is sent, as of the wall clock. AWS refuses a signature
  whose clock is wrong by more than five minutes. A profile must hold a key: SSO, roles, programs and the machine's own
  credentials are refused when the configuration is read.
- A translated request says `max_completion_tokens`, as OpenAI's newest models want, or `max_tokens`, which most servers
  know alone; a request in the provider's own dialect is not touched.
";

/// The whole page.
pub(super) fn page() -> String {
    let mut page = OPENING.to_owned();
    page.push_str("| kind | address | moved by | dialects |\n|---|---|---|---|\n");
    for row in rows() {
        let also = row
            .adapter
            .also()
            .iter()
            .map(|(dialect, _)| dialect.as_str());
        let dialects: Vec<_> = std::iter::once(row.adapter.dialect().as_str())
            .chain(also)
            .collect();
        let address = row.base_url.map_or_else(|| without(row), code);
        let moved = row.base_url_variable.map_or("-".to_owned(), code);
        let _ = writeln!(
            page,
            "| {} | {address} | {moved} | {} |",
            row.kind,
            dialects.join(", ")
        );
    }
    page.push_str(KEYS);
    page.push_str("| kind | variable | forms | goes out as |\n|---|---|---|---|\n");
    for row in rows() {
        let variable = match row.key_variable {
            Some(name) => code(name),
            None => "none needed".to_owned(),
        };
        let forms = row.adapter.key_forms().iter();
        let forms: Vec<_> = forms.map(|form| code(form.field())).collect();
        let _ = writeln!(
            page,
            "| {} | {variable} | {} | {} |",
            row.kind,
            forms.join(", "),
            signature(row)
        );
    }
    page.push_str(SETTINGS);
    page.push_str("| kind | field | variables | needed |\n|---|---|---|---|\n");
    for row in rows() {
        for needed in row.adapter.needs() {
            let variables: Vec<_> = needed.variables.iter().map(|name| code(name)).collect();
            let when = match needed.when {
                When::Always => "always",
                When::Addressing => "for an address of its own, and to sign",
                When::Never => "no",
            };
            let _ = writeln!(
                page,
                "| {} | {} | {} | {when} |",
                row.kind,
                code(needed.setting.field()),
                variables.join(", ")
            );
        }
    }
    page.push_str(QUIRKS);
    page
}

/// What stands for an address where a kind has none that is the same for all.
fn without(row: &Row) -> String {
    let places = row.adapter.needs().iter();
    let places: Vec<_> = places
        .filter(|needed| needed.when != When::Never)
        .map(|needed| code(needed.setting.field()))
        .collect();
    if places.is_empty() {
        "the operator's own".to_owned()
    } else {
        format!("by {}", places.join(" and "))
    }
}

fn signature(row: &Row) -> String {
    let plain = match row.adapter.signature() {
        Signature::Bearer | Signature::Token => "`authorization: Bearer`".to_owned(),
        Signature::Header(name) => code(name),
        Signature::Aws { service } => {
            return format!(
                "a signature for {}, or `authorization: Bearer`",
                code(service)
            );
        }
    };
    if row.adapter.key_forms().contains(&KeyForm::Entra) {
        plain + ", a token of Entra's as `authorization: Bearer`"
    } else {
        plain
    }
}

fn code(text: &str) -> String {
    format!("`{text}`")
}

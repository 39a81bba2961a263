//! What is never shown, and what is always documented.

use std::collections::HashSet;

use proptest::prelude::*;

use super::{Fake, faults, snapshot};
use crate::{Problem, read};

const REFERENCE: &str = include_str!("../../../../config/reference.toml");
const BIFROST: &str = include_str!("../../../../config/bifrost.json");

#[test]
fn no_key_is_ever_shown_by_a_snapshot() {
    let reference = snapshot("reference.toml", REFERENCE);
    let three = snapshot("config.json", BIFROST);
    let headers = snapshot(
        "h.toml",
        "[providers.openai]\nextra_headers = { x-token = \"env.OPENAI_KEY_1\" }",
    );
    for snapshot in [reference, three, headers] {
        let shown = format!("{snapshot:?} {snapshot:#?}");
        assert!(!shown.contains("canary"), "{shown}");
    }
}

#[test]
fn the_reference_names_every_field_of_the_schema() {
    // A field that is nowhere in the schema is answered with those that are.
    let tables = [
        "zzz = 1",
        "[server]\nzzz = 1",
        "[limits]\nzzz = 1",
        "[session]\nzzz = 1",
        "[defaults]\nzzz = 1",
        "[providers.p]\nzzz = 1",
        "[providers.p]\nkeys = [{ zzz = 1 }]",
        "[providers.p]\nkeys = [{ entra = { zzz = 1 } }]",
        "[providers.p.network_config]\nzzz = 1",
        "[providers.p.network_config.retry_budget]\nzzz = 1",
        "[providers.p.timeouts]\nzzz = 1",
        "[providers.p.breaker]\nzzz = 1",
        "[providers.p.contract]\nzzz = 1",
        "[routes.r]\nzzz = 1",
        "[routes.r]\ngroups = [{ zzz = 1 }]",
        "[routes.r]\ngroups = [{ channels = [{ zzz = 1 }] }]",
        "[routes.r]\nsubstitutions = [{ zzz = 1 }]",
        "[routes.r]\ncommit = { zzz = 1 }",
        "[server]\ntls = { zzz = 1 }",
        "[callers.c]\nzzz = 1",
        "[prices.p]\nzzz = 1",
    ];
    let mut fields = HashSet::new();
    for text in tables {
        let found = faults("a.toml", text);
        let problem = found.iter().next().expect("refused").problem();
        let Problem::UnknownField { accepted, .. } = problem else {
            panic!("{problem}");
        };
        fields.extend(accepted.iter().copied());
    }
    assert!(fields.len() > 70, "{}", fields.len());
    let words: HashSet<&str> = REFERENCE
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .collect();
    let missing: Vec<_> = fields
        .iter()
        .filter(|field| !words.contains(**field))
        .collect();
    assert!(missing.is_empty(), "not in reference.toml: {missing:?}");
}

/// A good file with a few bytes changed is read or refused; it never panics, and what is said about
/// it holds no key.
fn survives(file: &str, text: &str, at: usize, cut: usize, put: &str) {
    let mut start = at % (text.len() + 1);
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    let mut end = (start + cut).min(text.len());
    while !text.is_char_boundary(end) {
        end += 1;
    }
    let mutated = [&text[..start], put, &text[end..]].concat();
    match read(file.as_ref(), &mutated, &Fake::full(), 1) {
        Ok(snapshot) => assert!(!format!("{snapshot:?}").contains("canary")),
        Err(error) => {
            let shown = format!("{error} {error:?}");
            assert!(!shown.contains("canary"), "{shown}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_mutated_file_never_panics_and_never_leaks(
        at in any::<usize>(),
        cut in 0usize..12,
        put in "[\\[\\]{}\",:=.\\\\a-z0-9\n -]{0,6}",
    ) {
        survives("reference.toml", REFERENCE, at, cut, &put);
        survives("config.json", BIFROST, at, cut, &put);
    }

    #[test]
    fn no_text_panics(text in "\\PC{0,80}") {
        let _ = read("a.toml".as_ref(), &text, &Fake::full(), 1);
        let _ = read("a.json".as_ref(), &text, &Fake::full(), 1);
        let _ = read("a".as_ref(), &text, &Fake::full(), 1);
    }
}

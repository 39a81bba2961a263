//! Nothing that looks like a live key is committed. Fixtures and corpora are left out: they hold
//! keys that were made up to look real, since scrubbing is what they test.

use super::house::{Complaint, House};
use super::provenance::data_folder;

pub(super) fn check(house: &House) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for file in &house.files {
        if data_folder(&file.path).is_some() {
            continue;
        }
        for (number, line) in (1..).zip(file.text.lines()) {
            if let Some(kind) = secret(line) {
                let what = format!("holds what looks like {kind}");
                complaints.push(Complaint::new(&file.path, what).at(number));
            }
        }
    }
    complaints
}

/// How the first line of a private key in PEM form begins and ends.
const PEM: (&str, &str) = ("-----BEGIN ", "PRIVATE KEY-----");

/// The kind of key that a line seems to hold.
fn secret(line: &str) -> Option<&'static str> {
    if line.trim_start().starts_with(PEM.0) && line.contains(PEM.1) {
        return Some("a private key");
    }
    if tails(line, "AKIA").any(|t| run(t, is_upper_or_digit) == 16) {
        return Some("an AWS access key id");
    }
    if tails(line, "AIza").any(|t| run(t, is_token) >= 35) {
        return Some("a Google API key");
    }
    if tails(line, "sk-").any(is_provider_key) {
        return Some("a provider API key");
    }
    None
}

/// What follows each `mark` that does not continue a word.
fn tails<'a>(line: &'a str, mark: &'static str) -> impl Iterator<Item = &'a str> {
    line.match_indices(mark).filter_map(move |(at, _)| {
        let in_word = line[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        (!in_word).then(|| &line[at + mark.len()..])
    })
}

/// How many characters of `text` from its start are of a kind.
fn run(text: &str, is: fn(char) -> bool) -> usize {
    text.chars().take_while(|c| is(*c)).count()
}

/// Real keys hold a long random part. The ones we make up are words with dashes between them, or
/// count up, which no random part does.
fn is_provider_key(tail: &str) -> bool {
    let token = &tail[..run(tail, is_token)];
    token.split(['-', '_']).any(|part| {
        part.len() >= 16
            && !part.contains("0123456789")
            && part.contains(|c: char| c.is_ascii_digit())
            && part.contains(|c: char| c.is_ascii_alphabetic())
    })
}

fn is_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_')
}

fn is_upper_or_digit(c: char) -> bool {
    c.is_ascii_uppercase() || c.is_ascii_digit()
}

#[cfg(test)]
mod tests {
    use super::*;

    // The marks are cut in two, so that this file passes its own check.
    const KEYS: [&str; 7] = [
        concat!("key = \"s", "k-proj-9fJ2kLq8Zx7Vb3Nm1Qw5\""),
        concat!("s", "k-ant-api03-Ab1Cd2Ef3Gh4Ij5Kl6-xyz"),
        concat!("OPENAI_API_KEY=s", "k-9fJ2kLq8Zx7Vb3Nm1Qw5Er6T"),
        concat!("AK", "IA2E0A8F3B244C9986"),
        concat!("?key=AI", "zaSyA1234567890abcdefghijklmnopqrstu-"),
        concat!("-----BEGIN RSA PRIV", "ATE KEY-----"),
        concat!("Bearer s", "k-svcacct-7d0b93e1c4a8f265"),
    ];

    #[test]
    fn keys_are_seen_wherever_they_are_committed() {
        for key in KEYS {
            let house = House::of_files(&[("docs/a.md", &format!("fine\n{key}\n"))]);
            let complaints = check(&house);
            assert_eq!(complaints.len(), 1, "{key}");
            assert_eq!(complaints[0].line, Some(2));
            let house = House::of_files(&[("crates/a/fixtures/a.json", key)]);
            assert!(check(&house).is_empty(), "fixtures may");
        }
    }

    #[test]
    fn made_up_keys_and_plain_words_pass() {
        for line in [
            "sk-test-key-1",
            "sk-...",
            "export OPENAI_API_KEY=sk-your-own-key-goes-here",
            "sk-revoked-key-number-2",
            "sk-proj-0123456789abcdef",
            "task-7d0b93e1c4a8f265",
            "risk-free",
            "AKIA",
            "AIza",
            "ünïcödé sk-ü",
        ] {
            assert_eq!(secret(line), None, "{line}");
        }
    }

    #[test]
    fn a_complaint_does_not_repeat_the_key() {
        let house = House::of_files(&[("a", KEYS[0])]);
        assert_eq!(
            check(&house)[0].to_string(),
            "a:1: holds what looks like a provider API key"
        );
    }
}

//! Takes what must not leave out of a provider's text: keys, tokens, addresses of ours.
//!
//! Providers echo what they were sent, the key among it. Known secrets are removed wherever they
//! stand; beyond them anything in the shape of a credential is, since a provider may show part of
//! one, or another's.

use backstop_classifier::{Code, Signal, Verdict};
use backstop_units::Secret;

/// What stands where something was removed.
const PLACEHOLDER: &str = "[redacted]";

/// Beginnings that credentials are known by. A word that starts with one and goes on for at least
/// [`CREDENTIAL_TAIL`] characters is taken for a credential.
const PREFIXES: [&str; 12] = [
    "sk-", "sk_", "pk-", "rk-", "gsk_", "xai-", "hf_", "AIza", "AKIA", "ASIA", "ya29.", "eyJ",
];

/// Characters after a prefix that make a word a credential. Masked keys (`sk-abc***xyz`) count.
const CREDENTIAL_TAIL: usize = 6;

/// What to look for besides shapes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scrubber<'a> {
    /// What the attempt presented, and what stands behind it.
    pub(crate) secrets: Vec<&'a Secret>,
    /// Hosts the gateway sends to.
    pub(crate) host: Option<&'a str>,
}

impl Scrubber<'_> {
    /// `text` without secrets.
    pub(crate) fn scrub(&self, text: &str) -> String {
        let mut text = text.to_owned();
        let secrets = self.secrets.iter();
        for secret in secrets.filter(|secret| secret.expose().len() >= 4) {
            text = text.replace(secret.expose(), PLACEHOLDER);
        }
        if let Some(host) = self.host
            && !host.is_empty()
        {
            text = text.replace(host, PLACEHOLDER);
        }
        scrub_shapes(&text)
    }

    /// `verdict` without the provider's code where that holds a secret: a provider may put the key
    /// it was given anywhere, and a code goes into trail, ledger and log.
    pub(crate) fn verdict(&self, verdict: Verdict) -> Verdict {
        let clean =
            |code: Option<Code>| code.filter(|code| self.scrub(code.as_str()) == code.as_str());
        let signal = match verdict.signal {
            Signal::Code { field, code } => Signal::Code {
                field,
                code: clean(code),
            },
            other => other,
        };
        Verdict {
            code: clean(verdict.code),
            signal,
            ..verdict
        }
    }
}

fn scrub_shapes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(is_word) {
        let (before, from) = rest.split_at(start);
        out.push_str(before);
        let end = from.find(|c: char| !is_word(c)).unwrap_or(from.len());
        let (word, after) = from.split_at(end);
        out.push_str(if is_credential(word) {
            PLACEHOLDER
        } else {
            word
        });
        rest = after;
    }
    out.push_str(rest);
    out
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '*' | '+' | '/' | '=' | '~')
}

fn is_credential(word: &str) -> bool {
    PREFIXES.iter().any(|prefix| {
        word.strip_prefix(prefix)
            .is_some_and(|tail| tail.trim_end_matches('.').len() >= CREDENTIAL_TAIL)
    })
}

#[cfg(test)]
mod tests {
    use backstop_classifier::{Evidence, Family, classify};

    use super::*;

    #[test]
    fn a_code_that_is_the_key_is_no_code() {
        let secret = Secret::new("4f9c2e1d8b7a6053");
        let scrubber = Scrubber {
            secrets: vec![&secret],
            host: None,
        };
        for (code, kept) in [("4f9c2e1d8b7a6053", false), ("some_code", true)] {
            let body = format!(r#"{{"error":{{"code":"{code}","message":"no"}}}}"#);
            let wall = std::time::SystemTime::UNIX_EPOCH;
            let evidence = Evidence::response(Family::General, 500, body.as_bytes(), wall);
            let verdict = classify(&evidence);
            assert_eq!(
                verdict.code.map(|code| code.to_string()),
                Some(code.to_owned())
            );
            let verdict = scrubber.verdict(verdict);
            assert_eq!(verdict.code.is_some(), kept, "{code}");
            assert_eq!(format!("{verdict:?}").contains(code), kept, "{code}");
        }
    }

    #[test]
    fn nothing_in_the_shape_of_a_credential_survives() {
        let secret = Secret::new("tok/en.with+odd=chars");
        let scrubber = Scrubber {
            secrets: vec![&secret],
            host: Some("10.1.2.3:8000"),
        };
        for (text, want) in [
            (
                "Incorrect API key provided: sk-abc***xyz. Visit",
                "Incorrect API key provided: [redacted] Visit",
            ),
            ("key tok/en.with+odd=chars is bad", "key [redacted] is bad"),
            (
                "connect to 10.1.2.3:8000 failed",
                "connect to [redacted] failed",
            ),
            ("\"AIzaSyFAKE123456\"", "\"[redacted]\""),
            (
                "The model `gpt-4o` does not exist",
                "The model `gpt-4o` does not exist",
            ),
            ("task-force sk-1", "task-force sk-1"),
            ("größe — ok", "größe — ok"),
        ] {
            assert_eq!(scrubber.scrub(text), want);
        }
    }
}

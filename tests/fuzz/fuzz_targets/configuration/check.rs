//! What must hold for any input of the fuzz target; plain tests replay its corpus with it.

use std::io;
use std::path::Path;

use backstop_config::{Sources, read};

/// What no message and no `Debug` may show.
const SECRET: &str = "sk-never-to-be-shown";

/// Every variable is set, and every file there, to a secret.
struct Everything;

impl Sources for Everything {
    fn env(&self, _: &str) -> Option<String> {
        Some(SECRET.to_owned())
    }

    fn file(&self, _: &Path) -> io::Result<String> {
        Ok(SECRET.to_owned())
    }
}

/// Nothing is set, and no file there.
struct Nothing;

impl Sources for Nothing {
    fn env(&self, _: &str) -> Option<String> {
        None
    }

    fn file(&self, _: &Path) -> io::Result<String> {
        Err(io::ErrorKind::NotFound.into())
    }
}

/// Reads the input as a configuration.
///
/// The first byte picks the spelling, the rest is the text.
pub fn check(data: &[u8]) {
    let Some((&spelling, text)) = data.split_first() else {
        return;
    };
    let Ok(text) = std::str::from_utf8(text) else {
        return;
    };
    let file = if spelling & 1 == 0 {
        "config.json"
    } else {
        "backstop.toml"
    };
    for sources in [&Everything as &dyn Sources, &Nothing] {
        let shown = match read(Path::new(file), text, sources, 1) {
            Ok(snapshot) => format!("{snapshot:?}"),
            Err(error) => format!("{error} {error:?}"),
        };
        assert!(!shown.contains(SECRET), "a secret is shown");
        assert!(
            shown.len() <= 512 * text.len() + 256 * 1024,
            "{} bytes said",
            shown.len()
        );
    }
}

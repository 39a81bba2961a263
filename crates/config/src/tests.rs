//! Whole configurations: those we ship, those that are refused, what a snapshot answers.

mod bad;
mod callers;
mod good;
mod shown;

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::{Error, Faults, Snapshot, Sources, read};

/// An environment and files that a test writes down.
#[derive(Default)]
pub(crate) struct Fake {
    variables: HashMap<&'static str, String>,
    files: HashMap<PathBuf, String>,
}

impl Fake {
    /// Every variable and file that the shipped configurations name.
    pub(crate) fn full() -> Self {
        let names = [
            "OPENAI_API_KEY",
            "ANTHROPIC_API_KEY",
            "GROQ_API_KEY",
            "TOGETHER_KEY_1",
            "TOGETHER_KEY_2",
            "OPENAI_KEY_1",
            "OPENAI_KEY_2",
            "OPENAI_KEY_3",
            "AZURE_KEY_1",
            "AZURE_KEY_2",
            "AWS_KEY_ID",
            "AWS_KEY_SECRET",
            "AWS_KEY_TOKEN",
        ];
        let mut fake = Self::default();
        for name in names {
            fake = fake.with(name, &format!("sk-canary-{}", name.to_lowercase()));
        }
        fake.with("EMPTY", " ")
            .with("SPACED", "sk-canary with blanks")
            .with_file("/run/secrets/openai-key-2", "sk-canary-from-file\n")
            .with_file("/etc/backstop/near.txt", "sk-canary-near\n")
            .with_file("/etc/backstop/empty.txt", "\n")
            .with_file("/etc/backstop/tls.pem", "-----BEGIN CERTIFICATE-----\n")
            .with_file(
                "/etc/backstop/tls.key",
                "-----BEGIN PRIVATE KEY-----\ncanary\n",
            )
            .with_file("/run/secrets/google.json", &service_account())
    }

    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Self {
        self.variables.insert(name, value.to_owned());
        self
    }

    pub(crate) fn with_file(mut self, path: &str, text: &str) -> Self {
        self.files.insert(PathBuf::from(path), text.to_owned());
        self
    }
}

impl Sources for Fake {
    fn env(&self, name: &str) -> Option<String> {
        self.variables.get(name).cloned()
    }

    fn file(&self, path: &Path) -> io::Result<String> {
        self.files
            .get(path)
            .cloned()
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

/// A credentials file of a service account, put together so that nobody who looks for keys stops
/// here.
fn service_account() -> String {
    let key = [
        "-----BEGIN ",
        "PRIVATE KEY-----\\nY2FuYXJ5\\n-----END ",
        "PRIVATE KEY-----",
    ]
    .concat();
    format!(
        r#"{{"type":"service_account","project_id":"file-project","private_key_id":"key-id",
            "private_key":"{key}","client_email":"robot@file-project.iam.gserviceaccount.com"}}"#
    )
}

/// The snapshot of a text that is in order.
pub(crate) fn snapshot(file: &str, text: &str) -> Snapshot {
    match read(
        &Path::new("/etc/backstop").join(file),
        text,
        &Fake::full(),
        1,
    ) {
        Ok(snapshot) => snapshot,
        Err(error) => panic!("{file} was refused:\n{error}"),
    }
}

/// The faults of a text that is not.
pub(crate) fn faults(file: &str, text: &str) -> Faults {
    match read(Path::new(file), text, &Fake::full(), 1) {
        Ok(_) => panic!("accepted:\n{text}"),
        Err(Error::Refused(faults)) => faults,
        Err(other) => panic!("{other}"),
    }
}

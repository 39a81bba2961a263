//! Where values come from that are not in the file: the environment and mounted secrets.

mod aws;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use crate::fault::Problem;

/// The environment and the files, as they are handed in: the core reads neither by itself.
pub trait Sources {
    /// The value of an environment variable; `None` when it is not set or not text.
    fn env(&self, name: &str) -> Option<String>;

    /// The text of a file.
    ///
    /// # Errors
    /// When it cannot be read, or is not text.
    fn file(&self, path: &Path) -> io::Result<String>;
}

/// What a value of the file stands for.
#[derive(PartialEq, Eq)]
enum Reference<'a> {
    Literal(&'a str),
    Variable(&'a str),
    File(&'a str),
}

/// A value as it was meant.
pub(crate) struct Resolver<'a> {
    sources: &'a dyn Sources,
    /// The folder that a relative `file.PATH` starts from: the one the configuration lies in.
    folder: PathBuf,
    /// The files that were read.
    read: RefCell<BTreeSet<PathBuf>>,
}

impl<'a> Resolver<'a> {
    /// For a configuration that lies at `file`.
    pub(crate) fn new(sources: &'a dyn Sources, file: &Path) -> Self {
        let folder = file.parent().unwrap_or(Path::new("")).to_owned();
        Self {
            sources,
            folder,
            read: RefCell::default(),
        }
    }

    /// A path as it is meant: one that is relative starts at the configuration's folder.
    pub(crate) fn beside(&self, path: &Path) -> PathBuf {
        self.folder.join(path)
    }

    /// The value of an environment variable, when it is set to something.
    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        let value = self.sources.env(name)?;
        let value = value.trim();
        (!value.is_empty()).then(|| value.to_owned())
    }

    /// The text that `typed` stands for, without the blanks around it. Never empty.
    pub(crate) fn resolve(&self, typed: &str, accepted: &'static str) -> Result<String, Problem> {
        match reference(typed)? {
            Reference::Literal("") => Err(Problem::Empty { accepted }),
            Reference::Literal(text) => Ok(text.to_owned()),
            Reference::Variable(name) => {
                if let Some(value) = self.variable(name) {
                    return Ok(value);
                }
                let name = name.to_owned();
                match self.sources.env(&name) {
                    Some(_) => Err(Problem::VariableEmpty { name }),
                    None => Err(Problem::VariableUnset { name }),
                }
            }
            Reference::File(path) => self.contents(Path::new(path)),
        }
    }

    /// As [`resolve`](Self::resolve), for what may not stand in the file itself.
    pub(crate) fn reference(&self, typed: &str, accepted: &'static str) -> Result<String, Problem> {
        match reference(typed)? {
            Reference::Literal("") => Err(Problem::Empty { accepted }),
            Reference::Literal(_) => Err(Problem::KeyInFile { accepted }),
            _ => self.resolve(typed, accepted),
        }
    }

    /// The files that values were read from so far.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        self.read.borrow().iter().cloned().collect()
    }

    fn contents(&self, path: &Path) -> Result<String, Problem> {
        let file = self.folder.join(path);
        self.read.borrow_mut().insert(file.clone());
        match self.sources.file(&file) {
            Ok(text) if text.trim().is_empty() => Err(Problem::SecretFileEmpty { file }),
            Ok(text) => Ok(text.trim().to_owned()),
            Err(error) => Err(Problem::SecretFileUnreadable {
                file,
                reason: error.kind(),
            }),
        }
    }
}

/// Reads the four spellings of a variable and the one of a file.
fn reference(typed: &str) -> Result<Reference<'_>, Problem> {
    let typed = typed.trim();
    if let Some(path) = typed.strip_prefix("file.") {
        return if path.is_empty() {
            Err(Problem::BadReference)
        } else {
            Ok(Reference::File(path))
        };
    }
    let name = if let Some(rest) = typed.strip_prefix("${") {
        Some(rest.strip_suffix('}').ok_or(Problem::BadReference)?)
    } else {
        ["env::", "env.", "os.environ/"]
            .iter()
            .find_map(|prefix| typed.strip_prefix(prefix))
    };
    match name {
        Some(name) if is_variable(name) => Ok(Reference::Variable(name)),
        Some(_) => Err(Problem::BadReference),
        None if typed.starts_with('$') => Err(Problem::BadReference),
        None => Ok(Reference::Literal(typed)),
    }
}

fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_spellings_of_a_variable_and_one_of_a_file() {
        use Reference::{File, Literal, Variable};
        for (typed, want) in [
            ("env.OPENAI_KEY_1", Some(Variable("OPENAI_KEY_1"))),
            ("env::X", Some(Variable("X"))),
            ("${X}", Some(Variable("X"))),
            ("os.environ/X", Some(Variable("X"))),
            (" env.X ", Some(Variable("X"))),
            ("file./run/secrets/key", Some(File("/run/secrets/key"))),
            ("file.key.txt", Some(File("key.txt"))),
            ("sk-abc", Some(Literal("sk-abc"))),
            ("environment", Some(Literal("environment"))),
            ("", Some(Literal(""))),
            ("env.", None),
            ("env.A-B", None),
            ("env.1A", None),
            ("${X", None),
            ("${}", None),
            ("$X", None),
            ("file.", None),
            ("os.environ/", None),
        ] {
            assert!(reference(typed).ok() == want, "{typed:?}");
        }
    }
}

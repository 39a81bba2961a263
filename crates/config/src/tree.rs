//! A file as typed, in either spelling, with the place of every name and value.
//!
//! Both spellings become the same tree, so that one schema reads them and one rule says where a
//! mistake stands. A tree may hold keys: it has no `Debug`.

mod decode;
mod json;
mod toml;

use std::path::Path;

pub(crate) use decode::Misread;
use serde::de::DeserializeOwned;

use crate::fault::{Fault, Faults, Problem};
use crate::path::{FieldPath, Step};

/// How a file is spelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spelling {
    /// JSON, as in RFC 8259.
    Json,
    /// TOML 1.0.
    Toml,
}

impl Spelling {
    /// By the file's ending; without a telling one, by whether the text opens with a brace.
    #[must_use]
    pub fn of(path: &Path, text: &str) -> Self {
        let ending = path.extension().and_then(|ending| ending.to_str());
        match ending.map(str::to_ascii_lowercase).as_deref() {
            Some("json") => Self::Json,
            Some("toml") => Self::Toml,
            _ if text.trim_start().starts_with('{') => Self::Json,
            _ => Self::Toml,
        }
    }
}

/// A place in a text, both numbers from 1; columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The character in the line.
    pub column: usize,
}

/// Deeper nesting than this is refused; our schema needs 8.
const DEEPEST: usize = 32;

/// A value and where it starts, in bytes.
pub(crate) struct Node {
    at: usize,
    value: Value,
}

pub(crate) enum Value {
    Null,
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Text(String),
    /// Something the spelling has and the schema never asks for, such as a date.
    Alien(&'static str),
    /// Each element with its index as typed.
    List(Vec<(usize, Node)>),
    Table(Vec<Entry>),
}

/// A member of a table.
pub(crate) struct Entry {
    name: String,
    name_at: usize,
    node: Node,
}

/// A whole file.
pub(crate) struct Document {
    /// The file's name, as messages show it.
    file: String,
    text: String,
    root: Node,
}

impl Document {
    /// Reads a text.
    ///
    /// # Errors
    /// Every fault of the spelling that was found.
    pub(crate) fn parse(file: &Path, text: &str, spelling: Spelling) -> Result<Self, Faults> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let file = file.display().to_string();
        let parsed = match spelling {
            Spelling::Json => json::parse(text),
            Spelling::Toml => toml::parse(text),
        };
        match parsed {
            Ok(root) => Ok(Self {
                file,
                text: text.to_owned(),
                root,
            }),
            Err(found) => Err(found
                .into_iter()
                .map(|(at, problem)| Fault {
                    file: file.clone(),
                    position: Some(position(text, at)),
                    path: FieldPath::default(),
                    problem,
                })
                .collect()),
        }
    }

    /// Reads the tree by a schema. Each fault takes the value it stands in out of the tree, and the
    /// rest is read again, until nothing is left to complain about: one run reports them all. The
    /// schema must therefore require no field.
    ///
    /// # Errors
    /// All faults, in the order of the file.
    pub(crate) fn decode<T: DeserializeOwned>(mut self) -> Result<(T, Self), Faults> {
        /// More faults than this in one file are not worth reading.
        const MOST: usize = 100;
        let mut faults = Faults::default();
        loop {
            match T::deserialize(&self.root) {
                Ok(value) if faults.is_empty() => return Ok((value, self)),
                Ok(_) => return Err(faults),
                Err(Misread { mut steps, problem }) => {
                    steps.reverse();
                    let path = FieldPath::from(steps);
                    faults.push(self.fault(path.clone(), problem));
                    if faults.len() >= MOST || !self.root.prune(path.steps()) {
                        return Err(faults);
                    }
                }
            }
        }
    }

    /// A fault at `path`, or as near to it as the file goes.
    pub(crate) fn fault(&self, path: FieldPath, problem: Problem) -> Fault {
        let at = self.root.locate(path.steps(), problem.is_about_a_name());
        Fault {
            file: self.file.clone(),
            position: Some(position(&self.text, at)),
            path,
            problem,
        }
    }
}

impl Node {
    /// Where the value at `steps` stands, or the deepest of its parents that is there. Tables and
    /// lists stand where their name does, and so does everything when the `name` is asked for.
    fn locate(&self, steps: &[Step], name: bool) -> usize {
        let mut at = self.at;
        let mut node = self;
        for step in steps {
            match (step, &node.value) {
                (Step::Field(field), Value::Table(entries)) => {
                    let Some(entry) = entries.iter().find(|entry| entry.name == *field) else {
                        break;
                    };
                    node = &entry.node;
                    at = match node.value {
                        Value::List(_) | Value::Table(_) => entry.name_at,
                        _ if name => entry.name_at,
                        _ => node.at,
                    };
                }
                (Step::Item(index), Value::List(items)) => {
                    let Some((_, item)) = items.iter().find(|(typed, _)| typed == index) else {
                        break;
                    };
                    node = item;
                    at = node.at;
                }
                _ => break,
            }
        }
        at
    }

    /// Takes the value at `steps` out; false when it is not there.
    fn prune(&mut self, steps: &[Step]) -> bool {
        match (steps, &mut self.value) {
            ([Step::Field(name)], Value::Table(entries)) => {
                let before = entries.len();
                entries.retain(|entry| entry.name != *name);
                entries.len() < before
            }
            ([Step::Item(index)], Value::List(items)) => {
                let before = items.len();
                items.retain(|(typed, _)| typed != index);
                items.len() < before
            }
            ([Step::Field(name), rest @ ..], Value::Table(entries)) => entries
                .iter_mut()
                .find(|entry| entry.name == *name)
                .is_some_and(|entry| entry.node.prune(rest)),
            ([Step::Item(index), rest @ ..], Value::List(items)) => items
                .iter_mut()
                .find(|(typed, _)| typed == index)
                .is_some_and(|(_, node)| node.prune(rest)),
            _ => false,
        }
    }
}

/// The line and column of a byte.
fn position(text: &str, at: usize) -> Position {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    let before = &text[..at];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    Position {
        line: before.matches('\n').count() + 1,
        column: before[line_start..].chars().count() + 1,
    }
}

#[cfg(test)]
mod tests;

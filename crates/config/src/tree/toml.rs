//! TOML into a tree.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{DEEPEST, Entry, Node, Value};
use crate::fault::Problem;

type Found = Vec<(usize, Problem)>;

/// Reads a whole text. The parser goes on after a mistake; no more than a few are worth reading,
/// since later ones are often the shadow of the first.
pub(super) fn parse(text: &str) -> Result<Node, Found> {
    const MOST: usize = 5;
    let (root, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        let mut found = Found::new();
        for error in &errors {
            let at = error.span().map_or(0, |span| span.start);
            let problem = Problem::Syntax {
                spelling: "TOML",
                message: error.message().replace('\n', "; "),
            };
            // Of two at one place the later is the inner one: the cause.
            match found.last_mut() {
                Some(last) if last.0 == at => last.1 = problem,
                _ => found.push((at, problem)),
            }
        }
        found.truncate(MOST);
        return Err(found);
    }
    let mut found = Found::new();
    let at = root.span().start;
    let value = table(root.into_inner(), 0, &mut found);
    if found.is_empty() {
        Ok(Node { at, value })
    } else {
        Err(found)
    }
}

fn node(value: Spanned<DeValue<'_>>, depth: usize, found: &mut Found) -> Node {
    let at = value.span().start;
    if depth > DEEPEST {
        found.push((at, Problem::TooDeep { deepest: DEEPEST }));
        return Node {
            at,
            value: Value::Null,
        };
    }
    let value = match value.into_inner() {
        DeValue::String(text) => Value::Text(text.into_owned()),
        DeValue::Boolean(value) => Value::Bool(value),
        DeValue::Integer(number) => integer(number.as_str(), number.radix()),
        DeValue::Float(number) => Value::Float(number.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Datetime(_) => Value::Alien("a date"),
        DeValue::Array(items) => Value::List(
            items
                .into_iter()
                .enumerate()
                .map(|(index, item)| (index, node(item, depth + 1, found)))
                .collect(),
        ),
        DeValue::Table(inner) => table(inner, depth, found),
    };
    Node { at, value }
}

fn integer(digits: &str, radix: u32) -> Value {
    if let Ok(value) = u64::from_str_radix(digits, radix) {
        Value::Unsigned(value)
    } else if let Ok(value) = i64::from_str_radix(digits, radix) {
        Value::Signed(value)
    } else {
        Value::Alien("a number that is far too large")
    }
}

fn table(members: DeTable<'_>, depth: usize, found: &mut Found) -> Value {
    let mut entries: Vec<Entry> = members
        .into_iter()
        .map(|(name, value)| Entry {
            name_at: name.span().start,
            name: name.into_inner().into_owned(),
            node: node(value, depth + 1, found),
        })
        .collect();
    // The parser sorts by name; an operator thinks in the order of the file.
    entries.sort_by_key(|entry| entry.name_at);
    Value::Table(entries)
}

//! Where in a configuration something stands, independent of its spelling.

use std::fmt;

/// One step down into a configuration.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    /// The member of a table.
    Field(String),
    /// The element of a list, from 0.
    Item(usize),
}

/// The way from the top to a value. Prints as `providers.openai.keys[1].value`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct FieldPath(Vec<Step>);

impl FieldPath {
    /// The steps from the top.
    pub(crate) fn steps(&self) -> &[Step] {
        &self.0
    }

    /// The member `name` of the table that stands here.
    pub(crate) fn field(&self, name: &str) -> Self {
        self.then(Step::Field(name.to_owned()))
    }

    /// The element of the list that stands here.
    pub(crate) fn item(&self, index: usize) -> Self {
        self.then(Step::Item(index))
    }

    fn then(&self, step: Step) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        Self(steps)
    }
}

impl From<Vec<Step>> for FieldPath {
    fn from(steps: Vec<Step>) -> Self {
        Self(steps)
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, step) in self.0.iter().enumerate() {
            match step {
                Step::Item(index) => write!(f, "[{index}]")?,
                Step::Field(name) => {
                    if place > 0 {
                        f.write_str(".")?;
                    }
                    f.write_str(&shown(name))?;
                }
            }
        }
        Ok(())
    }
}

/// A name as it may be shown: bare when it is plain, quoted when it is not, hidden when it is long
/// enough to be a key that went astray.
pub(crate) fn shown(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if looks_secret(name) {
        "\"[hidden]\"".to_owned()
    } else if !name.is_empty() && name.chars().all(plain) {
        name.to_owned()
    } else {
        format!("{name:?}")
    }
}

/// Whether a text where a name should be is more likely a key: a usual prefix, or very long.
fn looks_secret(name: &str) -> bool {
    const PREFIXES: [&str; 7] = ["sk-", "sk_", "gsk_", "xai-", "pplx-", "csk-", "AIza"];
    name.len() > 120 || (name.len() >= 16 && PREFIXES.iter().any(|p| name.starts_with(p)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_read_as_an_operator_would_write_them() {
        let path = FieldPath::default().field("providers").field("openai");
        assert_eq!(
            path.field("keys").item(1).field("value").to_string(),
            "providers.openai.keys[1].value"
        );
        let routes = FieldPath::default().field("routes");
        assert_eq!(routes.field("gpt-4.1").to_string(), "routes.\"gpt-4.1\"");
        assert_eq!(routes.field("").to_string(), "routes.\"\"");
        let stray = routes.field("sk-proj-0123456789abcdef").to_string();
        assert_eq!(stray, "routes.\"[hidden]\"");
    }
}

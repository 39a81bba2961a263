//! The environment of a test: addresses of its providers, and keys that give themselves away.

use std::collections::HashMap;
use std::io;
use std::path::Path;

use backstop_faultsim::Sim;

/// What every test key begins with. Wherever it turns up, a secret has leaked.
pub const CANARY: &str = "canary";

/// The value of the variable `name`, such as `OPENAI_KEY_1`.
#[must_use]
pub fn secret(name: &str) -> String {
    let tail = name.to_ascii_lowercase().replace('_', "-");
    format!("{CANARY}-{tail}-0a1b2c3d4e5f")
}

/// `<PROVIDER>_URL` leads to that provider's simulator; every `..._KEY_<n>` and `..._API_KEY` is
/// set.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sources {
    variables: HashMap<String, String>,
}

impl Sources {
    pub(crate) fn new(sims: &[(&str, &Sim)]) -> Self {
        let variables = sims
            .iter()
            .map(|(name, sim)| (format!("{}_URL", name.to_ascii_uppercase()), sim.url()));
        Self {
            variables: variables.collect(),
        }
    }
}

impl backstop_config::Sources for Sources {
    fn env(&self, name: &str) -> Option<String> {
        let set = self.variables.get(name).cloned();
        set.or_else(|| name.contains("_KEY").then(|| secret(name)))
    }

    fn file(&self, _: &Path) -> io::Result<String> {
        Err(io::ErrorKind::NotFound.into())
    }
}

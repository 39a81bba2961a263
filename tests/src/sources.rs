//! The environment of a test: addresses of its providers, and keys that give themselves away.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::OnceLock;

use backstop_faultsim::Sim;
use rcgen::{KeyPair, PKCS_RSA_SHA256, RsaKeySize};
use serde_json::json;

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

    /// Google credentials files, whose tokens are had at the simulator `tokens`: `account-….json` of
    /// a service account, `person-….json` of a person whose secrets are named after the file.
    fn file(&self, path: &Path) -> io::Result<String> {
        let name = path.file_stem().and_then(|name| name.to_str());
        let name = name.unwrap_or_default();
        let none = || io::Error::from(io::ErrorKind::NotFound);
        // Without the simulator nobody is there.
        let nobody = "http://127.0.0.1:9".to_owned();
        let endpoint = self.variables.get("TOKENS_URL").unwrap_or(&nobody);
        let token_uri = format!("{endpoint}/token");
        let file = if name.starts_with("account") {
            json!({
                "type": "service_account",
                "project_id": "file-project",
                "private_key_id": "key-id",
                "private_key": private_key(),
                "client_email": "robot@file-project.iam.gserviceaccount.com",
                "token_uri": token_uri,
            })
        } else if name.starts_with("person") {
            json!({
                "type": "authorized_user",
                "client_id": "app",
                "client_secret": secret(&format!("{name}_client_secret")),
                "refresh_token": secret(&format!("{name}_refresh")),
                "quota_project_id": "file-project",
                "token_uri": token_uri,
            })
        } else {
            return Err(none());
        };
        Ok(file.to_string())
    }
}

/// The private key of the service account, one for all tests of a process.
///
/// # Panics
/// When no key can be made.
#[must_use]
pub fn private_key() -> &'static str {
    static KEY: OnceLock<String> = OnceLock::new();
    KEY.get_or_init(|| {
        let pair = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048);
        pair.expect("an RSA key").serialize_pem()
    })
}

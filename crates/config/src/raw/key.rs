//! The keys of a provider as typed.

use std::collections::BTreeMap;

use serde::Deserialize;

/// `providers.<name>.keys[]`, in full.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawKey {
    /// The name in trails and logs. Default `<provider>-key-<n>`, from 1.
    pub(crate) name: Option<String>,
    /// The key: `env.NAME`, `file.PATH`, or the value itself. Required, unless it is written in
    /// another form.
    pub(crate) value: Option<String>,
    /// `vertex` only, in place of `value`: `file.PATH` of a Google credentials file, of a service
    /// account or a person (`gcloud auth application-default login`).
    pub(crate) service_account: Option<String>,
    /// `azure` only, in place of `value`: an application registered with Microsoft Entra.
    pub(crate) entra: Option<RawEntra>,
    /// `bedrock` only, in place of `value`: an access key of AWS' to sign with.
    pub(crate) aws: Option<RawAws>,
    /// What the provider calls some models where this key is used: a deployment, an inference
    /// profile, an ARN. By the name that callers, trail and answers keep. Default: none.
    pub(crate) aliases: Option<BTreeMap<String, String>>,
    /// The models it may be used for, beside those in `aliases`. Default `["*"]`, all; with
    /// `aliases`, those alone.
    pub(crate) models: Option<Vec<String>>,
    /// Its share among the keys. Default 1; 0 drains it.
    pub(crate) weight: Option<f64>,
}

/// `providers.<name>.keys[].entra`. Values may be `env.NAME` or `file.PATH`.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawEntra {
    /// The directory: its id or its domain. Required.
    pub(crate) tenant: Option<String>,
    /// The application's id. Required.
    pub(crate) client_id: Option<String>,
    /// The application's secret. Required.
    pub(crate) client_secret: Option<String>,
    /// Where tokens are had. Default `https://login.microsoftonline.com`; other clouds have their
    /// own.
    pub(crate) authority: Option<String>,
}

/// `providers.<name>.keys[].aws`. Values may be `env.NAME` or `file.PATH`. Without any of its fields:
/// `AWS_ACCESS_KEY_ID` and its companions, else the profile that `AWS_PROFILE` names, else the
/// profile `default`.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawAws {
    /// The key's id.
    pub(crate) access_key_id: Option<String>,
    /// What is signed with.
    pub(crate) secret_access_key: Option<String>,
    /// What a temporary key is sent with. Default: none.
    pub(crate) session_token: Option<String>,
    /// In place of the other three: a profile in `~/.aws/credentials` or `~/.aws/config`
    /// (`AWS_SHARED_CREDENTIALS_FILE`, `AWS_CONFIG_FILE`) that holds a key.
    pub(crate) profile: Option<String>,
}

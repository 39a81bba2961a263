//! Anthropic's Messages API.
//!
//! Docs: <https://docs.claude.com/en/api/overview>. Quirks:
//! - The key goes in `x-api-key`, not in `Authorization`.
//! - `anthropic-version` is required; 2023-06-01 is the only current one, and is sent when the
//!   caller names none.
//! - `anthropic-beta` is a list: the caller's entries and the operator's are both sent.

use backstop_classifier::Family;
use backstop_dialects::{Dialect, Operation};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::adapter::{Adapter, Signature};
use crate::{Call, Error, Provider};

const VERSION: HeaderName = HeaderName::from_static("anthropic-version");
const BETA: HeaderName = HeaderName::from_static("anthropic-beta");
static FORWARDS: [HeaderName; 2] = [VERSION, BETA];
static JOINS: [HeaderName; 1] = [BETA];

/// Anthropic itself, or a server that resembles it.
#[derive(Debug)]
pub(crate) struct Anthropic;

impl Adapter for Anthropic {
    fn dialect(&self) -> Dialect {
        Dialect::AnthropicMessages
    }

    fn family(&self) -> Family {
        Family::Anthropic
    }

    fn path(&self) -> &'static str {
        "/messages"
    }

    fn operation_path(&self, _provider: &Provider, call: &Call<'_>) -> Option<String> {
        let counts = call.operation == Operation::CountTokens;
        counts.then(|| "/messages/count_tokens".to_owned())
    }

    fn signature(&self) -> Signature {
        Signature::Header("x-api-key")
    }

    fn forwards(&self) -> &'static [HeaderName] {
        &FORWARDS
    }

    fn joins(&self) -> &'static [HeaderName] {
        &JOINS
    }

    fn own_headers(&self, _call: &Call<'_>, headers: &mut HeaderMap) -> Result<(), Error> {
        headers.insert(VERSION, HeaderValue::from_static("2023-06-01"));
        Ok(())
    }
}

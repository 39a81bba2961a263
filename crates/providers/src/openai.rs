//! OpenAI, and the many servers that speak its chat dialect.
//!
//! Docs: <https://platform.openai.com/docs/api-reference>. Quirks:
//! - `X-Client-Request-Id` lets OpenAI's support find a request by our id, also when no answer came
//!   (API reference, "Debugging requests": ASCII, at most 512 characters). Sent to OpenAI alone.
//! - An organisation or project may be chosen by header with a key that belongs to several (API
//!   reference, "Authentication").
//! - It speaks two dialects at one address, and so do some of the others: those of which an answer
//!   in the second one was recorded.

use backstop_classifier::Family;
use backstop_dialects::{Dialect, Operation};
use http::{HeaderMap, HeaderName};

use crate::adapter::{Adapter, request_id};
use crate::{Call, Error, Provider};

const CLIENT_REQUEST_ID: HeaderName = HeaderName::from_static("x-client-request-id");
/// The longest id OpenAI takes in [`CLIENT_REQUEST_ID`].
const CLIENT_REQUEST_ID_MAX: usize = 512;

/// OpenAI's second dialect, below the same version.
pub(crate) const RESPONSES: &[(Dialect, &str)] = &[(Dialect::OpenAiResponses, "/responses")];

/// Where OpenAI, and who is like it, is asked for vectors.
const EMBEDDINGS: &str = "/embeddings";

static FORWARDS: [HeaderName; 4] = [
    HeaderName::from_static("openai-organization"),
    HeaderName::from_static("openai-project"),
    HeaderName::from_static("openai-beta"),
    HeaderName::from_static("idempotency-key"),
];

/// OpenAI itself.
#[derive(Debug)]
pub(crate) struct OpenAi;

impl Adapter for OpenAi {
    fn dialect(&self) -> Dialect {
        Dialect::OpenAiChat
    }

    fn family(&self) -> Family {
        Family::OpenAi
    }

    fn path(&self) -> &'static str {
        "/chat/completions"
    }

    fn operation_path(&self, _provider: &Provider, call: &Call<'_>) -> Option<String> {
        (call.operation == Operation::Embed).then(|| EMBEDDINGS.to_owned())
    }

    fn also(&self) -> &'static [(Dialect, &'static str)] {
        RESPONSES
    }

    fn forwards(&self) -> &'static [HeaderName] {
        &FORWARDS
    }

    fn own_headers(&self, call: &Call<'_>, headers: &mut HeaderMap) -> Result<(), Error> {
        let id = call.request_id.as_str();
        if id.is_ascii() && id.len() <= CLIENT_REQUEST_ID_MAX {
            headers.insert(CLIENT_REQUEST_ID, request_id(call)?);
        }
        Ok(())
    }
}

/// A server that speaks the same dialect and has no quirk in its requests.
#[derive(Debug)]
pub(crate) struct Compatible {
    /// Whose table of failures is read first.
    pub(crate) family: Family,
    /// The version segment added to an address that names none.
    pub(crate) version: &'static str,
    /// What it speaks besides.
    pub(crate) also: &'static [(Dialect, &'static str)],
    /// Whether it serves models that make vectors.
    pub(crate) embeds: bool,
}

impl Adapter for Compatible {
    fn dialect(&self) -> Dialect {
        Dialect::OpenAiChat
    }

    fn family(&self) -> Family {
        self.family
    }

    fn path(&self) -> &'static str {
        "/chat/completions"
    }

    fn operation_path(&self, _provider: &Provider, call: &Call<'_>) -> Option<String> {
        (self.embeds && call.operation == Operation::Embed).then(|| EMBEDDINGS.to_owned())
    }

    fn also(&self) -> &'static [(Dialect, &'static str)] {
        self.also
    }

    fn version(&self) -> &'static str {
        self.version
    }

    fn says_max_tokens(&self) -> bool {
        true
    }
}

//! Cohere.
//!
//! Docs: <https://docs.cohere.com/reference/chat>, read 2026-11. Only the second version of its API
//! is spoken: the first has another shape.

use backstop_classifier::Family;
use backstop_dialects::{Dialect, Operation};

use crate::adapter::Adapter;
use crate::{Call, Provider};

/// Cohere's own API.
#[derive(Debug)]
pub(crate) struct Cohere;

impl Adapter for Cohere {
    fn dialect(&self) -> Dialect {
        Dialect::CohereV2
    }

    fn family(&self) -> Family {
        Family::Cohere
    }

    fn path(&self) -> &'static str {
        "/chat"
    }

    fn operation_path(&self, _provider: &Provider, call: &Call<'_>) -> Option<String> {
        (call.operation == Operation::Embed).then(|| "/embed".to_owned())
    }

    fn version(&self) -> &'static str {
        "/v2"
    }
}

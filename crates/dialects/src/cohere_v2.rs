//! Cohere's `/v2/chat` (docs.cohere.com/reference/chat), read 2026-11.
//!
//! What is peculiar to it: a model says its plan before it calls tools (`tool_plan`); tools are
//! called or not, never one by name; a stream's error is the reason of its last event; counts for
//! billing stand beside the counts of tokens and are smaller.

pub(crate) mod answer;
pub(crate) mod error;
pub(crate) mod request;
pub(crate) mod stream;

mod usage;

/// The dialect's name on what only it knows.
const OWN: &str = "cohere-v2";

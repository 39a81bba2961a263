//! Google's `generateContent` and `streamGenerateContent` (ai.google.dev/api/generate-content), as
//! the Gemini API and Vertex speak them.
//!
//! What is peculiar to it: the model and whether the answer is streamed stand in the path; a call
//! ends with `STOP` like any answer; calls have no ids before Gemini 3, and from Gemini 3 on carry a
//! signature that must come back; prompts and answers withheld for their content are results;
//! streams have no end marker.

pub(crate) mod answer;
pub(crate) mod error;
pub(crate) mod request;
pub(crate) mod stream;

mod part;
mod signature;
mod usage;

/// The dialect's name on what only it knows.
const OWN: &str = "gemini";

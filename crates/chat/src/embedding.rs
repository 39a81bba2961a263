//! The neutral shape of texts that become vectors.

use backstop_units::Tokens;
use serde::Serialize;

use crate::content::{Json, Text};
use crate::request::Extra;
use crate::usage::Usage;

/// A request for vectors in the neutral shape. Fields that are `None` were not said.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct EmbedRequest {
    /// The model as named by whoever wrote this request.
    pub model: String,
    /// What is to be embedded, a vector each.
    pub inputs: Vec<EmbedInput>,
    /// How long each vector is to be.
    pub dimensions: Option<u64>,
    /// What the vectors are for, where the dialect can say so.
    pub purpose: Option<Purpose>,
    /// What happens to an input that is too long: the end of it that is kept, or none of it, which
    /// is refused.
    pub truncate: Option<Truncate>,
    /// The caller's own end-user id.
    pub user: Option<Text>,
    /// What only the dialect it came in knows.
    pub extras: Vec<Extra>,
}

/// One text to be embedded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EmbedInput {
    /// In words.
    Text(Text),
    /// As ids of the model's own tokens, which no other model can read.
    Tokens(Vec<u32>),
}

/// What vectors are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// To search with.
    Query,
    /// To be found.
    Document,
    /// To be told apart by classes.
    Classification,
    /// To be put together in groups.
    Clustering,
    /// To be compared with each other.
    Similarity,
    /// A question whose answers are searched for.
    QuestionAnswering,
    /// A statement to be checked against documents.
    FactVerification,
    /// A question about code.
    CodeQuery,
}

/// Which end of a text that is too long is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Truncate {
    /// Neither: the text is refused.
    Refuse,
    /// Its beginning.
    Start,
    /// Its end.
    End,
}

/// How numbers of a vector are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Encoding {
    /// As an array of numbers.
    #[default]
    Float,
    /// As base64 of 32-bit floats, the least significant byte first.
    Base64,
}

/// Vectors in the neutral shape.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct EmbedAnswer {
    /// The model as its provider reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// One for each input, in the order of the inputs.
    pub vectors: Vec<Vector>,
    /// Tokens spent. Vectors cost input only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

impl EmbedAnswer {
    /// Tokens read, where that is known.
    #[must_use]
    pub fn input_tokens(&self) -> Option<Tokens> {
        self.usage.and_then(|usage| usage.input)
    }
}

/// One vector, in the spelling in which it came, so that no number is rounded on the way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Vector {
    /// An array of numbers.
    Numbers(Json),
    /// Base64 of 32-bit floats, the least significant byte first.
    Base64(Text),
}

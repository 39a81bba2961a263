//! What a caller asks of a model.

use serde::{Deserialize, Serialize};

use crate::content::{Json, Part, Text};

/// A request in the neutral shape. Fields that are `None` or empty were not said.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Request {
    /// The model as named by whoever wrote this request.
    pub model: String,
    /// Whether the answer comes as a stream.
    pub stream: bool,
    /// Whether the caller asked for token usage at the end of a stream. True for dialects that
    /// always send it.
    pub include_usage: bool,
    /// The system prompt of a dialect that keeps it apart from the messages: text parts.
    pub instructions: Vec<Part>,
    /// The conversation, oldest first, system messages in their place, each entry one message of
    /// the request as written.
    pub messages: Vec<Message>,
    /// What the model may call.
    pub tools: Vec<Tool>,
    /// Whether and which tool must be called.
    pub tool_choice: Option<ToolChoice>,
    /// Whether several tools may be called in one turn.
    pub parallel_tool_calls: Option<bool>,
    /// The form the answer must have.
    pub response_format: Option<ResponseFormat>,
    /// How much the model should think.
    pub reasoning: Option<Reasoning>,
    /// Most tokens to generate, reasoning included.
    pub max_tokens: Option<u64>,
    /// Sampling temperature, on the 0..2 scale.
    pub temperature: Option<f64>,
    /// Nucleus sampling.
    pub top_p: Option<f64>,
    /// Sampling from the k likeliest tokens.
    pub top_k: Option<u64>,
    /// Strings that end the answer.
    pub stop: Vec<Text>,
    /// Seed for sampling.
    pub seed: Option<i64>,
    /// Penalty on tokens already present.
    pub presence_penalty: Option<f64>,
    /// Penalty on tokens by their count.
    pub frequency_penalty: Option<f64>,
    /// How many answers; absent means 1.
    pub n: Option<u64>,
    /// Whether token probabilities are wanted.
    pub logprobs: Option<bool>,
    /// How many alternatives per token.
    pub top_logprobs: Option<u64>,
    /// The caller's own end-user id.
    pub user: Option<Text>,
    /// What only the dialect it came in knows.
    pub extras: Vec<Extra>,
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The operator of the application.
    System,
    /// The same, as newer dialects call it.
    Developer,
    /// The person.
    User,
    /// The model.
    Assistant,
    /// A tool's results.
    Tool,
}

/// One turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// A participant's name, where the dialect knows one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Text>,
    /// What is said.
    pub parts: Vec<Part>,
}

/// Something the model may call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Tool {
    /// A function the caller runs.
    Function {
        /// Its name.
        name: String,
        /// What it is for.
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<Text>,
        /// JSON schema of its arguments.
        #[serde(skip_serializing_if = "Option::is_none")]
        parameters: Option<Json>,
        /// Whether arguments must follow the schema exactly.
        #[serde(skip_serializing_if = "Option::is_none")]
        strict: Option<bool>,
    },
    /// A tool only one dialect knows.
    Other {
        /// The dialect it belongs to.
        dialect: &'static str,
        /// What that dialect calls it.
        kind: String,
        /// The tool as written.
        value: Json,
    },
}

/// Whether and which tool must be called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// The model decides.
    Auto,
    /// None.
    None,
    /// At least one.
    Required,
    /// This one.
    Named(String),
}

/// The form an answer must have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ResponseFormat {
    /// Words.
    Text,
    /// Some JSON object.
    JsonObject,
    /// JSON that follows a schema.
    JsonSchema {
        /// The schema's name, where the dialect wants one.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// What it is for.
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<Text>,
        /// The schema.
        schema: Json,
        /// Whether it must be followed exactly.
        #[serde(skip_serializing_if = "Option::is_none")]
        strict: Option<bool>,
    },
}

/// How much the model should think.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reasoning {
    /// Not at all.
    Off,
    /// As the model sees fit, leaning this way.
    Effort(Effort),
    /// Up to this many tokens.
    Budget(u64),
    /// As the model sees fit.
    Adaptive,
}

/// A step on the scale of effort.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effort {
    /// Hardly any.
    Minimal,
    /// Little.
    Low,
    /// Some.
    Medium,
    /// Much.
    High,
    /// More than `high`.
    #[serde(rename = "xhigh")]
    ExtraHigh,
    /// As much as the model can.
    Max,
}

/// A field only its own dialect knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Extra {
    /// The dialect it came in.
    pub dialect: &'static str,
    /// Where it stood, such as `logit_bias` or `messages[2].content[0].cache_control`.
    pub path: String,
    /// Its value as written.
    pub value: Json,
    /// What leaving it out would cost.
    pub weight: Weight,
}

/// What leaving a field out costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// The answer may differ: part of the contract.
    Contract,
    /// The answer is the same; caching, storage labels, cost.
    Hint,
}

//! The providers we know by name: a row each.

use backstop_classifier::Family;

use crate::adapter::Adapter;
use crate::anthropic::Anthropic;
use crate::azure::Azure;
use crate::bedrock::Bedrock;
use crate::cohere::Cohere;
use crate::gemini::Gemini;
use crate::openai::{Compatible, OpenAi, RESPONSES};
use crate::vertex::Vertex;

/// What is known of a provider before an operator says anything.
#[derive(Debug)]
pub struct Row {
    /// The name that configuration uses in `kind`, and that a provider is called by default.
    pub kind: &'static str,
    /// The public address; `None` when an operator must give one.
    pub base_url: Option<&'static str>,
    /// The environment variable that its users keep a key in.
    pub key_variable: Option<&'static str>,
    /// The environment variable that moves its address.
    pub base_url_variable: Option<&'static str>,
    /// Whether it answers without a key.
    pub keyless: bool,
    /// What it says about its wire.
    pub adapter: &'static dyn Adapter,
}

/// The row called `kind`.
#[must_use]
pub fn row(kind: &str) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.kind == kind)
}

/// Every row, the most widely used first.
#[must_use]
pub fn rows() -> &'static [Row] {
    ROWS
}

/// A public service with a key.
const fn hosted(
    kind: &'static str,
    base_url: &'static str,
    key_variable: &'static str,
    base_url_variable: &'static str,
    adapter: &'static dyn Adapter,
) -> Row {
    Row {
        kind,
        base_url: Some(base_url),
        key_variable: Some(key_variable),
        base_url_variable: Some(base_url_variable),
        keyless: false,
        adapter,
    }
}

/// A server of the operator's own, usually without a key, at the address it has by default.
const fn local(
    kind: &'static str,
    base_url: &'static str,
    base_url_variable: &'static str,
    adapter: &'static dyn Adapter,
) -> Row {
    Row {
        kind,
        base_url: Some(base_url),
        key_variable: None,
        base_url_variable: Some(base_url_variable),
        keyless: true,
        adapter,
    }
}

/// Paths below `/v1`, as most have them.
const V1: &str = "/v1";
/// Paths without a version.
const NONE: &str = "";

/// Addresses and variable names as commonly documented (notes of 2026-11, not each re-read).
static ROWS: &[Row] = &[
    hosted(
        "openai",
        "https://api.openai.com/v1",
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        &OpenAi,
    ),
    hosted(
        "anthropic",
        "https://api.anthropic.com/v1",
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_BASE_URL",
        &Anthropic,
    ),
    hosted(
        "gemini",
        "https://generativelanguage.googleapis.com/v1beta",
        "GEMINI_API_KEY",
        "GEMINI_BASE_URL",
        &Gemini,
    ),
    Row {
        kind: "vertex",
        // By location.
        base_url: None,
        key_variable: Some("GOOGLE_APPLICATION_CREDENTIALS"),
        base_url_variable: Some("VERTEX_BASE_URL"),
        keyless: false,
        adapter: &Vertex,
    },
    Row {
        kind: "azure",
        // Every resource has one of its own.
        base_url: None,
        key_variable: Some("AZURE_OPENAI_API_KEY"),
        base_url_variable: Some("AZURE_OPENAI_ENDPOINT"),
        keyless: false,
        adapter: Azure::DEFAULT,
    },
    Row {
        kind: "bedrock",
        // By region.
        base_url: None,
        key_variable: Some("AWS_BEARER_TOKEN_BEDROCK"),
        base_url_variable: Some("AWS_ENDPOINT_URL_BEDROCK_RUNTIME"),
        keyless: false,
        adapter: &Bedrock,
    },
    hosted(
        "cohere",
        "https://api.cohere.com/v2",
        "COHERE_API_KEY",
        "COHERE_BASE_URL",
        &Cohere,
    ),
    hosted(
        "groq",
        "https://api.groq.com/openai/v1",
        "GROQ_API_KEY",
        "GROQ_BASE_URL",
        &Compatible {
            family: Family::Groq,
            version: V1,
            also: &[],
            embeds: false,
        },
    ),
    hosted(
        "mistral",
        "https://api.mistral.ai/v1",
        "MISTRAL_API_KEY",
        "MISTRAL_BASE_URL",
        &Compatible {
            family: Family::Mistral,
            version: V1,
            also: &[],
            embeds: true,
        },
    ),
    hosted(
        "deepseek",
        "https://api.deepseek.com",
        "DEEPSEEK_API_KEY",
        "DEEPSEEK_BASE_URL",
        &Compatible {
            family: Family::DeepSeek,
            version: NONE,
            also: RESPONSES,
            embeds: false,
        },
    ),
    hosted(
        "openrouter",
        "https://openrouter.ai/api/v1",
        "OPENROUTER_API_KEY",
        "OPENROUTER_BASE_URL",
        &Compatible {
            family: Family::OpenRouter,
            version: V1,
            also: RESPONSES,
            embeds: true,
        },
    ),
    hosted(
        "xai",
        "https://api.x.ai/v1",
        "XAI_API_KEY",
        "XAI_BASE_URL",
        &Compatible {
            family: Family::Xai,
            version: V1,
            also: RESPONSES,
            embeds: false,
        },
    ),
    hosted(
        "together",
        "https://api.together.xyz/v1",
        "TOGETHER_API_KEY",
        "TOGETHER_BASE_URL",
        &Compatible {
            family: Family::Together,
            version: V1,
            also: &[],
            embeds: true,
        },
    ),
    hosted(
        "fireworks",
        "https://api.fireworks.ai/inference/v1",
        "FIREWORKS_API_KEY",
        "FIREWORKS_BASE_URL",
        &Compatible {
            family: Family::Fireworks,
            version: V1,
            also: &[],
            embeds: true,
        },
    ),
    hosted(
        "cerebras",
        "https://api.cerebras.ai/v1",
        "CEREBRAS_API_KEY",
        "CEREBRAS_BASE_URL",
        &Compatible {
            family: Family::Cerebras,
            version: V1,
            also: &[],
            embeds: false,
        },
    ),
    hosted(
        "perplexity",
        "https://api.perplexity.ai",
        "PERPLEXITY_API_KEY",
        "PERPLEXITY_BASE_URL",
        &Compatible {
            family: Family::Perplexity,
            version: NONE,
            also: &[],
            embeds: false,
        },
    ),
    local(
        "ollama",
        "http://127.0.0.1:11434/v1",
        "OLLAMA_BASE_URL",
        &Compatible {
            family: Family::Ollama,
            version: V1,
            also: &[],
            embeds: true,
        },
    ),
    local(
        "vllm",
        "http://127.0.0.1:8000/v1",
        "VLLM_BASE_URL",
        &Compatible {
            family: Family::Vllm,
            version: V1,
            also: &[],
            embeds: true,
        },
    ),
    local(
        "lmstudio",
        "http://127.0.0.1:1234/v1",
        "LMSTUDIO_BASE_URL",
        &Compatible {
            family: Family::LmStudio,
            version: V1,
            also: &[],
            embeds: true,
        },
    ),
    Row {
        kind: "custom",
        base_url: None,
        key_variable: None,
        base_url_variable: None,
        keyless: true,
        adapter: &Compatible {
            family: Family::General,
            version: V1,
            also: &[],
            embeds: true,
        },
    },
];

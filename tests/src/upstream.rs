//! A provider for each dialect, as an operator would configure it.

use crate::surface::Surface;

/// A provider that speaks one dialect to every caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UpstreamDialect(pub Surface);

impl UpstreamDialect {
    /// Its name in the configuration.
    #[must_use]
    pub const fn provider(self) -> &'static str {
        match self.0 {
            Surface::OpenAiChat | Surface::OpenAiResponses => "openai",
            Surface::AnthropicMessages => "anthropic",
            Surface::Gemini => "gemini",
            Surface::CohereV2 => "cohere",
            Surface::BedrockConverse => "bedrock",
        }
    }

    /// `provider/model`.
    #[must_use]
    pub fn model(self) -> String {
        format!("{}/some-model", self.provider())
    }

    /// A configuration with this provider alone.
    #[must_use]
    pub fn config(self) -> String {
        let name = self.provider();
        let variable = name.to_ascii_uppercase();
        let more = match self.0 {
            Surface::BedrockConverse => "region = \"eu-central-1\"",
            _ => "",
        };
        format!(
            r#"
            [providers.{name}]
            base_url = "env.{variable}_URL"
            keys = ["env.{variable}_KEY_1"]
            network_config = {{ retry_backoff_initial = 1 }}
            {more}
            "#
        )
    }

    /// Whether callers of `surface` are served by it in its dialect.
    #[must_use]
    pub fn serves(self, surface: Surface) -> bool {
        match self.0 {
            // OpenAI speaks both of its dialects; others are served in the first.
            Surface::OpenAiResponses => surface == Surface::OpenAiResponses,
            Surface::OpenAiChat => surface != Surface::OpenAiResponses,
            _ => true,
        }
    }
}

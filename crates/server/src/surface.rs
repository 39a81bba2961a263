//! Which paths the gateway answers, and in whose dialect.

use backstop_dialects::Dialect;
use http::Method;

/// What a path leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Surface {
    /// A conversation, in this dialect.
    Chat(Dialect),
    /// The models a caller may name.
    Models,
    /// Whether the process lives.
    Health,
    /// Whether it should get traffic.
    Ready,
    /// Numbers for operators.
    Metrics,
}

impl Surface {
    /// The surface at `path`. Both drop-in prefixes (`/openai`, `/anthropic`) lead to the same
    /// surfaces as the bare paths.
    pub(crate) fn at(path: &str) -> Option<Self> {
        let bare = path
            .strip_prefix("/openai")
            .or_else(|| path.strip_prefix("/anthropic"))
            .filter(|rest| rest.starts_with("/v1/"))
            .unwrap_or(path);
        match bare {
            "/v1/chat/completions" => Some(Self::Chat(Dialect::OpenAiChat)),
            "/v1/responses" => Some(Self::Chat(Dialect::OpenAiResponses)),
            "/v1/messages" => Some(Self::Chat(Dialect::AnthropicMessages)),
            "/v1/models" => Some(Self::Models),
            "/healthz" => Some(Self::Health),
            "/readyz" => Some(Self::Ready),
            "/metrics" => Some(Self::Metrics),
            _ => None,
        }
    }

    /// The one method it answers.
    pub(crate) const fn method(self) -> Method {
        match self {
            Self::Chat(_) => Method::POST,
            _ => Method::GET,
        }
    }
}

/// The dialect in which an error about `path` is told, known path or not.
pub(crate) fn dialect_of(path: &str) -> Dialect {
    if path.starts_with("/anthropic/") || path.starts_with("/v1/messages") {
        Dialect::AnthropicMessages
    } else if path.starts_with("/v1/responses") || path.starts_with("/openai/v1/responses") {
        Dialect::OpenAiResponses
    } else {
        Dialect::OpenAiChat
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_where_the_drop_in_clients_expect() {
        for (path, surface) in [
            (
                "/v1/chat/completions",
                Some(Surface::Chat(Dialect::OpenAiChat)),
            ),
            (
                "/openai/v1/chat/completions",
                Some(Surface::Chat(Dialect::OpenAiChat)),
            ),
            (
                "/anthropic/v1/messages",
                Some(Surface::Chat(Dialect::AnthropicMessages)),
            ),
            (
                "/v1/messages",
                Some(Surface::Chat(Dialect::AnthropicMessages)),
            ),
            (
                "/v1/responses",
                Some(Surface::Chat(Dialect::OpenAiResponses)),
            ),
            (
                "/openai/v1/responses",
                Some(Surface::Chat(Dialect::OpenAiResponses)),
            ),
            ("/anthropic/v1/models", Some(Surface::Models)),
            ("/v1/messages/", None),
            ("/openai/metrics", None),
            ("/openaiv1/models", None),
            ("/", None),
        ] {
            assert_eq!(Surface::at(path), surface, "{path}");
        }
    }
}

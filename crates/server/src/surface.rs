//! Which paths the gateway answers, and in whose dialect.

use backstop_dialects::Dialect;
use http::{Method, Uri};

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
            _ => models_and_method(path).map(|_| Self::Chat(Dialect::Gemini)),
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

/// What the path of a dialect says that names the model there.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Addressed {
    /// A route's name or `provider/model`.
    pub(crate) model: String,
    /// Whether the answer is streamed.
    pub(crate) stream: bool,
    /// Whether the stream is one array rather than events.
    pub(crate) array: bool,
}

impl Addressed {
    /// What stands in a path like `/genai/v1beta/models/{model}:generateContent`; `None` for others.
    pub(crate) fn read(uri: &Uri) -> Option<Self> {
        let (model, method) = models_and_method(uri.path())?;
        let stream = method == "streamGenerateContent";
        let mut asked = uri.query().unwrap_or_default().split('&');
        Some(Self {
            model: decoded(model)?,
            stream,
            array: stream && !asked.any(|part| part == "alt=sse"),
        })
    }
}

/// The model and the method of a path in Google's style.
fn models_and_method(path: &str) -> Option<(&str, &str)> {
    let bare = path.strip_prefix("/genai").unwrap_or(path);
    let rest = bare
        .strip_prefix("/v1beta/models/")
        .or_else(|| bare.strip_prefix("/v1/models/"))?;
    let (model, method) = rest.rsplit_once(':')?;
    let known = matches!(method, "generateContent" | "streamGenerateContent");
    (known && !model.is_empty()).then_some((model, method))
}

/// A path segment without its percent-encoding, undone once (RFC 3986, 2.1); `None` where it is
/// broken or no text.
fn decoded(segment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let high = char::from(rest.next()?).to_digit(16)?;
            let low = char::from(rest.next()?).to_digit(16)?;
            bytes.push(u8::try_from(high * 16 + low).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

/// The dialect in which an error about `path` is told, known path or not.
pub(crate) fn dialect_of(path: &str) -> Dialect {
    if path.starts_with("/anthropic/") || path.starts_with("/v1/messages") {
        Dialect::AnthropicMessages
    } else if path.starts_with("/genai/") || path.starts_with("/v1beta/") {
        Dialect::Gemini
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
            (
                "/genai/v1beta/models/fast:generateContent",
                Some(Surface::Chat(Dialect::Gemini)),
            ),
            (
                "/v1beta/models/openai/gpt-4o:streamGenerateContent",
                Some(Surface::Chat(Dialect::Gemini)),
            ),
            ("/genai/v1beta/models/fast:countTokens", None),
            ("/genai/v1beta/models/:generateContent", None),
            ("/v1/messages/", None),
            ("/openai/metrics", None),
            ("/openaiv1/models", None),
            ("/", None),
        ] {
            assert_eq!(Surface::at(path), surface, "{path}");
        }
    }

    #[test]
    fn a_path_names_the_model_and_how_to_answer() {
        for (path, model, stream, array) in [
            (
                "/genai/v1beta/models/fast:generateContent",
                "fast",
                false,
                false,
            ),
            (
                "/v1beta/models/fast:streamGenerateContent",
                "fast",
                true,
                true,
            ),
            (
                "/genai/v1beta/models/openai/gpt-4o:streamGenerateContent?key=x&alt=sse",
                "openai/gpt-4o",
                true,
                false,
            ),
            (
                "/genai/v1/models/ollama%2Fllama3%3A8b%2525:generateContent",
                "ollama/llama3:8b%25",
                false,
                false,
            ),
        ] {
            let uri: Uri = path.parse().expect("an address");
            let model = model.to_owned();
            let want = Addressed {
                model,
                stream,
                array,
            };
            assert_eq!(Addressed::read(&uri), Some(want), "{path}");
        }
    }
}

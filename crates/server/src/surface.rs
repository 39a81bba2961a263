//! Which paths the gateway answers, in whose dialect, and what is asked there.

use backstop_dialects::{Dialect, Operation};
use http::{HeaderMap, Method, Uri};

use crate::kept::About;

/// What a path leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Surface {
    /// Something that a provider is asked for.
    Ask {
        /// The caller's dialect.
        dialect: Dialect,
        /// What is asked for.
        operation: Operation,
    },
    /// An answer that a provider keeps.
    Kept(About),
    /// The models a caller may name.
    Models,
    /// One of them.
    Model,
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
        let ask = |dialect, operation| Some(Self::Ask { dialect, operation });
        if let Some((_, asked)) = deployment_and_asked(path) {
            deployment(path)?;
            return match asked {
                "/responses" => ask(Dialect::OpenAiResponses, Operation::Generate),
                "/embeddings" => ask(Dialect::OpenAiChat, Operation::Embed),
                _ => ask(Dialect::OpenAiChat, Operation::Generate),
            };
        }
        match bare(path) {
            "/v1/chat/completions" => ask(Dialect::OpenAiChat, Operation::Generate),
            "/v1/responses" | "/openai/responses" => {
                ask(Dialect::OpenAiResponses, Operation::Generate)
            }
            "/v1/embeddings" => ask(Dialect::OpenAiChat, Operation::Embed),
            "/v1/messages" => ask(Dialect::AnthropicMessages, Operation::Generate),
            "/v1/messages/count_tokens" => ask(Dialect::AnthropicMessages, Operation::CountTokens),
            "/v1/models" | "/v1beta/models" | "/openai/models" => Some(Self::Models),
            "/healthz" => Some(Self::Health),
            "/readyz" => Some(Self::Ready),
            "/metrics" => Some(Self::Metrics),
            _ if converse(path).is_some() => ask(Dialect::BedrockConverse, Operation::Generate),
            bare => match (About::read(bare), models_and_method(path)) {
                (Some((about, _)), _) => Some(Self::Kept(about)),
                (None, Some((_, method))) => ask(Dialect::Gemini, method.operation()),
                (None, None) => model_named(path).map(|_| Self::Model),
            },
        }
    }

    /// The methods it answers, with commas between them.
    pub(crate) const fn allowed(self) -> &'static str {
        match self {
            Self::Ask { .. } => "POST",
            Self::Kept(about) => about.allowed(),
            _ => "GET",
        }
    }

    /// Whether `method` is one of them.
    pub(crate) fn answers(self, method: &Method) -> bool {
        self.allowed().split(", ").any(|allowed| method == allowed)
    }
}

/// The path without the prefix that a drop-in client was given.
pub(crate) fn bare(path: &str) -> &str {
    let prefixes = [
        ("/openai", "/v1/"),
        ("/anthropic", "/v1/"),
        ("/genai", "/v1beta/"),
        ("/genai", "/v1/models"),
    ];
    let below = |(prefix, version): (&str, &str)| {
        let rest = path.strip_prefix(prefix)?;
        rest.starts_with(version).then_some(rest)
    };
    prefixes.into_iter().find_map(below).unwrap_or(path)
}

/// The model that a path like `/v1/models/{model}` asks about.
pub(crate) fn model_named(path: &str) -> Option<String> {
    let bare = bare(path);
    let name = bare
        .strip_prefix("/v1/models/")
        .or_else(|| bare.strip_prefix("/v1beta/models/"))?;
    decoded(name).filter(|name| !name.is_empty())
}

/// The dialect in which the models are listed at `path`: its own, or that of the client which
/// says that it is Anthropic's.
pub(crate) fn listing_dialect(path: &str, headers: &HeaderMap) -> Dialect {
    match dialect_of(path) {
        Dialect::OpenAiChat if headers.contains_key("anthropic-version") => {
            Dialect::AnthropicMessages
        }
        dialect => dialect,
    }
}

/// A method of a model, in Google's style.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GoogleMethod {
    Generate,
    Stream,
    Embed,
    Count,
}

impl GoogleMethod {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "generateContent" => Self::Generate,
            "streamGenerateContent" => Self::Stream,
            // One of them takes a list of requests, which the body shows.
            "embedContent" | "batchEmbedContents" => Self::Embed,
            "countTokens" => Self::Count,
            _ => return None,
        })
    }

    const fn operation(self) -> Operation {
        match self {
            Self::Generate | Self::Stream => Operation::Generate,
            Self::Embed => Operation::Embed,
            Self::Count => Operation::CountTokens,
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
    /// What stands in a path like `/genai/v1beta/models/{model}:generateContent` or
    /// `/bedrock/model/{model}/converse`; `None` for others.
    pub(crate) fn read(uri: &Uri) -> Option<Self> {
        if let Some((model, stream)) = converse(uri.path()) {
            return Some(Self {
                model: decoded(model)?,
                stream,
                array: false,
            });
        }
        let (model, method) = models_and_method(uri.path())?;
        let stream = method == GoogleMethod::Stream;
        let mut asked = uri.query().unwrap_or_default().split('&');
        Some(Self {
            model: decoded(model)?,
            stream,
            array: stream && !asked.any(|part| part == "alt=sse"),
        })
    }
}

/// The model and the method of a path in Google's style.
fn models_and_method(path: &str) -> Option<(&str, GoogleMethod)> {
    let bare = path.strip_prefix("/genai").unwrap_or(path);
    let rest = bare
        .strip_prefix("/v1beta/models/")
        .or_else(|| bare.strip_prefix("/v1/models/"))?;
    let (model, method) = rest.rsplit_once(':')?;
    let method = GoogleMethod::named(method)?;
    (!model.is_empty()).then_some((model, method))
}

/// The model of a path in AWS' style, still encoded, and whether a stream is asked for.
fn converse(path: &str) -> Option<(&str, bool)> {
    let below = path.strip_prefix("/bedrock/model/")?;
    let (model, method) = below.rsplit_once('/')?;
    let stream = match method {
        "converse" => false,
        "converse-stream" => true,
        _ => return None,
    };
    (!model.is_empty()).then_some((model, stream))
}

/// The deployment that a path in Azure's style names: a route's name or `provider/model`, whatever
/// the body says. Its client asks there for everything but responses; clients that were given such
/// a path whole ask for those, too.
pub(crate) fn deployment(path: &str) -> Option<String> {
    let (name, _) = deployment_and_asked(path)?;
    decoded(name)
}

/// The deployment, still encoded, and what is asked of it.
fn deployment_and_asked(path: &str) -> Option<(&str, &'static str)> {
    let below = path.strip_prefix("/openai/deployments/")?;
    let asked = ["/chat/completions", "/responses", "/embeddings"];
    let asked = asked.into_iter().find(|asked| below.ends_with(asked))?;
    let name = below.strip_suffix(asked)?;
    (!name.is_empty()).then_some((name, asked))
}

/// A path segment without its percent-encoding, undone once (RFC 3986, 2.1); `None` where it is
/// broken or no text.
pub(crate) fn decoded(segment: &str) -> Option<String> {
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
    } else if path.starts_with("/bedrock/") {
        Dialect::BedrockConverse
    } else if ["/v1/responses", "/openai/v1/responses", "/openai/responses"]
        .iter()
        .any(|beginning| path.starts_with(beginning))
        || deployment_and_asked(path).is_some_and(|(_, asked)| asked == "/responses")
    {
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
        use Dialect::{AnthropicMessages, BedrockConverse, Gemini, OpenAiChat, OpenAiResponses};
        use Operation::{CountTokens, Embed, Generate};

        let ask = |dialect, operation| Some(Surface::Ask { dialect, operation });
        for (path, surface) in [
            ("/v1/chat/completions", ask(OpenAiChat, Generate)),
            ("/openai/v1/chat/completions", ask(OpenAiChat, Generate)),
            ("/v1/embeddings", ask(OpenAiChat, Embed)),
            ("/openai/v1/embeddings", ask(OpenAiChat, Embed)),
            ("/anthropic/v1/messages", ask(AnthropicMessages, Generate)),
            ("/v1/messages", ask(AnthropicMessages, Generate)),
            (
                "/v1/messages/count_tokens",
                ask(AnthropicMessages, CountTokens),
            ),
            (
                "/anthropic/v1/messages/count_tokens",
                ask(AnthropicMessages, CountTokens),
            ),
            ("/v1/responses", ask(OpenAiResponses, Generate)),
            (
                "/bedrock/model/us.amazon.nova-micro-v1%3A0/converse",
                ask(BedrockConverse, Generate),
            ),
            (
                "/bedrock/model/bedrock/m/converse-stream",
                ask(BedrockConverse, Generate),
            ),
            ("/bedrock/model/m/invoke", None),
            ("/bedrock/model//converse", None),
            ("/openai/v1/responses", ask(OpenAiResponses, Generate)),
            ("/openai/responses", ask(OpenAiResponses, Generate)),
            ("/openai/models", Some(Surface::Models)),
            (
                "/openai/deployments/fast/chat/completions",
                ask(OpenAiChat, Generate),
            ),
            (
                "/openai/deployments/openai/gpt-4o/chat/completions",
                ask(OpenAiChat, Generate),
            ),
            (
                "/openai/deployments/fast/embeddings",
                ask(OpenAiChat, Embed),
            ),
            (
                "/openai/deployments/fast/responses",
                ask(OpenAiResponses, Generate),
            ),
            ("/openai/deployments//chat/completions", None),
            ("/openai/deployments/fast%2/chat/completions", None),
            ("/openai/deployments/fast/completions", None),
            ("/deployments/fast/chat/completions", None),
            (
                "/openai/v1/responses/resp_1",
                Some(Surface::Kept(About::Answer)),
            ),
            (
                "/v1/responses/resp_1/cancel",
                Some(Surface::Kept(About::Cancel)),
            ),
            ("/v1/responses/resp_1/other", None),
            ("/anthropic/v1/models", Some(Surface::Models)),
            ("/genai/v1beta/models", Some(Surface::Models)),
            ("/v1beta/models", Some(Surface::Models)),
            ("/v1/models/fast", Some(Surface::Model)),
            ("/openai/v1/models/ollama/llama3:8b", Some(Surface::Model)),
            ("/genai/v1beta/models/fast", Some(Surface::Model)),
            (
                "/genai/v1beta/models/fast:generateContent",
                ask(Gemini, Generate),
            ),
            (
                "/v1beta/models/openai/gpt-4o:streamGenerateContent",
                ask(Gemini, Generate),
            ),
            (
                "/genai/v1beta/models/fast:countTokens",
                ask(Gemini, CountTokens),
            ),
            ("/genai/v1beta/models/fast:embedContent", ask(Gemini, Embed)),
            ("/v1beta/models/fast:batchEmbedContents", ask(Gemini, Embed)),
            ("/v1/models/", None),
            ("/v1/messages/", None),
            ("/openai/metrics", None),
            ("/openaiv1/models", None),
            ("/", None),
        ] {
            assert_eq!(Surface::at(path), surface, "{path}");
        }
    }

    #[test]
    fn a_deployment_is_decoded_once() {
        for (path, name) in [
            ("/openai/deployments/fast/chat/completions", Some("fast")),
            (
                "/openai/deployments/openai%2Fgpt-4o/embeddings",
                Some("openai/gpt-4o"),
            ),
            (
                "/openai/deployments/ollama/llama3:8b/chat/completions",
                Some("ollama/llama3:8b"),
            ),
            ("/openai/deployments/a%252Fb/responses", Some("a%2Fb")),
            ("/openai/v1/chat/completions", None),
        ] {
            assert_eq!(deployment(path).as_deref(), name, "{path}");
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
                "/bedrock/model/us.amazon.nova-micro-v1%3A0/converse",
                "us.amazon.nova-micro-v1:0",
                false,
                false,
            ),
            (
                "/bedrock/model/bed%2Farn%3Aaws%3Ax%252Fy/converse-stream",
                "bed/arn:aws:x%2Fy",
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

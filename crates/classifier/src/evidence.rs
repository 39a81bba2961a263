//! What is known about one failed attempt.

use std::fmt;
use std::time::SystemTime;

use http::HeaderMap;

/// One failed attempt, as the driver saw it.
///
/// Either `transport` says how the connection ended without a whole answer, or `status` and `body`
/// hold the answer. Content encodings are already undone; only the first
/// [`BODY_LIMIT`](crate::BODY_LIMIT) bytes of the body are read.
#[derive(Clone, Copy)]
pub struct Evidence<'a> {
    /// Whose table is read first.
    pub family: Family,
    /// HTTP status as received; `None` when no response came.
    pub status: Option<u16>,
    /// Response headers, when there are any.
    pub headers: Option<&'a HeaderMap>,
    /// The body, or the event (with or without its `data:` lines) that carried the error.
    pub body: &'a [u8],
    /// Whether the error came inside a stream that began with a 2xx.
    pub in_stream: bool,
    /// What ended the attempt, when it was not an answer.
    pub transport: Option<Transport>,
    /// Wall time against which a `Retry-After` date is read.
    pub now: SystemTime,
}

impl<'a> Evidence<'a> {
    /// A response with a status and a body, without headers.
    #[must_use]
    pub fn response(family: Family, status: u16, body: &'a [u8], now: SystemTime) -> Self {
        Self {
            family,
            status: Some(status),
            headers: None,
            body,
            in_stream: false,
            transport: None,
            now,
        }
    }

    /// An error event inside a stream that began with a 200: its data, or its lines as they came.
    /// A Bedrock frame is handed in decoded, as `{"<exception-type>": <payload>}`.
    #[must_use]
    pub fn event(family: Family, event: &'a [u8], now: SystemTime) -> Self {
        Self {
            in_stream: true,
            ..Self::response(family, 200, event, now)
        }
    }

    /// An attempt that ended without a whole answer.
    #[must_use]
    pub fn transport(family: Family, transport: Transport, now: SystemTime) -> Self {
        Self {
            status: None,
            transport: Some(transport),
            ..Self::response(family, 0, b"", now)
        }
    }

    /// The same evidence with response headers.
    #[must_use]
    pub fn with_headers(self, headers: &'a HeaderMap) -> Self {
        Self {
            headers: Some(headers),
            ..self
        }
    }
}

impl fmt::Debug for Evidence<'_> {
    /// Shows the shape of the evidence; neither body nor headers, which may hold keys and prompts.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Evidence")
            .field("family", &self.family)
            .field("status", &self.status)
            .field("headers", &self.headers.map(HeaderMap::len))
            .field("body_bytes", &self.body.len())
            .field("in_stream", &self.in_stream)
            .field("transport", &self.transport)
            .finish_non_exhaustive()
    }
}

macro_rules! families {
    ($($(#[$doc:meta])* $variant:ident = $name:literal $(| $alias:literal)*,)*) => {
        /// Whose table of codes and phrases is read first.
        ///
        /// A custom provider names the family it resembles; [`Family::General`] (the default)
        /// reads the shared vocabulary alone.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
        #[non_exhaustive]
        pub enum Family {
            $($(#[$doc])* $variant,)*
        }

        impl Family {
            /// Every family, in the order of this enum.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name used in configuration, corpus files and docs.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The family of that name; `None` for a name nobody here knows.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($name $(| $alias)* => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

families! {
    /// Any OpenAI-compatible server, or a proxy in front of one.
    #[default]
    General = "openai-compatible" | "general" | "custom",
    /// OpenAI.
    OpenAi = "openai",
    /// Azure OpenAI and Azure AI Foundry.
    Azure = "azure",
    /// Anthropic.
    Anthropic = "anthropic",
    /// Amazon Bedrock.
    Bedrock = "bedrock",
    /// Google Gemini API.
    Gemini = "gemini",
    /// Google Vertex AI.
    Vertex = "vertex",
    /// Groq.
    Groq = "groq",
    /// Mistral.
    Mistral = "mistral",
    /// Cohere.
    Cohere = "cohere",
    /// OpenRouter.
    OpenRouter = "openrouter",
    /// xAI.
    Xai = "xai",
    /// DeepSeek.
    DeepSeek = "deepseek",
    /// Together.
    Together = "together",
    /// Fireworks.
    Fireworks = "fireworks",
    /// Cerebras.
    Cerebras = "cerebras",
    /// Perplexity.
    Perplexity = "perplexity",
    /// NVIDIA NIM and its hosted catalogue.
    Nvidia = "nvidia",
    /// Ollama.
    Ollama = "ollama",
    /// vLLM and servers built on it.
    Vllm = "vllm",
    /// LM Studio.
    LmStudio = "lmstudio",
    /// llama.cpp's server.
    LlamaCpp = "llama.cpp" | "llamacpp",
    /// Zhipu (GLM).
    Zhipu = "zhipu",
    /// Alibaba DashScope (Qwen).
    DashScope = "dashscope",
    /// MiniMax.
    MiniMax = "minimax",
    /// Moonshot (Kimi).
    Moonshot = "moonshot",
}

/// What ended an attempt that brought no whole answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Transport {
    /// The name did not resolve.
    Dns,
    /// Nothing listened at the address.
    Refused,
    /// The host or network could not be reached.
    Unreachable,
    /// The certificate is for another name.
    TlsName,
    /// The certificate is not trusted, expired or not yet valid.
    TlsTrust,
    /// The TLS handshake failed in another way.
    Tls,
    /// The connection was reset after bytes of the request went out, before any response byte.
    ResetBeforeResponse,
    /// The peer closed the connection before any response byte; it may have done the work.
    ClosedBeforeResponse,
    /// The body, or the stream, ended before its framing said so.
    CutBody,
    /// The peer said that it did not process the request (HTTP/2 `REFUSED_STREAM`, or a `GOAWAY`
    /// below this stream).
    NotProcessed,
    /// The peer broke the HTTP protocol.
    Http,
    /// The body is in a content coding that we do not know.
    UnknownCoding,
    /// The body is not what its content coding says.
    BrokenCoding,
    /// One of the gateway's own clocks ran out.
    Timeout(Clock),
    /// The caller hung up.
    CallerGone,
}

/// Which of the gateway's clocks ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Clock {
    /// Until a connection stands.
    Connect,
    /// Until the response headers.
    Headers,
    /// Until the first meaningful output.
    FirstOutput,
    /// Between bytes of a stream after output.
    Idle,
    /// The request's own deadline.
    Deadline,
}

impl Transport {
    /// The stable token for logs: `dns_failure`, `connect_refused`, `ttft_timeout`, ...
    #[must_use]
    pub const fn token(self) -> &'static str {
        match self {
            Self::Dns => "dns_failure",
            Self::Refused => "connect_refused",
            Self::Unreachable => "host_unreachable",
            Self::TlsName => "tls_name_mismatch",
            Self::TlsTrust => "tls_untrusted",
            Self::Tls => "tls_failure",
            Self::ResetBeforeResponse => "reset_before_headers",
            Self::ClosedBeforeResponse => "closed_before_headers",
            Self::CutBody => "upstream_cut",
            Self::NotProcessed => "not_processed",
            Self::Http => "protocol_error",
            Self::UnknownCoding => "unknown_encoding",
            Self::BrokenCoding => "undecodable_body",
            Self::Timeout(Clock::Connect) => "connect_timeout",
            Self::Timeout(Clock::Headers | Clock::Deadline) => "request_timed_out",
            Self::Timeout(Clock::FirstOutput) => "ttft_timeout",
            Self::Timeout(Clock::Idle) => "stream_idle_timeout",
            Self::CallerGone => "caller_gone",
        }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.token())
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

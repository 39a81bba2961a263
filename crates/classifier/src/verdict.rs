//! What the evidence means, in words that are safe to log.

use std::fmt;
use std::time::Duration;

use crate::evidence::{Clock, Transport};

/// The kind of failure; what may follow it is decided elsewhere, by class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// The key itself was rejected.
    Credential,
    /// The account is out of credit or over a spend cap.
    Quota,
    /// This key cannot reach the model.
    ModelAccess,
    /// The provider retired the model.
    ModelGone,
    /// The provider refuses the location of the request.
    RegionBlocked,
    /// A limit over time was hit.
    RateLimit,
    /// The provider, or the network before it, is in trouble.
    Transient,
    /// One of the gateway's own clocks ran out. A provider's 408 or 504 is not this.
    Timeout,
    /// A 2xx or 3xx that breaks its own contract.
    Malformed,
    /// Nothing in the evidence says what it is.
    Unknown,
    /// The request itself was refused.
    CallerFault,
    /// The caller left. A provider's 499 is not this.
    Cancelled,
}

impl Class {
    /// Every class, in the order of this enum.
    pub const ALL: &'static [Self] = &[
        Self::Credential,
        Self::Quota,
        Self::ModelAccess,
        Self::ModelGone,
        Self::RegionBlocked,
        Self::RateLimit,
        Self::Transient,
        Self::Timeout,
        Self::Malformed,
        Self::Unknown,
        Self::CallerFault,
        Self::Cancelled,
    ];

    /// The name in logs, trails and corpus files: `rate_limit`, `model_gone`, ...
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Credential => "credential",
            Self::Quota => "quota",
            Self::ModelAccess => "model_access",
            Self::ModelGone => "model_gone",
            Self::RegionBlocked => "region_blocked",
            Self::RateLimit => "rate_limit",
            Self::Transient => "transient",
            Self::Timeout => "timeout",
            Self::Malformed => "malformed",
            Self::Unknown => "unknown",
            Self::CallerFault => "caller_fault",
            Self::Cancelled => "cancelled",
        }
    }

    /// The class of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|class| class.name() == name)
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A finer reading of a class, where an action hangs on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Kind {
    /// Caller fault: more tokens than the model's window holds. A larger model may serve it.
    ContextWindow,
    /// Caller fault, or credential on a 403: a filter, moderation or guardrail refused the content.
    ContentPolicy,
    /// Transient or rate limit: the provider is short of capacity; the key is not to blame.
    Overloaded,
    /// Rate limit that no wait can meet: the request is larger than the whole allowance.
    RequestLargerThanLimit,
    /// Rate limit that no wait can meet: the allowance is zero.
    LimitZero,
    /// Credential: a short-lived token ran out; renewing it may be enough.
    RenewableToken,
    /// Credential or transient: the short-lived token that a key stands for could not be had. The
    /// provider was not asked.
    TokenFetch,
    /// Transient: a body ended before its framing said so.
    TruncatedBody,
    /// Transient: a stream ended before its framing said so.
    IncompleteStream,
    /// Malformed: a redirect, which is never followed.
    Redirect,
    /// Malformed: a 2xx without content, or a stream without a single event.
    EmptyAnswer,
    /// Malformed: a stream that ended after startup events alone.
    StartupOnly,
    /// Malformed: an answer that is not what its content type says, or cannot be parsed.
    UnreadableAnswer,
    /// Malformed: an answer larger than the gateway holds.
    OversizedAnswer,
    /// Malformed: an answer in a content coding that the gateway cannot undo.
    UnknownEncoding,
}

impl Kind {
    /// The name in logs and trails: `context_window`, `overloaded`, ...
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ContextWindow => "context_window",
            Self::ContentPolicy => "content_policy",
            Self::Overloaded => "overloaded",
            Self::RequestLargerThanLimit => "request_larger_than_limit",
            Self::LimitZero => "limit_zero",
            Self::RenewableToken => "renewable_token",
            Self::TokenFetch => "token_fetch",
            Self::TruncatedBody => "truncated_body",
            Self::IncompleteStream => "incomplete_stream",
            Self::Redirect => "redirect",
            Self::EmptyAnswer => "empty_answer",
            Self::StartupOnly => "startup_only",
            Self::UnreadableAnswer => "unreadable_answer",
            Self::OversizedAnswer => "oversized_answer",
            Self::UnknownEncoding => "unknown_encoding",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Whether the provider can have seen the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sent {
    /// Provably not processed: no name, no connection, no TLS, or the peer said so.
    Never,
    /// The provider may have done the work.
    Maybe,
}

/// The longest [`Code`], in bytes.
const CODE_LEN: usize = 64;

/// A provider's own code, type or exception name, if it is a token that is safe to log.
///
/// At most 64 of `A-Z a-z 0-9 _ . -`, and nothing that opens like a key or a token.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Code {
    bytes: [u8; CODE_LEN],
    len: u8,
}

/// How keys and tokens of providers open. A code never does; an echoed secret might.
const SECRET_OPENINGS: &[&str] = &[
    "sk-", "sk_", "gsk_", "xai-", "AIza", "AKIA", "ASIA", "eyJ", "pplx-", "nvapi-", "hf_", "r8_",
    "key-", "ya29.", "csk-", "tgp_", "fw_", "ghp_", "Bearer",
];

impl Code {
    /// The token, or `None` when the text is no such token.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let raw = text.as_bytes();
        let token = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-');
        if raw.is_empty() || raw.len() > CODE_LEN || !raw.iter().all(token) {
            return None;
        }
        if SECRET_OPENINGS
            .iter()
            .any(|opening| text.starts_with(opening))
        {
            return None;
        }
        let mut bytes = [0; CODE_LEN];
        bytes[..raw.len()].copy_from_slice(raw);
        let len = u8::try_from(raw.len()).expect("a code is at most 64 bytes");
        Some(Self { bytes, len })
    }

    /// The token as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.len)]).expect("a code is ASCII")
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Code({})", self.as_str())
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Which field of the answer held a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Field {
    /// An exception name: `x-amzn-errortype`, `__type`, or the type of an event-stream frame.
    Exception,
    /// `code`, `error_code`.
    Code,
    /// `innererror.code`.
    InnerCode,
    /// `details[].reason`, `errors[].reason`, `reason`.
    Reason,
    /// `error_type`.
    ErrorType,
    /// `type`.
    Type,
    /// `status` as a word.
    Status,
}

impl Field {
    /// How many fields there are.
    pub(crate) const COUNT: usize = 7;

    /// The fields in the order in which they are read.
    pub(crate) const ORDER: [Self; Self::COUNT] = [
        Self::Exception,
        Self::Code,
        Self::InnerCode,
        Self::Reason,
        Self::ErrorType,
        Self::Type,
        Self::Status,
    ];

    const fn word(self) -> &'static str {
        match self {
            Self::Exception => "exception",
            Self::Code | Self::InnerCode => "code",
            Self::Reason => "reason",
            Self::ErrorType | Self::Type => "type",
            Self::Status => "status",
        }
    }
}

/// What in the evidence decided the class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Signal {
    /// The provider's own code; `code` is `None` where its text is not safe to log.
    Code {
        /// The field it stood in.
        field: Field,
        /// The code itself.
        code: Option<Code>,
    },
    /// A phrase of our tables, found in the provider's message.
    Phrase(&'static str),
    /// The error names a field of the request.
    Param,
    /// The HTTP status.
    Status(u16),
    /// A status number inside the body.
    BodyStatus(u16),
    /// How the transport ended.
    Transport(Transport),
    /// The answer's own shape: see the kind.
    Shape,
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code {
                field,
                code: Some(code),
            } => write!(f, "{} {code}", field.word()),
            Self::Code { field, code: None } => write!(f, "{} (not a token)", field.word()),
            Self::Phrase(phrase) => write!(f, "phrase \"{phrase}\""),
            Self::Param => f.write_str("param"),
            Self::Status(status) => write!(f, "status {status}"),
            Self::BodyStatus(status) => write!(f, "body status {status}"),
            Self::Transport(transport) => write!(f, "transport {transport}"),
            Self::Shape => f.write_str("shape"),
        }
    }
}

/// What one failed attempt means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// The class, on which every further step hangs.
    pub class: Class,
    /// A finer reading, where there is one.
    pub kind: Option<Kind>,
    /// What decided.
    pub signal: Signal,
    /// The provider's own most specific code, deciding or not.
    pub code: Option<Code>,
    /// The HTTP status as received.
    pub status: Option<u16>,
    /// The provider's explicit hint, within 1 s and 5 min; absent without one.
    pub retry_after: Option<Duration>,
    /// `x-should-retry` as the provider sent it.
    pub should_retry: Option<bool>,
    /// Whether the provider can have seen the request.
    pub sent: Sent,
}

impl Verdict {
    /// An answer that broke its own contract, as seen by whoever read it.
    #[must_use]
    pub const fn malformed(kind: Kind, status: Option<u16>) -> Self {
        Self {
            class: Class::Malformed,
            kind: Some(kind),
            signal: Signal::Shape,
            code: None,
            status,
            retry_after: None,
            should_retry: None,
            sent: Sent::Maybe,
        }
    }

    /// A short-lived token could not be had, so that nothing was sent. `code` is the token
    /// endpoint's own word, where it is one of those that the standards list.
    #[must_use]
    pub const fn no_token(class: Class, signal: Signal, code: Option<Code>) -> Self {
        Self {
            class,
            kind: Some(Kind::TokenFetch),
            signal,
            code,
            status: None,
            retry_after: None,
            should_retry: None,
            sent: Sent::Never,
        }
    }

    /// The class as text for the routing log, which holds categories only.
    #[must_use]
    pub const fn category(&self) -> &'static str {
        self.class.name()
    }

    /// A stable token for the trail, finer than the class: `ttft_timeout`, `connect_refused`,
    /// `rate_limited`, `context_window_exceeded`, ... A cancelled attempt was not refused; its
    /// `caller_gone` is for logs, and a trail may leave it out.
    #[must_use]
    pub const fn fail_reason(&self) -> &'static str {
        if let Some(Kind::TokenFetch) = self.kind {
            return match self.class {
                Class::Credential => "token_refused",
                _ => "token_unavailable",
            };
        }
        if let Signal::Transport(transport) = self.signal {
            return match self.kind {
                Some(Kind::IncompleteStream) => "incomplete_stream",
                _ => transport.token(),
            };
        }
        match (self.class, self.kind) {
            (_, Some(Kind::ContextWindow)) => "context_window_exceeded",
            (_, Some(Kind::ContentPolicy)) => "content_policy",
            (_, Some(Kind::RequestLargerThanLimit)) => "request_larger_than_limit",
            (_, Some(Kind::LimitZero)) => "limit_zero",
            (_, Some(Kind::TruncatedBody)) => "upstream_cut",
            (_, Some(Kind::IncompleteStream)) => "incomplete_stream",
            (Class::Credential, Some(Kind::RenewableToken)) => "token_expired",
            (Class::Credential, _) => "credential_rejected",
            (Class::Quota, _) => "quota_exhausted",
            (Class::ModelAccess, _) => "model_unavailable",
            (Class::ModelGone, _) => "model_retired",
            (Class::RegionBlocked, _) => "region_blocked",
            (Class::RateLimit, _) => "rate_limited",
            (Class::Transient, Some(Kind::Overloaded)) => "upstream_overloaded",
            (Class::Transient, _) => "upstream_error",
            (Class::Timeout, _) => Transport::Timeout(Clock::Headers).token(),
            (Class::Malformed, Some(Kind::Redirect)) => "redirect",
            (Class::Malformed, Some(Kind::EmptyAnswer)) => "empty_answer",
            (Class::Malformed, Some(Kind::StartupOnly)) => "startup_only",
            (Class::Malformed, Some(Kind::OversizedAnswer)) => "oversized_answer",
            (Class::Malformed, Some(Kind::UnknownEncoding)) => "unknown_encoding",
            (Class::Malformed, _) => "malformed_answer",
            (Class::Unknown, _) => "unrecognised_error",
            (Class::CallerFault, _) => "request_refused",
            (Class::Cancelled, _) => "caller_gone",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.category())?;
        if let Some(kind) = self.kind {
            write!(f, "/{kind}")?;
        }
        write!(f, " ({})", self.signal)
    }
}

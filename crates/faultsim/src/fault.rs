//! Failures that providers are known for, in the words of each dialect.
//!
//! Statuses, types and codes follow the providers' public error pages (OpenAI "Error codes",
//! Anthropic "Errors"); the messages are ours and only sound like theirs.

use serde_json::{Value, json};

use crate::asked::Dialect;

/// A failure by its meaning. [`Fault::status`] and [`Fault::body`] spell it out for a dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// The key is wrong or revoked.
    InvalidKey,
    /// The account's credit is used up.
    InsufficientQuota,
    /// The key may not use this endpoint or resource.
    PermissionDenied,
    /// The caller's country is not served.
    RegionBlocked,
    /// The model does not exist, or not for this key.
    ModelNotFound,
    /// Too many requests.
    RateLimited,
    /// The request is not valid.
    InvalidRequest,
    /// The prompt does not fit the model's context.
    ContextTooLong,
    /// The prompt or answer was stopped by a content policy.
    ContentPolicy,
    /// An error on the provider's side.
    ServerError,
    /// The provider is down or starting.
    Unavailable,
    /// The provider has too much to do.
    Overloaded,
}

impl Fault {
    /// Every fault, for tables.
    pub const ALL: [Self; 12] = [
        Self::InvalidKey,
        Self::InsufficientQuota,
        Self::PermissionDenied,
        Self::RegionBlocked,
        Self::ModelNotFound,
        Self::RateLimited,
        Self::InvalidRequest,
        Self::ContextTooLong,
        Self::ContentPolicy,
        Self::ServerError,
        Self::Unavailable,
        Self::Overloaded,
    ];

    /// The HTTP status it comes with.
    #[must_use]
    pub const fn status(self, dialect: Dialect) -> u16 {
        match dialect {
            Dialect::OpenAi => self.openai().0,
            Dialect::Anthropic => self.anthropic().0,
            Dialect::Bedrock => self.bedrock().0,
        }
    }

    /// The error body for a request for `model`.
    #[must_use]
    pub fn body(self, dialect: Dialect, model: &str) -> Value {
        match dialect {
            Dialect::OpenAi => {
                let (_, kind, code, message) = self.openai();
                let message = message.replace("{model}", model);
                json!({"error": {"message": message, "type": kind, "param": null, "code": code}})
            }
            Dialect::Anthropic => {
                let (_, kind, message) = self.anthropic();
                let message = message.replace("{model}", model);
                json!({"type": "error", "error": {"type": kind, "message": message}})
            }
            Dialect::Bedrock => json!({ "message": self.bedrock().2 }),
        }
    }

    /// Status, type, code, message.
    const fn openai(self) -> (u16, &'static str, Option<&'static str>, &'static str) {
        const REQUEST: &str = "invalid_request_error";
        match self {
            Self::InvalidKey => (
                401,
                REQUEST,
                Some("invalid_api_key"),
                "Incorrect API key provided.",
            ),
            Self::InsufficientQuota => (
                429,
                "insufficient_quota",
                Some("insufficient_quota"),
                "You exceeded your current quota, please check your plan and billing details.",
            ),
            Self::PermissionDenied => (
                403,
                REQUEST,
                Some("insufficient_permissions"),
                "You have insufficient permissions for this operation.",
            ),
            Self::RegionBlocked => (
                403,
                "request_forbidden",
                Some("unsupported_country_region_territory"),
                "Country, region, or territory not supported",
            ),
            Self::ModelNotFound => (
                404,
                REQUEST,
                Some("model_not_found"),
                "The model `{model}` does not exist or you do not have access to it.",
            ),
            Self::RateLimited => (
                429,
                "requests",
                Some("rate_limit_exceeded"),
                "Rate limit reached for {model} on requests per min.",
            ),
            Self::InvalidRequest => (400, REQUEST, None, "The request is not valid."),
            Self::ContextTooLong => (
                400,
                REQUEST,
                Some("context_length_exceeded"),
                "This model's maximum context length is 128000 tokens. However, your messages \
                 resulted in 140000 tokens.",
            ),
            Self::ContentPolicy => (
                400,
                REQUEST,
                Some("content_policy_violation"),
                "Your request was rejected as a result of our safety system.",
            ),
            Self::ServerError => (
                500,
                "server_error",
                None,
                "The server had an error while processing your request.",
            ),
            Self::Unavailable => (503, "server_error", None, "Service unavailable."),
            Self::Overloaded => (
                503,
                "server_error",
                Some("overloaded"),
                "The engine is currently overloaded, please try again later.",
            ),
        }
    }

    /// The exception that Bedrock's header, or its frame, names.
    #[must_use]
    pub const fn exception(self) -> &'static str {
        self.bedrock().1
    }

    /// Status, exception, message.
    const fn bedrock(self) -> (u16, &'static str, &'static str) {
        match self {
            Self::InvalidKey => (
                403,
                "UnrecognizedClientException",
                "The security token included in the request is invalid.",
            ),
            Self::InsufficientQuota => (
                400,
                "ServiceQuotaExceededException",
                "Your request exceeds the service quota for your account.",
            ),
            Self::PermissionDenied => (
                403,
                "AccessDeniedException",
                "You don't have access to the model with the specified model ID.",
            ),
            Self::RegionBlocked => (
                400,
                "ValidationException",
                "Access to this model is not allowed from unsupported countries.",
            ),
            Self::ModelNotFound => (
                400,
                "ValidationException",
                "The provided model identifier is invalid.",
            ),
            Self::RateLimited => (
                429,
                "ThrottlingException",
                "Too many requests, please wait before trying again.",
            ),
            Self::InvalidRequest => (400, "ValidationException", "The request is not valid."),
            Self::ContextTooLong => (
                400,
                "ValidationException",
                "The model returned the following errors: input is too long for requested model.",
            ),
            Self::ContentPolicy => (
                400,
                "ValidationException",
                "Output blocked by content filtering policy",
            ),
            Self::ServerError => (
                500,
                "InternalServerException",
                "The system encountered an unexpected error during processing.",
            ),
            Self::Unavailable => (
                503,
                "ServiceUnavailableException",
                "The service isn't currently available.",
            ),
            Self::Overloaded => (
                429,
                "ModelNotReadyException",
                "The model is not ready to serve inference requests.",
            ),
        }
    }

    /// Status, type, message.
    const fn anthropic(self) -> (u16, &'static str, &'static str) {
        const REQUEST: &str = "invalid_request_error";
        match self {
            Self::InvalidKey => (401, "authentication_error", "invalid x-api-key"),
            Self::InsufficientQuota => (
                400,
                REQUEST,
                "Your credit balance is too low to access the Anthropic API.",
            ),
            Self::PermissionDenied => (
                403,
                "permission_error",
                "Your API key does not have permission to use the specified resource.",
            ),
            Self::RegionBlocked => (403, "forbidden", "Request not allowed"),
            Self::ModelNotFound => (404, "not_found_error", "model: {model}"),
            Self::RateLimited => (
                429,
                "rate_limit_error",
                "This request would exceed your organization's rate limit.",
            ),
            Self::InvalidRequest => (400, REQUEST, "The request is not valid."),
            Self::ContextTooLong => (
                400,
                REQUEST,
                "prompt is too long: 210000 tokens > 200000 maximum",
            ),
            Self::ContentPolicy => (400, REQUEST, "Output blocked by content filtering policy"),
            Self::ServerError => (500, "api_error", "Internal server error"),
            Self::Unavailable => (503, "api_error", "Service unavailable"),
            Self::Overloaded => (529, "overloaded_error", "Overloaded"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_have_the_status_and_code_of_their_dialect() {
        let rows = [
            (
                Fault::InvalidKey,
                401,
                json!("invalid_api_key"),
                401,
                "authentication_error",
            ),
            (
                Fault::InsufficientQuota,
                429,
                json!("insufficient_quota"),
                400,
                "invalid_request_error",
            ),
            (
                Fault::ModelNotFound,
                404,
                json!("model_not_found"),
                404,
                "not_found_error",
            ),
            (
                Fault::RateLimited,
                429,
                json!("rate_limit_exceeded"),
                429,
                "rate_limit_error",
            ),
            (Fault::Unavailable, 503, Value::Null, 503, "api_error"),
            (
                Fault::Overloaded,
                503,
                json!("overloaded"),
                529,
                "overloaded_error",
            ),
        ];
        for (fault, openai, code, anthropic, kind) in rows {
            assert_eq!(fault.status(Dialect::OpenAi), openai, "{fault:?}");
            assert_eq!(
                fault.body(Dialect::OpenAi, "m")["error"]["code"],
                code,
                "{fault:?}"
            );
            assert_eq!(fault.status(Dialect::Anthropic), anthropic, "{fault:?}");
            assert_eq!(
                fault.body(Dialect::Anthropic, "m")["error"]["type"],
                kind,
                "{fault:?}"
            );
        }
        let body = Fault::ModelNotFound.body(Dialect::Anthropic, "claude-x");
        assert_eq!(body["error"]["message"], "model: claude-x");
    }
}

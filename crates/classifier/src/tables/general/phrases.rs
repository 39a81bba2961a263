//! The phrases that providers and proxies share.
//!
//! Rows are read top to bottom: location, retirement, money and keys, then size, limits and models.
//! The rows at the end are single words. They are read under statuses that leave few readings: a
//! 403 is the key's, unless it speaks of money, a model or a place.

use Class::{
    CallerFault, Credential, ModelAccess, ModelGone, Quota, RateLimit, RegionBlocked, Transient,
};
use Kind::{ContentPolicy, ContextWindow, Overloaded, RenewableToken};
use When::{NotServer, Only, Refused, ServerOrStream};

use crate::table::{Rule, When};
use crate::verdict::{Class, Kind};

const fn row(pattern: &'static str, class: Class) -> Rule {
    Rule::new(pattern, class)
}

pub(super) const PHRASES: &[Rule] = &[
    // Where it comes from.
    row(
        "(unsupported|restricted|blocked|embargoed|sanctioned) (country|countries|region|regions|territory|location|jurisdiction)",
        RegionBlocked,
    ),
    row("not allowed from unsupported", RegionBlocked),
    row(
        "region or territory (not supported|is not supported|unsupported)",
        RegionBlocked,
    ),
    row(
        "(location|country|territory|jurisdiction) (is not|not|isn't|is currently not) (supported|allowed|permitted)",
        RegionBlocked,
    ),
    row(
        "(your|this|current) (location|country|region|territory|area|jurisdiction) .. (not supported|not allowed|not permitted|not available|unavailable|unsupported|restricted|blocked|prohibited|does not have access)",
        RegionBlocked,
    ),
    row("region is not supported for", RegionBlocked),
    row(
        "in your (current country|country|region|location|territory|area|jurisdiction)",
        RegionBlocked,
    ),
    row(
        "from (your|this|the current) (country|region|location|territory|area|jurisdiction)",
        RegionBlocked,
    ),
    row("(export controls|export control|trade sanctions)", RegionBlocked).when(Only(403)),
    row(
        "(geo|geographic|geographical|regional) (restriction|restrictions|block|blocking)",
        RegionBlocked,
    ),
    // The model is gone.
    row(
        "(model|@model) .. (deprecated|decommissioned|retired|discontinued|sunset|sunsetted|no longer available|no longer supported|no longer served|no longer offered|no longer exists|was removed|has been removed|been removed|been shut down|was shut down|end of life|end-of-life|end of its life|obsolete|withdrawn|phased out|replaced by|no longer active)",
        ModelGone,
    ),
    row("has been (decommissioned|sunset|shut down)", ModelGone).when(Refused),
    row("(discontinued|retired|decommissioned|deprecated) (the|this) model", ModelGone),
    // Money.
    row("credit balance", Quota),
    row(
        "(insufficient|not enough|no|no remaining|no more|no available|out of|run out of|ran out of|any) (credit|credits|balance|funds|account balance|account credits|prepaid credits|api credits)",
        Quota,
    ),
    row(
        "(balance|funds|account balance) .. (insufficient|not enough|too low|exhausted|depleted|used up|run out|ran out|empty|negative)",
        Quota,
    ),
    row("(exhausted|used up|used all|spent|consumed) .. (credits|balance)", Quota),
    row("credit limit (reached|exceeded|has been)", Quota),
    row(
        "credits .. (depleted|exhausted|used up|expired|run out|ran out)",
        Quota,
    ),
    row("credits have been used", Quota),
    row("(requires|need|purchase|buy) more credits", Quota),
    row("all available credits", Quota),
    row("monthly included credits", Quota),
    row("(spend|spending) (limit|limits|cap|caps)", Quota),
    row("(spend|spending) .. (exceeded|exceeds|reached)", Quota).when(NotServer),
    row("limit on (spend|spending|costs)", Quota),
    row("budget has been (exceeded|reached|used up)", Quota),
    row(
        "(monthly|weekly|daily|team|user|account|organization|project) budget",
        Quota,
    ),
    row("(exceeded|over|out of) budget", Quota),
    row("billing hard limit", Quota),
    row("key limit exceeded", Quota),
    row("(requires billing|billing to be enabled)", Quota),
    row("billing .. (not enabled|disabled|not active|inactive)", Quota),
    row("account is not active .. billing", Quota),
    row("payment required", Quota),
    row("(past due|unpaid|overdue|in arrears|arrears)", Quota),
    row("(please recharge|please top up|top up your)", Quota),
    row("trial .. (ended|has ended|expired|is over|exhausted)", Quota),
    row("payment method .. (declined|missing|failed|required|expired)", Quota),
    row("insufficient .. (balance|credits|credit|funds)", Quota),
    row("top up (required|needed|is required)", Quota),
    row(
        "(subscription|plan|membership|free tier) (expired|has expired|is expired|ended|has ended|lapsed|has lapsed|is inactive|is not active|is paused|was cancelled|has been cancelled)",
        Quota,
    )
    .when(NotServer),
    row("(add|update|provide) .. payment method", Quota).when(Refused),
    row("余额不足", Quota),
    row("额度不足", Quota),
    row("欠费", Quota),
    row("请充值", Quota),
    // A model that this key may not use, before what else a 403 may be.
    row(
        "(access|permission|authorized|allowed) .. (model|models|@model)",
        ModelAccess,
    )
    .when(Only(403)),
    row(
        "(accept|accepted|agree|agreed|agreement|license|terms|gated) .. (model|models|@model)",
        ModelAccess,
    )
    .when(Only(403)),
    // The key.
    row(
        "(api key|api keys|api-key|apikey|x-api-key|api token|bearer token|auth token|authentication token|authorization token|subscription key|secret key|access key|access token|oauth token|your key|this key|the key you) .. (not valid|invalid|incorrect|revoked|disabled|deactivated|suspended|leaked|deleted|malformed|not found|not recognized|not recognised|unrecognized|unrecognised|does not exist|doesn't exist|rejected|inactive|no longer valid)",
        Credential,
    ),
    row(
        "(access token|oauth token|authentication token|security token) .. expired",
        Credential,
    )
    .kind(RenewableToken),
    row(
        "(api key|api-key|apikey|api token|bearer token|subscription key) .. (expired|is required|is missing)",
        Credential,
    ),
    row(
        "(invalid|incorrect|wrong|bad|missing|expired|malformed|unknown|unrecognized|no|revoked|disabled) (api key|api-key|apikey|x-api-key|api token|bearer token|access token|auth token|authentication token|authorization token|subscription key|secret key|access key|auth credentials|credentials|authentication credentials|credential|authentication header|authorization header|authentication|jwt)",
        Credential,
    ),
    row("provide (an|your) api key", Credential),
    row(
        "(supply|provide|pass|use|specify|send) (a valid|the correct) (api key|api token|access token|key|token|bearer token)",
        Credential,
    ),
    row(
        "(supply|provide|pass|specify|send) (an|a) (api key|api token|access token|bearer token)",
        Credential,
    ),
    row(
        "credentials .. (not provided|missing|required|invalid|rejected|expired|incorrect)",
        Credential,
    ),
    row("no (authorization|authentication|access) token", Credential),
    row(
        "(authorization header|authentication header|authorization|x-api-key header) .. (missing|malformed|required|not provided|not found|invalid)",
        Credential,
    ),
    row(
        "^(invalid token|token expired|token is expired|token has expired|your token has expired|the token has expired|token invalid|jwt expired|jwt is expired|unauthorized|not authenticated|authentication required|login required)$",
        Credential,
    ),
    row("authentication (failed|fails|error|failure)", Credential),
    row(
        "(unable|failed|could not|cannot) to authenticate",
        Credential,
    ),
    row("(could not|cannot|can't) authenticate", Credential),
    row("invalid username or password", Credential),
    row("session (has expired|expired|is expired)", Credential),
    row("(log in again|login again|sign in again)", Credential),
    row("security token .. invalid", Credential),
    row("oauth authentication", Credential),
    row("signature we calculated does not match", Credential),
    row(
        "(credential|credentials|token|key) is only authorized for",
        Credential,
    ),
    row(
        "(organization|organisation|account|workspace|tenant|team) (has been|have been|is|was) (disabled|restricted|blocked|banned|locked|closed)",
        Credential,
    ),
    row(
        "(account|organization|organisation|workspace|tenant) .. (deactivated|suspended|terminated|disabled)",
        Credential,
    ),
    row("consumer .. suspended", Credential),
    row("无效的令牌", Credential),
    row("身份验证失败", Credential),
    // More than the model's window holds.
    row(
        "(maximum context|max context|context) (length|window|size|limit)",
        CallerFault,
    )
    .kind(ContextWindow),
    row(
        "(prompt|input|messages) (is|are) too long",
        CallerFault,
    )
    .kind(ContextWindow),
    row("(prompt|input) too long", CallerFault).kind(ContextWindow),
    row("all messages is too long", CallerFault).kind(ContextWindow),
    row("reduce the length of", CallerFault).kind(ContextWindow),
    row("input tokens (exceeded|exceeds|exceed)", CallerFault).kind(ContextWindow),
    row(
        "(token count|input length|prompt length|prompt_tokens|number of tokens|sequence length|prompt size) .. (exceed|exceeds|exceeded|too large|too long)",
        CallerFault,
    )
    .kind(ContextWindow),
    row("range of input length", CallerFault).kind(ContextWindow),
    row(
        "maximum (number of tokens allowed|input length|prompt length|sequence length|supported sequence length)",
        CallerFault,
    )
    .kind(ContextWindow),
    row("maximum supported sequence length", CallerFault).kind(ContextWindow),
    row("exceeds the model's maximum", CallerFault).kind(ContextWindow),
    row("model token limit", CallerFault).kind(ContextWindow),
    row("too large for model", CallerFault).kind(ContextWindow),
    row("too many tokens for", CallerFault)
        .kind(ContextWindow)
        .when(Refused),
    row("too many tokens .. limit exceeded", CallerFault).kind(ContextWindow),
    row("tokens limit exceeded", CallerFault)
        .kind(ContextWindow)
        .when(Refused),
    row("must have less than .. tokens", CallerFault).kind(ContextWindow),
    row("size limit exceeded", CallerFault),
    row("maximum allowed number of bytes", CallerFault),
    // What a filter refused.
    row(
        "content (management|filtering|moderation|safety|usage) (policy|policies)",
        CallerFault,
    )
    .kind(ContentPolicy),
    row("content (policy|policies|filter|filters|moderation)", CallerFault).kind(ContentPolicy),
    row("(safety system|safety filter|safety filters)", CallerFault).kind(ContentPolicy),
    row("requires moderation", CallerFault).kind(ContentPolicy),
    row("(input|prompt|content|message) .. flagged", CallerFault).kind(ContentPolicy),
    row("(blocked|rejected) by .. (guardrail|guardrails|safety|moderation)", CallerFault)
        .kind(ContentPolicy),
    row("prompt injection", CallerFault).kind(ContentPolicy),
    row(
        "(usage guidelines|usage policies|usage policy|acceptable use policy)",
        CallerFault,
    )
    .kind(ContentPolicy),
    row(
        "(inappropriate|harmful|prohibited|sensitive|unsafe|disallowed) (content|words)",
        CallerFault,
    )
    .kind(ContentPolicy),
    row("content exists risk", CallerFault).kind(ContentPolicy),
    row("considered high risk", CallerFault).kind(ContentPolicy),
    row("敏感内容", CallerFault).kind(ContentPolicy),
    // Limits over time.
    row(
        "(rate limit|rate limits|ratelimit) (reached|exceeded|hit|has been|have been|was|error)",
        RateLimit,
    ),
    row(
        "(exceed|exceeds|exceeded|exceeding|reached|hit|over) .. (rate limit|rate limits)",
        RateLimit,
    ),
    row("(rate limit|rate limits) .. (exceeded|reached)", RateLimit).when(NotServer),
    row("(rate limited|rate exceeded|rate limiting)", RateLimit),
    row("too many requests", RateLimit),
    row("too many concurrent (requests|connections)", RateLimit).when(NotServer),
    row("(number of|max|maximum) concurrent (requests|connections)", RateLimit).when(NotServer),
    row("(requests|tokens|queries) per (second|minute|hour|day)", RateLimit).when(NotServer),
    row(
        "(qps|rpm|tpm|qpm|rpd|tpd|request|requests|token|tokens|concurrency|throughput) limit (reached|exceeded|hit|has been reached|has been exceeded)",
        RateLimit,
    )
    .when(NotServer),
    row("quota exceeded", RateLimit).when(NotServer),
    row("resource has been exhausted", RateLimit).when(NotServer),
    row("(request was throttled|being throttled)", RateLimit),
    row("throttled", RateLimit).when(NotServer),
    row("(requests|calls|messages) too (quickly|fast|frequently|often)", RateLimit).when(NotServer),
    row("(request rate|rate of requests|frequency) .. too high", RateLimit).when(NotServer),
    row("(quota|limit|cap) per (second|minute|hour|day)", RateLimit).when(NotServer),
    row("slow down", RateLimit).when(NotServer),
    row("concurrency limit", RateLimit).when(NotServer),
    row("请求过于频繁", RateLimit),
    row("速率限制", RateLimit),
    row("并发数过高", RateLimit),
    // The model cannot be reached.
    row(
        "model .. (does not exist|do not exist|doesn't exist|not exist|not found|could not be found|could not be located|is not available|is unavailable|is currently unavailable|not supported by|is not supported|is not accessible|inaccessible|not deployed|not loaded|not served|not offered|not hosted|not provided|not known|isn't available|isn't supported|not enabled|only available to|only available for|only available on|cannot be used with this account|cannot be used with your|could not be loaded|requires terms acceptance|is blocked|is disabled|is not enabled|is not allowed)",
        ModelAccess,
    ),
    row("@model .. (not found|does not exist)", ModelAccess),
    row("not found the model", ModelAccess),
    row(
        "(could not|couldn't|cannot|can't|unable to) (find|locate|load|access|resolve) .. model",
        ModelAccess,
    )
    .when(NotServer),
    row("no model (named|called|with)", ModelAccess),
    row("no (provider|endpoint|backend|deployment) .. model", ModelAccess).when(NotServer),
    row(
        "(no such|unknown|invalid|unsupported|unrecognized|unavailable) model",
        ModelAccess,
    ),
    row("not a (valid|known|supported) model", ModelAccess),
    row(
        "not one of the (available|supported|known|allowed|valid) models",
        ModelAccess,
    ),
    row("model identifier is invalid", ModelAccess),
    row("resolve the foundation model", ModelAccess),
    row("access to (model|the model|this model|models)", ModelAccess),
    row("access model", ModelAccess).when(NotServer),
    row("model access (is denied|denied)", ModelAccess),
    row(
        "(allowed|permission|authorized|verified) to use .. model",
        ModelAccess,
    ),
    row("deployment .. (does not exist|not found)", ModelAccess),
    row("no endpoints (found|available)", ModelAccess),
    row("no models loaded", ModelAccess),
    row("non serverless model", ModelAccess),
    row("模型不存在", ModelAccess),
    // The provider's own trouble.
    row("overloaded", Transient).kind(Overloaded),
    row("no healthy upstream", Transient),
    row("upstream connect error", Transient),
    row("temporarily (unavailable|overloaded)", Transient).when(ServerOrStream),
    row("internal server error", Transient).when(ServerOrStream),
    row("(server|service) .. (busy|overloaded)", Transient)
        .kind(Overloaded)
        .when(ServerOrStream),
    // Single words, where the status leaves few readings.
    row(
        "(country|territory|geographic|jurisdiction)",
        RegionBlocked,
    )
    .when(Only(403)),
    row(
        "(quota|credits|credit|balance|billing|budget|spending|payment|unpaid|invoice)",
        Quota,
    )
    .when(Only(403)),
    row("usage limit", Quota).when(Only(403)),
    row(
        "(model|models|@model) .. (available|enabled|only|tier|plan|preview|beta|restricted|gated|allowlist|waitlist|disabled|blocked)",
        ModelAccess,
    )
    .when(Only(403)),
    row("(model|models|deployment|engine)", ModelGone).when(Only(410)),
    row("(model|models|deployment|engine)", ModelAccess).when(Only(404)),
];

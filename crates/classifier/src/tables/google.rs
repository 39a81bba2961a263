//! Google: `{"error":{code,message,status,details[]}}`, sometimes wrapped in an array.
//!
//! A bad key is a 400 `INVALID_ARGUMENT` with reason `API_KEY_INVALID`. `RESOURCE_EXHAUSTED` opens with the
//! same sentence as OpenAI's spent account and is a limit over time all the same, unless it speaks of
//! prepayment or a spending cap. A model is named as a resource (`models/x`). On Vertex, Claude answers
//! in Anthropic's own shape, which the general table covers.

use Class::{
    CallerFault, Credential, ModelAccess, ModelGone, Quota, RateLimit, RegionBlocked, Transient,
    Unknown,
};
use Kind::{ContextWindow, Overloaded, RenewableToken};
use When::{NotServer, Only, Refused};

use crate::evidence::Family;
use crate::table::{Rule, Table, When};
use crate::verdict::{Class, Kind};

pub(super) const GEMINI: Table = Table {
    family: Family::Gemini,
    source: "https://www.developersdigest.tech/errors/api/gemini-api (a digest of the provider's page); the failure corpus under `corpus/`",
    revised: "2026-11-30",
    codes: CODES,
    phrases: PHRASES,
    statuses: &[],
};

pub(super) const VERTEX: Table = Table {
    family: Family::Vertex,
    source: "https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/api-errors; the failure corpus under `corpus/`",
    revised: "2026-11-30",
    codes: CODES,
    phrases: PHRASES,
    statuses: &[],
};

const CODES: &[Rule] = &[
    Rule::new("api_key_invalid", Credential),
    Rule::new("api_key_service_blocked", Credential),
    Rule::new("api_key_http_referrer_blocked", Credential),
    Rule::new("api_key_ip_address_blocked", Credential),
    Rule::new("consumer_suspended", Credential),
    Rule::new("service_disabled", Credential),
    Rule::new("access_token_expired", Credential).kind(RenewableToken),
    Rule::new("access_token_type_unsupported", Credential),
    Rule::new("credentials_missing", Credential),
    Rule::new("billing_disabled", Quota),
    Rule::new("rate_limit_exceeded", RateLimit),
    Rule::new("model_capacity_exhausted", RateLimit).kind(Overloaded),
    Rule::new("unauthenticated", Credential).weak(),
    Rule::new("resource_exhausted", RateLimit).weak(),
    Rule::new("unavailable", Transient).weak(),
    Rule::new("internal", Transient).weak(),
    Rule::new("deadline_exceeded", Transient).weak(),
    Rule::new("permission_denied", Credential).weak(),
    Rule::new("invalid_argument", CallerFault)
        .weak()
        .when(Refused),
    Rule::new("failed_precondition", CallerFault)
        .weak()
        .when(Refused),
    Rule::new("cancelled", Unknown).weak(),
];

const PHRASES: &[Rule] = &[
    Rule::new("location is not supported", RegionBlocked),
    Rule::new("not available in your country", RegionBlocked),
    Rule::new("prepayment credits", Quota),
    Rule::new("spending cap", Quota),
    Rule::new("requires billing to be enabled", Quota),
    Rule::new("exceeded your current quota", RateLimit),
    Rule::new("quota exceeded for", RateLimit).when(NotServer),
    Rule::new("check quota", RateLimit).when(NotServer),
    Rule::new("api key not valid", Credential),
    Rule::new("api key expired", Credential),
    Rule::new("reported as leaked", Credential),
    Rule::new("no longer available", ModelGone).when(Only(404)),
    Rule::new("@model .. not found", ModelAccess),
    Rule::new("model .. not found", ModelAccess),
    Rule::new("denied on resource @model", ModelAccess),
    Rule::new("@model", ModelAccess).when(Only(403)),
    Rule::new("@model", ModelAccess).when(Only(404)),
    Rule::new("not allowed to use publisher model", ModelAccess),
    Rule::new("access to .. model", ModelAccess).when(Only(403)),
    Rule::new("token count .. exceeds", CallerFault).kind(ContextWindow),
    Rule::new("maximum number of tokens allowed", CallerFault).kind(ContextWindow),
];

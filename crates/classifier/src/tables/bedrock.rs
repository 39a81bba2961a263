//! Amazon Bedrock: `{"message"}` with the exception's name in `x-amzn-errortype` (before the colon), in
//! `__type`, or as the key of a decoded event-stream frame.
//!
//! A `ValidationException` may be about the model, its retirement or the caller's country;
//! an `AccessDeniedException` is about the model unless it speaks of the key.

use Class::{
    CallerFault, Credential, ModelAccess, ModelGone, Quota, RateLimit, RegionBlocked, Transient,
};
use Kind::{ContextWindow, Overloaded, RenewableToken};
use When::Only;

use crate::evidence::Family;
use crate::table::{Rule, Table, When};
use crate::verdict::{Class, Kind};

pub(super) const TABLE: Table = Table {
    family: Family::Bedrock,
    source: "https://docs.aws.amazon.com/bedrock/latest/userguide/troubleshooting-api-error-codes.html; the failure corpus under `corpus/`",
    revised: "2026-11-30",
    codes: &[
        Rule::new("throttling_exception", RateLimit),
        Rule::new("service_quota_exceeded_exception", RateLimit),
        Rule::new("too_many_requests_exception", RateLimit),
        Rule::new("unrecognized_client_exception", Credential),
        Rule::new("invalid_signature_exception", Credential),
        Rule::new("incomplete_signature*", Credential),
        Rule::new("expired_token_exception", Credential).kind(RenewableToken),
        Rule::new("expired_token", Credential).kind(RenewableToken),
        Rule::new("invalid_client_token_id", Credential),
        Rule::new("missing_authentication_token*", Credential),
        Rule::new("not_authorized", Credential),
        Rule::new("opt_in_required", Credential),
        Rule::new("request_expired", Credential),
        Rule::new("ftu_form_not_filled", ModelAccess),
        Rule::new("mp_agreement_being_created", ModelAccess),
        Rule::new("internal_server_exception", Transient),
        Rule::new("internal_failure", Transient),
        Rule::new("service_unavailable_exception", Transient),
        Rule::new("model_error_exception", Transient),
        Rule::new("model_timeout_exception", Transient),
        Rule::new("model_stream_error_exception", Transient),
        Rule::new("model_not_ready_exception", Transient).kind(Overloaded),
        Rule::new("access_denied_exception", ModelAccess).weak(),
        Rule::new("resource_not_found_exception", ModelAccess).weak(),
        Rule::new("validation_exception", CallerFault).weak(),
        Rule::new("conflict_exception", CallerFault).weak(),
    ],
    phrases: &[
        Rule::new("not allowed from unsupported", RegionBlocked),
        Rule::new("end of its life", ModelGone),
        Rule::new("model identifier is invalid", ModelAccess),
        Rule::new("on demand throughput", ModelAccess),
        Rule::new("marked .. as legacy", ModelAccess),
        Rule::new("access to the model", ModelAccess),
        Rule::new("authorization header", Credential).when(Only(403)),
        Rule::new("bearer token", Credential).when(Only(403)),
        Rule::new("bill .. past due", Quota),
        Rule::new("payment instrument", Quota),
        Rule::new("input tokens exceeded", CallerFault).kind(ContextWindow),
        Rule::new("too many tokens please wait", RateLimit),
        Rule::new("too many tokens per day", RateLimit),
    ],
    statuses: &[],
};

//! The shape of a journey's record, and its spelling as JSON.

use std::time::Duration;

use backstop_policy::{AttemptAction, AttemptRow};
use backstop_units::{CallerName, Moment, RequestId};
use serde_json::{Map, Value, json};

/// One caller request from acceptance to its terminal reason.
#[derive(Debug, Clone)]
pub struct JourneyRecord {
    /// End-to-end identity: the caller's `x-request-id`, or ours.
    pub request_id: RequestId,
    /// Whose request it is; `None` where callers need no key.
    pub caller: Option<CallerName>,
    /// The route it takes; `direct` where the caller named `provider/model`.
    pub route: String,
    /// What the caller put in `model`.
    pub requested: String,
    /// The caller's dialect.
    pub dialect: &'static str,
    /// What was asked for: `generate`, `embed` or `count_tokens`.
    pub operation: &'static str,
    /// Whether a stream was asked for.
    pub streaming: bool,
    /// Which repetition the caller's SDK said this is (`x-stainless-retry-count`).
    pub caller_retry: Option<u32>,
    /// When it was accepted.
    pub started: Moment,
    /// From acceptance to the end.
    pub total: Duration,
    /// The configuration it ran under.
    pub config_version: u64,
    /// The attempts, and the channels passed over, in order.
    pub rows: Vec<AttemptRow>,
    /// `success`, `exhausted`, `cancelled`, `partial`, `policy_stop` or `deadline`.
    pub terminal: &'static str,
    /// The status the caller got; `None` when the caller had left before one was sent.
    pub status: Option<u16>,
    /// Who answered, where someone did.
    pub served: Option<Served>,
    /// Events of a stream that were handed to the caller; 0 for a whole answer. Where usage is
    /// unknown, it is all that is known of how much was answered.
    pub delivered_events: u64,
}

/// Who answered, and by which right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Served {
    /// The provider.
    pub provider: String,
    /// The provider's model.
    pub model: String,
    /// `direct`, `retry`, `fallback` or `substitution`.
    pub action: AttemptAction,
}

impl JourneyRecord {
    /// A record that holds nothing yet.
    pub fn begun(request_id: RequestId, requested: impl Into<String>) -> Self {
        Self {
            request_id,
            caller: None,
            route: String::new(),
            requested: requested.into(),
            dialect: "",
            operation: "generate",
            streaming: false,
            caller_retry: None,
            started: Moment::START,
            total: Duration::ZERO,
            config_version: 0,
            rows: Vec::new(),
            terminal: "cancelled",
            status: None,
            served: None,
            delivered_events: 0,
        }
    }

    /// The record as JSON, for operators.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "request_id": self.request_id.as_str(),
            "caller": self.caller.as_ref().map(CallerName::as_str),
            "model_requested": self.requested,
            "dialect": self.dialect,
            "operation": self.operation,
            "stream": self.streaming,
            "caller_retry": self.caller_retry,
            "total_ms": millis(self.total),
            "config_version": self.config_version,
            "terminal_reason": self.terminal,
            "status": self.status,
            "provider": self.served.as_ref().map(|served| served.provider.as_str()),
            "model_served": self.served.as_ref().map(|served| served.model.as_str()),
            "action": self.served.as_ref().map(|served| served.action.as_str()),
            "delivered_events": self.streaming.then_some(self.delivered_events),
            "attempt_trail": trail_json(&self.rows),
        })
    }
}

/// The rows of a trail as callers see them in `extra_fields.attempt_trail`.
#[must_use]
pub fn trail_json(rows: &[AttemptRow]) -> Value {
    Value::Array(rows.iter().map(row_json).collect())
}

/// One row. A fact that is not known is absent; zero means zero.
fn row_json(row: &AttemptRow) -> Value {
    let mut out = Map::new();
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            out.insert(name.to_owned(), value);
        }
    };
    put("attempt", row.attempt.map(Value::from));
    put("provider", Some(row.provider.as_str().into()));
    put("model", Some(row.model.as_str().into()));
    put("key_name", row.key.as_ref().map(|key| key.name().into()));
    put("action", Some(row.action.as_str().into()));
    put("outcome", Some(row.outcome.as_str().into()));
    put("failure_class", row.class.map(|class| class.name().into()));
    put("failure_kind", row.kind.map(|kind| kind.name().into()));
    put("signal", row.signal.as_deref().map(Value::from));
    put("fail_reason", row.fail_reason.as_deref().map(Value::from));
    put("provider_code", row.code.as_deref().map(Value::from));
    put("status_code", row.status.map(Value::from));
    put("phase", Some(row.phase.as_str().into()));
    put("upstream_phase", Some(row.upstream_phase.as_str().into()));
    put(
        "retry_after_ms",
        row.retry_after.map(|hint| millis(hint).into()),
    );
    put(
        "connection",
        row.connection_reused
            .map(|reused| if reused { "reused" } else { "fresh" }.into()),
    );
    put(
        "waited_ms",
        (!row.waited.is_zero()).then(|| millis(row.waited).into()),
    );
    put("connect_ms", row.connect.map(|time| millis(time).into()));
    put("headers_ms", row.headers.map(|time| millis(time).into()));
    put(
        "first_output_ms",
        row.first_output.map(|time| millis(time).into()),
    );
    put("total_ms", row.attempt.map(|_| millis(row.total).into()));
    put(
        "usage",
        row.usage
            .as_ref()
            .and_then(|usage| serde_json::to_value(usage).ok()),
    );
    Value::Object(out)
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

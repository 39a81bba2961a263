//! What one record says: a journey began, an attempt is about to leave, it ended, the journey ended.
//!
//! The entries hold names, categories and numbers alone. An end says everything again that a beginning
//! said, so that each can be read without the other.

use std::borrow::Cow;
use std::time::Duration;

use backstop_policy::{AttemptRow, Phase};
use backstop_units::{CallerName, KeyId, MicroUsd, Tokens};
use serde::{Deserialize, Serialize};

use crate::record::JourneyRecord;

/// One record of a segment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Entry<'a> {
    /// A journey was accepted.
    Begin(JourneyEntry<'a>),
    /// An attempt is about to be sent: written before its first byte leaves.
    Sending(AttemptEntry<'a>),
    /// An attempt ended, or a channel was passed over.
    Attempt(AttemptEntry<'a>),
    /// The journey ended.
    End(JourneyEntry<'a>),
    /// Nothing but that records can be written again.
    Mark,
}

type Text<'a> = Cow<'a, str>;

/// A journey, as far as it is known. Members that are not known are left out.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct JourneyEntry<'a> {
    pub(crate) id: i64,
    pub(crate) request_id: Text<'a>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) caller: Option<Text<'a>>,
    pub(crate) route: Text<'a>,
    pub(crate) model_requested: Text<'a>,
    pub(crate) dialect: Text<'a>,
    /// What was asked for, such as `generate` or `embed`.
    pub(crate) operation: Text<'a>,
    pub(crate) stream: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) caller_retry: Option<u32>,
    /// Wall time, milliseconds since 1970.
    pub(crate) started_ms: i64,
    pub(crate) config_version: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) terminal_reason: Option<Text<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) provider: Option<Text<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) model_served: Option<Text<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) action: Option<Text<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) total_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) delivered_events: Option<u64>,
}

/// The longest text of a caller that is kept. Ids and names of routes are shorter.
const LONGEST: usize = 256;

impl<'a> JourneyEntry<'a> {
    /// A journey that began.
    pub(crate) fn begun(id: i64, started_ms: i64, record: &'a JourneyRecord) -> Self {
        Self {
            id,
            request_id: cut(record.request_id.as_str()),
            caller: record.caller.as_ref().map(CallerName::as_str).map(cut),
            route: cut(&record.route),
            model_requested: cut(&record.requested),
            dialect: record.dialect.into(),
            operation: record.operation.into(),
            stream: record.streaming,
            caller_retry: record.caller_retry,
            started_ms,
            config_version: record.config_version,
            ..Self::default()
        }
    }

    /// A journey that ended.
    pub(crate) fn ended(id: i64, started_ms: i64, record: &'a JourneyRecord) -> Self {
        let served = record.served.as_ref();
        Self {
            terminal_reason: Some(record.terminal.into()),
            status: record.status,
            provider: served.map(|served| cut(&served.provider)),
            model_served: served.map(|served| cut(&served.model)),
            action: served.map(|served| served.action.as_str().into()),
            total_ms: Some(millis(record.total)),
            delivered_events: record.streaming.then_some(record.delivered_events),
            ..Self::begun(id, started_ms, record)
        }
    }
}

/// An attempt, as far as it is known.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct AttemptEntry<'a> {
    pub(crate) journey: i64,
    /// Place in the trail from 1, skipped channels included.
    pub(crate) seq: u32,
    /// Place among the sends from 1; absent for a skipped channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) attempt: Option<u32>,
    pub(crate) action: Text<'a>,
    pub(crate) channel: Text<'a>,
    pub(crate) provider: Text<'a>,
    pub(crate) model: Text<'a>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) key_name: Option<Text<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) dialect: Option<Text<'a>>,
    pub(crate) config_version: u64,
    /// Wall time, milliseconds since 1970.
    pub(crate) started_ms: i64,
    /// From acceptance, or from the end of the attempt before, to this one's start, without the wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) queue_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) waited_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) outcome: Option<Text<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) class: Option<Text<'a>>,
    /// The finer kind of the class; `kind` is taken by the entry's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) failure_kind: Option<Text<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) signal: Option<Text<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fail_reason: Option<Text<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) provider_code: Option<Text<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) phase: Option<Text<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) upstream_phase: Option<Text<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) started_output: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) connection: Option<Text<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) connect_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) headers_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) first_output_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) total_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) retry_after_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) input_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cache_read_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cache_write_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) output_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reasoning_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cost_micro_usd: Option<i64>,
}

/// Where a row stands in its journey.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) journey: i64,
    pub(crate) seq: u32,
    pub(crate) config_version: u64,
    /// Wall time of the attempt's start.
    pub(crate) started_ms: i64,
    pub(crate) queue: Duration,
    pub(crate) dialect: Option<&'static str>,
}

impl<'a> AttemptEntry<'a> {
    /// An attempt that is about to be sent.
    pub(crate) fn sending(place: Place, row: &'a AttemptRow) -> Self {
        Self {
            journey: place.journey,
            seq: place.seq,
            attempt: row.attempt,
            action: row.action.as_str().into(),
            channel: row.channel.as_str().into(),
            provider: row.provider.as_str().into(),
            model: cut(row.model.as_str()),
            key_name: row.key.as_ref().map(KeyId::name).map(Text::from),
            dialect: place.dialect.map(Text::from),
            config_version: place.config_version,
            started_ms: place.started_ms,
            queue_ms: row.attempt.map(|_| millis(place.queue)),
            waited_ms: row.attempt.map(|_| millis(row.waited)),
            ..Self::default()
        }
    }

    /// An attempt that ended, or a channel that was passed over.
    pub(crate) fn ended(place: Place, row: &'a AttemptRow, cost: Option<MicroUsd>) -> Self {
        let usage = row.usage.unwrap_or_default();
        let tokens = |count: Option<Tokens>| count.map(|Tokens(count)| count);
        let output = row.first_output.is_some() || row.phase == Phase::AfterOutput;
        Self {
            outcome: Some(row.outcome.as_str().into()),
            class: row.class.map(|class| class.name().into()),
            failure_kind: row.kind.map(|kind| kind.name().into()),
            signal: row.signal.as_deref().map(cut),
            fail_reason: row.fail_reason.as_deref().map(cut),
            provider_code: row.code.as_deref().map(cut),
            status: row.status,
            phase: Some(row.phase.as_str().into()),
            upstream_phase: Some(row.upstream_phase.as_str().into()),
            started_output: row.attempt.map(|_| output),
            connection: row
                .connection_reused
                .map(|reused| if reused { "reused" } else { "fresh" }.into()),
            connect_ms: row.connect.map(millis),
            headers_ms: row.headers.map(millis),
            first_output_ms: row.first_output.map(millis),
            total_ms: row.attempt.map(|_| millis(row.total)),
            retry_after_ms: row.retry_after.map(millis),
            input_tokens: tokens(usage.input),
            cache_read_tokens: tokens(usage.cache_read),
            cache_write_tokens: tokens(usage.cache_write),
            output_tokens: tokens(usage.output),
            reasoning_tokens: tokens(usage.reasoning),
            cost_micro_usd: cost.map(|MicroUsd(cost)| cost),
            ..Self::sending(place, row)
        }
    }
}

/// The start of a text, as much of it as is kept.
fn cut(text: &str) -> Text<'_> {
    match text.char_indices().nth(LONGEST) {
        None => text.into(),
        Some((end, _)) => text[..end].into(),
    }
}

pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

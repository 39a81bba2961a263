//! A scenario as typed: what providers do, how the gateway is set, what callers send, what must
//! hold. Unknown names are refused, so that nothing is written down and never looked at.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::{self, Deserializer};
use serde_json::{Map, Value};

/// A fault that happened to somebody, as a play with an ending that can be checked.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Its name; never changes.
    pub id: String,
    /// The story in a line.
    pub title: String,
    /// The part of the gateway it is about.
    pub feature: String,
    /// The parts it touches.
    #[serde(default)]
    pub also: Vec<String>,
    /// The providers, the first being the primary.
    pub(crate) upstreams: Vec<Provider>,
    /// The settings that matter.
    pub(crate) gateway: Settings,
    /// Who asks for what, and when.
    pub(crate) client: Client,
    /// What must hold.
    pub(crate) expect: Expect,
    /// What the rules leave open or decide otherwise, and the reading taken here.
    pub open: Option<String>,
    /// The public reports behind it: `owner/repository#number`.
    pub source: String,
    /// The right behaviour in a line.
    pub why: String,
}

/// A scripted provider.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Provider {
    /// Its name in the gateway's configuration.
    pub(crate) name: String,
    /// The wire it speaks.
    pub(crate) provider: String,
    /// Its model.
    pub(crate) model: String,
    /// The names of its keys.
    pub(crate) keys: Vec<String>,
    /// How a key travels, where not as usual.
    pub(crate) credential: Option<String>,
    /// How connections to it begin: `unresolved`, `refused`, or a door of the simulator.
    #[serde(default)]
    pub(crate) door: Option<String>,
    /// What its contract lacks.
    pub(crate) contract: Option<String>,
    /// A remark.
    #[serde(rename = "note")]
    _note: Option<String>,
    /// What it answers, a step for each attempt; the simulator reads it.
    pub(crate) script: Vec<Value>,
}

/// The settings that matter, in the words of scenarios.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    pub(crate) max_retries: u32,
    pub(crate) fallbacks: Value,
    pub(crate) fallback_kind: Option<Value>,
    #[serde(default)]
    pub(crate) contract_verified: Vec<String>,
    pub(crate) substitution_policy: Option<Map<String, Value>>,
    pub(crate) backoff_initial_ms: Option<u64>,
    pub(crate) backoff_max_ms: Option<u64>,
    pub(crate) jitter: Option<String>,
    pub(crate) key_selection: Option<String>,
    #[serde(default)]
    pub(crate) timeouts: Timeouts,
    pub(crate) breaker: Option<Breaker>,
    pub(crate) cooldown: Option<Value>,
    pub(crate) concurrency_per_caller: Option<u32>,
    pub(crate) max_body_bytes: Option<u64>,
    pub(crate) pool: Option<String>,
    pub(crate) log_level: Option<String>,
    pub(crate) aliases: Option<Value>,
    pub(crate) buffer_per_stream_bytes: Option<u64>,
    pub(crate) gateway_auth_header: Option<String>,
    pub(crate) caller_deadline: Option<String>,
    pub(crate) routes_v1: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) actions: Vec<Reload>,
}

/// The clocks, in milliseconds.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Timeouts {
    pub(crate) connect_ms: Option<u64>,
    pub(crate) headers_ms: Option<u64>,
    pub(crate) ttft_ms: Option<u64>,
    pub(crate) idle_ms: Option<u64>,
    pub(crate) request_deadline_ms: Option<u64>,
    pub(crate) client_stall_ms: Option<u64>,
}

/// When a channel is left alone.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Breaker {
    pub(crate) failure_threshold: u32,
    pub(crate) open_ms: u64,
    pub(crate) half_open_max: Option<u32>,
}

/// Another configuration, put in force while requests run.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Reload {
    pub(crate) at_ms: u64,
    #[serde(rename = "do")]
    pub(crate) what: String,
    pub(crate) change: String,
}

/// Who asks: one request, or several in a sequence.
#[derive(Debug, Clone)]
pub(crate) struct Client(pub(crate) Vec<Ask>);

impl<'de> Deserialize<'de> for Client {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Sequence {
            sequence: Vec<Ask>,
        }
        let typed = Value::deserialize(reader)?;
        let asks = if typed.get("sequence").is_some() {
            Sequence::deserialize(typed)
                .map_err(de::Error::custom)?
                .sequence
        } else {
            vec![Ask::deserialize(typed).map_err(de::Error::custom)?]
        };
        Ok(Self(asks))
    }
}

/// A caller's request.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ask {
    pub(crate) endpoint: String,
    pub(crate) stream: bool,
    pub(crate) body: Value,
    #[serde(default)]
    pub(crate) headers: Map<String, Value>,
    pub(crate) deadline_ms: Option<u64>,
    pub(crate) cancel_after_ms: Option<u64>,
    pub(crate) body_pad_bytes: Option<usize>,
    pub(crate) transfer: Option<String>,
    pub(crate) read: Option<Value>,
    pub(crate) at_ms: Option<u64>,
    #[serde(default = "once")]
    pub(crate) repeat: u32,
    #[serde(default)]
    pub(crate) gap_ms: u64,
}

const fn once() -> u32 {
    1
}

/// What must hold. A name that is not here is refused.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expect {
    pub(crate) client_status: Value,
    pub(crate) client_body: Option<Value>,
    pub(crate) client_headers: Option<Value>,
    pub(crate) client_stream: Option<Value>,
    pub(crate) client_check: Option<Map<String, Value>>,
    pub(crate) attempts: Vec<Attempt>,
    #[serde(default)]
    pub(crate) timing: Map<String, Value>,
    #[serde(default)]
    pub(crate) state: Map<String, Value>,
    #[serde(default)]
    pub(crate) ledger: Map<String, Value>,
    #[serde(default)]
    pub(crate) metrics: Map<String, Value>,
    #[serde(default)]
    pub(crate) upstream_requests: Vec<UpstreamRequest>,
    pub(crate) scan_for_secret: Option<Scan>,
    #[serde(default)]
    pub(crate) not: Vec<String>,
}

/// A call to a provider. What is given must be on record.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Attempt {
    pub(crate) n: u32,
    pub(crate) upstream: String,
    pub(crate) key: String,
    pub(crate) class: Option<String>,
    pub(crate) phase: Option<String>,
    pub(crate) outcome: String,
    /// The place in the sequence, from 1.
    #[serde(default = "first")]
    pub(crate) request: usize,
    #[serde(default)]
    pub(crate) per_request: bool,
    pub(crate) raw_status: Option<u16>,
    pub(crate) recorded_status: Option<u16>,
    pub(crate) provider_error: Option<String>,
    pub(crate) provider_code: Option<Value>,
    pub(crate) fail_reason: Option<String>,
    #[serde(default, deserialize_with = "given")]
    pub(crate) retry_after_ms: Option<Option<u64>>,
    pub(crate) action: Option<String>,
    pub(crate) connection: Option<String>,
    pub(crate) config: Option<String>,
    /// A remark.
    #[serde(rename = "note")]
    _note: Option<String>,
}

const fn first() -> usize {
    1
}

/// A value that may be given as `null`.
fn given<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<Option<u64>>, D::Error> {
    Option::deserialize(reader).map(Some)
}

/// What a provider must or must not have received.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct UpstreamRequest {
    pub(crate) upstream: String,
    #[serde(default)]
    pub(crate) must_have: Vec<String>,
    #[serde(default)]
    pub(crate) must_not_have: Vec<String>,
    pub(crate) check: Option<String>,
}

/// A secret, and where to look for it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scan {
    pub(crate) secret: String,
    pub(crate) places: Vec<String>,
    pub(crate) expect: String,
}

/// Why scenarios cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// The file or folder cannot be read.
    #[error("cannot read {}", path.display())]
    File {
        /// Where it is.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// It is no scenario.
    #[error("{} is no scenario: {problem}", path.display())]
    Scenario {
        /// The file.
        path: PathBuf,
        /// What is wrong, with its line.
        problem: String,
    },
}

/// The scenarios at `path`: a folder of `.json` files, one such file, or a `.jsonl` with one a line.
///
/// # Errors
/// When one cannot be read.
pub fn read(path: &Path) -> Result<Vec<Scenario>, Unreadable> {
    let unreadable = |source| Unreadable::File {
        path: path.to_owned(),
        source,
    };
    if path.is_dir() {
        let mut files: Vec<PathBuf> = std::fs::read_dir(path)
            .map_err(unreadable)?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|file| file.extension().is_some_and(|ext| ext == "json"))
            .collect();
        files.sort();
        let mut all = Vec::new();
        for file in files {
            all.extend(read(&file)?);
        }
        return Ok(all);
    }
    let text = std::fs::read_to_string(path).map_err(unreadable)?;
    let broken = |problem: &dyn fmt::Display| Unreadable::Scenario {
        path: path.to_owned(),
        problem: problem.to_string(),
    };
    if path.extension().is_some_and(|ext| ext == "jsonl") {
        let lines = text.lines().zip(1..).filter(|(line, _)| !line.is_empty());
        return lines
            .map(|(line, n)| {
                serde_json::from_str(line).map_err(|error| broken(&format!("line {n}: {error}")))
            })
            .collect();
    }
    let scenario = serde_json::from_str(&text).map_err(|error| broken(&error))?;
    Ok(vec![scenario])
}

//! The gateway's metrics: the one place where their names, units and labels are written.
//!
//! Names start with `backstop_` and carry their unit, in base units (seconds, bytes). Words that
//! the code fixes (outcome, class, action, dialect, operation) arrive as `&'static str`, so that no text from
//! the wire can become a label by mistake; routes, providers, models and channels are checked
//! against what the operator configured.

mod names;

use std::collections::HashSet;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use backstop_units::ByteCount;
use prometheus::core::Collector;
use prometheus::{
    GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge,
    IntGaugeVec, Opts, Registry, TextEncoder, exponential_buckets,
};

use names::Names;
pub use names::OTHER;

/// Every metric of the process. Cheap to use from many tasks at once: counters are atomic, and the
/// lock on the names is written only by a reload.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    names: RwLock<Names>,
    requests: IntCounterVec,
    attempts: IntCounterVec,
    request_attempts: Histogram,
    request_duration: HistogramVec,
    first_output: HistogramVec,
    attempt_duration: HistogramVec,
    in_flight: IntGauge,
    buffered: IntGauge,
    breaker: IntGaugeVec,
    breaker_failures: IntCounterVec,
    retry_budget: GaugeVec,
    keys_held: IntGaugeVec,
    denied: IntCounterVec,
    reload_ok: IntGauge,
    config_version: IntGauge,
    reloads: IntCounterVec,
    ledger_held: IntGauge,
    ledger_journeys: IntCounter,
    ledger_records: IntCounterVec,
    ledger_lag: IntGauge,
    ledger_size: IntGauge,
    ledger_failing: IntGauge,
}

/// What a ledger on disk did since the start, and holds.
#[derive(Debug, Clone, Copy)]
pub struct LedgerFacts {
    /// Records that reached a segment.
    pub written: u64,
    /// Records that were lost.
    pub dropped: u64,
    /// Records that reached the database, those that an earlier process left too.
    pub indexed: u64,
    /// In segments and not in the database yet.
    pub lag: ByteCount,
    /// On disk.
    pub size: ByteCount,
    /// Whether records cannot be written now.
    pub failing: bool,
}

/// The names that may become labels.
#[derive(Debug, Clone, Copy)]
pub struct Configured<'a> {
    /// Every route callers may name.
    pub routes: &'a [&'a str],
    /// Every provider. Its models that no route lists count together.
    pub providers: &'a [&'a str],
    /// Every channel of every route.
    pub channels: &'a [Channel<'a>],
}

/// A channel's names.
#[derive(Debug, Clone, Copy)]
pub struct Channel<'a> {
    /// Its identity across reloads (`backstop_units::ChannelId`).
    pub id: &'a str,
    /// Its provider.
    pub provider: &'a str,
    /// Its model, as the provider names it.
    pub model: &'a str,
}

/// How a caller's request ended.
#[derive(Debug, Clone, Copy)]
pub struct RequestEnd<'a> {
    /// The route the caller named.
    pub route: &'a str,
    /// The caller's dialect, such as `openai-chat`.
    pub dialect: &'static str,
    /// What was asked for: `generate`, `embed` or `count_tokens`.
    pub operation: &'static str,
    /// One of `success`, `success_after_retry`, `success_after_fallback`,
    /// `success_after_substitution`, `success_by_hook`, `exhausted`, `cancelled`, `partial`, `policy_stop`,
    /// `deadline`, `denied`, `bad_request`.
    pub outcome: &'static str,
    /// Sends to providers, over all channels and keys; 0 when nothing was sent.
    pub attempts: u32,
    /// From acceptance to the last byte or the hang-up.
    pub duration: Duration,
    /// From acceptance to the first output handed to the caller, when there was any.
    pub first_output: Option<Duration>,
}

/// How one send to a provider ended.
#[derive(Debug, Clone, Copy)]
pub struct AttemptEnd<'a> {
    /// The provider it went to.
    pub provider: &'a str,
    /// The model it asked for, as the provider names it.
    pub model: &'a str,
    /// The failure's class, `None` for a success.
    pub class: Option<&'static str>,
    /// Why it was made, such as `direct`, `retry`, `fallback`, `substitution`.
    pub action: &'static str,
    /// From the start of the send to its end.
    pub duration: Duration,
}

/// What a channel's breaker lets through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakerState {
    /// Everything.
    Closed,
    /// One probe.
    HalfOpen,
    /// Nothing.
    Open,
}

impl BreakerState {
    const ALL: [Self; 3] = [Self::Closed, Self::HalfOpen, Self::Open];

    const fn label(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::HalfOpen => "half_open",
            Self::Open => "open",
        }
    }
}

/// Counts a request as in flight until it is dropped, however the request ends.
#[derive(Debug)]
#[must_use = "the request counts as in flight only while this lives"]
pub struct InFlight(IntGauge);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// An empty page. No name is configured yet, so every route and channel is [`OTHER`].
    #[must_use]
    pub fn new() -> Self {
        let page = Page(Registry::new());
        let metrics = Self {
            requests: page.counters(
                "backstop_requests_total",
                "Caller requests by how they ended.",
                &["route", "dialect", "operation", "outcome"],
            ),
            attempts: page.counters(
                "backstop_attempts_total",
                "Sends to providers by the failure's class, or success, and why they were made.",
                &["provider", "model", "class", "action"],
            ),
            request_attempts: page.add(Histogram::with_opts(
                HistogramOpts::new(
                    "backstop_request_attempts",
                    "Sends to providers a caller request took.",
                )
                .buckets(ATTEMPTS.to_vec()),
            )),
            request_duration: page.durations(
                "backstop_request_duration_seconds",
                "From accepting a caller request to its end.",
                &["route"],
            ),
            first_output: page.durations(
                "backstop_time_to_first_output_seconds",
                "From accepting a caller request to its first output.",
                &["route"],
            ),
            attempt_duration: page.durations(
                "backstop_attempt_duration_seconds",
                "From the start of a send to its end.",
                &["provider", "model"],
            ),
            in_flight: page.gauge(
                "backstop_requests_in_flight",
                "Caller requests accepted and not ended.",
            ),
            buffered: page.gauge(
                "backstop_buffered_bytes",
                "Request bodies held in memory, in bytes.",
            ),
            breaker: page.gauges(
                "backstop_breaker_state",
                "1 for the state a channel's breaker is in, 0 for the others.",
                &["channel", "state"],
            ),
            breaker_failures: page.counters(
                "backstop_breaker_failures_total",
                "Failures that were told to a channel's breaker. Those of callers, of keys and of \
                 deadlines are not among them.",
                &["provider", "model"],
            ),
            retry_budget: page.add(GaugeVec::new(
                Opts::new(
                    "backstop_retry_budget_left_retries",
                    "Retries that a channel's budget still allows.",
                ),
                &["channel"],
            )),
            keys_held: page.gauges(
                "backstop_keys_held",
                "1 for each key that is held out, for a model or (\"*\") for all of them.",
                &["provider", "key", "model"],
            ),
            denied: page.counters(
                "backstop_admissions_refused_total",
                "Requests that the gateway itself refused: keys, borders, limits, budgets.",
                &["code"],
            ),
            reload_ok: page.gauge(
                "backstop_config_last_reload_ok",
                "1 when the last configuration read was taken, 0 when it was refused.",
            ),
            config_version: page.gauge(
                "backstop_config_version",
                "Version of the configuration that new requests get.",
            ),
            reloads: page.counters(
                "backstop_config_reloads_total",
                "Configurations read, by whether they were taken or refused.",
                &["result"],
            ),
            ledger_held: page.gauge(
                "backstop_ledger_recent_journeys",
                "Journeys the ledger holds in memory.",
            ),
            ledger_journeys: page.add(IntCounter::new(
                "backstop_ledger_journeys_total",
                "Journeys the ledger took since the start.",
            )),
            ledger_records: page.counters(
                "backstop_ledger_records_total",
                "Records of a ledger on disk: written to a segment, dropped because that was not \
                 possible, indexed into the database.",
                &["result"],
            ),
            ledger_lag: page.gauge(
                "backstop_ledger_lag_bytes",
                "What of the ledger is not in its database yet, in bytes.",
            ),
            ledger_size: page.gauge(
                "backstop_ledger_size_bytes",
                "What the ledger takes on disk, in bytes.",
            ),
            ledger_failing: page.gauge(
                "backstop_ledger_failing",
                "1 while the ledger cannot be written, 0 otherwise.",
            ),
            names: RwLock::default(),
            registry: page.0,
        };
        // Both results are on the page from the start, so that an alert on the first refusal sees
        // it rise from zero.
        metrics.reloads.with_label_values(&["taken"]);
        metrics.reloads.with_label_values(&["refused"]);
        metrics
    }

    /// Takes the names of a new configuration: they may become labels from now on. Gauges of
    /// channels that are gone leave the page; counters stay, as their history is true.
    pub fn configure(&self, configured: &Configured<'_>) {
        {
            let mut names = self.names.write().unwrap_or_else(PoisonError::into_inner);
            for route in configured.routes {
                names.learn_route(route);
            }
            names.replace_channels(configured.channels.iter().map(|c| c.id));
            for provider in configured.providers {
                names.learn_provider(provider);
            }
            for channel in configured.channels {
                names.learn_model(channel.provider, channel.model);
            }
        }
        let kept: HashSet<&str> = configured.channels.iter().map(|c| c.id).collect();
        for channel in labels_of(&self.breaker, "channel") {
            if !kept.contains(channel.as_str()) {
                self.forget_breaker(&channel);
            }
        }
        for channel in labels_of(&self.retry_budget, "channel") {
            if !kept.contains(channel.as_str()) {
                // Gone already is as good as removed.
                let _ = self.retry_budget.remove_label_values(&[&channel]);
            }
        }
    }

    /// A caller request was accepted. It counts as in flight until the guard is dropped.
    pub fn request_started(&self) -> InFlight {
        self.in_flight.inc();
        InFlight(self.in_flight.clone())
    }

    /// A caller request ended, whatever the way.
    pub fn request_ended(&self, end: &RequestEnd<'_>) {
        let route = self.names().route(end.route);
        self.requests
            .with_label_values(&[route, end.dialect, end.operation, end.outcome])
            .inc();
        self.request_attempts.observe(f64::from(end.attempts));
        self.request_duration
            .with_label_values(&[route])
            .observe(end.duration.as_secs_f64());
        if let Some(first) = end.first_output {
            self.first_output
                .with_label_values(&[route])
                .observe(first.as_secs_f64());
        }
    }

    /// A send to a provider ended, whatever the way.
    pub fn attempt_ended(&self, end: &AttemptEnd<'_>) {
        let (provider, model) = self.names().pair(end.provider, end.model);
        let class = end.class.unwrap_or("success");
        self.attempts
            .with_label_values(&[provider, model, class, end.action])
            .inc();
        self.attempt_duration
            .with_label_values(&[provider, model])
            .observe(end.duration.as_secs_f64());
    }

    /// A channel's breaker was told of a failure.
    pub fn breaker_failure(&self, provider: &str, model: &str) {
        let (provider, model) = self.names().pair(provider, model);
        self.breaker_failures
            .with_label_values(&[provider, model])
            .inc();
    }

    /// A channel's breaker is in `state` now. A channel that is not configured is left out.
    pub fn breaker_state(&self, channel: &str, state: BreakerState) {
        let Some(channel) = self.names().channel(channel) else {
            return;
        };
        for each in BreakerState::ALL {
            self.breaker
                .with_label_values(&[channel, each.label()])
                .set(i64::from(each == state));
        }
    }

    /// A channel's retry budget holds this many retries now. A channel that is not configured is
    /// left out.
    pub fn retry_budget_left(&self, channel: &str, retries: f64) {
        if let Some(channel) = self.names().channel(channel) {
            self.retry_budget.with_label_values(&[channel]).set(retries);
        }
    }

    /// These keys are held out now, each with the model it is held for; none for all models. Keys
    /// are configured, so their names are labels.
    pub fn keys_held<'a>(&self, held: impl Iterator<Item = (&'a str, &'a str, Option<&'a str>)>) {
        self.keys_held.reset();
        let names = self.names();
        for (provider, key, model) in held {
            let (provider, model) = match model {
                Some(model) => names.pair(provider, model),
                None => (provider, "*"),
            };
            self.keys_held
                .with_label_values(&[provider, key, model])
                .set(1);
        }
    }

    /// The gateway itself refused a request. `code` is a word of the code, never a caller's.
    pub fn admission_refused(&self, code: &'static str) {
        self.denied.with_label_values(&[code]).inc();
    }

    /// A configuration was taken; new requests get `version`.
    pub fn config_taken(&self, version: u64) {
        self.config_version.set(count(version));
        self.reload_ok.set(1);
        self.reloads.with_label_values(&["taken"]).inc();
    }

    /// A configuration was refused; the one before keeps serving.
    pub fn config_refused(&self) {
        self.reload_ok.set(0);
        self.reloads.with_label_values(&["refused"]).inc();
    }

    /// Request bodies take this much memory now.
    pub fn buffered(&self, bytes: ByteCount) {
        self.buffered.set(count(bytes.0));
    }

    /// The ledger took `taken` journeys since the start, and holds `held` in memory now.
    pub fn ledger_journeys(&self, taken: u64, held: u64) {
        raise(&self.ledger_journeys, taken);
        self.ledger_held.set(count(held));
    }

    /// What the ledger did on disk.
    pub fn ledger(&self, facts: &LedgerFacts) {
        for (result, number) in [
            ("written", facts.written),
            ("dropped", facts.dropped),
            ("indexed", facts.indexed),
        ] {
            raise(&self.ledger_records.with_label_values(&[result]), number);
        }
        self.ledger_lag.set(count(facts.lag.0));
        self.ledger_size.set(count(facts.size.0));
        self.ledger_failing.set(i64::from(facts.failing));
    }

    /// The page, in Prometheus' text format (`text/plain; version=0.0.4`).
    #[must_use]
    pub fn render(&self) -> String {
        TextEncoder::new()
            .encode_to_string(&self.registry.gather())
            .expect("writing text to a string succeeds")
    }

    fn names(&self) -> RwLockReadGuard<'_, Names> {
        // Learning a name cannot leave the set half done, so a poisoned lock still holds a good one.
        self.names.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn forget_breaker(&self, channel: &str) {
        for state in BreakerState::ALL {
            // Gone already is as good as removed.
            let _ = self.breaker.remove_label_values(&[channel, state.label()]);
        }
    }
}

/// Bucket bounds for the sends a request took; 12 is the default cap.
const ATTEMPTS: [f64; 10] = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 12.0, 24.0];

/// Bucket bounds for durations: 10 ms doubled, as the OpenTelemetry GenAI conventions have it for a
/// client's inference, carried on from their 82 s to 11 minutes, since long answers live that long.
fn duration_buckets() -> Vec<f64> {
    exponential_buckets(0.01, 2.0, 17).expect("start, factor and count are positive")
}

/// Brings a counter up to what somebody else counted.
fn raise(counter: &IntCounter, to: u64) {
    counter.inc_by(to.saturating_sub(counter.get()));
}

/// Metrics go through integers of the machine's sign; a count above the largest stays there.
fn count(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// The values of one label over all series of a metric.
fn labels_of(metric: &impl Collector, label: &str) -> HashSet<String> {
    metric
        .collect()
        .iter()
        .flat_map(prometheus::proto::MetricFamily::get_metric)
        .flat_map(prometheus::proto::Metric::get_label)
        .filter(|pair| pair.name() == label)
        .map(|pair| pair.value().to_owned())
        .collect()
}

/// A page under construction: whatever is made here is on it.
struct Page(Registry);

impl Page {
    fn add<M: Collector + Clone + 'static>(&self, metric: prometheus::Result<M>) -> M {
        let metric = metric.expect("names and labels in this file are well formed");
        self.0
            .register(Box::new(metric.clone()))
            .expect("names in this file are distinct");
        metric
    }

    fn counters(&self, name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
        self.add(IntCounterVec::new(Opts::new(name, help), labels))
    }

    fn gauge(&self, name: &str, help: &str) -> IntGauge {
        self.add(IntGauge::new(name, help))
    }

    fn gauges(&self, name: &str, help: &str, labels: &[&str]) -> IntGaugeVec {
        self.add(IntGaugeVec::new(Opts::new(name, help), labels))
    }

    fn durations(&self, name: &str, help: &str, labels: &[&str]) -> HistogramVec {
        let options = HistogramOpts::new(name, help).buckets(duration_buckets());
        self.add(HistogramVec::new(options, labels))
    }
}

#[cfg(test)]
mod tests;

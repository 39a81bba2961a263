//! The journey with its evidence: however the request ends, also by a hang-up, its guards settle,
//! its rows are written and its metrics counted, once.

use std::sync::Arc;
use std::time::Duration;

use backstop_breaker::Outcome as Health;
use backstop_classifier::Class;
use backstop_config::Snapshot;
use backstop_ledger::{JourneyRecord, Position, Served, Trace, Unrecorded};
use backstop_policy::{
    Action, AttemptAction, AttemptRow, Binding, Ending, Event, Journey, KeyFate, Level, Sentence,
};
use backstop_state::{Answering, LeaseGuard, PermitGuard};
use backstop_telemetry::{AttemptEnd, InFlight, RequestEnd, routing};
use backstop_units::{KeyId, MicroUsd, Moment};

use crate::caller::Admitted;
use crate::gateway::Gateway;

/// A journey under way. Dropping it before its end means that the caller left.
pub(crate) struct Journal {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) journey: Journey,
    pub(crate) record: JourneyRecord,
    /// The route's name as metrics know it.
    pub(crate) route: String,
    pub(crate) permit: Option<PermitGuard>,
    pub(crate) lease: Option<LeaseGuard>,
    pub(crate) first_output: Option<Moment>,
    /// The session the request belongs to; bound to whoever serves it.
    pub(crate) session: Option<String>,
    /// The caller's place among its limits.
    pub(crate) admitted: Option<Admitted>,
    in_flight: Option<InFlight>,
    /// What it costs is said there.
    snapshot: Arc<Snapshot>,
    /// How much of it is written down.
    trace: Trace,
}

impl Journal {
    /// Opens it, and writes down that the journey begins.
    pub(crate) fn open(
        gateway: &Arc<Gateway>,
        snapshot: &Arc<Snapshot>,
        journey: Journey,
        record: JourneyRecord,
        route: String,
    ) -> Result<Self, Unrecorded> {
        let trace = gateway.ledger.begin(&record, gateway.clock.wall())?;
        let in_flight = Some(gateway.metrics.request_started());
        Ok(Self {
            gateway: Arc::clone(gateway),
            journey,
            record,
            route,
            permit: None,
            lease: None,
            first_output: None,
            session: None,
            admitted: None,
            in_flight,
            snapshot: Arc::clone(snapshot),
            trace,
        })
    }

    /// Writes down that the attempt at hand is about to be sent, speaking `dialect`.
    pub(crate) fn sending(&mut self, dialect: &'static str) -> Position {
        let rows = self.journey.trail();
        let price = |row: &AttemptRow| cost(&self.snapshot, row);
        let ledger = &self.gateway.ledger;
        ledger.sending(&mut self.trace, &self.record, rows, dialect, &price)
    }

    /// Writes down how the attempts so far ended: there is a pause before what comes next.
    pub(crate) fn pause(&mut self) {
        let rows = self.journey.trail();
        let price = |row: &AttemptRow| cost(&self.snapshot, row);
        let ledger = &self.gateway.ledger;
        ledger.settled(&mut self.trace, &self.record, rows, &price);
    }

    /// Tells breaker and key pool how the attempt ended.
    pub(crate) fn settle(&mut self, now: Moment, outcome: Health, fate: KeyFate) {
        if let (Health::Failure, Some(row)) = (outcome, self.journey.trail().last()) {
            let (provider, model) = (row.provider.as_str(), row.model.as_str());
            self.gateway.metrics.breaker_failure(provider, model);
        }
        if let Some(permit) = self.permit.take() {
            let answering = if self.record.streaming {
                Answering::Streamed
            } else {
                Answering::Whole
            };
            let _ = match self.waited(outcome) {
                Some(waited) => permit.settle_timed(now, outcome, answering, waited),
                None => permit.settle(now, outcome),
            };
        }
        if fate == KeyFate::Served {
            self.bind_session();
        }
        if let Some(lease) = self.lease.take() {
            match fate {
                KeyFate::Served => lease.served(),
                KeyFate::Refused { refusal, hint } => lease.refused(refusal, hint, now),
                KeyFate::Nothing => drop(lease),
            }
        }
    }

    /// How long the attempt that ends made its caller wait: to the first output or the headers where
    /// it was answered, to the first output or the end where it failed.
    fn waited(&self, outcome: Health) -> Option<Duration> {
        let row = self.journey.trail().last()?;
        match outcome {
            Health::Success => row.first_output.or(row.headers),
            Health::Failure | Health::RateLimited => row.first_output.or(Some(row.total)),
            Health::Ignored => None,
        }
    }

    /// The session goes on with the channel and key that served it.
    fn bind_session(&self) {
        if let (Some(session), Some(candidate)) = (&self.session, self.journey.candidate()) {
            let key = self.lease.as_ref().and_then(|lease| lease.key().cloned());
            let channel = candidate.channel.id.clone();
            let binding = Binding { channel, key };
            self.gateway.state.bind_session(session, binding);
        }
    }

    /// Says a sentence of the routing log.
    pub(crate) fn say(&self, sentence: &Sentence) {
        let level = match sentence.level() {
            Level::Info => backstop_telemetry::Level::INFO,
            Level::Warn => backstop_telemetry::Level::WARN,
            Level::Error => backstop_telemetry::Level::ERROR,
        };
        routing(level, &self.record.request_id, sentence);
    }

    /// Writes the record and counts the metrics.
    pub(crate) fn close(&mut self, now: Moment, ending: &Ending, status: Option<u16>) {
        let Some(in_flight) = self.in_flight.take() else {
            return;
        };
        drop(in_flight);
        let record = &mut self.record;
        record.rows = self.journey.trail().to_vec();
        if let Some(admitted) = self.admitted.take() {
            admitted.settle(&self.gateway, now, &record.rows);
        }
        record.total = now.since(record.started);
        record.terminal = ending.reason();
        record.status = status;
        let answered = matches!(ending, Ending::Success | Ending::Partial(_));
        let by_hook = self.journey.answered_by().is_some();
        record.served = self
            .journey
            .candidate()
            .filter(|_| answered && !by_hook)
            .map(|candidate| Served {
                provider: candidate.channel.provider.as_str().to_owned(),
                model: candidate.channel.model.as_str().to_owned(),
                action: self.journey.served_by(),
            });
        let outcome = match (ending, self.journey.served_by()) {
            (Ending::Success, _) if by_hook => "success_by_hook",
            (Ending::Success, AttemptAction::Direct) => "success",
            (Ending::Success, AttemptAction::Retry) => "success_after_retry",
            (Ending::Success, AttemptAction::Fallback) => "success_after_fallback",
            (Ending::Success, AttemptAction::Substitution) => "success_after_substitution",
            (ending, _) => ending.reason(),
        };
        let metrics = &self.gateway.metrics;
        for row in &record.rows {
            log_row(record, row);
            if row.attempt.is_some() {
                metrics.attempt_ended(&AttemptEnd {
                    provider: row.provider.as_str(),
                    model: row.model.as_str(),
                    class: row.class.map(Class::name),
                    action: row.action.as_str(),
                    duration: row.total,
                });
            }
        }
        metrics.request_ended(&RequestEnd {
            route: &self.route,
            dialect: record.dialect,
            operation: record.operation,
            outcome,
            attempts: self.journey.sends(),
            duration: record.total,
            first_output: self.first_output.map(|first| first.since(record.started)),
        });
        tracing::info!(
            target: "backstop::journey",
            request_id = %record.request_id,
            route = %self.route,
            operation = record.operation,
            outcome,
            status,
            attempts = self.journey.sends(),
            total_ms = millis(record.total),
            "journey ended"
        );
        let empty = JourneyRecord::begun(record.request_id.clone(), "");
        let record = std::mem::replace(record, empty);
        let price = |row: &AttemptRow| cost(&self.snapshot, row);
        let trace = std::mem::take(&mut self.trace);
        self.gateway.ledger.end(trace, record, &price);
    }
}

/// What an attempt cost, where its model has a price and its usage is known.
fn cost(snapshot: &Snapshot, row: &AttemptRow) -> Option<MicroUsd> {
    let usage = row.usage.as_ref().filter(|_| !snapshot.prices.is_empty())?;
    let label = format!("{}/{}", row.provider, row.model);
    snapshot.prices.get(&label)?.cost(usage)
}

/// One row of the trail, for those who follow the log rather than the ledger.
fn log_row(record: &JourneyRecord, row: &AttemptRow) {
    tracing::debug!(
        target: "backstop::attempt",
        request_id = %record.request_id,
        attempt = row.attempt,
        action = row.action.as_str(),
        channel = %row.channel,
        key = row.key.as_ref().map(KeyId::name),
        outcome = row.outcome.as_str(),
        class = row.class.map(Class::name),
        fail_reason = row.fail_reason.as_deref(),
        status = row.status,
        phase = row.phase.as_str(),
        started_ms = millis(row.started.since(record.started)),
        waited_ms = millis(row.waited),
        total_ms = millis(row.total),
        "attempt ended"
    );
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl Drop for Journal {
    /// The caller left: the same settlement as at every other ending.
    fn drop(&mut self) {
        if self.in_flight.is_none() {
            return;
        }
        let now = self.gateway.clock.now();
        self.journey.on(now, Event::CallerGone);
        while let Some(action) = self.journey.poll(now) {
            match action {
                Action::Settle { outcome, key } => self.settle(now, outcome, key),
                Action::Log(sentence) => self.say(&sentence),
                Action::RefundBudget { channel } => {
                    self.gateway.refund_budget(&channel);
                }
                Action::Finish(ending) => self.close(now, &ending, None),
                _ => {}
            }
        }
    }
}

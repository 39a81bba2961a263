//! Plays a scenario from its first request to the last socket's end, and keeps what there was to
//! see.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use backstop_faultsim::Attempt;
use backstop_ledger::JourneyRecord;
use backstop_policy::AttemptRow;
use backstop_state::ChannelView;
use backstop_units::Moment;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use super::caller::{self, Heard};
use super::data::Scenario;
use super::metrics::Numbers;
use super::stage::Stage;

/// How often the gateway's state is looked at.
const GLANCE: Duration = Duration::from_millis(10);

/// How long sockets may take to close once all is over.
const GRACE: Duration = Duration::from_millis(400);

/// Everything there was to see.
pub(crate) struct Played {
    pub(crate) stage: Arc<Stage>,
    /// Each request and its record, in order of the sequence.
    pub(crate) requests: Vec<(Heard, Option<JourneyRecord>)>,
    /// The state at one moment after the other.
    pub(crate) glances: Vec<Glance>,
    /// The state when the last request had ended.
    pub(crate) end: Glance,
    pub(crate) before: Numbers,
    pub(crate) after: Numbers,
    pub(crate) log: String,
}

/// The gateway's state at one moment.
#[derive(Debug, Clone)]
pub(crate) struct Glance {
    /// Since the start.
    pub(crate) at: Moment,
    pub(crate) channels: Vec<ChannelView>,
    /// The names of the keys that are held out.
    pub(crate) held: Vec<String>,
    pub(crate) in_flight: f64,
    /// Bytes of request bodies in memory.
    pub(crate) buffered: u64,
}

impl Glance {
    fn at(stage: &Stage) -> Self {
        let at = Moment::from_elapsed(stage.start.elapsed());
        let held = stage.state.held_keys(at);
        Self {
            at,
            channels: stage.state.channels(at),
            held: held.iter().map(|row| row.key.name().to_owned()).collect(),
            in_flight: Numbers::of(&stage.metrics).gauge("backstop_requests_in_flight"),
            buffered: stage.gateway.buffered_bytes().0,
        }
    }

    pub(crate) fn millis(&self) -> u128 {
        self.at.elapsed().as_millis()
    }
}

impl Played {
    /// Since the start.
    pub(crate) fn millis(&self, at: Instant) -> u128 {
        at.saturating_duration_since(self.stage.start).as_millis()
    }

    /// The requests at a place of the sequence, from 1.
    pub(crate) fn at_place(
        &self,
        place: usize,
    ) -> impl Iterator<Item = &(Heard, Option<JourneyRecord>)> {
        self.requests
            .iter()
            .filter(move |(heard, _)| heard.place == place)
    }

    /// The rows of all attempts, by request.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &AttemptRow> {
        let records = self
            .requests
            .iter()
            .filter_map(|(_, record)| record.as_ref());
        records
            .flat_map(|record| &record.rows)
            .filter(|row| row.attempt.is_some())
    }

    /// What every provider saw, with the provider's name.
    pub(crate) fn calls(&self) -> Vec<(String, Attempt)> {
        let mut calls: Vec<(String, Attempt)> = self
            .stage
            .sims
            .iter()
            .flat_map(|(name, sim)| {
                let attempts = sim.attempts().into_iter();
                attempts.map(|attempt| (name.clone(), attempt))
            })
            .collect();
        calls.sort_by_key(|(_, attempt)| attempt.arrived());
        calls
    }

    /// What every provider saw of one request.
    pub(crate) fn calls_of(&self, heard: &Heard) -> Vec<(String, Attempt)> {
        let mut calls = self.calls();
        calls.retain(|(_, call)| call.header("x-request-id") == Some(heard.id.as_str()));
        calls
    }

    /// What one provider saw.
    pub(crate) fn calls_to(&self, upstream: &str) -> Vec<Attempt> {
        self.stage
            .sim(upstream)
            .map_or_else(Vec::new, |sim| sim.attempts())
    }
}

/// Plays it.
pub(crate) async fn play(scenario: &Scenario) -> Result<Played, String> {
    let (stage, log) = Stage::open(scenario).await?;
    let before = Numbers::of(&stage.metrics);
    let glances = Mutex::new(Vec::new());
    let note = |glance| {
        let mut glances = glances.lock().unwrap_or_else(PoisonError::into_inner);
        glances.push(glance);
    };
    let look = async {
        loop {
            note(Glance::at(&stage));
            sleep(GLANCE).await;
        }
    };
    let acts = acts(&stage, scenario);
    let requests = tokio::select! {
        biased;
        requests = acts => requests?,
        () = look => Vec::new(),
    };
    let mut told = Vec::new();
    for heard in requests {
        let record = record(&stage, &heard.id).await;
        told.push((heard, record));
    }
    let end = Glance::at(&stage);
    sleep(GRACE).await;
    let played = Played {
        requests: told,
        glances: glances.into_inner().unwrap_or_else(PoisonError::into_inner),
        end,
        before,
        after: Numbers::of(&stage.metrics),
        log: stage.page.text(),
        stage,
    };
    drop(log);
    Ok(played)
}

/// The callers and the operator, each at its time.
async fn acts(stage: &Arc<Stage>, scenario: &Scenario) -> Result<Vec<Heard>, String> {
    let scenario = Arc::new(scenario.clone());
    let mut operator = JoinSet::new();
    for (action, reload) in scenario.gateway.actions.iter().enumerate() {
        let at = stage.start + Duration::from_millis(reload.at_ms);
        let stage = Arc::clone(stage);
        operator.spawn(async move {
            sleep_until(at).await;
            stage.reload(action);
        });
    }
    let mut callers = JoinSet::new();
    let mut before: Option<watch::Receiver<bool>> = None;
    for (index, ask) in scenario.client.0.iter().enumerate() {
        let (done, ended) = watch::channel(false);
        let (stage, scenario) = (Arc::clone(stage), Arc::clone(&scenario));
        let previous = before.replace(ended);
        let (at, repeat) = (ask.at_ms, ask.repeat);
        let gap = Duration::from_millis(ask.gap_ms);
        callers.spawn(async move {
            match (at, previous) {
                (Some(at), _) => sleep_until(stage.start + Duration::from_millis(at)).await,
                (None, Some(mut previous)) => {
                    let _ = previous.wait_for(|ended| *ended).await;
                }
                (None, None) => {}
            }
            let mut heard = Vec::new();
            for nth in 1..=repeat {
                if nth > 1 {
                    sleep(gap).await;
                }
                heard.push(caller::ask(&stage, &scenario, index + 1, nth).await);
            }
            done.send_replace(true);
            heard
        });
    }
    let mut all = Vec::new();
    while let Some(heard) = callers.join_next().await {
        all.extend(heard.map_err(|panic| panic.to_string())?);
    }
    let mut all = all.into_iter().collect::<Result<Vec<Heard>, String>>()?;
    all.sort_by_key(|heard| (heard.place, heard.nth));
    operator.shutdown().await;
    Ok(all)
}

/// The record of a request that has ended or is about to.
async fn record(stage: &Stage, id: &str) -> Option<JourneyRecord> {
    for _ in 0..2_000 {
        if let Some(record) = stage.gateway.ledger().find(id) {
            return Some(record);
        }
        sleep(Duration::from_millis(1)).await;
    }
    None
}

//! What all requests share, and the one handle that swaps the configuration.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use backstop_breaker as breaker;
use backstop_config::{Snapshot, diff};
use backstop_dialects::{Dialect, Operation};
use backstop_ledger::Ledger;
use backstop_policy::Channel;
use backstop_state::State;
use backstop_telemetry::{BreakerState, Configured, LedgerFacts, Metrics, RequestEnd};
use backstop_units::{ByteCount, ChannelId, KeyId, ModelName, Moment, ProviderId, RouteName};
use backstop_upstream::{Tokens, Upstream};

use crate::clock::{Chance, Clock};
use crate::hook::Hook;
use crate::intake::Buffered;

/// The parts a gateway is made of.
#[derive(Debug)]
pub struct Parts {
    /// The first configuration.
    pub snapshot: Arc<Snapshot>,
    /// Breakers, holds and budgets; outlive every configuration.
    pub state: Arc<State>,
    /// The client to the providers.
    pub upstream: Upstream,
    /// Numbers for operators.
    pub metrics: Arc<Metrics>,
    /// Finished journeys.
    pub ledger: Ledger,
    /// The process's clock.
    pub clock: Clock,
    /// Where rolls come from.
    pub chance: Chance,
    /// Who has a say in every journey, in the order in which they are asked. Without any, none is
    /// asked and nothing is spent on it.
    pub hooks: Vec<Arc<dyn Hook>>,
}

/// What all requests share.
#[derive(Debug)]
pub struct Gateway {
    snapshot: ArcSwap<Snapshot>,
    pub(crate) state: Arc<State>,
    pub(crate) upstream: Arc<Upstream>,
    pub(crate) tokens: Tokens,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) ledger: Ledger,
    pub(crate) clock: Clock,
    pub(crate) chance: Chance,
    pub(crate) hooks: Vec<Arc<dyn Hook>>,
    pub(crate) buffered: Arc<Buffered>,
    draining: AtomicBool,
}

/// The right to change the configuration. There is one; requests never see it.
#[derive(Debug)]
pub struct Reloader(Arc<Gateway>);

impl Gateway {
    /// A gateway that runs `parts`, and the handle that may change its configuration.
    #[must_use]
    pub fn new(parts: Parts) -> (Arc<Self>, Reloader) {
        let upstream = Arc::new(parts.upstream);
        let gateway = Arc::new(Self {
            snapshot: ArcSwap::new(Arc::clone(&parts.snapshot)),
            state: parts.state,
            tokens: Tokens::new(Arc::clone(&upstream)),
            upstream,
            metrics: parts.metrics,
            ledger: parts.ledger,
            clock: parts.clock,
            chance: parts.chance,
            hooks: parts.hooks,
            buffered: Arc::default(),
            draining: AtomicBool::new(false),
        });
        let reloader = Reloader(Arc::clone(&gateway));
        reloader.settle(&parts.snapshot);
        (gateway, reloader)
    }

    /// The configuration in force. A request takes it once and keeps it to its end.
    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    /// Gives back a draw on a channel's share of retries that bought nothing.
    pub(crate) fn refund_budget(&self, channel: &Channel) {
        if let Some(cell) = self.state.peek(&channel.id) {
            cell.budget_refund();
        }
    }

    /// Counts a request that was turned away before its journey.
    pub(crate) fn count_refused(&self, dialect: Dialect, operation: Operation, accepted: Moment) {
        self.metrics.request_ended(&RequestEnd {
            route: "",
            dialect: dialect.as_str(),
            operation: operation.as_str(),
            outcome: "bad_request",
            attempts: 0,
            duration: self.clock.now().since(accepted),
            first_output: None,
        });
    }

    /// Brings the gauges up to date, for a scrape.
    pub(crate) fn observe(&self) {
        let now = self.clock.now();
        self.metrics.buffered(self.buffered_bytes());
        for view in self.state.channels(now) {
            let state = match view.breaker {
                breaker::State::Closed => BreakerState::Closed,
                breaker::State::HalfOpen { .. } => BreakerState::HalfOpen,
                breaker::State::Open { .. } => BreakerState::Open,
            };
            self.metrics.breaker_state(view.id.as_str(), state);
            self.metrics
                .retry_budget_left(view.id.as_str(), view.retries_left);
        }
        let held = self.state.held_keys(now);
        self.metrics.keys_held(held.iter().map(|row| {
            let model = row.model.as_ref().map(ModelName::as_str);
            (row.key.provider(), row.key.name(), model)
        }));
        self.metrics
            .ledger_journeys(self.ledger.written(), self.ledger.len() as u64);
        if let Some(facts) = self.ledger.facts() {
            self.metrics.ledger(&LedgerFacts {
                written: facts.written,
                dropped: facts.dropped,
                indexed: facts.indexed,
                lag: ByteCount(facts.lag_bytes),
                size: ByteCount(facts.size_bytes),
                failing: facts.failing,
            });
        }
    }

    /// Finished journeys.
    #[must_use]
    pub const fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Request bodies in memory now, all together.
    #[must_use]
    pub fn buffered_bytes(&self) -> ByteCount {
        self.buffered.held()
    }

    /// From now on the gateway tells load balancers to stay away.
    pub fn begin_drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }
}

impl Reloader {
    /// Puts a checked configuration in force. Requests in flight keep theirs. A key that has
    /// another value under the same name starts with a clean sheet.
    pub fn swap(&self, snapshot: &Arc<Snapshot>) {
        let changes = diff(&self.0.snapshot(), snapshot);
        self.0.state.forget_keys(&changes.keys.changed);
        self.0.snapshot.store(Arc::clone(snapshot));
        self.settle(snapshot);
    }

    /// The file was read again and says what it said.
    pub fn unchanged(&self) {
        self.0.metrics.config_taken(self.0.snapshot().version);
    }

    /// A configuration was refused; the one in force stays.
    pub fn refused(&self) {
        self.0.metrics.config_refused();
    }

    /// The configuration in force.
    #[must_use]
    pub fn current(&self) -> Arc<Snapshot> {
        self.0.snapshot()
    }

    /// Live state and metrics follow the ids of the configuration.
    fn settle(&self, snapshot: &Snapshot) {
        let gateway = &self.0;
        let channels: HashSet<ChannelId> = snapshot.channel_ids().cloned().collect();
        let keys: HashSet<KeyId> = snapshot
            .providers
            .values()
            .flat_map(|provider| provider.keys().map(|(key, _)| key.clone()))
            .collect();
        gateway.state.retain(&channels, &keys);
        gateway.tokens.retain(&keys);
        let sessions = snapshot.session.capacity;
        gateway.state.set_session_capacity(sessions);
        let routes = snapshot.routes.keys().cloned().collect();
        gateway.state.retain_routes(&routes);
        let callers = snapshot.callers.callers().iter();
        let callers = callers.map(|caller| caller.name.clone()).collect();
        gateway.state.retain_callers(&callers);
        let kept = snapshot.limits.kept_responses;
        gateway.state.set_kept_capacity(kept);
        let channels: Vec<_> = snapshot
            .channels()
            .map(|channel| backstop_telemetry::Channel {
                id: channel.id.as_str(),
                provider: channel.provider.as_str(),
                model: channel.model.as_str(),
            })
            .collect();
        let routes: Vec<&str> = snapshot.routes.keys().map(RouteName::as_str).collect();
        let providers: Vec<&str> = snapshot.providers.keys().map(ProviderId::as_str).collect();
        gateway.metrics.configure(&Configured {
            routes: &routes,
            providers: &providers,
            channels: &channels,
        });
        gateway.metrics.config_taken(snapshot.version);
    }
}

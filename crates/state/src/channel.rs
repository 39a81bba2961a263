//! One channel's live state, and the permits and retries that always come back.

use std::time::Duration;

use backstop_backoff::{BudgetParams, RetryBudget};
use backstop_breaker::{Breaker, Outcome, Params, Permit, Refused, State, Transition};
use backstop_policy::{Load, PeakEwma};
use backstop_units::{ChannelId, Moment};

use crate::channels::Minted;
use crate::sync::{Arc, AtomicU32, AtomicU64, Mutex, Ordering, lock};

/// The settings of one channel's live state.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ChannelParams {
    /// Which configuration these are from: the higher one wins. A reload must raise it.
    pub version: u64,
    /// When its breaker opens.
    pub breaker: Params,
    /// What it can bear in retries.
    pub budget: BudgetParams,
}

/// What is remembered about one channel: breaker, retry budget, counters, attempts in flight, waits.
#[derive(Debug)]
pub struct ChannelCell {
    id: ChannelId,
    version: AtomicU64,
    in_flight: AtomicU32,
    /// When it was last looked up, in the order of look-ups; for those that callers minted.
    pub(crate) used: AtomicU64,
    live: Mutex<Live>,
}

#[derive(Debug)]
struct Live {
    breaker: Breaker,
    budget: RetryBudget,
    waits: Waits,
    counts: Counts,
}

/// What an answer's first sign of life is: the two are never averaged together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answering {
    /// A stream: its first output.
    Streamed,
    /// A whole answer: its headers, which come when it is ready.
    Whole,
}

/// How long the channel's callers waited lately, by what they waited for.
#[derive(Debug, Default)]
struct Waits {
    streamed: PeakEwma,
    whole: PeakEwma,
}

/// What happened on a channel since it was minted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Requests that had this channel in their plan and came to it.
    pub requests: u64,
    /// Permits granted, probes and forced ones included.
    pub permits: u64,
    /// Of those, probes of a half-open breaker.
    pub probes: u64,
    /// Of those, forced past a breaker that refused.
    pub forced: u64,
    /// Permits refused.
    pub refused: u64,
    /// Times the breaker opened, again after a failed probe included.
    pub opened: u64,
    /// Times it closed.
    pub closed: u64,
    /// Retries the budget granted, less those handed back.
    pub retries: u64,
    /// Retries the budget denied.
    pub retries_denied: u64,
}

/// One channel at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct ChannelView {
    /// Which one.
    pub id: ChannelId,
    /// Who named it. Names that callers type are no metric labels.
    pub minted: Minted,
    /// What its breaker does.
    pub breaker: State,
    /// Attempts that are out.
    pub in_flight: u32,
    /// Retries it could bear, fractions included.
    pub retries_left: f64,
    /// What happened on it.
    pub counts: Counts,
}

/// Leave for one attempt on a channel. Dropped without a word, it counts for nothing and frees what
/// it took: the caller left.
#[derive(Debug)]
#[must_use = "dropping a permit gives it back at once"]
pub struct PermitGuard {
    cell: Arc<ChannelCell>,
    permit: Option<Permit>,
    probe: bool,
    forced: bool,
}

/// One retry out of a channel's budget. Dropped before it is started, it goes back: the caller left
/// during the wait.
#[derive(Debug)]
#[must_use = "dropping a retry hands it back at once"]
pub struct RetryGuard {
    cell: Arc<ChannelCell>,
    started: bool,
}

impl ChannelCell {
    pub(crate) fn new(id: ChannelId, params: &ChannelParams) -> Arc<Self> {
        Arc::new(Self {
            id,
            version: AtomicU64::new(params.version),
            in_flight: AtomicU32::new(0),
            used: AtomicU64::new(0),
            live: Mutex::new(Live {
                breaker: Breaker::new(params.breaker),
                // It starts full, so the moment it starts at is worth nothing.
                budget: RetryBudget::new(params.budget, Moment::START),
                waits: Waits::default(),
                counts: Counts::default(),
            }),
        })
    }

    /// Which channel this is.
    #[must_use]
    pub const fn id(&self) -> &ChannelId {
        &self.id
    }

    /// A request came to this channel: once a request, before its first attempt here.
    pub fn on_request(&self, now: Moment) {
        let mut live = lock(&self.live);
        live.counts.requests += 1;
        live.budget.on_request(now);
    }

    /// Asks the breaker's leave for one attempt.
    ///
    /// # Errors
    /// When the breaker is open, or half-open with its probe out.
    pub fn permit(self: &Arc<Self>, now: Moment) -> Result<PermitGuard, Refused> {
        let mut live = lock(&self.live);
        match live.breaker.permit(now) {
            Ok(permit) => Ok(self.hand_out(&mut live, permit)),
            Err(refused) => {
                live.counts.refused += 1;
                Err(refused)
            }
        }
    }

    /// Takes leave for one attempt whatever the breaker says: nothing else is eligible.
    pub fn force(self: &Arc<Self>, now: Moment) -> PermitGuard {
        let mut live = lock(&self.live);
        let permit = live.breaker.force(now);
        self.hand_out(&mut live, permit)
    }

    /// Takes one retry from the channel's budget, if there is one, for a wait that may be cut short.
    pub fn retry(self: &Arc<Self>, now: Moment) -> Option<RetryGuard> {
        self.budget_spend(now).then(|| RetryGuard {
            cell: Arc::clone(self),
            started: false,
        })
    }

    /// Takes one retry from the channel's budget, if there is one. Nothing hands it back but
    /// [`Self::budget_refund`].
    #[must_use = "a retry without budget must not be made"]
    pub fn budget_spend(&self, now: Moment) -> bool {
        let mut live = lock(&self.live);
        let granted = live.budget.try_spend(now);
        if granted {
            live.counts.retries += 1;
        } else {
            live.counts.retries_denied += 1;
        }
        granted
    }

    /// Hands back a retry that was granted and never started.
    pub fn budget_refund(&self) {
        let mut live = lock(&self.live);
        live.budget.refund();
        live.counts.retries = live.counts.retries.saturating_sub(1);
    }

    /// What the breaker does at `now`.
    #[must_use]
    pub fn breaker_state(&self, now: Moment) -> State {
        lock(&self.live).breaker.state(now)
    }

    /// Attempts that are out now.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// What is going on here, for a request that waits for `answering`.
    #[must_use]
    pub fn load(&self, now: Moment, answering: Answering) -> Load {
        let in_flight = self.in_flight();
        let waits = &lock(&self.live).waits;
        let waits = match answering {
            Answering::Streamed => &waits.streamed,
            Answering::Whole => &waits.whole,
        };
        Load {
            in_flight,
            latency: waits.estimate(now, in_flight),
        }
    }

    /// Takes on settings of a newer configuration. Costs one load when they are not newer.
    pub(crate) fn update(&self, params: &ChannelParams) {
        if params.version <= self.version.load(Ordering::Acquire) {
            return;
        }
        let mut live = lock(&self.live);
        // Under the lock, so that of two newcomers the newer one stays.
        if params.version > self.version.load(Ordering::Acquire) {
            live.breaker.set_params(params.breaker);
            // No clock here: time since the last booking is paid at the new rate.
            live.budget.set_params(params.budget, Moment::START);
            self.version.store(params.version, Ordering::Release);
        }
    }

    pub(crate) fn view(&self, minted: Minted, now: Moment) -> ChannelView {
        let live = lock(&self.live);
        ChannelView {
            id: self.id.clone(),
            minted,
            breaker: live.breaker.state(now),
            in_flight: self.in_flight(),
            retries_left: live.budget.balance(now),
            counts: live.counts,
        }
    }

    fn hand_out(self: &Arc<Self>, live: &mut Live, permit: Permit) -> PermitGuard {
        let (probe, forced) = (permit.is_probe(), permit.is_forced());
        live.counts.permits += 1;
        live.counts.probes += u64::from(probe);
        live.counts.forced += u64::from(forced);
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        PermitGuard {
            cell: Arc::clone(self),
            permit: Some(permit),
            probe,
            forced,
        }
    }
}

impl PermitGuard {
    /// Says how the attempt ended. Answers with the change this made to the breaker, for the log.
    pub fn settle(self, now: Moment, outcome: Outcome) -> Option<Transition> {
        self.end(now, outcome, None)
    }

    /// The same, and how long the caller waited for the first sign of an answer of that kind, or
    /// for the failure. A failure counts against both kinds, one that says nothing about the
    /// channel against none.
    pub fn settle_timed(
        self,
        now: Moment,
        outcome: Outcome,
        answering: Answering,
        waited: Duration,
    ) -> Option<Transition> {
        self.end(now, outcome, Some((answering, waited)))
    }

    fn end(
        mut self,
        now: Moment,
        outcome: Outcome,
        waited: Option<(Answering, Duration)>,
    ) -> Option<Transition> {
        let permit = self.permit.take()?;
        let mut live = lock(&self.cell.live);
        if let Some((answering, waited)) = waited {
            live.waits.note(now, outcome, answering, waited);
        }
        let change = live.breaker.settle(now, permit, outcome);
        match change {
            Some(Transition::Opened { .. }) => live.counts.opened += 1,
            Some(Transition::Closed) => live.counts.closed += 1,
            None => {}
        }
        change
    }

    /// The channel it is for.
    #[must_use]
    pub fn channel(&self) -> &ChannelCell {
        &self.cell
    }

    /// Whether the attempt is the one probe of a half-open breaker.
    #[must_use]
    pub const fn is_probe(&self) -> bool {
        self.probe
    }

    /// Whether the breaker had refused it.
    #[must_use]
    pub const fn is_forced(&self) -> bool {
        self.forced
    }
}

impl Waits {
    fn note(&mut self, now: Moment, outcome: Outcome, answering: Answering, waited: Duration) {
        match (outcome, answering) {
            (Outcome::Success, Answering::Streamed) => self.streamed.on_success(now, waited),
            (Outcome::Success, Answering::Whole) => self.whole.on_success(now, waited),
            (Outcome::Failure | Outcome::RateLimited, _) => {
                self.streamed.on_failure(now, waited);
                self.whole.on_failure(now, waited);
            }
            (Outcome::Ignored, _) => {}
        }
    }
}

impl Drop for PermitGuard {
    fn drop(&mut self) {
        if let Some(permit) = self.permit.take() {
            lock(&self.cell.live).breaker.release(permit);
        }
        self.cell.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

impl RetryGuard {
    /// The attempt starts: the retry is spent.
    pub fn start(mut self) {
        self.started = true;
    }
}

impl Drop for RetryGuard {
    fn drop(&mut self) {
        if !self.started {
            self.cell.budget_refund();
        }
    }
}

//! The journey machine: events in, actions out, and the order of decisions written once.
//!
//! A journey walks the candidates of a plan. On each it asks the breaker for a permit, the pool for
//! a key, sends, and takes what comes. After a failure the four gates decide, in this order: what
//! the class permits on this channel (another key, a wait, nothing), then whether another channel
//! may follow. Every ending passes through [`Journey::finish`].
//!
//! The machine holds no clock, socket, lock or chance. Its driver does what [`Journey::poll`] says
//! and reports what happened to [`Journey::on`]. After output has been committed the state is
//! another variant, from which no path leads back to sending.

mod action;
mod after;
mod attempt;
mod ending;
mod event;
mod evidence;
mod hooks;
mod leg;
mod onward;
mod renewal;
mod start;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use backstop_classifier::{Class, Verdict};
use backstop_keypool::Walk;
use backstop_units::{KeyId, Moment};

pub use action::{Action, Cause, Ending, FinalError, KeyFate};
pub use event::Event;
use evidence::Evidence;
use hooks::Paused;
use leg::{LegRun, Tie};
use onward::Past;
use renewal::Renewal;

use crate::decision::Repeat;
use crate::gates::{Sends, Shut, budget_gate};
use crate::plan::{Candidate, Leg, Plan};
use crate::route::{Channel, RouteLimits};
use crate::sentence::{Category, Sentence};
use crate::session::{OnRefusal, Session};
use crate::trail::{AttemptAction, AttemptRow, Phase};

/// What one request brings to its journey besides the plan.
#[derive(Debug, Clone)]
pub struct Terms {
    /// The bounds of the route.
    pub limits: RouteLimits,
    /// When the whole journey ends, whatever happens.
    pub deadline: Moment,
    /// The caller's read timeout: when the commit point must be reached.
    pub patience: Option<Moment>,
    /// Whether the answer is streamed.
    pub streaming: bool,
    /// Whether the request may be sent again when its outcome is unknown.
    pub replay_safe: bool,
    /// The key the caller holds the request to, by name.
    pub pin: Option<String>,
    /// The session it belongs to. A pin outranks it.
    pub session: Option<Session>,
}

/// One caller request from its plan to its terminal reason.
#[derive(Debug)]
pub struct Journey {
    plan: Plan,
    terms: Terms,
    state: State,
    at: usize,
    leg: LegRun,
    sends: Sends,
    /// The failures that ended earlier stays.
    past: Vec<Past>,
    /// Providers' own failures so far, and where they were met.
    evidence: Evidence,
    /// The error of the first stay that has one.
    error: Option<FinalError>,
    /// Candidates that a stay was begun on, by place.
    entered: Vec<bool>,
    /// Groups whose limit this journey was counted in, by place.
    counted: Vec<usize>,
    /// Whether the chain behind the first candidate was entered.
    moved: bool,
    /// How many of the caller's fallbacks without a provider the routing log has named.
    missing_said: usize,
    skips: Vec<Skip>,
    /// The class that the latest channel passed over or stopped stands for.
    like: Option<Class>,
    /// The keys whose token was renewed once.
    renewed: Vec<KeyId>,
    /// Whether there are hooks to ask.
    hooked: bool,
    /// The hook that answered.
    answered_by: Option<String>,
    /// A channel is tried against what speaks against it, since nothing else can be.
    forced: Option<Force>,
    trail: Vec<AttemptRow>,
    actions: VecDeque<Action>,
}

/// Where the journey stands.
#[derive(Debug)]
enum State {
    /// Not begun.
    Ready,
    /// The hooks were asked.
    AskedHook(Paused),
    /// The breaker was asked.
    AskedPermit(Start),
    /// The pool was asked.
    AskedLease(Start),
    /// The channel's share of retries was asked.
    AskedBudget(Repeat),
    /// It was asked for a send in place of one whose connection was stale.
    AskedResend(Verdict),
    /// A refused token is being renewed.
    AskedRenew(Renewal),
    /// Waiting before a retry, holding nothing.
    Waiting { until: Moment, start: Start },
    /// An attempt is under way; nothing of it has reached the caller.
    Attempting(Attempt),
    /// Output has reached the caller. No further attempt can follow from here.
    Committed(Attempt),
    /// Over.
    Over,
}

/// How the next attempt will come about.
#[derive(Debug, Clone, Default)]
struct Start {
    action: AttemptAction,
    /// The first of this journey on the channel.
    first: bool,
    same_key: Option<KeyId>,
    waited: Duration,
    /// A draw on the retry budget that is given back if nothing is sent.
    paid: bool,
    /// With a held key: no other is left, and no other channel may follow.
    held: bool,
    /// On a new connection: the pooled one was stale.
    fresh: bool,
    /// The failure it follows on the same channel, for the routing log.
    after: Option<Category>,
}

/// An attempt under way; its row in the making.
#[derive(Debug)]
struct Attempt {
    row: usize,
    number: u32,
    paid: bool,
    /// Its key stands for short-lived tokens.
    renewable: bool,
}

/// A channel that was passed over.
#[derive(Debug, Clone, Copy)]
struct Skip {
    candidate: usize,
    until: Moment,
    reason: Force,
}

/// What speaks against a channel that might be tried all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Force {
    /// Its circuit is open.
    Open,
    /// Its keys are held out.
    Held,
    /// Its group is full: the one reason that is never set aside.
    Full,
}

impl Journey {
    /// A journey over `plan`. It begins with the first [`Journey::poll`].
    #[must_use]
    pub fn new(plan: Plan, terms: Terms) -> Self {
        Self {
            entered: vec![false; plan.candidates.len()],
            plan,
            terms,
            state: State::Ready,
            at: 0,
            leg: LegRun::default(),
            sends: Sends::default(),
            past: Vec::new(),
            evidence: Evidence::default(),
            error: None,
            counted: Vec::new(),
            moved: false,
            missing_said: 0,
            skips: Vec::new(),
            like: None,
            renewed: Vec::new(),
            hooked: false,
            answered_by: None,
            forced: None,
            trail: Vec::new(),
            actions: VecDeque::new(),
        }
    }

    /// The journey with hooks to ask about every channel. Without this no journey asks for any.
    #[must_use]
    pub const fn with_hooks(mut self) -> Self {
        self.hooked = true;
        self
    }

    /// The next thing to do; `None` while the journey waits for an event, or is over.
    pub fn poll(&mut self, now: Moment) -> Option<Action> {
        if matches!(self.state, State::Ready) {
            self.begin(now);
        }
        self.actions.pop_front()
    }

    /// Takes what happened. A permit, a lease or a draw on the budget is answered at once; one that
    /// was given and not reported when the caller leaves is the driver's to give back.
    pub fn on(&mut self, now: Moment, event: Event) {
        let state = std::mem::replace(&mut self.state, State::Over);
        match (state, event) {
            (State::Over, _) => {}
            (state, Event::CallerGone) => self.on_caller_gone(now, state),
            (State::AskedHook(paused), event) => self.on_hook(now, paused, event),
            (State::AskedPermit(start), Event::PermitGranted) => self.lease(start),
            (State::AskedPermit(start), Event::PermitRefused { until }) => {
                self.pass_over(now, &start, until, Force::Open);
            }
            (State::AskedPermit(start), Event::GroupFull { until }) => {
                self.on_group_full(now, &start, until);
            }
            (State::AskedLease(start), Event::Leased { key, renewable }) => {
                self.send(now, &start, key, renewable);
            }
            (State::AskedLease(start), Event::NoKey(no_key)) => {
                self.on_no_key(now, start, &no_key);
            }
            (State::AskedBudget(repeat), Event::BudgetGranted { roll, outlook }) => {
                self.retry_after_wait(now, repeat, roll, outlook);
            }
            (State::AskedBudget(_), Event::BudgetDenied) => self.leave_channel(now),
            (State::AskedResend(verdict), Event::BudgetGranted { .. }) => self.resend(&verdict),
            (State::AskedResend(verdict), Event::BudgetDenied) => {
                self.after_failure(now, &verdict);
            }
            (State::AskedRenew(renewal), event) => self.on_renewal(now, renewal, &event),
            (State::Waiting { until, start }, Event::Woke | Event::Time) => {
                self.on_wait(now, until, start);
            }
            (State::Attempting(attempt), event) => self.on_attempt(now, attempt, event),
            (State::Committed(attempt), event) => self.on_committed(now, attempt, &event),
            (state, _) => self.state = state,
        }
    }

    /// When the driver must look at the clock again.
    #[must_use]
    pub fn next_wake(&self) -> Option<Moment> {
        match &self.state {
            State::Over => None,
            State::Committed(_) => Some(self.terms.deadline),
            State::Attempting(attempt) => {
                let first_output = self.first_output_due(attempt);
                Some(first_output.map_or(self.end(), |due| due.min(self.end())))
            }
            State::Waiting { until, .. } => Some((*until).min(self.end())),
            _ => Some(self.end()),
        }
    }

    /// The key walk on the current channel, for whoever chooses the key.
    pub const fn walk_mut(&mut self) -> &mut Walk {
        &mut self.leg.walk
    }

    /// The rows so far, in order.
    #[must_use]
    pub fn trail(&self) -> &[AttemptRow] {
        &self.trail
    }

    /// Sends so far, over all channels and keys.
    #[must_use]
    pub const fn sends(&self) -> u32 {
        self.sends.total()
    }

    /// The candidate being tried.
    #[must_use]
    pub fn candidate(&self) -> Option<&Candidate> {
        self.plan.candidates.get(self.at)
    }

    /// What the answer under way came by, for the caller: retries on the first channel are
    /// `retry`, another channel is `fallback`, another model is `substitution`.
    #[must_use]
    pub fn served_by(&self) -> AttemptAction {
        match self.candidate() {
            Some(candidate) if candidate.is_substitution() => AttemptAction::Substitution,
            Some(_) if self.at > 0 => AttemptAction::Fallback,
            _ if self.sends.total() > 1 => AttemptAction::Retry,
            _ => AttemptAction::Direct,
        }
    }

    /// Whether output has reached the caller.
    #[must_use]
    pub const fn phase(&self) -> Phase {
        match self.state {
            State::Committed(_) => Phase::AfterOutput,
            _ => Phase::BeforeOutput,
        }
    }

    /// Whether an attempt is under way.
    #[must_use]
    pub const fn in_attempt(&self) -> bool {
        matches!(self.state, State::Attempting(_) | State::Committed(_))
    }

    /// Whether a token is being renewed.
    #[must_use]
    pub const fn in_renewal(&self) -> bool {
        matches!(self.state, State::AskedRenew(_))
    }

    /// Whether hooks are being asked.
    #[must_use]
    pub const fn in_hook(&self) -> bool {
        matches!(self.state, State::AskedHook(_))
    }

    /// The hook that answered in a channel's place, where one did.
    #[must_use]
    pub fn answered_by(&self) -> Option<&str> {
        self.answered_by.as_deref()
    }

    /// Whether the journey is over.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        matches!(self.state, State::Over)
    }

    /// When the journey ends if nothing more happens: the deadline, or before the commit point the
    /// caller's patience if that is shorter.
    #[must_use]
    pub fn end(&self) -> Moment {
        self.terms.patience.map_or(self.terms.deadline, |patience| {
            patience.min(self.terms.deadline)
        })
    }
}

/// Small questions.
impl Journey {
    fn gate(&self, now: Moment, candidate: usize) -> Result<(), Shut> {
        budget_gate(
            self.sends,
            self.is_primary(candidate),
            &self.terms.limits,
            self.end().since(now),
        )
    }

    fn is_primary(&self, candidate: usize) -> bool {
        self.plan.candidates[candidate].leg == Leg::Primary
    }

    fn channel(&self) -> Arc<Channel> {
        self.channel_of(self.at)
    }

    fn channel_of(&self, candidate: usize) -> Arc<Channel> {
        Arc::clone(&self.plan.candidates[candidate].channel)
    }

    /// What ties a stay on `candidate` to one key: the caller's pin, else its session.
    fn tie_for(&self, candidate: usize) -> Tie {
        let channel = &self.plan.candidates[candidate].channel;
        if let Some(name) = self.terms.pin.as_deref() {
            let key = KeyId::new(&channel.provider, name);
            return if channel.has_key(&key) {
                Tie::Held(key)
            } else {
                Tie::Free
            };
        }
        let session = self.terms.session.as_ref();
        let key = session.and_then(|session| Some((session.on_refusal, session.key_for(channel)?)));
        match key {
            Some((OnRefusal::Stay, key)) => Tie::Held(key.clone()),
            Some((OnRefusal::Move, key)) => Tie::Preferred(key.clone()),
            None => Tie::Free,
        }
    }

    /// When the first output of a stream is due; `None` once it has come, or for a whole answer.
    fn first_output_due(&self, attempt: &Attempt) -> Option<Moment> {
        let row = &self.trail[attempt.row];
        let waiting = self.terms.streaming && row.first_output.is_none();
        waiting.then(|| row.started + self.plan.candidates[self.at].channel.clocks.first_output)
    }

    fn say(&mut self, sentence: Sentence) {
        self.actions.push_back(Action::Log(sentence));
    }

    fn say_retry(&mut self, category: Category, key: Option<&KeyId>) {
        let channel = self.channel();
        let (n, to) = (self.leg.sends, channel.label());
        let of = channel.retry.max_retries + self.leg.granted;
        let sentence = match (key, &self.leg.last_key) {
            (None, _) => Sentence::RetryKeyless {
                n,
                of,
                to,
                category,
            },
            (Some(key), Some(last)) if key == last => {
                let key = key.name().to_owned();
                Sentence::RetrySameKey {
                    n,
                    of,
                    to,
                    category,
                    key,
                }
            }
            (Some(key), _) => {
                let key = key.name().to_owned();
                Sentence::RetryRotated {
                    n,
                    of,
                    to,
                    category,
                    key,
                }
            }
        };
        self.say(sentence);
    }
}

#[cfg(test)]
mod tests;

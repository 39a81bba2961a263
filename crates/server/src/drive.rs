//! Turns the crank of one journey: does what the machine says, and reports what happened.
//!
//! The journey, its guards and its upstream connection live in this one future. Dropping it is the
//! caller's hang-up, and ends all of them.

mod attempt;
mod carry;
mod hooks;
mod kept;
mod relay;
mod tally;
mod tokens;

use std::sync::Arc;

use backstop_classifier::Verdict;
use backstop_config::Snapshot;
use backstop_dialects::{Dialect, Envelope, Loss, Operation, WriteOptions, error_event};
use backstop_keypool::{Ask as KeyAsk, NoKey};
use backstop_policy::{Action, Channel, CommitChoice, Ending, Event, Lossy, Quota};
use backstop_providers::{Credential, Provider};
use backstop_state::{ChannelCell, ChannelParams, Minted};
use backstop_stream::{CommitRule, Framing, HoldLimits, Relay, Window};
use backstop_units::{KeyId, ModelName, Moment, Secret};
use backstop_upstream::Token;
use bytes::Bytes;
use http::{HeaderMap, Response};
use tokio::time::sleep_until;

use crate::answer::{self, Answered};
use crate::caller::OwnToken;
use crate::error::{Kept, Told};
use crate::intake::Share;
use crate::journal::Journal;
use crate::kept::Asking;
use crate::outlet::Outlet;
use crate::pulse::{self, Pulse};
use crate::scrub::Scrubber;
use crate::terms::Asked;

/// One caller request, ready to travel.
pub(crate) struct Request {
    pub(crate) snapshot: Arc<Snapshot>,
    pub(crate) dialect: Dialect,
    pub(crate) operation: Operation,
    pub(crate) envelope: Envelope,
    pub(crate) body: Bytes,
    /// The request's share of the process's memory, held to the end.
    pub(crate) _share: Share,
    pub(crate) headers: HeaderMap,
    /// The caller's own token, for a provider that takes those.
    pub(crate) own_token: Option<OwnToken>,
    pub(crate) asked: Asked,
    pub(crate) commit: CommitChoice,
    /// Why channels were left out of the plan, for the caller.
    pub(crate) excluded: String,
    pub(crate) lossy: Lossy,
    /// What is asked about an answer that a provider keeps, in place of a new one.
    pub(crate) asking: Option<Asking>,
}

impl Request {
    /// The dialect in which `provider` is spoken to about `model`: the caller's own where it speaks
    /// that.
    fn spoken_by(&self, provider: &Provider, model: &ModelName) -> Dialect {
        provider.dialect_for(self.dialect, model)
    }

    /// The caller's own token, where `provider` is one that is shown it.
    fn token_for(&self, provider: &Provider) -> Option<&OwnToken> {
        let own = self.own_token.as_ref();
        own.filter(|_| provider.takes_callers_own())
    }

    /// How the request is written in another dialect.
    fn write_options(&self, provider: &Provider) -> WriteOptions {
        let loss = match self.lossy {
            Lossy::Refuse => Loss::Refuse,
            Lossy::Drop => Loss::Drop,
        };
        WriteOptions {
            loss,
            legacy_max_tokens: provider.says_max_tokens(),
            ..WriteOptions::default()
        }
    }
}

/// A request on its journey.
pub(crate) struct Drive {
    request: Request,
    journal: Journal,
    outlet: Outlet,
    relay: Relay<Bytes>,
    kept: Vec<KeptError>,
    /// The token that the latest attempt presented, where its key stands for some.
    token: Option<Arc<Token>>,
    answered: Option<Answered>,
    /// Fields that this attempt's dialect could not carry and the route allows to drop.
    dropped: Vec<String>,
    /// Keeps a waiting caller's connection alive, until the commit point.
    pulse: Option<Pulse>,
    /// Whether the caller has a status.
    opened: bool,
}

/// A provider's error, kept until the ending knows whether to show it.
struct KeptError {
    attempt: u32,
    channel: Arc<Channel>,
    key: Option<KeyId>,
    /// The caller's own token, where that was shown.
    own: Option<Secret>,
    /// The token that was presented for it.
    token: Option<Arc<Token>>,
    body: Bytes,
    /// The error's `type`, where a header said it.
    name: Option<String>,
}

impl KeptError {
    /// Takes out of its words what must not leave.
    fn scrubber<'a>(&'a self, provider: &'a Provider) -> Scrubber<'a> {
        Scrubber {
            secrets: self
                .key
                .as_ref()
                .and_then(|key| provider.credential(key))
                .into_iter()
                .flat_map(Credential::secrets)
                .chain(&self.own)
                .chain(self.token.as_deref().map(Token::secret))
                .collect(),
            host: Some(provider.address().host()),
        }
    }
}

impl Drive {
    pub(crate) fn new(request: Request, journal: Journal, outlet: Outlet) -> Self {
        let rule = match request.commit {
            CommitChoice::FirstOutput => CommitRule::FirstOutput,
            CommitChoice::Window { wait, tokens } => {
                Window::new(wait, tokens).map_or(CommitRule::FirstOutput, CommitRule::Window)
            }
            CommitChoice::Complete => CommitRule::Complete,
        };
        let relay = Relay::new(rule, HoldLimits::default());
        let keepalive = request
            .snapshot
            .server
            .keepalive
            .filter(|_| request.envelope.stream && pulse::beat(request.dialect).is_some());
        let pulse = keepalive.map(|every| Pulse::new(every, journal.gateway.clock.now()));
        Self {
            request,
            journal,
            outlet,
            relay,
            kept: Vec::new(),
            token: None,
            answered: None,
            dropped: Vec::new(),
            pulse,
            opened: false,
        }
    }

    /// Runs the journey to its end. Answers with the whole response, or with nothing where the
    /// outlet was opened for a stream.
    pub(crate) async fn run(mut self) -> Option<Response<Bytes>> {
        loop {
            let now = self.now();
            let Some(action) = self.journal.journey.poll(now) else {
                // The machine waits for nothing that this driver does not report; a hole in that
                // is a bug of ours, and the caller must not wait for it.
                tracing::error!("a journey stopped without an ending");
                return Some(self.answer_stuck());
            };
            match action {
                Action::RunHook { stage, channel } => {
                    self.journal.pause();
                    self.run_hooks(stage, &channel).await;
                }
                Action::AskPermit {
                    channel,
                    force,
                    first,
                    quota,
                } => {
                    self.ask_permit(now, &channel, force, first, quota.as_ref());
                }
                Action::Lease {
                    channel,
                    same,
                    force,
                } => {
                    self.lease(now, &channel, same.as_ref(), force);
                }
                Action::SpendBudget { channel } => self.spend_budget(now, &channel),
                Action::RefundBudget { channel } => self.journal.gateway.refund_budget(&channel),
                Action::Wait { until } => {
                    self.journal.pause();
                    self.wait(until).await;
                }
                Action::Send {
                    attempt,
                    channel,
                    key,
                    action: _,
                    fresh,
                } => {
                    self.attempt(attempt, &channel, key, fresh).await;
                }
                Action::Renew { channel, key } => self.renew(&channel, &key).await,
                // The attempt's future has returned; what it held of the connection is gone.
                Action::Abort => {}
                Action::Settle { outcome, key } => self.journal.settle(now, outcome, key),
                Action::Log(sentence) => self.journal.say(&sentence),
                Action::Finish(ending) => return self.finish(&ending),
            }
        }
    }

    fn now(&self) -> Moment {
        self.journal.gateway.clock.now()
    }

    fn cell(&self, channel: &Channel) -> Arc<ChannelCell> {
        let snapshot = &self.request.snapshot;
        let params = ChannelParams {
            version: snapshot.version,
            breaker: channel.breaker,
            budget: channel.retry.budget,
        };
        let listed = snapshot.lists(&channel.id);
        let minted = if listed {
            Minted::ByConfig
        } else {
            Minted::ByCaller
        };
        self.journal
            .gateway
            .state
            .channel(&channel.id, &params, minted)
    }

    fn report(&mut self, event: Event) {
        let now = self.now();
        self.journal.journey.on(now, event);
    }

    fn ask_permit(
        &mut self,
        now: Moment,
        channel: &Channel,
        force: bool,
        first: bool,
        quota: Option<&Quota>,
    ) {
        let cell = self.cell(channel);
        if first {
            cell.on_request(now);
        }
        let answer = if force {
            Ok(cell.force(now))
        } else {
            cell.permit(now)
        };
        let event = match answer {
            Ok(permit) => {
                let state = &self.journal.gateway.state;
                match quota.map_or(Ok(()), |quota| state.admit_to_group(quota, now)) {
                    Ok(()) => {
                        self.journal.permit = Some(permit);
                        Event::PermitGranted
                    }
                    Err(until) => Event::GroupFull { until },
                }
            }
            Err(refused) => Event::PermitRefused {
                until: refused.until().unwrap_or(now),
            },
        };
        self.report(event);
    }

    fn lease(&mut self, now: Moment, channel: &Channel, same: Option<&KeyId>, force: bool) {
        let roll = self.journal.gateway.chance.roll();
        let gateway = Arc::clone(&self.journal.gateway);
        let ask = key_ask(channel, now);
        let state = &gateway.state;
        let leased = match same {
            Some(key) => Ok(state.lease_key(&ask, key)),
            None => match state.choose_key(self.journal.journey.walk_mut(), &ask, roll) {
                Err(NoKey::Held { least, .. }) if force => Ok(state.lease_key(&ask, &least)),
                chosen => chosen,
            },
        };
        let event = match leased {
            Ok(lease) => {
                let key = lease.key().cloned();
                self.journal.lease = Some(lease);
                let renewable = self.is_renewable(channel, key.as_ref());
                Event::Leased { key, renewable }
            }
            Err(no_key) => Event::NoKey(no_key),
        };
        self.report(event);
    }

    fn spend_budget(&mut self, now: Moment, channel: &Channel) {
        let gateway = Arc::clone(&self.journal.gateway);
        let event = if self.cell(channel).budget_spend(now) {
            let walk = self.journal.journey.walk_mut();
            let outlook = gateway.state.key_outlook(walk, &key_ask(channel, now));
            Event::BudgetGranted {
                roll: gateway.chance.roll(),
                outlook,
            }
        } else {
            Event::BudgetDenied
        };
        self.report(event);
    }

    /// Waits before a retry. Nothing is held but the request's own bytes.
    async fn wait(&mut self, until: Moment) {
        while let Some(wake) = self.journal.journey.next_wake() {
            self.sleep_until(wake).await;
            if self.now() >= until {
                return self.report(Event::Woke);
            }
            self.report(Event::Time);
        }
    }

    /// Waits for `work` as long as the machine lets the attempt live; `None` when its own clocks
    /// ended it.
    async fn within<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = std::pin::pin!(work);
        loop {
            let wake = self.journal.journey.next_wake()?;
            tokio::select! {
                biased;
                done = &mut work => return Some(done),
                () = self.sleep_until(wake) => {}
            }
            self.report(Event::Time);
            if !self.journal.journey.in_attempt() {
                return None;
            }
        }
    }

    /// Sleeps until `wake`, or until the caller's keepalive is due, whichever is first.
    async fn sleep_until(&mut self, wake: Moment) {
        let due = self
            .pulse
            .as_ref()
            .map_or(wake, |pulse| pulse.due().min(wake));
        sleep_until(self.journal.gateway.clock.instant(due)).await;
        let now = self.now();
        if self.pulse.as_mut().is_some_and(|pulse| pulse.beats(now)) {
            self.open_outlet();
            self.outlet
                .push(pulse::beat(self.request.dialect).unwrap_or_default());
        }
    }

    /// Gives the caller a status, once.
    fn open_outlet(&mut self) {
        if !self.opened {
            self.opened = true;
            self.outlet
                .open(answer::stream_head(&self.journal, self.request.dialect));
        }
    }

    /// Hands over a stream that was there from the start, as a hook's answer is.
    fn replay(&mut self, answered: Answered, now: Moment) {
        self.journal.first_output.get_or_insert(now);
        self.pulse = None;
        self.open_outlet();
        self.outlet.push(answered.body);
    }

    fn finish(&mut self, ending: &Ending) -> Option<Response<Bytes>> {
        let now = self.now();
        if self.request.dialect.framing(false) == Some(Framing::Events) {
            self.outlet.end_line();
        }
        let response = match ending {
            Ending::Success => match self.answered.take() {
                Some(answered) if self.request.envelope.stream => {
                    self.replay(answered, now);
                    None
                }
                Some(answered) => Some(answer::whole(&self.request, &self.journal, answered, now)),
                None => None,
            },
            Ending::Exhausted(error) | Ending::Deadline(error) | Ending::PolicyStop(error) => {
                let kept = self.kept_error(error.attempt);
                let caller = self.request.dialect;
                let told = Told::of_ending(error, kept.as_ref(), caller, &self.request.excluded);
                if self.opened {
                    // The status went out with a keepalive; what is left is an event.
                    let id = &self.journal.record.request_id;
                    let event = error_event(caller, &told.as_caller_error(id, None));
                    self.outlet.push(Bytes::from(event));
                    None
                } else {
                    Some(answer::failed(&self.request, &self.journal, &told, now))
                }
            }
            Ending::Partial(verdict) => {
                self.outlet.push(Bytes::from(self.error_event(verdict)));
                None
            }
            Ending::Cancelled => None,
        };
        let status = match (&response, ending) {
            (Some(response), _) => Some(response.status().as_u16()),
            (None, Ending::Cancelled) => None,
            (None, _) => Some(200),
        };
        self.journal.close(now, ending, status);
        response
    }

    /// The last event of a stream that broke after output.
    fn error_event(&self, verdict: &Verdict) -> Vec<u8> {
        let kept = self.kept_error(Some(self.journal.journey.sends()));
        let told = Told::of_provider(verdict, kept.as_ref(), self.request.dialect);
        let id = &self.journal.record.request_id;
        error_event(self.request.dialect, &told.as_caller_error(id, None))
    }

    fn kept_error(&self, attempt: Option<u32>) -> Option<Kept<'_>> {
        let kept = self
            .kept
            .iter()
            .rev()
            .find(|kept| Some(kept.attempt) == attempt)?;
        let provider = self
            .request
            .snapshot
            .providers
            .get(&kept.channel.provider)?;
        Some(Kept {
            dialect: self.request.spoken_by(provider, &kept.channel.model),
            body: &kept.body,
            name: kept.name.as_deref(),
            scrubber: kept.scrubber(provider),
        })
    }

    fn answer_stuck(&mut self) -> Response<Bytes> {
        let told = Told {
            status: 500,
            code: "internal_error".into(),
            message: "The gateway lost track of this request.".to_owned(),
            ..Told::default()
        };
        told.answer(self.request.dialect, &self.journal.record.request_id, None)
    }
}

/// What is asked of the key pool for one attempt.
fn key_ask(channel: &Channel, now: Moment) -> KeyAsk<'_> {
    KeyAsk {
        pool: &channel.pool,
        model: &channel.model,
        subset: channel.subset(),
        now,
    }
}

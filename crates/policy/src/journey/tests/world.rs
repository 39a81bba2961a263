//! The scripted world: providers, keys and circuits with a clock of their own, and the driver that
//! turns the crank.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use backstop_chat::Needs;
use backstop_classifier::Class;
use backstop_keypool::{Ask as KeyAsk, Holds, Lease, NoKey, Refusal};
use backstop_units::{ChannelId, GroupName, KeyId, ModelName, Moment, ProviderId, Roll, RouteName};

use super::super::{Action, Ending, Event, FinalError, Journey, KeyFate, Terms};
pub(super) use super::channels::channel;
use super::replies::{asked, describe, events, renewal, say};
use crate::choice::Load;
use crate::plan::{Ask, CallerFallback, Plan, single};
use crate::route::{Channel, CommitChoice, Lossy, Route, RouteLimits, Substitution};
use crate::session::{Binding, OnRefusal, Session};
use crate::trail::{AttemptRow, Outcome};

/// A row: a plan, what its providers do, and the bounds of the request.
pub(super) struct Case {
    pub(super) route: Route,
    pub(super) fallbacks: Vec<CallerFallback>,
    pub(super) terms: Terms,
    pub(super) world: World,
}

impl Case {
    pub(super) fn new(primary: Channel) -> Self {
        let limits = RouteLimits::default();
        Self {
            route: Route {
                name: RouteName::new("r"),
                groups: vec![single(GroupName::new("g0"), Arc::new(primary))],
                substitutions: Vec::new(),
                limits,
                commit: CommitChoice::FirstOutput,
                lossy: Lossy::Refuse,
            },
            fallbacks: Vec::new(),
            terms: Terms {
                limits,
                deadline: Moment::START + limits.deadline,
                patience: None,
                streaming: false,
                replay_safe: true,
                pin: None,
                session: None,
            },
            world: World::default(),
        }
    }

    /// A same-contract group behind the others.
    pub(super) fn then(mut self, channel: Channel) -> Self {
        let group = single(GroupName::new("g"), Arc::new(channel));
        self.route.groups.push(group);
        self
    }

    pub(super) fn substitute(mut self, channel: Channel, on: &[Class]) -> Self {
        self.route.substitutions.push(Substitution {
            channel: Arc::new(channel),
            on: on.to_vec(),
            on_content_policy: false,
        });
        self
    }

    pub(super) fn for_policy(mut self) -> Self {
        let last = self.route.substitutions.last_mut();
        last.expect("a substitution").on_content_policy = true;
        self
    }

    pub(super) fn caller(mut self, channel: Channel) -> Self {
        let named = CallerFallback::Channel(Arc::new(channel));
        self.fallbacks.push(named);
        self
    }

    pub(super) fn caller_missing(mut self, label: &str) -> Self {
        let missing = CallerFallback::MissingProvider(label.to_owned());
        self.fallbacks.push(missing);
        self
    }

    pub(super) fn limits(mut self, set: impl FnOnce(&mut RouteLimits)) -> Self {
        set(&mut self.terms.limits);
        self
    }

    pub(super) fn deadline(mut self, millis: u64) -> Self {
        self.terms.deadline = Moment::from_millis(millis);
        self
    }

    pub(super) fn terms(mut self, set: impl FnOnce(&mut Terms)) -> Self {
        set(&mut self.terms);
        self
    }

    pub(super) fn pin(mut self, key: &str) -> Self {
        self.terms.pin = Some(key.to_owned());
        self
    }

    /// The request belongs to a session that `provider:key` served before, each of them, the
    /// latest first.
    pub(super) fn session(mut self, on_refusal: OnRefusal, served: &str) -> Self {
        let bound = served.split_whitespace().map(|whom| {
            let (provider, key) = whom.split_once(':').expect("provider:key");
            let (provider, model) = (ProviderId::new(provider), ModelName::new("m"));
            Binding {
                channel: ChannelId::new(&provider, &model, &[]),
                key: (key != "-").then(|| KeyId::new(&provider, key)),
            }
        });
        self.terms.session = Some(Session {
            on_refusal,
            bound: bound.collect(),
        });
        self
    }

    /// What `provider:key` answers, attempt by attempt.
    pub(super) fn says(mut self, whom: &str, replies: &str) -> Self {
        let replies = replies.split_whitespace().map(str::to_owned).collect();
        self.world.replies.insert(whom.to_owned(), replies);
        self
    }

    /// The circuit of `provider` is open until then.
    pub(super) fn open(mut self, provider: &str, millis: u64) -> Self {
        let until = Moment::from_millis(millis);
        self.world.open.insert(provider.to_owned(), until);
        self
    }

    /// Another request was refused with `provider:key`.
    pub(super) fn held(mut self, whom: &str, refusal: Refusal, hint: u64) -> Self {
        let (provider, key) = whom.split_once(':').expect("provider:key");
        let (provider, model) = (ProviderId::new(provider), ModelName::new("m"));
        let holds = &mut self.world.holds;
        let lease = holds.lease(&KeyId::new(&provider, key), &model, Moment::START);
        let hint = Some(Duration::from_secs(hint));
        holds.refused(lease, refusal, hint, Moment::START);
        self
    }

    /// The channel of `provider` can bear so many retries.
    pub(super) fn bears(mut self, provider: &str, retries: u32) -> Self {
        self.world.budget.insert(provider.to_owned(), retries);
        self
    }

    /// What the hooks say at `before provider` or `after provider`; elsewhere they pass. Words:
    /// `pass`, `answer`, `halt<status>`, `next<status>`; `:class` for what it counts as, `+s` for a
    /// wait, `@ms` for the time it takes.
    pub(super) fn hook(mut self, when: &str, says: &str) -> Self {
        self.world.hooks.insert(when.to_owned(), says.to_owned());
        self
    }

    /// The keys of these providers stand for tokens, and what comes of renewing them, in order:
    /// `ok`, `denied` (the proof is refused), `down`; `@ms` for the time it takes.
    pub(super) fn renews(mut self, providers: &str, outcomes: &str) -> Self {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect();
        self.world.renewable = words(providers);
        self.world.renewals = words(outcomes).into();
        self
    }

    /// The caller hangs up then.
    pub(super) fn leaves(mut self, millis: u64) -> Self {
        self.world.leaves = Some(Moment::from_millis(millis));
        self
    }

    pub(super) fn plan(&self) -> Plan {
        Plan::new(
            &self.route,
            &Ask {
                needs: &Needs::default(),
                fallbacks: self.fallbacks.clone(),
                roll: Roll::LOWEST,
                carries: &|channel: &Channel| channel.contract,
                barred: &|_| None,
                load: &|_| Load::default(),
                session: &[],
            },
        )
    }

    /// Plays the row.
    pub(super) fn play(self) -> Played {
        let mut journey = Journey::new(self.plan(), self.terms);
        let mut world = self.world;
        if !world.hooks.is_empty() {
            journey = journey.with_hooks();
        }
        world.drive(&mut journey);
        Played {
            ending: world.ending.take().expect("every journey ends"),
            rows: journey.trail().to_vec(),
            world,
        }
    }

    /// Plays the row and compares the transcript, line by line: sends as `ms provider:key action`,
    /// the sentences of the routing log, the ending.
    #[track_caller]
    pub(super) fn gives(self, transcript: &str) -> Played {
        let played = self.play();
        let want: Vec<&str> = transcript
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .collect();
        assert_eq!(
            played.world.said.join("\n"),
            want.join("\n"),
            "\n{:#?}",
            played.rows
        );
        played.settles();
        played
    }
}

/// A journey that is over.
pub(super) struct Played {
    pub(super) ending: Ending,
    pub(super) rows: Vec<AttemptRow>,
    pub(super) world: World,
}

impl Played {
    /// What holds for every journey, whatever happened.
    #[track_caller]
    pub(super) fn settles(&self) {
        let world = &self.world;
        assert_eq!(world.settled, world.permits, "every permit is settled once");
        assert_eq!(
            world.paid, 0,
            "every draw on the budget is used or given back"
        );
        let numbered = self.rows.iter().filter_map(|row| row.attempt);
        assert!(numbered.eq(1..=world.sends), "attempt numbers are dense");
        let sent = self.rows.iter().filter(|row| row.attempt.is_some());
        let sent = sent.map(|row| (row.channel.clone(), row.key.clone()));
        assert!(
            sent.eq(world.sent.iter().cloned()),
            "trail order is send order"
        );
    }

    #[track_caller]
    pub(super) fn row(&self, place: usize, check: impl FnOnce(&AttemptRow)) -> &Self {
        check(&self.rows[place]);
        self
    }

    pub(super) fn error(&self) -> &FinalError {
        match &self.ending {
            Ending::Exhausted(error) | Ending::Deadline(error) | Ending::PolicyStop(error) => error,
            other => panic!("no error in {other:?}"),
        }
    }

    pub(super) fn skipped(&self) -> Vec<&str> {
        let skipped = self
            .rows
            .iter()
            .filter(|row| row.outcome == Outcome::Skipped);
        skipped
            .filter_map(|row| row.fail_reason.as_deref())
            .collect()
    }
}

/// Everything outside a journey.
#[derive(Default)]
pub(super) struct World {
    pub(super) now: Moment,
    pub(super) replies: HashMap<String, VecDeque<String>>,
    /// Where no script says otherwise.
    pub(super) otherwise: Option<Box<dyn FnMut() -> String>>,
    hooks: HashMap<String, String>,
    /// What the hooks were asked about.
    pub(super) heard: Vec<String>,
    /// The providers whose keys stand for tokens.
    renewable: Vec<String>,
    renewals: VecDeque<String>,
    /// Whose token is being renewed.
    renewing: Option<(ChannelId, KeyId)>,
    /// Whose tokens were.
    pub(super) renewed: Vec<KeyId>,
    open: HashMap<String, Moment>,
    budget: HashMap<String, u32>,
    holds: Holds,
    leaves: Option<Moment>,
    /// The caller hangs up before the so manieth thing the driver does.
    pub(super) leaves_at_step: Option<usize>,
    /// The driver looks at the clock more often than it was asked to.
    pub(super) restless: bool,
    looked: bool,
    steps: usize,
    lease: Option<Lease>,
    coming: VecDeque<(Moment, Event)>,
    wait: Option<Moment>,
    pub(super) said: Vec<String>,
    pub(super) ending: Option<Ending>,
    pub(super) permits: u32,
    pub(super) settled: u32,
    /// Draws on the budget that were neither used nor given back.
    pub(super) paid: i32,
    paid_send: bool,
    pub(super) sends: u32,
    pub(super) sent: Vec<(ChannelId, Option<KeyId>)>,
    pub(super) asked_first: Vec<String>,
    pub(super) waits: Vec<(Moment, Moment)>,
    pub(super) send_times: Vec<Moment>,
    pub(super) outcomes: Vec<(backstop_breaker::Outcome, KeyFate)>,
    pub(super) judged: Vec<Judged>,
}

/// What a breaker learned, and the last row of the trail at that time.
pub(super) struct Judged {
    pub(super) row: AttemptRow,
    pub(super) outcome: backstop_breaker::Outcome,
}

impl World {
    /// Does what the journey says, and moves the clock to the next thing that happens, until it is
    /// over. An attempt that no script expects fails the test.
    pub(super) fn drive(&mut self, journey: &mut Journey) {
        loop {
            while let Some(action) = self.next_action(journey) {
                self.act(journey, action);
            }
            if journey.is_over() {
                return;
            }
            if self.caller_leaves_here() {
                journey.on(self.now, Event::CallerGone);
            } else {
                self.pass_time(journey);
            }
        }
    }

    /// Drives it until it waits for a retry.
    pub(super) fn until_waiting(&mut self, journey: &mut Journey) {
        while self.wait.is_none() {
            match self.next_action(journey) {
                Some(action) => self.act(journey, action),
                None => self.pass_time(journey),
            }
        }
    }

    fn next_action(&mut self, journey: &mut Journey) -> Option<Action> {
        if self.caller_leaves_here() {
            journey.on(self.now, Event::CallerGone);
        }
        journey.poll(self.now)
    }

    fn caller_leaves_here(&mut self) -> bool {
        self.steps += 1;
        Some(self.steps) == self.leaves_at_step
    }

    fn act(&mut self, journey: &mut Journey, action: Action) {
        assert!(self.ending.is_none(), "after the end: {action:?}");
        let now = self.now;
        match action {
            Action::RunHook { stage, channel } => {
                let (when, told) = asked(&stage);
                self.heard.push(format!("{when} {}", channel.label()));
                let when = format!("{when} {}", channel.provider);
                self.said
                    .push(format!("{} {when}{told}?", now.elapsed().as_millis()));
                let says = self.hooks.get(&when).map_or("pass", String::as_str);
                let (after, event) = say(says);
                self.coming.push_back((now + after, event));
            }
            Action::AskPermit {
                channel,
                force,
                first,
                quota: _,
            } => {
                if first {
                    self.asked_first.push(channel.label());
                }
                let open = self.open.get(channel.provider.as_str()).copied();
                match open.filter(|until| !force && *until > now) {
                    Some(until) => self.answer(journey, Event::PermitRefused { until }),
                    None => self.answer(journey, Event::PermitGranted),
                }
            }
            Action::Lease {
                channel,
                same,
                force,
            } => {
                let event = self.choose(journey, &channel, same, force);
                self.answer(journey, event);
            }
            Action::SpendBudget { channel } => self.spend(journey, &channel),
            Action::RefundBudget { .. } => self.paid -= 1,
            Action::Wait { until } => {
                self.waits.push((now, until));
                self.wait = Some(until);
            }
            Action::Send {
                attempt,
                channel,
                key,
                action,
                ..
            } => {
                self.sends = attempt;
                self.send_times.push(now);
                self.sent.push((channel.id.clone(), key.clone()));
                self.paid_send = self.paid > 0;
                self.paid -= i32::from(self.paid_send);
                let key = key.as_ref().map_or("-", KeyId::name);
                let whom = format!("{}:{key}", channel.provider);
                self.said
                    .push(format!("{} {whom} {action}", now.elapsed().as_millis()));
                let coming = events(&self.reply(&whom));
                self.coming = coming.into_iter().map(|(at, e)| (now + at, e)).collect();
            }
            Action::Renew { channel, key } => {
                let at = now.elapsed().as_millis();
                let whom = format!("{}:{}", channel.provider, key.name());
                self.said.push(format!("{at} {whom} renew"));
                let outcome = self.renewals.pop_front();
                let (after, event) = renewal(outcome.as_deref().unwrap_or("ok"));
                self.coming = VecDeque::from([(now + after, event)]);
                self.renewed.push(key.clone());
                self.renewing = Some((channel.id.clone(), key));
            }
            Action::Abort => self.coming.clear(),
            Action::Settle { outcome, key } => {
                self.judged.extend(journey.trail().last().map(|row| Judged {
                    row: row.clone(),
                    outcome,
                }));
                self.settle(outcome, key);
            }
            Action::Log(sentence) => self.said.push(sentence.to_string()),
            Action::Finish(ending) => {
                self.said.push(format!(
                    "{} {}",
                    now.elapsed().as_millis(),
                    describe(&ending)
                ));
                self.ending = Some(*ending);
            }
        }
    }

    /// Answers the machine, unless the caller hangs up just then: what was given is then the
    /// driver's to give back.
    fn answer(&mut self, journey: &mut Journey, event: Event) {
        if self.caller_leaves_here() {
            self.lease = None;
            return journey.on(self.now, Event::CallerGone);
        }
        match &event {
            Event::PermitGranted => self.permits += 1,
            Event::BudgetGranted { .. } => self.paid += 1,
            _ => {}
        }
        journey.on(self.now, event);
    }

    fn choose(
        &mut self,
        journey: &mut Journey,
        channel: &Channel,
        same: Option<KeyId>,
        force: bool,
    ) -> Event {
        let ask = key_ask(channel, self.now);
        let chosen = match same {
            Some(key) => Ok(Some(key)),
            None => match journey.walk_mut().choose(&ask, &self.holds, Roll::LOWEST) {
                Ok(choice) => Ok(choice.key),
                Err(NoKey::Held { least, .. }) if force => Ok(Some(least)),
                Err(no_key) => Err(no_key),
            },
        };
        match chosen {
            Ok(key) => {
                self.lease = key
                    .as_ref()
                    .map(|key| self.holds.lease(key, &channel.model, self.now));
                let renewable = self.renewable.iter();
                let renewable = renewable
                    .clone()
                    .any(|name| *name == channel.provider.as_str());
                Event::Leased { key, renewable }
            }
            Err(no_key) => Event::NoKey(no_key),
        }
    }

    fn spend(&mut self, journey: &mut Journey, channel: &Channel) {
        let event = match self.budget.get_mut(channel.provider.as_str()) {
            Some(0) => Event::BudgetDenied,
            left => {
                if let Some(left) = left {
                    *left -= 1;
                }
                let ask = key_ask(channel, self.now);
                Event::BudgetGranted {
                    roll: Roll::MIDDLE,
                    outlook: journey.walk_mut().outlook(&ask, &self.holds),
                }
            }
        };
        self.answer(journey, event);
    }

    fn settle(&mut self, outcome: backstop_breaker::Outcome, key: KeyFate) {
        self.settled += 1;
        self.outcomes.push((outcome, key));
        if let Some(lease) = self.lease.take() {
            match key {
                KeyFate::Served => self.holds.served(lease),
                KeyFate::Refused { refusal, hint } => {
                    self.holds.refused(lease, refusal, hint, self.now);
                }
                KeyFate::Nothing => self.holds.released(lease),
            }
        }
    }

    fn reply(&mut self, whom: &str) -> String {
        let scripted = self.replies.get_mut(whom).and_then(VecDeque::pop_front);
        match (scripted, &mut self.otherwise) {
            (Some(reply), _) => reply,
            (None, Some(otherwise)) => otherwise(),
            (None, None) => panic!("no call to {whom} was expected; so far {:#?}", self.said),
        }
    }

    /// On to whatever comes first: the caller's leave, a provider's event, a wake-up.
    fn pass_time(&mut self, journey: &mut Journey) {
        let wake = journey.next_wake().expect("a journey under way has an end");
        let next = self.coming.front().map(|(at, _)| *at);
        let due = next.into_iter().chain(self.wait).chain(self.leaves);
        let due = due.fold(wake, Moment::min).max(self.now);
        self.looked = self.restless && !self.looked;
        if self.looked {
            self.now = self.now + due.since(self.now) / 2;
            return journey.on(self.now, Event::Time);
        }
        self.now = due;
        if self.leaves.is_some_and(|leaves| leaves <= self.now) {
            self.leaves = None;
            journey.on(self.now, Event::CallerGone);
        } else if next.is_some_and(|at| at <= self.now) {
            let (_, event) = self.coming.pop_front().expect("just seen");
            if matches!(event, Event::Unbuildable { .. }) {
                // Nothing went out after all.
                self.paid += i32::from(self.paid_send);
                self.sends -= 1;
                self.sent.pop();
                self.send_times.pop();
            }
            if matches!(event, Event::RenewFailed(_)) {
                // An attempt that came no further than its token.
                self.sends += 1;
                self.send_times.push(self.now);
                let (channel, key) = self.renewing.take().expect("a renewal was asked for");
                self.sent.push((channel, Some(key)));
            }
            journey.on(self.now, event);
        } else if self.wait.is_some_and(|until| until <= self.now) {
            self.wait = None;
            journey.on(self.now, Event::Woke);
        } else {
            journey.on(self.now, Event::Time);
        }
    }
}

fn key_ask(channel: &Channel, now: Moment) -> KeyAsk<'_> {
    KeyAsk {
        pool: &channel.pool,
        model: &channel.model,
        subset: channel.subset(),
        now,
    }
}

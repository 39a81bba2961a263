//! What there is to say about a plan, before it is said as a table or as JSON.

use std::sync::Arc;
use std::time::Duration;

use backstop_chat::{Need, NeedSet, Needs};
use backstop_config::{Resolved, Snapshot};
use backstop_dialects::{Dialect, Envelope, Fallback, Operation, capabilities_for};
use backstop_policy::{Channel, Choice, CommitChoice, Leg, Lossy, Plan, Route, RouteLimits};
use backstop_server::{PlanAsk, plan_for};
use backstop_units::Roll;
use serde_json::{Value, json};

use super::live::{self, Live};

/// The request that is planned for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request<'a> {
    pub(super) dialect: Dialect,
    /// What is asked for.
    pub(super) operation: Operation,
    pub(super) envelope: Option<&'a Envelope>,
}

/// Everything the table says.
#[derive(Debug)]
pub(super) struct Findings<'a> {
    pub(super) route: &'a Route,
    pub(super) from: &'a str,
    pub(super) request: Request<'a>,
    pub(super) live: &'a Live,
    pub(super) rows: Vec<Row>,
    /// Groups whose order this request would not get every time, with what decides it.
    pub(super) by_chance: Vec<(String, &'static str)>,
}

/// One channel in its place.
#[derive(Debug)]
pub(super) struct Row {
    /// Its turn, from 1; `None` when it may not serve.
    pub(super) turn: Option<usize>,
    pub(super) group: String,
    pub(super) label: String,
    /// When it may serve, or why it may not.
    pub(super) standing: Result<String, String>,
    /// `None` for a provider that is not configured.
    pub(super) channel: Option<Arc<Channel>>,
    /// What its contract does not cover for this caller.
    pub(super) lacks: NeedSet,
    /// What a running gateway says of it, where one was asked that may know.
    pub(super) now: Option<live::Channel>,
    /// Which of its keys are held out now, where that is known.
    pub(super) held: Option<Vec<String>>,
}

impl<'a> Findings<'a> {
    pub(super) fn new(
        snapshot: &Snapshot,
        resolved: &'a Resolved,
        from: &'a str,
        request: &Request<'a>,
        live: &'a Live,
    ) -> Self {
        let route = resolved.route().as_ref();
        let needs = request.envelope.map_or_else(
            || {
                let asked = request.operation.need();
                asked.into_iter().fold(Needs::default(), Needs::with)
            },
            |envelope| envelope.needs,
        );
        let fallbacks = request.envelope.map_or(&[][..], |e| &e.fallbacks);
        let plan = plan_for(
            snapshot,
            route,
            &PlanAsk {
                caller: None,
                has_token: true,
                dialect: request.dialect,
                operation: request.operation,
                needs: &needs,
                fallbacks,
                // Equals stand in their listed order.
                roll: Roll::LOWEST,
                live: None,
                session: &[],
                keeper: None,
            },
        );
        let seats = Seats { route, fallbacks };
        let rows = seats.rows(snapshot, &plan).into_iter();
        let rows = rows.map(|row| row.with(snapshot, request, live));
        let rows = in_turn(rows.collect());
        let by_chance = route.groups.iter().filter(|group| has_equals(group));
        Self {
            route,
            from,
            request: *request,
            live,
            rows,
            by_chance: by_chance
                .map(|group| (group.name.to_string(), choice(group.choice)))
                .collect(),
        }
    }
}

/// Where the places of a plan come from.
struct Seats<'a> {
    route: &'a Route,
    fallbacks: &'a [Fallback],
}

impl Seats<'_> {
    /// Candidates and those left out, each group's together.
    fn rows(&self, snapshot: &Snapshot, plan: &Plan) -> Vec<Row> {
        let mut rows: Vec<(usize, Row)> = Vec::new();
        for candidate in &plan.candidates {
            let row = Row {
                turn: None,
                group: self.name(candidate.group),
                label: candidate.channel.label(),
                standing: Ok(right(&candidate.leg)),
                channel: Some(Arc::clone(&candidate.channel)),
                lacks: NeedSet::default(),
                now: None,
                held: None,
            };
            rows.push((candidate.group, row));
        }
        for excluded in &plan.excluded {
            let row = Row {
                turn: None,
                group: self.name(excluded.group),
                label: excluded.channel.clone(),
                standing: Err(excluded.reason.to_string()),
                channel: self.channel(snapshot, excluded.group, &excluded.channel),
                lacks: NeedSet::default(),
                now: None,
                held: None,
            };
            rows.push((excluded.group, row));
        }
        rows.sort_by_key(|(group, _)| *group);
        rows.into_iter().map(|(_, row)| row).collect()
    }

    fn name(&self, group: usize) -> String {
        let own = self.route.groups.len();
        match self.route.groups.get(group) {
            Some(group) => group.name.to_string(),
            None if group < own + self.fallbacks.len() => "(caller's fallback)".to_owned(),
            None => "(substitution)".to_owned(),
        }
    }

    fn channel(&self, snapshot: &Snapshot, group: usize, label: &str) -> Option<Arc<Channel>> {
        let listed = self.route.groups.get(group).into_iter();
        let listed = listed.flat_map(|group| &group.channels);
        let substitutions = self.route.substitutions.iter().map(|one| &one.channel);
        listed
            .chain(substitutions)
            .find(|channel| channel.label() == label)
            .cloned()
            .or_else(|| snapshot.channel(label))
    }
}

impl Row {
    fn with(mut self, snapshot: &Snapshot, request: &Request<'_>, live: &Live) -> Self {
        let Some(channel) = &self.channel else {
            return self;
        };
        let (caller, operation) = (request.dialect, request.operation);
        let carries = match snapshot.providers.get(&channel.provider) {
            Some(provider) => {
                let spoken = provider.dialect_for(caller, &channel.model);
                let carried = capabilities_for(operation, caller, spoken, &channel.model);
                channel.contract.and(carried)
            }
            None => channel.contract,
        };
        self.lacks = Need::ALL
            .into_iter()
            .filter(|need| operation.may_need(*need) && *need != Need::Context)
            .filter(|need| !carries.set.has(*need))
            .collect();
        if let Live::Answered(_, page) = live {
            // The page shows each channel of a route once it was used, and no other.
            let unused = snapshot.lists(&channel.id).then(live::Channel::default);
            self.now = page.channels.get(channel.id.as_str()).cloned().or(unused);
            let (serving, _) = keys(channel);
            let (provider, model) = (channel.provider.as_str(), channel.model.as_str());
            let held = serving
                .iter()
                .filter(|key| page.holds(provider, key, model));
            self.held = Some(held.map(ToString::to_string).collect());
        }
        let (serving, _) = keys(channel);
        if serving.is_empty() && !channel.pool.is_keyless() && self.standing.is_ok() {
            self.standing = Err("no key serves its model".to_owned());
        }
        self
    }
}

/// Counts those that may serve.
fn in_turn(mut rows: Vec<Row>) -> Vec<Row> {
    let mut turn = 0;
    for row in rows.iter_mut().filter(|row| row.standing.is_ok()) {
        turn += 1;
        row.turn = Some(turn);
    }
    rows
}

/// Whether chance, or what goes on at the time, has a part in the order of the group.
fn has_equals(group: &backstop_policy::Group) -> bool {
    let ranks = group.channels.iter().filter(|channel| channel.weight > 0.0);
    let mut ranks: Vec<u32> = ranks.map(|channel| channel.priority).collect();
    let all = ranks.len();
    ranks.sort_unstable();
    ranks.dedup();
    all > 1 && (group.choice != Choice::Priority || ranks.len() < all)
}

const fn choice(choice: Choice) -> &'static str {
    match choice {
        Choice::Priority => "priority",
        Choice::Weighted => "weighted",
        Choice::LeastLatency => "least_latency",
        Choice::LeastBusy => "least_busy",
    }
}

/// When a candidate may serve.
fn right(leg: &Leg) -> String {
    match leg {
        Leg::Primary => "yes".to_owned(),
        Leg::SameContract => "yes, after those before it".to_owned(),
        Leg::CallerFallback { same_model: true } => "yes, the caller's fallback".to_owned(),
        Leg::CallerFallback { same_model: false } => {
            "yes, the caller's fallback to another model".to_owned()
        }
        Leg::Substitution {
            on,
            on_content_policy,
        } => {
            let mut on: Vec<&str> = on.iter().map(|class| class.name()).collect();
            if *on_content_policy {
                on.push("content_policy");
            }
            if on.is_empty() {
                "yes, another model".to_owned()
            } else {
                format!("yes, another model, on {}", on.join(", "))
            }
        }
    }
}

/// The keys of a channel: those that serve it, and the others with the reason.
pub(super) fn keys(channel: &Channel) -> (Vec<&str>, Vec<(&str, &'static str)>) {
    let mut serving = Vec::new();
    let mut others = Vec::new();
    for key in channel.pool.keys() {
        let name = key.id().name();
        if !key.serves(&channel.model) {
            others.push((name, "not for this model"));
        } else if !channel.has_key(key.id()) {
            others.push((name, "not for this channel"));
        } else if key.weight() <= 0.0 {
            others.push((name, "drained"));
        } else {
            serving.push(name);
        }
    }
    (serving, others)
}

/// Where a stream's first bytes go out, as the configuration says it.
pub(super) fn commit(choice: CommitChoice) -> String {
    match choice {
        CommitChoice::FirstOutput => "first_output".to_owned(),
        CommitChoice::Complete => "complete".to_owned(),
        CommitChoice::Window { wait, tokens } => {
            let wait = wait.map(|wait| format!("{} ms", wait.as_millis()));
            let tokens = tokens.map(|tokens| format!("{} tokens", tokens.0));
            let reach: Vec<String> = wait.into_iter().chain(tokens).collect();
            format!("window of {}", reach.join(" or "))
        }
    }
}

pub(super) const fn lossy(choice: Lossy) -> &'static str {
    match choice {
        Lossy::Refuse => "refuse",
        Lossy::Drop => "drop",
    }
}

fn millis(time: Duration) -> Value {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX).into()
}

fn names(set: NeedSet) -> Vec<&'static str> {
    set.iter().map(Need::as_str).collect()
}

/// The same for programs.
impl Findings<'_> {
    pub(super) fn to_json(&self) -> Value {
        let request = self.request.envelope.map(|envelope| {
            json!({
                "model": envelope.model,
                "stream": envelope.stream,
                "needs": names(envelope.needs.set),
                "prompt_tokens_estimate": envelope.needs.prompt.0,
                "answer_tokens": envelope.needs.answer.0,
            })
        });
        let (asked, answered) = match self.live {
            Live::NotAsked => (None, false),
            Live::Silent(url) => (Some(url), false),
            Live::Answered(url, _) => (Some(url), true),
        };
        json!({
            "route": self.route.name.as_str(),
            "config": self.from,
            "dialect": self.request.dialect.as_str(),
            "request": request,
            "limits": limits(&self.route.limits),
            "commit": commit(self.route.commit),
            "lossy": lossy(self.route.lossy),
            "live": { "asked": asked, "answered": answered },
            "order_varies": self.by_chance.iter().map(|(group, by)| {
                json!({ "group": group, "choice": by })
            }).collect::<Vec<_>>(),
            "channels": self.rows.iter().map(Row::to_json).collect::<Vec<_>>(),
        })
    }
}

fn limits(limits: &RouteLimits) -> Value {
    json!({
        "deadline_ms": millis(limits.deadline),
        "max_attempts": limits.max_attempts,
        "max_attempts_primary": limits.max_attempts_primary,
        "max_attempts_fallback": limits.max_attempts_fallback,
        "min_attempt_ms": millis(limits.min_attempt),
    })
}

impl Row {
    fn to_json(&self) -> Value {
        let (standing, eligible) = match &self.standing {
            Ok(right) => (right, true),
            Err(reason) => (reason, false),
        };
        let mut row = json!({
            "turn": self.turn,
            "group": self.group,
            "channel": self.label,
            "eligible": eligible,
            "standing": standing,
        });
        let (Some(channel), Some(members)) = (&self.channel, row.as_object_mut()) else {
            return row;
        };
        let (serving, others) = keys(channel);
        let others: serde_json::Map<String, Value> = others
            .into_iter()
            .map(|(key, why)| (key.to_owned(), why.into()))
            .collect();
        let budget = channel.retry.budget;
        let now = self.now.as_ref();
        let facts = json!({
            "lacks": names(self.lacks),
            "context_window": channel.context_window().map(|tokens| tokens.0),
            "verified": channel.verified,
            "priority": channel.priority,
            "weight": channel.weight,
            "keyless": channel.pool.is_keyless(),
            "keys": serving,
            "other_keys": others,
            "held_keys": self.held,
            "max_retries": channel.retry.max_retries,
            "retry_backoff_initial_ms": millis(channel.retry.backoff.initial()),
            "retry_backoff_max_ms": millis(channel.retry.backoff.max()),
            "retry_budget": {
                "ratio": budget.ratio(),
                "per_second": budget.per_second(),
                "credit": budget.credit(),
                "left": now.and_then(|now| now.retries_left),
            },
            "breaker": {
                "failures": channel.breaker.streak(),
                "state": now.map(|now| now.breaker.as_deref().unwrap_or("unused")),
            },
            "clocks": {
                "connect_ms": millis(channel.clocks.connect),
                "headers_ms": millis(channel.clocks.headers),
                "first_output_ms": millis(channel.clocks.first_output),
                "idle_ms": millis(channel.clocks.idle),
            },
        });
        if let Value::Object(facts) = facts {
            members.extend(facts);
        }
        row
    }
}

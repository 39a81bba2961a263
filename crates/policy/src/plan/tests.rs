//! Who stands in a plan, in which order, and who does not.

use std::collections::HashMap;
use std::time::Duration;

use backstop_backoff::{Backoff, BudgetParams};
use backstop_keypool::Pool;
use backstop_units::{ChannelId, ModelName, ProviderId, RouteName};
use proptest::prelude::*;

use super::*;
use crate::route::{Clocks, CommitChoice, HintUse, RetryTerms, RouteLimits, Substitution};

/// `provider/model`, with its weight and priority.
fn channel(label: &str, weight: f64, priority: u32) -> Channel {
    let (provider, model) = label.split_once('/').unwrap_or((label, "m"));
    let (provider, model) = (ProviderId::new(provider), ModelName::new(model));
    Channel {
        id: ChannelId::new(&provider, &model, &[]),
        provider,
        model,
        keys: Vec::new(),
        priority,
        weight,
        contract: Capabilities::all(),
        verified: false,
        pool: Arc::new(Pool::keyless()),
        retry: RetryTerms {
            max_retries: 0,
            backoff: Backoff::default(),
            budget: BudgetParams::default(),
            hint: HintUse::Honour,
        },
        breaker: backstop_breaker::Params::default(),
        clocks: Clocks {
            connect: Duration::from_secs(1),
            ..Clocks::default()
        },
    }
}

fn group(choice: Choice, channels: &[(&str, f64, u32)]) -> Group {
    Group {
        requests_per_minute: None,
        name: GroupName::new("g"),
        choice,
        channels: channels
            .iter()
            .map(|(label, weight, priority)| Arc::new(channel(label, *weight, *priority)))
            .collect(),
    }
}

fn route(groups: Vec<Group>) -> Route {
    Route {
        name: RouteName::new("r"),
        groups,
        substitutions: Vec::new(),
        limits: RouteLimits::default(),
        commit: CommitChoice::FirstOutput,
        lossy: Lossy::Refuse,
    }
}

fn plan(route: &Route, needs: Needs, fallbacks: Vec<CallerFallback>, roll: Roll) -> Plan {
    Plan::new(
        route,
        &Ask {
            needs: &needs,
            fallbacks,
            roll,
            carries: &|channel: &Channel| channel.contract,
            barred: &|_| None,
            load: &|_| Load::default(),
            session: &[],
        },
    )
}

fn order(route: &Route, roll: f64) -> String {
    let roll = Roll::new(roll).expect("in range");
    let plan = plan(route, Needs::default(), Vec::new(), roll);
    let labels = plan
        .candidates
        .iter()
        .map(|candidate| candidate.channel.provider.to_string());
    labels.collect::<Vec<_>>().join(" ")
}

#[test]
fn the_order_is_by_priority_then_by_weight_and_by_chance_alone_among_equals() {
    let by_priority = route(vec![
        group(
            Choice::Priority,
            &[("c", 1.0, 9), ("a", 1.0, 0), ("b", 3.0, 0), ("dry", 0.0, 0)],
        ),
        group(Choice::Priority, &[("z", 1.0, 0)]),
    ]);
    for (roll, want) in [
        (0.0, "a b c z"),
        (0.24, "a b c z"),
        (0.26, "b a c z"),
        (0.99, "b a c z"),
    ] {
        assert_eq!(order(&by_priority, roll), want, "{roll}");
    }
    let by_weight = route(vec![group(
        Choice::Weighted,
        &[("a", 1.0, 0), ("b", 1.0, 5), ("c", 2.0, 9)],
    )]);
    for (roll, want) in [
        (0.0, "a b c"),
        (0.2, "a c b"),
        (0.26, "b a c"),
        (0.49, "b c a"),
        (0.5, "c a b"),
        (0.99, "c b a"),
    ] {
        assert_eq!(order(&by_weight, roll), want, "{roll}");
    }
    // A drained channel of the first rank takes no part in the chance of the next.
    let drained = route(vec![group(
        Choice::Priority,
        &[("dry", 0.0, 0), ("a", 1.0, 1), ("b", 1.0, 1)],
    )]);
    assert_eq!(
        (order(&drained, 0.4), order(&drained, 0.6)),
        ("a b".into(), "b a".into())
    );
}

/// Every order comes as often as drawing without putting back would bring it.
#[test]
fn one_roll_orders_all_of_a_group_fairly() {
    let weights = [("a", 1.0), ("b", 2.0), ("c", 3.0)];
    let channels: Vec<_> = weights
        .iter()
        .map(|(label, weight)| (*label, *weight, 0))
        .collect();
    let route = route(vec![group(Choice::Weighted, &channels)]);
    let rolls = 6_000;
    let mut seen: HashMap<String, f64> = HashMap::new();
    for roll in 0..rolls {
        let roll = (f64::from(roll) + 0.5) / f64::from(rolls);
        *seen.entry(order(&route, roll)).or_default() += 1.0 / f64::from(rolls);
    }
    assert_eq!(seen.len(), 6);
    let weight = |label: &str| {
        weights
            .iter()
            .find(|(known, _)| *known == label)
            .expect("known")
            .1
    };
    for (order, share) in seen {
        let mut left = 6.0;
        let fair: f64 = order
            .split(' ')
            .map(|label| {
                let chance = weight(label) / left;
                left -= weight(label);
                chance
            })
            .product();
        assert!((share - fair).abs() < 0.001, "{order}: {share} for {fair}");
    }
}

#[test]
fn the_callers_chain_follows_the_groups_and_the_operators_substitutions_follow_it() {
    let mut route = route(vec![
        group(Choice::Priority, &[("a/m", 1.0, 0)]),
        group(Choice::Priority, &[("b/m2", 1.0, 0)]),
    ]);
    route.substitutions = vec![Substitution {
        channel: Arc::new(channel("s/o", 1.0, 0)),
        on: vec![Class::RateLimit],
        on_content_policy: true,
    }];
    let named = |label| CallerFallback::Channel(Arc::new(channel(label, 1.0, 0)));
    let fallbacks = vec![
        named("c/n"),
        CallerFallback::MissingProvider("nobody/x".to_owned()),
        named("d/m2"),
        named("a/m"),
    ];
    let plan = plan(&route, Needs::default(), fallbacks, Roll::LOWEST);
    let candidates: Vec<_> = plan
        .candidates
        .iter()
        .map(|one| {
            (
                one.channel.label(),
                one.group,
                one.leg.clone(),
                one.is_substitution(),
            )
        })
        .collect();
    let caller = |same_model| Leg::CallerFallback { same_model };
    let substitution = Leg::Substitution {
        on: vec![Class::RateLimit],
        on_content_policy: true,
    };
    let want = [
        ("a/m", 0, Leg::Primary, false),
        ("b/m2", 1, Leg::SameContract, false),
        ("c/n", 2, caller(false), true),
        ("d/m2", 4, caller(true), false),
        ("s/o", 6, substitution, true),
    ];
    assert_eq!(
        candidates,
        want.map(|(label, group, leg, sub)| (label.to_owned(), group, leg, sub))
    );
    let excluded = |channel: &str, group, reason| Excluded {
        channel: channel.to_owned(),
        group,
        reason,
    };
    assert_eq!(
        plan.excluded,
        [
            excluded("nobody/x", 3, Exclusion::MissingProvider),
            excluded("a/m", 5, Exclusion::Repeated),
        ]
    );
}

#[test]
fn who_is_left_out_and_why() {
    let narrow = |need| {
        let mut narrow = channel("a", 1.0, 0);
        narrow.contract = narrow.contract.without(need);
        narrow
    };
    let small = Channel {
        contract: Capabilities {
            context_window: Some(Tokens(10)),
            ..Capabilities::all()
        },
        ..channel("a", 1.0, 0)
    };
    let tools = Needs::default().with(Need::Tools);
    let streamed = Needs::default().with(Need::Streaming);
    let long = Needs {
        prompt: Tokens(11),
        ..Needs::default()
    };
    let refused = |need| Some(Exclusion::Uncovered(need));
    for (channel, needs, lossy, want) in [
        (
            narrow(Need::Tools),
            tools,
            Lossy::Refuse,
            refused(Need::Tools),
        ),
        (narrow(Need::Tools), tools, Lossy::Drop, None),
        (narrow(Need::Tools), streamed, Lossy::Refuse, None),
        // A stream and room for the request are no fields that could be dropped.
        (
            narrow(Need::Streaming),
            streamed,
            Lossy::Drop,
            refused(Need::Streaming),
        ),
        (small.clone(), long, Lossy::Refuse, refused(Need::Context)),
        (small, long, Lossy::Drop, refused(Need::Context)),
        (
            channel("a", 0.0, 0),
            tools,
            Lossy::Drop,
            Some(Exclusion::Drained),
        ),
    ] {
        let mut route = route(vec![single(GroupName::new("g"), Arc::new(channel))]);
        route.lossy = lossy;
        let plan = plan(&route, needs, Vec::new(), Roll::LOWEST);
        let reason = plan.excluded.first().map(|excluded| excluded.reason);
        assert_eq!(reason, want);
        assert_eq!(plan.candidates.len(), usize::from(want.is_none()));
    }
}

proptest! {
    /// Whatever the weights and the roll: every channel that is not drained stands in the plan
    /// once, and lower priorities come first.
    #[test]
    fn an_order_loses_nobody(
        given in proptest::collection::vec((0..4_u32, 0..3_u32), 0..8),
        roll in 0.0..1.0_f64,
        weighted: bool,
    ) {
        let labels: Vec<String> = (0..given.len()).map(|n| format!("p{n}")).collect();
        let channels: Vec<_> = given
            .iter()
            .zip(&labels)
            .map(|((weight, priority), label)| (label.as_str(), f64::from(*weight), *priority))
            .collect();
        let choice = if weighted { Choice::Weighted } else { Choice::Priority };
        let route = route(vec![group(choice, &channels)]);
        let roll = Roll::new(roll).expect("in range");
        let plan = plan(&route, Needs::default(), Vec::new(), roll);
        prop_assert_eq!(plan.candidates.len() + plan.excluded.len(), given.len());
        let priorities: Vec<_> = plan.candidates.iter().map(|one| one.channel.priority).collect();
        prop_assert!(weighted || priorities.is_sorted());
        prop_assert!(plan.candidates.iter().all(|one| one.channel.weight > 0.0));
    }
}

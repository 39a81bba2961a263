//! Who comes first, by row and by law; channels that slow down, recover and join.

use std::collections::HashMap;

use backstop_backoff::{Backoff, BudgetParams};
use backstop_chat::{Capabilities, Needs};
use backstop_keypool::Pool;
use backstop_units::{ChannelId, GroupName, ModelName, Moment, ProviderId};
use proptest::prelude::*;

use super::*;
use crate::latency::PeakEwma;
use crate::route::{Clocks, HintUse, RetryTerms};
use crate::session::Binding;

fn channel(name: &str, weight: f64, priority: u32) -> Arc<Channel> {
    let (provider, model) = (ProviderId::new(name), ModelName::new("m"));
    Arc::new(Channel {
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
        clocks: Clocks::default(),
    })
}

/// `name weight in_flight latency_ms` each; a latency of `-` is not known.
fn scene(text: &str) -> (Vec<Arc<Channel>>, HashMap<String, Load>) {
    let mut loads = HashMap::new();
    let channels = text.split(", ").map(|one| {
        let words: Vec<&str> = one.split(' ').collect();
        let latency = words[3].parse().ok().map(Duration::from_millis);
        let in_flight = words[2].parse().expect("a number");
        loads.insert(words[0].to_owned(), Load { in_flight, latency });
        channel(words[0], words[1].parse().expect("a weight"), 0)
    });
    (channels.collect(), loads)
}

fn order(
    choice: Choice,
    channels: &[Arc<Channel>],
    load: &dyn Fn(&Channel) -> Load,
    session: &[Binding],
    roll: f64,
) -> Vec<String> {
    let group = Group {
        requests_per_minute: None,
        name: GroupName::new("g"),
        choice,
        channels: channels.to_vec(),
    };
    let mut roll = Roll::new(roll).expect("in range");
    let ask = Ask {
        needs: &Needs::default(),
        fallbacks: Vec::new(),
        roll,
        carries: &|channel: &Channel| channel.contract,
        barred: &|_| None,
        load,
        session,
    };
    let order = ordered(&group, &ask, &mut roll);
    order.iter().map(|one| one.provider.to_string()).collect()
}

/// The share of rolls in which each channel comes first.
fn shares(choice: Choice, text: &str) -> HashMap<String, f64> {
    let (channels, loads) = scene(text);
    let rolls = 10_000;
    let mut shares = HashMap::new();
    for roll in 0..rolls {
        let roll = (f64::from(roll) + 0.5) / f64::from(rolls);
        let load = |channel: &Channel| loads[channel.provider.as_str()];
        let order = order(choice, &channels, &load, &[], roll);
        assert_eq!(order.len(), channels.len());
        *shares.entry(order[0].clone()).or_default() += 1.0 / f64::from(rolls);
    }
    shares
}

#[test]
fn the_shares_of_the_first_place() {
    let busy = Choice::LeastBusy;
    let quick = Choice::LeastLatency;
    for (choice, text, want) in [
        (busy, "a 1 3 -, b 1 0 -, c 1 1 -", "a 0, b 1, c 0"),
        (busy, "a 1 2 -, b 3 2 -, c 1 5 -", "a 0.25, b 0.75, c 0"),
        (quick, "a 1 0 100, b 1 0 900", "a 1, b 0"),
        // Of two drawn: the slowest of three never wins, the middle one against the slowest only.
        (
            quick,
            "a 1 0 100, b 1 0 200, c 1 0 900",
            "a 0.667, b 0.333, c 0",
        ),
        // What is in flight counts as a queue.
        (quick, "a 1 9 100, b 1 0 900", "a 0, b 1"),
        (quick, "a 1 7 100, b 1 0 900", "a 1, b 0"),
        // By weight alone where all is equal, or nothing is known.
        (quick, "a 1 0 -, b 1 0 -", "a 0.5, b 0.5"),
        // A new one counts as the middle one: no flood, no famine.
        (quick, "a 1 0 100, n 1 0 -", "a 0.5, n 0.5"),
        (quick, "a 1 0 100, n 1 1 -", "a 1, n 0"),
        (
            quick,
            "a 1 0 100, n 1 0 -, c 1 0 900",
            "a 0.667, n 0.333, c 0",
        ),
        (
            quick,
            "a 1 0 100, b 1 0 100, n 1 0 -, c 1 0 900",
            "a 0.278, b 0.278, n 0.278",
        ),
    ] {
        let got = shares(choice, text);
        for want in want.split(", ") {
            let (name, share) = want.split_once(' ').expect("name share");
            let share: f64 = share.parse().expect("a number");
            let found = got.get(name).copied().unwrap_or(0.0);
            let near = (found - share).abs() < 0.06;
            assert!(near, "{text}: {name} has {found}, not {share}");
        }
    }
}

#[test]
fn a_sessions_channel_comes_before_its_equals_and_no_other() {
    let bound = |name: &str| Binding {
        channel: channel(name, 1.0, 0).id.clone(),
        key: None,
    };
    let loads = |channel: &Channel| Load {
        in_flight: u32::from(channel.provider.as_str() == "c"),
        latency: None,
    };
    let ranked = [
        channel("a", 1.0, 0),
        channel("b", 1.0, 1),
        channel("c", 1.0, 1),
        channel("dry", 0.0, 0),
    ];
    for (choice, session, want) in [
        (Choice::Priority, vec![bound("c")], "a c b dry"),
        (Choice::Weighted, vec![bound("c")], "c a b dry"),
        (Choice::LeastLatency, vec![bound("c")], "c a b dry"),
        (Choice::LeastBusy, vec![bound("c")], "c a b dry"),
        (Choice::Weighted, vec![bound("c"), bound("b")], "c b a dry"),
        (
            Choice::Weighted,
            vec![bound("dry"), bound("x")],
            "a b c dry",
        ),
    ] {
        let order = order(choice, &ranked, &loads, &session, 0.0);
        assert_eq!(order.join(" "), want, "{choice:?} {session:?}");
    }
}

/// A provider in a group: how long it takes, how many it has in flight, what is known of it.
struct Worker {
    channel: Arc<Channel>,
    takes: Duration,
    fails: bool,
    waits: PeakEwma,
    out: Vec<(Moment, Moment)>,
    served: u32,
}

impl Worker {
    fn new(name: &str, millis: u64) -> Self {
        Self {
            channel: channel(name, 1.0, 0),
            takes: Duration::from_millis(millis),
            fails: false,
            waits: PeakEwma::default(),
            out: Vec::new(),
            served: 0,
        }
    }

    fn load(&self, now: Moment) -> Load {
        let in_flight = u32::try_from(self.out.len()).expect("few");
        Load {
            in_flight,
            latency: self.waits.estimate(now, in_flight),
        }
    }
}

/// Requests at a steady pace to a group chosen by `least_latency`.
struct Traffic {
    workers: Vec<Worker>,
    every: u64,
    now: u64,
    rolls: u32,
}

impl Traffic {
    fn new(every: u64, workers: Vec<Worker>) -> Self {
        Self {
            workers,
            every,
            now: 0,
            rolls: 0,
        }
    }

    fn run(&mut self, seconds: u64) -> HashMap<String, u32> {
        for worker in &mut self.workers {
            worker.served = 0;
        }
        let end = self.now + seconds * 1_000;
        while self.now < end {
            self.now += self.every;
            self.request(Moment::from_millis(self.now));
        }
        let served = self.workers.iter();
        served
            .map(|one| (one.channel.provider.to_string(), one.served))
            .collect()
    }

    fn request(&mut self, now: Moment) {
        for worker in &mut self.workers {
            let (done, out): (Vec<_>, Vec<_>) = worker.out.iter().partition(|(_, end)| *end <= now);
            worker.out = out;
            for (begun, end) in done {
                let waited = end.since(begun);
                if worker.fails {
                    worker.waits.on_failure(end, waited);
                } else {
                    worker.waits.on_success(end, waited);
                }
            }
        }
        let channels: Vec<_> = self.workers.iter().map(|one| one.channel.clone()).collect();
        let find = |channel: &Channel| {
            let mut workers = self.workers.iter();
            workers.find(|one| one.channel.id == channel.id)
        };
        let load = |channel: &Channel| find(channel).map(|one| one.load(now)).unwrap_or_default();
        // A spread of rolls without a die: the golden ratio's multiples.
        self.rolls += 1;
        let roll = (f64::from(self.rolls) * 0.618_033_988_749_895).fract();
        let first = order(Choice::LeastLatency, &channels, &load, &[], roll).swap_remove(0);
        let mut workers = self.workers.iter_mut();
        let chosen = workers.find(|one| one.channel.provider.as_str() == first);
        let chosen = chosen.expect("one of the group");
        chosen.served += 1;
        chosen.out.push((now, now + chosen.takes));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// A channel ten times slower gets a small share at any pace, and not nothing for ever; when it
    /// is as fast as the other again, it has its share back within minutes.
    #[test]
    fn a_slow_channel_gets_little_and_recovers(
        every in 50..2_000_u64,
        fast in 100..800_u64,
        times in 10..40_u64,
        fails: bool,
    ) {
        let mut slow = Worker::new("slow", fast * times);
        if fails {
            // It fails fast instead of answering slowly.
            (slow.takes, slow.fails) = (Duration::from_millis(20), true);
        }
        let mut traffic = Traffic::new(every, vec![Worker::new("fast", fast), slow]);
        traffic.run(60);
        let served = traffic.run(600);
        let (least, all) = (served["slow"], served["slow"] + served["fast"]);
        prop_assert!(least * 6 <= all, "{served:?}");
        prop_assert!(least > 0, "{served:?}");

        let healed = &mut traffic.workers[1];
        (healed.takes, healed.fails) = (Duration::from_millis(fast), false);
        traffic.run(600);
        let served = traffic.run(120);
        let (least, all) = (served["slow"], served["slow"] + served["fast"]);
        prop_assert!(least * 4 >= all, "{served:?}");
    }

    /// A channel that joins a group at work takes about its share at once, and no flood.
    #[test]
    fn a_new_channel_is_neither_favoured_nor_starved(
        every in 20..500_u64,
        takes in 100..2_000_u64,
        others in 1..5_usize,
    ) {
        let worker = |n: usize| Worker::new(&format!("old{n}"), takes);
        let mut traffic = Traffic::new(every, (0..others).map(worker).collect());
        traffic.run(30);
        traffic.workers.push(Worker::new("new", takes));
        // In its first moments it has about its fair part in flight: no flood.
        for _ in 0..20 {
            traffic.run(1);
            let out = |one: &Worker| one.out.len();
            let most = traffic.workers[..others].iter().map(out).max().unwrap_or(0);
            let new = out(&traffic.workers[others]);
            prop_assert!(new <= most + most / 3 + 2, "{new} {most}");
        }
        let served = traffic.run(120);
        let all: u32 = served.values().sum();
        let fair = f64::from(all) / f64::from(u32::try_from(others).expect("few") + 1);
        let new = f64::from(served["new"]);
        prop_assert!((0.5 * fair..=1.5 * fair).contains(&new), "{served:?}");
    }

    /// Whatever the loads, sessions and the roll: everyone stands in the order once, drained ones
    /// last.
    #[test]
    fn an_order_loses_nobody(
        given in proptest::collection::vec((0..3_u32, 0..3_u32, 0..4_u32, proptest::option::of(0..900_u64)), 0..8),
        roll in 0.0..1.0_f64,
        choice in 0..4_usize,
        session in proptest::collection::vec(0..10_usize, 0..4),
    ) {
        let choices = [Choice::Priority, Choice::Weighted, Choice::LeastLatency, Choice::LeastBusy];
        let named = |n: usize, weight: f64, priority| channel(&format!("p{n}"), weight, priority);
        let channels: Vec<_> = given.iter().enumerate()
            .map(|(n, one)| named(n, f64::from(one.0), one.1))
            .collect();
        let load = |channel: &Channel| {
            let place = channels.iter().position(|one| one.id == channel.id).expect("known");
            let (_, _, in_flight, millis) = given[place];
            Load { in_flight, latency: millis.map(Duration::from_millis) }
        };
        let bound: Vec<_> = session.iter()
            .map(|n| Binding { channel: named(*n, 1.0, 0).id.clone(), key: None })
            .collect();
        let order = order(choices[choice], &channels, &load, &bound, roll);
        let mut sorted = order.clone();
        sorted.sort_unstable();
        sorted.dedup();
        prop_assert_eq!(sorted.len(), given.len());
        let drained = |name: &String| {
            channels.iter().any(|one| one.provider.as_str() == name && one.weight <= 0.0)
        };
        prop_assert!(order.iter().map(drained).is_sorted());
    }
}

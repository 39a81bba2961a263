//! What is taken comes back, what is bounded stays bounded, what a reload keeps is kept.

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use backstop_breaker::{Outcome, Params, State as Breaker};
use backstop_keypool::{Key, ModelList, Permanent, Pool, Refusal};
use backstop_units::{ModelName, ProviderId};

use super::*;

const fn at(seconds: u64) -> Moment {
    Moment::from_millis(seconds * 1_000)
}

fn openai() -> ProviderId {
    ProviderId::new("openai")
}

fn channel_id(model: &str) -> ChannelId {
    ChannelId::new(&openai(), &ModelName::new(model), &[])
}

fn configured(state: &State, model: &str) -> Arc<ChannelCell> {
    state.channel(
        &channel_id(model),
        &ChannelParams::default(),
        Minted::ByConfig,
    )
}

fn typed(state: &State, model: &str) -> Arc<ChannelCell> {
    state.channel(
        &channel_id(model),
        &ChannelParams::default(),
        Minted::ByCaller,
    )
}

fn open(channel: &Arc<ChannelCell>, now: Moment) {
    for _ in 0..5 {
        let permit = channel.permit(now).expect("closed");
        permit.settle(now, Outcome::Failure);
    }
    assert!(matches!(channel.breaker_state(now), Breaker::Open { .. }));
}

#[test]
fn every_way_a_probe_can_end_frees_its_slot() {
    let ends: [fn(crate::PermitGuard, Moment); 6] = [
        |permit, now| _ = permit.settle(now, Outcome::Success),
        |permit, now| _ = permit.settle(now, Outcome::Failure),
        |permit, now| _ = permit.settle(now, Outcome::RateLimited),
        |permit, now| _ = permit.settle(now, Outcome::Ignored),
        |permit, _| drop(permit),
        |permit, _| {
            let panicked = thread::spawn(move || {
                let _held = permit;
                panic!("a request panics with its permit in hand");
            });
            assert!(panicked.join().is_err());
        },
    ];
    for (n, end) in ends.into_iter().enumerate() {
        let state = State::new(Limits::default());
        let channel = configured(&state, "m");
        open(&channel, at(0));
        let probe = channel.permit(at(5)).expect("half-open");
        assert!(probe.is_probe());
        assert!(channel.permit(at(5)).is_err());
        end(probe, at(5));
        assert_eq!(channel.in_flight(), 0, "end {n}");
        let next = channel.permit(at(60)).expect("closed, or free to probe");
        assert_eq!(next.is_probe(), n > 0, "end {n}");
    }
}

#[test]
fn of_many_at_once_exactly_one_probes() {
    for _ in 0..50 {
        let state = State::new(Limits::default());
        let channel = configured(&state, "m");
        open(&channel, at(0));
        let start = Barrier::new(8);
        let probes: usize = thread::scope(|scope| {
            let ask = || {
                start.wait();
                channel.permit(at(5)).ok()
            };
            let asked: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
            // All permits are kept until all have asked.
            let answers: Vec<_> = asked
                .into_iter()
                .map(|one| one.join().expect("asked"))
                .collect();
            answers.iter().flatten().count()
        });
        assert_eq!(probes, 1);
        assert_eq!(channel.in_flight(), 0);
    }
}

#[test]
fn the_budget_and_the_counters_are_shared_by_all_requests_of_a_channel() {
    let state = State::new(Limits::default());
    let channel = configured(&state, "m");
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..100 {
                    channel.on_request(at(0));
                    _ = channel.budget_spend(at(0));
                }
            });
        }
    });
    let view = state.channels(at(0)).remove(0);
    assert_eq!(view.counts.requests, 400);
    assert_eq!(view.counts.retries + view.counts.retries_denied, 400);
    let earned = 10.0 + 0.2 * 400.0;
    let kept = f64::from(u32::try_from(view.counts.retries).expect("small"));
    // Tokens beyond the ceiling of ten are lost, never invented.
    assert!(kept + view.retries_left <= earned + 1e-6);
    channel.budget_refund();
    assert_eq!(
        state.channels(at(0))[0].counts.retries,
        view.counts.retries - 1
    );
}

#[test]
fn a_retry_is_spent_when_it_starts_and_handed_back_when_it_never_does() {
    let state = State::new(Limits::default());
    let channel = configured(&state, "m");
    let left = || state.channels(at(0))[0].retries_left;
    drop(channel.retry(at(0)).expect("ten of credit"));
    assert!((left() - 10.0).abs() < 1e-9);
    for spent in 1..=10_u8 {
        channel.retry(at(0)).expect("ten of credit").start();
        assert!((left() - (10.0 - f64::from(spent))).abs() < 1e-9);
    }
    assert!(channel.retry(at(0)).is_none());
}

#[test]
fn typed_names_are_bounded_and_never_push_out_configured_ones() {
    let state = State::new(Limits {
        typed_channels: 16,
        ..Limits::default()
    });
    open(&configured(&state, "ours"), at(0));
    let busy = typed(&state, "busy");
    for n in 0..1_000 {
        typed(&state, &format!("typo-{n}"));
        assert!(state.channels(at(0)).len() <= 17);
        typed(&state, "often").on_request(at(0));
    }
    assert!(Arc::ptr_eq(&busy, &typed(&state, "busy")), "in use");
    let often = state.peek(&channel_id("often")).expect("used all the time");
    assert_eq!(often.view(Minted::ByCaller, at(0)).counts.requests, 1_000);
    assert!(state.peek(&channel_id("typo-0")).is_none());
    assert!(matches!(
        configured(&state, "ours").breaker_state(at(1)),
        Breaker::Open { .. }
    ));
}

#[test]
fn with_every_place_in_use_a_typed_name_works_unremembered() {
    let state = State::new(Limits {
        typed_channels: 1,
        ..Limits::default()
    });
    let first = typed(&state, "first");
    let second = typed(&state, "second");
    assert!(second.permit(at(0)).is_ok());
    assert!(state.peek(&channel_id("second")).is_none());
    drop(first);
    let second = typed(&state, "second");
    let peeked = state.peek(&channel_id("second")).expect("there is room");
    assert!(Arc::ptr_eq(&second, &peeked));
}

#[test]
fn a_reload_keeps_history_by_id_and_forgets_what_is_gone() {
    let state = State::new(Limits::default());
    for name in ["kept", "gone"] {
        open(&configured(&state, name), at(0));
    }
    open(&typed(&state, "typed"), at(0));
    state.retain(&HashSet::from([channel_id("kept")]), &HashSet::new());
    let names: Vec<String> = state
        .channels(at(1))
        .iter()
        .map(|view| view.id.to_string())
        .collect();
    assert_eq!(names, ["openai/kept", "openai/typed"]);
    let adopted = configured(&state, "typed");
    assert!(matches!(adopted.breaker_state(at(1)), Breaker::Open { .. }));
    assert_eq!(state.channels(at(1))[1].minted, Minted::ByConfig);
}

#[test]
fn newer_settings_count_and_older_ones_never_come_back() {
    let state = State::new(Limits::default());
    let strict = Params::default().with_streak(1).expect("in range");
    let bring = |version, breaker| {
        let params = ChannelParams {
            version,
            breaker,
            ..ChannelParams::default()
        };
        state.channel(&channel_id("m"), &params, Minted::ByConfig)
    };
    bring(1, Params::default());
    bring(2, strict);
    let channel = bring(1, Params::default());
    let permit = channel.permit(at(0)).expect("closed");
    assert!(permit.settle(at(0), Outcome::Failure).is_some(), "strict");
    assert_eq!(state.channels(at(0))[0].counts.opened, 1);
}

/// A pool of two keys and a way to ask it.
struct Keyring {
    pool: Pool,
    model: ModelName,
}

impl Keyring {
    fn new(remembers: bool) -> Self {
        let key = |name| {
            let id = KeyId::new(&openai(), name);
            Key::new(id, 1.0, ModelList::Any).expect("in range")
        };
        let pool = Pool::new(vec![key("a"), key("b")]).expect("names differ");
        Self {
            pool: pool.remembering(remembers),
            model: ModelName::new("m"),
        }
    }

    fn ask(&self, now: Moment) -> Ask<'_> {
        Ask {
            pool: &self.pool,
            model: &self.model,
            subset: None,
            now,
        }
    }

    fn first(&self, state: &State, now: Moment) -> Result<LeaseGuard, NoKey> {
        state.choose_key(&mut Walk::new(None), &self.ask(now), Roll::LOWEST)
    }
}

fn name(lease: &LeaseGuard) -> &str {
    lease.key().expect("the pool has keys").name()
}

const REVOKED: Refusal = Refusal::Permanent(Permanent::Credential);

#[test]
fn a_refused_key_is_passed_by_until_one_request_saw_it_work() {
    let (state, ring) = (State::new(Limits::default()), Keyring::new(true));
    let lease = ring.first(&state, at(0)).expect("free");
    assert_eq!(name(&lease), "a");
    lease.refused(REVOKED, None, at(0));
    assert_eq!(name(&ring.first(&state, at(1)).expect("b")), "b");
    let ends: [fn(LeaseGuard); 2] = [drop, LeaseGuard::served];
    for end in ends {
        let probe = ring.first(&state, at(30)).expect("due");
        assert_eq!((name(&probe), probe.is_probe()), ("a", true));
        assert!(state.held_keys(at(30))[0].probing);
        assert_eq!(name(&ring.first(&state, at(30)).expect("b")), "b");
        end(probe);
    }
    assert!(state.held_keys(at(30)).is_empty());
    assert!(
        state.keys.is_quiet(&ring.ask(at(30))),
        "no lock is needed again"
    );
    assert!(!ring.first(&state, at(30)).expect("free").is_probe());
}

#[test]
fn when_all_are_held_the_least_held_can_be_leased_all_the_same() {
    let (state, ring) = (State::new(Limits::default()), Keyring::new(true));
    for seconds in [0, 1] {
        let lease = ring.first(&state, at(seconds)).expect("free");
        lease.refused(
            Refusal::RateLimited,
            Some(Duration::from_secs(20)),
            at(seconds),
        );
    }
    let mut walk = Walk::new(None);
    let ask = ring.ask(at(2));
    assert!(state.key_outlook(&walk, &ask).is_err());
    let Err(NoKey::Held { until, least }) = state.choose_key(&mut walk, &ask, Roll::LOWEST) else {
        panic!("both are held");
    };
    assert_eq!((until, least.name()), (at(20), "a"));
    state.lease_key(&ask, &least).served();
    assert!(state.key_outlook(&walk, &ring.ask(at(20))).is_ok());
    assert_eq!(state.held_keys(at(21)), [], "and nothing stays behind");
}

#[test]
fn a_forgetful_pool_and_a_changed_key_start_anew() {
    let (state, ring) = (State::new(Limits::default()), Keyring::new(false));
    ring.first(&state, at(0))
        .expect("free")
        .refused(REVOKED, None, at(0));
    assert_eq!(name(&ring.first(&state, at(0)).expect("free")), "a");
    let ring = Keyring::new(true);
    ring.first(&state, at(0))
        .expect("free")
        .refused(REVOKED, None, at(0));
    state.forget_keys([&KeyId::new(&openai(), "a")]);
    assert_eq!(name(&ring.first(&state, at(0)).expect("free")), "a");
    ring.first(&state, at(0))
        .expect("free")
        .refused(REVOKED, None, at(0));
    state.retain(&HashSet::new(), &HashSet::new());
    assert_eq!(state.held_keys(at(0)), []);
}

#[test]
fn of_many_at_once_exactly_one_goes_to_see_a_held_key() {
    for _ in 0..50 {
        let (state, ring) = (State::new(Limits::default()), Keyring::new(true));
        ring.first(&state, at(0))
            .expect("free")
            .refused(REVOKED, None, at(0));
        let start = Barrier::new(8);
        let probes = thread::scope(|scope| {
            let ask = || {
                start.wait();
                ring.first(&state, at(30)).expect("b is free")
            };
            let asked: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
            let leases: Vec<_> = asked
                .into_iter()
                .map(|one| one.join().expect("asked"))
                .collect();
            leases.iter().filter(|lease| lease.is_probe()).count()
        });
        assert_eq!(probes, 1);
        assert!(!state.held_keys(at(30))[0].probing, "and it came back");
    }
}

#[test]
fn a_keyless_provider_is_leased_without_a_key() {
    let state = State::new(Limits::default());
    let ring = Keyring {
        pool: Pool::keyless(),
        model: ModelName::new("m"),
    };
    let lease = ring.first(&state, at(0)).expect("no key needed");
    assert_eq!(lease.key(), None);
    lease.refused(REVOKED, None, at(0));
    assert!(ring.first(&state, at(0)).is_ok());
    assert_eq!(state.held_keys(at(0)), []);
}

#[test]
fn waits_are_kept_apart_by_kind_and_failures_count_against_both() {
    use crate::Answering::{Streamed, Whole};
    let state = State::new(Limits::default());
    let channel = configured(&state, "m");
    let end = |outcome, answering, millis| {
        let permit = channel.permit(at(0)).expect("closed");
        permit.settle_timed(at(0), outcome, answering, Duration::from_millis(millis));
    };
    let waits = || {
        [Streamed, Whole].map(|answering| {
            let load = channel.load(at(0), answering);
            load.latency.map(|wait| wait.as_millis())
        })
    };
    assert_eq!(waits(), [None, None]);
    end(Outcome::Success, Streamed, 300);
    assert_eq!(waits(), [Some(300), None]);
    end(Outcome::Success, Whole, 4_000);
    assert_eq!(waits(), [Some(300), Some(4_000)]);
    end(Outcome::Ignored, Whole, 90_000);
    assert_eq!(waits(), [Some(300), Some(4_000)]);
    end(Outcome::Failure, Whole, 5);
    assert_eq!(waits(), [Some(1_000), Some(8_000)]);
    end(Outcome::RateLimited, Streamed, 5);
    assert_eq!(waits(), [Some(2_000), Some(16_000)]);
    let _out = channel.permit(at(0)).expect("closed");
    assert_eq!(channel.load(at(0), Whole).in_flight, 1);
}

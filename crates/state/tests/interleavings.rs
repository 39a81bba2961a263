//! The cells that requests share, under every order in which their threads can meet.
//!
//! The sources of this crate are compiled once more, with [loom](https://docs.rs/loom)'s locks and
//! counters in the place of `sync.rs`. Loom then plays each case again and again, with another
//! interleaving each time, until there is none left (at most three preemptions each, which keeps a
//! case under a second or two; `LOOM_MAX_PREEMPTIONS` allows more).

#![allow(
    dead_code,
    unreachable_pub,
    reason = "a second home of the crate's own modules, of which only some parts are asked"
)]

#[path = "../src/channel.rs"]
mod channel;
#[path = "../src/channels.rs"]
mod channels;
#[path = "../src/keys.rs"]
mod keys;

/// What `src/sync.rs` names, by the model checker.
mod sync {
    pub(crate) use std::sync::{Arc, PoisonError};

    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
    pub(crate) use loom::sync::{Mutex, MutexGuard, RwLock};

    pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

use std::sync::Arc;

use backstop_backoff::BudgetParams;
use backstop_breaker::{Outcome, Params, State};
use backstop_keypool::{Ask, HoldParams, Key, ModelList, Permanent, Pool, Refusal, Walk};
use backstop_units::{ChannelId, KeyId, ModelName, Moment, ProviderId, Roll};
use channel::{ChannelCell, ChannelParams, PermitGuard};
use channels::{Channels, Minted};
use keys::{Keys, LeaseGuard};
use loom::thread;

const fn at(seconds: u64) -> Moment {
    Moment::from_millis(seconds * 1_000)
}

fn check(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(3));
    builder.check(model);
}

fn id(model: &str) -> ChannelId {
    ChannelId::new(&ProviderId::new("p"), &ModelName::new(model), &[])
}

/// Does both at the same time: one on a thread of its own.
fn both<A: Send + 'static, B>(
    one: impl FnOnce() -> A + Send + 'static,
    other: impl FnOnce() -> B,
) -> (A, B) {
    let thread = thread::spawn(one);
    let other = other();
    (thread.join().expect("no panic"), other)
}

/// A channel whose breaker opened at the start, after a single failure.
fn opened() -> Arc<ChannelCell> {
    let params = ChannelParams {
        breaker: Params::default().with_streak(1).expect("in range"),
        ..ChannelParams::default()
    };
    let cell = ChannelCell::new(id("m"), &params);
    let permit = cell.permit(at(0)).expect("closed");
    permit.settle(at(0), Outcome::Failure);
    cell
}

#[test]
fn of_two_who_come_together_one_probes() {
    check(|| {
        let cell = opened();
        let other = Arc::clone(&cell);
        let (a, b) = both(move || other.permit(at(5)).ok(), || cell.permit(at(5)).ok());
        let probes = a.iter().chain(&b).filter(|permit| permit.is_probe());
        assert_eq!(probes.count(), 1);
        assert_eq!(a.iter().chain(&b).count(), 1, "and the other is refused");
        assert_eq!(cell.in_flight(), 1);
    });
}

#[test]
fn a_probe_that_ends_frees_its_slot_whoever_comes_then() {
    let ends: [fn(PermitGuard); 4] = [
        |probe| _ = probe.settle(at(5), Outcome::Success),
        |probe| _ = probe.settle(at(5), Outcome::Failure),
        |probe| _ = probe.settle(at(5), Outcome::Ignored),
        drop,
    ];
    for end in ends {
        check(move || {
            let cell = opened();
            let probe = cell.permit(at(5)).expect("half-open");
            let other = Arc::clone(&cell);
            let ((), second) = both(move || end(probe), move || other.permit(at(5)).ok());
            drop(second);
            assert_eq!(cell.in_flight(), 0);
            assert!(cell.permit(at(60)).is_ok(), "closed, or free to probe");
        });
    }
}

#[test]
fn a_forced_attempt_beside_a_probe_disturbs_neither() {
    check(|| {
        let cell = opened();
        let other = Arc::clone(&cell);
        let probe = move || {
            let probe = other.permit(at(5)).ok();
            probe.map(|probe| probe.settle(at(5), Outcome::Success))
        };
        // Who is forced through first is the probe, and then the other is refused.
        let (probed, ()) = both(probe, || {
            cell.force(at(5)).settle(at(5), Outcome::Ignored);
        });
        assert_eq!(cell.in_flight(), 0);
        let closed = matches!(cell.breaker_state(at(5)), State::Closed);
        assert_eq!(closed, probed.is_some());
        assert!(cell.permit(at(5)).is_ok(), "closed, or free to probe");
    });
}

#[test]
fn a_budget_is_never_overdrawn_and_what_was_not_used_comes_back() {
    check(|| {
        let params = ChannelParams {
            budget: BudgetParams::new(0.0, 0.0, 1.0).expect("in range"),
            ..ChannelParams::default()
        };
        let cell = ChannelCell::new(id("m"), &params);
        let other = Arc::clone(&cell);
        let (a, b) = both(move || other.retry(at(0)), || cell.retry(at(0)));
        assert_eq!(a.iter().chain(&b).count(), 1, "of one retry");
        // One starts and one is given up: whichever was granted decides what is left.
        let spent = b.is_some();
        drop(a);
        if let Some(retry) = b {
            retry.start();
        }
        assert_eq!(cell.budget_spend(at(0)), !spent);
    });
}

#[test]
fn of_two_configurations_the_newer_one_stays() {
    check(|| {
        let with = |version, streak| ChannelParams {
            version,
            breaker: Params::default().with_streak(streak).expect("in range"),
            ..ChannelParams::default()
        };
        let cell = ChannelCell::new(id("m"), &with(1, 5));
        let other = Arc::clone(&cell);
        both(
            move || other.update(&with(3, 1)),
            || cell.update(&with(2, 4)),
        );
        let permit = cell.permit(at(0)).expect("closed");
        assert!(
            permit.settle(at(0), Outcome::Failure).is_some(),
            "version 3 opens after one failure"
        );
    });
}

#[test]
fn two_who_name_a_channel_mean_the_same_one() {
    check(|| {
        let channels = Arc::new(Channels::new(1));
        let other = Arc::clone(&channels);
        let find = |channels: &Channels, model, minted| {
            channels.find_or_mint(&id(model), &ChannelParams::default(), minted)
        };
        let (a, b) = both(
            move || find(&other, "m", Minted::ByConfig),
            || find(&channels, "m", Minted::ByCaller),
        );
        assert!(Arc::ptr_eq(&a, &b));
        let view = channels.views(at(0));
        assert_eq!((view.len(), view[0].minted), (1, Minted::ByConfig));
    });
}

#[test]
fn typed_names_stay_within_their_bound() {
    check(|| {
        let channels = Arc::new(Channels::new(1));
        let other = Arc::clone(&channels);
        let name = |channels: &Channels, model| {
            drop(channels.find_or_mint(&id(model), &ChannelParams::default(), Minted::ByCaller));
        };
        both(move || name(&other, "m"), || name(&channels, "n"));
        assert_eq!(channels.views(at(0)).len(), 1);
    });
}

/// Two keys, and what is held against them.
struct Ring {
    keys: Arc<Keys>,
    pool: Pool,
    model: ModelName,
}

const REVOKED: Refusal = Refusal::Permanent(Permanent::Credential);

impl Ring {
    fn new() -> Arc<Self> {
        let provider = ProviderId::new("p");
        let key =
            |name| Key::new(KeyId::new(&provider, name), 1.0, ModelList::Any).expect("in range");
        Arc::new(Self {
            keys: Arc::new(Keys::new(HoldParams::default())),
            pool: Pool::new(vec![key("a"), key("b")]).expect("names differ"),
            model: ModelName::new("m"),
        })
    }

    fn ask(&self, now: Moment) -> Ask<'_> {
        Ask {
            pool: &self.pool,
            model: &self.model,
            subset: None,
            now,
        }
    }

    fn first(&self, now: Moment) -> LeaseGuard {
        let mut walk = Walk::new(None);
        let chosen = self.keys.choose(&mut walk, &self.ask(now), Roll::LOWEST);
        chosen.expect("one of two is free")
    }

    fn held(&self) -> usize {
        self.keys.with(|holds| holds.rows(at(30)).len())
    }
}

#[test]
fn of_two_who_come_together_one_goes_to_see_a_held_key() {
    check(|| {
        let ring = Ring::new();
        ring.first(at(0)).refused(REVOKED, None, at(0));
        let other = Arc::clone(&ring);
        let (a, b) = both(move || other.first(at(30)), || ring.first(at(30)));
        let probes = [&a, &b].into_iter().filter(|lease| lease.is_probe());
        assert_eq!(probes.count(), 1);
        assert_ne!(a.key(), b.key(), "the other asks the other key");
        drop((a, b));
        assert!(ring.first(at(30)).is_probe(), "and its place is free again");
    });
}

#[test]
fn a_refusal_beside_a_success_is_not_lost() {
    check(|| {
        let ring = Ring::new();
        ring.first(at(0)).refused(REVOKED, None, at(0));
        // One request finds that the held key works, another is limited with the other key.
        let probe = ring.first(at(30));
        let limited = ring.first(at(30));
        both(
            move || probe.served(),
            || limited.refused(Refusal::RateLimited, None, at(30)),
        );
        assert!(!ring.keys.is_quiet(&ring.ask(at(30))), "later ones look");
        assert_eq!(ring.held(), 1);
    });
}

#[test]
fn a_key_refused_while_it_is_chosen_is_held_all_the_same() {
    check(|| {
        let ring = Ring::new();
        let lease = ring.first(at(0));
        let other = Arc::clone(&ring);
        let ((), chosen) = both(
            move || lease.refused(REVOKED, None, at(0)),
            move || other.first(at(0)),
        );
        chosen.served();
        let held = ring.held();
        let next = ring.first(at(1));
        let name = next.key().expect("it has keys").name();
        // A success that was under way may lift the hold, and then nothing is left of it.
        assert!(matches!((held, name), (1, "b") | (0, "a")), "{held} {name}");
    });
}

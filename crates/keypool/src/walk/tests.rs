//! Rows for the choices, laws for the walk.

use std::collections::HashSet;

use backstop_units::ProviderId;
use proptest::prelude::*;

use super::*;
use crate::ModelList;

const fn at(seconds: u64) -> Moment {
    Moment::from_millis(seconds * 1_000)
}

fn id(name: &str) -> KeyId {
    KeyId::new(&ProviderId::new("openai"), name)
}

fn pool(keys: &[(&str, f64, &[&str])]) -> Pool {
    let key = |&(name, weight, models): &(&str, f64, &[&str])| {
        Key::new(id(name), weight, ModelList::new(models.iter().copied())).expect("in range")
    };
    Pool::new(keys.iter().map(key).collect()).expect("names differ")
}

fn three() -> Pool {
    pool(&[("a", 1.0, &["*"]), ("b", 1.0, &["*"]), ("c", 1.0, &["*"])])
}

fn roll(value: f64) -> Roll {
    Roll::new(value).expect("in range")
}

/// A pool, what is held, and one walk through it.
struct Trip {
    pool: Pool,
    holds: Holds,
    walk: Walk,
    model: ModelName,
    now: Moment,
}

impl Trip {
    fn new(pool: Pool, walk: Walk) -> Self {
        Self {
            pool,
            holds: Holds::default(),
            walk,
            model: ModelName::new("m"),
            now: at(0),
        }
    }

    fn choose_by(&mut self, roll: Roll) -> Result<Choice, NoKey> {
        let ask = Ask {
            pool: &self.pool,
            model: &self.model,
            subset: None,
            now: self.now,
        };
        let outlook = self.walk.outlook(&ask, &self.holds);
        let choice = self.walk.choose(&ask, &self.holds, roll);
        match (&outlook, &choice) {
            (Ok(expected), Ok(choice)) => {
                let over = |outlook: Outlook| match outlook {
                    Outlook::Fresh => None,
                    Outlook::Again { ready } => Some(ready.max(self.now)),
                };
                assert_eq!(over(*expected), over(choice.outlook));
            }
            (Err(expected), Err(no_key)) => assert_eq!(expected, no_key),
            _ => panic!("{outlook:?} became {choice:?}"),
        }
        choice
    }

    /// The lowest roll's choice, by name.
    fn next(&mut self) -> String {
        let key = self.choose_by(Roll::LOWEST).expect("a key").key;
        key.expect("the pool has keys").name().to_owned()
    }

    /// Refuses a key as a driver does: on the walk and for everyone.
    fn refuse(&mut self, name: &str, refusal: Refusal, hint: Option<u64>) {
        let hint = hint.map(Duration::from_secs);
        self.walk.refuse(&id(name), refusal, hint, self.now);
        if self.pool.remembers() {
            let lease = self.holds.lease(&id(name), &self.model, self.now);
            self.holds.refused(lease, refusal, hint, self.now);
        }
    }

    /// Another request's refusal.
    fn hold(&mut self, name: &str, refusal: Refusal) {
        let lease = self.holds.lease(&id(name), &self.model, self.now);
        self.holds.refused(lease, refusal, None, self.now);
    }
}

const REVOKED: Refusal = Refusal::Permanent(Permanent::Credential);
const NO_MODEL: Refusal = Refusal::Permanent(Permanent::ModelAccess);
const LIMITED: Refusal = Refusal::RateLimited;

#[test]
fn weights_and_the_roll_decide_in_the_operators_order() {
    let weighted = pool(&[
        ("a", 1.0, &["*"]),
        ("drained", 0.0, &["*"]),
        ("other", 9.0, &["x"]),
        ("b", 3.0, &["m", "n"]),
    ]);
    for (value, want) in [(0.0, "a"), (0.249, "a"), (0.25, "b"), (0.999_999, "b")] {
        let mut trip = Trip::new(weighted.clone(), Walk::new(None));
        let choice = trip.choose_by(roll(value)).expect("a key");
        assert_eq!(choice.key, Some(id(want)), "{value}");
    }
    for (value, want) in [(0.0, "a"), (0.34, "b"), (0.67, "c")] {
        let mut trip = Trip::new(three(), Walk::new(None));
        let choice = trip.choose_by(roll(value)).expect("a key");
        assert_eq!(choice.key, Some(id(want)), "{value}");
    }
}

#[test]
fn a_pool_is_walked_past_dead_keys_which_are_granted() {
    let mut trip = Trip::new(three(), Walk::new(None));
    for name in ["a", "b", "c"] {
        assert_eq!(trip.next(), name);
        trip.refuse(name, REVOKED, None);
    }
    assert_eq!(trip.choose_by(Roll::LOWEST), Err(NoKey::Dead));
    assert_eq!(trip.walk.granted(), 3);
    assert_eq!(trip.walk.telling_death(), None, "all for account reasons");
}

#[test]
fn the_error_about_the_model_is_told_whichever_key_died_last() {
    let died = |deaths: &[Permanent]| {
        let mut walk = Walk::new(None);
        for (n, why) in deaths.iter().enumerate() {
            let refusal = Refusal::Permanent(*why);
            walk.refuse(&id(&n.to_string()), refusal, None, at(0));
        }
        walk.telling_death().map(|death| death.why)
    };
    use Permanent::{ContentPolicy, Credential, ModelAccess, Quota, RegionBlocked};
    for (deaths, want) in [
        (&[][..], None),
        (&[Credential, Quota], None),
        (&[ModelAccess, Credential], Some(ModelAccess)),
        (&[Credential, RegionBlocked, Quota], Some(RegionBlocked)),
        (&[ContentPolicy, Credential], Some(ContentPolicy)),
        (&[ModelAccess, ContentPolicy], Some(ModelAccess)),
    ] {
        assert_eq!(died(deaths), want, "{deaths:?}");
    }
}

#[test]
fn rate_limited_keys_come_back_once_every_living_key_was_asked() {
    let mut trip = Trip::new(three(), Walk::new(None));
    assert_eq!(trip.next(), "a");
    trip.refuse("a", LIMITED, None);
    assert_eq!(trip.next(), "b");
    trip.refuse("b", REVOKED, None);
    assert_eq!(trip.next(), "c");
    trip.refuse("c", LIMITED, None);
    for _ in 0..3 {
        for name in ["a", "c"] {
            let choice = trip.choose_by(Roll::LOWEST).expect("a key");
            assert_eq!(choice.key, Some(id(name)));
            assert!(matches!(choice.outlook, Outlook::Again { .. }));
            trip.refuse(name, LIMITED, None);
        }
    }
    assert_eq!(trip.walk.granted(), 1);
}

#[test]
fn a_new_round_starts_with_the_key_whose_hint_is_over_first() {
    let mut trip = Trip::new(three(), Walk::new(None));
    for (name, hint) in [("a", Some(60)), ("b", Some(4)), ("c", Some(20))] {
        assert_eq!(trip.next(), name);
        trip.refuse(name, LIMITED, hint);
    }
    let choice = trip.choose_by(Roll::LOWEST).expect("a key");
    assert_eq!(choice.key, Some(id("b")));
    assert_eq!(choice.outlook, Outlook::Again { ready: at(4) });
    trip.now = at(4);
    trip.refuse("b", LIMITED, Some(4));
    assert_eq!(trip.next(), "b", "at 8 s it is the soonest once more");
}

#[test]
fn keys_that_others_had_refused_are_passed_by_while_there_is_another() {
    let mut trip = Trip::new(three(), Walk::new(None));
    trip.hold("a", LIMITED);
    trip.now = at(1);
    trip.hold("b", REVOKED);
    assert_eq!(trip.next(), "c");
    trip.refuse("c", REVOKED, None);
    let held = NoKey::Held {
        until: at(10),
        least: id("a"),
    };
    assert_eq!(trip.choose_by(Roll::LOWEST), Err(held));
    // Taken after all, and limited: its own rest does not bar the way a second time.
    trip.refuse("a", LIMITED, None);
    assert_eq!(trip.next(), "a");
    trip.refuse("a", REVOKED, None);
    let held = NoKey::Held {
        until: at(31),
        least: id("b"),
    };
    assert_eq!(trip.choose_by(Roll::LOWEST), Err(held));
}

#[test]
fn a_new_round_leaves_out_a_key_that_was_revoked_meanwhile() {
    let mut trip = Trip::new(three(), Walk::new(None));
    for name in ["a", "b", "c"] {
        assert_eq!(trip.next(), name);
        trip.refuse(name, LIMITED, None);
    }
    trip.hold("a", REVOKED);
    assert_eq!(trip.next(), "b");
}

#[test]
fn a_suspended_key_is_chosen_as_the_probe_when_its_time_has_come() {
    let mut trip = Trip::new(three(), Walk::new(None));
    trip.hold("a", REVOKED);
    trip.now = at(30);
    assert_eq!(trip.next(), "a");
    let probe = trip.holds.lease(&id("a"), &trip.model, trip.now);
    assert!(probe.is_probe());
    assert_eq!(trip.next(), "b");
    trip.holds.released(probe);
    assert_eq!(trip.next(), "a");
}

#[test]
fn a_forgetful_pool_holds_nothing_out() {
    let mut trip = Trip::new(three().remembering(false), Walk::new(None));
    trip.hold("a", REVOKED);
    assert_eq!(trip.next(), "a");
}

#[test]
fn a_pinned_request_uses_its_key_and_no_other() {
    let keys = pool(&[("a", 1.0, &["*"]), ("b", 0.0, &["*"]), ("c", 1.0, &["x"])]);
    for (pin, want) in [
        ("b", Ok("b")),
        ("c", Err(NoKey::Unserved)),
        ("gone", Err(NoKey::Unserved)),
    ] {
        let mut trip = Trip::new(keys.clone(), Walk::new(Some(id(pin))));
        let choice = trip.choose_by(roll(0.9)).map(|choice| choice.key);
        assert_eq!(choice, want.map(|name| Some(id(name))));
    }
    let mut trip = Trip::new(keys, Walk::new(Some(id("b"))));
    trip.refuse("b", LIMITED, None);
    assert_eq!(trip.next(), "b");
    trip.refuse("b", REVOKED, None);
    assert_eq!(trip.choose_by(Roll::LOWEST), Err(NoKey::Dead));
}

#[test]
fn a_session_that_may_move_starts_at_its_key_and_walks_on() {
    let mut trip = Trip::new(three(), Walk::preferring(id("c")));
    assert_eq!(trip.next(), "c");
    trip.refuse("c", LIMITED, None);
    assert_eq!(trip.next(), "a");
    let mut trip = Trip::new(three(), Walk::preferring(id("c")));
    trip.hold("c", LIMITED);
    assert_eq!(trip.next(), "a");
}

#[test]
fn a_subset_and_a_model_list_narrow_the_pool() {
    let mut walk = Walk::new(None);
    let (keys, holds, model) = (three(), Holds::default(), ModelName::new("m"));
    let only = [id("b")];
    let ask = Ask {
        pool: &keys,
        model: &model,
        subset: Some(&only),
        now: at(0),
    };
    let choice = walk.choose(&ask, &holds, Roll::LOWEST).expect("b");
    assert_eq!(choice.key, Some(id("b")));
    walk.refuse(&id("b"), NO_MODEL, None, at(0));
    assert_eq!(walk.choose(&ask, &holds, Roll::LOWEST), Err(NoKey::Dead));
    let empty = Pool::new(Vec::new()).expect("no names");
    let ask = Ask {
        pool: &empty,
        ..ask
    };
    assert_eq!(
        walk.choose(&ask, &holds, Roll::LOWEST),
        Err(NoKey::Unserved)
    );
}

#[test]
fn a_keyless_provider_needs_no_key() {
    let mut trip = Trip::new(Pool::keyless(), Walk::new(None));
    assert_eq!(
        trip.choose_by(Roll::LOWEST).expect("no key needed").key,
        None
    );
    let mut trip = Trip::new(Pool::keyless(), Walk::new(Some(id("a"))));
    assert_eq!(trip.choose_by(Roll::LOWEST), Err(NoKey::Unserved));
}

#[test]
fn the_next_channel_of_a_request_keeps_what_was_said_about_the_account() {
    let mut walk = Walk::new(None);
    walk.refuse(&id("a"), REVOKED, None, at(0));
    walk.refuse(&id("b"), NO_MODEL, None, at(0));
    walk.refuse(&id("c"), LIMITED, None, at(0));
    for (preferred, want) in [(None, "b"), (Some("a"), "b"), (Some("c"), "c")] {
        let mut trip = Trip::new(three(), walk.next_leg(preferred.map(id)));
        assert_eq!(trip.walk.granted(), 0);
        assert_eq!(trip.next(), want);
    }
    // What bound the walk before binds no other channel's.
    for before in [Walk::new(Some(id("c"))), Walk::preferring(id("c"))] {
        let next = before.next_leg(None);
        assert!(!next.is_pinned());
        assert_eq!(Trip::new(three(), next).next(), "a");
    }
}

#[derive(Debug, Clone)]
enum Event {
    /// Choose with this roll, and let the choice be refused.
    Refused(f64, Refusal, Option<u64>),
    /// Choose with this roll, and let the attempt fail otherwise.
    Failed(f64),
    /// Another request meets a refusal of the key at this place.
    Elsewhere(usize, Refusal),
    Pass(u64),
}

fn event() -> impl Strategy<Value = Event> {
    let refusal = prop_oneof![
        4 => Just(LIMITED),
        1 => Just(REVOKED),
        1 => Just(NO_MODEL),
        1 => Just(Refusal::Permanent(Permanent::ContentPolicy)),
    ];
    let hint = proptest::option::of(0_u64..100);
    prop_oneof![
        4 => (0.0..1.0_f64, refusal.clone(), hint).prop_map(|(r, why, h)| Event::Refused(r, why, h)),
        2 => (0.0..1.0_f64).prop_map(Event::Failed),
        1 => (any::<usize>(), refusal).prop_map(|(which, why)| Event::Elsewhere(which, why)),
        2 => (0_u64..40).prop_map(Event::Pass),
    ]
}

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

proptest! {
    #[test]
    fn no_walk_returns_a_dead_key_or_loses_the_last_living_one(
        weights in proptest::collection::vec(0.01..10.0_f64, 1..6),
        events in proptest::collection::vec(event(), 0..60),
    ) {
        let keys: Vec<_> = weights.iter().zip(NAMES).map(|(w, n)| (n, *w, &["*"][..])).collect();
        let mut trip = Trip::new(pool(&keys), Walk::new(None));
        let mut dead = HashSet::new();
        let mut granted = 0;
        for event in events {
            let (value, refusal) = match event {
                Event::Refused(value, why, hint) => (value, Some((why, hint))),
                Event::Failed(value) => (value, None),
                Event::Elsewhere(which, why) => {
                    trip.hold(keys[which % keys.len()].0, why);
                    continue;
                }
                Event::Pass(by) => {
                    trip.now = trip.now + Duration::from_secs(by);
                    continue;
                }
            };
            let key = match trip.choose_by(roll(value)) {
                Ok(choice) => choice.key.expect("the pool has keys"),
                Err(NoKey::Held { until, least }) => {
                    prop_assert!(until > trip.now);
                    least
                }
                Err(NoKey::Dead) => {
                    prop_assert_eq!(dead.len(), keys.len());
                    continue;
                }
                Err(NoKey::Unserved) => panic!("every key serves every model"),
            };
            prop_assert!(!dead.contains(&key), "{key} is dead");
            if let Some((why, hint)) = refusal {
                trip.refuse(key.name(), why, hint);
                if why != LIMITED {
                    dead.insert(key);
                    granted += 1;
                }
            }
            prop_assert_eq!(trip.walk.granted(), granted);
        }
    }

    #[test]
    fn rounds_without_hints_ask_every_living_key_once(
        weights in proptest::collection::vec(0.01..10.0_f64, 1..6),
        rolls in proptest::collection::vec(0.0..1.0_f64, 40),
    ) {
        let keys: Vec<_> = weights.iter().zip(NAMES).map(|(w, n)| (n, *w, &["*"][..])).collect();
        let mut trip = Trip::new(pool(&keys), Walk::new(None));
        for round in rolls.chunks_exact(keys.len()) {
            let mut asked = HashSet::new();
            for value in round {
                let choice = trip.choose_by(roll(*value)).expect("a key");
                let key = choice.key.expect("the pool has keys");
                trip.refuse(key.name(), LIMITED, None);
                prop_assert!(asked.insert(key), "asked twice in a round");
            }
        }
    }
}

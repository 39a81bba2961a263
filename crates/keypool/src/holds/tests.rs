//! Rows for the decisions, laws for the probe.

use backstop_units::ProviderId;
use proptest::prelude::*;

use super::*;

const fn at(seconds: u64) -> Moment {
    Moment::from_millis(seconds * 1_000)
}

fn key() -> KeyId {
    KeyId::new(&ProviderId::new("openai"), "a")
}

fn model(name: &str) -> ModelName {
    ModelName::new(name)
}

fn refuse(holds: &mut Holds, name: &str, refusal: Refusal, hint: Option<u64>, now: Moment) {
    let lease = holds.lease(&key(), &model(name), now);
    holds.refused(lease, refusal, hint.map(Duration::from_secs), now);
}

fn until(holds: &Holds, name: &str, now: Moment) -> Option<Moment> {
    holds.held(&key(), &model(name), now).map(|held| held.until)
}

const REVOKED: Refusal = Refusal::Permanent(Permanent::Credential);

#[test]
fn a_rate_limit_rests_the_key_for_the_model_as_long_as_the_hint_and_at_least_ten_seconds() {
    for (hint, want) in [
        (None, 10),
        (Some(1), 10),
        (Some(20), 20),
        (Some(999_999_999), 300),
    ] {
        let mut holds = Holds::default();
        refuse(&mut holds, "m", Refusal::RateLimited, hint, at(0));
        assert_eq!(until(&holds, "m", at(1)), Some(at(want)), "{hint:?}");
        assert_eq!(until(&holds, "m", at(want)), None);
        assert_eq!(until(&holds, "other", at(1)), None);
        refuse(&mut holds, "m", Refusal::RateLimited, None, at(1));
        assert_eq!(
            until(&holds, "m", at(1)),
            Some(at(want.max(11))),
            "never shorter"
        );
        holds.tidy(at(want.max(11)));
        assert!(holds.is_empty(), "nothing stays behind");
    }
}

#[test]
fn account_reasons_hold_the_whole_key_and_model_reasons_the_model() {
    use Permanent::{ContentPolicy, Credential, ModelAccess, ModelGone, Quota, RegionBlocked};
    for (why, same, other) in [
        (Credential, true, true),
        (Quota, true, true),
        (ModelAccess, true, false),
        (ModelGone, true, false),
        (RegionBlocked, true, false),
        (ContentPolicy, false, false),
    ] {
        let mut holds = Holds::default();
        refuse(&mut holds, "m", Refusal::Permanent(why), Some(1), at(0));
        assert_eq!(until(&holds, "m", at(1)).is_some(), same, "{why:?}");
        assert_eq!(until(&holds, "other", at(1)).is_some(), other, "{why:?}");
    }
}

#[test]
fn one_request_looks_again_and_each_refusal_doubles_the_hold() {
    let mut holds = Holds::default();
    refuse(&mut holds, "m", REVOKED, None, at(0));
    let (mut due, mut lasted) = (30, 30);
    for _ in 0..6 {
        assert!(until(&holds, "m", at(due - 1)).is_some());
        assert_eq!(holds.standing(&key(), &model("m"), at(due)), Standing::Due);
        let probe = holds.lease(&key(), &model("m"), at(due));
        assert!(probe.is_probe());
        let other = holds.lease(&key(), &model("other"), at(due));
        assert!(!other.is_probe(), "one is enough");
        assert_eq!(until(&holds, "m", at(due + 1)), Some(at(due + 1 + lasted)));
        holds.refused(other, REVOKED, None, at(due + 1));
        holds.refused(probe, REVOKED, None, at(due + 1));
        lasted = (lasted * 2).min(600);
        due += 1 + lasted;
        assert_eq!(until(&holds, "m", at(due - 1)), Some(at(due)));
    }
    let probe = holds.lease(&key(), &model("m"), at(due));
    holds.served(probe);
    assert!(holds.is_empty());
}

#[test]
fn a_probe_that_learns_nothing_frees_its_place() {
    let mut holds = Holds::default();
    refuse(&mut holds, "m", REVOKED, None, at(0));
    let probe = holds.lease(&key(), &model("m"), at(30));
    holds.released(probe);
    let probe = holds.lease(&key(), &model("m"), at(31));
    assert!(probe.is_probe());
    holds.refused(probe, Refusal::RateLimited, None, at(31));
    assert!(!holds.lease(&key(), &model("m"), at(29)).is_probe());
    assert!(holds.lease(&key(), &model("other"), at(41)).is_probe());
}

#[test]
fn an_old_success_does_not_bring_a_revoked_key_back_and_a_forced_one_does() {
    let mut holds = Holds::default();
    let early = Lease::unheld(key(), model("m"));
    refuse(&mut holds, "m", REVOKED, None, at(0));
    holds.served(early);
    assert!(until(&holds, "m", at(1)).is_some());
    let forced = holds.lease(&key(), &model("m"), at(1));
    assert!(!forced.is_probe());
    holds.refused(forced, REVOKED, None, at(2));
    assert_eq!(until(&holds, "m", at(3)), Some(at(30)), "not prolonged");
    let forced = holds.lease(&key(), &model("m"), at(3));
    holds.served(forced);
    assert_eq!(until(&holds, "m", at(3)), None);
}

#[test]
fn names_that_callers_type_do_not_pile_up() {
    let mut holds = Holds::default();
    let refusal = Refusal::Permanent(Permanent::ModelAccess);
    for n in 0..10_000 {
        refuse(&mut holds, &format!("typo-{n}"), refusal, None, at(n / 100));
    }
    let rows = holds.rows(at(100));
    assert_eq!(rows.len(), MODELS);
    assert!(rows.iter().any(|row| row.model == Some(model("typo-9999"))));
    assert!(rows.is_sorted_by_key(|row| row.model.clone()));
    holds.tidy(at(100 + 30 + 600));
    assert!(holds.is_empty(), "and nobody asked for them again");
}

#[test]
fn a_reload_forgets_removed_and_changed_keys() {
    let mut holds = Holds::default();
    for forget in [true, false] {
        refuse(&mut holds, "m", REVOKED, None, at(0));
        if forget {
            holds.forget(&key());
        } else {
            holds.retain(|kept| *kept != key());
        }
        assert!(holds.is_empty());
    }
}

#[test]
fn senseless_times_are_refused() {
    let s = Duration::from_secs;
    for (first, longest, good) in [
        (s(1), s(1), true),
        (s(0), s(1), false),
        (s(2), s(1), false),
        (s(1), Duration::MAX, false),
    ] {
        assert_eq!(HoldParams::new(first, longest).is_ok(), good);
    }
}

#[derive(Debug, Clone)]
enum Event {
    Lease,
    Served(usize),
    Refused(usize, Refusal),
    Released(usize),
    Pass(u64),
}

fn event() -> impl Strategy<Value = Event> {
    let refusal = prop_oneof![
        Just(Refusal::RateLimited),
        Just(REVOKED),
        Just(Refusal::Permanent(Permanent::Quota)),
    ];
    prop_oneof![
        5 => Just(Event::Lease),
        1 => any::<usize>().prop_map(Event::Served),
        3 => (any::<usize>(), refusal).prop_map(|(which, why)| Event::Refused(which, why)),
        1 => any::<usize>().prop_map(Event::Released),
        3 => (0_u64..60).prop_map(Event::Pass),
    ]
}

proptest! {
    #[test]
    fn at_most_one_probe_is_out_and_every_end_frees_it(
        events in proptest::collection::vec(event(), 0..200),
    ) {
        let mut holds = Holds::default();
        let mut out: Vec<Lease> = Vec::new();
        let mut now = 0;
        for event in events {
            let take = |out: &mut Vec<Lease>, which: usize| {
                (!out.is_empty()).then(|| out.swap_remove(which % out.len()))
            };
            match event {
                Event::Lease => {
                    // Requests with an alternative leave held keys alone.
                    if holds.held(&key(), &model("m"), at(now)).is_none() {
                        out.push(holds.lease(&key(), &model("m"), at(now)));
                    }
                }
                Event::Served(which) => {
                    if let Some(lease) = take(&mut out, which) {
                        holds.served(lease);
                    }
                }
                Event::Refused(which, why) => {
                    if let Some(lease) = take(&mut out, which) {
                        holds.refused(lease, why, None, at(now));
                    }
                }
                Event::Released(which) => {
                    if let Some(lease) = take(&mut out, which) {
                        holds.released(lease);
                    }
                }
                Event::Pass(by) => now += by,
            }
            holds.tidy(at(now));
            prop_assert!(out.iter().filter(|lease| lease.is_probe()).count() <= 1);
            if let Some(held) = holds.held(&key(), &model("m"), at(now)) {
                prop_assert!(held.until > at(now), "a hold is never over already");
            }
        }
        for lease in out {
            holds.released(lease);
        }
        prop_assert_eq!(holds.held(&key(), &model("m"), at(now + 601)), None);
    }
}

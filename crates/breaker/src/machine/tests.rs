//! Rows for the decisions, and a small reference model for the laws.

use proptest::prelude::*;

use super::*;
use crate::params::{OpenTime, RatioRule};

const fn at(millis: u64) -> Moment {
    Moment::from_millis(millis)
}

/// What a row does to the breaker, at the moment beside it.
#[derive(Debug, Clone, Copy)]
enum Do {
    /// An attempt that starts and ends at once.
    Try(Outcome),
    /// As many of them.
    Times(u32, Outcome),
    /// A forced attempt that ends at once.
    Force(Outcome),
    /// An attempt that must be refused.
    Refused,
    /// Nothing.
    Look,
}

fn check(params: Params, rows: &[(u64, Do, State)]) {
    let mut breaker = Breaker::new(params);
    for (line, &(millis, action, want)) in rows.iter().enumerate() {
        let now = at(millis);
        match action {
            Do::Try(outcome) => {
                let permit = breaker.permit(now).expect("granted");
                breaker.settle(now, permit, outcome);
            }
            Do::Times(count, outcome) => {
                for _ in 0..count {
                    let permit = breaker.permit(now).expect("granted");
                    breaker.settle(now, permit, outcome);
                }
            }
            Do::Force(outcome) => {
                let permit = breaker.force(now);
                breaker.settle(now, permit, outcome);
            }
            Do::Refused => assert!(breaker.permit(now).is_err(), "row {line}"),
            Do::Look => {}
        }
        assert_eq!(breaker.state(now), want, "row {line}");
    }
}

const fn open(until: u64) -> State {
    State::Open { until: at(until) }
}

const READY: State = State::HalfOpen { probing: false };

use Do::{Force, Look, Refused as No, Times, Try};
use Outcome::{Failure, Ignored, RateLimited, Success};
use State::Closed;

#[test]
fn five_failures_in_a_row_open_it_and_nothing_else_counts() {
    check(
        Params::default(),
        &[
            (0, Times(4, Failure), Closed),
            (0, Try(Success), Closed),
            (0, Times(4, Failure), Closed),
            (0, Times(9, Ignored), Closed),
            (0, Times(3, RateLimited), Closed),
            (1, Try(Failure), open(5_001)),
            (2, No, open(5_001)),
        ],
    );
}

#[test]
fn the_open_time_grows_after_each_failed_probe_up_to_a_minute() {
    check(
        Params::default(),
        &[
            (0, Times(5, Failure), open(5_000)),
            (5_000, Look, READY),
            (5_000, Try(Failure), open(12_500)),
            (12_499, No, open(12_500)),
            (12_500, Try(Failure), open(23_750)),
            (99_000, Look, READY),
            (99_000, Try(Success), Closed),
            (99_000, Times(5, Failure), open(104_000)),
        ],
    );
    let params = Params::default();
    let longest = (0..20).fold(params.first_open(), |last, _| params.grown(last));
    assert_eq!(longest, Duration::from_secs(60));
}

#[test]
fn a_probe_frees_its_slot_however_it_ends() {
    let down = (0, Times(5, Failure), open(5_000));
    check(
        Params::default(),
        &[
            down,
            (5_000, Try(Ignored), READY),
            (5_001, Try(RateLimited), open(10_001)),
            (10_001, Try(Failure), open(17_501)),
            (17_501, Try(Success), Closed),
        ],
    );
}

#[test]
fn forced_attempts_may_close_it_and_never_prolong_it() {
    let down = (0, Times(5, Failure), open(5_000));
    check(
        Params::default(),
        &[
            down,
            (1_000, Force(Failure), open(5_000)),
            (1_001, Force(RateLimited), open(5_000)),
            (1_002, Force(Ignored), open(5_000)),
            (1_003, Force(Success), Closed),
        ],
    );
}

#[test]
fn the_share_of_successes_is_judged_from_twenty_samples_on() {
    check(
        Params::default(),
        &[
            (0, Times(9, Success), Closed),
            (0, Times(4, Failure), Closed),
            (0, Times(6, RateLimited), Closed),
            (40_000, Times(9, Success), Closed),
            (40_001, Times(10, RateLimited), Closed),
            (40_002, Try(RateLimited), open(45_002)),
        ],
    );
    check(
        Params::default().without_ratio(),
        &[(0, Times(99, RateLimited), Closed)],
    );
    check(
        Params::never(),
        &[
            (0, Times(99, RateLimited), Closed),
            (0, Times(99, Failure), Closed),
        ],
    );
}

#[test]
fn attempts_from_before_an_opening_decide_nothing_after_it() {
    let mut breaker = Breaker::new(Params::default());
    let mut early: Vec<Permit> = (0..9)
        .map(|_| breaker.permit(at(0)).expect("closed"))
        .collect();
    for permit in early.drain(..5) {
        breaker.settle(at(1), permit, Failure);
    }
    assert_eq!(breaker.state(at(1)), open(5_001));
    let probe = breaker.permit(at(5_001)).expect("probe");
    assert_eq!(
        breaker.settle(at(5_002), early.pop().expect("one"), Success),
        None
    );
    assert_eq!(breaker.permit(at(5_002)), Err(Refused::Probing));
    assert_eq!(
        breaker.settle(at(5_003), probe, Success),
        Some(Transition::Closed)
    );
    for permit in early {
        breaker.settle(at(5_004), permit, Failure);
    }
    check_streak_is_zero(&mut breaker);
}

fn check_streak_is_zero(breaker: &mut Breaker) {
    for _ in 0..4 {
        let permit = breaker.permit(at(6_000)).expect("closed");
        assert_eq!(breaker.settle(at(6_000), permit, Failure), None);
    }
}

#[test]
fn a_reload_keeps_history_and_never_means_never() {
    let mut breaker = Breaker::new(Params::default());
    for _ in 0..4 {
        let permit = breaker.permit(at(0)).expect("closed");
        breaker.settle(at(0), permit, Failure);
    }
    breaker.set_params(Params::default().with_streak(2).expect("in range"));
    let permit = breaker.permit(at(0)).expect("closed");
    let opened = breaker.settle(at(0), permit, Failure);
    assert!(matches!(
        opened,
        Some(Transition::Opened {
            by: Trigger::Streak,
            ..
        })
    ));
    assert_eq!(breaker.reopens_at(at(1)), Some(at(5_000)));
    assert_eq!(breaker.reopens_at(at(5_000)), None, "nothing in the past");
    breaker.set_params(Params::never());
    assert_eq!(breaker.state(at(1)), Closed);
}

/// The rules once more, as plainly as they can be said: a list of samples, no ring, no terms.
struct Model {
    params: Params,
    rule: RatioRule,
    samples: Vec<(u64, bool)>,
    streak: u32,
    state: Told,
    changes: usize,
}

#[derive(Clone, Copy)]
enum Told {
    Closed,
    Open(u64, Duration),
    Probing(Duration),
}

/// A permit with what the model knows of it.
struct Out {
    permit: Permit,
    given_after: usize,
}

impl Model {
    fn state(&self, now: u64) -> State {
        match self.state {
            Told::Closed => State::Closed,
            Told::Open(until, _) if now < until => open(until),
            Told::Open(..) => READY,
            Told::Probing(_) => State::HalfOpen { probing: true },
        }
    }

    fn permit(&mut self, now: u64) -> bool {
        if let (State::HalfOpen { probing: false }, Told::Open(_, lasted)) =
            (self.state(now), self.state)
        {
            self.state = Told::Probing(lasted);
            return true;
        }
        matches!(self.state, Told::Closed)
    }

    fn settle(&mut self, now: u64, out: &Out, outcome: Outcome) {
        if out.given_after != self.changes {
            return;
        }
        match (self.state, outcome) {
            (Told::Probing(lasted), _) if out.permit.is_probe() => match outcome {
                Success => self.close(),
                Failure => self.open(now, self.params.grown(lasted)),
                RateLimited => self.open(now, lasted),
                Ignored => self.state = Told::Open(0, lasted),
            },
            (Told::Open(..), Success) if out.permit.is_forced() => self.close(),
            (Told::Closed, Success | Failure | RateLimited) => self.count(now, outcome),
            _ => {}
        }
    }

    fn count(&mut self, now: u64, outcome: Outcome) {
        self.samples.push((now, outcome == Success));
        match outcome {
            Success => self.streak = 0,
            Failure => self.streak += 1,
            RateLimited | Ignored => {}
        }
        let tenth = u64::try_from(self.rule.window.as_millis() / 10).expect("small");
        let recent = |&&(then, _): &&(u64, bool)| then / tenth + 10 > now / tenth;
        let all = self.samples.iter().filter(recent).count();
        let good = self.samples.iter().filter(recent).filter(|s| s.1).count();
        let low = all >= 8 && good * 2 < all;
        if outcome != Success && (self.streak >= 3 || low) {
            self.open(now, self.params.first_open());
        }
    }

    fn open(&mut self, now: u64, lasted: Duration) {
        self.state = Told::Open(
            now + u64::try_from(lasted.as_millis()).expect("small"),
            lasted,
        );
        self.changes += 1;
    }

    fn close(&mut self) {
        self.state = Told::Closed;
        self.streak = 0;
        self.samples.clear();
        self.changes += 1;
    }
}

#[derive(Debug, Clone)]
enum Event {
    Ask,
    Force,
    End(usize, Outcome),
    Drop(usize),
    Pass(u64),
}

fn event() -> impl Strategy<Value = Event> {
    let outcome = prop_oneof![
        3 => Just(Success),
        6 => Just(Failure),
        2 => Just(RateLimited),
        1 => Just(Ignored),
    ];
    prop_oneof![
        6 => Just(Event::Ask),
        1 => Just(Event::Force),
        6 => (any::<usize>(), outcome).prop_map(|(which, how)| Event::End(which, how)),
        1 => any::<usize>().prop_map(Event::Drop),
        2 => (0_u64..1_500).prop_map(Event::Pass),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn it_agrees_with_the_model_and_never_has_two_probes_out(
        events in proptest::collection::vec(event(), 0..400),
    ) {
        let rule = RatioRule { min_samples: 8, window: Duration::from_secs(2), ..RatioRule::default() };
        let time = OpenTime { first: Duration::from_millis(400), growth: 2.0, longest: Duration::from_millis(1_600) };
        let params = Params::default()
            .with_streak(3).expect("in range")
            .with_ratio(rule).expect("in range")
            .with_open(time).expect("in range");
        let mut breaker = Breaker::new(params);
        let mut model = Model { params, rule, samples: vec![], streak: 0, state: Told::Closed, changes: 0 };
        let mut out: Vec<Out> = Vec::new();
        let mut now = 0_u64;
        for event in events {
            match event {
                Event::Ask => {
                    let permit = breaker.permit(at(now));
                    prop_assert_eq!(permit.is_ok(), model.permit(now));
                    out.extend(permit.ok().map(|permit| Out { permit, given_after: model.changes }));
                }
                Event::Force => {
                    let permit = breaker.force(at(now));
                    prop_assert_eq!(!permit.is_forced(), model.permit(now));
                    out.push(Out { permit, given_after: model.changes });
                }
                Event::End(which, outcome) if !out.is_empty() => {
                    let ended = out.swap_remove(which % out.len());
                    let before = model.changes;
                    model.settle(now, &ended, outcome);
                    let change = breaker.settle(at(now), ended.permit, outcome);
                    prop_assert_eq!(change.is_some(), model.changes > before);
                }
                Event::Drop(which) if !out.is_empty() => {
                    let ended = out.swap_remove(which % out.len());
                    model.settle(now, &ended, Ignored);
                    breaker.release(ended.permit);
                }
                Event::Pass(by) => now += by,
                Event::End(..) | Event::Drop(_) => {}
            }
            prop_assert_eq!(breaker.state(at(now)), model.state(now));
            let probes = out.iter().filter(|out| out.permit.is_probe()).count();
            prop_assert!(probes <= 1, "{} probes", probes);
            let probing = breaker.state(at(now)) == State::HalfOpen { probing: true };
            prop_assert_eq!(probing, probes == 1, "a slot is taken exactly while its probe is out");
        }
        // Whatever is still out comes back, and then the breaker can always close again.
        for ended in out {
            breaker.release(ended.permit);
        }
        let later = at(now + 10_000);
        let permit = breaker.permit(later).expect("closed, or free to probe");
        breaker.settle(later, permit, Success);
        prop_assert_eq!(breaker.state(later), State::Closed);
    }
}

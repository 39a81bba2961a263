//! Held in order, committed once, never back.

use std::time::Duration;

use backstop_units::{ByteCount, Tokens};
use proptest::prelude::*;

use super::*;
use crate::Window;
use Meaning::{Comment, Done, Error, Output, Startup, Terminal, Unrecognised, Usage};

const T0: Moment = Moment::from_millis(1_000);

fn weight(bytes: u64, tokens: u64) -> Weight {
    Weight {
        bytes: ByteCount(bytes),
        tokens: Tokens(tokens),
    }
}

fn at(millis: u64) -> Moment {
    T0 + Duration::from_millis(millis)
}

fn window(millis: Option<u64>, tokens: Option<u64>) -> CommitRule {
    CommitRule::Window(Window::new(millis.map(Duration::from_millis), tokens.map(Tokens)).unwrap())
}

/// Feeds meanings one millisecond apart, ten bytes and one token each, and answers after how many
/// the relay committed, and why.
fn commits_at(rule: CommitRule, meanings: &[Meaning]) -> Option<(usize, CommitReason)> {
    let mut relay = Relay::new(rule, HoldLimits::new(3, ByteCount(100)).unwrap());
    let mut now = T0;
    for (index, &meaning) in meanings.iter().enumerate() {
        let step = relay.on_event(now, meaning, weight(10, 1), index);
        if let Step::Release(events) = step {
            assert_eq!(events, (0..=index).collect::<Vec<_>>());
            let committed = relay.committed().unwrap();
            assert_eq!(committed.at(), now);
            return Some((index + 1, committed.reason()));
        }
        assert_eq!(step, Step::Held);
        now = now + Duration::from_millis(1);
    }
    None
}

#[test]
fn the_rule_says_which_event_commits() {
    use CommitReason::{Finished, FirstOutput, Full, WindowTime, WindowTokens};
    let first = CommitRule::FirstOutput;
    type Row<'a> = (CommitRule, &'a [Meaning], Option<(usize, CommitReason)>);
    let rows: &[Row<'_>] = &[
        (first, &[Startup, Output], Some((2, FirstOutput))),
        (first, &[Output], Some((1, FirstOutput))),
        (first, &[Startup, Terminal], Some((2, FirstOutput))),
        (first, &[Unrecognised], Some((1, FirstOutput))),
        (first, &[Comment, Startup, Usage], None),
        (first, &[Startup, Startup, Startup], None),
        (
            first,
            &[Startup, Startup, Startup, Startup],
            Some((4, Full)),
        ),
        (first, &[Startup, Startup, Startup, Usage], Some((4, Full))),
        // Comments are no events, but they take room: the eleventh is over 100 bytes.
        (first, &[Comment; 10], None),
        (first, &[Comment; 11], Some((11, Full))),
        (window(None, Some(3)), &[Output, Output], None),
        (
            window(None, Some(3)),
            &[Output, Output, Output],
            Some((3, WindowTokens)),
        ),
        (
            window(Some(2), None),
            &[Startup, Startup, Output, Output],
            None,
        ),
        (
            window(Some(2), None),
            &[Startup, Output, Output, Output],
            Some((4, WindowTime)),
        ),
        (
            window(Some(2), Some(2)),
            &[Output, Output, Output],
            Some((2, WindowTokens)),
        ),
        (
            window(Some(9), None),
            &[Output, Terminal, Usage, Done],
            Some((4, Finished)),
        ),
        (window(Some(9), None), &[Startup; 20], None),
        (
            CommitRule::Complete,
            &[Startup, Output, Output, Output, Terminal, Usage],
            None,
        ),
        (
            CommitRule::Complete,
            &[Output, Terminal, Usage, Done],
            Some((4, Finished)),
        ),
    ];
    for &(rule, meanings, commit) in rows {
        assert_eq!(commits_at(rule, meanings), commit, "{rule:?} {meanings:?}");
    }
}

#[test]
fn the_default_limits_hold_to_the_last_event_and_byte() {
    let mut relay = Relay::new(CommitRule::FirstOutput, HoldLimits::default());
    for index in 0..64 {
        assert_eq!(
            relay.on_event(T0, Startup, weight(4 * 1024, 0), index),
            Step::Held
        );
    }
    let step = relay.on_event(T0, Startup, weight(0, 0), 64);
    assert_eq!(step, Step::Release((0..=64).collect()));
    assert_eq!(relay.committed().unwrap().first_output(), None);
}

#[test]
fn longer_holds_commit_beyond_eight_mebibytes() {
    for rule in [CommitRule::Complete, window(Some(1_000), None)] {
        let mut relay = Relay::new(rule, HoldLimits::default());
        assert_eq!(
            relay.on_event(T0, Output, weight(8 << 20, 0), 1),
            Step::Held
        );
        assert_eq!(
            relay.on_event(T0, Output, weight(1, 0), 2),
            Step::Release(vec![1, 2])
        );
        assert_eq!(relay.committed().unwrap().reason(), CommitReason::Full);
    }
}

#[test]
fn a_window_closes_by_the_clock_alone() {
    let mut relay = Relay::new(window(Some(250), None), HoldLimits::default());
    assert_eq!(relay.next_wake(), None);
    assert_eq!(
        relay.on_event(at(0), Startup, weight(1, 0), 's'),
        Step::Held
    );
    assert_eq!(relay.next_wake(), None, "startup starts no window");
    assert_eq!(
        relay.on_event(at(10), Output, weight(1, 1), 'a'),
        Step::Held
    );
    assert_eq!(
        relay.on_event(at(90), Output, weight(1, 1), 'b'),
        Step::Held
    );
    assert_eq!(
        relay.next_wake(),
        Some(at(260)),
        "counted from the first output"
    );
    assert_eq!(relay.on_wake(at(259)), None);
    assert_eq!(relay.on_wake(at(260)), Some(vec!['s', 'a', 'b']));
    assert_eq!((relay.next_wake(), relay.on_wake(at(300))), (None, None));
    let committed = relay.committed().unwrap();
    assert_eq!(committed.reason(), CommitReason::WindowTime);
    assert_eq!(
        (committed.first_output(), committed.at()),
        (Some(at(10)), at(260))
    );
}

#[test]
fn a_failed_attempt_leaves_nothing_behind() {
    let mut relay = Relay::new(window(Some(250), Some(5)), HoldLimits::default());
    assert_eq!(
        relay.on_event(at(0), Startup, weight(7, 0), "old"),
        Step::Held
    );
    assert_eq!(
        relay.on_event(at(1), Output, weight(8, 4), "old"),
        Step::Held
    );
    assert_eq!(
        relay.on_event(at(2), Error, weight(9, 0), "error"),
        Step::Failed("error")
    );
    let Relay::Holding(hold) = &mut relay else {
        panic!("an error event commits nothing");
    };
    let discarded = hold.discard();
    assert_eq!(
        (discarded.events, discarded.bytes, discarded.tokens),
        (2, ByteCount(15), Tokens(4))
    );
    assert!(hold.is_empty() && hold.first_output().is_none() && hold.bytes() == ByteCount(0));
    assert_eq!(relay.next_wake(), None);
    assert_eq!(
        relay.on_event(at(900), Output, weight(1, 4), "new"),
        Step::Held
    );
    assert_eq!(
        relay.on_event(at(901), Output, weight(1, 1), "new"),
        Step::Release(vec!["new"; 2])
    );
}

#[test]
fn a_whole_answer_is_released_once_at_its_end() {
    let mut relay = Relay::new(CommitRule::Complete, HoldLimits::default());
    assert_eq!(relay.on_event(at(0), Output, weight(1, 1), 1), Step::Held);
    assert_eq!(relay.on_event(at(1), Terminal, weight(1, 0), 2), Step::Held);
    assert_eq!(relay.on_whole(at(2)), vec![1, 2]);
    assert_eq!(relay.on_whole(at(3)), Vec::<i32>::new());
    assert_eq!(relay.committed().unwrap().at(), at(2));
}

#[test]
fn debug_shows_no_content() {
    let mut relay = Relay::new(CommitRule::Complete, HoldLimits::default());
    let _ = relay.on_event(at(0), Output, weight(1, 1), "private");
    assert!(!format!("{relay:?}").contains("private"));
    let step = relay.on_event(at(0), Done, weight(1, 1), "private");
    assert_eq!(format!("{step:?}"), "Release(2 events)");
}

/// Anything a driver can do to a relay.
#[derive(Debug, Clone, Copy)]
enum Act {
    Event(Meaning),
    Wait(u64),
    Whole,
    FailAttempt,
}

fn act() -> impl Strategy<Value = Act> {
    let meaning = prop::sample::select(vec![
        Comment,
        Startup,
        Output,
        Terminal,
        Done,
        Error,
        Usage,
        Unrecognised,
    ]);
    let quiet = prop::sample::select(vec![Comment, Startup, Usage, Error]);
    prop_oneof![
        3 => meaning.prop_map(Act::Event),
        4 => quiet.prop_map(Act::Event),
        2 => (0_u64..20).prop_map(Act::Wait),
        1 => Just(Act::FailAttempt),
        1 => Just(Act::Whole),
    ]
}

fn rule() -> impl Strategy<Value = CommitRule> {
    prop_oneof![
        Just(CommitRule::FirstOutput),
        Just(CommitRule::Complete),
        (1_u64..30).prop_map(|millis| window(Some(millis), None)),
        (1_u64..5).prop_map(|tokens| window(None, Some(tokens))),
    ]
}

proptest! {
    #[test]
    fn no_sequence_leads_back_to_holding(
        rule in rule(),
        acts in prop::collection::vec(act(), 0..60),
    ) {
        let mut relay = Relay::new(rule, HoldLimits::new(4, ByteCount(64)).unwrap());
        let mut now = T0;
        let (mut kept, mut sent) = (Vec::new(), Vec::new());
        let mut commit = None;
        for (index, act) in acts.into_iter().enumerate() {
            let before = relay.committed().copied();
            match act {
                Act::Event(meaning) => match relay.on_event(now, meaning, weight(5, 1), index) {
                    Step::Held => {
                        prop_assert!(before.is_none());
                        kept.push(index);
                    }
                    Step::Release(events) => {
                        prop_assert!(before.is_none());
                        kept.push(index);
                        sent.extend(events);
                    }
                    Step::Pass(event) => {
                        prop_assert!(before.is_some());
                        kept.push(index);
                        sent.push(event);
                    }
                    Step::Failed(event) => prop_assert!(event == index && meaning == Error),
                },
                Act::Wait(millis) => {
                    now = now + Duration::from_millis(millis);
                    let wake = relay.next_wake();
                    let released = relay.on_wake(now);
                    prop_assert_eq!(released.is_some(), wake.is_some_and(|wake| wake <= now));
                    sent.extend(released.unwrap_or_default());
                }
                Act::Whole => sent.extend(relay.on_whole(now)),
                Act::FailAttempt => if let Relay::Holding(hold) = &mut relay {
                    prop_assert_eq!(hold.discard().events, kept.len());
                    kept.clear();
                },
            }
            // Nothing goes out before the commit; all that was kept goes out after it, in order.
            match relay.committed() {
                None => prop_assert!(commit.is_none() && sent.is_empty()),
                Some(committed) => {
                    prop_assert_eq!(&sent, &kept);
                    prop_assert_eq!(commit.get_or_insert(*committed), committed, "commits once");
                }
            }
        }
    }
}

//! Deadlines, first output, the commit point, and the caller's leave in every state.

use std::time::Duration;

use backstop_breaker::Outcome as Health;
use backstop_classifier::Class;
use backstop_units::Moment;

use super::super::{Action, Ending, Event, Journey, KeyFate};
use super::world::{Case, channel};
use crate::trail::{Outcome, Phase, UpstreamPhase};

#[test]
fn a_timeout_falls_back_and_is_not_repeated() {
    Case::new(channel("alpha", "a").retries(3))
        .then(channel("beta", "b"))
        .says("alpha:a", "slow@400")
        .says("beta:b", "ok")
        .gives(
            "0 alpha:a direct
             Primary alpha/m failed (timeout HTTP 504); evaluating 1 configured fallback(s)
             Trying fallback 1/1: beta/m (previous attempt failed: timeout HTTP 504)
             400 beta:b fallback
             Request served by fallback beta/m (attempt 1/1)
             400 success",
        );
}

#[test]
fn a_stream_without_first_output_is_left_by_our_own_clock() {
    let mut alpha = channel("alpha", "a").retries(3);
    alpha.clocks.first_output = Duration::from_millis(500);
    let played = Case::new(alpha.clone())
        .then(channel("beta", "b"))
        .terms(|terms| terms.streaming = true)
        .says("alpha:a", "startup")
        .says("beta:b", "stream")
        .gives(
            "0 alpha:a direct
             Primary alpha/m failed (timeout HTTP 504); evaluating 1 configured fallback(s)
             Trying fallback 1/1: beta/m (previous attempt failed: timeout HTTP 504)
             500 beta:b fallback
             Request served by fallback beta/m (attempt 1/1)
             500 success",
        );
    assert_eq!(played.world.outcomes[0].0, Health::Failure);
    played.row(0, |row| {
        assert_eq!(row.fail_reason.as_deref(), Some("ttft_timeout"));
        assert_eq!(row.upstream_phase, UpstreamPhase::Headers);
        assert_eq!(row.status, Some(200));
    });
    // A whole answer has no first output to wait for.
    let whole = Case::new(alpha).says("alpha:a", "ok@900").play();
    assert!(matches!(whole.ending, Ending::Success));
}

#[test]
fn the_deadline_covers_everything_and_blames_nobody() {
    // In an attempt.
    let cut = Case::new(channel("alpha", "a").retries(1))
        .then(channel("beta", "b"))
        .then(channel("gamma", "c"))
        .deadline(2_000)
        .says("alpha:a", "slow@1500")
        .says("beta:b", "hang")
        .gives(
            "0 alpha:a direct
             Primary alpha/m failed (timeout HTTP 504); evaluating 2 configured fallback(s)
             Trying fallback 1/2: beta/m (previous attempt failed: timeout HTTP 504)
             1500 beta:b fallback
             2000 deadline time final",
        );
    assert_eq!(cut.world.outcomes[1], (Health::Ignored, KeyFate::Nothing));
    cut.row(1, |row| {
        assert_eq!(row.class, Some(Class::Timeout));
        assert_eq!(row.fail_reason.as_deref(), Some("request_timed_out"));
        assert_eq!(row.upstream_phase, UpstreamPhase::Sent);
    });
    // Too little is left for another attempt: an honest error now.
    Case::new(channel("alpha", "a").retries(1))
        .then(channel("beta", "b"))
        .deadline(2_000)
        .says("alpha:a", "503@1800")
        .gives(
            "0 alpha:a direct
             1800 exhausted upstream #1 transient",
        );
    // The first attempt needs no minimum, but it needs time.
    let short = |millis| {
        Case::new(channel("alpha", "a"))
            .deadline(millis)
            .says("alpha:a", "ok")
    };
    short(1).gives("0 alpha:a direct\n0 success");
    short(0).gives("0 deadline time final");
    // The caller's read timeout ends it as well, before the commit point.
    let patience = |reply| {
        Case::new(channel("alpha", "a"))
            .terms(|terms| terms.patience = Some(Moment::from_millis(100)))
            .says("alpha:a", reply)
            .play()
            .ending
    };
    assert!(matches!(patience("ok@200"), Ending::Deadline(_)));
    assert!(matches!(patience("stream@200"), Ending::Success));
}

#[test]
fn a_late_look_at_the_clock_starts_nothing_that_cannot_be_useful() {
    for (late, ending) in [(500, "sent"), (1_800, "exhausted"), (2_000, "deadline")] {
        let mut journey = waiting();
        let now = Moment::from_millis(late);
        journey.on(now, Event::Woke);
        let actions: Vec<Action> = std::iter::from_fn(|| journey.poll(now)).collect();
        let refunded = actions
            .iter()
            .any(|action| matches!(action, Action::RefundBudget { .. }));
        let end = actions.iter().find_map(|action| match action {
            Action::Finish(ending) => Some(ending.reason()),
            _ => None,
        });
        assert_eq!(end.unwrap_or("sent"), ending);
        assert_eq!(refunded, ending != "sent", "{late}");
    }
    // Looked at too early, nothing happens.
    let mut journey = waiting();
    journey.on(Moment::from_millis(499), Event::Woke);
    assert!(journey.poll(Moment::from_millis(499)).is_none());
    assert_eq!(journey.next_wake(), Some(Moment::from_millis(500)));
}

/// A journey that waits until 500 ms for a retry it has paid for; its deadline is at 2 s.
fn waiting() -> Journey {
    let case = Case::new(channel("alpha", "a").retries(1))
        .deadline(2_000)
        .says("alpha:a", "503");
    let mut journey = Journey::new(case.plan(), case.terms.clone());
    let mut world = case.world;
    world.until_waiting(&mut journey);
    journey
}

#[test]
fn a_stream_that_breaks_after_output_ends_and_nothing_follows() {
    for (reply, class, health) in [
        ("cut@300", Class::Transient, Health::Failure),
        ("stall", Class::Timeout, Health::Ignored),
    ] {
        let played = Case::new(channel("alpha", "a b").retries(5))
            .then(channel("beta", "x"))
            .deadline(2_000)
            .terms(|terms| terms.streaming = true)
            .says("alpha:a", reply)
            .play();
        played.settles();
        assert!(matches!(&played.ending, Ending::Partial(verdict) if verdict.class == class));
        assert_eq!(played.world.outcomes, [(health, KeyFate::Nothing)]);
        played.row(0, |row| {
            assert_eq!(row.outcome, Outcome::Partial);
            assert_eq!(row.phase, Phase::AfterOutput);
            assert_eq!(row.upstream_phase, UpstreamPhase::Output);
        });
    }
}

#[test]
fn an_error_event_before_output_is_a_failure_as_any_other() {
    Case::new(channel("azure", "z1 z2").retries(1))
        .terms(|terms| terms.streaming = true)
        .says("azure:z1", "event429")
        .says("azure:z2", "stream")
        .gives(
            "0 azure:z1 direct
             Retry 1/1 for azure/m (previous attempt failed: rate_limit HTTP 429; rotated key=z2)
             500 azure:z2 retry
             Request to azure/m succeeded after 1 retry attempt(s)
             500 success",
        )
        .row(0, |row| assert_eq!(row.status, Some(200)));
}

#[test]
fn how_far_an_attempt_came_upstream() {
    for (reply, phase) in [
        ("refused", UpstreamPhase::NotSent),
        ("reset", UpstreamPhase::Sent),
        ("slow", UpstreamPhase::Sent),
        ("event429", UpstreamPhase::Headers),
        ("ok", UpstreamPhase::Output),
        ("cut", UpstreamPhase::Output),
    ] {
        let played = Case::new(channel("alpha", "a"))
            .says("alpha:a", reply)
            .play();
        assert_eq!(played.rows[0].upstream_phase, phase, "{reply}");
    }
}

#[test]
fn a_caller_who_leaves_ends_everything_at_once() {
    // Before headers, in the middle of a stream, during a wait.
    for (replies, at, sends, outcome) in [
        ("hang", 60, 1, Outcome::Cancelled),
        ("startup", 60, 1, Outcome::Cancelled),
        ("stall", 60, 1, Outcome::Cancelled),
        ("503", 200, 1, Outcome::Failed),
        ("503 hang", 700, 2, Outcome::Cancelled),
    ] {
        let played = Case::new(channel("alpha", "a").retries(3))
            .then(channel("beta", "b"))
            .says("alpha:a", replies)
            .leaves(at)
            .play();
        played.settles();
        assert!(matches!(played.ending, Ending::Cancelled), "{replies}");
        assert_eq!(played.world.now, Moment::from_millis(at));
        assert_eq!(played.world.sends, sends);
        let last = played.rows.last().expect("a row");
        assert_eq!(last.outcome, outcome, "{replies}");
        if outcome == Outcome::Cancelled {
            assert_eq!(
                (last.class, &last.fail_reason),
                (Some(Class::Cancelled), &None)
            );
            assert_eq!(
                played.world.outcomes.last(),
                Some(&(Health::Ignored, KeyFate::Nothing))
            );
        }
    }
}

#[test]
fn a_caller_may_leave_between_any_two_steps() {
    for step in 1.. {
        let mut case = Case::new(channel("alpha", "a b").retries(2))
            .then(channel("beta", "x"))
            .says("alpha:a", "401")
            .says("alpha:b", "503 429 429")
            .says("beta:x", "stream@10");
        case.world.leaves_at_step = Some(step);
        let played = case.play();
        played.settles();
        if matches!(played.ending, Ending::Success) {
            assert!(step > 20, "the caller left at step {step} and was served");
            break;
        }
        assert!(matches!(played.ending, Ending::Cancelled));
    }
}

//! Hooks: what their say does to a journey, and what it cannot do.

use backstop_classifier::Class;

use super::world::{Case, channel};
use crate::trail::Outcome;

#[test]
fn hooks_are_asked_afresh_for_each_channel_and_not_for_each_retry() {
    Case::new(channel("alpha", "a b").retries(1))
        .then(channel("beta", "c"))
        .says("alpha:a", "401")
        .says("alpha:b", "503 503")
        .says("beta:c", "ok")
        .hook("before alpha", "pass")
        .gives(
            "0 before alpha?
             0 alpha:a direct
             Retry 1/2 for alpha/m (previous attempt failed: credential HTTP 401; rotated key=b)
             0 alpha:b retry
             Retry 2/2 for alpha/m (previous attempt failed: transient HTTP 503; same key=b)
             500 alpha:b retry
             500 after alpha transient?
             Retries exhausted for alpha/m after 3 attempt(s); last error: transient HTTP 503
             Primary alpha/m failed (transient HTTP 503); evaluating 1 configured fallback(s)
             Trying fallback 1/1: beta/m (previous attempt failed: transient HTTP 503)
             500 before beta?
             500 beta:c fallback
             500 after beta answered?
             Request served by fallback beta/m (attempt 1/1)
             500 success",
        );
}

#[test]
fn an_answer_before_the_first_attempt_is_no_attempt() {
    Case::new(channel("alpha", "a"))
        .hook("before alpha", "answer@30")
        .gives(
            "0 before alpha?
             Request answered by hook h in place of alpha/m
             30 success",
        )
        .row(0, |row| {
            assert_eq!((row.attempt, row.outcome), (None, Outcome::Skipped));
            assert_eq!(row.fail_reason.as_deref(), Some("hook_answered:h"));
        });
}

#[test]
fn a_stop_ends_the_journey_with_the_hooks_error() {
    let played = Case::new(channel("alpha", "a"))
        .then(channel("beta", "b"))
        .hook("before alpha", "halt403")
        .gives(
            "0 before alpha?
             Hook h stopped alpha/m (policy_stop HTTP 403)
             0 policy_stop hook 403 final",
        );
    assert_eq!(played.world.permits, 0, "nothing is taken before a hook");
    // On a fallback its error wins over the primary's.
    Case::new(channel("alpha", "a"))
        .then(channel("beta", "b"))
        .then(channel("gamma", "c"))
        .says("alpha:a", "503")
        .hook("before beta", "halt429+9")
        .gives(
            "0 before alpha?
             0 alpha:a direct
             0 after alpha transient?
             Primary alpha/m failed (transient HTTP 503); evaluating 2 configured fallback(s)
             Trying fallback 1/2: beta/m (previous attempt failed: transient HTTP 503)
             0 before beta?
             Hook h stopped beta/m (policy_stop HTTP 429)
             Fallback beta/m failed (policy_stop HTTP 429); halting further fallbacks
             0 policy_stop hook 429 retry-after=9000",
        )
        .row(1, |row| {
            assert_eq!((row.attempt, row.outcome), (None, Outcome::Skipped));
            assert_eq!(row.fail_reason.as_deref(), Some("hook_stopped:h"));
        });
}

#[test]
fn a_stop_that_allows_fallbacks_moves_on() {
    Case::new(channel("alpha", "a"))
        .then(channel("beta", "b"))
        .says("beta:b", "ok")
        .hook("before alpha", "next403")
        .gives(
            "0 before alpha?
             Hook h stopped alpha/m (policy_stop HTTP 403)
             Primary alpha/m failed (policy_stop HTTP 403); evaluating 1 configured fallback(s)
             Trying fallback 1/1: beta/m (previous attempt failed: policy_stop HTTP 403)
             0 before beta?
             0 beta:b fallback
             0 after beta answered?
             Request served by fallback beta/m (attempt 1/1)
             0 success",
        );
    // On a fallback: the chain goes on, and the error in the end is the primary's.
    Case::new(channel("alpha", "a"))
        .then(channel("beta", "b"))
        .then(channel("gamma", "c"))
        .says("alpha:a", "503")
        .says("gamma:c", "503")
        .hook("before beta", "next403")
        .gives(
            "0 before alpha?
             0 alpha:a direct
             0 after alpha transient?
             Primary alpha/m failed (transient HTTP 503); evaluating 2 configured fallback(s)
             Trying fallback 1/2: beta/m (previous attempt failed: transient HTTP 503)
             0 before beta?
             Hook h stopped beta/m (policy_stop HTTP 403)
             Trying fallback 2/2: gamma/m (previous attempt failed: policy_stop HTTP 403)
             0 before gamma?
             0 gamma:c fallback
             0 after gamma transient?
             All 2 fallback(s) exhausted; returning primary error (transient HTTP 503)
             0 exhausted upstream #1 transient final",
        );
    // On the primary: its error is the hook's.
    Case::new(channel("alpha", "a"))
        .then(channel("beta", "b"))
        .says("beta:b", "503")
        .hook("before alpha", "next429+5")
        .gives(
            "0 before alpha?
             Hook h stopped alpha/m (policy_stop HTTP 429)
             Primary alpha/m failed (policy_stop HTTP 429); evaluating 1 configured fallback(s)
             Trying fallback 1/1: beta/m (previous attempt failed: policy_stop HTTP 429)
             0 before beta?
             0 beta:b fallback
             0 after beta transient?
             All 1 fallback(s) exhausted; returning primary error (policy_stop HTTP 429)
             0 policy_stop hook 429 retry-after=5000",
        );
}

#[test]
fn a_hook_may_answer_or_stop_after_a_failure() {
    Case::new(channel("alpha", "a"))
        .then(channel("beta", "b"))
        .says("alpha:a", "503")
        .hook("after alpha", "answer")
        .gives(
            "0 before alpha?
             0 alpha:a direct
             0 after alpha transient?
             Request answered by hook h in place of alpha/m
             0 success",
        );
    Case::new(channel("alpha", "a").retries(1))
        .then(channel("beta", "b"))
        .says("alpha:a", "503 503")
        .hook("after alpha", "halt503")
        .gives(
            "0 before alpha?
             0 alpha:a direct
             Retry 1/1 for alpha/m (previous attempt failed: transient HTTP 503; same key=a)
             500 alpha:a retry
             500 after alpha transient?
             Hook h stopped alpha/m (policy_stop HTTP 503)
             Retries exhausted for alpha/m after 2 attempt(s); last error: transient HTTP 503
             500 policy_stop hook 503 final",
        );
}

#[test]
fn a_hook_may_refuse_a_whole_answer() {
    let alone = || {
        Case::new(channel("alpha", "a"))
            .says("alpha:a", "ok")
            .hook("after alpha", "next422")
    };
    alone()
        .then(channel("beta", "b"))
        .says("beta:b", "ok")
        .gives(
            "0 before alpha?
             0 alpha:a direct
             0 after alpha answered?
             Hook h stopped alpha/m (policy_stop HTTP 422)
             Primary alpha/m failed (policy_stop HTTP 422); evaluating 1 configured fallback(s)
             Trying fallback 1/1: beta/m (previous attempt failed: policy_stop HTTP 422)
             0 before beta?
             0 beta:b fallback
             0 after beta answered?
             Request served by fallback beta/m (attempt 1/1)
             0 success",
        )
        .row(0, |row| {
            assert_eq!(row.outcome, Outcome::Success, "the provider did its part");
            assert_eq!(row.fail_reason.as_deref(), Some("hook_stopped:h"));
        });
    // What may not be sent again is not sent elsewhere either.
    let played = alone()
        .then(channel("beta", "b"))
        .terms(|terms| terms.replay_safe = false)
        .play();
    played.settles();
    assert_eq!(played.world.sends, 1);
    assert_eq!(
        played.error().stopped.as_ref().map(|e| e.status()),
        Some(422)
    );
}

#[test]
fn a_stream_that_has_begun_is_past_all_say() {
    Case::new(channel("alpha", "a"))
        .terms(|terms| terms.streaming = true)
        .says("alpha:a", "stream@90")
        .hook("after alpha", "halt403")
        .gives(
            "0 before alpha?
             0 alpha:a direct
             90 success",
        );
}

#[test]
fn a_hook_opens_no_gate() {
    // The class of the failure still decides who may follow.
    Case::new(channel("alpha", "a"))
        .then(channel("beta", "b"))
        .says("alpha:a", "400")
        .hook("after alpha", "next418")
        .gives(
            "0 before alpha?
             0 alpha:a direct
             0 after alpha caller_fault?
             Hook h stopped alpha/m (policy_stop HTTP 418)
             0 policy_stop hook 418 final",
        );
}

#[test]
fn substitutions_that_name_classes_follow_a_stop_that_counts_as_one() {
    for (says, sends) in [
        ("next429", 0),
        ("next429:quota", 1),
        ("next429:transient", 0),
    ] {
        let case = Case::new(channel("alpha", "a"))
            .substitute(channel("beta", "b").model("n"), &[Class::Quota])
            .hook("before alpha", says)
            .says("beta:b", "ok");
        let played = case.play();
        played.settles();
        assert_eq!(played.world.sends, sends, "{says}");
    }
}

#[test]
fn a_slow_hook_ends_with_the_requests_time() {
    for (when, rows) in [("before alpha", 0), ("after alpha", 1)] {
        let played = Case::new(channel("alpha", "a"))
            .then(channel("beta", "b"))
            .deadline(1000)
            .says("alpha:a", "503")
            .hook(when, "pass@5000")
            .play();
        played.settles();
        assert_eq!(played.ending.reason(), "deadline", "{when}");
        assert_eq!(played.world.now.elapsed().as_millis(), 1000);
        assert_eq!(played.rows.len(), rows);
    }
    // What is left of it must do for an attempt.
    Case::new(channel("alpha", "a"))
        .then(channel("beta", "b"))
        .deadline(1000)
        .says("alpha:a", "503")
        .hook("before beta", "pass@900")
        .gives(
            "0 before alpha?
             0 alpha:a direct
             0 after alpha transient?
             Primary alpha/m failed (transient HTTP 503); evaluating 1 configured fallback(s)
             Trying fallback 1/1: beta/m (previous attempt failed: transient HTTP 503)
             0 before beta?
             All 1 fallback(s) exhausted; returning primary error (transient HTTP 503)
             900 exhausted upstream #1 transient",
        );
}

#[test]
fn a_caller_who_leaves_during_a_hook_starts_nothing() {
    for (when, sends) in [("before alpha", 0), ("after alpha", 1)] {
        let played = Case::new(channel("alpha", "a"))
            .then(channel("beta", "b"))
            .says("alpha:a", "503")
            .hook(when, "pass@500")
            .leaves(100)
            .play();
        played.settles();
        assert_eq!(played.ending.reason(), "cancelled");
        assert_eq!(played.world.sends, sends);
    }
}

#[test]
fn a_channel_that_is_come_back_to_is_not_asked_about_again() {
    Case::new(channel("alpha", "a"))
        .open("alpha", 9000)
        .says("alpha:a", "ok")
        .hook("before alpha", "pass")
        .gives(
            "0 before alpha?
             0 alpha:a direct
             0 after alpha answered?
             0 success",
        );
    // A stopped channel is no last resort, the one whose circuit is open is.
    Case::new(channel("alpha", "a"))
        .then(channel("beta", "b"))
        .open("alpha", 9000)
        .says("alpha:a", "503")
        .hook("before beta", "next403")
        .gives(
            "0 before alpha?
             Trying fallback 1/1: beta/m (no attempt before it)
             0 before beta?
             Hook h stopped beta/m (policy_stop HTTP 403)
             0 alpha:a direct
             0 after alpha transient?
             All 1 fallback(s) exhausted; returning primary error (transient HTTP 503)
             0 exhausted upstream #1 transient",
        );
}

//! On one channel: key walks, retries, pins, holds.

use std::sync::Arc;
use std::time::Duration;

use backstop_breaker::Outcome as Health;
use backstop_keypool::{Permanent, Refusal};

use super::super::{Cause, KeyFate};
use super::world::{Case, channel};
use crate::route::HintUse;
use crate::trail::{Outcome, UpstreamPhase};

const CREDENTIAL: Refusal = Refusal::Permanent(Permanent::Credential);

#[test]
fn two_revoked_keys_are_walked_past_without_retries_and_without_waiting() {
    Case::new(channel("alpha", "a b c"))
        .says("alpha:a", "401")
        .says("alpha:b", "429quota")
        .says("alpha:c", "ok")
        .gives(
            "0 alpha:a direct
             Retry 1/1 for alpha/m (previous attempt failed: credential HTTP 401; rotated key=b)
             0 alpha:b retry
             Retry 2/2 for alpha/m (previous attempt failed: quota HTTP 429; rotated key=c)
             0 alpha:c retry
             Request to alpha/m succeeded after 2 retry attempt(s)
             0 success",
        );
}

#[test]
fn a_pool_that_dies_within_the_budget_is_not_the_callers_fault() {
    let revoked = |retries| {
        Case::new(channel("alpha", "a b c").retries(retries))
            .says("alpha:a", "401")
            .says("alpha:b", "401")
            .says("alpha:c", "402")
    };
    let walk = |of: u32| {
        format!(
            "0 alpha:a direct
             Retry 1/{} for alpha/m (previous attempt failed: credential HTTP 401; rotated key=b)
             0 alpha:b retry
             Retry 2/{} for alpha/m (previous attempt failed: credential HTTP 401; rotated key=c)
             0 alpha:c retry
             Retries exhausted for alpha/m after 3 attempt(s); last error: quota HTTP 402\n",
            of + 1,
            of + 2
        )
    };
    for (retries, ending) in [
        (5, "0 exhausted credentials_exhausted final"),
        (3, "0 exhausted credentials_exhausted final"),
        (2, "0 exhausted upstream #3 quota final"),
        (0, "0 exhausted upstream #3 quota final"),
    ] {
        revoked(retries).gives(&(walk(retries) + ending));
    }
    // The last key dies with the request's last send: the pool is dead all the same.
    revoked(5)
        .limits(|limits| limits.max_attempts = 3)
        .gives(&(walk(5) + "0 exhausted credentials_exhausted final"));
    // A living key is left: nobody can say that the pool is dead.
    let cut = revoked(5).limits(|limits| limits.max_attempts = 2).play();
    assert_eq!(cut.error().cause, Cause::Upstream);
}

#[test]
fn one_revoked_key_alone() {
    for (retries, ending) in [
        (0, "0 exhausted upstream #1 credential final"),
        (1, "0 exhausted credentials_exhausted final"),
    ] {
        Case::new(channel("alpha", "a").retries(retries))
            .says("alpha:a", "401")
            .gives(&format!("0 alpha:a direct\n{ending}"));
    }
}

#[test]
fn a_refusal_of_model_or_region_is_the_error_whichever_key_died_last() {
    for (first, second, third, shown) in [
        ("404model", "404model", "404model", "#3 model_access"),
        ("404model", "401", "402", "#1 model_access"),
        ("401", "403region", "401", "#2 region_blocked"),
        ("401", "403policy", "401", "#2 credential"),
        ("404model", "403policy", "401", "#1 model_access"),
    ] {
        let played = Case::new(channel("alpha", "a b c").retries(5))
            .says("alpha:a", first)
            .says("alpha:b", second)
            .says("alpha:c", third)
            .play();
        played.settles();
        let last = played.world.said.last().expect("an ending");
        let want = format!("0 exhausted upstream {shown} final");
        assert_eq!(*last, want, "{first} {second} {third}");
    }
}

#[test]
fn a_living_key_in_trouble_is_the_error_of_a_walk_that_met_a_missing_model_first() {
    let played = Case::new(channel("alpha", "a b"))
        .says("alpha:a", "404model")
        .says("alpha:b", "503")
        .play();
    assert_eq!(played.error().attempt, Some(2));
}

#[test]
fn a_rate_limit_rotates_after_backoff_and_comes_back_to_a_key_when_all_were_asked() {
    Case::new(channel("alpha", "a b").retries(2))
        .says("alpha:a", "429 ok")
        .says("alpha:b", "429")
        .gives(
            "0 alpha:a direct
             Retry 1/2 for alpha/m (previous attempt failed: rate_limit HTTP 429; rotated key=b)
             500 alpha:b retry
             Retry 2/2 for alpha/m (previous attempt failed: rate_limit HTTP 429; rotated key=a)
             1500 alpha:a retry
             Request to alpha/m succeeded after 2 retry attempt(s)
             1500 success",
        )
        .row(1, |row| assert_eq!(row.waited, Duration::from_millis(500)));
}

#[test]
fn a_walk_past_dead_keys_does_not_raise_the_backoff() {
    Case::new(channel("alpha", "a b c").retries(1))
        .says("alpha:a", "401")
        .says("alpha:b", "429")
        .says("alpha:c", "ok")
        .gives(
            "0 alpha:a direct
             Retry 1/2 for alpha/m (previous attempt failed: credential HTTP 401; rotated key=b)
             0 alpha:b retry
             Retry 2/2 for alpha/m (previous attempt failed: rate_limit HTTP 429; rotated key=c)
             500 alpha:c retry
             Request to alpha/m succeeded after 2 retry attempt(s)
             500 success",
        );
}

#[test]
fn a_hint_on_the_only_key_is_waited_for_where_it_fits() {
    let limited = |hint| {
        Case::new(channel("alpha", "a").retries(1))
            .says("alpha:a", &format!("429+{hint} ok"))
            .deadline(10_000)
    };
    limited(3).gives(
        "0 alpha:a direct
         Retry 1/1 for alpha/m (previous attempt failed: rate_limit HTTP 429; same key=a)
         3000 alpha:a retry
         Request to alpha/m succeeded after 1 retry attempt(s)
         3000 success",
    );
    // What is left must serve an attempt too: 9.75 s may be waited, 10 s may not.
    limited(10).gives(
        "0 alpha:a direct
         0 exhausted upstream #1 rate_limit retry-after=10000",
    );
    // Written down only: the formula alone.
    let mut recorded = channel("alpha", "a").retries(1);
    recorded.retry.hint = HintUse::Record;
    let played = Case::new(recorded).says("alpha:a", "429+60 ok").play();
    assert_eq!(played.rows[0].retry_after, Some(Duration::from_secs(60)));
    assert_eq!(played.rows[1].waited, Duration::from_millis(500));
    let refused = KeyFate::Refused {
        refusal: Refusal::RateLimited,
        hint: None,
    };
    assert_eq!(played.world.outcomes[0], (Health::RateLimited, refused));
}

#[test]
fn a_limit_that_waiting_cannot_meet_goes_to_the_next_key_at_once_and_never_to_the_same() {
    Case::new(channel("alpha", "a b").retries(5))
        .says("alpha:a", "429large")
        .says("alpha:b", "429large")
        .gives(
            "0 alpha:a direct
             Retry 1/5 for alpha/m (previous attempt failed: rate_limit HTTP 429; rotated key=b)
             0 alpha:b retry
             Retries exhausted for alpha/m after 2 attempt(s); last error: rate_limit HTTP 429
             0 exhausted upstream #2 rate_limit final",
        );
}

#[test]
fn passing_trouble_is_repeated_with_the_same_key_within_the_channels_share() {
    Case::new(channel("alpha", "a b").retries(2))
        .says("alpha:a", "503 503 503")
        .gives(
            "0 alpha:a direct
             Retry 1/2 for alpha/m (previous attempt failed: transient HTTP 503; same key=a)
             500 alpha:a retry
             Retry 2/2 for alpha/m (previous attempt failed: transient HTTP 503; same key=a)
             1500 alpha:a retry
             Retries exhausted for alpha/m after 3 attempt(s); last error: transient HTTP 503
             1500 exhausted upstream #3 transient final",
        );
    Case::new(channel("alpha", "a").retries(2))
        .bears("alpha", 0)
        .says("alpha:a", "503")
        .gives(
            "0 alpha:a direct
             0 exhausted upstream #1 transient",
        );
}

#[test]
fn a_request_timeout_of_the_provider_is_repeated_once() {
    Case::new(channel("alpha", "a").retries(5))
        .says("alpha:a", "408 503 408")
        .gives(
            "0 alpha:a direct
             Retry 1/5 for alpha/m (previous attempt failed: transient HTTP 408; same key=a)
             500 alpha:a retry
             Retry 2/5 for alpha/m (previous attempt failed: transient HTTP 503; same key=a)
             1500 alpha:a retry
             Retries exhausted for alpha/m after 3 attempt(s); last error: transient HTTP 408
             1500 exhausted upstream #3 transient final",
        );
}

#[test]
fn a_stale_connection_is_replaced_once_at_once_and_counts_for_nothing() {
    let played = Case::new(channel("alpha", "a"))
        .says("alpha:a", "stale ok")
        .gives(
            "0 alpha:a direct
             Retry 1/1 for alpha/m (previous attempt failed: transient HTTP 502; same key=a)
             0 alpha:a retry
             Request to alpha/m succeeded after 1 retry attempt(s)
             0 success",
        );
    assert_eq!(
        played.world.outcomes[0],
        (Health::Ignored, KeyFate::Nothing)
    );
    played.row(0, |row| {
        assert_eq!(row.outcome, Outcome::Failed);
        assert_eq!(row.upstream_phase, UpstreamPhase::Sent);
        assert_eq!(row.connection_reused, Some(true));
    });
    // The second time it is a failure as any other; under the cap there is no second time.
    let again = Case::new(channel("alpha", "a"))
        .says("alpha:a", "stale stale")
        .play();
    assert_eq!(again.world.outcomes[1].0, Health::Failure);
    assert_eq!(again.world.sends, 2);
    let capped = Case::new(channel("alpha", "a"))
        .limits(|limits| limits.max_attempts = 1)
        .says("alpha:a", "stale")
        .play();
    assert_eq!(capped.world.sends, 1);
    let unsafe_to_repeat = Case::new(channel("alpha", "a"))
        .terms(|terms| terms.replay_safe = false)
        .says("alpha:a", "stale")
        .play();
    assert_eq!(unsafe_to_repeat.world.sends, 1);
}

#[test]
fn a_stale_connection_is_not_replaced_beyond_what_the_channel_can_bear_in_retries() {
    // What resets all it reads looks stale each time: then it is a failure, and the next one's turn.
    let spent = Case::new(channel("alpha", "a").retries(3))
        .then(channel("beta", "b"))
        .bears("alpha", 0)
        .says("alpha:a", "stale")
        .says("beta:b", "ok")
        .play();
    assert_eq!(spent.world.outcomes[0], (Health::Failure, KeyFate::Nothing));
    assert_eq!(spent.world.sends, 2);
    // The send in its place is paid for, and no retry of the channel's own count.
    let paid = Case::new(channel("alpha", "a").retries(1))
        .bears("alpha", 2)
        .says("alpha:a", "stale 503 ok")
        .play();
    assert_eq!(paid.world.sends, 3);
}

#[test]
fn a_pinned_request_stays_on_its_key() {
    // A refusal for good is its error, whatever stands beside and behind.
    let revoked = Case::new(channel("alpha", "a b").retries(5))
        .then(channel("beta", "b"))
        .pin("b")
        .says("alpha:b", "401");
    revoked.gives(
        "0 alpha:b direct
         0 exhausted upstream #1 credential final",
    );
    // So is a rate limit: the caller who chose the key chooses whether to wait for it.
    Case::new(channel("alpha", "a b").retries(5))
        .then(channel("beta", "x"))
        .pin("b")
        .says("alpha:b", "429")
        .gives(
            "0 alpha:b direct
             0 exhausted upstream #1 rate_limit",
        );
    // A passing trouble is repeated on the key.
    Case::new(channel("alpha", "a b").retries(1))
        .pin("b")
        .says("alpha:b", "503 ok")
        .gives(
            "0 alpha:b direct
             Retry 1/1 for alpha/m (previous attempt failed: transient HTTP 503; same key=b)
             500 alpha:b retry
             Request to alpha/m succeeded after 1 retry attempt(s)
             500 success",
        );
    // Trouble of the provider's own is no refusal of the key.
    Case::new(channel("alpha", "a b"))
        .then(channel("beta", "x"))
        .pin("b")
        .says("alpha:b", "503")
        .says("beta:x", "ok")
        .gives(
            "0 alpha:b direct
             Primary alpha/m failed (transient HTTP 503); evaluating 1 configured fallback(s)
             Trying fallback 1/1: beta/m (previous attempt failed: transient HTTP 503)
             0 beta:x fallback
             Request served by fallback beta/m (attempt 1/1)
             0 success",
        );
    // Held out by other requests: there is no other key to prefer.
    Case::new(channel("alpha", "a b"))
        .then(channel("beta", "x"))
        .pin("b")
        .held("alpha:b", CREDENTIAL, 0)
        .says("alpha:b", "ok")
        .gives("0 alpha:b direct\n0 success");
}

#[test]
fn a_provider_without_keys_keeps_its_repeats() {
    for refused in ["401", "402", "403", "429", "429quota"] {
        let played = Case::new(channel("local", "").retries(1))
            .says("local:-", &format!("{refused} ok"))
            .play();
        played.settles();
        let sent: Vec<_> = played
            .world
            .send_times
            .iter()
            .map(|at| at.elapsed())
            .collect();
        assert_eq!(
            sent,
            [Duration::ZERO, Duration::from_millis(500)],
            "{refused}"
        );
        assert_eq!(played.world.outcomes[0].1, KeyFate::Nothing);
    }
    Case::new(channel("local", "").retries(1))
        .says("local:-", "401 401")
        .gives(
            "0 local:- direct
             Retry 1/1 for local/m (previous attempt failed: credential HTTP 401)
             500 local:- retry
             Retries exhausted for local/m after 2 attempt(s); last error: credential HTTP 401
             500 exhausted upstream #2 credential final",
        );
    // What no status of those says, and what waiting cannot help, is not repeated.
    for refused in ["404model", "429large"] {
        let played = Case::new(channel("local", "").retries(5))
            .says("local:-", refused)
            .play();
        assert_eq!(played.world.sends, 1, "{refused}");
        assert_eq!(played.error().cause, Cause::Upstream, "{refused}");
    }
    let hinted = Case::new(channel("local", "").retries(1))
        .says("local:-", "429+4 ok")
        .play();
    assert_eq!(hinted.rows[1].waited, Duration::from_secs(4));
}

#[test]
fn held_keys_give_way_to_another_channel_and_are_used_when_there_is_none() {
    // Another channel can serve: nothing is asked of the held one.
    let held = Case::new(channel("alpha", "a"))
        .then(channel("beta", "b"))
        .held("alpha:a", Refusal::RateLimited, 60)
        .says("beta:b", "ok")
        .gives(
            "Trying fallback 1/1: beta/m (no attempt before it)
             0 beta:b fallback
             Request served by fallback beta/m (attempt 1/1)
             0 success",
        );
    assert_eq!(held.skipped(), ["keys_held"]);
    // There is none: the key that is held for the shortest time.
    Case::new(channel("alpha", "a b"))
        .held("alpha:a", Refusal::RateLimited, 60)
        .held("alpha:b", Refusal::RateLimited, 30)
        .says("alpha:b", "ok")
        .gives("0 alpha:b direct\n0 success");
    // The walk goes on over the held ones, so that a dead pool is known to be one.
    Case::new(channel("alpha", "a b").retries(3))
        .held("alpha:a", CREDENTIAL, 0)
        .held("alpha:b", CREDENTIAL, 0)
        .says("alpha:a", "401")
        .says("alpha:b", "401")
        .gives(
            "0 alpha:a direct
             Retry 1/4 for alpha/m (previous attempt failed: credential HTTP 401; rotated key=b)
             0 alpha:b retry
             Retries exhausted for alpha/m after 2 attempt(s); last error: credential HTTP 401
             0 exhausted credentials_exhausted final",
        );
}

#[test]
fn a_walk_that_comes_to_held_keys_asks_them_only_where_nobody_else_can_serve() {
    let walk = |case: Case| {
        case.held("alpha:b", CREDENTIAL, 0)
            .says("alpha:a", "401")
            .says("alpha:b", "ok")
            .says("beta:x", "ok")
    };
    walk(Case::new(channel("alpha", "a b"))).gives(
        "0 alpha:a direct
         Retry 1/1 for alpha/m (previous attempt failed: credential HTTP 401; rotated key=b)
         0 alpha:b retry
         Request to alpha/m succeeded after 1 retry attempt(s)
         0 success",
    );
    let moved = walk(Case::new(channel("alpha", "a b")).then(channel("beta", "x"))).gives(
        "0 alpha:a direct
         Primary alpha/m failed (credential HTTP 401); evaluating 1 configured fallback(s)
         Trying fallback 1/1: beta/m (previous attempt failed: credential HTTP 401)
         0 beta:x fallback
         Request served by fallback beta/m (attempt 1/1)
         0 success",
    );
    assert_eq!(moved.skipped(), ["keys_held"]);
}

#[test]
fn a_key_whose_account_was_refused_stays_dead_on_the_providers_next_channel() {
    // Nothing is held out across requests: it is this request that remembers.
    let forgetful = || {
        let mut forgetful = channel("alpha", "a b");
        forgetful.pool = Arc::new((*forgetful.pool).clone().remembering(false));
        forgetful
    };
    Case::new(forgetful())
        .then(forgetful().model("n"))
        .says("alpha:a", "401")
        .says("alpha:b", "404model ok")
        .gives(
            "0 alpha:a direct
             Retry 1/1 for alpha/m (previous attempt failed: credential HTTP 401; rotated key=b)
             0 alpha:b retry
             Retries exhausted for alpha/m after 2 attempt(s); last error: model_access HTTP 404
             Primary alpha/m failed (model_access HTTP 404); evaluating 1 configured fallback(s)
             Trying fallback 1/1: alpha/n (previous attempt failed: model_access HTTP 404)
             0 alpha:b fallback
             Request served by fallback alpha/n (attempt 1/1)
             0 success",
        );
}

#[test]
fn a_request_that_may_have_taken_effect_is_not_repeated_unless_it_was_turned_away() {
    let unsafe_to_repeat = |reply: &str| {
        Case::new(channel("alpha", "a b").retries(5))
            .then(channel("beta", "x"))
            .terms(|terms| terms.replay_safe = false)
            .says("alpha:a", &format!("{reply} ok"))
            .says("alpha:b", "ok")
            .says("beta:x", "ok")
            .play()
            .world
            .sends
    };
    for (reply, sends) in [
        ("503", 1),
        ("reset", 1),
        ("slow", 1),
        ("408", 1),
        ("empty", 1),
        ("event429", 1),
        ("refused", 2),
        ("401", 2),
        ("429", 2),
        ("404html", 2),
    ] {
        assert_eq!(unsafe_to_repeat(reply), sends, "{reply}");
    }
}

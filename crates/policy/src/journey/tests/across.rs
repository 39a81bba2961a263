//! From channel to channel: fallbacks, substitutions, open circuits, what the request's own facts
//! forbid.

use backstop_breaker::Outcome as Health;
use backstop_classifier::Class;
use backstop_keypool::Refusal;

use super::world::{Case, channel};
use crate::plan::CallerFallback;
use crate::route::Lossy;
use crate::trail::{AttemptAction, Outcome};

#[test]
fn an_outage_is_repeated_then_left_for_the_same_contract() {
    Case::new(channel("alpha", "a").retries(2))
        .then(channel("beta", "b"))
        .says("alpha:a", "503 503 503")
        .says("beta:b", "ok")
        .gives(
            "0 alpha:a direct
             Retry 1/2 for alpha/m (previous attempt failed: transient HTTP 503; same key=a)
             500 alpha:a retry
             Retry 2/2 for alpha/m (previous attempt failed: transient HTTP 503; same key=a)
             1500 alpha:a retry
             Retries exhausted for alpha/m after 3 attempt(s); last error: transient HTTP 503
             Primary alpha/m failed (transient HTTP 503); evaluating 1 configured fallback(s)
             Trying fallback 1/1: beta/m (previous attempt failed: transient HTTP 503)
             1500 beta:b fallback
             Request served by fallback beta/m (attempt 1/1)
             1500 success",
        );
}

#[test]
fn when_all_fallbacks_failed_the_error_is_the_primarys() {
    Case::new(channel("alpha", "a"))
        .then(channel("beta", "b").retries(1))
        .then(channel("gamma", "c"))
        .says("alpha:a", "429+3")
        .says("beta:b", "503 503")
        .says("gamma:c", "400")
        .gives(
            "0 alpha:a direct
             Primary alpha/m failed (rate_limit HTTP 429); evaluating 2 configured fallback(s)
             Trying fallback 1/2: beta/m (previous attempt failed: rate_limit HTTP 429)
             0 beta:b fallback
             Retry 1/1 for beta/m (previous attempt failed: transient HTTP 503; same key=b)
             500 beta:b retry
             Retries exhausted for beta/m after 2 attempt(s); last error: transient HTTP 503
             Trying fallback 2/2: gamma/m (previous attempt failed: transient HTTP 503)
             500 gamma:c fallback
             All 2 fallback(s) exhausted; returning primary error (rate_limit HTTP 429)
             500 exhausted upstream #1 rate_limit retry-after=3000 final",
        );
}

#[test]
fn who_may_follow_which_failure() {
    // A candidate of each kind behind the primary; which of them is asked next?
    let next = |reply: &str, behind: &str| {
        let case = Case::new(channel("alpha", "a").window(100));
        let beta = channel("beta", "b");
        let other = channel("beta", "b").model("n");
        let case = match behind {
            "same" => case.then(beta),
            "verified" => case.then(beta.verified()),
            "substitution" => case.substitute(other, &[]),
            "on_rate_limit" => case.substitute(other, &[Class::RateLimit]),
            "policy" => case.substitute(other, &[]).for_policy(),
            "on_rate_limit_and_policy" => case.substitute(other, &[Class::RateLimit]).for_policy(),
            "larger" => case.substitute(other.window(101), &[]),
            "as_large" => case.substitute(other.window(100), &[]),
            "caller_same" => case.caller(beta),
            "caller_other" => case.caller(other),
            "caller_larger" => case.caller(other.window(200)),
            kind => panic!("no such candidate: {kind}"),
        };
        let played = case.says("alpha:a", reply).says("beta:b", "ok").play();
        played.settles();
        played.world.sends == 2
    };
    for (reply, open_to) in [
        ("401", "same verified substitution caller_same caller_other"),
        ("404model", "same substitution caller_other"),
        (
            "429",
            "same substitution on_rate_limit on_rate_limit_and_policy",
        ),
        ("503", "same substitution caller_same caller_other"),
        ("slow", "same substitution caller_same caller_other"),
        ("empty", "verified"),
        ("404html", "same verified caller_same"),
        ("400", ""),
        ("400window", "larger caller_larger"),
        ("400policy", "policy on_rate_limit_and_policy"),
        ("403policy", "policy on_rate_limit_and_policy"),
    ] {
        let open = |behind: &str| open_to.split(' ').any(|open| open == behind);
        for behind in [
            "same",
            "verified",
            "substitution",
            "on_rate_limit",
            "policy",
            "on_rate_limit_and_policy",
            "larger",
            "as_large",
            "caller_same",
            "caller_other",
            "caller_larger",
        ] {
            // Every kind is asked about where the row names it, and the first ones always.
            let always = matches!(
                reply,
                "empty" | "400" | "400window" | "400policy" | "403policy"
            );
            if always || open(behind) {
                assert_eq!(next(reply, behind), open(behind), "{reply} -> {behind}");
            }
        }
    }
    for (reply, behind) in [
        ("404html", "substitution"),
        ("404html", "caller_other"),
        ("503", "on_rate_limit"),
        ("401", "on_rate_limit"),
    ] {
        assert!(!next(reply, behind), "{reply} -> {behind}");
    }
}

#[test]
fn a_substitution_is_called_one() {
    let played = Case::new(channel("alpha", "a"))
        .substitute(channel("gamma", "c").model("n"), &[Class::Transient])
        .says("alpha:a", "503")
        .says("gamma:c", "503")
        .gives(
            "0 alpha:a direct
             Primary alpha/m failed (transient HTTP 503); evaluating 1 configured fallback(s)
             Trying substitution 1/1: gamma/n (previous attempt failed: transient HTTP 503)
             0 gamma:c substitution
             All 1 fallback(s) exhausted; returning primary error (transient HTTP 503)
             0 exhausted upstream #1 transient final",
        );
    assert_eq!(played.rows[1].action, AttemptAction::Substitution);
    Case::new(channel("alpha", "a"))
        .substitute(channel("gamma", "c").model("n"), &[])
        .says("alpha:a", "503")
        .says("gamma:c", "ok")
        .gives(
            "0 alpha:a direct
             Primary alpha/m failed (transient HTTP 503); evaluating 1 configured fallback(s)
             Trying substitution 1/1: gamma/n (previous attempt failed: transient HTTP 503)
             0 gamma:c substitution
             Request served by substitution gamma/n (attempt 1/1)
             0 success",
        );
}

#[test]
fn a_refused_content_walks_the_keys_and_ends_as_the_providers_own_refusal() {
    let refused = Case::new(channel("alpha", "a b").retries(5))
        .then(channel("beta", "x"))
        .says("alpha:a", "403policy")
        .says("alpha:b", "403policy")
        .gives(
            "0 alpha:a direct
             Retry 1/6 for alpha/m (previous attempt failed: credential HTTP 403; rotated key=b)
             0 alpha:b retry
             Retries exhausted for alpha/m after 2 attempt(s); last error: credential HTTP 403
             0 exhausted upstream #2 credential final",
        );
    assert!(
        refused
            .world
            .outcomes
            .iter()
            .all(|(health, _)| *health == Health::Ignored)
    );
    // Another key's own trouble opens no way round the refusal, and hides it as little.
    for after in ["401", "503", "slow"] {
        let played = Case::new(channel("alpha", "a b"))
            .then(channel("beta", "x"))
            .says("alpha:a", "403policy")
            .says("alpha:b", after)
            .play();
        assert_eq!(played.world.sends, 2, "{after}");
        assert_eq!(played.error().attempt, Some(1), "{after}");
    }
}

#[test]
fn a_fact_about_the_request_binds_every_later_candidate() {
    let larger = || channel("beta", "b").model("n").window(200);
    let small = || channel("gamma", "c").model("o").window(50);
    let case = || {
        Case::new(channel("alpha", "a").window(100))
            .substitute(larger(), &[])
            .substitute(small(), &[])
            .says("alpha:a", "400window")
    };
    // Neither after an open circuit nor after another failure is the small one tried.
    let skipped = case().open("beta", 5_000).play();
    assert_eq!(skipped.world.sends, 1);
    assert_eq!(skipped.error().attempt, Some(1));
    let failed = case().says("beta:b", "503").play();
    assert_eq!(failed.world.sends, 2);
    // A malformed answer goes to a verified channel or nowhere, also past a circuit.
    let malformed = Case::new(channel("alpha", "a"))
        .then(channel("beta", "b").verified())
        .then(channel("gamma", "c"))
        .open("beta", 5_000)
        .says("alpha:a", "empty")
        .play();
    assert_eq!(malformed.world.sends, 1);
}

#[test]
fn an_open_circuit_is_passed_over_and_the_least_bad_one_tried_when_all_are() {
    let one = Case::new(channel("alpha", "a"))
        .then(channel("beta", "b"))
        .open("alpha", 5_000)
        .says("beta:b", "ok")
        .gives(
            "Trying fallback 1/1: beta/m (no attempt before it)
             0 beta:b fallback
             Request served by fallback beta/m (attempt 1/1)
             0 success",
        );
    assert_eq!(one.skipped(), ["circuit_open"]);
    // One send, whatever the retries: the channels are known to be in trouble.
    let all = Case::new(channel("alpha", "a").retries(5))
        .then(channel("beta", "b").retries(5))
        .open("alpha", 9_000)
        .open("beta", 4_000)
        .says("beta:b", "503")
        .gives(
            "Trying fallback 1/1: beta/m (no attempt before it)
             0 beta:b fallback
             All 1 fallback(s) exhausted; returning primary error (transient HTTP 503)
             0 exhausted upstream #1 transient",
        );
    assert_eq!(all.skipped(), ["circuit_open", "circuit_open"]);
    assert_eq!(all.world.asked_first, ["alpha/m", "beta/m"]);
    // What was passed over before the forced one is not visited after it.
    let first = Case::new(channel("alpha", "a"))
        .then(channel("beta", "b"))
        .open("alpha", 4_000)
        .open("beta", 9_000)
        .says("alpha:a", "503")
        .play();
    assert_eq!((first.world.sends, first.rows.len()), (1, 3));
    // A channel that answers with a refused key is no longer in an outage: its keys are walked.
    let walked = Case::new(channel("alpha", "a b"))
        .open("alpha", 9_000)
        .says("alpha:a", "401")
        .says("alpha:b", "ok")
        .play();
    assert_eq!(walked.world.sends, 2);
}

#[test]
fn after_a_send_nothing_is_forced() {
    let played = Case::new(channel("alpha", "a"))
        .then(channel("beta", "b"))
        .open("beta", 5_000)
        .says("alpha:a", "503")
        .play();
    assert_eq!(played.world.sends, 1);
    assert_eq!(played.skipped(), ["circuit_open"]);
}

#[test]
fn a_forced_failure_still_reaches_the_substitution_it_names() {
    Case::new(channel("alpha", "a"))
        .substitute(channel("gamma", "c").model("n"), &[Class::Transient])
        .held("alpha:a", Refusal::RateLimited, 60)
        .says("alpha:a", "503")
        .says("gamma:c", "ok")
        .play()
        .row(2, |row| assert_eq!(row.outcome, Outcome::Success));
}

#[test]
fn what_leads_past_channels_that_were_not_asked() {
    for (reason, on, sends) in [
        ("open", vec![], 1),
        ("open", vec![Class::Transient], 1),
        ("open", vec![Class::RateLimit], 0),
        ("held", vec![Class::RateLimit], 1),
        ("held", vec![Class::Transient], 0),
    ] {
        let case = Case::new(channel("alpha", "a"))
            .substitute(channel("gamma", "c").model("n"), &on)
            .says("gamma:c", "ok")
            .says("alpha:a", "400");
        let case = match reason {
            "open" => case.open("alpha", 5_000),
            _ => case.held("alpha:a", Refusal::RateLimited, 60),
        };
        let played = case.play();
        let gamma = played
            .world
            .sent
            .iter()
            .filter(|(id, _)| id.as_str() == "gamma/n");
        assert_eq!(gamma.count(), sends, "{reason} {on:?}");
    }
}

#[test]
fn the_callers_own_chain_comes_before_the_operators_substitutions() {
    Case::new(channel("alpha", "a"))
        .caller_missing("nobody/x")
        .caller(channel("beta", "b").model("n"))
        .substitute(channel("gamma", "c").model("o"), &[])
        .says("alpha:a", "503")
        .says("beta:b", "503")
        .says("gamma:c", "ok")
        .gives(
            "0 alpha:a direct
             Primary alpha/m failed (transient HTTP 503); evaluating 3 configured fallback(s)
             Fallback nobody/x skipped: missing provider config
             Trying fallback 2/3: beta/n (previous attempt failed: transient HTTP 503)
             0 beta:b substitution
             Trying substitution 3/3: gamma/o (previous attempt failed: transient HTTP 503)
             0 gamma:c substitution
             Request served by substitution gamma/o (attempt 3/3)
             0 success",
        );
    // Nobody hears of a missing provider while the primary serves.
    Case::new(channel("alpha", "a"))
        .caller_missing("nobody/x")
        .says("alpha:a", "ok")
        .gives("0 alpha:a direct\n0 success");
    Case::new(channel("alpha", "a"))
        .caller_missing("nobody/x")
        .says("alpha:a", "503")
        .gives(
            "0 alpha:a direct
             Primary alpha/m failed (transient HTTP 503); evaluating 1 configured fallback(s)
             Fallback nobody/x skipped: missing provider config
             All 1 fallback(s) exhausted; returning primary error (transient HTTP 503)
             0 exhausted upstream #1 transient",
        );
}

#[test]
fn the_sends_are_capped_over_all_and_on_either_side() {
    let busy = |set: fn(&mut crate::RouteLimits)| {
        let played = Case::new(channel("alpha", "a").retries(9))
            .then(channel("beta", "b").retries(9))
            .limits(set)
            .says("alpha:a", &"503 ".repeat(20))
            .says("beta:b", &"503 ".repeat(20))
            .play();
        played.settles();
        let alpha = played
            .world
            .sent
            .iter()
            .filter(|(id, _)| id.as_str() == "alpha/m");
        (alpha.count(), played.world.sends, played.error().attempt)
    };
    for (set, alpha, sends) in [
        ((|_| ()) as fn(&mut crate::RouteLimits), 10, 12),
        (|limits| limits.max_attempts = 3, 3, 3),
        (|limits| limits.max_attempts_primary = Some(2), 2, 12),
        (|limits| limits.max_attempts_fallback = Some(1), 10, 11),
        (|limits| limits.max_attempts_fallback = Some(0), 10, 10),
    ] {
        let (to_alpha, total, shown) = busy(set);
        assert_eq!((to_alpha, total), (alpha, sends));
        // The primary's last error, wherever the chain was cut.
        assert_eq!(shown, Some(u32::try_from(alpha).expect("few")));
    }
    let cut = Case::new(channel("alpha", "a"))
        .then(channel("beta", "b"))
        .then(channel("gamma", "c"))
        .limits(|limits| limits.max_attempts = 2)
        .says("alpha:a", "503")
        .says("beta:b", "503");
    cut.gives(
        "0 alpha:a direct
         Primary alpha/m failed (transient HTTP 503); evaluating 2 configured fallback(s)
         Trying fallback 1/2: beta/m (previous attempt failed: transient HTTP 503)
         0 beta:b fallback
         Fallback beta/m failed (transient HTTP 503); halting further fallbacks
         0 exhausted upstream #1 transient final",
    );
}

#[test]
fn a_channel_that_cannot_carry_the_request_after_all_counts_for_nothing() {
    let played = Case::new(channel("alpha", "a"))
        .then(channel("beta", "b"))
        .says("alpha:a", "unbuildable")
        .says("beta:b", "ok")
        .play();
    assert_eq!(played.skipped(), ["cannot_carry:logprobs"]);
    assert_eq!(played.rows[0].key, None);
    assert_eq!(played.rows[1].attempt, Some(1));
    let alone = Case::new(channel("alpha", "a")).says("alpha:a", "unbuildable");
    alone.play().row(0, |row| assert_eq!(row.attempt, None));
    // As a retry it is none.
    Case::new(channel("alpha", "a").retries(1))
        .says("alpha:a", "503 unbuildable")
        .gives(
            "0 alpha:a direct
             Retry 1/1 for alpha/m (previous attempt failed: transient HTTP 503; same key=a)
             500 alpha:a retry
             500 exhausted upstream #1 transient",
        );
}

#[test]
fn an_empty_plan_and_a_model_without_keys_say_so() {
    let drained = |mut channel: crate::Channel| {
        channel.weight = 0.0;
        channel
    };
    Case::new(drained(channel("alpha", "a"))).gives("0 exhausted nothing_eligible final");
    let mut case = Case::new(drained(channel("alpha", "a")));
    case.fallbacks = vec![CallerFallback::MissingProvider("nobody/x".to_owned())];
    case.route.lossy = Lossy::Drop;
    case.gives(
        "Fallback nobody/x skipped: missing provider config
         0 exhausted nothing_eligible final",
    );
    let mut unserved = channel("alpha", "a");
    unserved.keys = vec![backstop_units::KeyId::new(&unserved.provider, "other")];
    Case::new(unserved.clone()).gives("0 exhausted no_key_serves final");
    // The error of whoever was asked says more.
    Case::new(unserved)
        .then(channel("beta", "b"))
        .says("beta:b", "503")
        .gives(
            "Trying fallback 1/1: beta/m (no attempt before it)
             0 beta:b fallback
             All 1 fallback(s) exhausted; returning primary error (transient HTTP 503)
             0 exhausted upstream #1 transient",
        );
    // Nothing that a substitution names has happened.
    Case::new(drained(channel("alpha", "a")))
        .substitute(channel("gamma", "c").model("n"), &[Class::RateLimit])
        .gives("0 exhausted nothing_eligible final");
}

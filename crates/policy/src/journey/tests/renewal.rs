//! Tokens that are refused, renewed, or not to be had.

use backstop_classifier::{Class, Kind};
use backstop_keypool::{Permanent, Refusal};

use super::super::{Cause, KeyFate};
use super::world::{Case, channel};
use crate::trail::{Outcome, UpstreamPhase};

const CREDENTIAL: Refusal = Refusal::Permanent(Permanent::Credential);

#[test]
fn a_refused_token_is_renewed_and_its_key_serves() {
    for refusal in ["401@10", "401expired@10"] {
        let played = Case::new(channel("alpha", "a b"))
            .renews("alpha", "ok@200")
            .says("alpha:a", &format!("{refusal} ok"))
            .gives(
                "0 alpha:a direct
                 10 alpha:a renew
                 Retry 1/1 for alpha/m (previous attempt failed: credential HTTP 401; same key=a)
                 210 alpha:a retry
                 Request to alpha/m succeeded after 1 retry attempt(s)
                 210 success",
            );
        played.row(0, |row| {
            assert_eq!(row.kind, Some(Kind::RenewableToken));
            assert_eq!(row.fail_reason.as_deref(), Some("token_expired"));
            assert_eq!(row.status, Some(401));
        });
        assert!(
            played
                .world
                .outcomes
                .iter()
                .all(|(_, fate)| matches!(fate, KeyFate::Nothing | KeyFate::Served))
        );
    }
}

#[test]
fn a_renewed_token_that_is_refused_too_kills_its_key() {
    let played = Case::new(channel("alpha", "a b"))
        .renews("alpha", "")
        .says("alpha:a", "401 401")
        .says("alpha:b", "ok")
        .gives(
            "0 alpha:a direct
             0 alpha:a renew
             Retry 1/1 for alpha/m (previous attempt failed: credential HTTP 401; same key=a)
             0 alpha:a retry
             Retry 2/2 for alpha/m (previous attempt failed: credential HTTP 401; rotated key=b)
             0 alpha:b retry
             Request to alpha/m succeeded after 2 retry attempt(s)
             0 success",
        );
    let refused = played.world.outcomes.iter();
    let refused = refused.filter(
        |(_, fate)| matches!(fate, KeyFate::Refused { refusal, .. } if *refusal == CREDENTIAL),
    );
    assert_eq!(refused.count(), 1);
}

#[test]
fn each_key_is_renewed_once_and_the_next_stay_knows() {
    let played = Case::new(channel("alpha", "a b"))
        .caller(channel("alpha", "a b").model("n"))
        .renews("alpha", "")
        .says("alpha:a", "401 503 401")
        .says("alpha:b", "ok")
        .play();
    played.settles();
    let names: Vec<_> = played.world.renewed.iter().map(|key| key.name()).collect();
    assert_eq!(names, ["a"]);
    let keys = played.rows.iter().filter_map(|row| row.key.as_ref());
    let keys: Vec<_> = keys.map(|key| key.name()).collect();
    assert_eq!(keys, ["a", "a", "a", "b"]);
}

#[test]
fn a_proof_that_is_refused_kills_the_key_and_a_dead_endpoint_the_channel() {
    let played = Case::new(channel("alpha", "a b"))
        .renews("alpha", "denied@30")
        .says("alpha:a", "401")
        .says("alpha:b", "ok")
        .gives(
            "0 alpha:a direct
             0 alpha:a renew
             Retry 1/1 for alpha/m (previous attempt failed: credential HTTP 401; same key=a)
             Retry 2/2 for alpha/m (previous attempt failed: credential HTTP 502; rotated key=b)
             30 alpha:b retry
             Request to alpha/m succeeded after 2 retry attempt(s)
             30 success",
        );
    played.row(1, |row| {
        assert_eq!(row.attempt, Some(2));
        assert_eq!(row.upstream_phase, UpstreamPhase::NotSent);
        assert_eq!(row.fail_reason.as_deref(), Some("token_refused"));
        assert_eq!((row.outcome, row.status), (Outcome::Failed, None));
        assert_eq!(row.total.as_millis(), 30);
    });
    Case::new(channel("alpha", "a b"))
        .then(channel("beta", "x"))
        .renews("alpha", "down@30")
        .says("alpha:a", "401")
        .says("beta:x", "ok")
        .gives(
            "0 alpha:a direct
             0 alpha:a renew
             Retry 1/1 for alpha/m (previous attempt failed: credential HTTP 401; same key=a)
             Retries exhausted for alpha/m after 2 attempt(s); last error: transient HTTP 502
             Primary alpha/m failed (transient HTTP 502); evaluating 1 configured fallback(s)
             Trying fallback 1/1: beta/m (previous attempt failed: transient HTTP 502)
             30 beta:x fallback
             Request served by fallback beta/m (attempt 1/1)
             30 success",
        );
}

#[test]
fn a_token_that_cannot_be_had_at_first_is_a_failure_like_any_other() {
    let played = Case::new(channel("alpha", "a b"))
        .renews("alpha", "")
        .says("alpha:a", "denied@20")
        .says("alpha:b", "ok")
        .play();
    played.settles();
    played.row(0, |row| {
        assert_eq!(row.class, Some(Class::Credential));
        assert_eq!(row.kind, Some(Kind::TokenFetch));
        assert_eq!(row.upstream_phase, UpstreamPhase::NotSent);
    });
    assert!(played.world.renewed.is_empty(), "{:#?}", played.world.said);
    // It may always be tried again, whatever the request.
    Case::new(channel("alpha", "a").retries(1))
        .renews("alpha", "")
        .terms(|terms| terms.replay_safe = false)
        .says("alpha:a", "down ok")
        .gives(
            "0 alpha:a direct
             Retry 1/1 for alpha/m (previous attempt failed: transient HTTP 502; same key=a)
             500 alpha:a retry
             Request to alpha/m succeeded after 1 retry attempt(s)
             500 success",
        );
}

#[test]
fn what_no_other_token_would_change_renews_none() {
    for (refusal, renews) in [
        ("403", "alpha"),
        ("403policy", "alpha"),
        ("402", "alpha"),
        ("404model", "alpha"),
        ("401", "beta"),
    ] {
        let played = Case::new(channel("alpha", "a"))
            .renews(renews, "")
            .says("alpha:a", refusal)
            .play();
        played.settles();
        assert!(played.world.renewed.is_empty(), "{refusal}");
    }
}

#[test]
fn a_renewal_keeps_to_the_requests_bounds() {
    // No send is left: the key is not blamed.
    let played = Case::new(channel("alpha", "a"))
        .limits(|limits| limits.max_attempts = 1)
        .renews("alpha", "")
        .says("alpha:a", "401")
        .play();
    played.settles();
    assert_eq!(played.error().cause, Cause::Upstream);
    let fates = played.world.outcomes.iter().map(|(_, fate)| *fate);
    assert_eq!(fates.collect::<Vec<_>>(), [KeyFate::Nothing]);
    Case::new(channel("alpha", "a"))
        .deadline(1000)
        .renews("alpha", "ok@9000")
        .says("alpha:a", "401")
        .gives(
            "0 alpha:a direct
             0 alpha:a renew
             1000 deadline time final",
        );
    Case::new(channel("alpha", "a"))
        .leaves(50)
        .renews("alpha", "ok@9000")
        .says("alpha:a", "401")
        .gives(
            "0 alpha:a direct
             0 alpha:a renew
             50 cancelled",
        );
}

#[test]
fn a_pinned_request_renews_and_asks_no_other_key() {
    let played = Case::new(channel("alpha", "a b"))
        .then(channel("beta", "x"))
        .pin("a")
        .renews("alpha", "")
        .says("alpha:a", "401 401")
        .play();
    played.settles();
    assert_eq!(played.world.sends, 2);
    assert_eq!(played.world.renewed.len(), 1);
}

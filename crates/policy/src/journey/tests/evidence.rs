//! The same failure on a second channel is evidence about the request.

use backstop_breaker::Outcome::{self as Health, Failure, Ignored, RateLimited, Success};

use super::world::{Case, channel};

#[test]
fn a_5xx_that_follows_the_request_is_counted_where_it_was_met_first() {
    for (alpha, beta, gamma, want) in [
        ("500", "500", "500", &[Failure, Ignored, Ignored][..]),
        ("500", "500", "ok", &[Failure, Ignored, Success]),
        ("500crash", "500crash", "ok", &[Failure, Ignored, Success]),
        // Another status or another code is another failure.
        ("500", "500crash", "500", &[Failure, Failure, Ignored]),
        ("500", "502", "ok", &[Failure, Failure, Success]),
        // Each speaks of itself: overload, a limit, a key, a broken connection, a clock.
        ("503busy", "503busy", "ok", &[Failure, Failure, Success]),
        ("429", "429", "ok", &[RateLimited, RateLimited, Success]),
        ("401", "401", "ok", &[Ignored, Ignored, Success]),
        ("reset", "reset", "ok", &[Failure, Failure, Success]),
        ("slow", "slow", "ok", &[Failure, Failure, Success]),
    ] {
        let played = Case::new(channel("alpha", "a"))
            .then(channel("beta", "b"))
            .then(channel("gamma", "c"))
            .says("alpha:a", alpha)
            .says("beta:b", beta)
            .says("gamma:c", gamma)
            .play();
        played.settles();
        let learned: Vec<Health> = played.world.outcomes.iter().map(|one| one.0).collect();
        assert_eq!(learned, want, "{alpha} {beta} {gamma}");
    }
}

#[test]
fn retries_count_where_it_was_met_first_and_nowhere_else() {
    let played = Case::new(channel("alpha", "a").retries(2))
        .then(channel("beta", "b").retries(1))
        .says("alpha:a", "500 500 500")
        .says("beta:b", "500 500")
        .play();
    let learned: Vec<Health> = played.world.outcomes.iter().map(|one| one.0).collect();
    assert_eq!(learned, [Failure, Failure, Failure, Ignored, Ignored]);
}

#[test]
fn another_key_of_the_same_channel_is_another_witness() {
    // A rate limit rotates between the two.
    let played = Case::new(channel("alpha", "a b").retries(3))
        .says("alpha:a", "500 429")
        .says("alpha:b", "500 ok")
        .play();
    let learned: Vec<Health> = played.world.outcomes.iter().map(|one| one.0).collect();
    assert_eq!(learned, [Failure, RateLimited, Ignored, Success]);
}

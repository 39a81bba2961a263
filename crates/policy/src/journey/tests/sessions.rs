//! Sessions: bound to who served them, by staying or by coming back.

use backstop_keypool::Refusal;

use super::world::{Case, Played, channel};
use crate::session::OnRefusal::{self, Move, Stay};

fn three(on_refusal: OnRefusal, served: &str) -> Case {
    Case::new(channel("alpha", "a b c").retries(1))
        .then(channel("beta", "x y"))
        .session(on_refusal, served)
}

/// Who was asked, in order, and how it ended.
fn asked(played: &Played) -> String {
    let sent = played.world.sent.iter();
    let keys = sent.map(|(_, key)| key.as_ref().map_or("-", |key| key.name()));
    let keys: Vec<_> = keys.chain([played.ending.reason()]).collect();
    keys.join(" ")
}

#[test]
fn a_session_asks_the_key_that_served_it() {
    for on_refusal in [Stay, Move] {
        for (served, first) in [
            ("", "a"),
            ("alpha:b", "b"),
            ("alpha:c alpha:b", "c"),
            ("beta:y alpha:b", "b"),
            // Not a key of this channel, or no longer one.
            ("beta:y", "a"),
            ("alpha:gone alpha:b", "b"),
        ] {
            let case = three(on_refusal, served).says(&format!("alpha:{first}"), "ok");
            let played = case.play();
            played.settles();
            assert_eq!(asked(&played), format!("{first} success"), "{served}");
        }
    }
}

#[test]
fn a_session_that_stays_gets_its_keys_error_and_one_that_moves_walks_on() {
    for (reply, stays, moves) in [
        ("401", "b exhausted", "b a success"),
        ("404model", "b exhausted", "b a success"),
        ("429", "b exhausted", "b a success"),
    ] {
        for (on_refusal, want) in [(Stay, stays), (Move, moves)] {
            let played = three(on_refusal, "alpha:b")
                .says("alpha:b", reply)
                .says("alpha:a", "ok")
                .play();
            played.settles();
            assert_eq!(asked(&played), want, "{reply}");
        }
    }
}

#[test]
fn a_session_that_stays_ends_as_a_pinned_request_does() {
    for reply in [
        "401",
        "403policy",
        "404model",
        "429+3",
        "500",
        "slow",
        "400",
    ] {
        let play = |case: Case| {
            let mut case = case.says("alpha:b", reply).says("beta:x", "ok");
            case.world.otherwise = Some(Box::new(|| "ok".to_owned()));
            case.play()
        };
        let base = || Case::new(channel("alpha", "a b c")).then(channel("beta", "x y"));
        let stays = play(base().session(Stay, "alpha:b"));
        let pinned = play(base().pin("b"));
        assert_eq!(stays.world.said, pinned.world.said, "{reply}");
    }
}

#[test]
fn the_first_request_of_a_session_walks_as_any_other() {
    let played = three(Stay, "")
        .says("alpha:a", "401")
        .says("alpha:b", "ok")
        .play();
    assert_eq!(asked(&played), "a b success");
}

#[test]
fn a_channels_own_trouble_moves_any_session_to_the_key_it_has_there() {
    for on_refusal in [Stay, Move] {
        let played = three(on_refusal, "alpha:b beta:y")
            .says("alpha:b", "500 500")
            .says("beta:y", "ok")
            .play();
        played.settles();
        assert_eq!(asked(&played), "b b y success");
    }
}

#[test]
fn a_held_key_is_asked_by_one_that_stays_and_passed_by_by_one_that_moves() {
    for (on_refusal, want) in [(Stay, "b success"), (Move, "a success")] {
        let played = three(on_refusal, "alpha:b")
            .held("alpha:b", Refusal::RateLimited, 60)
            .says("alpha:b", "ok")
            .says("alpha:a", "ok")
            .play();
        assert_eq!(asked(&played), want);
    }
}

#[test]
fn a_pin_outranks_a_session() {
    let played = three(Stay, "alpha:b").pin("c").says("alpha:c", "ok").play();
    assert_eq!(asked(&played), "c success");
}

#[test]
fn a_provider_without_keys_is_no_trouble() {
    let played = Case::new(channel("alpha", ""))
        .session(Stay, "alpha:-")
        .says("alpha:-", "ok")
        .play();
    assert_eq!(asked(&played), "- success");
}

//! Laws that hold in every world and under every timing.

use backstop_breaker::Outcome as Health;
use backstop_classifier::Kind;
use backstop_keypool::{Permanent, Refusal};
use backstop_units::Moment;
use proptest::prelude::*;

use super::super::Ending;
use super::world::{Case, Judged, Played, channel};
use crate::session::OnRefusal;
use crate::trail::Outcome;

const REPLIES: [&str; 30] = [
    "401",
    "denied@15",
    "down",
    "ok@40",
    "stream@90",
    "cut@70",
    "stall",
    "startup",
    "hang",
    "event429@20",
    "stale",
    "unbuildable",
    "401",
    "402",
    "403policy",
    "404model",
    "403region",
    "429",
    "429+2",
    "429large",
    "503@30",
    "500",
    "500crash",
    "503busy",
    "408@10",
    "refused@5",
    "slow@300",
    "empty@15",
    "404html",
    "400window",
];

const RENEWALS: [&str; 4] = ["ok", "denied@30", "down@10", "ok@9000"];

const SAYS: [&str; 8] = [
    "pass",
    "pass",
    "pass@40",
    "answer",
    "halt403",
    "next429:rate_limit+3",
    "next403@20",
    "pass@100000",
];

#[derive(Debug, Clone)]
struct Wild {
    replies: Vec<usize>,
    keys: usize,
    retries: u32,
    bears: u32,
    max_attempts: u32,
    sides: (Option<u32>, Option<u32>),
    deadline: u64,
    open: [bool; 3],
    held: [bool; 2],
    flags: [bool; 5],
    session: Option<bool>,
    leaves: Option<u64>,
    leaves_at_step: Option<usize>,
    /// The providers whose keys stand for tokens, and what comes of renewing them.
    renews: Option<Vec<usize>>,
    /// What hooks say before and after each provider, where there are any.
    hooks: Option<[usize; 6]>,
}

fn wild() -> impl Strategy<Value = Wild> {
    let bounds = (0..4_u32, 0..5_u32, 1..8_u32, 1..6_000_u64);
    let side = || proptest::option::of(0..4_u32);
    let leave = (
        proptest::option::weighted(0.3, 0..4_000_u64),
        proptest::option::weighted(0.3, 1..60_usize),
    );
    (
        proptest::collection::vec(0..REPLIES.len(), 1..12),
        0..4_usize,
        bounds,
        (side(), side()),
        any::<([bool; 3], [bool; 2], [bool; 5], Option<bool>)>(),
        leave,
        (
            proptest::option::of(proptest::collection::vec(0..RENEWALS.len(), 0..4)),
            proptest::option::of(proptest::array::uniform6(0..SAYS.len())),
        ),
    )
        .prop_map(
            |(replies, keys, bounds, sides, (open, held, flags, session), leave, others)| Wild {
                replies,
                keys,
                retries: bounds.0,
                bears: bounds.1,
                max_attempts: bounds.2,
                sides,
                deadline: bounds.3,
                open,
                held,
                flags,
                session,
                leaves: leave.0,
                leaves_at_step: leave.1,
                renews: others.0,
                hooks: others.1,
            },
        )
}

fn play(wild: &Wild) -> Played {
    let names = ["", "a", "a b", "a b c"][wild.keys];
    let [streaming, replay_safe, pinned, verified, restless] = wild.flags;
    let mut beta = channel("beta", "x y").retries(wild.retries);
    beta.verified = verified;
    let mut case = Case::new(channel("alpha", names).retries(wild.retries).window(10))
        .then(beta)
        .caller(channel("alpha", names).model("n"))
        .caller_missing("nobody/x")
        .substitute(channel("gamma", "c").model("o").window(20), &[])
        .deadline(wild.deadline)
        .limits(|limits| {
            limits.max_attempts = wild.max_attempts;
            (limits.max_attempts_primary, limits.max_attempts_fallback) = wild.sides;
        })
        .terms(|terms| {
            terms.streaming = streaming;
            terms.replay_safe = replay_safe;
        })
        .bears("alpha", wild.bears)
        .bears("beta", wild.bears);
    if pinned && wild.keys > 0 {
        case = case.pin("a");
    }
    if let Some(moves) = wild.session {
        let on_refusal = if moves {
            OnRefusal::Move
        } else {
            OnRefusal::Stay
        };
        case = case.session(on_refusal, "beta:y gamma:- alpha:b");
    }
    for (provider, open) in ["alpha", "beta", "gamma"].into_iter().zip(wild.open) {
        if open {
            case = case.open(provider, 700);
        }
    }
    if wild.held[0] && wild.keys > 0 {
        case = case.held("alpha:a", Refusal::RateLimited, 12);
    }
    if wild.held[1] {
        case = case.held("beta:x", Refusal::Permanent(Permanent::Credential), 0);
    }
    if let Some(leaves) = wild.leaves {
        case = case.leaves(leaves);
    }
    if let Some(renews) = &wild.renews {
        let outcomes: Vec<&str> = renews.iter().map(|place| RENEWALS[*place]).collect();
        case = case.renews("alpha beta", &outcomes.join(" "));
    }
    let stages = ["alpha", "beta", "gamma"]
        .map(|provider| ["before", "after"].map(|stage| format!("{stage} {provider}")));
    for (stage, say) in stages.iter().flatten().zip(wild.hooks.iter().flatten()) {
        case = case.hook(stage, SAYS[*say]);
    }
    case.world.leaves_at_step = wild.leaves_at_step;
    case.world.restless = restless;
    let mut replies = wild.replies.clone().into_iter().cycle();
    case.world.otherwise = Some(Box::new(move || {
        REPLIES[replies.next().expect("a cycle")].to_owned()
    }));
    case.play()
}

/// Whether a breaker was told of a failure that may be the request's own doing.
fn counts_a_5xx(judged: &Judged) -> bool {
    let row = &judged.row;
    judged.outcome == Health::Failure
        && row.outcome == Outcome::Failed
        && row.kind != Some(Kind::Overloaded)
        && row.status.is_some_and(|status| status >= 500)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// The driver of these tests refuses any action after the end, so that nothing follows a
    /// committed stream, a caller who left, or an ending; here is what remains.
    #[test]
    fn whatever_happens(wild in wild()) {
        let played = play(&wild);
        played.settles();
        let world = &played.world;
        let deadline = Moment::from_millis(wild.deadline);
        prop_assert!(world.sends <= wild.max_attempts);
        prop_assert!(world.send_times.iter().all(|sent| *sent < deadline));
        prop_assert!(world.waits.iter().all(|(_, until)| *until < deadline));
        prop_assert!(world.now <= deadline, "{} is past {deadline}", world.now);
        let on_side = |primary: bool| {
            let rows = played.rows.iter().filter(|row| row.attempt.is_some());
            let there = rows.filter(|row| (row.channel.as_str() == "alpha/m") == primary);
            u32::try_from(there.count()).expect("few")
        };
        prop_assert!(wild.sides.0.is_none_or(|most| on_side(true) <= most));
        prop_assert!(wild.sides.1.is_none_or(|most| on_side(false) <= most));
        let mut heard = world.heard.clone();
        heard.sort_unstable();
        heard.dedup();
        prop_assert_eq!(heard.len(), world.heard.len(), "once a channel and stage");
        prop_assert_eq!(heard.is_empty() || wild.hooks.is_some(), true);
        if let Ending::PolicyStop(error) = &played.ending {
            prop_assert!(error.stopped.is_some() && error.attempt.is_none());
        }
        let told = match &played.ending {
            Ending::Exhausted(error) => error.attempt,
            _ => None,
        };
        prop_assert!(told.is_none_or(|attempt| (1..=world.sends).contains(&attempt)));
        let mut renewed = world.renewed.clone();
        renewed.sort_unstable();
        renewed.dedup();
        prop_assert_eq!(renewed.len(), world.renewed.len(), "once a key");
        prop_assert!(renewed.is_empty() || wild.renews.is_some());
        let mut blamed: Vec<&Judged> = Vec::new();
        for one in world.judged.iter().filter(|one| counts_a_5xx(one)) {
            let of = |one: &Judged| (one.row.status, one.row.code.clone());
            let place = |one: &Judged| (one.row.channel.clone(), one.row.key.clone());
            let first = blamed.iter().find(|other| of(other) == of(one));
            prop_assert!(first.is_none_or(|first| place(first) == place(one)), "{:#?}", one.row);
            blamed.push(one);
        }
        let mut asked = world.asked_first.clone();
        asked.sort_unstable();
        asked.dedup();
        prop_assert_eq!(asked.len(), world.asked_first.len(), "once a request and channel");
    }
}

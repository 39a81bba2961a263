//! Callers who leave, at any moment of their request's life.

use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use backstop_faultsim::{Dialect, End, Ending, Fault, Item, Step};
use backstop_ledger::JourneyRecord;
use bytes::Bytes;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::breaks::{Difference, differences};
use super::caller::{Ask, Leave, Leaver};
use super::dice::{Dice, Part};
use super::findings::{Findings, Promise};
use super::golden::Script;
use super::scene::{ATTEMPTS, PROVIDERS, ROUTES, Scene, Setting, config};
use super::{LEDGER_PATIENCE, SCENE, Soak};

/// Connections to providers are closed within this time.
const CLOSED_WITHIN: Duration = Duration::from_secs(1);

/// Every so many scenes one has room for two callers only, so that the others wait for a place.
const QUEUE_EVERY: u64 = 6;

/// Where in its request's life a caller leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Inside its own request.
    InRequest,
    /// Waiting for a place.
    Queued,
    /// Before the provider's headers.
    BeforeHeaders,
    /// During the wait before a retry.
    Backoff,
    /// Inside a stream.
    MidStream,
    /// While a whole answer is held back.
    Held,
    /// Inside an answer that is not streamed.
    Whole,
}

const STAGES: [Stage; 6] = [
    Stage::InRequest,
    Stage::BeforeHeaders,
    Stage::Backoff,
    Stage::MidStream,
    Stage::Held,
    Stage::Whole,
];

impl Stage {
    const fn name(self) -> &'static str {
        match self {
            Self::InRequest => "left inside the request",
            Self::Queued => "left while queued for a place",
            Self::BeforeHeaders => "left before the provider's headers",
            Self::Backoff => "left during a wait before a retry",
            Self::MidStream => "left inside a stream",
            Self::Held => "left while the answer was held back",
            Self::Whole => "left inside an answer not streamed",
        }
    }
}

/// What one case plays.
#[derive(Debug, Clone)]
struct Case {
    name: String,
    id: String,
    ask: Ask,
    stage: Stage,
    script: Script,
    /// Bytes sent behind the request.
    more: &'static [u8],
    /// Attempts that are refused before the one that is left behind.
    refused: u32,
    /// How long it stays once its request is sent.
    stays: Duration,
    /// How many bytes of the answer it hears first, at most within that time.
    hears: usize,
    leave: Leave,
    /// How far into its request or answer.
    part: Part,
}

impl Case {
    fn roll(seed: u64, number: u64, queued: bool) -> Self {
        let mut dice = Dice::of(seed, &[3, number]);
        let stage = if queued {
            Stage::Queued
        } else {
            dice.pick(&STAGES)
        };
        let id = format!("leave-{number}");
        let script = Script::roll(&mut dice, &number.to_string(), false);
        let longest = match stage {
            Stage::Backoff => 140,
            Stage::MidStream => 400,
            Stage::InRequest => 3,
            _ => 25,
        };
        let hears = match stage {
            Stage::MidStream => 1 + dice.part().of(2500),
            _ => usize::MAX,
        };
        Self {
            name: format!("hangups/{number}"),
            ask: ask(&mut dice, &id, stage),
            id,
            stage,
            script,
            more: dice.pick(&[
                b"".as_slice(),
                b"",
                b"",
                b"\r\n",
                b"GET /healthz HTTP/1.1\r\nhost: g\r\n\r\n",
            ]),
            refused: match stage {
                Stage::Backoff => ATTEMPTS,
                _ => u32::from(dice.one_in(4)),
            },
            stays: Duration::from_micros(dice.between(0, longest * 1000)),
            hears,
            leave: dice.pick(&[Leave::Close, Leave::Close, Leave::Reset]),
            part: dice.part(),
        }
    }

    fn step(&self, dice: &mut Dice, attempt: u32, dialect: Dialect) -> Step {
        if attempt <= self.refused {
            return Step::fault(Fault::Unavailable);
        }
        match self.stage {
            Stage::MidStream | Stage::Held => {
                let wire = self.script.stream(dialect).wire;
                let size = 1 + dice.below(200);
                let pieces = wire.chunks(size).map(|piece| {
                    let wait = Duration::from_millis(dice.between(0, 3));
                    Item::raw(Bytes::copy_from_slice(piece)).after(wait)
                });
                Step::sse(pieces.collect::<Vec<_>>()).then(End::Hang)
            }
            Stage::Whole => {
                let body = self.script.whole(dialect);
                let sent = self.part.of(body.to_string().len());
                let delay = Duration::from_millis(dice.between(0, 20));
                Step::json(200, body)
                    .delay(delay)
                    .end_after(sent)
                    .then(End::Hang)
            }
            Stage::Queued => {
                let delay = Duration::from_millis(dice.between(0, 30));
                Step::ok_text("late").delay(delay)
            }
            Stage::InRequest | Stage::BeforeHeaders | Stage::Backoff => Step::silent(End::Hang),
        }
    }

    /// Sends, stays, leaves. Answers with the moment at which nobody was there any more.
    async fn play(&self, address: SocketAddr) -> io::Result<Instant> {
        let mut leaver = Leaver::connect(address).await?;
        let mut wire = self.ask.wire();
        if self.stage == Stage::InRequest {
            wire.truncate(self.part.of(wire.len()));
        } else {
            wire.extend_from_slice(self.more);
        }
        leaver.send(&wire).await?;
        if self.stage == Stage::MidStream {
            let _ = timeout(self.stays, leaver.hear(self.hears)).await;
        } else {
            sleep(self.stays).await;
        }
        leaver.leave(self.leave);
        Ok(Instant::now())
    }
}

fn ask(dice: &mut Dice, id: &str, stage: Stage) -> Ask {
    let stream = match stage {
        Stage::Whole => false,
        Stage::MidStream | Stage::Held => true,
        _ => dice.one_in(2),
    };
    let body = json!({
        "model": dice.pick(&ROUTES),
        "stream": stream,
        "max_tokens": 64,
        "messages": [{"role": "user", "content": "Say something."}],
    });
    let mut headers = vec![("x-request-id", id.to_owned())];
    if stage != Stage::MidStream && stream {
        headers.push(("x-backstop-commit", "complete".to_owned()));
    } else if stream {
        headers.push(("x-backstop-commit", "first_output".to_owned()));
    }
    Ask {
        path: dice.pick(&["/v1/chat/completions", "/v1/messages"]),
        headers,
        body: body.to_string(),
    }
}

/// Plays the scene with this number: its cases all at once, before one gateway.
pub(super) async fn play(soak: &Soak, number: u64) -> Findings {
    let mut dice = Dice::of(soak.seed, &[4, number]);
    let queued = number % QUEUE_EVERY == QUEUE_EVERY - 1;
    let setting = Setting {
        patience_ms: 20_000,
        backoff_ms: dice.between(20, 50),
        connections: if queued { 2 } else { 1000 },
    };
    let scene = Scene::start(&config(&mut dice, setting), soak.seed ^ number).await;
    let cases: Vec<Case> = (number * SCENE..soak.hangups.min((number + 1) * SCENE))
        .map(|case| Case::roll(soak.seed, case, queued))
        .collect();
    let mut playing = JoinSet::new();
    for (place, case) in cases.iter().enumerate() {
        let mut dice = Dice::of(soak.seed, &[5, number * SCENE + place as u64]);
        for attempt in 1..=ATTEMPTS {
            scene.teach(&case.id, attempt, |dialect| {
                case.step(&mut dice, attempt, dialect)
            });
        }
    }
    for (place, case) in cases.iter().enumerate() {
        let (case, address) = (case.clone(), scene.address);
        playing.spawn(async move { (place, case.play(address).await) });
    }
    let mut left = Vec::new();
    while let Some(joined) = playing.join_next().await {
        left.push(joined.expect("a caller does not panic"));
        soak.progress.step(1);
    }
    // A retry that somebody still waits for would come within its longest wait.
    sleep(Duration::from_millis(setting.backoff_ms * 5 + 100)).await;
    let mut findings = Findings::default();
    for (place, left) in left {
        let case = &cases[place];
        match left {
            Ok(left) => judge(&scene, case, left, &mut findings).await,
            // The answer was there, and its connection closed, before the request was all sent.
            Err(_) => findings.count("were answered before they could leave"),
        }
        if soak.wants(&case.name) {
            findings.stories.push(story(&scene, case));
        }
    }
    for leak in scene.leaks() {
        findings.broke(Promise::Settled, &format!("scene {number}"), leak);
    }
    findings
}

async fn judge(scene: &Scene, case: &Case, left: Instant, findings: &mut Findings) {
    findings.count("hang-ups");
    findings.count(case.stage.name());
    // All have left and been waited for: what has no record by now was hardly read, unless its
    // caller had stayed long enough.
    let unread = matches!(case.stage, Stage::InRequest | Stage::Queued) || case.stays < SHORT;
    let patience = if unread { SHORT } else { LEDGER_PATIENCE };
    let record = scene.record(&case.id, patience).await;
    let seen = scene.sightings(&case.id);
    let late = seen.iter().filter(|seen| seen.attempt.arrived() > left);
    findings.add(
        "sends that met the provider after the caller left",
        late.count() as u64,
    );
    let Some(record) = record else {
        findings.count("requests that were never read whole");
        if !unread || !seen.is_empty() {
            let what = format!("no record, and {} attempts", seen.len());
            findings.broke(Promise::NoLateAttempt, &case.name, what);
        }
        return;
    };
    for difference in differences(&record, &seen, findings) {
        match difference {
            Difference::NoRow(what) => findings.broke(Promise::NoLateAttempt, &case.name, what),
            Difference::Other(what) => findings.broke(Promise::TrailIsWire, &case.name, what),
        }
    }
    if record.terminal != "cancelled" {
        findings.count("journeys that had ended before");
    } else {
        observe(scene, case, &record, left, findings);
    }
    for sighting in &seen {
        let progress = sighting.attempt.progress();
        if !matches!(progress.ending, None | Some(Ending::PeerClosed)) {
            continue;
        }
        let closing = timeout(LEDGER_PATIENCE, sighting.attempt.closed_by_peer());
        let (name, _) = PROVIDERS[sighting.provider];
        let Some(close) = closing.await.ok().flatten() else {
            let what = format!("{name}: its connection stays open");
            findings.broke(Promise::Settled, &case.name, what);
            continue;
        };
        let after = close.at.saturating_duration_since(left);
        findings.closed.push(after);
        if after > CLOSED_WITHIN {
            let what = format!("{name}: closed after {after:?}");
            findings.broke(Promise::UpstreamClosed, &case.name, what);
        }
    }
}

/// A request that was on its way for less than this may never have been read.
const SHORT: Duration = Duration::from_millis(50);

/// How soon the leaving was observed, and that nothing began afterwards.
fn observe(
    scene: &Scene,
    case: &Case,
    record: &JourneyRecord,
    left: Instant,
    findings: &mut Findings,
) {
    findings.count("journeys cancelled");
    let began = scene.clock.instant(record.started);
    let observed = scene.clock.instant(record.started + record.total);
    if began > left {
        findings.count("requests first read when their caller had left");
        let rows = record.rows.iter().filter(|row| row.attempt.is_some());
        findings.add("attempts for those", rows.count() as u64);
    } else {
        findings
            .observed
            .push(observed.saturating_duration_since(left));
    }
    for row in &record.rows {
        if scene.clock.instant(row.started) > observed {
            let what = format!("attempt {:?} began afterwards", row.attempt);
            findings.broke(Promise::NoLateAttempt, &case.name, what);
        }
    }
}

/// A case in full, for who asked for it.
fn story(scene: &Scene, case: &Case) -> String {
    let mut story = format!("{case:#?}\n");
    for sighting in scene.sightings(&case.id) {
        let (name, _) = PROVIDERS[sighting.provider];
        let _ = writeln!(story, "  at {name}: {:?}", sighting.attempt);
    }
    if let Some(record) = scene.gateway.ledger().find(&case.id) {
        let _ = writeln!(story, "  record: {}", record.to_json());
    }
    story
}

//! What HTTP clients nobody here wrote make of the simulator.

use std::time::Duration;

use backstop_faultsim::{End, Ending, Item, Pace, Script, Sim, Step};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use proptest::prelude::*;
use serde_json::json;
use tokio::task::JoinSet;

/// A hyper client on an in-memory connection; its driver ends with the set.
async fn client(sim: &Sim, tasks: &mut JoinSet<()>) -> SendRequest<Full<Bytes>> {
    let (sender, driver) = hyper::client::conn::http1::handshake(TokioIo::new(sim.connect()))
        .await
        .expect("a handshake without a peer's answer cannot fail");
    tasks.spawn(async move {
        let _ = driver.await;
    });
    sender
}

fn request(stream: bool) -> hyper::Request<Full<Bytes>> {
    let body = json!({"model": "m", "stream": stream, "messages": []}).to_string();
    hyper::Request::post("/v1/chat/completions")
        .header("host", "sim")
        .body(Full::from(body))
        .expect("a fixed request is valid")
}

#[tokio::test(start_paused = true)]
async fn hyper_reads_every_whole_answer_on_one_connection() {
    let pace = Pace {
        bytes: 3,
        every: Duration::from_millis(1),
        head: true,
    };
    let steps = [
        (Step::ok_text("hi"), "\"content\":\"hi\""),
        (Step::stream_text(["a", "b"]), "data: [DONE]\n\n"),
        (
            Step::stream_text(["a", "b"]).trickle(pace),
            "data: [DONE]\n\n",
        ),
        (Step::text(204, ""), ""),
        (Step::json(529, json!({"a": "{{pad:100000}}"})), "xxxx"),
        (
            Step::json(200, json!({})).header("content-length", "2"),
            "{}",
        ),
        (
            Step::sse([Item::raw(&b"\xff\x00"[..]), Item::comment("c")]),
            ":c\n\n",
        ),
        (Step::ok_text("{{model}}").end_after(20), ""),
    ];
    let script = Script::new().with_steps(steps.iter().map(|(step, _)| step.clone()));
    let sim = Sim::new(script);
    let mut tasks = JoinSet::new();
    let mut sender = client(&sim, &mut tasks).await;
    for (nth, (_, want)) in steps.iter().enumerate() {
        sender.ready().await.unwrap();
        let answer = sender.send_request(request(false)).await.unwrap();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        assert!(
            String::from_utf8_lossy(&body).contains(want),
            "{nth}: {body:?}"
        );
    }
    assert_eq!(sim.connection_count(), 1);
    assert!(sim.deviations().is_empty());
}

#[tokio::test(start_paused = true)]
async fn hyper_sees_a_broken_body_where_the_framing_is_unfinished() {
    for step in [
        Step::stream_text(["a"]).then(End::Cut),
        Step::ok_text("a").then(End::Cut),
        Step::ok_text("a").then(End::Cut).end_after(5),
    ] {
        let sim = Sim::new(Script::new().step(step));
        let mut tasks = JoinSet::new();
        let mut sender = client(&sim, &mut tasks).await;
        let answer = sender.send_request(request(false)).await.unwrap();
        assert_eq!(answer.status(), 200);
        assert!(answer.into_body().collect().await.is_err());
        assert_eq!(sim.attempt(1).finished().await, Some(Ending::Cut));
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_hyper_body_closes_the_connection() {
    let sim = Sim::new(Script::new().step(Step::stream_text(["a"]).then(End::Hang)));
    let mut tasks = JoinSet::new();
    let mut sender = client(&sim, &mut tasks).await;
    let mut answer = sender.send_request(request(true)).await.unwrap();
    answer.frame().await.unwrap().unwrap();
    drop((answer, sender));
    let attempt = sim.attempt(1);
    assert!(attempt.closed_by_peer().await.is_some());
    assert_eq!(attempt.finished().await, Some(Ending::PeerClosed));
}

proptest! {
    /// Any items, any pace, any place of the ending: the body is a prefix of what is scripted,
    /// whole when the ending allows.
    #[test]
    fn bodies_arrive_as_scripted(
        items in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..6),
        bytes in 1_usize..9,
        stop in prop::option::of(0_usize..120),
        slow: bool,
    ) {
        let all = items.concat();
        let mut step = Step::sse(items.into_iter().map(Item::raw));
        if let Some(stop) = stop {
            step = step.end_after(stop);
        }
        if slow {
            step = step.trickle(Pace { bytes, every: Duration::from_millis(3), head: false });
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let got = runtime.block_on(async {
            let sim = Sim::new(Script::new().step(step));
            let mut tasks = JoinSet::new();
            let mut sender = client(&sim, &mut tasks).await;
            let answer = sender.send_request(request(true)).await.unwrap();
            answer.into_body().collect().await.unwrap().to_bytes()
        });
        prop_assert_eq!(&got[..], &all[..stop.unwrap_or(all.len()).min(all.len())]);
    }
}

//! Each ending as the client sees it, conditions, clocks and the log.

use std::sync::Mutex as StdMutex;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::attempt::Ending;
use crate::conn::CloseKind;
use crate::fault::Fault;
use crate::script::{End, Item, On, Otherwise, Pace};

const OPENAI: &str = "/v1/chat/completions";
const ANTHROPIC: &str = "/v1/messages";

fn request(path: &str, key: &str, body: &Value) -> Vec<u8> {
    let body = body.to_string();
    format!(
        "POST {path} HTTP/1.1\r\nhost: sim\r\nauthorization: Bearer {key}\r\ncontent-length: \
         {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

fn hello(stream: bool) -> Value {
    json!({"model": "m", "stream": stream, "messages": [{"role": "user", "content": "hi"}]})
}

async fn send<I: AsyncWrite + Unpin>(io: &mut I, request: &[u8]) {
    io.write_all(request).await.unwrap();
}

/// Everything until the end of the connection, and how that came.
async fn rest<I: AsyncRead + Unpin>(io: &mut I) -> (String, std::io::Result<()>) {
    let mut all = Vec::new();
    let end = io.read_to_end(&mut all).await.map(|_| ());
    (String::from_utf8(all).unwrap(), end)
}

/// The next bytes up to and including `mark`.
async fn upto<I: AsyncRead + Unpin>(io: &mut I, mark: &str) -> String {
    let mut all = Vec::new();
    while !all.ends_with(mark.as_bytes()) {
        all.push(io.read_u8().await.unwrap());
    }
    String::from_utf8(all).unwrap()
}

async fn tcp(script: Script) -> (Sim, TcpStream) {
    let sim = Sim::bind("127.0.0.1:0", script).await.unwrap();
    let stream = TcpStream::connect(sim.address()).await.unwrap();
    (sim, stream)
}

fn script(step: Step) -> Script {
    Script::new().step(step)
}

#[tokio::test]
async fn close_is_whole_and_keeps_the_connection() {
    let (sim, mut peer) = tcp(script(Step::json(200, json!({"a": 1})).repeat(2))).await;
    for nth in 1..=2 {
        send(&mut peer, &request(OPENAI, "k", &hello(false))).await;
        let head = upto(&mut peer, "\r\n\r\n").await;
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(
            head.contains("content-type: application/json\r\ncontent-length: 7\r\n"),
            "{head}"
        );
        assert_eq!(upto(&mut peer, "}").await, r#"{"a":1}"#);
        let attempt = sim.attempt(nth);
        assert_eq!(attempt.finished().await, Some(Ending::Complete));
        assert_eq!(attempt.on_reused_connection(), nth > 1);
        assert_eq!(attempt.peer_close(), None);
    }
    drop(peer);
    let closed = sim.attempt(1).closed_by_peer().await.unwrap();
    assert_eq!(closed.how, CloseKind::Fin);
    assert_eq!(sim.connection_count(), 1);
    assert!(sim.deviations().is_empty());
}

#[tokio::test]
async fn close_without_keep_alive_says_so_and_ends() {
    let scripts = [
        script(Step::ok_text("x")).keep_alive(false),
        script(Step::ok_text("x").keep_alive(false)),
    ];
    for script in scripts {
        let (_sim, mut peer) = tcp(script).await;
        send(&mut peer, &request(OPENAI, "k", &hello(false))).await;
        let (answer, end) = rest(&mut peer).await;
        end.unwrap();
        assert!(answer.contains("connection: close\r\n"), "{answer}");
    }
}

#[tokio::test]
async fn a_stream_that_is_cut_lacks_its_last_chunk() {
    let (sim, mut peer) = tcp(script(Step::stream_text(["a", "b"]).then(End::Cut))).await;
    send(&mut peer, &request(OPENAI, "k", &hello(true))).await;
    let (answer, end) = rest(&mut peer).await;
    end.unwrap();
    assert!(
        answer.contains("transfer-encoding: chunked\r\n"),
        "{answer}"
    );
    assert!(
        answer.contains(r#""content":"b""#) && answer.ends_with("}\n\n\r\n"),
        "{answer}"
    );
    assert!(
        !answer.contains("0\r\n\r\n") && !answer.contains("[DONE]"),
        "{answer}"
    );
    assert_eq!(sim.attempt(1).finished().await, Some(Ending::Cut));
    drop(peer);
    assert!(sim.attempt(1).closed_by_peer().await.is_some());
}

#[tokio::test]
async fn a_whole_body_can_be_cut_anywhere() {
    let body = json!({"abc": "def"});
    for at in 0..=body.to_string().len() {
        let (_sim, mut peer) = tcp(script(
            Step::json(200, body.clone()).then(End::Cut).end_after(at),
        ))
        .await;
        send(&mut peer, &request(OPENAI, "k", &hello(false))).await;
        let (answer, _) = rest(&mut peer).await;
        let (head, sent) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.contains("content-length: 13"), "{head}");
        assert_eq!(sent, &body.to_string()[..at]);
    }
}

#[tokio::test]
async fn reset_is_a_reset_before_and_inside_the_response() {
    async fn check(sim: &Sim, mut peer: impl AsyncRead + AsyncWrite + Unpin, text: bool) {
        send(&mut peer, &request(OPENAI, "k", &hello(true))).await;
        let mut all = Vec::new();
        let error = peer.read_to_end(&mut all).await.unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
        assert_eq!(
            String::from_utf8(all).unwrap().contains(r#""content":"a""#),
            text
        );
        assert_eq!(sim.attempt(1).finished().await, Some(Ending::Reset));
        assert_eq!(sim.attempt(1).closed_by_peer().await, None);
    }
    let before = Step::silent(End::Reset);
    let inside = Step::stream_text(["a"]).then(End::Reset);
    for (step, text) in [(before, false), (inside, true)] {
        let (sim, peer) = tcp(script(step.clone())).await;
        check(&sim, peer, text).await;
        let sim = Sim::new(script(step));
        check(&sim, sim.connect(), text).await;
    }
}

#[tokio::test]
async fn a_peer_that_resets_is_told_from_one_that_closes() {
    let sim = Sim::new(script(Step::silent(End::Hang)));
    let mut peer = sim.connect();
    send(&mut peer, &request(OPENAI, "k", &hello(true))).await;
    let attempt = sim.wait_for_attempts(1).await.remove(0);
    peer.reset();
    assert_eq!(
        attempt.closed_by_peer().await.unwrap().how,
        CloseKind::Reset
    );
}

#[tokio::test(start_paused = true)]
async fn hang_lasts_until_the_peer_closes_and_sees_when() {
    let hanging = [
        Step::silent(End::Hang),
        Step::ok_text("x").delay(Duration::from_secs(3600)),
        Step::stream_text(["a"]).then(End::Hang),
        Step::sse([Item::done(), Item::done().after(Duration::from_secs(3600))]),
    ];
    for step in hanging {
        let sim = Sim::new(script(step));
        let mut peer = sim.connect();
        send(&mut peer, &request(OPENAI, "k", &hello(true))).await;
        let attempt = sim.wait_for_attempts(1).await.remove(0);
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(attempt.progress().ending, None);
        let left = Instant::now();
        drop(peer);
        assert_eq!(attempt.closed_by_peer().await.unwrap().at, left);
        assert_eq!(attempt.finished().await, Some(Ending::PeerClosed));
        assert_eq!(attempt.progress().ended, Some(left));
    }
}

#[tokio::test]
async fn a_client_that_drops_unread_data_is_seen_to_leave() {
    let item = Item::data(json!({"pad": "{{pad:4000}}"})).repeat(100_000);
    let (sim, mut peer) = tcp(script(Step::sse([item]))).await;
    send(&mut peer, &request(OPENAI, "k", &hello(true))).await;
    upto(&mut peer, "xxxx").await;
    drop(peer);
    let attempt = sim.attempt(1);
    assert!(attempt.closed_by_peer().await.is_some());
    assert_eq!(attempt.finished().await, Some(Ending::PeerClosed));
    assert!(attempt.progress().body_bytes > 0);
}

#[tokio::test(start_paused = true)]
async fn delays_follow_the_clock() {
    let step = Step::sse([
        Item::comment(" wait").after(Duration::from_millis(100)),
        Item::data(json!("w{{n}}"))
            .after(Duration::from_millis(250))
            .repeat(2),
    ])
    .delay(Duration::from_millis(400));
    let sim = Sim::new(script(step));
    let mut peer = sim.connect();
    let start = Instant::now();
    send(&mut peer, &request(OPENAI, "k", &hello(true))).await;
    for (mark, at) in [
        ("\r\n\r\n", 400),
        (": wait\n\n\r\n", 500),
        ("\"w0\"\n\n\r\n", 750),
        ("\"w1\"\n\n\r\n", 1000),
    ] {
        upto(&mut peer, mark).await;
        assert_eq!(start.elapsed().as_millis(), at, "{mark:?}");
    }
    assert_eq!(upto(&mut peer, "0\r\n\r\n").await, "0\r\n\r\n");
    let progress = sim.attempt(1).progress();
    let millis = |at: Option<Instant>| at.map(|at| (at - start).as_millis());
    assert_eq!(millis(progress.started), Some(400));
    assert_eq!(millis(progress.first_body), Some(500));
    assert_eq!(millis(progress.ended), Some(1000));
    assert_eq!(
        progress.body_bytes,
        ": wait\n\n".len() + 2 * "data: \"w0\"\n\n".len()
    );
}

#[tokio::test(start_paused = true)]
async fn a_trickle_is_slow_byte_by_byte() {
    let pace = Pace {
        bytes: 1,
        every: Duration::from_millis(10),
        head: false,
    };
    let sim = Sim::new(script(Step::json(200, json!({"a": 1})).trickle(pace)));
    let mut peer = sim.connect();
    send(&mut peer, &request(OPENAI, "k", &hello(false))).await;
    upto(&mut peer, "\r\n\r\n").await;
    let start = Instant::now();
    for nth in 0..7 {
        peer.read_u8().await.unwrap();
        assert_eq!(start.elapsed().as_millis(), nth * 10);
    }
    assert_eq!(sim.attempt(1).finished().await, Some(Ending::Complete));
}

#[tokio::test(start_paused = true)]
async fn an_endless_trickle_says_nothing_until_the_peer_has_enough() {
    for (step, filler) in [
        (Step::stream_text(["a"]), b':'),
        (Step::json(200, json!({})), b' '),
    ] {
        let sim = Sim::new(script(step.then(End::Trickle)));
        let mut peer = sim.connect();
        send(&mut peer, &request(OPENAI, "k", &hello(true))).await;
        let mut seen = vec![0; 4000];
        tokio::time::sleep(Duration::from_millis(500)).await;
        let _ = peer.read(&mut seen).await.unwrap();
        tokio::time::sleep(Duration::from_secs(30)).await;
        let count = peer.read(&mut seen).await.unwrap();
        let fillers = seen[..count].iter().filter(|byte| **byte == filler).count();
        assert!((30..=31).contains(&fillers), "{fillers}");
        drop(peer);
        assert_eq!(sim.attempt(1).finished().await, Some(Ending::PeerClosed));
    }
}

#[tokio::test(start_paused = true)]
async fn a_head_may_never_end() {
    let sim = Sim::new(script(Step::silent(End::Trickle)));
    let mut peer = sim.connect();
    send(&mut peer, &request(OPENAI, "k", &hello(true))).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let mut seen = vec![0; 1000];
    let count = peer.read(&mut seen).await.unwrap();
    assert!(String::from_utf8_lossy(&seen[..count]).starts_with("HTTP/1.1 200 OK\r\nx-filler"));
}

#[tokio::test(start_paused = true)]
async fn a_kept_connection_is_closed_when_idle() {
    let idle = Duration::from_millis(300);
    let fresh = Step::ok_text("two").on(On::Fresh);
    let steps = [
        Step::ok_text("one").close_idle_after(idle),
        Step::silent(End::Reset).on(On::Reused),
        fresh,
    ];
    let sim = Sim::new(Script::new().with_steps(steps));
    let mut peer = sim.connect();
    send(&mut peer, &request(OPENAI, "k", &hello(false))).await;
    upto(&mut peer, "\r\n\r\n").await;
    let start = Instant::now();
    rest(&mut peer).await.1.unwrap();
    assert_eq!(start.elapsed(), idle);
    let mut peer = sim.connect();
    send(&mut peer, &request(OPENAI, "k", &hello(false))).await;
    assert!(
        upto(&mut peer, "}\r\n\r\n".trim_end())
            .await
            .contains("200 OK")
    );
    assert_eq!(sim.attempt(2).step(), Some(2));
}

#[tokio::test]
async fn steps_are_found_by_key_and_model_and_count() {
    let script = Script::new()
        .key("k1", "sk-1")
        .key("k2", "sk-2")
        .step(Step::fault(Fault::InvalidKey).key("k1"))
        .step(Step::fault(Fault::ModelNotFound).model("gone").always())
        .step(Step::text(503, "<html>").nth(3))
        .step(Step::ok_text("fine").always());
    let sim = Sim::new(script);
    let mut peer = sim.connect();
    let mut ask = async |key: &str, model: &str| {
        let body = json!({"model": model, "messages": []});
        send(&mut peer, &request(OPENAI, key, &body)).await;
        let head = upto(&mut peer, "\r\n\r\n").await;
        let length = head.split("content-length: ").nth(1).unwrap();
        let length: usize = length.lines().next().unwrap().parse().unwrap();
        let mut body = vec![0; length];
        peer.read_exact(&mut body).await.unwrap();
        head[9..12].to_owned()
    };
    assert_eq!(ask("sk-1", "m").await, "401");
    assert_eq!(ask("sk-1", "gone").await, "404");
    assert_eq!(ask("sk-2", "m").await, "503");
    assert_eq!(ask("sk-1", "m").await, "200");
    let attempts = sim.attempts();
    let keys: Vec<_> = attempts
        .iter()
        .map(|attempt| attempt.key().unwrap())
        .collect();
    assert_eq!(keys, ["k1", "k1", "k2", "k1"]);
    assert!(attempts[2].presented().unwrap().is("sk-2"));
    assert!(!format!("{attempts:?}").contains("sk-"));
}

#[tokio::test]
async fn an_attempt_without_a_step_is_unexpected() {
    let sim = Sim::new(script(Step::ok_text("one").key("other")));
    let mut peer = sim.connect();
    send(&mut peer, &request(OPENAI, "k", &hello(false))).await;
    assert!(
        upto(&mut peer, "\r\n\r\n")
            .await
            .starts_with("HTTP/1.1 599 \r\n")
    );
    assert_eq!(sim.unexpected().len(), 1);
    assert!(matches!(
        sim.deviations()[..],
        [
            Deviation::Unexpected(_),
            Deviation::LeftOver { step: 0, times: 1 }
        ]
    ));
    sim.set_script(Script::healthy());
    drop(peer);
    let mut peer = sim.connect();
    send(&mut peer, &request(OPENAI, "k", &hello(false))).await;
    assert!(upto(&mut peer, "\r\n\r\n").await.contains("200 OK"));
}

#[tokio::test]
async fn a_healthy_provider_answers_in_the_dialect_of_the_path() {
    let tools =
        json!([{"name": "tide", "input_schema": {"properties": {"p": {"type": "string"}}}}]);
    let openai_tools =
        json!([{"type": "function", "function": {"name": "tide", "parameters": {}}}]);
    let call = json!([{"role": "user", "content": "Call a tool, please"}]);
    let rows = [
        (OPENAI, hello(false), "chat.completion\""),
        (OPENAI, hello(true), "chat.completion.chunk"),
        (ANTHROPIC, hello(false), "\"type\":\"message\""),
        (ANTHROPIC, hello(true), "event: message_stop"),
        (
            ANTHROPIC,
            json!({"model": "m", "tools": tools, "messages": call}),
            "\"p\":\"example\"",
        ),
        (
            OPENAI,
            json!({"model": "m", "tools": openai_tools, "messages": call}),
            "tool_calls",
        ),
        (OPENAI, json!({"messages": []}), "`model` is missing"),
        (OPENAI, json!("no object"), "`model` is missing"),
        ("/v1/nothing", hello(false), "no such route"),
    ];
    let sim = Sim::new(Script::healthy().keep_alive(false));
    for (path, body, want) in rows {
        let mut peer = sim.connect();
        send(&mut peer, &request(path, "k", &body)).await;
        let (answer, _) = rest(&mut peer).await;
        assert!(answer.contains(want), "{path}: {answer}");
    }
    assert!(sim.deviations().is_empty());
}

#[tokio::test]
async fn requests_may_be_chunked_pipelined_or_split_anywhere() {
    let body = hello(false).to_string();
    let (left, right) = body.split_at(10);
    let chunked = format!(
        "POST {OPENAI} HTTP/1.1\r\nX-Api-Key: k\r\ntransfer-encoding: chunked\r\n\r\n{:x};e=1\r\n\
         {left}\r\n{:x}\r\n{right}\r\n0\r\ntrailer: 1\r\n\r\n",
        left.len(),
        right.len()
    );
    let mut both = chunked.into_bytes();
    both.extend_from_slice(&request(OPENAI, "k", &hello(false)));
    let sim = Sim::new(script(Step::text(200, "ok").repeat(4)));
    let mut peer = sim.connect();
    send(&mut peer, &both).await;
    for byte in both {
        send(&mut peer, &[byte]).await;
        tokio::task::yield_now().await;
    }
    for attempt in sim.wait_for_attempts(4).await {
        assert_eq!(attempt.body(), body.as_bytes());
        assert!(attempt.presented().unwrap().is("k"));
    }
    assert!(sim.deviations().is_empty());
}

#[tokio::test]
async fn what_is_no_request_is_recorded() {
    let long = format!("GET / HTTP/1.1\r\na: {}\r\n\r\n", "x".repeat(70_000));
    let rows = [
        ("GET / HTTP/3\r\n\r\n", Broken::Head),
        ("nonsense\r\n\r\n", Broken::Head),
        (long.as_str(), Broken::Head),
        ("POST / HTTP/1.1\r\ncontent-length: x\r\n\r\n", Broken::Body),
        (
            "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
            Broken::Body,
        ),
        (
            "POST / HTTP/1.1\r\ncontent-length: 5\r\n\r\nab",
            Broken::Unfinished,
        ),
    ];
    for (bytes, want) in rows {
        let sim = Sim::new(Script::new());
        let mut peer = sim.connect();
        let _ = peer.write_all(bytes.as_bytes()).await;
        peer.shutdown().await.unwrap();
        let _ = rest(&mut peer).await;
        assert_eq!(
            sim.broken_requests(),
            [want],
            "{}",
            &bytes[..20.min(bytes.len())]
        );
        assert!(sim.attempts().is_empty());
    }
}

#[tokio::test]
async fn everything_ends_with_the_simulator() {
    let (sim, mut peer) = tcp(script(Step::silent(End::Hang))).await;
    send(&mut peer, &request(OPENAI, "k", &hello(false))).await;
    let attempt = sim.wait_for_attempts(1).await.remove(0);
    let address = sim.address();
    drop(sim);
    let _ = rest(&mut peer).await;
    assert_eq!(attempt.finished().await, None);
    assert_eq!(attempt.closed_by_peer().await, None);
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn the_log_tells_times_and_labels_and_no_secrets() {
    let lines = Arc::new(StdMutex::new(Vec::new()));
    let log = Arc::clone(&lines);
    let script = Script::new().key("k1", "sk-private").step(
        Step::text(200, "{{key}}")
            .delay(Duration::from_millis(5))
            .keep_alive(false),
    );
    let sim = Sim::observed(
        script,
        Arc::new(move |start, event| log.lock().unwrap().push(event.to_json(start))),
    );
    let mut peer = sim.connect();
    send(&mut peer, &request(OPENAI, "sk-private", &hello(false))).await;
    assert!(rest(&mut peer).await.0.ends_with("sk-private"));
    drop(peer);
    sim.attempt(1).closed_by_peer().await;
    tokio::task::yield_now().await;
    let lines = lines.lock().unwrap();
    let names: Vec<_> = lines
        .iter()
        .map(|line| line["event"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["arrived", "ended", "peer_closed"]);
    assert_eq!(
        (&lines[0]["key"], &lines[0]["model"]),
        (&json!("k1"), &json!("m"))
    );
    assert_eq!(
        (&lines[1]["started_ms"], &lines[1]["ending"]),
        (&json!(5.0), &json!("complete"))
    );
    assert_eq!(lines[2]["how"], "fin");
    assert!(!format!("{lines:?}").contains("sk-private"));
}

#[tokio::test]
async fn the_log_is_bounded_and_goes_on_counting() {
    let script = Script::healthy().retain(2).otherwise(Otherwise::Healthy);
    let sim = Sim::new(script);
    let mut peer = sim.connect();
    for _ in 0..5 {
        send(&mut peer, &request("/none", "k", &hello(false))).await;
        upto(&mut peer, "}}").await;
    }
    let seqs: Vec<_> = sim.attempts().iter().map(Attempt::seq).collect();
    assert_eq!((sim.attempt_count(), &seqs[..]), (5, &[4, 5][..]));
}

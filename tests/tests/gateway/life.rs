//! Reload and stop while requests are under way; HTTP/2 without TLS.

use std::time::Duration;

use backstop_faultsim::{End, Fault, Script, Step};
use backstop_tests::{Peer, TestGateway, secret, soon, until};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::common::{ask, ask_stream, column, one, provider, three_keys, untouched};

#[tokio::test]
async fn a_request_in_flight_keeps_its_configuration() {
    // Its first attempt is under way while the configuration changes; what follows is still the
    // old plan, with a provider that the new configuration does not know.
    let late = Step::fault(Fault::Unavailable).delay(Duration::from_millis(50));
    let old = provider(Script::new().step(late).step(Step::ok_text("old plan"))).await;
    let new = provider(Script::healthy()).await;
    let sims = [("old", &old), ("new", &new)];
    let config = one("old") + "[routes]\nchat = [\"old/first\", \"old/second\"]\n";
    let mut gateway = TestGateway::start(&config, &sims).await;
    let call = gateway.post("/v1/chat/completions", ask("chat").to_string());
    let mut running = JoinSet::new();
    running.spawn(async move { call.send().await });
    soon("the first attempt", old.wait_for_attempts(1)).await;
    gateway.reload(&(one("new") + "[routes]\nchat = \"new/m\"\n"));
    let answer = gateway.chat(ask("chat")).await;
    assert_eq!(answer.header("x-backstop-provider"), "new");
    assert_eq!(gateway.record(answer.id()).await.config_version, 2);
    let answer = soon("the first answer", running.join_next()).await;
    let answer = answer.expect("one request").expect("no panic");
    assert_eq!(answer.said(), "old plan", "{}", answer.text());
    assert_eq!(answer.header("x-backstop-action"), "fallback");
    assert_eq!(gateway.record(answer.id()).await.config_version, 1);
}

#[tokio::test]
async fn many_at_once_get_each_their_own() {
    let openai = provider(Script::healthy()).await;
    let gateway = TestGateway::start(&one("openai"), &[("openai", &openai)]).await;
    let mut running = JoinSet::new();
    for n in 0..60 {
        let model = format!("openai/m{n}");
        let body = if n % 2 == 0 {
            ask(&model)
        } else {
            ask_stream(&model)
        };
        let call = gateway.post("/v1/chat/completions", body.to_string());
        running.spawn(async move { (n, call.send().await) });
    }
    while let Some(done) = soon("an answer", running.join_next()).await {
        let (n, answer) = done.expect("no panic");
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("x-backstop-model"), format!("m{n}"));
        assert!(
            answer.text().contains(&format!("\"m{n}\"")),
            "{}",
            answer.text()
        );
        let ends = answer.text().ends_with("data: [DONE]\n\n");
        assert_eq!(ends, n % 2 == 1);
    }
    assert_eq!(openai.attempt_count(), 60);
}

#[tokio::test]
async fn a_connection_serves_one_request_after_the_other() {
    let openai = provider(Script::healthy()).await;
    let gateway = TestGateway::start(&one("openai"), &[("openai", &openai)]).await;
    let mut peer = Peer::connect(gateway.address()).await;
    for (path, body, status) in [
        ("/v1/chat/completions", ask("openai/a"), 200),
        ("/openai/v1/chat/completions", ask_stream("openai/a"), 200),
        ("/v1/chat/completions", ask("nobody/a"), 404),
        ("/anthropic/v1/messages", ask_stream("openai/a"), 200),
        ("/v1/messages", ask("openai/a"), 200),
    ] {
        let call = gateway.post(path, body.to_string());
        let answer;
        (answer, peer) = call.send_on(peer).await;
        assert_eq!(answer.status, status, "{path}: {}", answer.text());
    }
}

#[tokio::test]
async fn a_stream_in_flight_ends_whole_under_its_own_configuration() {
    let step = Step::stream_text(["one", "two", "three"]).every(Duration::from_millis(3));
    let old = provider(Script::new().step(step)).await;
    let new = untouched().await;
    let sims = [("old", &old), ("new", &new)];
    let mut gateway = TestGateway::start(&one("old"), &sims).await;
    let call = gateway.post("/v1/chat/completions", ask_stream("old/m").to_string());
    let stream = call.open().await;
    gateway.reload(&one("new"));
    let answer = soon("the whole stream", stream.whole()).await;
    assert_eq!(answer.said(), "onetwothree");
    assert!(answer.events().last().is_some_and(|last| last.is_end()));
    let gone = gateway.chat(ask("old/m")).await;
    assert_eq!(
        (gone.status, gone.code().as_str()),
        (404, "model_not_found")
    );
}

#[tokio::test]
async fn a_reload_keeps_what_is_known_about_keys_and_channels() {
    let revoked = Step::fault(Fault::InvalidKey).key(secret("OPENAI_KEY_1"));
    let script = Script::new().step(revoked.always()).step(
        Step::ok_text("from key 2")
            .key(secret("OPENAI_KEY_2"))
            .always(),
    );
    let openai = provider(script).await;
    let sick = provider(Script::new().step(Step::fault(Fault::Unavailable).always())).await;
    let sims = [("openai", &openai), ("sick", &sick)];
    let config = three_keys(0)
        + &one("sick")
        + "breaker = { failures = 1, open_ms = 3600000, max_open_ms = 3600000 }\n"
        + "[routes]\nchat = [\"sick/m\", \"openai/m\"]\n";
    let mut gateway = TestGateway::start(&config, &sims).await;
    assert_eq!(gateway.chat(ask("chat")).await.trail().len(), 3);
    gateway.reload(&config.replace("max_retries = 0", "max_retries = 1"));
    let trail = gateway.chat(ask("chat")).await.trail();
    // The circuit is still open, and the refused key still held out.
    assert_eq!(column(&trail, "outcome"), ["skipped", "success"]);
    assert_eq!(trail[1]["key_name"], "openai-key-2");
    assert_eq!((sick.attempt_count(), openai.attempt_count()), (1, 3));
}

#[tokio::test]
async fn a_stop_lets_a_running_stream_end_whole() {
    let pieces: Vec<String> = (0..20).map(|n| format!("{n} ")).collect();
    let step = Step::stream_text(pieces.clone()).every(Duration::from_millis(2));
    let openai = provider(Script::new().step(step)).await;
    let mut gateway = TestGateway::start(&one("openai"), &[("openai", &openai)]).await;
    let call = gateway.post(
        "/v1/chat/completions",
        ask_stream("openai/gpt-4o").to_string(),
    );
    // A connection that is open but idle, and one that has been used before.
    let idle = Peer::connect(gateway.address()).await;
    let mut stream = call.open().await;
    assert!(stream.event().await.is_some());
    gateway.stop();
    let answer = soon("the whole stream", stream.whole()).await;
    let said: String = pieces[..].concat();
    assert!(said.ends_with(&answer.said()), "{}", answer.said());
    assert!(answer.events().last().is_some_and(|last| last.is_end()));
    drop(idle);
    gateway.stopped().await;
    let refused = TcpStream::connect(gateway.address()).await;
    assert!(refused.is_err(), "a stopped gateway takes no connection");
}

#[tokio::test]
async fn a_stream_without_end_is_closed_with_the_drain_window() {
    let step = Step::stream_text(["a"]).then(End::Hang);
    let openai = provider(Script::new().step(step)).await;
    let config = "server = { drain_ms = 200 }\n".to_owned() + &one("openai");
    let mut gateway = TestGateway::start(&config, &[("openai", &openai)]).await;
    let call = gateway.post(
        "/v1/chat/completions",
        ask_stream("openai/gpt-4o").to_string(),
    );
    let mut stream = call.open().await;
    assert!(stream.event().await.is_some());
    gateway.stop();
    gateway.stopped().await;
    let attempt = openai.attempt(1);
    let closed = soon("the upstream close", attempt.closed_by_peer()).await;
    assert!(closed.is_some());
    until("the journey's end", || {
        (gateway.journeys() == 1).then_some(())
    })
    .await;
}

#[tokio::test]
async fn http_2_without_tls_is_understood() {
    let openai = provider(Script::healthy()).await;
    let gateway = TestGateway::start(&one("openai"), &[("openai", &openai)]).await;
    let stream = TcpStream::connect(gateway.address())
        .await
        .expect("a listener");
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .expect("a handshake");
    let mut driver = JoinSet::new();
    driver.spawn(connection);
    for streamed in [false, true] {
        let body = if streamed {
            ask_stream("openai/gpt-4o")
        } else {
            ask("openai/gpt-4o")
        };
        let request = http::Request::post(format!("{}/v1/chat/completions", gateway.url()))
            .header("content-type", "application/json")
            .body(Full::new(bytes::Bytes::from(body.to_string())))
            .expect("a request");
        let answer = soon("an answer", sender.send_request(request))
            .await
            .expect("an answer");
        assert_eq!(answer.version(), http::Version::HTTP_2);
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.headers()["x-backstop-provider"], "openai");
        let body = soon("its body", answer.into_body().collect())
            .await
            .expect("a body")
            .to_bytes();
        let ends = body.ends_with(b"data: [DONE]\n\n");
        assert_eq!(ends, streamed);
    }
}

#[tokio::test]
async fn an_http_2_caller_that_resets_its_stream_has_left() {
    let openai = provider(Script::new().step(Step::stream_text(["a"]).then(End::Hang))).await;
    let gateway = TestGateway::start(&one("openai"), &[("openai", &openai)]).await;
    let stream = TcpStream::connect(gateway.address())
        .await
        .expect("a listener");
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .expect("a handshake");
    let mut driver = JoinSet::new();
    driver.spawn(connection);
    let request = http::Request::post(format!("{}/v1/chat/completions", gateway.url()))
        .header("x-request-id", "h2-gone")
        .body(Full::new(bytes::Bytes::from(
            ask_stream("openai/gpt-4o").to_string(),
        )))
        .expect("a request");
    let answer = soon("an answer", sender.send_request(request))
        .await
        .expect("an answer");
    drop(answer);
    let attempt = openai.attempt(1);
    let closed = soon("the upstream close", attempt.closed_by_peer()).await;
    assert!(closed.is_some());
    assert_eq!(gateway.record("h2-gone").await.terminal, "cancelled");
}

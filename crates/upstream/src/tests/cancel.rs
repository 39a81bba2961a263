//! Dropping is cancelling.

use super::peer::{CLOCKS, in_memory, post};
use super::tls::Ca;
use crate::Options;

const URI: &str = "http://provider.test/v1/chat";

#[tokio::test(start_paused = true)]
async fn dropped_while_the_head_is_awaited() {
    let (upstream, mut peer) = in_memory(Options::default());
    let mut conn = tokio::select! {
        _ = upstream.send(post(URI), &CLOCKS) => panic!("nobody answered"),
        conn = async {
            let mut conn = peer.accept().await;
            conn.request().await;
            conn
        } => conn,
    };
    let began = tokio::time::Instant::now();
    conn.closed().await;
    assert!(began.elapsed().is_zero(), "at once");
}

#[tokio::test(start_paused = true)]
async fn dropped_while_the_body_runs() {
    for framing in [
        "content-length: 99",
        "transfer-encoding: chunked",
        "x-until: close",
    ] {
        let (upstream, mut peer) = in_memory(Options::default());
        let (answer, mut conn) = tokio::join!(upstream.send(post(URI), &CLOCKS), async {
            let mut conn = peer.accept().await;
            conn.request().await;
            conn.write(&format!(
                "HTTP/1.1 200 OK\r\n{framing}\r\n\r\n4\r\nhalf\r\n"
            ))
            .await;
            conn
        });
        let mut response = answer.unwrap();
        response.chunk().await.unwrap().unwrap();
        drop(response);
        let began = tokio::time::Instant::now();
        conn.write("4\r\nmore\r\n").await;
        conn.closed().await;
        assert!(began.elapsed().is_zero(), "{framing}: at once");
    }
}

#[tokio::test(start_paused = true)]
async fn dropped_before_the_body_was_touched_or_in_the_silence_of_one() {
    for read_first in [false, true] {
        let (upstream, mut peer) = in_memory(Options::default());
        let (answer, mut conn) = tokio::join!(upstream.send(post(URI), &CLOCKS), async {
            let mut conn = peer.accept().await;
            conn.request().await;
            conn.write("HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n")
                .await;
            conn
        });
        let mut response = answer.unwrap();
        if read_first {
            conn.write("some").await;
            response.chunk().await.unwrap().unwrap();
            let second = std::time::Duration::from_secs(1);
            assert!(
                tokio::time::timeout(second, response.chunk())
                    .await
                    .is_err()
            );
        }
        drop(response);
        let began = tokio::time::Instant::now();
        conn.closed().await;
        assert!(began.elapsed().is_zero(), "read first: {read_first}");
    }
}

#[tokio::test(start_paused = true)]
async fn dropped_in_the_tls_handshake() {
    let (upstream, mut peer) = in_memory(Ca::new().options());
    let mut conn = tokio::select! {
        _ = upstream.send(post("https://provider.test/"), &CLOCKS) => panic!("nobody answered"),
        conn = peer.accept() => conn,
    };
    let began = tokio::time::Instant::now();
    conn.closed().await;
    assert!(began.elapsed().is_zero());
}

#[tokio::test(start_paused = true)]
async fn dropped_over_tls() {
    let ca = Ca::new();
    let (upstream, mut peer) = in_memory(ca.options());
    let (answer, mut conn) = tokio::join!(
        upstream.send(post("https://provider.test/"), &CLOCKS),
        async {
            let raw = peer.accept_raw().await;
            let io = ca
                .accept("provider.test", &["http/1.1"], raw)
                .await
                .unwrap();
            let mut conn = super::peer::Conn(io);
            conn.request().await;
            conn.write("HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\nhalf")
                .await;
            conn
        }
    );
    drop(answer.unwrap());
    let began = tokio::time::Instant::now();
    conn.closed().await;
    assert!(began.elapsed().is_zero());
}

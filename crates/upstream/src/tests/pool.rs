//! Connections kept, reused, retired.

use std::time::Duration;

use tokio::io::DuplexStream;
use tokio::time::sleep;

use super::peer::{CLOCKS, Conn, Peer, in_memory, post};
use crate::{Options, Upstream};
use backstop_classifier::Sent;

const URI: &str = "http://provider.test/v1/chat";

/// One exchange on a new connection, which is then idle.
async fn first(upstream: &Upstream, peer: &mut Peer) -> Conn<DuplexStream> {
    let (reused, conn) = tokio::join!(exchange(upstream), async {
        let mut conn = peer.accept().await;
        conn.serve().await;
        conn
    });
    assert!(!reused, "a new connection was expected");
    conn
}

/// One exchange on `conn`.
async fn again(upstream: &Upstream, conn: &mut Conn<DuplexStream>) {
    let (reused, ()) = tokio::join!(exchange(upstream), conn.serve());
    assert!(reused, "the connection was expected to be reused");
}

async fn exchange(upstream: &Upstream) -> bool {
    let mut response = upstream.send(post(URI), &CLOCKS).await.unwrap();
    while let Some(chunk) = response.chunk().await {
        chunk.unwrap();
    }
    assert_eq!(response.connect.is_none(), response.reused);
    response.reused
}

#[tokio::test(start_paused = true)]
async fn the_second_request_reuses_the_connection() {
    let (upstream, mut peer) = in_memory(Options::default());
    let mut conn = first(&upstream, &mut peer).await;
    again(&upstream, &mut conn).await;
    again(&upstream, &mut conn).await;
    assert_eq!(peer.dialled().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn another_authority_has_its_own() {
    let (upstream, mut peer) = in_memory(Options::default());
    let _first = first(&upstream, &mut peer).await;
    let (answer, _conn) = tokio::join!(
        upstream.send(post("http://other.test/v1"), &CLOCKS),
        async {
            let mut conn = peer.accept().await;
            conn.serve().await;
            conn
        }
    );
    assert!(!answer.unwrap().reused);
    assert_eq!(peer.dialled(), ["provider.test 80", "other.test 80"]);
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_is_closed_in_time() {
    let options = Options {
        max_connection_age: Duration::from_secs(3600),
        ..Options::default()
    };
    let (upstream, mut peer) = in_memory(options);
    let mut conn = first(&upstream, &mut peer).await;
    sleep(Duration::from_secs(89)).await;
    again(&upstream, &mut conn).await;
    sleep(Duration::from_secs(91)).await;
    let _second = first(&upstream, &mut peer).await;
    let began = tokio::time::Instant::now();
    conn.closed().await;
    assert!(began.elapsed().is_zero());
}

#[tokio::test(start_paused = true)]
async fn an_old_connection_serves_once_more_and_retires() {
    let (upstream, mut peer) = in_memory(Options::default());
    let mut conn = first(&upstream, &mut peer).await;
    for _ in 0..3 {
        sleep(Duration::from_secs(20)).await;
        again(&upstream, &mut conn).await;
    }
    let _second = first(&upstream, &mut peer).await;
    conn.closed().await;
}

#[tokio::test(start_paused = true)]
async fn no_idle_connection_is_kept_when_none_may_be() {
    let options = Options {
        max_idle_per_host: 0,
        ..Options::default()
    };
    let (upstream, mut peer) = in_memory(options);
    let mut conn = first(&upstream, &mut peer).await;
    conn.closed().await;
    let _second = first(&upstream, &mut peer).await;
}

#[tokio::test(start_paused = true)]
async fn a_fresh_connection_is_fresh_and_not_kept() {
    let (upstream, mut peer) = in_memory(Options::default());
    let mut idle = first(&upstream, &mut peer).await;
    let (answer, mut conn) = tokio::join!(upstream.send_fresh(post(URI), &CLOCKS), async {
        let mut conn = peer.accept().await;
        conn.serve().await;
        conn
    });
    let mut response = answer.unwrap();
    assert!(!response.reused);
    assert_eq!(response.chunk().await.unwrap().unwrap(), "ok");
    assert!(response.chunk().await.is_none());
    conn.closed().await;
    again(&upstream, &mut idle).await;
}

#[tokio::test(start_paused = true)]
async fn a_connection_closed_while_idle_is_not_chosen() {
    let (upstream, mut peer) = in_memory(Options::default());
    let conn = first(&upstream, &mut peer).await;
    drop(conn);
    sleep(Duration::from_millis(1)).await;
    let _second = first(&upstream, &mut peer).await;
}

/// The race that a pool loses now and then, and the one thing it must not do about it: try again.
#[tokio::test(start_paused = true)]
async fn a_connection_closed_as_it_is_chosen_fails_as_stale_and_unsent() {
    let (upstream, mut peer) = in_memory(Options::default());
    let conn = first(&upstream, &mut peer).await;
    drop(conn);
    // No pause: the pool has not noticed yet.
    let failure = upstream.send(post(URI), &CLOCKS).await.unwrap_err();
    assert!(failure.is_stale_connection(), "{failure:?}");
    assert_eq!(failure.sent, Sent::Never);
    assert_eq!(peer.dialled().len(), 1, "no repeat behind our back");
}

#[tokio::test(start_paused = true)]
async fn one_closed_after_the_request_is_stale_but_perhaps_sent() {
    let (upstream, mut peer) = in_memory(Options::default());
    let mut conn = first(&upstream, &mut peer).await;
    let (answer, ()) = tokio::join!(upstream.send(post(URI), &CLOCKS), async {
        conn.request().await;
        drop(conn);
    });
    let failure = answer.unwrap_err();
    assert!(failure.is_stale_connection(), "{failure:?}");
    assert_eq!(failure.sent, Sent::Maybe);
}

#[tokio::test(start_paused = true)]
async fn the_connection_is_known_before_the_answer() {
    let (upstream, mut peer) = in_memory(Options::default());
    let (exchange, mut conn) = tokio::join!(upstream.open(post(URI), &CLOCKS), async {
        peer.accept().await
    });
    let exchange = exchange.expect("a connection");
    assert!(!exchange.reused() && exchange.connect().is_some());
    let (response, ()) = tokio::join!(exchange.head(), conn.serve());
    let mut response = response.expect("a head");
    while let Some(chunk) = response.chunk().await {
        chunk.unwrap();
    }
    let exchange = upstream
        .open(post(URI), &CLOCKS)
        .await
        .expect("a connection");
    assert!(exchange.reused() && exchange.connect().is_none());
    // Nobody answers: the clock runs from the moment at which the connection got the request.
    let failure = exchange.head().await.expect_err("a timeout");
    assert!(failure.reused);
}

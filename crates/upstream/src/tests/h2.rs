//! HTTP/2 by ALPN: streams refused, reset, cancelled, spread over connections.

use std::future::poll_fn;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::{Request, Response, StatusCode, Version};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::peer::{CLOCKS, Peer, in_memory, post};
use super::tls::Ca;
use crate::{Failure, Options, Upstream};
use backstop_classifier::{Sent, Transport};

const URI: &str = "https://provider.test/v1";

type Exchange = (Request<RecvStream>, SendResponse<Bytes>);

fn pair(exchanges_per_lane: usize) -> (Upstream, Peer, Ca) {
    let ca = Ca::new();
    let options = Options {
        exchanges_per_lane,
        ..ca.options()
    };
    let (upstream, peer) = in_memory(options);
    (upstream, peer, ca)
}

/// Plays the server of every connection that is dialled, side by side; `streams` gets what the
/// client asks.
async fn serve(ca: &Ca, peer: &mut Peer, streams: mpsc::Sender<Exchange>) {
    let mut open = JoinSet::new();
    loop {
        let raw = peer.accept_raw().await;
        let io = ca
            .accept("provider.test", &["h2", "http/1.1"], raw)
            .await
            .unwrap();
        let streams = streams.clone();
        open.spawn(async move {
            let mut conn = h2::server::handshake(io).await.unwrap();
            while let Some(Ok(exchange)) = conn.accept().await {
                if streams.send(exchange).await.is_err() {
                    break;
                }
            }
        });
    }
}

/// Runs `test` with the streams that arrive at the server.
async fn with_peer<T>(
    ca: &Ca,
    peer: &mut Peer,
    test: impl AsyncFnOnce(mpsc::Receiver<Exchange>) -> T,
) -> T {
    let (tx, rx) = mpsc::channel(256);
    tokio::select! {
        done = test(rx) => done,
        () = serve(ca, peer, tx) => unreachable!("it serves for ever"),
    }
}

fn begin(mut respond: SendResponse<Bytes>) -> SendStream<Bytes> {
    let mut stream = respond.send_response(Response::new(()), false).unwrap();
    stream
        .send_data(Bytes::from_static(b"half"), false)
        .unwrap();
    stream
}

#[tokio::test(start_paused = true)]
async fn a_connection_serves_request_after_request() {
    let (upstream, mut peer, ca) = pair(100);
    with_peer(&ca, &mut peer, async |mut streams| {
        for reused in [false, true] {
            let (answer, ()) = tokio::join!(upstream.send(post(URI), &CLOCKS), async {
                let (request, mut respond) = streams.recv().await.unwrap();
                assert_eq!(request.uri().host(), Some("provider.test"));
                assert_eq!(request.headers()["authorization"], "Bearer key");
                let created = Response::builder().status(201).body(()).unwrap();
                let mut stream = respond.send_response(created, false).unwrap();
                stream.send_data(Bytes::from_static(b"ok"), true).unwrap();
            });
            let mut response = answer.unwrap();
            assert_eq!(response.version, Version::HTTP_2);
            assert_eq!(response.status, StatusCode::CREATED);
            assert_eq!(
                (response.reused, response.connect.is_none()),
                (reused, reused)
            );
            assert_eq!(response.chunk().await.unwrap().unwrap(), "ok");
            assert!(response.chunk().await.is_none());
        }
    })
    .await;
    assert_eq!(peer.dialled().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_stream_reset_before_its_head() {
    let reset = Transport::ResetBeforeResponse;
    for (reason, transport, sent) in [
        (Reason::REFUSED_STREAM, Transport::NotProcessed, Sent::Never),
        (Reason::INTERNAL_ERROR, reset, Sent::Maybe),
        (Reason::CANCEL, reset, Sent::Maybe),
    ] {
        let (upstream, mut peer, ca) = pair(100);
        let failure = with_peer(&ca, &mut peer, async |mut streams| {
            let (answer, ()) = tokio::join!(upstream.send(post(URI), &CLOCKS), async {
                streams.recv().await.unwrap().1.send_reset(reason);
            });
            answer.unwrap_err()
        })
        .await;
        assert_eq!(
            (failure.transport, failure.sent),
            (transport, sent),
            "{reason:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_reset_in_its_body_is_a_cut() {
    let (upstream, mut peer, ca) = pair(100);
    let failure = with_peer(&ca, &mut peer, async |mut streams| {
        let (answer, mut stream) = tokio::join!(upstream.send(post(URI), &CLOCKS), async {
            begin(streams.recv().await.unwrap().1)
        });
        let mut response = answer.unwrap();
        assert_eq!(response.chunk().await.unwrap().unwrap(), "half");
        stream.send_reset(Reason::INTERNAL_ERROR);
        let failure = response.chunk().await.unwrap().unwrap_err();
        assert!(response.chunk().await.is_none());
        failure
    })
    .await;
    assert_eq!(failure.transport, Transport::CutBody);
}

#[tokio::test(start_paused = true)]
async fn a_lost_connection() {
    let (upstream, mut peer, ca) = pair(100);
    let (answer, ()) = tokio::join!(upstream.send(post(URI), &CLOCKS), async {
        // The server, and with it the connection, goes away with the request in hand.
        with_peer(&ca, &mut peer, async |mut streams| {
            drop(streams.recv().await);
        })
        .await;
    });
    let Failure {
        transport, sent, ..
    } = answer.unwrap_err();
    assert_eq!(
        (transport, sent),
        (Transport::ClosedBeforeResponse, Sent::Maybe)
    );
}

#[tokio::test(start_paused = true)]
async fn a_graceful_goaway_proves_that_a_later_stream_was_not_processed() {
    let (upstream, mut peer, ca) = pair(100);
    let (answer, ()) = tokio::join!(upstream.send(post(URI), &CLOCKS), async {
        let raw = peer.accept_raw().await;
        let io = ca.accept("provider.test", &["h2"], raw).await.unwrap();
        // By hand, since the library would first let the stream through: settings, then GOAWAY
        // with last stream 0 and no error.
        let mut conn = super::peer::Conn(io);
        let settings = "\0\0\0\x04\0\0\0\0\0";
        let goaway = "\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\0";
        conn.write(settings).await;
        tokio::task::yield_now().await;
        conn.write(goaway).await;
        conn.closed().await;
    });
    let failure = answer.unwrap_err();
    assert_eq!(
        (failure.transport, failure.sent),
        (Transport::NotProcessed, Sent::Never)
    );
}

#[tokio::test(start_paused = true)]
async fn dropping_resets_the_stream_and_keeps_the_connection() {
    for with_head in [false, true] {
        let (upstream, mut peer, ca) = pair(100);
        with_peer(&ca, &mut peer, async |mut streams| {
            let mut sending = Box::pin(upstream.send(post(URI), &CLOCKS));
            let (_, mut respond) = tokio::select! {
                exchange = streams.recv() => exchange.unwrap(),
                _ = &mut sending => panic!("nobody answered"),
            };
            let reason = if with_head {
                let mut stream = begin(respond);
                let mut response = sending.await.unwrap();
                response.chunk().await.unwrap().unwrap();
                drop(response);
                poll_fn(|cx| stream.poll_reset(cx)).await
            } else {
                drop(sending);
                poll_fn(|cx| respond.poll_reset(cx)).await
            };
            assert_eq!(reason.unwrap(), Reason::CANCEL);

            let (answer, _stream) = tokio::join!(upstream.send(post(URI), &CLOCKS), async {
                begin(streams.recv().await.unwrap().1)
            });
            assert!(answer.unwrap().reused);
        })
        .await;
        assert_eq!(peer.dialled().len(), 1, "with head: {with_head}");
    }
}

#[tokio::test(start_paused = true)]
async fn many_exchanges_open_a_second_connection_instead_of_queueing() {
    let (upstream, mut peer, ca) = pair(2);
    let reused = with_peer(&ca, &mut peer, async |mut streams| {
        let mut open = Vec::new();
        for _ in 0..4 {
            let (answer, stream) = tokio::join!(upstream.send(post(URI), &CLOCKS), async {
                begin(streams.recv().await.unwrap().1)
            });
            open.push((answer.unwrap(), stream));
        }
        open.iter().map(|(r, _)| r.reused).collect::<Vec<_>>()
    })
    .await;
    assert_eq!(reused, [false, true, false, true]);
    assert_eq!(peer.dialled().len(), 2);
}

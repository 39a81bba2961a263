//! What broke before the head, told apart.

use std::io;
use std::time::Duration;

use backstop_classifier::{Clock, Sent, Transport};
use http::StatusCode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep};

use super::peer::{CLOCKS, Conn, OK, failing, in_memory, post};
use super::tls::Ca;
use crate::{Clocks, Failure, Options, Unresolved, Upstream};

const URI: &str = "http://provider.test/v1/chat";

#[tokio::test(start_paused = true)]
async fn before_the_connection() {
    use io::ErrorKind as Kind;
    let rows: [(fn() -> io::Error, Transport); 4] = [
        (|| Unresolved.into(), Transport::Dns),
        (|| Kind::ConnectionRefused.into(), Transport::Refused),
        (|| Kind::NetworkUnreachable.into(), Transport::Unreachable),
        (|| Kind::TimedOut.into(), Transport::Timeout(Clock::Connect)),
    ];
    for (error, transport) in rows {
        let upstream = failing(move || Some(error()));
        for uri in [URI, "https://nonexistent.invalid/v1"] {
            let failure = upstream.send(post(uri), &CLOCKS).await.unwrap_err();
            assert_eq!(failure, unsent(transport), "{uri}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_connect_clock_covers_the_dial_and_the_handshake() {
    let began = Instant::now();
    let failure = failing(|| None).send(post(URI), &CLOCKS).await.unwrap_err();
    assert_eq!(failure, unsent(Transport::Timeout(Clock::Connect)));
    assert_eq!(began.elapsed(), CLOCKS.connect);

    let (upstream, mut peer) = in_memory(Options::default());
    let began = Instant::now();
    let (answer, _silent) = tokio::join!(
        upstream.send(post("https://provider.test/"), &CLOCKS),
        peer.accept()
    );
    let failure = answer.unwrap_err();
    assert_eq!(failure, unsent(Transport::Timeout(Clock::Connect)));
    assert_eq!(began.elapsed(), CLOCKS.connect);
}

/// What the peer says after the whole request before it closes, and what that is called.
#[tokio::test(start_paused = true)]
async fn between_request_and_head() {
    let http = Transport::Http;
    for (said, transport) in [
        ("", Transport::ClosedBeforeResponse),
        ("H", Transport::CutBody),
        ("HTTP/1.1 200 OK\r\ncontent-le", Transport::CutBody),
        ("HTTP/1.1 100 Continue\r\n\r\n", Transport::CutBody),
        ("SSH-2.0-OpenSSH_9.2\r\n\r\n", http),
        ("HTTP/1.1 9999 No\r\n\r\n", http),
        ("HTTP/1.1 200 OK\r\ncontent-length: 1, 2\r\n\r\n", http),
    ] {
        let (upstream, mut peer) = in_memory(Options::default());
        let (answer, ()) = tokio::join!(upstream.send(post(URI), &CLOCKS), async {
            let mut conn = peer.accept().await;
            conn.request().await;
            conn.write(said).await;
        });
        let failure = answer.unwrap_err();
        let expected = Failure {
            transport,
            sent: Sent::Maybe,
            reused: false,
            connect: Some(Duration::ZERO),
        };
        assert_eq!(failure, expected, "{said:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_closed_before_its_first_byte_carried_nothing() {
    let (upstream, mut peer) = in_memory(Options::default());
    let (answer, ()) = tokio::join!(upstream.send(post(URI), &CLOCKS), async {
        drop(peer.accept_raw().await);
    });
    let failure = answer.unwrap_err();
    assert_eq!(failure.sent, Sent::Never, "{failure:?}");
}

/// Four seconds of handshake and nine of thinking: together more than the headers clock, but it
/// starts with the connection.
#[tokio::test(start_paused = true)]
async fn the_headers_clock_starts_with_the_connection() {
    let clocks = Clocks {
        connect: Duration::from_secs(5),
        headers: Duration::from_secs(10),
    };
    let shaken = Duration::from_secs(4);
    for thinking in [Duration::from_secs(9), Duration::from_secs(11)] {
        let ca = Ca::new();
        let (upstream, mut peer) = in_memory(ca.options());
        let uri = "https://provider.test/";
        let began = Instant::now();
        let (answer, ()) = tokio::join!(upstream.send(post(uri), &clocks), async {
            let raw = peer.accept_raw().await;
            sleep(shaken).await;
            let io = ca.accept("provider.test", &["http/1.1"], raw).await;
            let mut conn = Conn(io.unwrap());
            conn.request().await;
            tokio::select! {
                () = sleep(thinking) => conn.write(OK).await,
                () = conn.closed() => {}
            }
        });
        match answer {
            Ok(response) => {
                assert_eq!(response.head, thinking);
                assert_eq!(response.connect, Some(shaken));
            }
            Err(failure) => {
                assert!(thinking > clocks.headers);
                assert_eq!(began.elapsed(), shaken + clocks.headers);
                let expected = Failure {
                    transport: Transport::Timeout(Clock::Headers),
                    sent: Sent::Maybe,
                    reused: false,
                    connect: Some(shaken),
                };
                assert_eq!(failure, expected);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_before_the_whole_request_was_read_counts() {
    let (upstream, mut peer) = in_memory(Options::default());
    let large = post(URI).map(|_| vec![b' '; 4 << 20].into());
    let (answer, ()) = tokio::join!(upstream.send(large, &CLOCKS), async {
        let mut conn = peer.accept().await;
        assert_eq!(conn.0.read_u8().await.unwrap(), b'P');
        conn.write("HTTP/1.1 413 Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
            .await;
        sleep(Duration::from_secs(1)).await;
    });
    assert_eq!(answer.unwrap().status, StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test(start_paused = true)]
async fn a_redirect_is_an_answer_and_not_followed() {
    let (upstream, mut peer) = in_memory(Options::default());
    let (answer, _conn) = tokio::join!(upstream.send(post(URI), &CLOCKS), async {
        let mut conn = peer.accept().await;
        conn.request().await;
        conn.write(
            "HTTP/1.1 307 Elsewhere\r\nlocation: http://other.test/\r\ncontent-length: 0\r\n\r\n",
        )
        .await;
        conn
    });
    assert_eq!(answer.unwrap().status, StatusCode::TEMPORARY_REDIRECT);
    assert_eq!(peer.dialled(), ["provider.test 80"]);
}

#[tokio::test(start_paused = true)]
async fn a_relative_or_foreign_uri_reaches_nobody() {
    let (upstream, peer) = in_memory(Options::default());
    for uri in ["/v1/chat", "ftp://provider.test/"] {
        let failure = upstream.send(post(uri), &CLOCKS).await.unwrap_err();
        assert_eq!(failure.sent, Sent::Never, "{uri}: {failure:?}");
    }
    assert_eq!(peer.dialled(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn what_a_request_looks_like() {
    let (upstream, mut peer) = in_memory(Options::default());
    let request = post("http://[::1]:8080/v1/chat?api-version=1");
    let (answer, (head, _conn)) = tokio::join!(upstream.send(request, &CLOCKS), async {
        let mut conn = peer.accept().await;
        let head = conn.request().await;
        conn.write(OK).await;
        (head, conn)
    });
    answer.unwrap();
    assert_eq!(
        head,
        "POST /v1/chat?api-version=1 HTTP/1.1\r\nauthorization: Bearer key\r\n\
         accept-encoding: identity\r\nhost: [::1]:8080\r\ncontent-length: 7\r\n\r\n"
    );
    assert_eq!(peer.dialled(), ["::1 8080"]);
}

#[tokio::test]
async fn a_port_without_a_listener_refuses() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri = uri(&listener);
    drop(listener);
    let upstream = Upstream::new(Options::default()).unwrap();
    let failure = upstream.send(post(&uri), &CLOCKS).await.unwrap_err();
    assert_eq!(failure, unsent(Transport::Refused));
}

#[tokio::test]
async fn a_reset_before_the_answer() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let upstream = Upstream::new(Options::default()).unwrap();
    let (answer, ()) = tokio::join!(upstream.send(post(&uri(&listener)), &CLOCKS), async {
        let (stream, _) = listener.accept().await.unwrap();
        let mut conn = Conn(stream);
        conn.request().await;
        reset(&conn.0);
    });
    let failure = answer.unwrap_err();
    assert_eq!(failure.transport, Transport::ResetBeforeResponse);
    assert_eq!(failure.sent, Sent::Maybe);
    assert!(!failure.reused && !failure.is_stale_connection());
}

#[tokio::test]
async fn a_reset_on_a_reused_connection_is_told_as_such() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri = uri(&listener);
    let upstream = Upstream::new(Options::default()).unwrap();
    let (response, mut conn) = tokio::join!(upstream.send(post(&uri), &CLOCKS), async {
        let mut conn = Conn(listener.accept().await.unwrap().0);
        conn.serve().await;
        conn
    });
    let mut response = response.unwrap();
    while let Some(chunk) = response.chunk().await {
        chunk.unwrap();
    }
    let (answer, ()) = tokio::join!(upstream.send(post(&uri), &CLOCKS), async {
        conn.request().await;
        reset(&conn.0);
        drop(conn);
    });
    let failure = answer.unwrap_err();
    assert_eq!(failure.transport, Transport::ResetBeforeResponse);
    assert!(failure.reused && failure.is_stale_connection());
    assert_eq!(failure.connect, None);

    let (answer, _conn) = tokio::join!(upstream.send_fresh(post(&uri), &CLOCKS), async {
        let mut conn = Conn(listener.accept().await.unwrap().0);
        conn.serve().await;
        conn
    });
    assert!(!answer.unwrap().reused);
}

#[tokio::test]
async fn a_reset_in_the_body_is_a_cut() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let upstream = Upstream::new(Options::default()).unwrap();
    let (answer, mut conn) = tokio::join!(upstream.send(post(&uri(&listener)), &CLOCKS), async {
        let mut conn = Conn(listener.accept().await.unwrap().0);
        conn.request().await;
        conn.write("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf")
            .await;
        conn
    });
    let mut response = answer.unwrap();
    assert_eq!(response.chunk().await.unwrap().unwrap(), "half");
    conn.0.flush().await.unwrap();
    reset(&conn.0);
    drop(conn);
    let failure = response.chunk().await.unwrap().unwrap_err();
    assert_eq!(failure.transport, Transport::CutBody);
    assert!(response.chunk().await.is_none(), "and nothing after it");
}

fn uri(listener: &TcpListener) -> String {
    format!("http://{}/v1", listener.local_addr().unwrap())
}

/// Makes the coming drop close with RST instead of FIN.
fn reset(stream: &TcpStream) {
    socket2::SockRef::from(stream)
        .set_linger(Some(Duration::ZERO))
        .unwrap();
}

fn unsent(transport: Transport) -> Failure {
    Failure {
        transport,
        sent: Sent::Never,
        reused: false,
        connect: None,
    }
}

//! Bodies: whole, cut, too long, too slow.

use std::time::Duration;

use backstop_classifier::{Clock, Transport};
use backstop_units::ByteCount;
use bytes::Bytes;
use tokio::io::AsyncWriteExt;
use tokio::time::{Instant, sleep};

use super::peer::{CLOCKS, in_memory, post};
use crate::{Collected, End, Options, Response};

const URI: &str = "http://provider.test/v1/chat";

/// The response to a peer that says `said` and closes.
async fn answered(said: &str) -> Response {
    let (upstream, mut peer) = in_memory(Options::default());
    let (answer, ()) = tokio::join!(upstream.send(post(URI), &CLOCKS), async {
        let mut conn = peer.accept().await;
        conn.request().await;
        conn.write(said).await;
    });
    answer.unwrap()
}

#[derive(Debug, PartialEq)]
enum Ended {
    Whole,
    Broken(Transport),
}

#[tokio::test(start_paused = true)]
async fn how_bodies_end() {
    let cut = Ended::Broken(Transport::CutBody);
    let http = Ended::Broken(Transport::Http);
    for (headers, body, read, ended) in [
        ("content-length: 2", "ok", "ok", Ended::Whole),
        ("content-length: 0", "", "", Ended::Whole),
        ("content-length: 9", "half", "half", cut),
        ("x-until: close", "all", "all", Ended::Whole),
        (
            "transfer-encoding: chunked",
            "2\r\nok\r\n0\r\n\r\n",
            "ok",
            Ended::Whole,
        ),
        (
            "transfer-encoding: chunked",
            "2\r\nok\r\n0\r\nx-t: 1\r\n\r\n",
            "ok",
            Ended::Whole,
        ),
        (
            "transfer-encoding: chunked",
            "2\r\nok\r\n",
            "ok",
            Ended::Broken(Transport::CutBody),
        ),
        (
            "transfer-encoding: chunked",
            "5\r\nok",
            "ok",
            Ended::Broken(Transport::CutBody),
        ),
        (
            "transfer-encoding: chunked",
            "2\r\nok\r\n0\r\n",
            "ok",
            Ended::Broken(Transport::CutBody),
        ),
        (
            "transfer-encoding: chunked",
            "2\r\nok\r\nzz\r\n",
            "ok",
            http,
        ),
    ] {
        let mut response = answered(&format!("HTTP/1.1 200 OK\r\n{headers}\r\n\r\n{body}")).await;
        let mut bytes = Vec::new();
        let found = loop {
            match response.chunk().await {
                None => break Ended::Whole,
                Some(Ok(chunk)) => bytes.extend_from_slice(&chunk),
                Some(Err(failure)) => break Ended::Broken(failure.transport),
            }
        };
        assert_eq!(
            String::from_utf8(bytes).unwrap(),
            read,
            "{headers} {body:?}"
        );
        assert_eq!(found, ended, "{headers} {body:?}");
        assert!(!response.headers.contains_key("x-t"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_bounded_body() {
    let idle = Duration::from_secs(3);
    for (body, limit, read, end) in [
        ("content-length: 4\r\n\r\nabcd", 4, "abcd", End::Whole),
        ("content-length: 4\r\n\r\nabcd", 3, "abc", End::OverLimit),
        ("content-length: 4\r\n\r\nabcd", 0, "", End::OverLimit),
        ("content-length: 0\r\n\r\n", 0, "", End::Whole),
        (
            "transfer-encoding: chunked\r\n\r\n1\r\na\r\n2\r\nbc\r\n1\r\nd\r\n0\r\n\r\n",
            9,
            "abcd",
            End::Whole,
        ),
        (
            "transfer-encoding: chunked\r\n\r\n1\r\na\r\n2\r\nbc\r\n1\r\nd\r\n0\r\n\r\n",
            2,
            "ab",
            End::OverLimit,
        ),
    ] {
        let response = answered(&format!("HTTP/1.1 500 No\r\n{body}")).await;
        let collected = response.body_bounded(ByteCount(limit), idle).await;
        let expected = Collected {
            bytes: Bytes::from(read),
            end,
        };
        assert_eq!(collected, expected, "{body:?} {limit}");
    }
    let response = answered("HTTP/1.1 500 No\r\ncontent-length: 9\r\n\r\nhalf").await;
    let collected = response.body_bounded(ByteCount::kib(1), idle).await;
    assert_eq!(collected.bytes, "half");
    assert!(matches!(collected.end, End::Cut(f) if f.transport == Transport::CutBody));
}

#[tokio::test(start_paused = true)]
async fn the_idle_clock_counts_from_the_last_piece() {
    let (upstream, mut peer) = in_memory(Options::default());
    let idle = Duration::from_secs(3);
    let read = async {
        let response = upstream.send(post(URI), &CLOCKS).await.unwrap();
        let began = Instant::now();
        let collected = response.body_bounded(ByteCount::kib(1), idle).await;
        (collected, began.elapsed())
    };
    let ((collected, took), ()) = tokio::join!(read, async {
        let mut conn = peer.accept().await;
        conn.request().await;
        conn.write("HTTP/1.1 500 No\r\ncontent-length: 9\r\n\r\n")
            .await;
        for _ in 0..3 {
            sleep(Duration::from_secs(2)).await;
            conn.write("x").await;
        }
        conn.closed().await;
    });
    assert_eq!(collected.bytes, "xxx");
    assert!(matches!(collected.end, End::Cut(f) if f.transport == Transport::Timeout(Clock::Idle)));
    assert_eq!(took, Duration::from_secs(9));
}

#[tokio::test(start_paused = true)]
async fn a_waiting_chunk_can_be_dropped_and_asked_again() {
    let (upstream, mut peer) = in_memory(Options::default());
    let (answer, mut conn) = tokio::join!(upstream.send(post(URI), &CLOCKS), async {
        let mut conn = peer.accept().await;
        conn.request().await;
        conn.write("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n")
            .await;
        conn
    });
    let mut response = answer.unwrap();
    let second = Duration::from_secs(1);
    assert!(
        tokio::time::timeout(second, response.chunk())
            .await
            .is_err()
    );
    conn.write("late").await;
    assert_eq!(response.chunk().await.unwrap().unwrap(), "late");
    assert!(response.chunk().await.is_none());
}

/// `{"ok":true}` by zlib.
const GZIP: &[u8] = &[
    31, 139, 8, 0, 0, 0, 0, 0, 2, 3, 171, 86, 202, 207, 86, 178, 42, 41, 42, 77, 173, 5, 0, 144,
    95, 212, 167, 11, 0, 0, 0,
];

/// The response to a peer that sends these bytes as its body, under this coding, and closes.
async fn coded(coding: &str, body: &[u8], length: usize) -> Response {
    let (upstream, mut peer) = in_memory(Options::default());
    let (answer, ()) = tokio::join!(upstream.send(post(URI), &CLOCKS), async {
        let mut conn = peer.accept().await;
        conn.request().await;
        conn.write(&format!(
            "HTTP/1.1 429 No\r\ncontent-encoding: {coding}\r\ncontent-length: {length}\r\n\r\n"
        ))
        .await;
        conn.0.write_all(body).await.unwrap();
    });
    answer.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_coded_body_is_read_as_what_it_says() {
    let idle = Duration::from_secs(3);
    let cut = Some(Transport::CutBody);
    let len = GZIP.len();
    for (coding, body, length, limit, read, end) in [
        ("gzip", GZIP, len, 11, "{\"ok\":true}", None),
        ("identity", &b"plain"[..], 5, 9, "plain", None),
        ("gzip", GZIP, len + 1, 11, "{\"ok\":true}", cut),
        ("gzip", &GZIP[..20], len, 11, "{", cut),
        ("gzip", &GZIP[..20], 20, 11, "{", cut),
        ("gzip", &GZIP[..0], 0, 11, "", None),
        ("gzip", b"plain", 5, 11, "", Some(Transport::BrokenCoding)),
        ("lzma", b"plain", 5, 11, "", Some(Transport::UnknownCoding)),
    ] {
        let response = coded(coding, body, length).await;
        let collected = response.body_bounded(ByteCount(limit), idle).await;
        let ended = match collected.end {
            End::Whole => None,
            End::Cut(failure) => Some(failure.transport),
            End::OverLimit => panic!("within the limit"),
        };
        assert_eq!(ended, end, "{coding}");
        let text = String::from_utf8_lossy(&collected.bytes);
        if body.len() == 20 {
            // How much of a stump is decoded depends on how far the decoder looks ahead.
            assert!(
                text.starts_with(read) && "{\"ok\":true}".starts_with(&*text),
                "{text}"
            );
        } else {
            assert_eq!(text, read, "{coding}");
        }
    }
    let response = coded("gzip", GZIP, len).await;
    let collected = response.body_bounded(ByteCount(10), idle).await;
    assert_eq!(collected.bytes, "{\"ok\":true");
    assert_eq!(collected.end, End::OverLimit);
}

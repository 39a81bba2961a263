//! Tokens: one fetch for all who wait, renewal ahead of the end, and what a failed fetch means.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use backstop_classifier::{Class, Kind, Sent, Verdict};
use backstop_providers::TokenSource;
use backstop_units::{KeyId, ProviderId, Secret};
use futures_util::FutureExt;
use futures_util::future::join_all;
use tokio::io::DuplexStream;
use tokio::time::{Instant, advance, sleep};

use super::peer::{Conn, Peer, failing, in_memory};
use crate::{Options, Token, Tokens, Upstream};

fn key(name: &str) -> KeyId {
    KeyId::new(&ProviderId::new("azure"), name)
}

fn source(secret: &str) -> TokenSource {
    let secret = Secret::new(secret);
    let authority = Some("http://tokens.internal");
    TokenSource::entra(authority, "tenant", "app".to_owned(), secret).expect("an address inside")
}

fn tokens() -> (Arc<Tokens>, Peer) {
    let (upstream, peer) = in_memory(Options::default());
    (Arc::new(Tokens::new(Arc::new(upstream))), peer)
}

async fn ask(tokens: &Tokens) -> Result<Arc<Token>, Box<Verdict>> {
    tokens.token(&key("k"), &source("s"), WALL).await
}

const WALL: SystemTime = SystemTime::UNIX_EPOCH;

async fn answer(conn: &mut Conn<DuplexStream>, status: &str, body: &str) {
    let length = body.len();
    conn.request().await;
    conn.write(&format!(
        "HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n{body}"
    ))
    .await;
}

/// Answers the next fetch with a token that lives for so long.
async fn grant(peer: &mut Peer, token: &str, seconds: u64) {
    let body =
        format!(r#"{{"access_token":"{token}","expires_in":{seconds},"token_type":"Bearer"}}"#);
    answer(&mut peer.accept().await, "200 OK", &body).await;
}

#[tokio::test(start_paused = true)]
async fn all_who_wait_are_served_by_one_fetch() {
    let (tokens, mut peer) = tokens();
    let askers = (0..20).map(|_| ask(&tokens));
    let (got, ()) = tokio::join!(join_all(askers), grant(&mut peer, "one", 3600));
    for token in got {
        assert!(token.expect("a token").secret().is("one"));
    }
    assert_eq!(peer.dialled(), ["tokens.internal 80"]);
    // And everybody after them, until it is time.
    advance(Duration::from_secs(3299)).await;
    assert!(ask(&tokens).await.expect("kept").secret().is("one"));
    assert_eq!(peer.dialled().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn one_who_leaves_takes_nothing_along_and_the_last_one_all() {
    let (tokens, mut peer) = tokens();
    let mut first = Box::pin(ask(&tokens));
    let mut second = Box::pin(ask(&tokens));
    assert!((&mut first).now_or_never().is_none());
    assert!((&mut second).now_or_never().is_none());
    let mut conn = tokio::select! {
        biased;
        _ = &mut first => panic!("nobody answered"),
        conn = peer.accept() => conn,
    };
    drop(first);
    let body = r#"{"access_token":"one","expires_in":"3600"}"#;
    let (got, ()) = tokio::join!(&mut second, answer(&mut conn, "200 OK", body));
    assert!(got.expect("a token").secret().is("one"));

    // Nobody waits any more: the fetch is given up, and the next one begins anew.
    let (tokens, mut peer) = self::tokens();
    let mut alone = Box::pin(ask(&tokens));
    let mut conn = tokio::select! {
        biased;
        _ = &mut alone => panic!("nobody answered"),
        conn = peer.accept() => conn,
    };
    drop(alone);
    conn.closed().await;
    let (got, ()) = tokio::join!(ask(&tokens), grant(&mut peer, "two", 3600));
    assert!(got.expect("a token").secret().is("two"));
}

#[tokio::test(start_paused = true)]
async fn a_token_is_renewed_ahead_of_its_end_by_one_request() {
    let (tokens, mut peer) = tokens();
    let (got, ()) = tokio::join!(ask(&tokens), grant(&mut peer, "one", 3600));
    got.expect("a token");
    advance(Duration::from_secs(3301)).await;
    let renewing = async {
        let mut conn = peer.accept().await;
        // Whoever comes while it is under way does not wait.
        assert!(ask(&tokens).await.expect("spare").secret().is("one"));
        answer(
            &mut conn,
            "200 OK",
            r#"{"access_token":"two","expires_in":3600}"#,
        )
        .await;
    };
    let (got, ()) = tokio::join!(ask(&tokens), renewing);
    assert!(got.expect("a token").secret().is("two"));
    assert_eq!(peer.dialled().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_early_renewal_that_fails_or_dawdles_costs_nobody_a_request() {
    let (tokens, mut peer) = tokens();
    let (got, ()) = tokio::join!(ask(&tokens), grant(&mut peer, "one", 3600));
    got.expect("a token");
    advance(Duration::from_secs(3301)).await;
    let down = async { answer(&mut peer.accept().await, "503 X", "").await };
    let (got, ()) = tokio::join!(ask(&tokens), down);
    assert!(got.expect("the one there is").secret().is("one"));
    // It is left alone for a while.
    assert!(ask(&tokens).await.expect("kept").secret().is("one"));
    assert_eq!(peer.dialled().len(), 2);
    advance(Duration::from_secs(31)).await;
    let before = Instant::now();
    let (got, mut conn) = tokio::join!(ask(&tokens), peer.accept());
    assert!(got.expect("the one there is").secret().is("one"));
    assert!(before.elapsed() < Duration::from_secs(3));
    conn.closed().await;
    // At its end nothing is left to go out with.
    advance(Duration::from_secs(300)).await;
    let down = async { answer(&mut peer.accept().await, "503 X", "").await };
    let (got, ()) = tokio::join!(ask(&tokens), down);
    assert_eq!(got.unwrap_err().class, Class::Transient);
}

#[tokio::test(start_paused = true)]
async fn a_refused_token_is_renewed_once_for_all_who_held_it() {
    let (tokens, mut peer) = tokens();
    let (got, ()) = tokio::join!(ask(&tokens), grant(&mut peer, "one", 3600));
    let refused = got.expect("a token");
    let (key, source) = (key("k"), source("s"));
    let renew = || tokens.renew(&key, &source, Some(&refused), WALL);
    let both = futures_util::future::join(renew(), renew());
    let ((first, second), ()) = tokio::join!(both, grant(&mut peer, "two", 3600));
    assert!(first.expect("a token").secret().is("two"));
    assert!(second.expect("a token").secret().is("two"));
    // One who comes late with the old one gets what is there.
    assert!(renew().await.expect("a token").secret().is("two"));
    assert_eq!(peer.dialled().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn another_source_under_the_same_name_starts_afresh() {
    let (tokens, mut peer) = tokens();
    let (got, ()) = tokio::join!(ask(&tokens), grant(&mut peer, "one", 3600));
    got.expect("a token");
    let (name, other) = (key("k"), source("other"));
    let asked = tokens.token(&name, &other, WALL);
    let (got, ()) = tokio::join!(asked, grant(&mut peer, "two", 3600));
    assert!(got.expect("a token").secret().is("two"));
    tokens.retain(&HashSet::new());
    let asked = tokens.token(&name, &other, WALL);
    let (got, ()) = tokio::join!(asked, grant(&mut peer, "three", 3600));
    assert!(got.expect("a token").secret().is("three"));
}

#[tokio::test(start_paused = true)]
async fn googles_own_answer_is_read() {
    let (tokens, mut peer) = tokens();
    let recorded = include_str!("../../../providers/fixtures/vertex/token.json");
    let says = async { answer(&mut peer.accept().await, "200 OK", recorded).await };
    let (got, ()) = tokio::join!(ask(&tokens), says);
    let got = got.expect("a token");
    assert_eq!(got.secret().expose().split('-').next(), Some("ya29.FAKE"));
}

#[tokio::test(start_paused = true)]
async fn what_a_failed_fetch_means() {
    use Class::{Credential, Transient};
    let long = format!(r#"{{"access_token":"{}"}}"#, "canary".repeat(20_000));
    for (status, body, class, signal) in [
        (
            "400 X",
            r#"{"error":"invalid_grant","error_description":"canary"}"#,
            Credential,
            "code invalid_grant",
        ),
        (
            "401 X",
            r#"{"error":"invalid_client","error_description":"AADSTS7000215 canary"}"#,
            Credential,
            "code invalid_client",
        ),
        ("401 X", r#"{"error":"canary"}"#, Credential, "status 401"),
        ("403 X", "", Credential, "status 403"),
        ("400 X", r#"{"error":"canary"}"#, Transient, "status 400"),
        (
            "400 X",
            r#"{"error":"temporarily_unavailable"}"#,
            Transient,
            "status 400",
        ),
        ("404 X", "<html>canary</html>", Transient, "status 404"),
        (
            "429 X",
            r#"{"error":"invalid_request"}"#,
            Transient,
            "status 429",
        ),
        (
            "503 X",
            r#"{"error":"invalid_grant"}"#,
            Transient,
            "status 503",
        ),
        // Never followed.
        (
            "302 X\r\nlocation: http://canary.test/",
            "",
            Transient,
            "status 302",
        ),
        ("200 OK", "canary", Transient, "shape"),
        ("200 OK", "{}", Transient, "shape"),
        ("200 OK", r#"{"access_token":""}"#, Transient, "shape"),
        (
            "200 OK",
            r#"{"access_token":"canary\n"}"#,
            Transient,
            "shape",
        ),
        ("200 OK", &long, Transient, "shape"),
    ] {
        let (tokens, mut peer) = tokens();
        let says = async { answer(&mut peer.accept().await, status, body).await };
        let (got, ()) = tokio::join!(ask(&tokens), says);
        let verdict = got.expect_err(body);
        assert_eq!(verdict.class, class, "{status} {body}");
        assert_eq!(verdict.signal.to_string(), signal, "{status} {body}");
        assert_eq!(verdict.kind, Some(Kind::TokenFetch));
        assert_eq!((verdict.sent, verdict.status), (Sent::Never, None));
        assert!(!format!("{verdict} {verdict:?} {tokens:?}").contains("canary"));
        assert_eq!(peer.dialled().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_fetch_has_clocks_of_its_own() {
    let unheard = |error: fn() -> Option<io::Error>| {
        let upstream = failing(error);
        async move { ask(&of(upstream)).await.unwrap_err() }
    };
    let refused = unheard(|| Some(io::ErrorKind::ConnectionRefused.into())).await;
    assert_eq!(refused.class, Class::Transient);
    assert_eq!(refused.fail_reason(), "token_unavailable");
    let before = Instant::now();
    let silent = unheard(|| None).await;
    assert_eq!(silent.class, Class::Transient);
    assert_eq!(before.elapsed(), Duration::from_secs(5));

    // A body that trickles keeps the idle clock happy, but not the one for all of it.
    let (tokens, mut peer) = tokens();
    let trickle = async {
        let mut conn = peer.accept().await;
        conn.request().await;
        conn.write("HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n")
            .await;
        for _ in 0..3 {
            sleep(Duration::from_secs(4)).await;
            conn.write("{").await;
        }
        conn.closed().await;
    };
    let before = Instant::now();
    let (got, ()) = tokio::join!(ask(&tokens), trickle);
    assert_eq!(got.unwrap_err().class, Class::Transient);
    assert_eq!(before.elapsed(), Duration::from_secs(15));
}

fn of(upstream: Upstream) -> Tokens {
    Tokens::new(Arc::new(upstream))
}

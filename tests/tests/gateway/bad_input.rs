//! What is wrong with a request is said in its dialect, and no provider hears of it.

use backstop_faultsim::{End, Script, Step};
use backstop_tests::{Answer, Call, Peer, TestGateway, soon};
use serde_json::{Value, json};

use crate::common::{ask, both_dialects, provider, untouched};

const CHAT: &str = "/v1/chat/completions";
const MESSAGES: &str = "/v1/messages";

/// A row: what is sent, and what must come back.
struct Row {
    name: &'static str,
    body: String,
    status: u16,
    code: &'static str,
    param: Option<&'static str>,
}

fn row(name: &'static str, body: impl Into<String>, status: u16, code: &'static str) -> Row {
    Row {
        name,
        body: body.into(),
        status,
        code,
        param: None,
    }
}

impl Row {
    fn at(self, param: &'static str) -> Self {
        Self {
            param: Some(param),
            ..self
        }
    }
}

/// The shape of an error in the dialect of `path`.
fn check(name: &str, path: &str, answer: &Answer, status: u16, code: &str) {
    let said = answer.text();
    assert_eq!(answer.status, status, "{name} at {path}: {said}");
    assert_eq!(answer.code(), code, "{name} at {path}: {said}");
    let body = answer.json();
    assert_eq!(body["request_id"], answer.id(), "{name} at {path}");
    assert!(!answer.id().is_empty(), "{name} at {path}");
    assert_eq!(answer.header("content-type"), "application/json");
    let error = &body["error"];
    assert!(
        error["message"]
            .as_str()
            .is_some_and(|said| !said.is_empty())
    );
    assert!(error["type"].is_string());
    if path.contains("messages") || path.starts_with("/anthropic") {
        assert_eq!(body["type"], "error", "{name} at {path}");
    } else {
        assert!(error.get("param").is_some(), "{name} at {path}");
    }
}

#[tokio::test]
async fn a_body_that_is_wrong_is_refused_before_anyone_is_asked() {
    let (openai, anthropic) = (untouched().await, untouched().await);
    let sims = [("openai", &openai), ("anthropic", &anthropic)];
    let gateway = TestGateway::start(&both_dialects(), &sims).await;
    let with = |name: &str, value: Value| {
        let mut body = ask("openai/gpt-4o");
        body[name] = value;
        body.to_string()
    };
    let rows = [
        row("nothing", "", 400, "invalid_json"),
        row(
            "half an object",
            r#"{"model":"openai/m","#,
            400,
            "invalid_json",
        ),
        row("two objects", "{}{}", 400, "invalid_json"),
        row("single quotes", "{'model':'m'}", 400, "invalid_json"),
        row("a list", "[]", 400, "not_an_object"),
        row("too deep", "[".repeat(5000), 400, "nesting_too_deep"),
        row(
            "a model twice",
            r#"{"model":"openai/a","model":"openai/b"}"#,
            400,
            "duplicate_key",
        ),
        row(
            "a key twice, once escaped",
            r#"{"model":"openai/a","\u006dodel":"b"}"#,
            400,
            "duplicate_key",
        ),
        row("no model", r#"{"messages":[]}"#, 400, "missing_model").at("model"),
        row(
            "a number for a model",
            with("model", json!(4)),
            400,
            "invalid_model",
        )
        .at("model"),
        row(
            "an empty model",
            with("model", json!(" ")),
            400,
            "invalid_model",
        )
        .at("model"),
        row(
            "a bare name",
            with("model", json!("gpt-4o")),
            404,
            "model_not_found",
        )
        .at("model"),
        row(
            "an unknown provider",
            with("model", json!("acme/gpt-4o")),
            404,
            "model_not_found",
        )
        .at("model"),
        row(
            "no model behind the slash",
            with("model", json!("openai/")),
            404,
            "model_not_found",
        )
        .at("model"),
        row(
            "text for stream",
            with("stream", json!("yes")),
            400,
            "invalid_type",
        )
        .at("stream"),
        row(
            "text for fallbacks",
            with("fallbacks", json!("openai/m")),
            400,
            "invalid_fallbacks",
        )
        .at("fallbacks"),
        row(
            "a fallback without provider",
            with("fallbacks", json!(["openai/a", "gpt-4o"])),
            400,
            "invalid_fallbacks",
        )
        .at("fallbacks"),
        row(
            "a fallback that is no text",
            with("fallbacks", json!([1])),
            400,
            "invalid_fallbacks",
        )
        .at("fallbacks"),
        row(
            "half a fallback",
            with("fallbacks", json!(["/m"])),
            400,
            "invalid_fallbacks",
        )
        .at("fallbacks"),
    ];
    for path in [
        CHAT,
        MESSAGES,
        "/openai/v1/chat/completions",
        "/anthropic/v1/messages",
    ] {
        for row in &rows {
            let answer = gateway.post(path, row.body.clone()).send().await;
            check(row.name, path, &answer, row.status, row.code);
            if let Some(param) = row.param {
                assert_eq!(answer.json()["error"]["param"], param, "{}", row.name);
            }
        }
    }
    assert_eq!((openai.attempt_count(), anthropic.attempt_count()), (0, 0));
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_announced_or_not() {
    let openai = untouched().await;
    let config = "limits = { body_bytes = \"2KiB\", buffered_bytes = \"1MiB\" }\n".to_owned()
        + &crate::common::one("openai");
    let gateway = TestGateway::start(&config, &[("openai", &openai)]).await;
    let mut body = ask("openai/gpt-4o");
    body["user"] = "x".repeat(4096).into();
    for path in [CHAT, MESSAGES] {
        let announced = gateway.post(path, body.to_string()).send().await;
        check("announced", path, &announced, 413, "request_too_large");
        let chunked = gateway
            .post(path, body.to_string())
            .chunked(100)
            .send()
            .await;
        check("chunked", path, &chunked, 413, "request_too_large");
    }
    assert_eq!(openai.attempt_count(), 0);
}

#[tokio::test]
async fn more_than_all_bodies_may_hold_is_shed() {
    let held = Step::silent(End::Hang);
    let openai = provider(Script::new().step(held).step(Step::ok_text("now"))).await;
    let config = "limits = { body_bytes = \"4KiB\", buffered_bytes = \"6KiB\" }\n".to_owned()
        + &crate::common::one("openai");
    let gateway = TestGateway::start(&config, &[("openai", &openai)]).await;
    let mut body = ask("openai/gpt-4o");
    body["user"] = "x".repeat(3500).into();
    let first = gateway.post(CHAT, body.to_string()).start().await;
    let attempt = &soon("the first request", openai.wait_for_attempts(1)).await[0];
    for path in [CHAT, MESSAGES] {
        let shed = gateway.post(path, body.to_string()).send().await;
        check("shed", path, &shed, 503, "gateway_overloaded");
        assert_eq!(shed.header("retry-after"), "1");
    }
    drop(first);
    soon("its end", attempt.closed_by_peer()).await;
    let answer = gateway.post(CHAT, body.to_string()).send().await;
    assert_eq!(answer.said(), "now", "{}", answer.text());
}

#[tokio::test]
async fn a_body_within_the_limit_may_come_in_chunks() {
    let openai = provider(Script::healthy()).await;
    let gateway = TestGateway::start(&crate::common::one("openai"), &[("openai", &openai)]).await;
    let body = ask("openai/gpt-4o").to_string();
    let answer = gateway.post(CHAT, body).chunked(7).send().await;
    assert_eq!(answer.status, 200);
    assert_eq!(openai.attempt(1).json()["model"], "gpt-4o");
}

#[tokio::test]
async fn a_body_that_breaks_off_is_no_shorter_one() {
    let openai = untouched().await;
    let gateway = TestGateway::start(&crate::common::one("openai"), &[("openai", &openai)]).await;
    let body = ask("openai/gpt-4o").to_string();
    let mut peer = Peer::connect(gateway.address()).await;
    let head = format!(
        "POST {CHAT} HTTP/1.1\r\nhost: g\r\ncontent-length: {}\r\n\r\n",
        body.len() + 10
    );
    peer.write((head + &body).as_bytes()).await;
    peer.finish().await;
    let rest = soon("the end of the connection", peer.rest()).await;
    let rest = String::from_utf8_lossy(&rest);
    assert!(!rest.starts_with("HTTP/1.1 200"), "{rest}");
    assert_eq!(openai.attempt_count(), 0);
}

#[tokio::test]
async fn wrong_paths_and_methods_are_named() {
    let openai = untouched().await;
    let gateway = TestGateway::start(&crate::common::one("openai"), &[("openai", &openai)]).await;
    for (method, path, status, code, allow) in [
        ("GET", CHAT, 405, "method_not_allowed", "POST"),
        ("GET", MESSAGES, 405, "method_not_allowed", "POST"),
        (
            "DELETE",
            "/anthropic/v1/messages",
            405,
            "method_not_allowed",
            "POST",
        ),
        ("POST", "/v1/models", 405, "method_not_allowed", "GET"),
        ("POST", "/v1/completions", 404, "unknown_path", ""),
        ("POST", "/v1/messages/batches", 404, "unknown_path", ""),
        ("POST", "/anthropic/v2/x", 404, "unknown_path", ""),
        ("GET", "/", 404, "unknown_path", ""),
    ] {
        let body = ask("openai/gpt-4o").to_string();
        let body = if method == "GET" { String::new() } else { body };
        let answer = gateway.call(method, path).body(body).send().await;
        check(method, path, &answer, status, code);
        assert_eq!(answer.header("allow"), allow, "{method} {path}");
    }
    assert_eq!(openai.attempt_count(), 0);
}

#[tokio::test]
async fn our_own_headers_must_make_sense() {
    let openai = untouched().await;
    let gateway = TestGateway::start(&crate::common::one("openai"), &[("openai", &openai)]).await;
    for (name, value, code) in [
        ("x-backstop-deadline-ms", "soon", "invalid_header"),
        ("x-backstop-commit", "never", "invalid_header"),
        ("x-backstop-key", "openai-key-9", "unknown_key"),
        ("content-encoding", "gzip", "unsupported_encoding"),
    ] {
        for path in [CHAT, MESSAGES] {
            let call: Call = gateway.post(path, ask("openai/gpt-4o").to_string());
            let answer = call.header(name, value).send().await;
            let status = if name == "content-encoding" { 415 } else { 400 };
            check(name, path, &answer, status, code);
        }
    }
    assert_eq!(openai.attempt_count(), 0);
}

#[tokio::test]
async fn what_is_no_http_does_no_harm() {
    let openai = provider(Script::healthy()).await;
    let gateway = TestGateway::start(&crate::common::one("openai"), &[("openai", &openai)]).await;
    for bytes in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..],
        b"GET /\r\n\r\n\r\n\r\n",
        b"POST /v1/messages HTTP/1.1\r\ncontent-length: -1\r\n\r\n",
        b"POST /v1/messages HTTP/1.1\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}",
    ] {
        let mut peer = Peer::connect(gateway.address()).await;
        peer.write(bytes).await;
        peer.finish().await;
        let _ = soon("the end of the connection", peer.rest()).await;
    }
    assert_eq!(openai.attempt_count(), 0);
    assert_eq!(gateway.chat(ask("openai/gpt-4o")).await.status, 200);
}

#[tokio::test]
async fn a_connection_that_says_nothing_is_closed() {
    let openai = untouched().await;
    let config = "server = { head_ms = 40 }\n".to_owned() + &crate::common::one("openai");
    let gateway = TestGateway::start(&config, &[("openai", &openai)]).await;
    let mut peer = Peer::connect(gateway.address()).await;
    assert!(soon("its end", peer.rest()).await.is_empty());
}

#[tokio::test]
async fn a_head_with_two_meanings_is_refused_and_its_connection_closed() {
    let openai = untouched().await;
    let gateway = TestGateway::start(&crate::common::one("openai"), &[("openai", &openai)]).await;
    let host = gateway.address();
    let smuggled = "2\r\n{}\r\n0\r\n\r\nGET /metrics HTTP/1.1\r\nhost: h\r\n\r\n";
    for (name, head) in [
        (
            "length and coding",
            format!("host: {host}\r\ncontent-length: 4\r\ntransfer-encoding: chunked"),
        ),
        (
            "coding and length",
            format!("transfer-encoding: chunked\r\ncontent-length: 4\r\nhost: {host}"),
        ),
        (
            "a foreign coding",
            format!("host: {host}\r\ntransfer-encoding: gzip, chunked"),
        ),
        (
            "chunked twice",
            format!("host: {host}\r\ntransfer-encoding: chunked\r\ntransfer-encoding: chunked"),
        ),
        (
            "a bare line feed",
            format!("host: {host}\ncontent-length: 2"),
        ),
        ("no host", "content-length: 2".to_owned()),
        (
            "two hosts",
            format!("host: {host}\r\nhost: {host}\r\ncontent-length: 2"),
        ),
        (
            "a path for a host",
            "host: a b/../\r\ncontent-length: 2".to_owned(),
        ),
        (
            "a host with a user",
            "host: me@h\r\ncontent-length: 2".to_owned(),
        ),
    ] {
        let mut peer = Peer::connect(gateway.address()).await;
        let request = format!("POST /v1/chat/completions HTTP/1.1\r\n{head}\r\n\r\n{smuggled}");
        peer.write(request.as_bytes()).await;
        let rest = soon("the end of the connection", peer.rest()).await;
        let rest = String::from_utf8_lossy(&rest);
        assert!(rest.starts_with("HTTP/1.1 400 "), "{name}: {rest}");
        assert!(rest.contains("ambiguous_request"), "{name}: {rest}");
        assert_eq!(rest.matches("HTTP/1.1 ").count(), 1, "{name}: {rest}");
    }
    for (name, line) in [
        ("a tunnel", "CONNECT api.openai.com:443"),
        (
            "another host",
            "POST http://api.openai.com/v1/chat/completions",
        ),
    ] {
        let mut peer = Peer::connect(gateway.address()).await;
        let request = format!("{line} HTTP/1.1\r\nhost: {host}\r\ncontent-length: 2\r\n\r\n{{}}");
        peer.write(request.as_bytes()).await;
        let rest = soon("the end of the connection", peer.rest()).await;
        let rest = String::from_utf8_lossy(&rest);
        assert!(rest.starts_with("HTTP/1.1 400 "), "{name}: {rest}");
        assert!(rest.contains("ambiguous_request"), "{name}: {rest}");
    }
    assert_eq!(openai.attempt_count(), 0);
    // The address in full is what a client sends to a proxy; for this very host it means the same.
    let mut peer = Peer::connect(gateway.address()).await;
    let request =
        format!("GET http://{host}/healthz HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    peer.write(request.as_bytes()).await;
    let rest = soon("an answer", peer.rest()).await;
    assert!(rest.starts_with(b"HTTP/1.1 200 "));
}

//! The forms in which people have a response at hand, and those that are none.

use super::*;

fn response(text: &str) -> Response<'_> {
    match read(text.as_bytes(), None, false) {
        Ok(Input::Response(response)) => response,
        other => panic!("{text:?} is {other:?}"),
    }
}

#[test]
fn what_curl_prints_is_read_to_the_last_block() {
    for (text, status, body) in [
        (
            "HTTP/1.1 429 Too Many Requests\r\nretry-after: 7\r\n\r\n{}",
            429,
            "{}",
        ),
        (
            "HTTP/1.1 429 Too Many Requests\nretry-after: 7\n\n{}",
            429,
            "{}",
        ),
        ("HTTP/2 429 \r\nretry-after: 7\r\n\r\n{}", 429, "{}"),
        ("HTTP/2 429\r\nretry-after: 7\r\n\r\n", 429, ""),
        ("HTTP/2 429\r\nretry-after: 7", 429, ""),
        ("HTTP/3 429\nretry-after:7\n\n{}", 429, "{}"),
        ("\n\n  HTTP/1.1 429\nretry-after: 7\n\n{}", 429, "{}"),
        ("\u{FEFF}HTTP/1.1 429\nretry-after: 7\n\n{}", 429, "{}"),
        (
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 503 No\r\nretry-after: 7\r\n\r\nx",
            503,
            "x",
        ),
        (
            "HTTP/1.1 200 Connection established\r\n\r\nHTTP/2 401\r\nretry-after: 7\r\n\r\nx",
            401,
            "x",
        ),
        (
            "HTTP/2 301\r\nlocation: /a\r\nretry-after: 1\r\n\r\nHTTP/2 302\r\nlocation: /b\r\n\r\nHTTP/2 404\r\nretry-after: 7\r\n\r\nHTML",
            404,
            "HTML",
        ),
        // A body that only looks like another block.
        (
            "HTTP/1.1 400\nretry-after: 7\n\nHTTP/1.1 is spoken here",
            400,
            "HTTP/1.1 is spoken here",
        ),
        (
            "HTTP/1.1 400\nretry-after: 7\n\na\n\nb: c\n",
            400,
            "a\n\nb: c\n",
        ),
    ] {
        let got = response(text);
        assert_eq!(got.status, status, "{text:?}");
        assert_eq!(got.body, body.as_bytes(), "{text:?}");
        let hint = got.headers.get("retry-after").unwrap();
        assert_eq!(hint, "7", "{text:?}");
    }
}

#[test]
fn a_header_may_come_twice_and_hold_any_bytes() {
    let Ok(Input::Response(got)) = read(
        b"HTTP/2 429\nRetry-After: 7\nretry-after: 8\nx-note: \xFF\n\n",
        None,
        false,
    ) else {
        panic!("a response");
    };
    assert_eq!(got.headers.get_all("retry-after").iter().count(), 2);
}

#[test]
fn a_bare_body_needs_a_status_or_a_stream() {
    let body = br#"{"error":{"code":"x"}}"#;
    assert_eq!(read(body, None, false).unwrap_err(), Unusable::NoStatus);
    assert!(matches!(
        read(body, Some(429), false),
        Ok(Input::Response(Response { status: 429, .. }))
    ));
    assert!(matches!(
        read(body, None, true),
        Ok(Input::Response(Response { status: 200, .. }))
    ));
    assert!(matches!(
        read(b"", Some(502), false),
        Ok(Input::Response(Response {
            status: 502,
            body: b"",
            ..
        }))
    ));
    // A problem document has a status of its own, which is not the response's.
    let problem = br#"{"status":429,"title":"Too Many Requests"}"#;
    assert_eq!(read(problem, None, false).unwrap_err(), Unusable::NoStatus);
}

#[test]
fn a_json_line_brings_everything_along() {
    let line = r#"{"status":429,"provider":"openai","headers":{"retry-after":"7"},"body":"{}"}"#;
    let Ok(Input::Row(row)) = read(line.as_bytes(), None, false) else {
        panic!("a row");
    };
    assert_eq!((row.status, row.provider.as_str()), (429, "openai"));
    assert_eq!(row.verdict().retry_after.unwrap().as_secs(), 7);
    let cut = r#"{"status":0,"transport":"dns_failure"}"#;
    let Ok(Input::Row(row)) = read(cut.as_bytes(), None, false) else {
        panic!("a row");
    };
    assert_eq!(row.verdict().fail_reason(), "dns_failure");
}

#[test]
fn what_is_no_response_is_refused_with_the_next_step() {
    let two_rows = "{\"status\":429,\"body\":\"\"}\n{\"status\":500,\"body\":\"\"}\n";
    for (bytes, status, want, says) in [
        (&b""[..], None, Unusable::Empty, "--status"),
        (b" \n ", None, Unusable::Empty, "curl -i"),
        (b"Not Found", None, Unusable::NoStatus, "--status"),
        (
            b"HTTP/1.1 429\n\n{}",
            Some(429),
            Unusable::TwoStatuses,
            "leave out",
        ),
        (
            b"HTTP/1.1 Too Many\n\n",
            None,
            Unusable::StatusLine,
            "HTTP/2 429",
        ),
        (
            b"HTTP/1.1 429\na: b\nno header\n\n",
            None,
            Unusable::Header(3),
            "line 3",
        ),
        (
            b"\n\nHTTP/1.1 429\n{\"error\":1}\n",
            None,
            Unusable::Header(4),
            "line 4",
        ),
        (
            b"HTTP/1.1 429\ncontent-encoding: gzip\n\n\x1f\x8b\x08",
            None,
            Unusable::Compressed,
            "--compressed",
        ),
        (two_rows.as_bytes(), None, Unusable::Rows, "sed -n"),
        (
            br#"{"status":"429","body":""}"#,
            None,
            Unusable::Row("a field is missing or of another type"),
            "a number",
        ),
    ] {
        let got = read(bytes, status, false).unwrap_err();
        assert_eq!(got, want);
        assert!(got.to_string().contains(says), "{got}");
    }
}

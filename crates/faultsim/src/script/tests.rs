//! Scripts as JSON: what is read, and how the rest is refused.

use std::time::Duration;

use super::*;

fn one(step: &str) -> Step {
    Script::from_json(&format!("[{step}]"))
        .unwrap()
        .steps
        .remove(0)
}

#[test]
fn a_step_takes_every_field_of_the_format() {
    let step = one(
        r#"{"key": "k1", "on": "first write on the reused connection", "repeat": 3,
            "when": {"model": "m", "attempt": 2, "key_attempt": {"from": 2}, "header": {"a": "b"}},
            "status": 503, "headers": {"b": "2", "a": "1"}, "delay_ms": 400,
            "body": {"z": 1, "a": 2}, "then": "cut", "end_after_bytes": 5,
            "trickle": {"bytes": 2, "every_ms": 10, "head": true}, "keep_alive": false}"#,
    );
    assert_eq!(step.key.as_deref(), Some("k1"));
    assert_eq!(step.on, Some(On::Reused));
    assert_eq!(step.repeat, Repeat::Times(3));
    assert_eq!(step.when.model.as_deref(), Some("m"));
    assert_eq!(
        step.when.attempt,
        Some(Count {
            from: 2,
            to: Some(2)
        })
    );
    assert_eq!(step.when.key_attempt, Some(Count { from: 2, to: None }));
    assert_eq!(step.status, Status::Code(503));
    assert_eq!(
        step.headers,
        [("b".into(), "2".into()), ("a".into(), "1".into())]
    );
    assert_eq!(step.delay, Duration::from_millis(400));
    assert!(
        matches!(&step.content, Content::Json(body) if body.to_string().eq(r#"{"z":1,"a":2}"#))
    );
    assert_eq!((step.then, step.end_after), (End::Cut, Some(5)));
    let pace = Pace {
        bytes: 2,
        every: Duration::from_millis(10),
        head: true,
    };
    assert_eq!((step.trickle, step.keep_alive), (Some(pace), Some(false)));
}

#[test]
fn defaults_are_a_whole_200_once() {
    let step = one("{}");
    assert_eq!(
        (step.status, step.repeat),
        (Status::Usual, Repeat::Times(1))
    );
    assert_eq!((step.then, step.delay), (End::Close, Duration::ZERO));
    assert_eq!((step.keep_alive, step.on), (None, None));
}

#[test]
fn no_response_is_null_and_always_is_without_limit() {
    let step = one(r#"{"status": null, "then": "hang", "repeat": "always"}"#);
    assert_eq!((step.status, step.then), (Status::Silent, End::Hang));
    assert_eq!(step.repeat, Repeat::Always);
    assert_eq!(one(r#"{"status": null}"#).then, End::Cut);
}

#[test]
fn closing_when_idle_means_keeping_alive_until_then() {
    let step = one(r#"{"body": {}, "close_idle_after_ms": 300}"#);
    assert_eq!(step.keep_alive, Some(true));
    assert_eq!(step.close_idle_after, Some(Duration::from_millis(300)));
}

#[test]
fn text_takes_its_shape_from_how_it_is_written() {
    let streamed = |step: &str| match one(step).content {
        Content::Reply(Reply::Text {
            pieces,
            streamed,
            fault,
            ..
        }) => (pieces.len(), streamed, fault),
        other => panic!("{other:?}"),
    };
    assert_eq!(streamed(r#"{"text": "a"}"#), (1, None, None));
    assert_eq!(
        streamed(r#"{"text": "a", "stream": true}"#),
        (1, Some(true), None)
    );
    assert_eq!(streamed(r#"{"text": ["a", "b"]}"#), (2, Some(true), None));
    assert_eq!(
        streamed(r#"{"text": [], "fault": "overloaded"}"#),
        (0, Some(true), Some(Fault::Overloaded))
    );
}

#[test]
fn keys_are_pairs_or_their_own_secrets() {
    let script = Script::from_json(r#"{"keys": {"a": "sk-a"}}"#).unwrap();
    assert_eq!(script.label_of("sk-a"), Some("a"));
    let script = Script::from_json(r#"{"keys": ["a"]}"#).unwrap();
    assert_eq!(script.label_of("a"), Some("a"));
    assert_eq!(script.label_of("b"), None);
}

#[test]
fn the_rest_is_refused_with_its_place_and_what_is_accepted() {
    let rows = [
        (
            "{\n \"scrpt\": []}",
            "line 2, column 8",
            "expected one of `keys`",
        ),
        (
            "[{\"status\": 42}]",
            "line 1, column 14, at [0].status",
            "from 200 to 599, or null",
        ),
        (
            "[{\"then\": \"stop\"}]",
            "line 1, column 16, at [0].then",
            "`close`, `cut`",
        ),
        (
            "[{},\n {\"sse\": [{\"dta\": 1}]}]",
            "line 2, column 16, at [1].sse[0].dta",
            "`data`",
        ),
        (
            "[{\"sse\": [{}]}]",
            "line 1, column 13, at [0].sse[0]",
            "exactly one of `data`",
        ),
        (
            "[{\"sse\": [{\"raw_b64\": \"%\"}]}]",
            "at [0].sse[0].raw_b64",
            "base64",
        ),
        (
            "[{\"body\": {}, \"sse\": []}]",
            "line 1, column 25, at [0]",
            "`body` and `sse`",
        ),
        (
            "[{\"repeat\": 0}]",
            "at [0].repeat",
            "from 1, or \"always\"",
        ),
        (
            "[{\"on\": \"any\"}]",
            "at [0].on",
            "fresh one, or a reused one",
        ),
        (
            "[{\"when\": \"later\"}]",
            "at [0].when",
            "an object of conditions",
        ),
        (
            "[{\"when\": {\"modle\": \"m\"}}]",
            "at [0].when.modle",
            "`model`",
        ),
        ("[{\"fault\": \"boom\"}]", "at [0].fault", "`invalid_key`"),
        (
            "[{\"status\": null, \"body\": {}}]",
            "at [0]",
            "neither a body nor headers",
        ),
        (
            "[{\"headers\": [1]}]",
            "at [0].headers",
            "from name to text",
        ),
        (
            "[{\"trickle\": {\"bytes\": 0}}]",
            "at [0].trickle.bytes",
            "nonzero",
        ),
        (
            "[{\"text\": \"a\", \"stream\": false, \"fault\": \"overloaded\"}]",
            "at [0]",
            "always a stream",
        ),
        ("[{\"gap_ms\": 5}]", "at [0]", "belong to `text`"),
        ("[] []", "line 1, column 4", "trailing"),
        ("{\"keys\": 1}", "at keys", "label to secret"),
        ("", "line 1, column 0", "EOF"),
    ];
    for (text, place, accepted) in rows {
        let error = Script::from_json(text).unwrap_err().to_string();
        assert!(
            error.contains(place) && error.contains(accepted),
            "{text}\n  {error}"
        );
    }
}

#[test]
fn secrets_stay_out_of_debug() {
    let script = Script::new().key("a", "sk-secret-1");
    assert!(!format!("{script:?}").contains("sk-secret-1"));
}

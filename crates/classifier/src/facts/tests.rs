//! Every shape of an error body, and what of it stays unread.

use super::{Facts, json_in};
use crate::hints::protobuf_duration;
use crate::verdict::Field;

fn codes(body: &str) -> Vec<(Field, String)> {
    Facts::read(body, false)
        .codes()
        .map(|(field, code)| (field, code.to_owned()))
        .collect()
}

fn messages(body: &str) -> Vec<String> {
    Facts::read(body, false)
        .messages()
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_shape_of_an_error_is_read() {
    for body in [
        r#"{"error":{"code":"a","message":"m"}}"#,
        r#"[{"error":{"code":"a","message":"m"}}]"#,
        r#"[{"candidates":[]},{"error":{"code":"a","message":"m"}}]"#,
        "{\"done\":false}\n{\"error\":{\"code\":\"a\",\"message\":\"m\"}}\n",
        "\u{FEFF}  \n\n {\"error\":{\"code\":\"a\",\"message\":\"m\"}}",
        "event: error\ndata: {\"error\":{\"code\":\"a\",\"message\":\"m\"}}\n\ndata: [DONE]\n\n",
        r#"{"code":"a","message":"m"}"#,
        r#"{"code":"a","error":"m m"}"#,
        r#"{"detail":{"code":"a","message":"m"}}"#,
        r#"{"error":{"error":{"code":"a","message":"m"}}}"#,
        r#"{"type":"response.failed","response":{"error":{"code":"a","message":"m"}}}"#,
        r#"{"error":{"message":"{\"error\":{\"code\":\"a\",\"message\":\"m\"}}"}}"#,
        r#"{"error":{"message":"Error code: 429 - {\"error\":{\"code\":\"a\",\"message\":\"m\"}}"}}"#,
        r#"{"error":{"message":"x","metadata":{"raw":"{\"error\":{\"code\":\"a\",\"message\":\"m\"}}"}}}"#,
        r#"{"error":{"message":"x","metadata":{"raw":{"error":{"code":"a","message":"m"}}}}}"#,
        r#"{"error":{"code":"a","message":"m"#,
        r#"{"error":{"code":"a","message":"m","status":"#,
    ] {
        assert!(
            codes(body).contains(&(Field::Code, "a".to_owned())),
            "{body}"
        );
        assert!(messages(body)[0].starts_with('m'), "{body}");
    }
}

#[test]
fn what_is_not_an_error_field_stays_unread() {
    for body in [
        r#"{"error":{"failed_generation":"a"}}"#,
        r#"{"error":{"metadata":{"flagged_input":"a","reasons":["a"]}}}"#,
        r#"{"choices":[{"message":{"content":"a"}}]}"#,
        r#"{"message":{"role":"assistant","content":"a"}}"#,
        r#"{"detail":[{"loc":["a"],"input":{"message":"a"}}]}"#,
        "<html><body>a</body></html>",
        "",
    ] {
        assert!(
            codes(body).is_empty() && messages(body).is_empty(),
            "{body}"
        );
    }
}

#[test]
fn numbers_are_statuses_or_codes_of_their_own() {
    for body in [
        r#"{"error":{"code":429}}"#,
        r#"{"error":{"code":"429"}}"#,
        r#"{"status":429}"#,
    ] {
        assert_eq!(Facts::read(body, false).number(), Some(429), "{body}");
        assert!(codes(body).is_empty());
    }
    assert_eq!(
        codes(r#"{"error":{"code":"1113"}}"#),
        [(Field::Code, "1113".to_owned())]
    );
    assert_eq!(
        codes(r#"{"code":1113}"#),
        [(Field::Code, "1113".to_owned())]
    );
}

#[test]
fn json_in_a_message_needs_a_wrapping_that_is_no_quotation() {
    assert!(json_in(r#"{"error":1}"#).is_some());
    assert!(json_in(r#"Error code: 429 - {"error":1}"#).is_some());
    assert!(json_in(r#"litellm.BadRequestError: OpenAIException - {"error":1}"#).is_some());
    assert!(json_in(r#"Invalid schema for function: {"error":1}"#).is_none());
    assert!(json_in("Error code: 429 - {'error': 1}").is_none());
}

#[test]
fn retry_info_is_read_wherever_it_stands() {
    let info = r#"{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"39s"}"#;
    let turned = r#"{"retryDelay":"39s","@type":"type.googleapis.com/google.rpc.RetryInfo"}"#;
    for body in [
        format!(r#"{{"error":{{"details":[{info}]}}}}"#),
        format!(r#"{{"error":{{"details":[{{}},{turned},{{}}]}}}}"#),
        format!(r#"[{{"error":{{"code":429,"details":[{info}]}}}}]"#),
        format!("data: {{\"error\":{{\"code\":429,\"details\":[{info}]}}}}\n\n"),
        format!("data: [{{\"error\":{{\"code\":429,\"details\":[{info}]}}}}]\n\n"),
        format!(
            r#"{{"error":{{"message":"x","metadata":{{"raw":{{"error":{{"details":[{info}]}}}}}}}}}}"#
        ),
    ] {
        let want = Some(protobuf_duration("39s"));
        assert_eq!(Facts::read(&body, false).hint(), want, "{body}");
    }
    let garbled = r#"{"error":{"details":[{"retryDelay":39}]}}"#;
    assert_eq!(
        Facts::read(garbled, false).hint(),
        Some(protobuf_duration(""))
    );
}

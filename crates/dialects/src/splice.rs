//! Changes to a body that leave every other byte as it was.
//!
//! Same-dialect traffic is passed through, not rebuilt: unknown fields, number formatting, member
//! order and white space survive because nothing but the named spans is touched.

use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;

use crate::dialect::Dialect;
use crate::envelope::{Envelope, StreamOptions};
use crate::scan::{Fault, Kind, Scanner};

/// What must change in a request before it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Edits<'a> {
    /// The upstream's name for the model; `None` leaves the caller's.
    pub model: Option<&'a str>,
    /// Ask for usage at the end of a stream, where the dialect has to be asked and the caller has
    /// not.
    pub ask_usage: bool,
}

/// The request to send: the caller's bytes with `model` replaced, `fallbacks` taken out, and
/// usage asked for. `envelope` must have been read from this very body. A body that needs no
/// change is shared, not copied.
///
/// ```
/// use backstop_dialects::{Dialect, Edits, read_envelope, splice_request};
///
/// let body = br#"{"model":"fast","fallbacks":["groq/llama"],"temperature":0.70}"#;
/// let body = bytes::Bytes::from_static(body);
/// let envelope = read_envelope(Dialect::OpenAiChat, &body)?;
/// let edits = Edits { model: Some("gpt-4o"), ask_usage: true };
/// let sent = splice_request(Dialect::OpenAiChat, &body, &envelope, &edits);
/// assert_eq!(sent, br#"{"model":"gpt-4o","temperature":0.70}"#.as_slice());
/// # Ok::<(), backstop_dialects::BadRequest>(())
/// ```
#[must_use]
pub fn splice_request(
    dialect: Dialect,
    body: &Bytes,
    envelope: &Envelope,
    edits: &Edits<'_>,
) -> Bytes {
    let spans = &envelope.spans;
    let mut changes: Vec<(Range<usize>, String)> = Vec::with_capacity(3);
    if let Some(model) = edits.model
        && model != envelope.model
        && !dialect.model_in_path()
    {
        changes.push((spans.model.clone(), quoted(model)));
    }
    if let Some(model) = edits.model {
        let name = quoted(&resource(model));
        let others = spans.repeated_models.iter();
        let others = others.filter(|span| body[(*span).clone()] != *name.as_bytes());
        changes.extend(others.map(|span| (span.clone(), name.clone())));
    }
    if let Some(span) = &spans.fallbacks {
        changes.push((span.clone(), String::new()));
    }
    if edits.ask_usage && envelope.stream && dialect.usage_is_asked_for() && !envelope.usage_asked {
        changes.push(ask_usage(spans.end, &spans.stream_options));
    }
    if changes.is_empty() {
        return body.clone();
    }
    // A removal that ends where an insertion begins comes first: it begins earlier.
    changes.sort_by_key(|(span, _)| (span.start, span.end));
    let growth: usize = changes.iter().map(|(_, text)| text.len()).sum();
    let mut sent = Vec::with_capacity(body.len() + growth);
    let mut done = 0;
    for (span, text) in &changes {
        sent.extend_from_slice(&body[done..span.start]);
        sent.extend_from_slice(text.as_bytes());
        done = span.end;
    }
    sent.extend_from_slice(&body[done..]);
    sent.into()
}

fn ask_usage(end: usize, options: &StreamOptions) -> (Range<usize>, String) {
    match options {
        StreamOptions::Absent => (
            end..end,
            r#","stream_options":{"include_usage":true}"#.to_owned(),
        ),
        StreamOptions::Null(span) => (span.clone(), r#"{"include_usage":true}"#.to_owned()),
        StreamOptions::Silent { inside, empty } => {
            let comma = if *empty { "" } else { "," };
            (*inside..*inside, format!(r#""include_usage":true{comma}"#))
        }
        StreamOptions::Said(span) => (span.clone(), "true".to_owned()),
    }
}

/// `body` with the member `name` set to `value`, which must be JSON: appended at the end of the
/// top-level object, or put in place of the value it has. Every other byte stays, leading and
/// trailing white space too. `None` when the body is not a JSON object.
///
/// ```
/// use backstop_dialects::add_member;
///
/// let body = add_member(b"{\"id\":\"x\"} \n", "extra_fields", b"{}");
/// assert_eq!(body.as_deref(), Some(b"{\"id\":\"x\",\"extra_fields\":{}} \n".as_slice()));
/// assert_eq!(add_member(b"[]", "extra_fields", b"{}"), None);
/// ```
#[must_use]
pub fn add_member(body: &[u8], name: &str, value: &[u8]) -> Option<Vec<u8>> {
    let mut scanner = Scanner::over(body).ok()?;
    if scanner.peek().ok()? != Kind::Object {
        return None;
    }
    let mut present = None;
    let mut end = scanner.at() + 1;
    let mut empty = true;
    scanner
        .object(|inside, member| {
            inside.peek()?;
            let start = inside.at();
            inside.skip()?;
            end = inside.at();
            empty = false;
            if member.is(name) {
                // Of duplicates the last is the one parsers keep.
                present = Some(start..end);
            }
            Ok::<(), Fault>(())
        })
        .ok()?;
    scanner.finish().ok()?;

    let mut grown = Vec::with_capacity(body.len() + name.len() + value.len() + 4);
    if let Some(span) = present {
        grown.extend_from_slice(&body[..span.start]);
        grown.extend_from_slice(value);
        grown.extend_from_slice(&body[span.end..]);
        return Some(grown);
    }
    grown.extend_from_slice(&body[..end]);
    if !empty {
        grown.push(b',');
    }
    grown.extend_from_slice(quoted(name).as_bytes());
    grown.push(b':');
    grown.extend_from_slice(value);
    grown.extend_from_slice(&body[end..]);
    Some(grown)
}

/// `body` without the members of that name in its top-level object; every other byte stays, but for
/// the commas that set them off. `None` when the body is not a JSON object.
///
/// ```
/// use backstop_dialects::remove_member;
///
/// let body = remove_member(br#"{"model":"m", "n": 1.0}"#, "model");
/// assert_eq!(body.as_deref(), Some(br#"{"n": 1.0}"#.as_slice()));
/// ```
#[must_use]
pub fn remove_member(body: &[u8], name: &str) -> Option<Vec<u8>> {
    let mut scanner = Scanner::over(body).ok()?;
    if scanner.peek().ok()? != Kind::Object {
        return None;
    }
    // Until a member stays, those that go take the comma behind them along; later the one before.
    let mut opening: Option<Range<usize>> = None;
    let mut later: Vec<Range<usize>> = Vec::new();
    let mut kept = false;
    scanner
        .object(|inside, member| {
            inside.skip()?;
            match (member.is(name), &mut opening) {
                (false, Some(first)) if !kept => first.end = member.at,
                (true, Some(first)) if !kept => first.end = inside.at(),
                (true, _) if !kept => opening = Some(member.at..inside.at()),
                (true, _) => later.push(member.comma.unwrap_or(member.at)..inside.at()),
                (false, _) => {}
            }
            kept |= !member.is(name);
            Ok::<(), Fault>(())
        })
        .ok()?;
    scanner.finish().ok()?;

    let mut left = Vec::with_capacity(body.len());
    let mut done = 0;
    for span in opening.into_iter().chain(later) {
        left.extend_from_slice(&body[done..span.start]);
        done = span.end;
    }
    left.extend_from_slice(&body[done..]);
    Some(left)
}

/// The name of a model as Google's resources have it (`models/x`, `tunedModels/y`).
pub(crate) fn resource(model: &str) -> Cow<'_, str> {
    let whole = ["models/", "tunedModels/"];
    if whole.iter().any(|beginning| model.starts_with(beginning)) {
        Cow::Borrowed(model)
    } else {
        Cow::Owned(format!("models/{model}"))
    }
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("a string always has a JSON spelling")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envelope::read_envelope;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    #[test]
    fn exactly_what_must_change_changes() {
        let usage = r#""stream_options":{"include_usage":true}"#;
        for (body, expected) in [
            (r#"{"model":"a"}"#, r#"{"model":"m"}"#.to_owned()),
            (
                "{ \"x\" : 1.50 , \"model\"\t: \"a\" }\n",
                "{ \"x\" : 1.50 , \"model\"\t: \"m\" }\n".to_owned(),
            ),
            (
                r#"{"fallbacks":["p/q"], "model":"a"}"#,
                r#"{"model":"m"}"#.to_owned(),
            ),
            (
                r#"{"model":"a" , "fallbacks":["p/q"] }"#,
                r#"{"model":"m"  }"#.to_owned(),
            ),
            (
                r#"{"model":"a","fallbacks":null,"x":1}"#,
                r#"{"model":"m","x":1}"#.to_owned(),
            ),
            (
                r#"{"model":"a","stream":true }"#,
                format!(r#"{{"model":"m","stream":true,{usage} }}"#),
            ),
            (
                r#"{"stream":true,"model":"a","fallbacks":[]}"#,
                format!(r#"{{"stream":true,"model":"m",{usage}}}"#),
            ),
            (
                r#"{"fallbacks":[],"stream_options":null,"stream":true,"model":"a"}"#,
                format!(r#"{{{usage},"stream":true,"model":"m"}}"#),
            ),
            (
                r#"{"model":"a","stream":true,"stream_options":{ }}"#,
                r#"{"model":"m","stream":true,"stream_options":{"include_usage":true }}"#
                    .to_owned(),
            ),
            (
                r#"{"model":"a","stream":true,"stream_options":{"x":1}}"#,
                r#"{"model":"m","stream":true,"stream_options":{"include_usage":true,"x":1}}"#
                    .to_owned(),
            ),
            (
                r#"{"model":"a","stream":true,"stream_options":{"include_usage": false}}"#,
                r#"{"model":"m","stream":true,"stream_options":{"include_usage": true}}"#
                    .to_owned(),
            ),
        ] {
            let bytes = Bytes::copy_from_slice(body.as_bytes());
            let envelope = read_envelope(Dialect::OpenAiChat, &bytes).expect("a good request");
            let edits = Edits {
                model: Some("m"),
                ask_usage: true,
            };
            let sent = splice_request(Dialect::OpenAiChat, &bytes, &envelope, &edits);
            assert_eq!(sent, expected.as_bytes(), "{body}");
        }
    }

    #[test]
    fn a_body_that_needs_no_change_is_shared() {
        let body = Bytes::from_static(br#"{"model":"a","stream":true,"messages":[]}"#);
        let envelope = read_envelope(Dialect::AnthropicMessages, &body).expect("a good request");
        let edits = Edits {
            model: Some("a"),
            ask_usage: true,
        };
        let sent = splice_request(Dialect::AnthropicMessages, &body, &envelope, &edits);
        assert_eq!(sent.as_ptr(), body.as_ptr());
    }

    #[test]
    fn a_member_is_added_or_replaced() {
        for (body, expected) in [
            ("{}", Some(r#"{"x":7}"#)),
            (" { } ", Some(r#" {"x":7 } "#)),
            (r#"{"a":1 }"#, Some(r#"{"a":1,"x":7 }"#)),
            (r#"{"x":{"y":1},"a":1}"#, Some(r#"{"x":7,"a":1}"#)),
            (r#"{"\u0078":1}"#, Some(r#"{"\u0078":7}"#)),
            ("[]", None),
            ("", None),
            ("{", None),
            ("{} x", None),
        ] {
            let grown = add_member(body.as_bytes(), "x", b"7");
            assert_eq!(grown.as_deref(), expected.map(str::as_bytes), "{body}");
        }
    }

    #[test]
    fn a_member_is_taken_out() {
        for (body, expected) in [
            ("{}", Some("{}")),
            (r#"{"x":1}"#, Some("{}")),
            (r#" {"x" : 1 , "a":2 } "#, Some(r#" {"a":2 } "#)),
            (r#"{"a":1.0,"x":{"x":1},"b":2}"#, Some(r#"{"a":1.0,"b":2}"#)),
            (r#"{"a":1 , "x":2}"#, Some(r#"{"a":1 }"#)),
            (r#"{"x":1,"x":2,"a":3,"\u0078":4}"#, Some(r#"{"a":3}"#)),
            (r#"{"a":{"x":1}}"#, Some(r#"{"a":{"x":1}}"#)),
            ("[]", None),
            ("{", None),
            ("{} x", None),
        ] {
            let left = remove_member(body.as_bytes(), "x");
            assert_eq!(left.as_deref(), expected.map(str::as_bytes), "{body}");
        }
    }

    fn json_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "\\PC{0,12}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::hash_map("\\PC{0,6}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn splicing_means_editing_the_tree_and_nothing_else(
            rest in proptest::collection::hash_map("[a-m]{1,5}", json_value(), 0..5),
            place in 0usize..6,
            fallbacks_place in proptest::option::of(0usize..6),
            stream in any::<bool>(),
            pretty in any::<bool>(),
        ) {
            let mut members: Vec<(String, Value)> = rest.into_iter().collect();
            members.insert(place.min(members.len()), ("model".into(), json!("route \"ü\"")));
            members.push(("stream".into(), json!(stream)));
            let mut expected: serde_json::Map<String, Value> = members.iter().cloned().collect();
            expected.insert("model".into(), json!("up/stream"));
            if stream {
                expected.insert("stream_options".into(), json!({"include_usage": true}));
            }
            if let Some(place) = fallbacks_place {
                members.insert(place.min(members.len()), ("fallbacks".into(), json!(["a/b", "c/d/e"])));
            }
            let tree: serde_json::Map<String, Value> = members.into_iter().collect();
            let body = if pretty { serde_json::to_vec_pretty(&tree) } else { serde_json::to_vec(&tree) };
            let body = Bytes::from(body.expect("a tree"));
            let envelope = read_envelope(Dialect::OpenAiChat, &body).expect("a good request");
            prop_assert_eq!(envelope.fallbacks.len(), fallbacks_place.map_or(0, |_| 2));
            let edits = Edits { model: Some("up/stream"), ask_usage: true };
            let sent = splice_request(Dialect::OpenAiChat, &body, &envelope, &edits);
            let seen: Value = serde_json::from_slice(&sent).expect("still JSON");
            prop_assert_eq!(&seen, &Value::Object(expected));

            let grown = add_member(&sent, "extra_fields", b"{\"a\":1.0}").expect("an object");
            let tail = grown.len() - sent.len();
            prop_assert_eq!(tail, ",\"extra_fields\":{\"a\":1.0}".len());
            let split = grown.windows(16).rposition(|w| w == b",\"extra_fields\":").expect("added");
            prop_assert_eq!(&grown[..split], &sent[..split]);
            prop_assert_eq!(&grown[split + tail..], &sent[split..]);
        }
    }
}

//! Every recorded failure under `corpus/` gets the class in its file's name, and keeps it however
//! its body is rewritten without changing what it says.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot read its rows has failed"
)]

use std::fs;
use std::path::Path;

use backstop_classifier::Class;
use backstop_classifier::corpus::Row;
use serde_json::{Map, Value, json};

/// The rows with the names of their files.
fn rows() -> Vec<(String, Row)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let folders = fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let files = folders
        .filter(|path| path.is_dir())
        .flat_map(|dir| fs::read_dir(dir).unwrap());
    files
        .map(|entry| {
            let path = entry.unwrap().path();
            let row = Row::parse(&fs::read_to_string(&path).unwrap()).unwrap();
            (
                path.file_name().unwrap().to_string_lossy().into_owned(),
                row,
            )
        })
        .collect()
}

#[test]
fn every_row_gets_its_class() {
    let mut differing = Vec::new();
    for (name, row) in rows() {
        assert!(
            name.starts_with(&row.want.class) && !row.source.is_empty(),
            "{name}"
        );
        differing.extend(
            row.check()
                .err()
                .map(|difference| format!("{}: {difference}", row.id)),
        );
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

/// The row with its JSON body rewritten; `None` when the body is no JSON object or array.
fn rewritten(row: &Row, rewrite: impl Fn(&mut Map<String, Value>)) -> Option<Row> {
    fn walk(value: &mut Value, rewrite: &impl Fn(&mut Map<String, Value>)) {
        match value {
            Value::Object(map) => {
                map.values_mut().for_each(|value| walk(value, rewrite));
                rewrite(map);
            }
            Value::Array(items) => items.iter_mut().for_each(|value| walk(value, rewrite)),
            _ => {}
        }
    }
    let mut body: Value = serde_json::from_str(&row.body).ok()?;
    if !body.is_object() && !body.is_array() {
        return None;
    }
    walk(&mut body, &rewrite);
    let mut row = row.clone();
    row.body = body.to_string();
    row.body_base64 = None;
    Some(row)
}

/// Every row's class must survive the rewriting; some hundred rows have a body that can be.
fn survives(what: &str, rewrite: impl Fn(&mut Map<String, Value>)) {
    let mut seen = 0;
    for (_, row) in rows() {
        let Some(changed) = rewritten(&row, &rewrite) else {
            continue;
        };
        seen += 1;
        let (want, got) = (row.verdict(), changed.verdict());
        assert_eq!(
            (got.class, got.kind, got.retry_after),
            (want.class, want.kind, want.retry_after),
            "{}: {what}: {want} became {got}: {}",
            row.id,
            changed.body
        );
    }
    assert!(seen > 500, "{seen}");
}

#[test]
fn unknown_fields_change_no_class() {
    survives("unknown fields", |map| {
        let noise = json!({"error": {"code": "rate_limit_exceeded", "message": "invalid api key"}});
        map.insert("x_trace".into(), noise.clone());
        map.shift_insert(0, "x_first".into(), json!([noise, "quota exceeded"]));
    });
}

#[test]
fn the_order_of_keys_changes_no_class() {
    survives("reversed keys", |map| {
        *map = std::mem::take(map).into_iter().rev().collect();
    });
}

#[test]
fn ids_change_no_class() {
    survives("other ids", |map| {
        for name in ["id", "request_id", "user_id", "trace_id"] {
            if map.get(name).is_some_and(Value::is_string) {
                map.insert(name.into(), json!("rate_limit_exceeded"));
            }
        }
    });
}

/// A caller fault that quotes the words of another failure stays one.
#[test]
fn quotations_change_no_caller_fault() {
    let quotations = [
        " \"rate limit exceeded\"",
        " 'invalid api key'",
        " `credit balance is too low`",
        " [model not found]",
        " {\"code\": \"insufficient_quota\"}",
        " \u{201C}overloaded\u{201D}",
        ". Got: too many requests",
    ];
    let mut seen = 0;
    for (_, row) in rows() {
        if row.verdict().class != Class::CallerFault {
            continue;
        }
        for quotation in quotations {
            let changed = rewritten(&row, |map| {
                if let Some(Value::String(message)) = map.get_mut("message") {
                    message.push_str(quotation);
                }
            });
            let Some(changed) = changed else { continue };
            let got = changed.verdict();
            seen += 1;
            assert_eq!(got.class, Class::CallerFault, "{}: {got}", changed.body);
        }
    }
    assert!(seen > 500, "{seen}");
}

//! `/v1/models`: the names a caller may put in `model`, in the shape its SDK reads.

use backstop_admission::Caller;
use backstop_config::Snapshot;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, header};
use serde_json::{Value, json};

/// Configured routes first, then the channels behind them as `provider/model`. Callers that say
/// `anthropic-version` get Anthropic's shape. A caller sees what it may name, no more.
pub(crate) fn list(
    snapshot: &Snapshot,
    caller: Option<&Caller>,
    headers: &HeaderMap,
) -> Response<Bytes> {
    let mut names: Vec<(String, String)> = snapshot
        .routes
        .keys()
        .filter(|name| caller.is_none_or(|caller| caller.border.route(name).is_ok()))
        .map(|name| (name.to_string(), "backstop".to_owned()))
        .collect();
    names.sort();
    let mut channels: Vec<(String, String)> = snapshot
        .channels()
        .filter(|channel| {
            caller.is_none_or(|caller| caller.border.direct(&channel.provider).is_ok())
        })
        .map(|channel| (channel.label(), channel.provider.to_string()))
        .collect();
    channels.sort();
    channels.dedup();
    names.append(&mut channels);
    let body = if headers.contains_key("anthropic-version") {
        anthropic(&names)
    } else {
        openai(&names)
    };
    let mut response = Response::new(Bytes::from(body.to_string()));
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    response
}

fn openai(names: &[(String, String)]) -> Value {
    let data: Vec<Value> = names
        .iter()
        .map(|(id, owner)| json!({"id": id, "object": "model", "created": 0, "owned_by": owner}))
        .collect();
    json!({"object": "list", "data": data})
}

fn anthropic(names: &[(String, String)]) -> Value {
    let data: Vec<Value> = names
        .iter()
        .map(|(id, _)| {
            json!({
                "type": "model",
                "id": id,
                "display_name": id,
                "created_at": "1970-01-01T00:00:00Z",
            })
        })
        .collect();
    let end = |at: Option<&(String, String)>| at.map(|(id, _)| id.clone());
    json!({
        "data": data,
        "has_more": false,
        "first_id": end(names.first()),
        "last_id": end(names.last()),
    })
}

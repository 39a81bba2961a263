//! `/v1/models`: the names a caller may put in `model`, in the shape its SDK reads.

use backstop_admission::Caller;
use backstop_config::Snapshot;
use backstop_dialects::Dialect;
use bytes::Bytes;
use http::{HeaderValue, Response, header};
use serde_json::{Value, json};

use crate::caller;
use crate::error::Refused;

/// A name and whose it is.
type Named = (String, String);

/// Whose a route is.
const OURS: &str = "backstop";

/// Configured routes first, then the channels behind them as `provider/model`. A caller sees what it
/// may name, no more.
pub(crate) fn list(
    snapshot: &Snapshot,
    caller: Option<&Caller>,
    dialect: Dialect,
) -> Response<Bytes> {
    let mut names: Vec<Named> = snapshot
        .routes
        .keys()
        .filter(|name| caller.is_none_or(|caller| caller.border.route(name).is_ok()))
        .map(|name| (name.to_string(), OURS.to_owned()))
        .collect();
    names.sort();
    let mut channels: Vec<Named> = snapshot
        .channels()
        .filter(|channel| {
            caller.is_none_or(|caller| caller.border.direct(&channel.provider).is_ok())
        })
        .map(|channel| (channel.label(), channel.provider.to_string()))
        .collect();
    channels.sort();
    channels.dedup();
    names.append(&mut channels);
    answer(&match dialect {
        Dialect::AnthropicMessages => anthropic(&names),
        Dialect::Gemini => {
            let models: Vec<Value> = names.iter().map(gemini).collect();
            json!({"models": models})
        }
        _ => {
            let data: Vec<Value> = names.iter().map(openai).collect();
            json!({"object": "list", "data": data})
        }
    })
}

/// One name that can be put in `model`, listed or not.
///
/// # Errors
/// It cannot, or not by this caller.
pub(crate) fn one(
    snapshot: &Snapshot,
    caller: Option<&Caller>,
    dialect: Dialect,
    model: &str,
) -> Result<Response<Bytes>, Refused> {
    let resolved = snapshot
        .resolve(model)
        .ok_or_else(|| Refused::UnknownModel {
            model: model.chars().take(80).collect(),
        })?;
    if let Some(caller) = caller {
        caller::may_name(caller, &resolved)?;
    }
    let owner = if snapshot.routes.keys().any(|name| name.as_str() == model) {
        OURS
    } else {
        model.split('/').next().unwrap_or(OURS)
    };
    let named = (model.to_owned(), owner.to_owned());
    Ok(answer(&match dialect {
        Dialect::AnthropicMessages => one_of_anthropic(&named),
        Dialect::Gemini => gemini(&named),
        _ => openai(&named),
    }))
}

fn answer(body: &Value) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(body.to_string()));
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

fn openai((id, owner): &Named) -> Value {
    json!({"id": id, "object": "model", "created": 0, "owned_by": owner})
}

/// What a model can be asked for is between its provider and the caller: not told.
fn gemini((id, _): &Named) -> Value {
    json!({"name": format!("models/{id}"), "displayName": id})
}

fn one_of_anthropic((id, _): &Named) -> Value {
    json!({
        "type": "model",
        "id": id,
        "display_name": id,
        "created_at": "1970-01-01T00:00:00Z",
    })
}

fn anthropic(names: &[Named]) -> Value {
    let data: Vec<Value> = names.iter().map(one_of_anthropic).collect();
    let end = |at: Option<&Named>| at.map(|(id, _)| id.clone());
    json!({
        "data": data,
        "has_more": false,
        "first_id": end(names.first()),
        "last_id": end(names.last()),
    })
}

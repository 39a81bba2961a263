//! Parts of a turn, as requests and answers share them.

use backstop_chat::{Image, Part, Text};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::OWN;
use super::signature::{is_made_up, pack, unpack};
use crate::json::{Array, Object};
use crate::members::as_string;

/// A part of a model's turn.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Piece<'a> {
    pub(super) text: Option<Text>,
    #[serde(default)]
    pub(super) thought: Option<bool>,
    pub(super) thought_signature: Option<String>,
    #[serde(borrow)]
    pub(super) function_call: Option<Call<'a>>,
    pub(super) inline_data: Option<Blob>,
}

/// A call: whole, or one step of one whose arguments are streamed.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Call<'a> {
    pub(super) id: Option<String>,
    pub(super) name: Option<String>,
    #[serde(borrow)]
    pub(super) args: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) partial_args: Option<Vec<&'a RawValue>>,
    pub(super) will_continue: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Blob {
    pub(super) mime_type: Option<String>,
    pub(super) data: Option<Text>,
}

impl Call<'_> {
    /// Its id with its signature, made up where it has none.
    pub(super) fn packed_id(&mut self, signature: Option<&str>, made_up: String) -> String {
        let id = self.id.take().filter(|id| !id.is_empty());
        pack(id.unwrap_or(made_up), signature)
    }

    /// Its arguments as JSON text.
    pub(super) fn arguments(&self) -> &str {
        match self.args.map(RawValue::get) {
            None | Some("null") => "{}",
            Some(written) => written,
        }
    }
}

impl Blob {
    /// The picture, if it is one.
    pub(super) fn into_image(self) -> Option<Image> {
        let media_type = self.mime_type.filter(|kind| kind.starts_with("image/"))?;
        Some(Image::Base64 {
            media_type,
            data: self.data?,
            detail: None,
        })
    }
}

/// A part that has no neutral shape.
pub(super) fn other(value: &RawValue) -> Part {
    /// The names of an object's members.
    #[derive(Deserialize)]
    struct Names<'a>(#[serde(borrow)] std::collections::BTreeMap<String, &'a RawValue>);
    let names = serde_json::from_str::<Names<'_>>(value.get());
    let kind = names.ok().and_then(|Names(members)| {
        members
            .into_keys()
            .find(|name| !name.starts_with("thought"))
    });
    Part::Other {
        dialect: OWN,
        kind: kind.unwrap_or_else(|| "part".to_owned()),
        value: value.into(),
    }
}

/// Arguments as the object this dialect wants; no arguments at all are an empty one.
pub(super) fn object(arguments: &str) -> Option<&RawValue> {
    let arguments = match arguments.trim_ascii() {
        "" => "{}",
        text => text,
    };
    let value: &RawValue = serde_json::from_str(arguments).ok()?;
    value.get().starts_with('{').then_some(value)
}

pub(super) fn write_text(text: &str, out: &mut Array<'_>) {
    out.object(|out| out.put("text", text));
}

pub(super) fn write_thought(text: &str, signature: Option<&str>, out: &mut Array<'_>) {
    out.object(|out| {
        out.put("text", text);
        out.put("thought", &true);
        out.put_some("thoughtSignature", signature);
    });
}

/// A call; arguments that are no object become an empty one. `unsigned` is the signature for a call
/// that has none.
pub(super) fn write_call(
    id: &str,
    name: &str,
    arguments: &str,
    unsigned: Option<&str>,
    out: &mut Array<'_>,
) {
    let (id, signature) = unpack(id);
    out.object(|out| {
        out.object("functionCall", |out| {
            write_id(id, out);
            out.put("name", name);
            match object(arguments) {
                Some(args) => out.put("args", args),
                None => out.object("args", |_| {}),
            }
        });
        out.put_some("thoughtSignature", signature.as_deref().or(unsigned));
    });
}

/// The id of a call or of what answers it, where it was not made up by us.
pub(super) fn write_id(id: &str, out: &mut Object<'_>) {
    let (id, _) = unpack(id);
    if !is_made_up(id) && !id.is_empty() {
        out.put("id", id);
    }
}

/// A picture. One behind an address is named as a file, which only some hosts may serve.
pub(super) fn write_image(image: &Image, out: &mut Array<'_>) {
    out.object(|out| match image {
        Image::Base64 {
            media_type, data, ..
        } => out.object("inlineData", |out| {
            out.put("mimeType", media_type);
            out.put("data", data);
        }),
        Image::Url { url, .. } => out.object("fileData", |out| {
            out.put("mimeType", "image/*");
            out.put("fileUri", url);
        }),
    });
}

/// What a tool answered, as the object this dialect wants
/// (ai.google.dev/api/caching#FunctionResponse: `output` and `error` are its own names).
pub(super) fn write_response(text: &str, is_error: bool, out: &mut Object<'_>) {
    let whole = serde_json::from_str::<&RawValue>(text)
        .ok()
        .filter(|value| value.get().starts_with('{'));
    match whole {
        Some(value) if !is_error => out.put("response", value),
        _ => out.object("response", |out| {
            out.put(if is_error { "error" } else { "output" }, text);
        }),
    }
}

/// The other way round: the words, and whether they tell of a failure.
pub(super) fn read_response(value: &RawValue) -> (String, bool) {
    let only = serde_json::from_str::<std::collections::BTreeMap<String, &RawValue>>(value.get())
        .ok()
        .filter(|members| members.len() == 1)
        .and_then(|members| members.into_iter().next());
    match only {
        Some((name, words)) if matches!(name.as_str(), "output" | "error") => {
            match as_string(words) {
                Some(words) => (words, name == "error"),
                None => (value.get().to_owned(), false),
            }
        }
        _ => (value.get().to_owned(), false),
    }
}

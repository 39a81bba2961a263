//! Scripts as JSON: the typed file becomes a [`Script`], or an error that says where and what.

use std::fmt;
use std::time::Duration;

use base64::Engine as _;
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::item::Payload;
use super::{
    Coding, Content, Count, Damage, End, Frame, Item, Media, On, Otherwise, Pace, Repeat, Reply,
    Script, Status, Step, When,
};
use crate::Error;
use crate::door::Door;
use crate::fault::Fault;

/// Reads a whole script.
pub(super) fn script(text: &str) -> Result<Script, Error> {
    if text.trim_start().starts_with('[') {
        let steps: Vec<Step> = document(text)?;
        return Ok(Script::new().with_steps(steps));
    }
    let typed: TypedScript = document(text)?;
    let mut script = Script::new()
        .with_steps(typed.script)
        .otherwise(match typed.otherwise {
            TypedOtherwise::Unexpected => Otherwise::Unexpected,
            TypedOtherwise::Healthy => Otherwise::Healthy,
        })
        .keep_alive(typed.keep_alive)
        .door(typed.door);
    for (label, secret) in typed.keys.0 {
        script = script.key(label, secret);
    }
    Ok(script)
}

fn document<'de, T: Deserialize<'de>>(text: &'de str) -> Result<T, Error> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let path = error.path().to_string();
        place(path, &error.into_inner())
    })?;
    reader.end().map_err(|error| place(String::new(), &error))?;
    Ok(value)
}

fn place(path: String, error: &serde_json::Error) -> Error {
    let full = error.to_string();
    let tail = format!(" at line {} column {}", error.line(), error.column());
    let problem = full.strip_suffix(&tail).unwrap_or(&full).to_owned();
    Error::Script {
        path,
        line: error.line(),
        column: error.column(),
        problem,
    }
}

#[derive(serde::Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "an object with `keys`, `script`, `otherwise`, `keep_alive`, `door`, or a list of steps"
)]
struct TypedScript {
    #[serde(default)]
    keys: Keys,
    #[serde(default)]
    script: Vec<Step>,
    #[serde(default)]
    otherwise: TypedOtherwise,
    #[serde(default = "yes")]
    keep_alive: bool,
    #[serde(default)]
    door: Door,
}

#[derive(serde::Deserialize, Default)]
#[serde(rename_all = "snake_case")]
enum TypedOtherwise {
    #[default]
    Unexpected,
    Healthy,
}

const fn yes() -> bool {
    true
}

#[derive(serde::Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "a step: an object with a body and an ending"
)]
struct TypedStep {
    key: Option<String>,
    #[serde(default)]
    when: When,
    on: Option<On>,
    #[serde(default = "once")]
    repeat: Repeat,
    #[serde(default)]
    status: TypedStatus,
    #[serde(default, deserialize_with = "pairs")]
    headers: Vec<(String, String)>,
    body: Option<Value>,
    body_text: Option<String>,
    body_gzip: Option<Value>,
    body_br: Option<Value>,
    coding: Option<Coding>,
    sse: Option<Vec<Item>>,
    frames: Option<Vec<TypedFrame>>,
    text: Option<Pieces>,
    tool_call: Option<TypedToolCall>,
    fault: Option<Fault>,
    stream: Option<bool>,
    #[serde(default)]
    gap_ms: u64,
    #[serde(default)]
    delay_ms: u64,
    #[serde(default)]
    then: End,
    end_after_bytes: Option<usize>,
    trickle: Option<Pace>,
    keep_alive: Option<bool>,
    close_idle_after_ms: Option<u64>,
}

const fn once() -> Repeat {
    Repeat::Times(1)
}

impl<'de> Deserialize<'de> for Step {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        let mut typed = TypedStep::deserialize(reader)?;
        let coding = match (&typed.body_gzip, &typed.body_br) {
            (Some(_), _) => Some(Coding::Gzip),
            (_, Some(_)) => Some(Coding::Brotli),
            _ => typed.coding,
        };
        let mut step = Self::with(content(&mut typed)?);
        step.coding = coding;
        step.key = typed.key;
        step.when = typed.when;
        step.on = typed.on;
        step.repeat = typed.repeat;
        step.status = typed.status.0;
        step.headers = typed.headers;
        step.delay = Duration::from_millis(typed.delay_ms);
        step.then = typed.then;
        step.end_after = typed.end_after_bytes;
        step.trickle = typed.trickle;
        step.keep_alive = typed.keep_alive.or(typed.close_idle_after_ms.map(|_| true));
        step.close_idle_after = typed.close_idle_after_ms.map(Duration::from_millis);
        if step.status == Status::Silent {
            if !matches!(step.content, Content::Empty) || !step.headers.is_empty() {
                return Err(de::Error::custom(
                    "`status` null sends no response, so it takes neither a body nor headers",
                ));
            }
            if step.then == End::Close {
                step.then = End::Cut;
            }
        }
        Ok(step)
    }
}

/// The one body a step may have.
fn content<E: de::Error>(typed: &mut TypedStep) -> Result<Content, E> {
    let fault = typed.fault;
    let given = [
        ("body", typed.body.is_some()),
        ("body_text", typed.body_text.is_some()),
        ("body_gzip", typed.body_gzip.is_some()),
        ("body_br", typed.body_br.is_some()),
        ("sse", typed.sse.is_some()),
        ("frames", typed.frames.is_some()),
        ("text", typed.text.is_some()),
        ("tool_call", typed.tool_call.is_some()),
        ("fault", fault.is_some() && typed.text.is_none()),
    ];
    let names: Vec<_> = given
        .iter()
        .filter(|(_, is)| *is)
        .map(|(name, _)| *name)
        .collect();
    if names.len() > 1 {
        return Err(E::custom(format_args!(
            "a step has one body, this one has {}; only `text` and `fault` go together (a stream \
             that fails after its text)",
            names
                .iter()
                .map(|name| format!("`{name}`"))
                .collect::<Vec<_>>()
                .join(" and ")
        )));
    }
    if typed.text.is_none() && (typed.stream.is_some() || typed.gap_ms != 0) {
        return Err(E::custom("`stream` and `gap_ms` belong to `text`"));
    }
    if let Some(Pieces(pieces, several)) = typed.text.take() {
        let streamed = typed
            .stream
            .or((several || fault.is_some()).then_some(true));
        if fault.is_some() && streamed != Some(true) {
            return Err(E::custom("`text` with `fault` is always a stream"));
        }
        let gap = Duration::from_millis(typed.gap_ms);
        return Ok(Content::Reply(Reply::Text {
            pieces,
            streamed,
            gap,
            fault,
        }));
    }
    if let Some(fault) = fault {
        return Ok(Content::Reply(Reply::Fault(fault)));
    }
    if let Some(TypedToolCall { name, arguments }) = typed.tool_call.take() {
        return Ok(Content::Reply(Reply::ToolCall {
            name,
            arguments: Value::Object(arguments),
        }));
    }
    if let Some(items) = typed.sse.take() {
        return Ok(Content::Stream(Media::Events, items));
    }
    if let Some(frames) = typed.frames.take() {
        let items = frames.into_iter().map(Item::from).collect();
        return Ok(Content::Stream(Media::Frames, items));
    }
    if let Some(text) = typed.body_text.take() {
        return Ok(Content::Text(text));
    }
    let body = typed.body.take().or(typed.body_gzip.take());
    let body = body.or(typed.body_br.take());
    Ok(body.map_or(Content::Empty, Content::Json))
}

#[derive(serde::Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "an item: an object with one of `data`, `comment`, `raw`, `raw_b64`"
)]
struct TypedItem {
    #[serde(default)]
    delay_ms: u64,
    event: Option<String>,
    data: Option<Value>,
    comment: Option<String>,
    raw: Option<String>,
    raw_b64: Option<Base64>,
    #[serde(default = "one")]
    repeat: u32,
}

const fn one() -> u32 {
    1
}

impl<'de> Deserialize<'de> for Item {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        let typed = TypedItem::deserialize(reader)?;
        if typed.event.is_some() && typed.data.is_none() {
            return Err(de::Error::custom(
                "`event` names the event of `data`, which is missing",
            ));
        }
        let payload = match (typed.data, typed.comment, typed.raw, typed.raw_b64) {
            (Some(data), None, None, None) => Payload::Data(data),
            (None, Some(text), None, None) => Payload::Comment(text),
            (None, None, Some(text), None) => Payload::Text(text),
            (None, None, None, Some(Base64(bytes))) => Payload::Raw(bytes.into()),
            _ => {
                return Err(de::Error::custom(
                    "an item has exactly one of `data`, `comment`, `raw`, `raw_b64`",
                ));
            }
        };
        let delay = Duration::from_millis(typed.delay_ms);
        Ok(Self {
            delay,
            event: typed.event,
            payload,
            repeat: typed.repeat,
        })
    }
}

#[derive(serde::Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "a frame: an object with `headers` and `payload`"
)]
struct TypedFrame {
    #[serde(default)]
    delay_ms: u64,
    #[serde(default, deserialize_with = "pairs")]
    headers: Vec<(String, String)>,
    #[serde(default)]
    payload: Value,
    damage: Option<Damage>,
    #[serde(default = "one")]
    repeat: u32,
}

impl From<TypedFrame> for Item {
    fn from(typed: TypedFrame) -> Self {
        let frame = Frame {
            headers: typed.headers,
            payload: typed.payload,
            damage: typed.damage,
        };
        Self::from(frame)
            .after(Duration::from_millis(typed.delay_ms))
            .repeat(typed.repeat)
    }
}

#[derive(serde::Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "an object with `name` and `arguments`"
)]
struct TypedToolCall {
    name: String,
    #[serde(default)]
    arguments: Map<String, Value>,
}

impl<'de> Deserialize<'de> for Pace {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        #[derive(serde::Deserialize)]
        #[serde(
            deny_unknown_fields,
            expecting = "a pace: an object with `bytes`, `every_ms`, `head`"
        )]
        struct Typed {
            #[serde(default = "one_byte")]
            bytes: std::num::NonZeroUsize,
            #[serde(default = "one_second")]
            every_ms: u64,
            #[serde(default)]
            head: bool,
        }
        const fn one_byte() -> std::num::NonZeroUsize {
            std::num::NonZeroUsize::MIN
        }
        const fn one_second() -> u64 {
            1000
        }
        let typed = Typed::deserialize(reader)?;
        let every = Duration::from_millis(typed.every_ms);
        Ok(Self {
            bytes: typed.bytes.get(),
            every,
            head: typed.head,
        })
    }
}

/// A status that may be `null`.
struct TypedStatus(Status);

impl Default for TypedStatus {
    fn default() -> Self {
        Self(Status::Usual)
    }
}

/// Declares a `Deserialize` through a visitor that keeps line and column of what it refuses.
macro_rules! visited {
    ($type:ty, $expects:literal, { $($method:item)* }) => {
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
                struct Reads;
                impl<'de> Visitor<'de> for Reads {
                    type Value = $type;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($expects)
                    }
                    $($method)*
                }
                reader.deserialize_any(Reads)
            }
        }
    };
}

visited!(
    TypedStatus,
    "a final status from 200 to 599, or null for no response",
    {
        fn visit_u64<E: de::Error>(self, code: u64) -> Result<TypedStatus, E> {
            match u16::try_from(code) {
                Ok(code @ 200..=599) => Ok(TypedStatus(Status::Code(code))),
                _ => Err(E::invalid_value(de::Unexpected::Unsigned(code), &self)),
            }
        }
        fn visit_unit<E: de::Error>(self) -> Result<TypedStatus, E> {
            Ok(TypedStatus(Status::Silent))
        }
    }
);

visited!(Repeat, "a count from 1, or \"always\"", {
    fn visit_u64<E: de::Error>(self, times: u64) -> Result<Repeat, E> {
        match u32::try_from(times) {
            Ok(times @ 1..) => Ok(Repeat::Times(times)),
            _ => Err(E::invalid_value(de::Unexpected::Unsigned(times), &self)),
        }
    }
    fn visit_str<E: de::Error>(self, word: &str) -> Result<Repeat, E> {
        match word {
            "always" => Ok(Repeat::Always),
            _ => Err(E::invalid_value(de::Unexpected::Str(word), &self)),
        }
    }
});

visited!(
    On,
    "the connection it is for, in words: a fresh one, or a reused one",
    {
        fn visit_str<E: de::Error>(self, words: &str) -> Result<On, E> {
            match (words.contains("fresh"), words.contains("reused")) {
                (true, false) => Ok(On::Fresh),
                (false, true) => Ok(On::Reused),
                _ => Err(E::invalid_value(de::Unexpected::Str(words), &self)),
            }
        }
    }
);

visited!(
    Count,
    "a count from 1, or {\"from\": 2, \"to\": 4} with either end left out",
    {
        fn visit_u64<E: de::Error>(self, n: u64) -> Result<Count, E> {
            match n {
                0 => Err(E::invalid_value(de::Unexpected::Unsigned(0), &self)),
                n => Ok(Count {
                    from: n,
                    to: Some(n),
                }),
            }
        }
        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Count, A::Error> {
            #[derive(serde::Deserialize)]
            #[serde(deny_unknown_fields)]
            struct Range {
                #[serde(default)]
                from: u64,
                to: Option<u64>,
            }
            let range = Range::deserialize(de::value::MapAccessDeserializer::new(map))?;
            Ok(Count {
                from: range.from,
                to: range.to,
            })
        }
    }
);

/// The pieces of a text, and whether they came as a list.
struct Pieces(Vec<String>, bool);

visited!(Pieces, "a text, or a list of texts to stream", {
    fn visit_str<E: de::Error>(self, text: &str) -> Result<Pieces, E> {
        Ok(Pieces(vec![text.to_owned()], false))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Pieces, A::Error> {
        let mut pieces = Vec::new();
        while let Some(piece) = seq.next_element()? {
            pieces.push(piece);
        }
        Ok(Pieces(pieces, true))
    }
});

/// Labels and secrets.
#[derive(Default)]
struct Keys(Vec<(String, String)>);

visited!(
    Keys,
    "an object from label to secret, or a list of labels that are their own secrets",
    {
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Keys, A::Error> {
            let mut keys = Vec::new();
            while let Some(pair) = map.next_entry()? {
                keys.push(pair);
            }
            Ok(Keys(keys))
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Keys, A::Error> {
            let mut keys = Vec::new();
            while let Some(label) = seq.next_element::<String>()? {
                keys.push((label.clone(), label));
            }
            Ok(Keys(keys))
        }
    }
);

struct Base64(Vec<u8>);

visited!(Base64, "bytes in base64", {
    fn visit_str<E: de::Error>(self, text: &str) -> Result<Base64, E> {
        base64::engine::general_purpose::STANDARD
            .decode(text)
            .map(Base64)
            .map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))
    }
});

/// An object from name to text, in the order typed.
pub(super) fn pairs<'de, D: Deserializer<'de>>(
    reader: D,
) -> Result<Vec<(String, String)>, D::Error> {
    struct Reads;
    impl<'de> Visitor<'de> for Reads {
        type Value = Vec<(String, String)>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object from name to text")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut pairs = Vec::new();
            while let Some(pair) = map.next_entry()? {
                pairs.push(pair);
            }
            Ok(pairs)
        }
    }
    reader.deserialize_map(Reads)
}

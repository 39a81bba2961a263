//! What callers must not get.

use super::super::stream::{Kind, Piece, pieces};
use super::super::{Checked, Scene, require};
use super::Row;
use crate::scenario::caller::{End, Heard};
use crate::scenario::facts;

pub(super) const TABLE: &[Row] = &[
    (&["[DONE]"], |scene, _| {
        no_piece(scene, |piece| piece.kind == Kind::Done)
    }),
    (&["a finish_reason"], |scene, _| {
        no_piece(scene, |piece| finish(piece).is_some())
    }),
    (
        &["a made-up finish_reason <r>", "finish_reason <r>"],
        |scene, holes| no_piece(scene, |piece| finish(piece) == Some(holes.text("r"))),
    ),
    (
        &[
            "any event of answer <id>",
            "any <id> event at the client",
            "message_start <id> reaching the client",
        ],
        |scene, holes| no_piece(scene, |piece| piece.id == holes.text("id")),
    ),
    (
        &[
            "any event of <u>'s attempt reaching the client",
            "any event of <u>",
        ],
        |scene, holes| {
            let ids: Vec<&str> = facts::ids(scene.scenario, holes.text("u")).collect();
            require(!ids.is_empty(), || "its script has no ids".to_owned())?;
            no_piece(scene, |piece| ids.contains(&piece.id.as_str()))
        },
    ),
    (&["event <event>", "a <event> event"], |scene, holes| {
        let event = Kind::Other(holes.text("event").to_owned());
        no_piece(scene, |piece| piece.kind == event)
    }),
    (
        &[
            "two answers in one stream",
            "a second response id in the same stream",
        ],
        |scene, _| {
            each(scene, |heard| {
                let pieces = pieces(heard);
                let mut ids: Vec<_> = pieces.iter().map(|piece| &piece.id).collect();
                ids.retain(|id| !id.is_empty());
                ids.dedup();
                require(ids.len() <= 1, || format!("{ids:?}"))
            })
        },
    ),
    (
        &[
            "an answer without output",
            "an empty successful stream",
            "an early silent end of stream",
        ],
        |scene, _| {
            each(scene, |heard| {
                let said = pieces(heard)
                    .iter()
                    .any(|piece| matches!(piece.kind, Kind::Text(_)));
                require(said, || "there is no text".to_owned())
            })
        },
    ),
    (
        &[
            "a content coding in the answer",
            "content-encoding copied onto decoded bytes",
            "compressed bytes sent without their label",
        ],
        |scene, _| {
            each(scene, |heard| {
                none(heard.headers.contains_key("content-encoding") || heard.json().is_null())
            })
        },
    ),
    (&["two message_start events"], |scene, _| {
        at_most_one(scene, |piece| piece.kind == Kind::MessageStart)
    }),
    (
        &["two annotations", "two annotations at the client"],
        |scene, _| at_most_one(scene, |piece| piece.kind == Kind::Annotation),
    ),
    (
        &["two tool calls", "a second call id for the same intent"],
        |scene, _| at_most_one(scene, |piece| matches!(piece.kind, Kind::ToolStart { .. })),
    ),
    (
        &[
            "arguments that nobody sent",
            "arguments closed or repaired by the gateway",
            "the call replaced by {} arguments",
        ],
        |scene, _| {
            no_piece(scene, |piece| match &piece.kind {
                Kind::ToolArguments(read) => {
                    let mut sent = facts::all_sent(scene.scenario);
                    !sent.any(|data| data.to_string().contains(&escaped(read)))
                }
                _ => false,
            })
        },
    ),
    (
        &[
            "a replacement character",
            "U+FFFD anywhere",
            "the half character dropped",
        ],
        |scene, _| {
            each(scene, |heard| {
                let text = std::str::from_utf8(&heard.body).map_err(|error| error.to_string())?;
                none(text.contains('\u{fffd}'))
            })
        },
    ),
    (
        &[
            "a stream that does not end",
            "the stream aborted for invalid UTF-8",
            "request <n> cut or given an error *",
        ],
        |scene, _| {
            each(scene, |heard| {
                let whole = heard.end == End::Whole;
                let error = heard.events.iter().any(|(_, event)| event.is_error());
                require(whole && !error && heard.status == Some(200), || {
                    format!("its end is {:?}", heard.end)
                })
            })
        },
    ),
    (
        &[
            "a comment told as data",
            "a data: line whose value starts with ':'",
        ],
        |scene, _| {
            each(scene, |heard| {
                none(
                    heard
                        .events
                        .iter()
                        .any(|(_, event)| event.data.starts_with(':')),
                )
            })
        },
    ),
    (
        &[
            "an event that is no JSON",
            "a JSON parse error",
            "an index error on empty choices",
            "each fragment parsed as a whole document",
            "a parse error naming *",
        ],
        |scene, _| {
            each(scene, |heard| {
                let mut events = heard.events.iter().map(|(_, event)| event);
                none(events.any(|event| {
                    event.is_error() || (event.data != "[DONE]" && event.json().is_null())
                }))
            })
        },
    ),
    (
        &[
            "a stream",
            "text/event-stream headers",
            "HTTP 200 with message_start <id>",
        ],
        |scene, _| {
            each(scene, |heard| {
                let streamed = heard.header("content-type").contains("event-stream");
                none(streamed || heard.status == Some(200) || !heard.events.is_empty())
            })
        },
    ),
    (
        &[
            "<u>'s <word> at the client",
            "<u>'s <word> shown instead of the primary's error",
        ],
        |scene, holes| {
            each(scene, |heard| {
                none(heard.text().contains(holes.text("word")))
            })
        },
    ),
    (
        &[
            "a <n> to the caller",
            "a <n> to the caller, *",
            "<n> to the caller",
            "a <n> instead of *",
            "message rewritten to a generic <n>",
        ],
        |scene, holes| {
            let refused = holes.number("n").ok_or("it names no status")?;
            each(scene, |heard| {
                none(heard.status.map(u64::from) == Some(refused))
            })
        },
    ),
    (
        &[
            "another status than the provider's",
            "the provider's <n> shown as another status",
            "a deadline timeout hiding the <n>",
        ],
        |scene, _| {
            each(scene, |heard| {
                let calls = scene.played.calls_of(heard);
                let sent: Vec<_> = calls
                    .iter()
                    .map(|(_, call)| call.progress().status)
                    .collect();
                require(sent.contains(&heard.status), || {
                    format!("{:?} came of {sent:?}", heard.status)
                })
            })
        },
    ),
    (&["a retry-after", "a Retry-After header"], |scene, _| {
        each(scene, |heard| {
            none(heard.headers.contains_key("retry-after"))
        })
    }),
    (
        &[
            "an answer without choices",
            "200 with null choices at the client",
            "a made-up empty answer marked completed",
        ],
        |scene, _| {
            each(scene, |heard| {
                let body = heard.json();
                let hollow = body["choices"].as_array().is_none_or(Vec::is_empty);
                let said = body["choices"][0]["message"]["content"].as_str();
                none(heard.status == Some(200) && (hollow || said.is_none_or(str::is_empty)))
            })
        },
    ),
    (
        &[
            "a stop by policy taken for a failure",
            "<r> finish treated as an empty or failed answer",
        ],
        |scene, _| {
            let last = scene.played.requests.last();
            let body = last.map(|(heard, _)| heard.json()).unwrap_or_default();
            let reason = &body["choices"][0]["finish_reason"];
            require(reason == "content_filter", || format!("it is {reason}"))
        },
    ),
    (
        &[
            "a call id that changes",
            "ids rewritten between events",
            "arguments of two calls in one block",
            "two blocks open at once",
            "a delta sent for a block that was already stopped",
        ],
        |scene, _| each(scene, sound_blocks),
    ),
    (
        &[
            "the requested name as the served model",
            "the requested name echoed as the served model",
        ],
        |scene, _| {
            each(scene, |heard| {
                let model = &heard.json()["model"];
                let requested = &scene.scenario.client.0[heard.place - 1].body["model"];
                none(heard.status == Some(200) && model == requested)
            })
        },
    ),
    (
        &[
            "a word of the gateway's own making",
            "a stack trace in the answer or log",
        ],
        |scene, _| {
            const TRACES: [&str; 4] = ["panicked", "stack backtrace", "Traceback", ".rs:"];
            let log = &scene.played.log;
            let in_log = ["panicked", "stack backtrace"]
                .iter()
                .any(|word| log.contains(word));
            none(in_log)?;
            each(scene, |heard| {
                let text = heard.text();
                none(TRACES.iter().any(|word| text.contains(word)))
            })
        },
    ),
    (
        &[
            "a refused connection",
            "a connection refused during the swap",
            "request <n> refused for a concurrency slot",
        ],
        |scene, _| {
            each(scene, |heard| {
                require(heard.status == Some(200), || {
                    format!("its status is {:?}", heard.status)
                })
            })
        },
    ),
];

/// Why an answer stopped, where the piece says so.
fn finish(piece: &Piece) -> Option<&str> {
    match &piece.kind {
        Kind::Finish(reason) | Kind::MessageDelta(reason) => Some(reason),
        _ => None,
    }
}

fn escaped(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

fn none(happened: bool) -> Checked {
    require(!happened, || "it happened".to_owned())
}

fn each(scene: &Scene<'_>, check: impl Fn(&Heard) -> Checked) -> Checked {
    let mut heard = scene.played.requests.iter().map(|(heard, _)| heard);
    heard.try_for_each(|heard| check(heard).map_err(|fault| format!("{}: {fault}", heard.name())))
}

fn no_piece(scene: &Scene<'_>, which: impl Fn(&Piece) -> bool) -> Checked {
    each(scene, |heard| {
        let found = pieces(heard).into_iter().find(|piece| which(piece));
        require(found.is_none(), || format!("there is {found:?}"))
    })
}

fn at_most_one(scene: &Scene<'_>, which: impl Fn(&Piece) -> bool) -> Checked {
    each(scene, |heard| {
        let count = pieces(heard).iter().filter(|piece| which(piece)).count();
        require(count <= 1, || format!("there are {count}"))
    })
}

/// Blocks of a stream in Anthropic's dialect open and close one after the other, every delta falls
/// into the one that is open, and every start has an id of its own.
fn sound_blocks(heard: &Heard) -> Checked {
    let mut open: Option<u64> = None;
    let mut ids: Vec<String> = Vec::new();
    for event in heard.events.iter().map(|(_, event)| event.json()) {
        let index = event["index"].as_u64();
        match event["type"].as_str() {
            Some("content_block_start") => {
                require(open.is_none(), || {
                    format!("{index:?} opens beside {open:?}")
                })?;
                open = index;
                let id = event["content_block"]["id"].as_str().unwrap_or_default();
                require(!ids.iter().any(|known| known == id), || {
                    format!("{id} comes twice")
                })?;
                ids.push(id.to_owned());
            }
            Some("content_block_delta") => {
                require(open == index, || {
                    format!("a delta for {index:?} in {open:?}")
                })?;
            }
            Some("content_block_stop") => {
                require(open == index, || format!("{index:?} stops in {open:?}"))?;
                open = None;
            }
            _ => {}
        }
    }
    Ok(())
}

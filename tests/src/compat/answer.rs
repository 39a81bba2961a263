//! What a provider of each dialect answers, by hand: whole and as a stream.

use backstop_faultsim::{Frame, Item, Step};
use serde_json::{Value, json};

use crate::surface::Surface;

/// What is to be answered, apart from any dialect. Counts are always the same.
#[derive(Debug, Clone, Default)]
pub(super) struct Said {
    pub(super) text: &'static str,
    pub(super) reasoning: &'static str,
    pub(super) calls: &'static [&'static str],
    /// Whether it declines.
    pub(super) refused: bool,
}

/// Every call's arguments.
pub(super) const ARGUMENTS: &str = "{\"city\":\"Bern\"}";
/// All of the prompt, and what of it was cached.
pub(super) const INPUT: (u64, u64) = (20, 8);
/// All that was generated, and what of it was reasoning.
pub(super) const OUTPUT: (u64, u64) = (9, 3);

fn id(number: usize) -> String {
    format!("call_{number}")
}

/// The answer as the provider of `upstream` gives it.
pub(super) fn step(upstream: Surface, said: &Said, streamed: bool) -> Step {
    match (upstream, streamed) {
        (Surface::OpenAiChat, false) => Step::json(200, chat(said)),
        (Surface::OpenAiChat, true) => Step::sse(chat_stream(said)),
        (Surface::OpenAiResponses, false) => Step::json(200, response(said)),
        (Surface::OpenAiResponses, true) => Step::sse(response_stream(said)),
        (Surface::AnthropicMessages, false) => Step::json(200, message(said)),
        (Surface::AnthropicMessages, true) => Step::sse(message_stream(said)),
        (Surface::Gemini, false) => Step::json(200, generated(said)),
        // Calls and their end stand in one event there too.
        (Surface::Gemini, true) => Step::sse([Item::data(generated(said))]),
        (Surface::CohereV2, false) => Step::json(200, cohere(said)),
        (Surface::CohereV2, true) => Step::sse(cohere_stream(said)),
        (Surface::BedrockConverse, false) => Step::json(200, converse(said)),
        (Surface::BedrockConverse, true) => Step::frames(converse_stream(said)),
    }
}

/// A limit that was met, as the provider of `upstream` tells it.
pub(super) fn limit(upstream: Surface, words: &str) -> Step {
    let body = match upstream {
        Surface::OpenAiChat | Surface::OpenAiResponses => json!({"error": {
            "message": words, "type": "requests", "param": null, "code": "rate_limit_exceeded",
        }}),
        Surface::AnthropicMessages => json!({
            "type": "error", "error": {"type": "rate_limit_error", "message": words},
            "request_id": "req_1",
        }),
        Surface::Gemini => json!({"error": {
            "code": 429, "message": words, "status": "RESOURCE_EXHAUSTED",
        }}),
        Surface::CohereV2 => json!({"id": "1", "message": words}),
        Surface::BedrockConverse => json!({"message": words}),
    };
    let step = Step::error(429, body);
    match upstream {
        Surface::BedrockConverse => {
            step.header("x-amzn-errortype", "ThrottlingException:http://x/")
        }
        _ => step,
    }
}

const fn finish(said: &Said, [end, calls, refused]: [&'static str; 3]) -> &'static str {
    if said.refused {
        refused
    } else if said.calls.is_empty() {
        end
    } else {
        calls
    }
}

fn chat_usage() -> Value {
    json!({
        "prompt_tokens": INPUT.0, "completion_tokens": OUTPUT.0, "total_tokens": INPUT.0 + OUTPUT.0,
        "prompt_tokens_details": {"cached_tokens": INPUT.1},
        "completion_tokens_details": {"reasoning_tokens": OUTPUT.1},
    })
}

/// The reason is `stop` also for words that decline.
const CHAT_ENDS: [&str; 3] = ["stop", "tool_calls", "stop"];

fn chat(said: &Said) -> Value {
    let mut message = json!({"role": "assistant", "content": null, "refusal": null});
    let words = if said.refused { "refusal" } else { "content" };
    if !said.text.is_empty() {
        message[words] = said.text.into();
    }
    if !said.reasoning.is_empty() {
        message["reasoning_content"] = said.reasoning.into();
    }
    if !said.calls.is_empty() {
        let calls = said.calls.iter().enumerate().map(|(number, name)| {
            json!({
                "id": id(number), "type": "function",
                "function": {"name": name, "arguments": ARGUMENTS},
            })
        });
        message["tool_calls"] = calls.collect();
    }
    json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "some-model",
        "choices": [{
            "index": 0, "message": message, "logprobs": null,
            "finish_reason": finish(said, CHAT_ENDS),
        }],
        "usage": chat_usage(),
    })
}

fn chat_stream(said: &Said) -> Vec<Item> {
    let chunk = |choices: Value, usage: Value| {
        Item::data(json!({
            "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "some-model",
            "choices": choices, "usage": usage,
        }))
    };
    let delta = |delta: Value, finish: Value| {
        chunk(
            json!([{"index": 0, "delta": delta, "finish_reason": finish}]),
            Value::Null,
        )
    };
    let mut items = vec![delta(
        json!({"role": "assistant", "content": ""}),
        Value::Null,
    )];
    for piece in halves(said.reasoning) {
        items.push(delta(json!({"reasoning_content": piece}), Value::Null));
    }
    for piece in halves(said.text) {
        let words = if said.refused { "refusal" } else { "content" };
        items.push(delta(json!({words: piece}), Value::Null));
    }
    for (number, name) in said.calls.iter().enumerate() {
        items.push(delta(
            json!({"tool_calls": [{
                "index": number, "id": id(number), "type": "function",
                "function": {"name": name, "arguments": ""},
            }]}),
            Value::Null,
        ));
        for piece in halves(ARGUMENTS) {
            items.push(delta(
                json!({"tool_calls": [{
                    "index": number, "function": {"arguments": piece},
                }]}),
                Value::Null,
            ));
        }
    }
    items.push(delta(json!({}), finish(said, CHAT_ENDS).into()));
    items.push(chunk(json!([]), chat_usage()));
    items.push(Item::done());
    items
}

/// A text in two pieces; none of an empty one.
fn halves(text: &'static str) -> Vec<&'static str> {
    match text.char_indices().nth(text.chars().count() / 2) {
        Some((middle, _)) => vec![&text[..middle], &text[middle..]],
        None => Vec::new(),
    }
}

fn response_items(said: &Said) -> Vec<Value> {
    let mut items = Vec::new();
    if !said.reasoning.is_empty() {
        items.push(json!({
            "id": "rs_1", "type": "reasoning",
            "summary": [{"type": "summary_text", "text": said.reasoning}],
        }));
    }
    if !said.text.is_empty() {
        let part = match said.refused {
            true => json!({"type": "refusal", "refusal": said.text}),
            false => {
                json!({"type": "output_text", "text": said.text, "annotations": [], "logprobs": []})
            }
        };
        items.push(json!({
            "id": "msg_1", "type": "message", "status": "completed", "role": "assistant",
            "content": [part],
        }));
    }
    for (number, name) in said.calls.iter().enumerate() {
        items.push(json!({
            "id": format!("fc_{number}"), "type": "function_call", "status": "completed",
            "call_id": id(number), "name": name, "arguments": ARGUMENTS,
        }));
    }
    items
}

fn response_of(status: &str, items: &[Value], usage: &Value) -> Value {
    json!({
        "id": "resp_1", "object": "response", "created_at": 1, "status": status, "error": null,
        "incomplete_details": null, "instructions": null, "metadata": {}, "model": "some-model",
        "output": items, "parallel_tool_calls": true, "temperature": 1.0, "tool_choice": "auto",
        "tools": [], "top_p": 1.0, "usage": usage,
    })
}

fn response_usage() -> Value {
    json!({
        "input_tokens": INPUT.0, "input_tokens_details": {"cached_tokens": INPUT.1},
        "output_tokens": OUTPUT.0, "output_tokens_details": {"reasoning_tokens": OUTPUT.1},
        "total_tokens": INPUT.0 + OUTPUT.0,
    })
}

fn response(said: &Said) -> Value {
    response_of("completed", &response_items(said), &response_usage())
}

fn response_stream(said: &Said) -> Vec<Item> {
    let mut events = Vec::<Value>::new();
    let running = response_of("in_progress", &[], &Value::Null);
    for kind in ["response.created", "response.in_progress"] {
        events.push(json!({"type": kind, "response": running}));
    }
    let items = response_items(said);
    for (index, item) in items.iter().enumerate() {
        let mut begun = item.clone();
        let item_id = &item["id"];
        let (list, text) = match item["type"].as_str() {
            Some("function_call") => ("arguments", ARGUMENTS),
            Some("reasoning") => ("summary", said.reasoning),
            _ => ("content", said.text),
        };
        begun[list] = if list == "arguments" {
            "".into()
        } else {
            json!([])
        };
        events.push(
            json!({"type": "response.output_item.added", "output_index": index, "item": begun}),
        );
        let place = |kind: &str| match list {
            "arguments" => json!({"type": kind, "item_id": item_id, "output_index": index}),
            "summary" => {
                json!({"type": kind, "item_id": item_id, "output_index": index, "summary_index": 0})
            }
            _ => {
                json!({"type": kind, "item_id": item_id, "output_index": index, "content_index": 0})
            }
        };
        let (part, stem, member) = match (list, said.refused) {
            ("arguments", _) => ("", "response.function_call_arguments", "arguments"),
            ("summary", _) => (
                "response.reasoning_summary_part",
                "response.reasoning_summary_text",
                "text",
            ),
            (_, true) => ("response.content_part", "response.refusal", "refusal"),
            (_, false) => ("response.content_part", "response.output_text", "text"),
        };
        let tell = |kind: String, name: &str, value: Value| {
            let mut event = place(&kind);
            event[name] = value;
            event
        };
        let whole = &item[list][0];
        if !part.is_empty() {
            let mut empty = whole.clone();
            empty[member] = "".into();
            events.push(tell(format!("{part}.added"), "part", empty));
        }
        for piece in halves(text) {
            events.push(tell(format!("{stem}.delta"), "delta", piece.into()));
        }
        events.push(tell(format!("{stem}.done"), member, text.into()));
        if !part.is_empty() {
            events.push(tell(format!("{part}.done"), "part", whole.clone()));
        }
        events.push(
            json!({"type": "response.output_item.done", "output_index": index, "item": item}),
        );
    }
    events.push(json!({"type": "response.completed", "response": response(said)}));
    let numbered = events.into_iter().enumerate().map(|(number, mut event)| {
        event["sequence_number"] = number.into();
        let kind = event["type"].as_str().unwrap_or_default().to_owned();
        Item::event(kind, event)
    });
    numbered.collect()
}

fn message_usage() -> Value {
    json!({
        "input_tokens": INPUT.0 - INPUT.1, "cache_read_input_tokens": INPUT.1,
        "output_tokens": OUTPUT.0, "output_tokens_details": {"thinking_tokens": OUTPUT.1},
    })
}

fn blocks(said: &Said) -> Vec<Value> {
    let mut blocks = Vec::new();
    if !said.reasoning.is_empty() {
        blocks.push(json!({"type": "thinking", "thinking": said.reasoning, "signature": "c2ln"}));
    }
    if !said.text.is_empty() {
        blocks.push(json!({"type": "text", "text": said.text}));
    }
    for (number, name) in said.calls.iter().enumerate() {
        blocks.push(json!({
            "type": "tool_use", "id": id(number), "name": name, "input": {"city": "Bern"},
        }));
    }
    blocks
}

fn message(said: &Said) -> Value {
    json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "some-model",
        "content": blocks(said), "stop_reason": finish(said, ["end_turn", "tool_use", "refusal"]),
        "stop_sequence": null, "usage": message_usage(),
    })
}

fn message_stream(said: &Said) -> Vec<Item> {
    let mut start = message(said);
    start["content"] = json!([]);
    start["stop_reason"] = Value::Null;
    start["usage"]["output_tokens"] = 1.into();
    let mut events = vec![json!({"type": "message_start", "message": start})];
    for (index, block) in blocks(said).into_iter().enumerate() {
        let mut begun = block.clone();
        let deltas: Vec<Value> = match block["type"].as_str() {
            Some("thinking") => {
                begun["thinking"] = "".into();
                begun["signature"] = "".into();
                let told = halves(said.reasoning).into_iter();
                let told = told.map(|piece| json!({"type": "thinking_delta", "thinking": piece}));
                told.chain([json!({"type": "signature_delta", "signature": "c2ln"})])
                    .collect()
            }
            Some("text") => {
                begun["text"] = "".into();
                let told = halves(said.text).into_iter();
                told.map(|piece| json!({"type": "text_delta", "text": piece}))
                    .collect()
            }
            _ => {
                begun["input"] = json!({});
                let told = halves(ARGUMENTS).into_iter();
                told.map(|piece| json!({"type": "input_json_delta", "partial_json": piece}))
                    .collect()
            }
        };
        events.push(json!({"type": "content_block_start", "index": index, "content_block": begun}));
        let told = deltas.into_iter();
        events.extend(
            told.map(
                |delta| json!({"type": "content_block_delta", "index": index, "delta": delta}),
            ),
        );
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    events.push(json!({
        "type": "message_delta", "usage": message_usage(),
        "delta": {"stop_reason": message(said)["stop_reason"], "stop_sequence": null},
    }));
    events.push(json!({"type": "message_stop"}));
    let named = events.into_iter().map(|event| {
        let kind = event["type"].as_str().unwrap_or_default().to_owned();
        Item::event(kind, event)
    });
    named.collect()
}

fn generated(said: &Said) -> Value {
    let mut parts = Vec::new();
    if !said.reasoning.is_empty() {
        parts.push(json!({"text": said.reasoning, "thought": true}));
    }
    if !said.text.is_empty() {
        parts.push(json!({"text": said.text}));
    }
    for name in said.calls {
        parts.push(json!({"functionCall": {"name": name, "args": {"city": "Bern"}}}));
    }
    json!({
        "candidates": [{
            "content": {"parts": parts, "role": "model"}, "index": 0,
            "finishReason": finish(said, ["STOP", "STOP", "SAFETY"]),
        }],
        "usageMetadata": {
            "promptTokenCount": INPUT.0, "cachedContentTokenCount": INPUT.1,
            "candidatesTokenCount": OUTPUT.0 - OUTPUT.1, "thoughtsTokenCount": OUTPUT.1,
            "totalTokenCount": INPUT.0 + OUTPUT.0,
        },
        "modelVersion": "some-model", "responseId": "r1",
    })
}

fn cohere_usage() -> Value {
    json!({
        "billed_units": {"input_tokens": 1, "output_tokens": 1},
        "tokens": {"input_tokens": INPUT.0, "output_tokens": OUTPUT.0, "reasoning_tokens": OUTPUT.1},
        "cached_tokens": INPUT.1,
    })
}

/// There is no word for what is declined.
const COHERE_ENDS: [&str; 3] = ["COMPLETE", "TOOL_CALL", "COMPLETE"];

fn cohere_call(number: usize, name: &str, arguments: &str) -> Value {
    json!({
        "id": id(number), "type": "function",
        "function": {"name": name, "arguments": arguments},
    })
}

fn cohere(said: &Said) -> Value {
    let mut message = json!({"role": "assistant"});
    let mut content = Vec::new();
    if !said.reasoning.is_empty() {
        content.push(json!({"type": "thinking", "thinking": said.reasoning}));
    }
    if !said.text.is_empty() {
        content.push(json!({"type": "text", "text": said.text}));
    }
    if !content.is_empty() {
        message["content"] = content.into();
    }
    if !said.calls.is_empty() {
        let calls = said.calls.iter().enumerate();
        message["tool_calls"] = calls
            .map(|(number, name)| cohere_call(number, name, ARGUMENTS))
            .collect();
    }
    json!({
        "id": "1", "message": message, "finish_reason": finish(said, COHERE_ENDS),
        "usage": cohere_usage(),
    })
}

fn cohere_stream(said: &Said) -> Vec<Item> {
    let mut events = vec![
        json!({"type": "message-start", "id": "1", "delta": {"message": {
            "role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": [],
        }}}),
    ];
    let blocks = [("thinking", said.reasoning), ("text", said.text)];
    let told = blocks.iter().filter(|(_, text)| !text.is_empty());
    for (index, (kind, text)) in told.enumerate() {
        let event = |name: &str, content: Value| json!({"type": name, "index": index, "delta": {"message": {"content": content}}});
        events.push(event("content-start", json!({"type": kind, (*kind): ""})));
        for piece in halves(text) {
            events.push(event("content-delta", json!({(*kind): piece})));
        }
        events.push(json!({"type": "content-end", "index": index}));
    }
    for (number, name) in said.calls.iter().enumerate() {
        let event = |kind: &str, call: Value| json!({"type": kind, "index": number, "delta": {"message": {"tool_calls": call}}});
        events.push(event("tool-call-start", cohere_call(number, name, "")));
        for piece in halves(ARGUMENTS) {
            events.push(event(
                "tool-call-delta",
                json!({"function": {"arguments": piece}}),
            ));
        }
        events.push(json!({"type": "tool-call-end", "index": number}));
    }
    events.push(json!({"type": "message-end", "delta": {
        "finish_reason": finish(said, COHERE_ENDS), "usage": cohere_usage(),
    }}));
    let named = events.into_iter().map(|event| {
        let kind = event["type"].as_str().unwrap_or_default().to_owned();
        Item::event(kind, event)
    });
    named.chain([Item::done()]).collect()
}

const CONVERSE_ENDS: [&str; 3] = ["end_turn", "tool_use", "content_filtered"];

fn converse_usage() -> Value {
    json!({
        "inputTokens": INPUT.0 - INPUT.1, "cacheReadInputTokens": INPUT.1,
        "outputTokens": OUTPUT.0, "totalTokens": INPUT.0 + OUTPUT.0,
    })
}

fn converse(said: &Said) -> Value {
    let mut content = Vec::new();
    if !said.reasoning.is_empty() {
        content.push(json!({"reasoningContent": {"reasoningText": {
            "text": said.reasoning, "signature": "c2ln",
        }}}));
    }
    if !said.text.is_empty() {
        content.push(json!({"text": said.text}));
    }
    for (number, name) in said.calls.iter().enumerate() {
        content.push(json!({"toolUse": {
            "toolUseId": id(number), "name": name, "input": {"city": "Bern"},
        }}));
    }
    json!({
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": finish(said, CONVERSE_ENDS), "usage": converse_usage(),
        "metrics": {"latencyMs": 5},
    })
}

fn converse_stream(said: &Said) -> Vec<Frame> {
    let frame = |kind: &str, payload: Value| {
        let headers = [
            (":event-type", kind),
            (":content-type", "application/json"),
            (":message-type", "event"),
        ];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Frame::new(
            headers.to_vec(),
            payload.as_object().cloned().unwrap_or_default(),
        )
    };
    let mut frames = vec![frame("messageStart", json!({"role": "assistant"}))];
    let mut index = 0;
    let mut block = |deltas: Vec<Value>, start: Option<Value>, frames: &mut Vec<Frame>| {
        if let Some(start) = start {
            frames.push(frame(
                "contentBlockStart",
                json!({"contentBlockIndex": index, "start": start}),
            ));
        }
        for delta in deltas {
            frames.push(frame(
                "contentBlockDelta",
                json!({"contentBlockIndex": index, "delta": delta}),
            ));
        }
        frames.push(frame(
            "contentBlockStop",
            json!({"contentBlockIndex": index}),
        ));
        index += 1;
    };
    if !said.reasoning.is_empty() {
        let told = halves(said.reasoning).into_iter();
        let told = told.map(|piece| json!({"reasoningContent": {"text": piece}}));
        let sealed = [json!({"reasoningContent": {"signature": "c2ln"}})];
        block(told.chain(sealed).collect(), None, &mut frames);
    }
    if !said.text.is_empty() {
        let told = halves(said.text).into_iter();
        block(
            told.map(|piece| json!({"text": piece})).collect(),
            None,
            &mut frames,
        );
    }
    for (number, name) in said.calls.iter().enumerate() {
        let told = halves(ARGUMENTS).into_iter();
        let told = told
            .map(|piece| json!({"toolUse": {"input": piece}}))
            .collect();
        let start = json!({"toolUse": {"toolUseId": id(number), "name": name}});
        block(told, Some(start), &mut frames);
    }
    frames.push(frame(
        "messageStop",
        json!({"stopReason": finish(said, CONVERSE_ENDS)}),
    ));
    frames.push(frame(
        "metadata",
        json!({"usage": converse_usage(), "metrics": {"latencyMs": 5}}),
    ));
    frames
}

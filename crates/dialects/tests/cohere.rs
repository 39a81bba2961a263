//! What is often got wrong between Cohere's dialect and the others, a row each.

use backstop_dialects::{Dialect, Unsupported, WriteOptions, read_request, write_request};
use serde_json::{Value, json};

/// A short OpenAI request with these members, in Cohere's dialect.
fn written(members: &Value) -> Result<Value, Unsupported> {
    let mut body = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]});
    let whole = body.as_object_mut().expect("an object");
    whole.extend(members.as_object().expect("an object").clone());
    let body = body.to_string();
    let request = read_request(Dialect::OpenAiChat, body.as_bytes()).expect("a good request");
    let written = write_request(Dialect::CohereV2, &request, &WriteOptions::default())?;
    Ok(serde_json::from_slice(&written.body).expect("what we write is JSON"))
}

#[test]
fn settings_have_cohere_s_names() {
    let schema = json!({"type": "object"});
    for (members, expected) in [
        (
            json!({"max_completion_tokens": 9, "temperature": 0.5, "top_p": 0.25, "seed": 3,
                "stop": ["a"], "presence_penalty": 0.5, "frequency_penalty": 0.75}),
            json!({"max_tokens": 9, "temperature": 0.5, "p": 0.25, "seed": 3,
                "stop_sequences": ["a"], "presence_penalty": 0.5, "frequency_penalty": 0.75}),
        ),
        (
            json!({"response_format": {"type": "json_object"}}),
            json!({"response_format": {"type": "json_object"}}),
        ),
        (
            json!({"response_format": {"type": "json_schema",
                "json_schema": {"name": "x", "schema": schema}}}),
            json!({"response_format": {"type": "json_object", "schema": schema}}),
        ),
        (
            json!({"reasoning_effort": "none"}),
            json!({"thinking": {"type": "disabled"}}),
        ),
        (
            json!({"reasoning_effort": "low"}),
            json!({"thinking": {"type": "enabled", "token_budget": 1024}}),
        ),
        (
            json!({"reasoning_effort": "high", "stream": true}),
            json!({"stream": true, "thinking": {"type": "enabled"}}),
        ),
    ] {
        let mut sent = written(&members).expect("carried");
        let sent = sent.as_object_mut().expect("an object");
        sent.remove("model");
        sent.remove("messages");
        assert_eq!(Value::Object(sent.clone()), expected, "{members}");
    }
}

#[test]
fn what_has_no_word_is_named() {
    let tool = json!([{"type": "function", "function": {"name": "f"}}]);
    for (members, field) in [
        (
            json!({"tools": tool, "parallel_tool_calls": false}),
            "parallel_tool_calls",
        ),
        (json!({"n": 2}), "n"),
        (json!({"logprobs": true}), "logprobs"),
        (json!({"temperature": 1.5}), "temperature"),
        (json!({"stop": ["1", "2", "3", "4", "5", "6"]}), "stop"),
        (json!({"logit_bias": {"1": 2}}), "logit_bias"),
    ] {
        assert_eq!(written(&members).expect_err(field).field, field);
    }
}

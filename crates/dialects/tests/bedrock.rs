//! What is often got wrong between Bedrock's dialect and the others, a row each.

use backstop_dialects::{
    CallerError, Dialect, Loss, Unsupported, WriteOptions, error_event, error_name, read_answer,
    read_error, read_request, told_by, write_answer, write_request,
};
use backstop_stream::{Cutter, Framing};
use serde_json::{Value, json};

const CLAUDE: &str = "us.anthropic.claude-sonnet-4-20250514-v1:0";

/// A short OpenAI request with these members, in Bedrock's dialect, for `model`.
fn sent(model: &str, members: &Value, loss: Loss) -> Result<Value, Unsupported> {
    let mut body = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]});
    let whole = body.as_object_mut().expect("an object");
    whole.extend(members.as_object().expect("an object").clone());
    let body = body.to_string();
    let mut request = read_request(Dialect::OpenAiChat, body.as_bytes()).expect("a good request");
    model.clone_into(&mut request.model);
    let options = WriteOptions {
        loss,
        ..WriteOptions::default()
    };
    let written = write_request(Dialect::BedrockConverse, &request, &options)?;
    Ok(serde_json::from_slice(&written.body).expect("what we write is JSON"))
}

fn written(members: &Value) -> Result<Value, Unsupported> {
    sent(CLAUDE, members, Loss::Refuse)
}

fn tools() -> Value {
    json!([{"type": "function", "function": {"name": "f", "description": "",
        "parameters": {"type": "object"}}}])
}

/// A conversation in which `f` was called.
fn history() -> Value {
    json!([
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": "tooluse_1", "type": "function", "function": {"name": "f", "arguments": ""}}]},
        {"role": "tool", "tool_call_id": "tooluse_1", "content": "done"},
    ])
}

#[test]
fn neither_model_nor_stream_stands_in_the_body() {
    let body = written(&json!({"stream": true})).expect("carried");
    let hi = json!({"messages": [{"role": "user", "content": [{"text": "hi"}]}]});
    assert_eq!(body, hi);
}

#[test]
fn settings_have_bedrock_s_names() {
    let schema = json!({"type": "object"});
    let format = |name: &str| {
        json!({"outputConfig": {"textFormat": {"type": "json_schema", "structure": {
            "jsonSchema": {"name": name, "schema": "{\"type\":\"object\"}"}}}}})
    };
    let spec = json!({"toolSpec": {"name": "f", "inputSchema": {"json": {"type": "object"}}}});
    let config = |choice: Value| json!({"toolConfig": {"tools": [spec], "toolChoice": choice}});
    for (members, expected) in [
        (
            json!({"max_tokens": 9, "temperature": 0.5, "top_p": 0.25, "stop": "a"}),
            json!({"inferenceConfig": {"maxTokens": 9, "temperature": 0.5, "topP": 0.25,
                "stopSequences": ["a"]}}),
        ),
        (
            json!({"response_format": {"type": "json_schema",
                "json_schema": {"name": "x", "schema": schema}}}),
            format("x"),
        ),
        (
            json!({"tools": tools(), "tool_choice": "auto"}),
            config(json!({"auto": {}})),
        ),
        (
            json!({"tools": tools(), "tool_choice": "required"}),
            config(json!({"any": {}})),
        ),
        (
            json!({"tools": tools(),
                "tool_choice": {"type": "function", "function": {"name": "f"}}}),
            config(json!({"tool": {"name": "f"}})),
        ),
        // There is no word for none: nothing can be called where nothing is offered.
        (json!({"tools": tools(), "tool_choice": "none"}), json!({})),
        (
            json!({"reasoning_effort": "low"}),
            json!({"additionalModelRequestFields": {
                "thinking": {"type": "enabled", "budget_tokens": 1024}}}),
        ),
        (
            json!({"user": "u 1"}),
            json!({"requestMetadata": {"user": "u 1"}}),
        ),
        (json!({"user": "no{braces}"}), json!({})),
    ] {
        let mut body = written(&members).expect("carried");
        body.as_object_mut().expect("an object").remove("messages");
        assert_eq!(body, expected, "{members}");
    }
}

#[test]
fn each_maker_s_models_are_told_of_reasoning_their_own_way() {
    let asked = json!({"reasoning_effort": "high"});
    for (model, expected) in [
        (
            "arn:aws:bedrock:us-east-1:111122223333:application-inference-profile/x",
            json!({"thinking": {"type": "enabled", "budget_tokens": 16384}}),
        ),
        (
            "us.amazon.nova-2-lite-v1:0",
            json!({"reasoningConfig": {"type": "enabled", "maxReasoningEffort": "high"}}),
        ),
        (
            "openai.gpt-oss-20b-1:0",
            json!({"reasoning_effort": "high"}),
        ),
    ] {
        let body = sent(model, &asked, Loss::Refuse).expect("carried");
        assert_eq!(body["additionalModelRequestFields"], expected, "{model}");
    }
    let other = sent("meta.llama3-1-8b-instruct-v1:0", &asked, Loss::Refuse);
    assert_eq!(other.expect_err("unknown").field, "reasoning_effort");
}

#[test]
fn what_has_no_word_is_named() {
    let image = |url: &str| {
        json!({"messages": [{"role": "user", "content": [
            {"type": "image_url", "image_url": {"url": url}}]}]})
    };
    for (members, field) in [
        (json!({"seed": 1}), "seed"),
        (json!({"n": 2}), "n"),
        (json!({"logprobs": true}), "logprobs"),
        (json!({"presence_penalty": 0.5}), "presence_penalty"),
        (json!({"temperature": 1.5}), "temperature"),
        (
            json!({"response_format": {"type": "json_object"}}),
            "response_format",
        ),
        (
            json!({"tools": tools(), "parallel_tool_calls": false}),
            "parallel_tool_calls",
        ),
        // The conversation wants its tools, and with them the model may call.
        (
            json!({"tools": tools(), "tool_choice": "none", "messages": history()}),
            "tool_choice",
        ),
        (json!({"messages": history()}), "tools"),
        (image("https://example.com/a.png"), "messages[0].content[0]"),
        (
            image("data:image/bmp;base64,Qk0="),
            "messages[0].content[0]",
        ),
        (json!({"logit_bias": {"5": 1}}), "logit_bias"),
    ] {
        assert_eq!(written(&members).expect_err("no word").field, field);
    }
}

#[test]
fn a_conversation_with_tools_never_goes_without_any() {
    let body = sent(CLAUDE, &json!({"messages": history()}), Loss::Drop).expect("lossy");
    assert_eq!(
        body["toolConfig"]["tools"][0]["toolSpec"]["name"], "f",
        "{body}"
    );
    assert_eq!(
        body["messages"][1]["content"][0]["toolUse"]["input"],
        json!({}),
        "no arguments are an empty object"
    );
}

#[test]
fn pictures_are_carried_by_format_and_neighbours_are_one_turn() {
    let members = json!({"messages": [
        {"role": "user", "content": " "},
        {"role": "user", "content": [
            {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,/9j/"}}]},
        {"role": "user", "content": "Well?"},
    ]});
    let body = written(&members).expect("carried");
    let turn = json!([{"role": "user", "content": [
        {"image": {"format": "jpeg", "source": {"bytes": "/9j/"}}}, {"text": "Well?"}]}]);
    assert_eq!(body["messages"], turn, "blank text is left out");
}

#[test]
fn every_stop_reason_has_its_word() {
    for (word, openai, anthropic) in [
        ("end_turn", "stop", "end_turn"),
        ("stop_sequence", "stop", "stop_sequence"),
        ("max_tokens", "length", "max_tokens"),
        (
            "model_context_window_exceeded",
            "length",
            "model_context_window_exceeded",
        ),
        ("tool_use", "tool_calls", "tool_use"),
        ("guardrail_intervened", "content_filter", "refusal"),
        ("content_filtered", "content_filter", "refusal"),
    ] {
        let body = json!({"output": {"message": {"content": [{"text": "x"}]}}, "stopReason": word});
        let answer = read_answer(Dialect::BedrockConverse, body.to_string().as_bytes());
        let answer = answer.expect("an answer");
        let stamp = backstop_dialects::Stamp {
            id: "i",
            model: "m",
            created: 0,
        };
        let told = |dialect| -> Value {
            serde_json::from_slice(&write_answer(dialect, &answer, &stamp).body).expect("JSON")
        };
        let chat = told(Dialect::OpenAiChat);
        assert_eq!(chat["choices"][0]["finish_reason"], openai, "{word}");
        let messages = told(Dialect::AnthropicMessages);
        assert_eq!(messages["stop_reason"], anthropic, "{word}");
    }
    for word in ["malformed_tool_use", "malformed_model_output"] {
        let body = json!({"output": {"message": {"content": []}}, "stopReason": word}).to_string();
        let facts = backstop_dialects::inspect_answer(Dialect::BedrockConverse, body.as_bytes());
        assert!(facts.expect("readable").error_inside, "{word}");
    }
}

#[test]
fn an_exception_has_the_name_that_clients_raise() {
    for (status, kind, in_header, in_stream) in [
        (400, None, "ValidationException", "validationException"),
        (
            401,
            None,
            "UnrecognizedClientException",
            "validationException",
        ),
        (403, None, "AccessDeniedException", "validationException"),
        (
            404,
            None,
            "ResourceNotFoundException",
            "validationException",
        ),
        (
            408,
            None,
            "ModelTimeoutException",
            "modelStreamErrorException",
        ),
        (
            424,
            None,
            "ModelErrorException",
            "modelStreamErrorException",
        ),
        (429, None, "ThrottlingException", "throttlingException"),
        (
            500,
            None,
            "InternalServerException",
            "internalServerException",
        ),
        (
            502,
            None,
            "ServiceUnavailableException",
            "serviceUnavailableException",
        ),
        (
            503,
            Some("modelStreamErrorException"),
            "ModelStreamErrorException",
            "modelStreamErrorException",
        ),
        (
            429,
            Some("ModelNotReadyException"),
            "ModelNotReadyException",
            "throttlingException",
        ),
    ] {
        let error = CallerError {
            status,
            kind,
            code: Some("c"),
            message: "m",
            param: None,
            request_id: Some("r"),
            extra: None,
        };
        let dialect = Dialect::BedrockConverse;
        assert_eq!(error_name(dialect, &error), in_header);
        let mut cutter = Cutter::new(Framing::Messages);
        cutter.push(error_event(dialect, &error).into());
        let frame = cutter.next().expect("sound").expect("whole");
        assert_eq!(frame.header(":message-type"), Some("exception"));
        assert_eq!(frame.header(":exception-type"), Some(in_stream));
        // And read as it is told.
        let told = read_error(dialect, &told_by(dialect, &frame)).expect("an error");
        assert_eq!(told.kind.as_deref(), Some(in_stream));
        assert_eq!(told.message, "m");
    }
}

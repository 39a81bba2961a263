//! What is often got wrong between Google's dialect and the others, a row each.

use backstop_dialects::{
    Dialect, Loss, Stamp, Unsupported, WriteOptions, read_answer, read_request, write_answer,
    write_request,
};
use serde_json::{Value, json};

const STAMP: Stamp<'static> = Stamp {
    id: "ours",
    model: "asked",
    created: 1_700_000_000,
};

fn written(from: Dialect, model: &str, body: &Value) -> Result<Value, Unsupported> {
    let mut request = read_request(from, body.to_string().as_bytes()).expect("a good request");
    model.clone_into(&mut request.model);
    let written = write_request(Dialect::Gemini, &request, &WriteOptions::default())?;
    Ok(serde_json::from_slice(&written.body).expect("what we write is JSON"))
}

/// A short OpenAI request with these members.
fn ask(members: &Value) -> Value {
    let mut body = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]});
    let whole = body.as_object_mut().expect("an object");
    whole.extend(members.as_object().expect("an object").clone());
    body
}

fn from_openai(members: &Value) -> Result<Value, Unsupported> {
    written(Dialect::OpenAiChat, "gemini-2.5-flash", &ask(members))
}

fn weather() -> Value {
    json!([{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}])
}

#[test]
fn settings_stand_where_google_looks_for_them() {
    let schema = json!({"type": "object", "additionalProperties": false});
    for (members, expected) in [
        (json!({}), Value::Null),
        (
            json!({"max_tokens": 9, "temperature": 1.5, "top_p": 0.5, "seed": 3, "n": 2,
                "stop": "END", "presence_penalty": 0.5, "frequency_penalty": 0.25}),
            json!({"maxOutputTokens": 9, "temperature": 1.5, "topP": 0.5, "seed": 3,
                "candidateCount": 2, "stopSequences": ["END"], "presencePenalty": 0.5,
                "frequencyPenalty": 0.25}),
        ),
        (
            json!({"response_format": {"type": "json_object"}}),
            json!({"responseMimeType": "application/json"}),
        ),
        (
            json!({"response_format": {"type": "json_schema",
                "json_schema": {"name": "x", "schema": schema, "strict": true}}}),
            json!({"responseMimeType": "application/json", "responseJsonSchema": schema}),
        ),
        (
            json!({"reasoning_effort": "none"}),
            json!({"thinkingConfig": {"thinkingBudget": 0}}),
        ),
        (
            json!({"reasoning_effort": "medium"}),
            json!({"thinkingConfig": {"thinkingBudget": 8192, "includeThoughts": true}}),
        ),
    ] {
        let sent = from_openai(&members).expect("carried");
        assert_eq!(sent["generationConfig"], expected, "{members}");
        for stays_out in ["model", "stream", "messages"] {
            assert_eq!(sent.get(stays_out), None);
        }
    }
    let third = written(
        Dialect::OpenAiChat,
        "models/gemini-3-flash",
        &ask(&json!({"reasoning_effort": "high"})),
    );
    assert_eq!(
        third.expect("carried")["generationConfig"]["thinkingConfig"],
        json!({"thinkingLevel": "high", "includeThoughts": true})
    );
}

#[test]
fn what_has_no_word_is_named() {
    for (members, field) in [
        (
            json!({"tools": weather(), "parallel_tool_calls": false}),
            "parallel_tool_calls",
        ),
        (json!({"logprobs": true}), "logprobs"),
        (json!({"stop": ["1", "2", "3", "4", "5", "6"]}), "stop"),
        (json!({"logit_bias": {"1": 2}}), "logit_bias"),
        (
            json!({"messages": [{"role": "user", "content": [
                {"type": "image_url", "image_url": {"url": "https://a.b/c.png"}}]}]}),
            "messages[0].content[0]",
        ),
        (
            json!({"messages": [{"role": "tool", "tool_call_id": "unheard", "content": "x"}]}),
            "messages[0].content[0].tool_call_id",
        ),
    ] {
        let refused = from_openai(&members).expect_err(field);
        assert_eq!(refused.field, field);
    }
    // Saying nothing special is no loss; a label is a hint.
    let body = ask(&json!({"parallel_tool_calls": true, "logprobs": false, "user": "u"}));
    let request = read_request(Dialect::OpenAiChat, body.to_string().as_bytes()).expect("good");
    let written = write_request(Dialect::Gemini, &request, &WriteOptions::default());
    assert_eq!(written.expect("carried").dropped, ["user"]);
}

#[test]
fn a_choice_of_tools_has_its_mode() {
    for (choice, mode) in [
        (json!("auto"), json!({"mode": "AUTO"})),
        (json!("none"), json!({"mode": "NONE"})),
        (json!("required"), json!({"mode": "ANY"})),
        (
            json!({"type": "function", "function": {"name": "weather"}}),
            json!({"mode": "ANY", "allowedFunctionNames": ["weather"]}),
        ),
    ] {
        let sent = from_openai(&json!({"tools": weather(), "tool_choice": choice}));
        let sent = sent.expect("carried");
        assert_eq!(sent["toolConfig"]["functionCallingConfig"], mode);
        assert_eq!(
            sent["tools"],
            json!([{"functionDeclarations": [
                {"name": "weather", "parametersJsonSchema": {"type": "object"}}]}])
        );
    }
}

#[test]
fn pictures_are_carried_along() {
    let sent = from_openai(&json!({"messages": [{"role": "user", "content": [
        {"type": "text", "text": "what is it?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]}]}));
    assert_eq!(
        sent.expect("carried")["contents"][0]["parts"][1],
        json!({"inlineData": {"mimeType": "image/png", "data": "AAAA"}})
    );
}

/// A conversation in which two tools were called at once.
fn parallel_turns(first: &str, second: &str) -> Value {
    let call = |id: &str, city: &str| {
        let arguments = json!({ "city": city }).to_string();
        json!({"id": id, "type": "function",
            "function": {"name": format!("weather_in_{city}"), "arguments": arguments}})
    };
    json!({"tools": weather(), "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "developer", "content": "Be kind."},
        {"role": "user", "content": "Weather in Bern and Rome?"},
        {"role": "assistant", "content": null, "tool_calls": [call(first, "Bern"), call(second, "Rome")]},
        {"role": "tool", "tool_call_id": second, "content": "{\"sky\":\"blue\"}"},
        {"role": "tool", "tool_call_id": first, "content": "rain"},
        {"role": "user", "content": "And now?"},
    ]})
}

#[test]
fn results_stand_in_one_turn_under_the_names_of_their_tools() {
    let sent = from_openai(&parallel_turns("call_1", "call_2")).expect("carried");
    assert_eq!(
        sent["systemInstruction"],
        json!({"parts": [{"text": "Be brief."}, {"text": "Be kind."}]})
    );
    assert_eq!(
        sent["contents"],
        json!([
            {"role": "user", "parts": [{"text": "Weather in Bern and Rome?"}]},
            {"role": "model", "parts": [
                {"functionCall": {"id": "call_1", "name": "weather_in_Bern", "args": {"city": "Bern"}}},
                {"functionCall": {"id": "call_2", "name": "weather_in_Rome", "args": {"city": "Rome"}}},
            ]},
            {"role": "user", "parts": [
                {"functionResponse": {"id": "call_2", "name": "weather_in_Rome", "response": {"sky": "blue"}}},
                {"functionResponse": {"id": "call_1", "name": "weather_in_Bern", "response": {"output": "rain"}}},
                {"text": "And now?"},
            ]},
        ])
    );
}

#[test]
fn a_call_of_another_model_is_let_through_by_the_third_generation() {
    let body = ask(&parallel_turns("call_1", "call_2"));
    let sent = written(Dialect::OpenAiChat, "gemini-3-flash", &body).expect("carried");
    let parts = &sent["contents"][1]["parts"];
    assert_eq!(
        parts[0]["thoughtSignature"],
        "skip_thought_signature_validator"
    );
    assert_eq!(parts[1].get("thoughtSignature"), None);
}

#[test]
fn a_signature_survives_clients_that_drop_what_they_do_not_know() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/gemini/answers/");
    let body = std::fs::read(format!("{folder}signed-tools.json")).expect("a fixture");
    let wire: Value = serde_json::from_slice(&body).expect("JSON");
    let signature = &wire["candidates"][0]["content"]["parts"][0]["thoughtSignature"];
    assert!(signature.as_str().is_some_and(|text| text.len() > 100));
    let answer = read_answer(Dialect::Gemini, &body).expect("an answer");

    let openai = write_answer(Dialect::OpenAiChat, &answer, &STAMP);
    let openai: Value = serde_json::from_slice(&openai.body).expect("JSON");
    let calls = &openai["choices"][0]["message"]["tool_calls"];
    let ids = [&calls[0]["id"], &calls[1]["id"]].map(|id| id.as_str().expect("text").to_owned());
    assert_ne!(ids[0], ids[1]);
    // What such a client keeps of a call: id, name, arguments.
    let turn = ask(&json!({"tools": weather(), "messages": [
        {"role": "user", "content": "?"},
        {"role": "assistant", "content": null, "tool_calls": calls},
        {"role": "tool", "tool_call_id": ids[0], "content": "rain"},
        {"role": "tool", "tool_call_id": ids[1], "content": "Rust"},
    ]}));

    let anthropic = write_answer(Dialect::AnthropicMessages, &answer, &STAMP);
    let anthropic: Value = serde_json::from_slice(&anthropic.body).expect("JSON");
    let blocks = &anthropic["content"];
    let result = |place: usize| json!({"type": "tool_result", "tool_use_id": blocks[place]["id"], "content": "x"});
    let messages = json!({"model": "m", "max_tokens": 9, "messages": [
        {"role": "user", "content": "?"},
        {"role": "assistant", "content": blocks},
        {"role": "user", "content": [result(0), result(1)]},
    ]});

    for (dialect, body) in [
        (Dialect::OpenAiChat, turn),
        (Dialect::AnthropicMessages, messages),
    ] {
        let sent = written(dialect, "gemini-3-flash", &body).expect("carried");
        let parts = &sent["contents"][1]["parts"];
        assert_eq!(&parts[0]["thoughtSignature"], signature, "{dialect}");
        assert_eq!(parts[1].get("thoughtSignature"), None, "{dialect}");
        // These ids are of our making.
        assert_eq!(parts[0]["functionCall"].get("id"), None);
        let answers = &sent["contents"][2]["parts"];
        assert_eq!(answers[0]["functionResponse"]["name"], "weather");
        assert_eq!(answers[0]["functionResponse"].get("id"), None);
    }
}

#[test]
fn made_up_ids_are_unique_to_their_answer() {
    let id = |response: Value, city: &str| {
        let call = json!({"functionCall": {"name": "f", "args": {"city": city}}});
        let body = json!({"responseId": response, "candidates": [
            {"content": {"parts": [call, call]}, "finishReason": "STOP"}]});
        let answer = read_answer(Dialect::Gemini, body.to_string().as_bytes()).expect("good");
        let openai = write_answer(Dialect::OpenAiChat, &answer, &STAMP).body;
        let openai: Value = serde_json::from_slice(&openai).expect("JSON");
        let choice = &openai["choices"][0];
        assert_eq!(choice["finish_reason"], "tool_calls");
        let calls = &choice["message"]["tool_calls"];
        [0, 1].map(|place| calls[place]["id"].as_str().expect("text").to_owned())
    };
    let mut all = Vec::new();
    for (response, city) in [("a", "x"), ("b", "x")] {
        all.extend(id(json!(response), city));
    }
    for city in ["x", "y"] {
        all.extend(id(Value::Null, city));
    }
    let count = all.len();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), count, "{all:?}");
}

#[test]
fn every_way_to_end_has_its_word() {
    for (word, openai, anthropic) in [
        ("STOP", "stop", "end_turn"),
        ("MAX_TOKENS", "length", "max_tokens"),
        ("SAFETY", "content_filter", "refusal"),
        ("RECITATION", "content_filter", "refusal"),
        ("PROHIBITED_CONTENT", "content_filter", "refusal"),
        ("BLOCKLIST", "content_filter", "refusal"),
        ("SPII", "content_filter", "refusal"),
        ("IMAGE_SAFETY", "content_filter", "refusal"),
        ("MODEL_ARMOR", "content_filter", "refusal"),
        ("SOMETHING_NEW", "stop", "end_turn"),
    ] {
        let body =
            json!({"candidates": [{"content": {"parts": [{"text": "x"}]}, "finishReason": word}]});
        let answer = read_answer(Dialect::Gemini, body.to_string().as_bytes()).expect("good");
        let to = |dialect| -> Value {
            serde_json::from_slice(&write_answer(dialect, &answer, &STAMP).body).expect("JSON")
        };
        assert_eq!(
            to(Dialect::OpenAiChat)["choices"][0]["finish_reason"],
            openai
        );
        assert_eq!(to(Dialect::AnthropicMessages)["stop_reason"], anthropic);
    }
}

#[test]
fn thoughts_of_earlier_turns_stay_behind_and_say_so() {
    let body = json!({"model": "m", "max_tokens": 9, "messages": [
        {"role": "user", "content": "?"},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": "!"}]},
        {"role": "user", "content": "??"},
    ]});
    let request = read_request(Dialect::AnthropicMessages, body.to_string().as_bytes());
    let options = WriteOptions {
        loss: Loss::Refuse,
        ..WriteOptions::default()
    };
    let written = write_request(Dialect::Gemini, &request.expect("good"), &options);
    assert_eq!(
        written.expect("carried").dropped,
        ["messages[1].content[0]"]
    );
}

//! The envelope's cases as rows.

use backstop_chat::Need;
use backstop_units::Tokens;

use super::*;

fn needs(dialect: Dialect, body: &str) -> Vec<Need> {
    let envelope = read_envelope(dialect, body.as_bytes()).expect("a good request");
    envelope.needs.set.iter().collect()
}

#[test]
fn bad_requests_are_refused_with_a_stable_code() {
    let deep = format!(
        r#"{{"model":"a","x":{}{}}}"#,
        "[".repeat(127),
        "]".repeat(127)
    );
    for (body, code, param) in [
        ("", "invalid_json", None),
        ("{", "invalid_json", None),
        (r#"{"model":"a",}"#, "invalid_json", None),
        (r#"{"model":"a"} {}"#, "invalid_json", None),
        ("\u{feff}{\"model\":\"a\"}", "invalid_json", None),
        ("[1]", "not_an_object", None),
        ("null", "not_an_object", None),
        (&deep, "nesting_too_deep", None),
        ("{}", "missing_model", Some("model")),
        (r#"{"model":null}"#, "invalid_model", Some("model")),
        (r#"{"model":7}"#, "invalid_model", Some("model")),
        (r#"{"model":""}"#, "invalid_model", Some("model")),
        (r#"{"model":"  "}"#, "invalid_model", Some("model")),
        (
            r#"{"model":"a","model":"b"}"#,
            "duplicate_key",
            Some("model"),
        ),
        (
            r#"{"model":"a","mod\u0065l":"b"}"#,
            "duplicate_key",
            Some("model"),
        ),
        (r#"{"x":1,"model":"a","x":1}"#, "duplicate_key", Some("x")),
        (
            r#"{"model":"a","stream":"yes"}"#,
            "invalid_type",
            Some("stream"),
        ),
        (
            r#"{"model":"a","stream":1}"#,
            "invalid_type",
            Some("stream"),
        ),
        (
            r#"{"model":"a","fallbacks":"b/c"}"#,
            "invalid_fallbacks",
            Some("fallbacks"),
        ),
        (
            r#"{"model":"a","fallbacks":["b"]}"#,
            "invalid_fallbacks",
            Some("fallbacks"),
        ),
        (
            r#"{"model":"a","fallbacks":["/b"]}"#,
            "invalid_fallbacks",
            Some("fallbacks"),
        ),
        (
            r#"{"model":"a","fallbacks":["b/"]}"#,
            "invalid_fallbacks",
            Some("fallbacks"),
        ),
        (
            r#"{"model":"a","fallbacks":[{"model":"b/c"}]}"#,
            "invalid_fallbacks",
            Some("fallbacks"),
        ),
        (
            r#"{"model":"a","stream_options":true}"#,
            "invalid_type",
            Some("stream_options"),
        ),
        (
            r#"{"model":"a","stream_options":{"include_usage":1}}"#,
            "invalid_type",
            Some("stream_options.include_usage"),
        ),
        (
            r#"{"model":"a","stream_options":{"include_usage":true,"include_usage":false}}"#,
            "duplicate_key",
            Some("stream_options.include_usage"),
        ),
    ] {
        let refused = read_envelope(Dialect::OpenAiChat, body.as_bytes()).expect_err(body);
        assert_eq!(
            (refused.code, refused.param.as_deref()),
            (code, param),
            "{body}"
        );
        assert!(!refused.message.is_empty());
    }
    let cut = b"{\"model\":\"\xe4\xbd";
    let refused = read_envelope(Dialect::OpenAiChat, cut).expect_err("cut inside a character");
    assert_eq!(refused.code, "invalid_json");
}

#[test]
fn a_body_made_of_keys_costs_no_square() {
    let mut body = String::from(r#"{"model":"a""#);
    for n in 0..200_000 {
        body.push_str(&format!(",\"{n}\":0"));
    }
    body.push_str(",\"199999\":0}");
    let refused = read_envelope(Dialect::OpenAiChat, body.as_bytes()).expect_err("a duplicate");
    assert_eq!(refused.param.as_deref(), Some("199999"));
}

#[test]
fn the_envelope_is_read_whatever_the_order() {
    let body = r#" { "fallbacks" : ["groq/llama-3", "openrouter/meta/llama"],
        "stream": true, "messages": [], "stream_options": {"include_usage": true},
        "model": "fast\u002dlane" } "#;
    let envelope = read_envelope(Dialect::OpenAiChat, body.as_bytes()).expect("a good request");
    assert_eq!(envelope.model, "fast-lane");
    assert!(envelope.stream && envelope.usage_asked);
    let chain: Vec<_> = envelope
        .fallbacks
        .iter()
        .map(|entry| (entry.provider.as_str(), entry.model.as_str()))
        .collect();
    assert_eq!(chain, [("groq", "llama-3"), ("openrouter", "meta/llama")]);
    assert_eq!(&body[envelope.spans.model.clone()], r#""fast\u002dlane""#);
}

#[test]
fn anthropic_always_sends_usage() {
    let body = br#"{"model":"a","stream":null,"stream_options":7}"#;
    let envelope = read_envelope(Dialect::AnthropicMessages, body).expect("a good request");
    assert!(!envelope.stream && envelope.usage_asked);
}

#[test]
fn openai_needs() {
    use Need::*;
    let call = r#"{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}"#;
    for (members, expected) in [
        (String::new(), vec![]),
        (r#""stream":true"#.into(), vec![Streaming]),
        (r#""tools":[]"#.into(), vec![]),
        (r#""tools":[{"type":"function","function":{"name":"f"}}]"#.into(), vec![Tools]),
        (r#""tools":[{"type":"web_search"}]"#.into(), vec![ProviderTools]),
        (r#""functions":[{"name":"f"}]"#.into(), vec![Tools]),
        (r#""parallel_tool_calls":true"#.into(), vec![ParallelTools]),
        (r#""parallel_tool_calls":false"#.into(), vec![]),
        (
            format!(r#""messages":[{{"role":"assistant","tool_calls":[{call},{call}]}}]"#),
            vec![ParallelTools],
        ),
        (r#""response_format":{"type":"json_schema"}"#.into(), vec![JsonSchema]),
        (r#""response_format":{"type":"json_object"}"#.into(), vec![JsonObject]),
        (r#""response_format":{"type":"text"}"#.into(), vec![]),
        (r#""n":1"#.into(), vec![]),
        (r#""n":2"#.into(), vec![ManyChoices]),
        (r#""logprobs":true"#.into(), vec![Logprobs]),
        (r#""logprobs":false,"top_logprobs":0"#.into(), vec![]),
        (r#""reasoning_effort":"low""#.into(), vec![Reasoning]),
        (r#""reasoning_effort":"none""#.into(), vec![]),
        (r#""modalities":["text","audio"]"#.into(), vec![Audio]),
        (
            r#""messages":[{"content":[{"image_url":{"url":"https://a/b"},"type":"image_url"}]}]"#
                .into(),
            vec![ImageUrls],
        ),
        (
            r#""messages":[{"content":[{"type":"image_url","image_url":"data:image/png;base64,AA"}]}]"#
                .into(),
            vec![Images],
        ),
        (
            r#""messages":[{"content":[{"type":"input_audio","input_audio":{"data":"AA"}}]}]"#
                .into(),
            vec![Audio],
        ),
    ] {
        let comma = if members.is_empty() { "" } else { "," };
        let body = format!(r#"{{"model":"m"{comma}{members}}}"#);
        assert_eq!(needs(Dialect::OpenAiChat, &body), expected, "{body}");
    }
}

#[test]
fn anthropic_needs() {
    use Need::*;
    for (members, expected) in [
        (r#""tools":[{"name":"f","input_schema":{}}]"#, vec![Tools]),
        (r#""tools":[{"name":"f","type":"custom"}]"#, vec![Tools]),
        (
            r#""tools":[{"name":"s","type":"web_search_20250305"}]"#,
            vec![ProviderTools],
        ),
        (
            r#""thinking":{"type":"enabled","budget_tokens":1024}"#,
            vec![Reasoning],
        ),
        (r#""thinking":{"type":"disabled"}"#, vec![]),
        (
            r#""output_config":{"format":{"type":"json_schema","schema":{}}}"#,
            vec![JsonSchema],
        ),
        (
            r#""messages":[{"role":"assistant","content":[{"type":"tool_use"},{"type":"tool_use"}]}]"#,
            vec![ParallelTools],
        ),
        (
            r#""messages":[{"content":[{"type":"image","source":{"type":"url","url":"https://a"}}]}]"#,
            vec![ImageUrls],
        ),
        (
            r#""messages":[{"content":[{"type":"tool_result","content":[{"type":"image","source":{"type":"base64","data":"AA"}}]}]}]"#,
            vec![Images],
        ),
        (
            r#""messages":[{"content":[{"type":"document","source":{"data":"AA"}}]}]"#,
            vec![Files],
        ),
    ] {
        let body = format!(r#"{{"model":"m",{members}}}"#);
        assert_eq!(needs(Dialect::AnthropicMessages, &body), expected, "{body}");
    }
}

#[test]
fn the_prompt_is_estimated_without_its_pictures() {
    let words = "word ".repeat(800);
    let picture = "A".repeat(1_000_000);
    let body = format!(
        r#"{{"model":"m","max_tokens":500,"messages":[{{"role":"user","content":[
            {{"type":"text","text":"{words}"}},
            {{"type":"image_url","image_url":{{"url":"data:image/png;base64,{picture}"}}}}]}}]}}"#
    );
    let envelope = read_envelope(Dialect::OpenAiChat, body.as_bytes()).expect("a good request");
    let prompt = envelope.needs.prompt.0;
    assert!((1000..1100).contains(&prompt), "{prompt}");
    assert_eq!(envelope.needs.answer, Tokens(500));
}

//! What a caller of each surface sends for each feature.

use serde_json::{Value, json};

use super::Feature;
use crate::surface::{Form, Surface};

/// One white point, as PNG.
pub(super) const IMAGE: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mP8/x8AAwMCAO+ip1sAAAAASUVORK5CYII=";

/// The words of every question.
pub(super) const WORDS: &str = "Say something.";

/// What a tool takes, and what a structured answer is.
pub(super) fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": false,
    })
}

/// The tools of a feature.
pub(super) const fn tools(feature: Feature) -> &'static [&'static str] {
    match feature {
        Feature::Tools => &["weather"],
        Feature::ParallelTools => &["weather", "time"],
        _ => &[],
    }
}

/// The body that a caller of `surface` sends.
pub(super) fn question(surface: Surface, feature: Feature, model: &str, form: Form) -> Value {
    let mut body = surface.ask(model, form);
    let names = tools(feature);
    if !names.is_empty() {
        let of = |name: &&str| tool(surface, name);
        let all: Vec<Value> = names.iter().map(of).collect();
        match surface {
            Surface::Gemini => body["tools"] = json!([{"functionDeclarations": all}]),
            Surface::BedrockConverse => body["toolConfig"] = json!({"tools": all}),
            _ => body["tools"] = all.into(),
        }
    }
    match feature {
        Feature::Schema => structured(surface, &mut body),
        Feature::Images => picture(surface, &mut body),
        Feature::Reasoning => reasoning(surface, &mut body),
        _ => {}
    }
    body
}

fn tool(surface: Surface, name: &str) -> Value {
    let (words, schema) = ("What there is.", schema());
    match surface {
        Surface::OpenAiChat | Surface::CohereV2 => json!({
            "type": "function",
            "function": {"name": name, "description": words, "parameters": schema},
        }),
        Surface::OpenAiResponses => json!({
            "type": "function", "name": name, "description": words, "parameters": schema,
            "strict": false,
        }),
        Surface::AnthropicMessages => {
            json!({"name": name, "description": words, "input_schema": schema})
        }
        Surface::Gemini => {
            json!({"name": name, "description": words, "parametersJsonSchema": schema})
        }
        Surface::BedrockConverse => json!({
            "toolSpec": {"name": name, "description": words, "inputSchema": {"json": schema}},
        }),
    }
}

fn structured(surface: Surface, body: &mut Value) {
    let schema = schema();
    match surface {
        Surface::OpenAiChat => {
            body["response_format"] = json!({
                "type": "json_schema",
                "json_schema": {"name": "place", "schema": schema, "strict": true},
            });
        }
        Surface::OpenAiResponses => {
            body["text"] = json!({
                "format": {"type": "json_schema", "name": "place", "schema": schema, "strict": true},
            });
        }
        Surface::AnthropicMessages => {
            body["output_config"] = json!({"format": {"type": "json_schema", "schema": schema}});
        }
        Surface::Gemini => {
            body["generationConfig"] = json!({
                "responseMimeType": "application/json", "responseJsonSchema": schema,
            });
        }
        Surface::CohereV2 => {
            body["response_format"] = json!({"type": "json_object", "schema": schema});
        }
        Surface::BedrockConverse => {
            body["outputConfig"] = json!({"textFormat": {
                "type": "json_schema",
                "structure": {"jsonSchema": {"name": "place", "schema": schema.to_string()}},
            }});
        }
    }
}

fn picture(surface: Surface, body: &mut Value) {
    let url = format!("data:image/png;base64,{IMAGE}");
    match surface {
        Surface::OpenAiChat | Surface::CohereV2 => {
            body["messages"][0]["content"] = json!([
                {"type": "text", "text": WORDS},
                {"type": "image_url", "image_url": {"url": url}},
            ]);
        }
        Surface::OpenAiResponses => {
            body["input"] = json!([{"role": "user", "content": [
                {"type": "input_text", "text": WORDS},
                {"type": "input_image", "image_url": url, "detail": "auto"},
            ]}]);
        }
        Surface::AnthropicMessages => {
            body["messages"][0]["content"] = json!([
                {"type": "text", "text": WORDS},
                {"type": "image", "source": {
                    "type": "base64", "media_type": "image/png", "data": IMAGE,
                }},
            ]);
        }
        Surface::Gemini => {
            body["contents"][0]["parts"] = json!([
                {"text": WORDS},
                {"inlineData": {"mimeType": "image/png", "data": IMAGE}},
            ]);
        }
        Surface::BedrockConverse => {
            body["messages"][0]["content"] = json!([
                {"text": WORDS},
                {"image": {"format": "png", "source": {"bytes": IMAGE}}},
            ]);
        }
    }
}

fn reasoning(surface: Surface, body: &mut Value) {
    match surface {
        Surface::OpenAiChat => body["reasoning_effort"] = "high".into(),
        Surface::OpenAiResponses => body["reasoning"] = json!({"effort": "high"}),
        Surface::AnthropicMessages => {
            body["thinking"] = json!({"type": "enabled", "budget_tokens": 2048});
        }
        Surface::Gemini => {
            body["generationConfig"] = json!({
                "thinkingConfig": {"thinkingBudget": 2048, "includeThoughts": true},
            });
        }
        Surface::CohereV2 => {
            body["thinking"] = json!({"type": "enabled", "token_budget": 2048});
        }
        Surface::BedrockConverse => {
            body["inferenceConfig"] = json!({"maxTokens": 4096});
            body["additionalModelRequestFields"] = json!({
                "thinking": {"type": "enabled", "budget_tokens": 2048},
            });
        }
    }
}

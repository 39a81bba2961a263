//! What must have reached a provider of each dialect, in its own form.

use backstop_faultsim::Attempt;
use serde_json::Value;

use super::Feature;
use super::question::{IMAGE, WORDS, schema, tools};
use crate::surface::{Form, Surface};

/// Whether the provider got what the caller asked for.
pub(super) fn check(
    upstream: Surface,
    feature: Feature,
    form: Form,
    attempt: &Attempt,
) -> Result<(), String> {
    let body = attempt.json();
    let must = |holds: bool, what: &str| match holds {
        true => Ok(()),
        false => Err(format!("{what} did not arrive: {body}")),
    };
    let streamed = match upstream {
        Surface::Gemini => attempt.path().ends_with(":streamGenerateContent"),
        Surface::BedrockConverse => attempt.path().ends_with("/converse-stream"),
        _ => body["stream"] == true,
    };
    must(streamed == (form != Form::Whole), "whether to stream")?;
    must(words(upstream, &body).contains(WORDS), "the question")?;
    let offered = offered(upstream, &body);
    let names: Vec<&str> = offered
        .iter()
        .filter_map(|(name, _)| name.as_str())
        .collect();
    must(names == tools(feature), "the tools")?;
    let sound = |schema: &Value| {
        let kind = schema["properties"]["city"]["type"].as_str();
        kind.is_some_and(|kind| kind.eq_ignore_ascii_case("string"))
            && schema["required"][0] == "city"
    };
    must(
        offered.iter().all(|(_, schema)| sound(schema)),
        "what tools take",
    )?;
    match feature {
        Feature::Schema => must(form_of(upstream, &body) == schema(), "the schema"),
        Feature::Images => must(picture(upstream, &body), "the picture"),
        Feature::Reasoning => must(reasoning(upstream, &body), "the wish to reason"),
        _ => Ok(()),
    }
}

/// The list of turns.
fn turns(upstream: Surface, body: &Value) -> &Value {
    match upstream {
        Surface::OpenAiResponses => &body["input"],
        Surface::Gemini => &body["contents"],
        _ => &body["messages"],
    }
}

/// The parts of the only turn.
fn parts(upstream: Surface, body: &Value) -> &Value {
    let turn = &turns(upstream, body)[0];
    match upstream {
        Surface::Gemini => &turn["parts"],
        _ => &turn["content"],
    }
}

fn words(upstream: Surface, body: &Value) -> String {
    if let Some(text) = turns(upstream, body).as_str() {
        return text.to_owned();
    }
    match parts(upstream, body) {
        Value::String(text) => text.clone(),
        parts => {
            let all = parts.as_array().into_iter().flatten();
            all.filter_map(|part| part["text"].as_str()).collect()
        }
    }
}

/// The names of the tools, and what each takes.
fn offered(upstream: Surface, body: &Value) -> Vec<(Value, Value)> {
    let list = match upstream {
        Surface::Gemini => &body["tools"][0]["functionDeclarations"],
        Surface::BedrockConverse => &body["toolConfig"]["tools"],
        _ => &body["tools"],
    };
    let all = list.as_array().into_iter().flatten();
    let of = |tool: &Value| match upstream {
        Surface::OpenAiChat | Surface::CohereV2 => {
            let function = &tool["function"];
            (function["name"].clone(), function["parameters"].clone())
        }
        Surface::OpenAiResponses => (tool["name"].clone(), tool["parameters"].clone()),
        Surface::AnthropicMessages => (tool["name"].clone(), tool["input_schema"].clone()),
        Surface::Gemini => {
            let schema = tool.get("parametersJsonSchema").or(tool.get("parameters"));
            (tool["name"].clone(), schema.cloned().unwrap_or_default())
        }
        Surface::BedrockConverse => {
            let spec = &tool["toolSpec"];
            (spec["name"].clone(), spec["inputSchema"]["json"].clone())
        }
    };
    all.map(of).collect()
}

/// The form of a structured answer.
fn form_of(upstream: Surface, body: &Value) -> Value {
    match upstream {
        Surface::OpenAiChat => body["response_format"]["json_schema"]["schema"].clone(),
        Surface::OpenAiResponses => body["text"]["format"]["schema"].clone(),
        Surface::AnthropicMessages => body["output_config"]["format"]["schema"].clone(),
        Surface::Gemini => body["generationConfig"]["responseJsonSchema"].clone(),
        Surface::CohereV2 => {
            let format = &body["response_format"];
            format
                .get("schema")
                .or(format.get("json_schema"))
                .cloned()
                .unwrap_or_default()
        }
        Surface::BedrockConverse => {
            let structure = &body["outputConfig"]["textFormat"]["structure"];
            let text = structure["jsonSchema"]["schema"]
                .as_str()
                .unwrap_or_default();
            serde_json::from_str(text).unwrap_or_default()
        }
    }
}

fn picture(upstream: Surface, body: &Value) -> bool {
    let url = format!("data:image/png;base64,{IMAGE}");
    let all = parts(upstream, body).as_array();
    all.into_iter().flatten().any(|part| match upstream {
        Surface::OpenAiChat | Surface::CohereV2 => part["image_url"]["url"] == url,
        Surface::OpenAiResponses => part["type"] == "input_image" && part["image_url"] == url,
        Surface::AnthropicMessages => {
            let source = &part["source"];
            source["media_type"] == "image/png" && source["data"] == IMAGE
        }
        Surface::Gemini => {
            let data = &part["inlineData"];
            data["mimeType"] == "image/png" && data["data"] == IMAGE
        }
        Surface::BedrockConverse => {
            let image = &part["image"];
            image["format"] == "png" && image["source"]["bytes"] == IMAGE
        }
    })
}

fn reasoning(upstream: Surface, body: &Value) -> bool {
    let budget = |value: &Value| value.as_u64().is_some_and(|tokens| tokens >= 1024);
    match upstream {
        Surface::OpenAiChat => body["reasoning_effort"].is_string(),
        Surface::OpenAiResponses => body["reasoning"]["effort"].is_string(),
        Surface::AnthropicMessages => {
            budget(&body["thinking"]["budget_tokens"]) || body["thinking"]["type"] == "adaptive"
        }
        Surface::Gemini => {
            let config = &body["generationConfig"]["thinkingConfig"];
            budget(&config["thinkingBudget"]) || config["thinkingLevel"].is_string()
        }
        Surface::CohereV2 => body["thinking"]["type"] == "enabled",
        Surface::BedrockConverse => {
            let fields = &body["additionalModelRequestFields"];
            fields
                .get("thinking")
                .or(fields.get("reasoning_config"))
                .is_some()
        }
    }
}

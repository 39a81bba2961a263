//! Vectors and counts of tokens as healthy providers answer them, each in its own shape.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// How long vectors are, unless a request says otherwise.
const DIMENSIONS: u64 = 8;

/// The answer to a request for vectors or a count; `None` for anything else.
pub(crate) fn answer(path: &str, body: &[u8], model: &str) -> Option<Value> {
    let body: Value = serde_json::from_slice(body).ok()?;
    if path.ends_with("/embeddings") {
        Some(openai(&body, model))
    } else if path.ends_with("/embed") {
        Some(cohere(&texts(&body["texts"]), &body["output_dimension"]))
    } else if path.ends_with(":embedContent") {
        let (values, tokens) = gemini(&body);
        Some(json!({"embedding": values, "usageMetadata": {"promptTokenCount": tokens}}))
    } else if path.ends_with(":batchEmbedContents") {
        let requests = body["requests"].as_array()?;
        let (all, tokens): (Vec<Value>, Vec<usize>) = requests.iter().map(gemini).unzip();
        let tokens: usize = tokens.iter().sum();
        Some(json!({"embeddings": all, "usageMetadata": {"promptTokenCount": tokens}}))
    } else if path.ends_with("/invoke") {
        bedrock(&body)
    } else if path.ends_with("/count_tokens") {
        Some(json!({"input_tokens": tokens(&body.to_string())}))
    } else if path.ends_with(":countTokens") {
        Some(json!({"totalTokens": tokens(&body.to_string())}))
    } else {
        None
    }
}

fn openai(body: &Value, model: &str) -> Value {
    let texts = texts(&body["input"]);
    let packed = body["encoding_format"] == "base64";
    let data: Vec<Value> = texts
        .iter()
        .enumerate()
        .map(|(index, text)| {
            let numbers = vector(text, &body["dimensions"]);
            let embedding = if packed {
                let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
                json!(STANDARD.encode(bytes))
            } else {
                json!(numbers)
            };
            json!({"object": "embedding", "index": index, "embedding": embedding})
        })
        .collect();
    let spent: usize = texts.iter().map(|text| tokens(text)).sum();
    json!({"object": "list", "data": data, "model": model,
        "usage": {"prompt_tokens": spent, "total_tokens": spent}})
}

fn cohere(texts: &[String], dimensions: &Value) -> Value {
    let vectors: Vec<Vec<f32>> = texts.iter().map(|text| vector(text, dimensions)).collect();
    let spent: usize = texts.iter().map(|text| tokens(text)).sum();
    json!({"id": "emb-sim", "response_type": "embeddings_by_type", "texts": texts,
        "embeddings": {"float": vectors},
        "meta": {"api_version": {"version": "2"}, "billed_units": {"input_tokens": spent}}})
}

fn gemini(request: &Value) -> (Value, usize) {
    let parts = request["content"]["parts"].as_array();
    let text: String = parts
        .into_iter()
        .flatten()
        .filter_map(|part| part["text"].as_str())
        .collect();
    let numbers = vector(&text, &request["outputDimensionality"]);
    (json!({"values": numbers}), tokens(&text))
}

/// Amazon's Titan takes one text, Cohere's models on Bedrock several.
fn bedrock(body: &Value) -> Option<Value> {
    if body["texts"].is_array() {
        return Some(cohere(&texts(&body["texts"]), &body["output_dimension"]));
    }
    let text = body["inputText"].as_str()?;
    let numbers = vector(text, &body["dimensions"]);
    Some(
        json!({"embedding": numbers, "embeddingsByType": {"float": numbers},
        "inputTextTokenCount": tokens(text)}),
    )
}

/// One text or several; ids of tokens stand for themselves.
fn texts(given: &Value) -> Vec<String> {
    match given {
        Value::String(text) => vec![text.clone()],
        Value::Array(all) if all.first().is_some_and(Value::is_number) => vec![given.to_string()],
        Value::Array(all) => all
            .iter()
            .map(|each| {
                each.as_str()
                    .map_or_else(|| each.to_string(), str::to_owned)
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// The same text has the same vector, wherever it is asked for: eighths, which every spelling of a
/// number keeps.
fn vector(text: &str, dimensions: &Value) -> Vec<f32> {
    let long = dimensions.as_u64().unwrap_or(DIMENSIONS).min(4096);
    let sum: u8 = text
        .bytes()
        .fold(7, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte));
    (0..long)
        .map(|place| {
            let [low, ..] = place.to_le_bytes();
            let byte = sum.wrapping_add(low.wrapping_mul(37)) % 16;
            (f32::from(byte) - 8.0) / 8.0
        })
        .collect()
}

/// About four bytes a token.
const fn tokens(text: &str) -> usize {
    text.len() / 4 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(path: &str, body: &Value) -> Value {
        answer(path, body.to_string().as_bytes(), "m").expect("an answer")
    }

    #[test]
    fn a_text_has_the_same_vector_everywhere() {
        let openai = asked("/v1/embeddings", &json!({"input": ["hi", "ho"]}));
        let hi = &openai["data"][0]["embedding"];
        assert_ne!(hi, &openai["data"][1]["embedding"]);
        let one = json!({"content": {"parts": [{"text": "hi"}]}});
        let gemini = asked("/v1beta/models/m:embedContent", &one);
        assert_eq!(&gemini["embedding"]["values"], hi);
        let batch = asked(
            "/v1beta/models/m:batchEmbedContents",
            &json!({"requests": [one]}),
        );
        assert_eq!(&batch["embeddings"][0]["values"], hi);
        for path in ["/v2/embed", "/model/cohere.embed-v4/invoke"] {
            let cohere = asked(path, &json!({"texts": ["hi"]}));
            assert_eq!(&cohere["embeddings"]["float"][0], hi);
        }
        let titan = asked(
            "/model/amazon.titan-embed/invoke",
            &json!({"inputText": "hi"}),
        );
        assert_eq!(&titan["embedding"], hi);
    }

    #[test]
    fn bytes_and_lengths_are_as_asked() {
        let body = json!({"input": [1, 2], "encoding_format": "base64", "dimensions": 3});
        let packed = asked("/v1/embeddings", &body);
        let text = packed["data"][0]["embedding"].as_str().expect("base64");
        assert_eq!(STANDARD.decode(text).map(|bytes| bytes.len()), Ok(12));
        let counted = asked("/v1/messages/count_tokens", &json!({"messages": []}));
        assert!(counted["input_tokens"].is_u64());
        let counted = asked("/v1beta/models/m:countTokens", &json!({"contents": []}));
        assert!(counted["totalTokens"].is_u64());
        assert_eq!(answer("/v1/chat/completions", b"{}", "m"), None);
    }
}

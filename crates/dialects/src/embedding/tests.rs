//! One question and one answer, in every shape.

use backstop_chat::{Encoding, Need};
use serde_json::{Value, json};

use super::*;
use crate::dialect::capabilities_between;
use crate::operation::{Operation, capabilities_for};

const OPENAI: Dialect = Dialect::OpenAiChat;
const STAMP: Stamp<'static> = Stamp {
    id: "ours",
    model: "asked",
    created: 0,
};

fn read(dialect: Dialect, body: &Value) -> EmbedRequest {
    let request = read_embed_request(dialect, body.to_string().as_bytes());
    let mut request = request.expect("a good request");
    "m".clone_into(&mut request.model);
    request
}

fn written(shape: Shape, request: &EmbedRequest) -> Result<Value, String> {
    let dialect = match shape {
        Shape::OpenAi => OPENAI,
        Shape::Gemini => Dialect::Gemini,
        Shape::Cohere => Dialect::CohereV2,
        // None of theirs: whatever is said in one of these is foreign.
        Shape::Titan | Shape::CohereOnBedrock => Dialect::AnthropicMessages,
    };
    let written = shape.write_request(dialect, request, Loss::Refuse);
    let written = written.map_err(|refused| refused.field)?;
    Ok(serde_json::from_slice(&written.body).expect("JSON"))
}

#[test]
fn one_question_in_every_shape() {
    let request = read(
        OPENAI,
        &json!({"model": "fast", "input": "hi", "dimensions": 256, "encoding_format": "base64",
            "input_type": "query", "fallbacks": ["a/b"]}),
    );
    for (shape, model, expected) in [
        (
            Shape::Gemini,
            "m",
            json!({"model": "models/m", "content": {"parts": [{"text": "hi"}]},
                "taskType": "RETRIEVAL_QUERY", "outputDimensionality": 256}),
        ),
        (
            Shape::Cohere,
            "m",
            json!({"model": "m", "input_type": "search_query", "embedding_types": ["float"],
                "texts": ["hi"], "output_dimension": 256}),
        ),
        (
            Shape::CohereOnBedrock,
            "cohere.embed-v4:0",
            json!({"input_type": "search_query", "embedding_types": ["float"],
                "texts": ["hi"], "output_dimension": 256}),
        ),
    ] {
        let request = EmbedRequest {
            model: model.to_owned(),
            ..request.clone()
        };
        assert_eq!(written(shape, &request), Ok(expected), "{shape:?}");
    }
    let plain = EmbedRequest {
        purpose: None,
        model: "amazon.titan-embed-text-v2:0".to_owned(),
        ..request
    };
    assert_eq!(
        written(Shape::Titan, &plain),
        Ok(json!({"inputText": "hi", "dimensions": 256}))
    );
    assert_eq!(
        written(Shape::OpenAi, &plain),
        Ok(json!({"model": "amazon.titan-embed-text-v2:0", "input": "hi", "dimensions": 256}))
    );
}

#[test]
fn what_has_no_word_is_named() {
    let two = json!({"model": "m", "input": ["a", "b"]});
    let tokens = json!({"model": "m", "input": [[1, 2], [3]]});
    let short = json!({"model": "m", "input": "a", "dimensions": 8});
    let many: Vec<String> = (0..97).map(|n| n.to_string()).collect();
    let many = json!({"model": "m", "input": many});
    let fact = json!({"content": {"parts": [{"text": "a"}]}, "taskType": "FACT_VERIFICATION"});
    let title = json!({"content": {"parts": [{"text": "a"}]}, "title": "t"});
    let keep_end = json!({"model": "m", "texts": ["a"], "input_type": "clustering",
        "truncate": "START"});
    let ints = json!({"model": "m", "texts": ["a"], "input_type": "clustering",
        "embedding_types": ["int8"]});
    let odd = json!({"model": "m", "input": "a", "encoding_format": "int8"});
    for (dialect, body, shape, field) in [
        (OPENAI, &two, Shape::Titan, "more than one input"),
        (OPENAI, &tokens, Shape::Gemini, "input"),
        (OPENAI, &tokens, Shape::Cohere, "input"),
        (OPENAI, &short, Shape::Titan, "dimensions"),
        (OPENAI, &many, Shape::Cohere, "more than 96 inputs"),
        (OPENAI, &odd, Shape::Cohere, "encoding_format"),
        (Dialect::Gemini, &fact, Shape::Cohere, "input_type"),
        (Dialect::Gemini, &fact, Shape::OpenAi, "input_type"),
        (Dialect::Gemini, &title, Shape::Cohere, "title"),
        (Dialect::CohereV2, &keep_end, Shape::Gemini, "truncate"),
        (Dialect::CohereV2, &ints, Shape::OpenAi, "embedding_types"),
    ] {
        assert_eq!(
            written(shape, &read(dialect, body)),
            Err(field.to_owned()),
            "{body} to {shape:?}"
        );
    }
    let v3 = EmbedRequest {
        model: "cohere.embed-english-v3".to_owned(),
        ..read(OPENAI, &short)
    };
    assert_eq!(
        written(Shape::CohereOnBedrock, &v3),
        Err("dimensions".to_owned())
    );
}

#[test]
fn a_bad_request_names_its_member() {
    for (dialect, body, param) in [
        (OPENAI, r#"{"model":"m"}"#, "input"),
        (OPENAI, r#"{"model":"m","input":[]}"#, "input"),
        (OPENAI, r#"{"model":"m","input":[true]}"#, "input"),
        (OPENAI, r#"{"model":"m","input":[-1]}"#, "input"),
        (
            OPENAI,
            r#"{"model":"m","input":"a","dimensions":"x"}"#,
            "dimensions",
        ),
        (Dialect::Gemini, "{}", "content"),
        (
            Dialect::Gemini,
            r#"{"content":{"parts":[]},"taskType":"X"}"#,
            "taskType",
        ),
        (
            Dialect::Gemini,
            r#"{"requests":[{"content":{"parts":[]}},{"content":{"parts":[]},"outputDimensionality":3}]}"#,
            "requests[1]",
        ),
        (
            Dialect::CohereV2,
            r#"{"model":"m","texts":["a"]}"#,
            "input_type",
        ),
    ] {
        let bad = read_embed_request(dialect, body.as_bytes()).expect_err(body);
        assert_eq!(bad.param.as_deref(), Some(param), "{body}");
    }
    assert!(read_embed_request(Dialect::AnthropicMessages, b"{}").is_err());
}

#[test]
fn an_answer_has_as_many_vectors_as_were_asked_for() {
    let asked = |inputs| VectorForm {
        inputs,
        ..VectorForm::default()
    };
    for (shape, body, inputs, what) in [
        (Shape::OpenAi, r#"{"data":[]}"#, 1, "no vectors"),
        (
            Shape::OpenAi,
            r#"{"data":[{"embedding":[1]}]}"#,
            2,
            "another number of vectors than was asked for",
        ),
        (
            Shape::OpenAi,
            r#"{"data":[{"index":0}]}"#,
            1,
            "an entry without a vector",
        ),
        (
            Shape::Gemini,
            r#"{"embedding":{}}"#,
            1,
            "an entry without a vector",
        ),
        (Shape::Gemini, "{}", 1, "no vectors"),
        (Shape::Cohere, "{}", 1, "not an answer with vectors"),
        (Shape::Titan, r#"{"embedding":3}"#, 1, "no vectors"),
        (Shape::Titan, "", 1, "an empty body"),
        (
            Shape::OpenAi,
            r#"{"data":[{"embedding":[1"#,
            1,
            "JSON that ends inside a value",
        ),
    ] {
        let refused = shape.inspect(asked(inputs), body.as_bytes());
        assert_eq!(refused.expect_err(body).what, what, "{body}");
    }
    for (shape, body, inputs) in [
        (
            Shape::OpenAi,
            r#"{"data":[{"embedding":[1]},{"embedding":"AAAA"}]}"#,
            2,
        ),
        (Shape::Gemini, r#"{"embeddings":[{"values":[1]}]}"#, 1),
        (Shape::Cohere, r#"{"embeddings":{"float":[[1],[2]]}}"#, 2),
        (Shape::CohereOnBedrock, r#"{"embeddings":[[1],[2]]}"#, 2),
        (Shape::Titan, r#"{"embedding":[1]}"#, 1),
        // What was not understood is not counted.
        (Shape::OpenAi, r#"{"data":[{"embedding":[1]}]}"#, 0),
    ] {
        assert!(
            shape.inspect(asked(inputs), body.as_bytes()).is_ok(),
            "{body}"
        );
    }
    let error = Shape::OpenAi.inspect(asked(1), br#"{"error":{"message":"no"}}"#);
    assert!(error.expect("readable").error_inside);
}

#[test]
fn an_answer_of_every_shape_for_every_caller() {
    let numbers = "[0.5,-1.25,1e-3]";
    for (shape, body, usage) in [
        (
            Shape::OpenAi,
            format!(
                r#"{{"data":[{{"index":1,"embedding":[9]}},{{"index":0,"embedding":{numbers}}}],
                "usage":{{"prompt_tokens":5}}}}"#
            ),
            5,
        ),
        (
            Shape::OpenAi,
            r#"{"data":[{"index":0,"embedding":"AAAAPwAAoL9vEoM6"},{"embedding":"AAAQQQ=="}],
                "usage":{"prompt_tokens":5}}"#
                .to_owned(),
            5,
        ),
        (
            Shape::Gemini,
            format!(
                r#"{{"embeddings":[{{"values":{numbers}}},{{"values":[9]}}],
                "usageMetadata":{{"promptTokenCount":5}}}}"#
            ),
            5,
        ),
        (
            Shape::Cohere,
            format!(
                r#"{{"embeddings":{{"float":[{numbers},[9]]}},
                "meta":{{"billed_units":{{"input_tokens":5.0}}}}}}"#
            ),
            5,
        ),
        (
            Shape::CohereOnBedrock,
            format!(r#"{{"embeddings":[{numbers},[9]]}}"#),
            0,
        ),
    ] {
        let answer = shape.read_answer(body.as_bytes()).expect(&body);
        let base64 = VectorForm {
            inputs: 2,
            batch: true,
            encoding: Encoding::Base64,
        };
        let out = write_vectors(OPENAI, &answer, base64, &STAMP).expect("written");
        assert_eq!(
            serde_json::from_slice::<Value>(&out).expect("JSON"),
            json!({"object": "list", "model": "asked", "data": [
                {"object": "embedding", "index": 0, "embedding": "AAAAPwAAoL9vEoM6"},
                {"object": "embedding", "index": 1, "embedding": "AAAQQQ=="}],
                "usage": {"prompt_tokens": usage, "total_tokens": usage}}),
            "{body}"
        );
        let float = VectorForm {
            encoding: Encoding::Float,
            ..base64
        };
        let out = write_vectors(OPENAI, &answer, float, &STAMP).expect("written");
        let out: Value = serde_json::from_slice(&out).expect("JSON");
        assert_eq!(
            out["data"][0]["embedding"],
            json!([0.5, -1.25, 0.001]),
            "{body}"
        );
        let out = write_vectors(Dialect::Gemini, &answer, float, &STAMP).expect("written");
        let out: Value = serde_json::from_slice(&out).expect("JSON");
        assert_eq!(out["embeddings"][0]["values"][1], json!(-1.25), "{body}");
        let out = write_vectors(Dialect::CohereV2, &answer, float, &STAMP).expect("written");
        let out: Value = serde_json::from_slice(&out).expect("JSON");
        assert_eq!(
            out["embeddings"]["float"][1][0].as_f64(),
            Some(9.0),
            "{body}"
        );
    }
    let titan =
        br#"{"embedding":[1,2],"inputTextTokenCount":3,"embeddingsByType":{"float":[1,2]}}"#;
    let answer = Shape::Titan.read_answer(titan).expect("an answer");
    let one = VectorForm::default();
    let out = write_vectors(Dialect::Gemini, &answer, one, &STAMP).expect("written");
    assert_eq!(
        out,
        br#"{"embedding":{"values":[1,2]},"usageMetadata":{"promptTokenCount":3}}"#
    );
}

#[test]
fn a_model_of_bedrock_s_is_known_by_its_maker() {
    for (model, shape) in [
        ("amazon.titan-embed-text-v2:0", Some(Shape::Titan)),
        ("amazon.titan-embed-text-v1", Some(Shape::Titan)),
        ("us.cohere.embed-v4:0", Some(Shape::CohereOnBedrock)),
        (
            "arn:aws:bedrock:eu-west-1::foundation-model/cohere.embed-english-v3",
            Some(Shape::CohereOnBedrock),
        ),
        ("amazon.titan-embed-image-v1", None),
        ("anthropic.claude-sonnet-4-5", None),
    ] {
        assert_eq!(Shape::on_bedrock(model), shape, "{model}");
    }
}

#[test]
fn only_who_has_vectors_can_carry_the_question() {
    let model = ModelName::new("m");
    let all = |caller, upstream| capabilities_for(Operation::Embed, caller, upstream, &model).set;
    for (caller, upstream, need, can) in [
        (OPENAI, OPENAI, Need::TokenInputs, true),
        (OPENAI, Dialect::Gemini, Need::Embeddings, true),
        (OPENAI, Dialect::Gemini, Need::TokenInputs, false),
        (OPENAI, Dialect::CohereV2, Need::ManyInputs, true),
        (OPENAI, Dialect::AnthropicMessages, Need::Embeddings, false),
        (Dialect::Gemini, Dialect::Gemini, Need::Images, true),
        (Dialect::Gemini, Dialect::CohereV2, Need::Images, false),
        (Dialect::Gemini, OPENAI, Need::ManyInputs, true),
    ] {
        let set = all(caller, upstream);
        assert_eq!(set.has(need), can, "{caller} to {upstream}: {need:?}");
    }
    let between = capabilities_between(OPENAI, Dialect::AnthropicMessages);
    assert!(!between.set.has(Need::Embeddings));
}

//! Requests that are signed: Bedrock by an access key of AWS'.
#![allow(
    clippy::disallowed_methods,
    reason = "what a signature says of the time is held against the wall clock it was made by"
)]

use std::time::{Duration, SystemTime};

use backstop_faultsim::{Script, Sim, Step};
use backstop_providers::{AwsKey, ToSign};
use backstop_tests::{TestGateway, secret};
use backstop_units::Secret;
use backstop_upstream::sign;
use bytes::Bytes;
use http::Request;

use crate::common::{as_scripted, ask, ask_stream, column, provider};

const ARN: &str = "arn:aws:bedrock:eu-west-1:123456789012:application-inference-profile/abc123";
const PATH: &str = "/model/arn%3Aaws%3Abedrock%3Aeu-west-1%3A123456789012%3Aapplication-inference-profile%2Fabc123/converse";
const ANSWER: &str =
    include_str!("../../../crates/dialects/fixtures/bedrock-converse/answers/text.json");

/// `bedrock` with two access keys, the first one temporary; both call `sonnet` by the ARN.
async fn start(script: Script) -> (Sim, TestGateway) {
    let sim = provider(script).await;
    let config = format!(
        r#"
        [providers.bedrock]
        base_url = "env.BEDROCK_URL"
        region = "eu-west-1"
        network_config = {{ retry_backoff_initial = 1, max_retries = 1 }}
        [[providers.bedrock.keys]]
        aliases = {{ sonnet = "{ARN}" }}
        [providers.bedrock.keys.aws]
        access_key_id = "env.AWS_KEY_ID_1"
        secret_access_key = "env.AWS_KEY_SECRET_1"
        session_token = "env.AWS_KEY_TOKEN_1"
        [[providers.bedrock.keys]]
        aliases = {{ sonnet = "{ARN}" }}
        aws = {{ access_key_id = "env.AWS_KEY_ID_2", secret_access_key = "env.AWS_KEY_SECRET_2" }}
        "#
    );
    let gateway = TestGateway::start(&config, &[("bedrock", &sim)]).await;
    (sim, gateway)
}

fn answer() -> Step {
    Step::text(200, ANSWER).header("content-type", "application/json")
}

fn refusal(status: u16, exception: &str, message: &str) -> Step {
    Step::text(status, format!(r#"{{"message":"{message}"}}"#))
        .header("content-type", "application/json")
        .header("x-amzn-errortype", exception)
}

/// Asserts that what the provider got was signed with the key `n`, over what it got, just now.
fn assert_signed(sim: &Sim, seq: u64, n: u8) {
    let attempt = sim.attempt(seq);
    let header = |name: &str| attempt.header(name).unwrap_or_default().to_owned();
    let token = (n == 1).then(|| secret("AWS_KEY_TOKEN_1"));
    assert_eq!(attempt.header("x-amz-security-token"), token.as_deref());
    let id = secret(&format!("AWS_KEY_ID_{n}"));
    let date = header("x-amz-date");
    let scope = format!("{}/eu-west-1/bedrock/aws4_request", &date[..8]);
    let more = if n == 1 { ";x-amz-security-token" } else { "" };
    let beginning = format!(
        "AWS4-HMAC-SHA256 Credential={id}/{scope}, SignedHeaders=content-type;host;x-amz-date{more}, Signature="
    );
    assert!(
        header("authorization").starts_with(&beginning),
        "{beginning}"
    );

    let key = AwsKey {
        access_key_id: Secret::new(id),
        secret_access_key: Secret::new(secret(&format!("AWS_KEY_SECRET_{n}"))),
        session_token: token.map(Secret::new),
    };
    let to_sign = ToSign {
        service: "bedrock",
        region: "eu-west-1",
        key: &key,
    };
    let same = (0..600).find_map(|age| {
        let mut request: Request<Bytes> = Request::post(sim.url() + attempt.path())
            .header("content-type", header("content-type"))
            .body(attempt.body().clone())
            .expect("a request");
        let then = SystemTime::now() - Duration::from_secs(age);
        sign(&mut request, &to_sign, then).expect("signable");
        (request.headers()["x-amz-date"] == date)
            .then(|| request.headers()["authorization"].clone())
    });
    let same = same.expect("a date of the last minutes");
    assert_eq!(same.to_str().ok(), attempt.header("authorization"));

    for (name, value) in attempt.headers() {
        let value = String::from_utf8_lossy(value.as_bytes());
        assert!(!value.contains("key-secret"), "{name}");
    }
    assert!(!String::from_utf8_lossy(attempt.body()).contains("canary"));
}

#[tokio::test]
async fn every_attempt_is_signed_afresh_for_its_region_and_service() {
    let script = Script::new()
        .step(refusal(503, "ServiceUnavailableException", "busy"))
        .step(answer());
    let (sim, gateway) = start(script).await;
    let told = gateway.chat(ask("bedrock/sonnet")).await;
    assert_eq!(told.status, 200, "{}", told.text());
    assert_eq!(told.header("x-backstop-model"), "sonnet");
    assert_eq!(column(&told.trail(), "model"), ["sonnet", "sonnet"]);
    assert!(!told.text().contains("abc123"));
    for seq in [1, 2] {
        assert_eq!(sim.attempt(seq).path(), PATH);
        assert_signed(&sim, seq, 1);
    }
    as_scripted(&sim);
}

#[tokio::test]
async fn a_refused_key_makes_room_and_its_parts_are_repeated_to_nobody() {
    let echo = format!(
        "The security token {} of {} included in the request is invalid",
        secret("AWS_KEY_TOKEN_1"),
        secret("AWS_KEY_ID_1")
    );
    let refused = refusal(403, "UnrecognizedClientException", &echo);
    let (sim, gateway) = start(Script::new().step(refused.clone()).step(answer())).await;
    let told = gateway.chat(ask("bedrock/sonnet")).await;
    assert_eq!(told.status, 200, "{}", told.text());
    let keys = column(&told.trail(), "key_name");
    assert_eq!(keys, ["bedrock-key-1", "bedrock-key-2"]);
    assert_signed(&sim, 1, 1);
    assert_signed(&sim, 2, 2);
    as_scripted(&sim);

    let invalid = refusal(400, "ValidationException", &echo);
    let (sim, gateway) = start(Script::new().step(invalid.repeat(2))).await;
    for body in [ask("bedrock/sonnet"), ask_stream("bedrock/sonnet")] {
        let told = gateway.chat(body).await;
        assert_eq!(told.status, 400, "{}", told.text());
        assert!(told.text().contains("included in the request"));
        assert!(!told.text().contains("canary"), "{}", told.text());
    }
    as_scripted(&sim);
}

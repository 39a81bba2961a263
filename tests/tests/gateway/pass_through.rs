//! Same dialect on both sides: what must change is changed, and no other byte.

use std::time::Duration;

use backstop_faultsim::{Item, Pace, Script, Sim, Step};
use backstop_tests::TestGateway;
use serde_json::Value;

use crate::common::{as_scripted, ask, ask_stream, both_dialects, provider, untouched};

/// Numbers, blanks, escapes and members that no parser would write back alike.
const ODD: &str = r#" {
  "temperature" : 1.0 , "top_p":0.10,"seed": 12345678901234567890123 ,
  "x_unknown":{"b":1E-7,"a":[ 1e300, -0.0 ,"\u00e9\/\ud83d\ude00"],"b":2},
  "fallbacks":["backup/m"],
	"model": "NAME" ,"max_tokens":064e0,
  "messages":[ {"role":"user","content":"h\u0069 there\n"} ]}
"#;

fn odd(name: &str) -> String {
    ODD.replace("064e0", "6.4e1").replace("NAME", name)
}

async fn sims(script: Script) -> (Sim, Sim) {
    (provider(script.clone()).await, provider(script).await)
}

#[tokio::test]
async fn a_request_keeps_every_byte_that_need_not_change() {
    let (openai, anthropic) = sims(Script::healthy()).await;
    let pair = [("openai", &openai), ("anthropic", &anthropic)];
    let gateway = TestGateway::start(&both_dialects(), &pair).await;
    for (path, model, sim) in [
        ("/v1/chat/completions", "openai/gpt-4o", &openai),
        ("/v1/messages", "anthropic/claude-sonnet-4-5", &anthropic),
    ] {
        let answer = gateway.post(path, odd(model)).send().await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let bare = model.split_once('/').expect("a slash").1;
        let want = odd(bare);
        let sent = sim.attempt(1).body().clone();
        let sent = std::str::from_utf8(&sent).expect("text");
        assert!(!sent.contains("fallbacks"), "{sent}");
        // Apart from the member taken out, with its comma and the blanks before it.
        let (head, tail) = want
            .split_once(r#""fallbacks":["backup/m"],"#)
            .expect("it is there");
        let squeeze = |text: &str| text.split_whitespace().collect::<String>();
        assert_eq!(squeeze(sent), squeeze(&(head.to_owned() + tail)));
        assert!(
            sent.starts_with(head.trim_end().trim_end_matches(',')),
            "{sent}"
        );
        assert!(sent.ends_with(tail.trim_start()), "{sent}");
    }
}

#[tokio::test]
async fn a_streamed_request_gains_the_question_for_usage_alone() {
    let (openai, anthropic) = sims(Script::healthy()).await;
    let pair = [("openai", &openai), ("anthropic", &anthropic)];
    let gateway = TestGateway::start(&both_dialects(), &pair).await;
    let body = r#"{"stream":true,"model":"NAME","max_tokens":1.0,"messages":[{"role":"user","content":"x"}]}"#;
    for (path, model, sim) in [
        ("/v1/chat/completions", "openai/gpt-4o", &openai),
        ("/v1/messages", "anthropic/claude-sonnet-4-5", &anthropic),
    ] {
        let answer = gateway.post(path, body.replace("NAME", model)).send().await;
        assert_eq!(answer.status, 200);
        let bare = model.split_once('/').expect("a slash").1;
        let sent = sim.attempt(1);
        let sent = std::str::from_utf8(sent.body()).expect("text");
        let want = body.replace("NAME", bare);
        if path == "/v1/messages" {
            assert_eq!(sent, want);
        } else {
            let usage = r#""stream_options":{"include_usage":true}"#;
            assert!(sent.contains(usage), "{sent}");
            assert_eq!(sent.replace(&format!(",{usage}"), ""), want);
        }
    }
}

#[tokio::test]
async fn a_whole_answer_is_equal_outside_the_one_member() {
    let body = "{\n \"id\":\"c\\u0031\", \"object\":\"chat.completion\",\"created\":1.0e9,\"model\":\"m\",\n\
        \"x\":[1e-7, 0.10],\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"hi\"},\
        \"finish_reason\":\"stop\"}] ,\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1,\"total_tokens\":2}\n}\n";
    let step = Step::text(200, body).header("content-type", "application/json");
    let openai = provider(Script::new().step(step)).await;
    let anthropic = untouched().await;
    let pair = [("openai", &openai), ("anthropic", &anthropic)];
    let gateway = TestGateway::start(&both_dialects(), &pair).await;
    let answer = gateway.chat(ask("openai/gpt-4o")).await;
    let text = answer.text();
    let at = text.find(",\"extra_fields\":").expect("the member");
    let end = text.rfind('}').expect("an end");
    let (kept, rest) = (&text[..at], &text[end..]);
    let last = body.rfind('}').expect("an end");
    assert_eq!(kept.trim_end(), body[..last].trim_end());
    assert_eq!(rest.trim_end(), body[last..].trim_end());
    let extra: Value = serde_json::from_str(text[at + ",\"extra_fields\":".len()..end].trim_end())
        .expect("an object");
    assert_eq!(extra["model_served"], "gpt-4o");
}

#[tokio::test]
async fn an_anthropic_answer_nobody_asked_the_trail_of_is_equal() {
    let body = "{\"id\":\"m1\",\"type\":\"message\", \"role\":\"assistant\",\"model\":\"c\",\
        \"content\":[{\"type\":\"text\",\"text\":\"h\\u0069\"}],\"stop_reason\":\"end_turn\",\
        \"stop_sequence\":null,\"usage\":{\"input_tokens\":1.0,\"output_tokens\":2}, \"new\":1E5}\n";
    let step = Step::text(200, body).header("content-type", "application/json");
    let anthropic = provider(Script::new().step(step)).await;
    let openai = untouched().await;
    let pair = [("openai", &openai), ("anthropic", &anthropic)];
    let gateway = TestGateway::start(&both_dialects(), &pair).await;
    let call = gateway.call("POST", "/v1/messages");
    let answer = call.body(ask("anthropic/claude").to_string()).send().await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.text(), body);
}

/// A stream with every oddity that framing allows.
const OPENAI_STREAM: &str = concat!(
    ": OPENROUTER PROCESSING\n\n",
    "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}]}\r\n\r\n",
    "data:{\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"no blank\"}}],\"x\":1.50}\n\n",
    "event: message\nid: 7\nretry: 10\ndata: {\"id\":\"c\",\ndata: \"choices\":[{\"index\":0,\"delta\":{\"content\":\" two \\u006cines\"}}]}\n\n",
    ": a comment\n: and another\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"größe\"}}]}\r\n\r\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"!\"}}]}\r\r",
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
    "data: [DONE]\n\n",
);

const ANTHROPIC_STREAM: &str = concat!(
    "event: message_start\r\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"c\",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,\"usage\":{\"input_tokens\":3,\"output_tokens\":1}}}\r\n\r\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
    ": hello\n\n",
    "event:ping\ndata:{\"type\": \"ping\"}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\ndata: \"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"h\\u0069\"}}\n\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0 }\n\n",
    "event: something_new\ndata: {\"type\":\"something_new\",\"n\":1.0}\n\n",
    "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\",\"stop_sequence\":null},\"usage\":{\"output_tokens\":4}}\n\n",
    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
);

#[tokio::test]
async fn a_stream_is_equal_however_it_is_cut_into_pieces() {
    for (path, model, stream) in [
        ("/v1/chat/completions", "openai/gpt-4o", OPENAI_STREAM),
        (
            "/v1/messages",
            "anthropic/claude-sonnet-4-5",
            ANTHROPIC_STREAM,
        ),
    ] {
        for bytes in [1, 7, 4096] {
            let pace = Pace {
                bytes,
                every: Duration::ZERO,
                head: false,
            };
            let step = Step::sse([Item::raw(stream)]).trickle(pace);
            let (openai, anthropic) = sims(Script::new().step(step)).await;
            let pair = [("openai", &openai), ("anthropic", &anthropic)];
            let gateway = TestGateway::start(&both_dialects(), &pair).await;
            let answer = gateway
                .post(path, ask_stream(model).to_string())
                .send()
                .await;
            assert_eq!(answer.status, 200, "{}", answer.text());
            assert_eq!(answer.text(), stream, "{path}, {bytes} bytes a piece");
            assert!(
                answer
                    .header("content-type")
                    .starts_with("text/event-stream")
            );
        }
    }
}

#[tokio::test]
async fn a_providers_error_keeps_its_own_members() {
    let body = r#"{"error":{"message":"no","type":"invalid_request_error","param":"messages","code":"odd","inner":{"n":1.0}}}"#;
    let step = Step::text(400, body).header("content-type", "application/json");
    let openai = provider(Script::new().step(step)).await;
    let anthropic = untouched().await;
    let pair = [("openai", &openai), ("anthropic", &anthropic)];
    let gateway = TestGateway::start(&both_dialects(), &pair).await;
    let answer = gateway.chat(ask("openai/gpt-4o")).await;
    assert_eq!(answer.status, 400);
    assert!(
        answer.text().starts_with(&body[..body.len() - 1]),
        "{}",
        answer.text()
    );
    assert_eq!(answer.json()["request_id"], answer.id());
    as_scripted(&openai);
}

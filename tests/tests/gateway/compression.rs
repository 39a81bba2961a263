//! Providers that compress what nobody asked them to compress.

use backstop_faultsim::{Coding, End, Fault, Item, Script, Step};
use backstop_tests::TestGateway;
use serde_json::json;

use crate::common::{
    as_scripted, ask, ask_stream, both_dialects, column, one, provider, three_keys, untouched,
    with_backup,
};

const CODINGS: [Coding; 3] = [Coding::Gzip, Coding::Brotli, Coding::Zstd];

#[tokio::test]
async fn an_answer_is_the_same_in_every_coding() {
    for coding in CODINGS {
        for (model, reached) in [("openai/gpt-4o", 0), ("anthropic/claude-sonnet-4-5", 1)] {
            let script = || Script::new().step(Step::ok_text("Moon.").coded(coding));
            let sims = if reached == 0 {
                [provider(script()).await, untouched().await]
            } else {
                [untouched().await, provider(script()).await]
            };
            let named = [("openai", &sims[0]), ("anthropic", &sims[1])];
            let gateway = TestGateway::start(&both_dialects(), &named).await;
            let answer = gateway
                .post("/v1/chat/completions", ask(model).to_string())
                .header("accept-encoding", "gzip, br, zstd")
                .send()
                .await;
            assert_eq!(answer.status, 200, "{}", answer.text());
            assert_eq!(answer.said(), "Moon.", "{coding:?}");
            assert_eq!(answer.header("content-encoding"), "");
            let sent = sims[reached].attempt(1);
            assert_eq!(sent.header("accept-encoding"), Some("identity"));
            sims.iter().for_each(as_scripted);
        }
    }
}

#[tokio::test]
async fn a_stream_is_passed_on_event_by_event() {
    for coding in CODINGS {
        // The provider never finishes: what the caller has, it has because it was passed on.
        let step = Step::stream_text(["Ebb", " and", " flow"]).coded(coding);
        let openai = provider(Script::new().step(step.then(End::Hang))).await;
        let gateway = TestGateway::start(&one("openai"), &[("openai", &openai)]).await;
        let body = ask_stream("openai/gpt-4o").to_string();
        let mut live = gateway.post("/v1/chat/completions", body).open().await;
        assert_eq!(live.header("content-encoding"), "");
        let mut heard = String::new();
        while heard != "Ebb and flow" {
            let event = live.event().await.expect("the stream is open");
            heard += event.json()["choices"][0]["delta"]["content"]
                .as_str()
                .unwrap_or_default();
        }
        drop(live);
    }
}

#[tokio::test]
async fn a_stream_is_the_same_to_its_last_byte() {
    for coding in CODINGS {
        let step = || Step::stream_text(["Ebb", " and", " flow"]);
        let script = Script::new().step(step()).step(step().coded(coding));
        let openai = provider(script).await;
        let gateway = TestGateway::start(&one("openai"), &[("openai", &openai)]).await;
        let mut texts = Vec::new();
        for _ in 0..2 {
            let body = ask_stream("openai/gpt-4o").to_string();
            let answer = gateway.post("/v1/chat/completions", body).send().await;
            assert_eq!(answer.status, 200, "{}", answer.text());
            // The simulator numbers its answers.
            texts.push(answer.text().replace("sim000002", "sim000001"));
        }
        assert!(texts[0].ends_with("data: [DONE]\n\n"));
        assert_eq!(texts[0], texts[1], "{coding:?}");
        as_scripted(&openai);
    }
}

#[tokio::test]
async fn an_error_is_read_through_its_coding() {
    for coding in CODINGS {
        let refusal = Step::fault(Fault::InsufficientQuota).coded(coding);
        let script = Script::new()
            .step(refusal)
            .step(Step::ok_text("paid").coded(coding));
        let openai = provider(script).await;
        let gateway = TestGateway::start(&three_keys(0), &[("openai", &openai)]).await;
        let answer = gateway.chat(ask("openai/gpt-4o")).await;
        assert_eq!(answer.said(), "paid", "{}", answer.text());
        let rows = answer.trail();
        assert_eq!(
            column(&rows, "failure_class"),
            [json!("quota"), json!(null)]
        );
        as_scripted(&openai);
    }
}

/// The head of a zstd frame and 600 blocks of 128 KiB of blanks each, in 2.4 KB.
fn bomb() -> Vec<u8> {
    let mut bomb = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 7 << 3];
    for _ in 0..600 {
        // Not the last block; a repeated byte; 128 KiB of it; a blank.
        let head: u32 = (128 * 1024) << 3 | 1 << 1;
        bomb.extend_from_slice(&head.to_le_bytes()[..3]);
        bomb.push(b' ');
    }
    bomb.extend_from_slice(&[1, 0, 0]);
    bomb
}

#[tokio::test]
async fn a_body_that_cannot_be_undone_is_a_failure_of_its_own_class() {
    let whole = || Step::ok_text("a longer answer, cut in its middle").coded(Coding::Gzip);
    let garbled = || Step::text(200, "{}").header("content-type", "application/json");
    for (what, step, class, reason, moves) in [
        (
            "cut",
            whole().end_after(60).then(End::Cut),
            "transient",
            "upstream_cut",
            true,
        ),
        (
            "ends early",
            whole().end_after(60),
            "transient",
            "upstream_cut",
            true,
        ),
        (
            "not coded",
            garbled().header("content-encoding", "gzip"),
            "malformed",
            "undecodable_body",
            false,
        ),
        (
            "nobody knows it",
            garbled().header("content-encoding", "lzma"),
            "malformed",
            "unknown_encoding",
            false,
        ),
        (
            "a bomb",
            Step::sse([Item::raw(bomb())])
                .header("content-type", "application/json")
                .header("content-encoding", "zstd"),
            "malformed",
            "oversized_answer",
            false,
        ),
    ] {
        let openai = provider(Script::new().step(step)).await;
        let backup = if moves {
            provider(Script::new().step(Step::ok_text("from the backup"))).await
        } else {
            // Its contract is not verified.
            untouched().await
        };
        let sims = [("openai", &openai), ("backup", &backup)];
        let gateway = TestGateway::start(&with_backup(0), &sims).await;
        let answer = gateway.chat(ask("chat")).await;
        assert_eq!(
            answer.status,
            if moves { 200 } else { 502 },
            "{what}: {}",
            answer.text()
        );
        let row = &answer.trail()[0];
        assert_eq!(
            (&row["failure_class"], &row["fail_reason"]),
            (&json!(class), &json!(reason)),
            "{what}"
        );
        as_scripted(&openai);
        as_scripted(&backup);
    }
}

#[tokio::test]
async fn an_error_in_an_unknown_coding_is_told_by_its_status() {
    let step = Step::fault(Fault::RateLimited).header("content-encoding", "lzma");
    let openai = provider(Script::new().step(step)).await;
    let gateway = TestGateway::start(&one("openai"), &[("openai", &openai)]).await;
    let answer = gateway.chat(ask("openai/gpt-4o")).await;
    assert_eq!(answer.status, 429, "{}", answer.text());
    assert_eq!(answer.trail()[0]["failure_class"], "rate_limit");
    as_scripted(&openai);
}

#[tokio::test]
async fn a_stream_whose_coding_breaks_after_output_ends_with_an_error() {
    for (end, reason) in [
        (&b""[..], "upstream_cut"),
        // A deflate block of the reserved type.
        (&[0x07, 0xff, 0xff][..], "undecodable_body"),
    ] {
        let head: &[u8] = &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
        let event = br#"data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"gpt-4o","choices":[{"index":0,"delta":{"content":"Ebb"},"finish_reason":null}]}"#;
        let event = [event, &b"\n\n"[..]].concat();
        let size = u16::try_from(event.len()).expect("short").to_le_bytes();
        let stored = [&[0], &size[..], &size.map(|byte| !byte)[..], &event].concat();
        let items = [
            Item::raw(head.to_vec()),
            Item::raw(stored),
            Item::raw(end.to_vec()),
        ];
        let step = Step::sse(items).header("content-encoding", "gzip");
        let openai = provider(Script::new().step(step)).await;
        let gateway = TestGateway::start(&one("openai"), &[("openai", &openai)]).await;
        let body = ask_stream("openai/gpt-4o").to_string();
        let answer = gateway.post("/v1/chat/completions", body).send().await;
        assert_eq!(answer.status, 200);
        let events = answer.events();
        assert!(
            events.last().expect("events").is_error(),
            "{}",
            answer.text()
        );
        assert!(!events.iter().any(backstop_tests::Event::is_end));
        let record = gateway.record(answer.id()).await;
        assert_eq!(record.terminal, "partial");
        assert_eq!(record.rows[0].fail_reason.as_deref(), Some(reason));
        as_scripted(&openai);
    }
}

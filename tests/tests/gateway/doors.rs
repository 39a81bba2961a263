//! Attempts that fail before, or below, HTTP: names, connections, TLS, HTTP/2. Each row says the class,
//! whether the provider can have acted on the request, and what the gateway did about it.

use backstop_faultsim::{Door, End, Script, Sim, Step};
use backstop_tests::TestGateway;
use backstop_upstream::{Options, Upstream};
use serde_json::{Value, json};

use crate::common::{as_scripted, ask, ask_stream, one, provider, with_backup};

/// A client that trusts the simulator's authority, besides the usual ones.
fn trusting(sim: &Sim) -> Upstream {
    let options = Options {
        extra_ca: sim.authority().as_bytes().to_vec(),
        ..Options::default()
    };
    Upstream::new(options).expect("an authority of the simulator's own")
}

fn facts(row: &Value) -> String {
    let word = |name: &str| row[name].as_str().unwrap_or("-").to_owned();
    let words = ["failure_class", "fail_reason", "upstream_phase", "outcome"];
    words.map(word).join(" ")
}

/// The facts of each row are the expected ones; all that are not are told.
fn as_expected(told: &[(String, String, &str)]) {
    let wrong: Vec<_> = told
        .iter()
        .filter(|(_, found, expected)| found != expected)
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test]
async fn a_provider_that_cannot_be_reached_is_passed_by() {
    let mut told = Vec::new();
    for (door, expected) in [
        (
            Door::UnknownAuthority,
            "unknown tls_untrusted not_sent failed",
        ),
        (Door::OtherName, "unknown tls_name_mismatch not_sent failed"),
        (Door::CutHandshake, "transient tls_failure not_sent failed"),
        (Door::NoTls, "transient tls_failure not_sent failed"),
    ] {
        let openai = provider(Script::new().door(door)).await;
        let backup = provider(Script::new().step(Step::ok_text("from the backup"))).await;
        let sims = [("openai", &openai), ("backup", &backup)];
        let upstream = trusting(&openai);
        let gateway = TestGateway::with_upstream(&with_backup(0), &sims, upstream).await;
        let answer = gateway.chat(ask("chat")).await;
        assert_eq!(answer.said(), "from the backup", "{door:?}");
        assert_eq!(answer.header("x-backstop-action"), "fallback");
        told.push((format!("{door:?}"), facts(&answer.trail()[0]), expected));
        as_scripted(&openai);
        as_scripted(&backup);
    }
    as_expected(&told);
}

#[tokio::test]
async fn a_name_that_leads_nowhere_and_a_port_that_refuses_are_passed_by() {
    let refusing = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener.local_addr().expect("a bound socket")
    };
    let mut told = Vec::new();
    for (url, expected) in [
        (
            "https://nowhere.invalid".to_owned(),
            "transient dns_failure not_sent failed",
        ),
        (
            format!("http://{refusing}"),
            "transient connect_refused not_sent failed",
        ),
    ] {
        let backup = provider(Script::new().step(Step::ok_text("from the backup"))).await;
        let config = with_backup(0).replace("\"env.OPENAI_URL\"", &format!("\"{url}\""));
        let gateway = TestGateway::start(&config, &[("backup", &backup)]).await;
        let answer = gateway.chat(ask("chat")).await;
        assert_eq!(answer.said(), "from the backup", "{url}");
        told.push((url, facts(&answer.trail()[0]), expected));
        as_scripted(&backup);
    }
    as_expected(&told);
}

#[tokio::test]
async fn a_provider_behind_tls_and_http2_is_a_provider() {
    for door in [Door::Tls, Door::Http2] {
        for stream in [false, true] {
            let openai = provider(Script::healthy().door(door)).await;
            let sims = [("openai", &openai)];
            let gateway =
                TestGateway::with_upstream(&one("openai"), &sims, trusting(&openai)).await;
            let body = if stream {
                ask_stream("openai/m")
            } else {
                ask("openai/m")
            };
            for _ in 0..2 {
                let answer = gateway.chat(body.clone()).await;
                assert_eq!(answer.status, 200, "{door:?}: {}", answer.text());
            }
            assert_eq!(openai.connection_count(), 1, "{door:?}");
        }
    }
}

/// What nobody processed may be sent again, also where twice sent would be twice done; what
/// somebody may have processed may not.
#[tokio::test]
async fn only_what_was_provably_not_processed_is_repeated_without_asking() {
    let mut told = Vec::new();
    for (end, status, expected) in [
        (End::Goaway, 200, "transient not_processed not_sent failed"),
        (End::Refuse, 200, "transient not_processed not_sent failed"),
        (End::Cut, 502, "transient reset_before_headers sent failed"),
        (
            End::Reset,
            502,
            "transient reset_before_headers sent failed",
        ),
    ] {
        let script = Script::new().door(Door::Http2).step(Step::silent(end));
        let openai = provider(if status == 200 {
            script.step(Step::json(200, response()))
        } else {
            script
        })
        .await;
        let config = one("openai").replace("{ ", "{ max_retries = 1, ");
        let sims = [("openai", &openai)];
        let gateway = TestGateway::with_upstream(&config, &sims, trusting(&openai)).await;
        let body = json!({"model": "openai/m", "input": "Say something.", "store": true});
        let call = gateway.post("/v1/responses", body.to_string());
        let answer = call.send().await;
        assert_eq!(answer.status, status, "{end:?}: {}", answer.text());
        let record = gateway.record(answer.id()).await.to_json();
        told.push((
            format!("{end:?}"),
            facts(&record["attempt_trail"][0]),
            expected,
        ));
        as_scripted(&openai);
    }
    as_expected(&told);
}

fn response() -> Value {
    json!({"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": "completed",
        "output": [{"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": "Something.", "annotations": []}]}],
        "usage": {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}})
}

#[tokio::test]
async fn a_stream_cut_by_goaway_ends_as_any_cut_stream() {
    let mut told = Vec::new();
    for (pieces, status, expected) in [
        (0, 200, "transient upstream_cut headers failed"),
        (2, 200, "transient upstream_cut output partial"),
    ] {
        let step = if pieces == 0 {
            Step::sse([]).then(End::Goaway)
        } else {
            Step::stream_text(["Hel", "lo"]).then(End::Goaway)
        };
        let openai = provider(Script::new().door(Door::Http2).step(step)).await;
        let backup = provider(if pieces == 0 {
            Script::new().step(Step::stream_text(["from the backup"]))
        } else {
            Script::new()
        })
        .await;
        let sims = [("openai", &openai), ("backup", &backup)];
        let upstream = trusting(&openai);
        let gateway = TestGateway::with_upstream(&with_backup(0), &sims, upstream).await;
        let call = gateway.post("/v1/chat/completions", ask_stream("chat").to_string());
        let answer = call.send().await;
        assert_eq!(answer.status, status);
        let whole = answer.text().contains("[DONE]");
        assert_eq!(whole, pieces == 0, "{}", answer.text());
        let record = gateway.record(answer.id()).await.to_json();
        told.push((
            pieces.to_string(),
            facts(&record["attempt_trail"][0]),
            expected,
        ));
        as_scripted(&openai);
        as_scripted(&backup);
    }
    as_expected(&told);
}

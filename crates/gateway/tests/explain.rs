//! `backstop explain` as a command: what it prints, and with which exit status it ends.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Command, Output};
use std::thread::JoinHandle;

const CONFIG: &str = r#"
    [providers.openai]
    keys = [{ name = "one", value = "sk-canary-0000" }]
    [routes]
    chat = ["openai/gpt-4o", "openai/gpt-4o-mini"]
"#;

fn explain(args: &[&str]) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("backstop.toml"), CONFIG).expect("written");
    std::fs::write(path("body.json"), r#"{"model":"chat","messages":[]}"#).expect("written");
    std::fs::write(path("bad.json"), r#"{"messages":[]}"#).expect("written");
    let output = Command::new(env!("CARGO_BIN_EXE_backstop"))
        .current_dir(folder.path())
        .env_remove("BACKSTOP_CONFIG")
        .arg("explain")
        .args(args)
        .output()
        .expect("the binary starts");
    for text in [&output.stdout, &output.stderr] {
        assert!(!String::from_utf8_lossy(text).contains("canary"), "no key");
    }
    output
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Answers one request for metrics with `answer`.
fn once(answer: &'static str) -> (String, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    let served = std::thread::spawn(move || {
        let (mut peer, _) = listener.accept().expect("a caller");
        let mut asked = [0; 1024];
        let read = peer.read(&mut asked).expect("a request");
        peer.write_all(answer.as_bytes()).expect("an answer");
        text(&asked[..read])
    });
    (url, served)
}

#[test]
fn a_plan_is_printed() {
    for args in [
        &["--route", "chat"][..],
        &["--route", "chat", "--request", "body.json"],
        &[
            "--route",
            "chat",
            "--request",
            "body.json",
            "--dialect",
            "anthropic-messages",
        ],
        &["--route", "openai/o3", "--config", "backstop.toml"],
    ] {
        let output = explain(args);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert!(text(&output.stdout).contains("no running gateway asked"));
    }
}

#[test]
fn what_stands_for_nothing_ends_with_two_and_its_nearest() {
    for (args, says) in [
        (&["--route", "chta"][..], "did you mean chat?"),
        (&["--route", "opnai/gpt-4o"], "did you mean openai/gpt-4o?"),
        (
            &["--route", "nothing"],
            "neither a route nor provider/model",
        ),
        (
            &["--route", "chat", "--request", "bad.json"],
            "bad.json holds no request",
        ),
        (
            &["--route", "chat", "--metrics", "localhost"],
            "expected http://HOST:PORT",
        ),
        (&["--request", "body.json"], "--route"),
    ] {
        let output = explain(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(
            text(&output.stderr).contains(says),
            "{}",
            text(&output.stderr)
        );
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}

#[test]
fn a_running_gateway_tells_of_the_present() {
    let (url, served) = once(
        "HTTP/1.0 200 OK\r\ncontent-type: text/plain\r\n\r\n\
         backstop_breaker_state{channel=\"openai/gpt-4o\",state=\"half_open\"} 1\n",
    );
    let output = explain(&["--route", "chat", "--json", "--metrics", &url]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(
        served
            .join()
            .expect("asked")
            .starts_with("GET /metrics HTTP/1.0\r\n")
    );
    let plan: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(plan["channels"][0]["breaker"]["state"], "half_open");
    assert_eq!(plan["channels"][1]["breaker"]["state"], "unused");
}

#[test]
fn a_gateway_that_does_not_tell_leaves_the_plan_and_ends_with_one() {
    let (refuses, served) = once("HTTP/1.1 404 Not Found\r\n\r\n");
    for url in ["http://127.0.0.1:9", &refuses] {
        let output = explain(&["--route", "chat", "--metrics", url]);
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stdout).contains("gave no metrics"));
        assert!(
            text(&output.stdout).contains("openai/gpt-4o-mini"),
            "the plan all the same"
        );
        assert!(text(&output.stderr).contains("gave no metrics"));
    }
    assert!(!served.join().expect("asked").is_empty());
}

//! The binary with a ledger: killed under load, asked while it runs and after it died, and searched
//! for what must not be in it.

#![allow(
    clippy::disallowed_methods,
    reason = "a process of its own is waited for in real time"
)]

use std::collections::HashSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

type Seen = Arc<Mutex<HashSet<(String, u32)>>>;

/// A provider that writes down which attempts it saw. The first key has no quota left.
fn provider(seen: &Seen) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let seen = Arc::clone(seen);
    thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let seen = Arc::clone(&seen);
            thread::spawn(move || answer(socket, &seen));
        }
    });
    port
}

fn answer(socket: TcpStream, seen: &Seen) -> Option<()> {
    let mut reader = BufReader::new(socket.try_clone().ok()?);
    let mut socket = socket;
    loop {
        let (_, headers) = head(&mut reader)?;
        let header = |name: &str| {
            let found = headers.iter().find(|(found, _)| found == name);
            found.map(|(_, value)| value.clone()).unwrap_or_default()
        };
        let mut body = vec![0; header("content-length").parse().ok()?];
        reader.read_exact(&mut body).ok()?;
        let attempt = header("x-backstop-attempt").parse().expect("a number");
        let send = (header("x-request-id"), attempt);
        seen.lock().expect("no panic").insert(send);
        let spent = header("authorization").ends_with("one");
        let (status, body) = if spent {
            let error = r#"{"error":{"message":"canary-message","type":"insufficient_quota","code":"insufficient_quota"}}"#;
            ("429 Too Many Requests", error)
        } else {
            thread::sleep(Duration::from_millis(3));
            let message = r#"{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"canary-answer"}}],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}"#;
            ("200 OK", message)
        };
        let length = body.len();
        write!(
            socket,
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        )
        .ok()?;
    }
}

/// The first line and the headers of a message.
fn head(reader: &mut impl BufRead) -> Option<(String, Vec<(String, String)>)> {
    let mut first = String::new();
    reader.read_line(&mut first).ok().filter(|read| *read > 0)?;
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            return Some((first, headers));
        };
        headers.push((name.to_ascii_lowercase(), value.to_owned()));
    }
}

struct Gateway(Child, String);

impl Gateway {
    fn start(config: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_backstop"))
            .args(["serve", "--log", "trace", "--config"])
            .arg(config)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("standard output");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        let address = line.trim().rsplit_once("http://").expect("an address").1;
        Self(child, address.to_owned())
    }

    /// Ends it without a word.
    fn kill(&mut self) {
        self.0.kill().expect("killed");
        self.0.wait().expect("gone");
    }

    fn terminate(mut self) {
        let id = self.0.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &id]).status();
        assert!(sent.expect("kill").success());
        assert!(self.0.wait().expect("gone").success());
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// One request; the status, where an answer came.
fn ask(address: &str, id: &str) -> Option<u16> {
    let mut socket = TcpStream::connect(address).ok()?;
    let body = r#"{"model":"fast","messages":[{"role":"user","content":"canary-prompt"}]}"#;
    let length = body.len();
    write!(
        socket,
        "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n\
         x-request-id: {id}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
    .ok()?;
    let mut answer = String::new();
    socket.read_to_string(&mut answer).ok()?;
    answer.split(' ').nth(1)?.parse().ok()
}

fn backstop(config: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_backstop"))
        .args(arguments)
        .arg("--config")
        .arg(config)
        .output()
        .expect("the binary")
}

fn told(config: &Path, arguments: &[&str]) -> String {
    let output = backstop(config, arguments);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

fn journeys(config: &Path) -> Vec<serde_json::Value> {
    let json = told(config, &["journeys", "--json", "--limit", "100000"]);
    serde_json::from_str(&json).expect("JSON")
}

fn configure(folder: &Path, port: u16, ledger: &str) -> PathBuf {
    let file = folder.join("backstop.toml");
    let text = format!(
        "[server]\nlisten = \"127.0.0.1:0\"\n{ledger}\n[routes]\nfast = \"openai/m\"\n\
         [providers.openai]\nbase_url = \"http://127.0.0.1:{port}/v1\"\n\
         keys = [{{ name = \"first\", value = \"sk-canary-one\" }}, \
         {{ name = \"second\", value = \"sk-canary-two\", weight = 0.001 }}]\n"
    );
    fs::write(&file, text).expect("a file");
    file
}

#[test]
fn what_the_provider_saw_is_in_the_ledger_however_often_the_gateway_is_killed() {
    let folder = tempfile::tempdir().expect("a folder");
    let seen = Seen::default();
    let port = provider(&seen);
    let config = configure(folder.path(), port, "[ledger]\npath = \"evidence\"");
    let answered = Mutex::new(HashSet::new());
    for kill in 0..5_u64 {
        let mut gateway = Gateway::start(&config);
        let address = gateway.1.clone();
        thread::scope(|scope| {
            for caller in 0..4 {
                let (address, answered) = (&address, &answered);
                scope.spawn(move || {
                    for number in 0.. {
                        let id = format!("k{kill}-{caller}-{number}");
                        match ask(address, &id) {
                            Some(200) => answered.lock().expect("no panic").insert(id),
                            Some(_) => false,
                            None => return,
                        };
                    }
                });
            }
            thread::sleep(Duration::from_millis(60 + kill * 37));
            gateway.kill();
        });
    }
    for start in ["dead", "started again"] {
        if start != "dead" {
            Gateway::start(&config).terminate();
        }
        let mut rows = HashSet::new();
        let mut served = HashSet::new();
        for journey in journeys(&config) {
            let id = journey["request_id"].as_str().expect("an id");
            let reason = journey["terminal_reason"].as_str().expect("never open");
            if reason == "success" {
                served.insert(id.to_owned());
            }
            for row in journey["attempt_trail"].as_array().into_iter().flatten() {
                assert!(row["outcome"].is_string(), "{row}");
                let attempt = row["attempt"].as_u64().expect("a send");
                rows.insert((id.to_owned(), u32::try_from(attempt).expect("small")));
            }
        }
        let seen = seen.lock().expect("no panic");
        assert!(!seen.is_empty());
        let missing: Vec<_> = seen.difference(&rows).collect();
        assert!(missing.is_empty(), "{start}: {missing:?}");
        let answered = answered.lock().expect("no panic");
        let untold: Vec<_> = answered.difference(&served).collect();
        assert!(untold.is_empty(), "{start}: {untold:?}");
    }
    for file in fs::read_dir(folder.path().join("evidence")).expect("a folder") {
        let path = file.expect("a file").path();
        let bytes = fs::read(&path).expect("readable");
        let canary = bytes.windows(6).any(|piece| piece == b"canary");
        assert!(!canary, "{}", path.display());
    }
}

#[test]
fn a_journey_is_shown_and_found_while_the_gateway_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let port = provider(&Seen::default());
    let config = configure(folder.path(), port, "[ledger]\npath = \"evidence\"");
    let gateway = Gateway::start(&config);
    // Which key is met first is up to chance; each of them is, before long.
    let id = (0..200)
        .map(|number| format!("walk-{number}"))
        .find(|id| {
            assert_eq!(ask(&gateway.1, id), Some(200));
            told(&config, &["trail", id]).contains("quota")
        })
        .expect("one that met the spent key");
    let page = told(&config, &["trail", &id]);
    for part in [
        "route fast",
        "key first",
        "key second",
        "HTTP 429",
        "success",
        "3 in, 2 out",
    ] {
        assert!(page.contains(part), "{part}\n{page}");
    }
    assert!(
        !page.contains('\u{1b}'),
        "colours are for terminals\n{page}"
    );
    let list = told(&config, &["journeys", "--class", "quota", "--since", "1h"]);
    assert!(list.contains(&id), "{list}");
    let list = told(&config, &["journeys", "--outcome", "exhausted"]);
    assert_eq!(list, "");
    let metrics = {
        let mut socket = TcpStream::connect(&gateway.1).expect("a gateway");
        write!(
            socket,
            "GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
        )
        .expect("sent");
        let mut page = String::new();
        socket.read_to_string(&mut page).expect("a page");
        page
    };
    assert!(metrics.contains("backstop_ledger_failing 0"), "{metrics}");
    // A second gateway is told so.
    let second = backstop(&config, &["serve"]);
    assert_eq!(second.status.code(), Some(1));
    let error = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(error.contains("in use by another gateway"), "{error}");
    gateway.terminate();
    let left: Vec<_> = fs::read_dir(folder.path().join("evidence"))
        .expect("a folder")
        .map(|file| file.expect("a file").file_name())
        .filter(|name| name.to_string_lossy().ends_with(".segment"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
    assert!(told(&config, &["trail", &id]).contains("key second"));
}

#[test]
fn questions_that_lead_nowhere_say_why() {
    let folder = tempfile::tempdir().expect("a folder");
    let none = configure(folder.path(), 1, "");
    for (arguments, code, words) in [
        (&["trail", "x"][..], 2, "no ledger is configured"),
        (&["journeys"], 2, "no ledger is configured"),
        (
            &["journeys", "--since", "soon"],
            2,
            "expected 30s, 15m, 1h or 7d",
        ),
        (
            &["trail", "x", "--ledger", "/nowhere"],
            1,
            "holds no ledger",
        ),
    ] {
        let output = backstop(&none, arguments);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{error}");
        assert!(error.contains(words), "{error}");
    }
    let config = configure(folder.path(), 1, "[ledger]\npath = \"evidence\"");
    Gateway::start(&config).terminate();
    let output = backstop(&config, &["trail", "nobody"]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("knows no request nobody"), "{error}");
}

//! The binary over TLS: what it shows, what it refuses to show, and how it follows a renewed
//! certificate.

#![allow(
    clippy::disallowed_methods,
    reason = "a process of its own is waited for in real time"
)]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

type Pair = CertifiedKey<KeyPair>;

fn pair() -> Pair {
    generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate")
}

/// Puts the pair where the configuration says, each file replaced whole.
fn put(folder: &Path, certificate: &str, key: &str) {
    for (name, text) in [("tls.key", key), ("tls.pem", certificate)] {
        let new = folder.join("new");
        fs::write(&new, text).expect("a file");
        fs::rename(&new, folder.join(name)).expect("in its place");
    }
}

fn config(folder: &Path) -> std::path::PathBuf {
    let file = folder.join("backstop.toml");
    let text = "[server]\nlisten = \"127.0.0.1:0\"\n\
                tls = { certificate = \"file.tls.pem\", private_key = \"file.tls.key\" }\n\
                [providers.ollama]\n";
    fs::write(&file, text).expect("a file");
    file
}

fn backstop(command: &str, file: &Path) -> Command {
    let mut backstop = Command::new(env!("CARGO_BIN_EXE_backstop"));
    backstop.arg(command).arg("--config").arg(file);
    backstop
}

/// A gateway that ends with its test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What a client that trusts `pair` alone gets, or why not; with the protocol that was agreed.
fn get(port: u16, pair: &Pair, alpn: &[&str]) -> Result<(String, Option<Vec<u8>>), String> {
    let mut roots = RootCertStore::empty();
    roots.add(pair.cert.der().clone()).expect("a root");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the usual versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    let name = ServerName::try_from("localhost").expect("a name");
    let client =
        ClientConnection::new(Arc::new(config), name).map_err(|error| error.to_string())?;
    let socket = TcpStream::connect(("127.0.0.1", port)).map_err(|error| error.to_string())?;
    socket
        .set_read_timeout(Some(Duration::from_secs(10)))
        .expect("a timeout");
    let mut stream = StreamOwned::new(client, socket);
    while stream.conn.is_handshaking() {
        stream
            .conn
            .complete_io(&mut stream.sock)
            .map_err(|error| error.to_string())?;
    }
    let agreed = stream.conn.alpn_protocol().map(<[u8]>::to_vec);
    if agreed.as_deref() == Some(b"h2") {
        return Ok((String::new(), agreed));
    }
    let request = "GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    stream
        .write_all(request.as_bytes())
        .map_err(|error| error.to_string())?;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    Ok((String::from_utf8_lossy(&answer).into_owned(), agreed))
}

#[test]
fn it_is_served_over_tls_and_follows_a_renewed_certificate() {
    let folder = tempfile::tempdir().expect("a folder");
    let (first, second) = (pair(), pair());
    put(
        folder.path(),
        &first.cert.pem(),
        &first.signing_key.serialize_pem(),
    );
    let file = config(folder.path());
    let mut child = backstop("serve", &file)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary");
    let out = child.stdout.take().expect("piped");
    let _running = Running(child);
    let mut line = String::new();
    BufReader::new(out)
        .read_line(&mut line)
        .expect("its address");
    assert!(
        line.starts_with("listening on https://127.0.0.1:"),
        "{line}"
    );
    let port = line.trim().rsplit(':').next().expect("a port");
    let port: u16 = port.parse().expect("a number");

    let (answer, agreed) = get(port, &first, &["http/1.1"]).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert_eq!(agreed.as_deref(), Some(&b"http/1.1"[..]));
    let (_, agreed) = get(port, &first, &["h2", "http/1.1"]).expect("a handshake");
    assert_eq!(agreed.as_deref(), Some(&b"h2"[..]));
    // Plain HTTP gets nothing.
    let mut plain = TcpStream::connect(("127.0.0.1", port)).expect("a listener");
    plain
        .write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .expect("written");
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP/"));

    // A pair that does not fit is passed over; the next one that does is shown.
    put(
        folder.path(),
        &second.cert.pem(),
        &first.signing_key.serialize_pem(),
    );
    put(
        folder.path(),
        &second.cert.pem(),
        &second.signing_key.serialize_pem(),
    );
    let shown = (0..200).any(|_| {
        sleep(Duration::from_millis(50));
        get(port, &second, &["http/1.1"]).is_ok()
    });
    assert!(shown, "the renewed certificate is never shown");
}

#[test]
fn a_pair_that_does_not_fit_is_refused_by_check_and_serve() {
    let folder = tempfile::tempdir().expect("a folder");
    let (first, second) = (pair(), pair());
    put(
        folder.path(),
        &first.cert.pem(),
        &second.signing_key.serialize_pem(),
    );
    let file = config(folder.path());
    for command in ["check", "serve"] {
        let output = backstop(command, &file).output().expect("the binary");
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.contains("server.tls"), "{told}");
        assert!(!told.contains("PRIVATE"), "{told}");
    }
}

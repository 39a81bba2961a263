//! Peers: the other ends of connections, played by the test itself.

use std::io;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::mpsc;

use crate::{BoxIo, Clocks, Dial, Dialing, Io, Options, Upstream};

pub(super) const CLOCKS: Clocks = Clocks {
    connect: Duration::from_secs(5),
    headers: Duration::from_secs(60),
};

/// A small request to `uri`.
pub(super) fn post(uri: &str) -> Request<Bytes> {
    Request::post(uri)
        .header("authorization", "Bearer key")
        .body(Bytes::from_static(b"{\"a\":1}"))
        .unwrap()
}

/// A client and the peer it dials, both in memory.
pub(super) fn in_memory(options: Options) -> (Upstream, Peer) {
    let (tx, rx) = mpsc::channel(256);
    let dialled = Arc::new(Mutex::new(Vec::new()));
    let dial = MemoryDial {
        tx,
        dialled: Arc::clone(&dialled),
    };
    let upstream = Upstream::with_dial(options, Arc::new(dial)).unwrap();
    (upstream, Peer { rx, dialled })
}

/// A client whose every dial fails with what `error` makes, or never ends.
pub(super) fn failing(error: impl Fn() -> Option<io::Error> + Send + Sync + 'static) -> Upstream {
    struct Failing<F>(F);
    impl<F: Fn() -> Option<io::Error> + Send + Sync + 'static> Dial for Failing<F> {
        fn dial(&self, _: &str, _: u16) -> Dialing {
            let error = (self.0)();
            Box::pin(async move {
                match error {
                    Some(error) => Err(error),
                    None => std::future::pending().await,
                }
            })
        }
    }
    Upstream::with_dial(Options::default(), Arc::new(Failing(error))).unwrap()
}

struct MemoryDial {
    tx: mpsc::Sender<DuplexStream>,
    dialled: Arc<Mutex<Vec<String>>>,
}

impl Dial for MemoryDial {
    fn dial(&self, host: &str, port: u16) -> Dialing {
        self.dialled.lock().unwrap().push(format!("{host} {port}"));
        let tx = self.tx.clone();
        Box::pin(async move {
            let (ours, theirs) = tokio::io::duplex(64 * 1024);
            let refused = |_| io::Error::from(io::ErrorKind::ConnectionRefused);
            tx.send(theirs).await.map_err(refused)?;
            Ok(Box::new(ours) as BoxIo)
        })
    }
}

/// Accepts what the client dials.
pub(super) struct Peer {
    rx: mpsc::Receiver<DuplexStream>,
    dialled: Arc<Mutex<Vec<String>>>,
}

impl Peer {
    pub(super) async fn accept_raw(&mut self) -> DuplexStream {
        self.rx.recv().await.expect("the client lives")
    }

    pub(super) async fn accept(&mut self) -> Conn<DuplexStream> {
        Conn(self.accept_raw().await)
    }

    /// Whom the client dialled, in order.
    pub(super) fn dialled(&self) -> Vec<String> {
        self.dialled.lock().unwrap().clone()
    }
}

/// One accepted HTTP/1.1 connection.
pub(super) struct Conn<T>(pub(super) T);

impl<T: Io> Conn<T> {
    /// Reads one request with a `content-length`; the answer is its head.
    pub(super) async fn request(&mut self) -> String {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(self.0.read_u8().await.expect("a request arrives"));
        }
        let head = String::from_utf8(head).unwrap();
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))
            .map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).await.unwrap();
        head
    }

    pub(super) async fn write(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).await.unwrap();
        self.0.flush().await.unwrap();
    }

    /// Reads a request and answers it whole.
    pub(super) async fn serve(&mut self) {
        self.request().await;
        self.write(OK).await;
    }

    /// Waits until the client has closed its end.
    pub(super) async fn closed(&mut self) {
        let mut rest = [0; 64];
        while !matches!(self.0.read(&mut rest).await, Ok(0) | Err(_)) {}
    }
}

pub(super) const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

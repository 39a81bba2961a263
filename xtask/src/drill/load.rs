//! Load that comes at its own pace, whether answers come or not, as many callers would send it.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

/// Requests that may be under way at one time. Beyond it the driver itself would be the fault.
const AT_ONCE: usize = 4000;

/// How long an answer may take. Above every wait that a drill configures.
const PATIENCE: Duration = Duration::from_secs(60);

/// Requests of one kind at a steady rate.
#[derive(Debug)]
pub(crate) struct Load {
    address: String,
    model: &'static str,
    rate: u32,
    /// How many were sent; the next one has this number.
    sent: AtomicU64,
    idle: Mutex<Vec<TcpStream>>,
}

/// What came of it.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// Requests sent.
    pub(crate) sent: u64,
    /// Requests that were due while too many were under way. A drill with such is no drill.
    pub(crate) withheld: u64,
    /// Answers by status; 0 is none at all.
    pub(crate) statuses: BTreeMap<u16, u64>,
    /// How long answers took.
    pub(crate) took: Vec<Duration>,
    /// From the first request to the last answer.
    pub(crate) lasted: Duration,
    /// The most that a request was sent too late.
    pub(crate) lateness: Duration,
}

impl Load {
    pub(crate) fn new(address: &str, model: &'static str, rate: u32) -> Arc<Self> {
        Self::from(address, model, rate, 0)
    }

    /// As [`new`](Self::new), counting from `first`.
    pub(crate) fn from(address: &str, model: &'static str, rate: u32, first: u64) -> Arc<Self> {
        Arc::new(Self {
            address: address.to_owned(),
            model,
            rate,
            sent: AtomicU64::new(first),
            idle: Mutex::default(),
        })
    }

    /// How many were sent so far. The id of each is `<model>-<number>`, from 0.
    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Ordering::SeqCst)
    }

    /// Sends until `over`, then waits for the answers that are due.
    pub(crate) async fn drive(self: Arc<Self>, over: impl Future<Output = ()>) -> Report {
        let began = Instant::now();
        let mut over = std::pin::pin!(over);
        let mut under_way: JoinSet<(u16, Duration)> = JoinSet::new();
        let mut report = Report::default();
        for number in 0_u64.. {
            let due = began + Duration::from_secs_f64(number as f64 / f64::from(self.rate));
            tokio::select! {
                biased;
                () = &mut over => break,
                () = sleep_until(due) => {}
            }
            report.lateness = report.lateness.max(due.elapsed());
            while let Some(answered) = under_way.try_join_next() {
                report.book(answered);
            }
            if under_way.len() == AT_ONCE {
                report.withheld += 1;
                continue;
            }
            let number = self.sent.fetch_add(1, Ordering::SeqCst);
            let load = Arc::clone(&self);
            under_way.spawn(async move {
                let began = Instant::now();
                let asked = timeout(PATIENCE, load.ask(number)).await;
                let status = asked.ok().and_then(Result::ok).unwrap_or(0);
                (status, began.elapsed())
            });
        }
        while let Some(answered) = under_way.join_next().await {
            report.book(answered);
        }
        report.sent = self.sent();
        report.lasted = began.elapsed();
        report
    }

    /// Asks once and answers with the status.
    async fn ask(&self, number: u64) -> io::Result<u16> {
        let kept = self.idle().pop();
        if let Some(mut socket) = kept
            && let Ok(status) = self.ask_on(&mut socket, number).await
        {
            self.idle().push(socket);
            return Ok(status);
        }
        // A kept connection may have been closed meanwhile. The gateway then had nothing of it.
        let mut socket = TcpStream::connect(&self.address).await?;
        socket.set_nodelay(true)?;
        let status = self.ask_on(&mut socket, number).await?;
        self.idle().push(socket);
        Ok(status)
    }

    async fn ask_on(&self, socket: &mut TcpStream, number: u64) -> io::Result<u16> {
        let model = self.model;
        let body = json!({
            "model": model,
            "messages": [{"role": "user", "content": "Say hello."}],
        })
        .to_string();
        let request = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: gateway\r\n\
             content-type: application/json\r\nx-request-id: {model}-{number}\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        );
        socket.write_all(request.as_bytes()).await?;
        read_answer(socket).await
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<TcpStream>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Report {
    fn book(&mut self, answered: Result<(u16, Duration), tokio::task::JoinError>) {
        let (status, took) = answered.unwrap_or_default();
        *self.statuses.entry(status).or_default() += 1;
        self.took.push(took);
    }

    /// The share of requests that were answered with 200.
    pub(crate) fn success(&self) -> f64 {
        let good = self.statuses.get(&200).copied().unwrap_or(0);
        good as f64 / (self.sent.max(1)) as f64
    }
}

/// Reads one answer whose length is announced, and answers with its status.
async fn read_answer(socket: &mut TcpStream) -> io::Result<u16> {
    let mut bytes = Vec::with_capacity(2048);
    loop {
        if socket.read_buf(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if let Some((status, whole)) = measure(&bytes)
            && bytes.len() >= whole
        {
            return Ok(status);
        }
    }
}

/// The status of an answer and the length of all of it, once its head is there.
fn measure(bytes: &[u8]) -> Option<(u16, usize)> {
    let head = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let text = std::str::from_utf8(&bytes[..head]).ok()?;
    let status = text.split(' ').nth(1)?.parse().ok()?;
    let length = text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let named = name.eq_ignore_ascii_case("content-length");
        named.then(|| value.trim().parse::<usize>().ok())?
    });
    Some((status, head + 4 + length.unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_measured_by_its_head() {
        for (bytes, want) in [
            ("HTTP/1.1 200 OK\r\ncontent-le", None),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe",
                Some((200, 43)),
            ),
            ("HTTP/1.1 503 Busy\r\n\r\n", Some((503, 21))),
        ] {
            assert_eq!(measure(bytes.as_bytes()), want, "{bytes}");
        }
    }
}

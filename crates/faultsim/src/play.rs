//! One connection from its first byte to its end: receive a request, play its answer, repeat.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::answer::{Answer, Body, Request};
use crate::attempt::{Ending, Progress};
use crate::conn::{Conn, PeerClose};
use crate::desk::{Arrived, Desk};
use crate::encode::Encoder;
use crate::receive::{NoRequest, receive};
use crate::script::{End, Fill, Pace};

/// Serves one connection. `reset` arms the stream to be reset when it is dropped.
pub(crate) async fn serve<I>(io: I, reset: impl FnOnce(&I), desk: Arc<Desk>)
where
    I: AsyncRead + AsyncWrite + Unpin,
{
    let (notice, closed) = watch::channel(None);
    let connection = desk.connect();
    let mut conn = Conn::new(io, notice);
    let mut idle = None;
    let mut nth = 0;
    loop {
        let received = match receive(&mut conn, idle).await {
            Ok(received) => received,
            Err(NoRequest::Left | NoRequest::Idle) => break,
            Err(NoRequest::Broken(broken)) => {
                desk.broken(broken);
                let refusal =
                    b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
                let _ = conn.write(refusal).await;
                conn.end().await;
                conn.peer_close().await;
                break;
            }
        };
        nth += 1;
        let arrived = desk.arrive(received, connection, nth, closed.clone());
        let after = play(&mut conn, &arrived).await;
        desk.ended(&arrived.attempt);
        match after {
            After::Keep(limit) => idle = limit,
            After::Linger => {
                conn.end().await;
                conn.peer_close().await;
                break;
            }
            After::Reset => {
                reset(conn.io());
                break;
            }
            After::Gone => break,
        }
    }
    if let Some(close) = conn.closed() {
        desk.closed(connection, close);
    }
}

/// What becomes of the connection after an answer.
enum After {
    /// It waits for a next request, for so long if limited.
    Keep(Option<Duration>),
    /// Our side ends; the peer's end is waited for.
    Linger,
    Reset,
    /// The peer has left.
    Gone,
}

/// How the body is delimited.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Framing {
    Length(usize),
    Chunked,
    /// The script's own headers say.
    Scripted,
}

/// What is asked, as answers are made from it.
pub(crate) fn request(arrived: &Arrived) -> Request<'_> {
    let attempt = &arrived.attempt;
    Request {
        method: attempt.method(),
        path: attempt.path(),
        asked: &arrived.asked,
        body: attempt.body(),
        seq: attempt.seq(),
        fill: Fill {
            n: 0,
            model: arrived.asked.model.as_deref().unwrap_or_default(),
            key: attempt.presented().map_or("", |key| key.expose()),
        },
    }
}

/// The answer: the step's, or what there is without one.
pub(crate) fn answer<'a>(request: &Request<'a>, arrived: &'a Arrived) -> Answer<'a> {
    match arrived.step.as_deref() {
        Some(step) => request.scripted(step),
        None if arrived.healthy => request.healthy(),
        None => request.unexpected(),
    }
}

async fn play<I>(conn: &mut Conn<I>, arrived: &Arrived) -> After
where
    I: AsyncRead + AsyncWrite + Unpin,
{
    let attempt = &arrived.attempt;
    let request = request(arrived);
    let fill = request.fill;
    let step = arrived.step.as_deref();
    let answer = answer(&request, arrived);
    let last_wish = attempt
        .header("connection")
        .is_some_and(|value| value.to_ascii_lowercase().contains("close"));
    let then = step.map_or(End::Close, |step| step.then);
    let keep = step
        .and_then(|step| step.keep_alive)
        .unwrap_or(arrived.keep_alive);
    let mut player = Player {
        conn,
        progress: &arrived.progress,
        fill,
        then,
        keep: keep && !last_wish && then == End::Close,
        left: step.and_then(|step| step.end_after),
        pace: step.and_then(|step| step.trickle),
        framing: Framing::Chunked,
        dribbled: false,
    };
    let delay = step.map_or(Duration::ZERO, |step| step.delay);
    match player.run(&answer, delay).await {
        Ok(After::Keep(_)) => After::Keep(step.and_then(|step| step.close_idle_after)),
        Ok(after) => after,
        Err(closed) => {
            arrived.progress.send_modify(|progress| {
                progress.ended = Some(closed.at);
                progress.ending = Some(Ending::PeerClosed);
            });
            After::Gone
        }
    }
}

struct Player<'a, I> {
    conn: &'a mut Conn<I>,
    progress: &'a watch::Sender<Progress>,
    fill: Fill<'a>,
    then: End,
    keep: bool,
    /// Bytes of the body still to send before the ending strikes.
    left: Option<usize>,
    pace: Option<Pace>,
    framing: Framing,
    /// Whether a slow write has begun.
    dribbled: bool,
}

impl<I: AsyncRead + AsyncWrite + Unpin> Player<'_, I> {
    async fn run(&mut self, answer: &Answer<'_>, delay: Duration) -> Result<After, PeerClose> {
        self.progress
            .send_modify(|progress| progress.status = answer.status);
        if !delay.is_zero() {
            self.conn.wait_until(Instant::now() + delay).await?;
        }
        let Some(status) = answer.status else {
            return self.end_silent().await;
        };
        self.framing = self.framing_of(answer);
        let head = self.head(status, answer);
        match &answer.body {
            Body::Whole(bytes) => self.whole(&head, bytes).await?,
            Body::Items(items) => {
                self.write_head(&head).await?;
                let mut encoder = answer.coding.map(Encoder::new);
                'items: for item in items.iter() {
                    for n in 0..item.repeat {
                        if !item.delay.is_zero() {
                            self.conn.wait_until(Instant::now() + item.delay).await?;
                        }
                        let mut bytes = item.bytes(Fill { n, ..self.fill });
                        if let Some(encoder) = &mut encoder {
                            bytes = encoder.piece(&bytes);
                        }
                        self.piece(&bytes).await?;
                        if self.left == Some(0) {
                            break 'items;
                        }
                    }
                }
                if let (Some(encoder), End::Close) = (&mut encoder, self.then) {
                    self.piece(&encoder.end()).await?;
                }
            }
        }
        let filler = if matches!(answer.body, Body::Items(_)) {
            b":"
        } else {
            b" "
        };
        self.end(filler).await
    }

    fn framing_of(&self, answer: &Answer<'_>) -> Framing {
        let scripted = answer.headers.iter().any(|(name, _)| {
            name.eq_ignore_ascii_case("content-length")
                || name.eq_ignore_ascii_case("transfer-encoding")
        });
        match &answer.body {
            _ if scripted => Framing::Scripted,
            Body::Whole(bytes) => match (self.then, self.left) {
                (End::Close, left) => Framing::Length(left.unwrap_or(usize::MAX).min(bytes.len())),
                (End::Trickle, _) | (_, None) => Framing::Chunked,
                (_, Some(_)) => Framing::Length(bytes.len()),
            },
            Body::Items(_) => Framing::Chunked,
        }
    }

    fn head(&self, status: u16, answer: &Answer<'_>) -> String {
        let reason = StatusCode::from_u16(status)
            .ok()
            .and_then(|code| code.canonical_reason());
        let mut head = format!("HTTP/1.1 {status} {}\r\n", reason.unwrap_or_default());
        for (name, value) in &answer.headers {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        match self.framing {
            // A 204 or 304 has no body and must not announce one (RFC 9110, 8.6).
            Framing::Length(_) if matches!(status, 204 | 304) => {}
            Framing::Length(length) => {
                let _ = write!(head, "content-length: {length}\r\n");
            }
            Framing::Chunked => head.push_str("transfer-encoding: chunked\r\n"),
            Framing::Scripted => {}
        }
        if !self.keep {
            head.push_str("connection: close\r\n");
        }
        head.push_str("\r\n");
        head
    }

    /// Head and body in one write where nothing asks for more.
    async fn whole(&mut self, head: &str, body: &[u8]) -> Result<(), PeerClose> {
        let body = &body[..self.left.unwrap_or(usize::MAX).min(body.len())];
        if self.pace.is_some() || body.is_empty() {
            self.write_head(head).await?;
            return self.piece(body).await;
        }
        let mut all = head.as_bytes().to_vec();
        all.extend_from_slice(&self.framed(body));
        self.conn.write(&all).await?;
        let now = Instant::now();
        self.progress.send_modify(|progress| {
            progress.started = Some(now);
            progress.first_body = Some(now);
            progress.body_bytes = body.len();
        });
        Ok(())
    }

    async fn write_head(&mut self, head: &str) -> Result<(), PeerClose> {
        if self.pace.is_some_and(|pace| pace.head) {
            self.dribble(head.as_bytes()).await?;
        } else {
            self.conn.write(head.as_bytes()).await?;
        }
        self.progress
            .send_modify(|progress| progress.started = Some(Instant::now()));
        Ok(())
    }

    /// One piece of the body, up to where the ending strikes.
    async fn piece(&mut self, bytes: &[u8]) -> Result<(), PeerClose> {
        let bytes = &bytes[..self.left.unwrap_or(usize::MAX).min(bytes.len())];
        if bytes.is_empty() {
            return Ok(());
        }
        let framed = self.framed(bytes);
        if self.pace.is_some() {
            self.dribble(&framed).await?;
        } else {
            self.conn.write(&framed).await?;
        }
        self.left = self.left.map(|left| left - bytes.len());
        self.progress.send_modify(|progress| {
            progress.first_body.get_or_insert_with(Instant::now);
            progress.body_bytes += bytes.len();
        });
        Ok(())
    }

    fn framed<'b>(&self, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        if self.framing != Framing::Chunked {
            return Cow::Borrowed(bytes);
        }
        let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
        chunk.extend_from_slice(bytes);
        chunk.extend_from_slice(b"\r\n");
        Cow::Owned(chunk)
    }

    /// Writes slowly, cutting across chunks and lines without regard.
    async fn dribble(&mut self, bytes: &[u8]) -> Result<(), PeerClose> {
        let pace = self.pace.unwrap_or_default();
        for part in bytes.chunks(pace.bytes.max(1)) {
            if self.dribbled {
                self.conn.wait_until(Instant::now() + pace.every).await?;
            }
            self.dribbled = true;
            self.conn.write(part).await?;
        }
        Ok(())
    }

    async fn end(&mut self, filler: &[u8; 1]) -> Result<After, PeerClose> {
        match self.then {
            End::Close => {
                if self.framing == Framing::Chunked {
                    self.conn.write(b"0\r\n\r\n").await?;
                }
                self.ended(Ending::Complete);
                Ok(if self.keep {
                    After::Keep(None)
                } else {
                    After::Linger
                })
            }
            End::Cut | End::Goaway | End::Refuse => Ok(self.cut()),
            End::Reset => Ok(self.reset()),
            End::Hang => Err(self.conn.peer_close().await),
            End::Trickle => {
                self.dribbled = true;
                let pace = self.pace.unwrap_or_default();
                let filler = filler.repeat(pace.bytes.max(1));
                let filler = self.framed(&filler).into_owned();
                loop {
                    self.conn.wait_until(Instant::now() + pace.every).await?;
                    self.conn.write(&filler).await?;
                }
            }
        }
    }

    /// The endings of an attempt that gets no response.
    async fn end_silent(&mut self) -> Result<After, PeerClose> {
        match self.then {
            End::Close | End::Cut | End::Goaway | End::Refuse => Ok(self.cut()),
            End::Reset => Ok(self.reset()),
            End::Hang => Err(self.conn.peer_close().await),
            End::Trickle => {
                // A head that never ends: bytes keep coming, headers never do.
                self.dribble(b"HTTP/1.1 200 OK\r\nx-filler: ").await?;
                loop {
                    self.dribble(b".").await?;
                }
            }
        }
    }

    fn cut(&self) -> After {
        self.ended(Ending::Cut);
        After::Linger
    }

    fn reset(&self) -> After {
        self.ended(Ending::Reset);
        After::Reset
    }

    fn ended(&self, ending: Ending) {
        self.progress.send_modify(|progress| {
            progress.ended = Some(Instant::now());
            progress.ending = Some(ending);
        });
    }
}

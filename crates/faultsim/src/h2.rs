//! One HTTP/2 connection: streams side by side, and the ways in which streams and connections end.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::answer::{Answer, Body};
use crate::attempt::Ending;
use crate::conn::{CloseKind, PeerClose};
use crate::desk::{Arrived, Desk};
use crate::encode::Encoder;
use crate::play;
use crate::receive::{Broken, Received};
use crate::script::{End, Fill};

/// What becomes of the connection after a stream.
enum After {
    Keep,
    /// It is left with GOAWAY, streams up to this one counting as processed. The stream, if begun,
    /// is kept until then: dropped, it would be reset first.
    GoAway(u32, Option<SendStream<Bytes>>),
    Reset,
}

/// Serves one connection. `reset` arms the stream to be reset when it is dropped.
pub(crate) async fn serve<I>(io: I, reset: impl FnOnce(&I), desk: Arc<Desk>)
where
    I: AsyncRead + AsyncWrite + Unpin + Send,
{
    let connection = desk.connect();
    let (notice, closed) = watch::channel(None);
    let shared = Shared(Arc::new(Mutex::new(io)));
    let mut wire = shared.clone();
    let Ok(mut conn) = h2::server::handshake(shared).await else {
        return desk.broken(Broken::Head);
    };
    let mut streams = JoinSet::new();
    let mut nth = 0;
    let (after, _respond) = loop {
        tokio::select! {
            exchange = conn.accept() => match exchange {
                Some(Ok((request, respond))) => {
                    nth += 1;
                    let (desk, closed) = (Arc::clone(&desk), closed.clone());
                    streams.spawn(async move {
                        exchange_of(request, respond, connection, nth, &desk, closed).await
                    });
                }
                _ => break (After::Keep, None),
            },
            Some(done) = streams.join_next(), if !streams.is_empty() => match done {
                Ok((After::Keep, _)) | Err(_) => {}
                Ok((after, respond)) => break (after, Some(respond)),
            },
        }
    };
    match after {
        After::Keep => {
            let close = PeerClose {
                at: Instant::now(),
                how: CloseKind::Fin,
            };
            let _ = notice.send(Some(close));
            desk.closed(connection, close);
        }
        After::GoAway(last, _stream) => {
            // What was said before goes out first.
            poll_fn(|cx| {
                let _ = conn.poll_closed(cx);
                Poll::Ready(())
            })
            .await;
            // By hand: the library cannot leave out a stream that it has let in (RFC 9113, 6.8).
            drop(conn);
            let mut frame = vec![0, 0, 8, 7, 0, 0, 0, 0, 0];
            frame.extend_from_slice(&last.to_be_bytes());
            frame.extend_from_slice(&0_u32.to_be_bytes());
            let _ = wire.write_all(&frame).await;
            let _ = wire.shutdown().await;
        }
        After::Reset => {
            reset(&wire.0.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }
}

/// One stream from its request to its end.
async fn exchange_of(
    request: http::Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    connection: u64,
    nth: u64,
    desk: &Desk,
    closed: watch::Receiver<Option<PeerClose>>,
) -> (After, SendResponse<Bytes>) {
    let arrived = Instant::now();
    let (head, mut incoming) = request.into_parts();
    let mut body = Vec::new();
    while let Some(piece) = incoming.data().await {
        let Ok(piece) = piece else {
            desk.broken(Broken::Unfinished);
            return (After::Keep, respond);
        };
        body.extend_from_slice(&piece);
        let _ = incoming.flow_control().release_capacity(piece.len());
    }
    let target = head
        .uri
        .path_and_query()
        .map_or("/", |target| target.as_str());
    let received = Received {
        arrived,
        method: head.method.to_string(),
        target: target.to_owned(),
        headers: head.headers,
        body: body.into(),
    };
    let arrived = desk.arrive(received, connection, nth, closed);
    let after = answer(&mut respond, &arrived).await;
    desk.ended(&arrived.attempt);
    (after, respond)
}

async fn answer(respond: &mut SendResponse<Bytes>, arrived: &Arrived) -> After {
    let request = play::request(arrived);
    let answer = play::answer(&request, arrived);
    let step = arrived.step.as_deref();
    let then = step.map_or(End::Close, |step| step.then);
    let id = respond.stream_id().as_u32();
    arrived
        .progress
        .send_modify(|progress| progress.status = answer.status);
    if let Some(delay) = step.map(|step| step.delay).filter(|delay| !delay.is_zero()) {
        sleep(delay).await;
    }
    let Some(status) = answer.status else {
        return match then {
            End::Hang | End::Trickle => {
                let _ = poll_fn(|cx| respond.poll_reset(cx)).await;
                left(arrived);
                After::Keep
            }
            End::Refuse => {
                respond.send_reset(Reason::REFUSED_STREAM);
                ended(arrived, Ending::Cut, After::Keep)
            }
            // Streams of a client are odd: the one before is the last that was processed.
            End::Goaway => ended(
                arrived,
                Ending::Cut,
                After::GoAway(id.saturating_sub(2), None),
            ),
            End::Reset => ended(arrived, Ending::Reset, After::Reset),
            End::Close | End::Cut => {
                respond.send_reset(Reason::INTERNAL_ERROR);
                ended(arrived, Ending::Cut, After::Keep)
            }
        };
    };
    let Ok(mut stream) = respond.send_response(head(status, &answer), false) else {
        left(arrived);
        return After::Keep;
    };
    arrived
        .progress
        .send_modify(|progress| progress.started = Some(Instant::now()));
    let mut left_to_send = step.and_then(|step| step.end_after).unwrap_or(usize::MAX);
    if pieces(
        &mut stream,
        arrived,
        &answer,
        request.fill,
        then,
        &mut left_to_send,
    )
    .await
    .is_err()
    {
        left(arrived);
        return After::Keep;
    }
    match then {
        End::Close => {
            let _ = stream.send_data(Bytes::new(), true);
            ended(arrived, Ending::Complete, After::Keep)
        }
        End::Cut | End::Refuse => {
            stream.send_reset(Reason::INTERNAL_ERROR);
            ended(arrived, Ending::Cut, After::Keep)
        }
        End::Goaway => ended(arrived, Ending::Cut, After::GoAway(id, Some(stream))),
        End::Reset => ended(arrived, Ending::Reset, After::Reset),
        End::Hang | End::Trickle => {
            let _ = poll_fn(|cx| stream.poll_reset(cx)).await;
            left(arrived);
            After::Keep
        }
    }
}

fn head(status: u16, answer: &Answer<'_>) -> http::Response<()> {
    let mut head = http::Response::builder().status(status);
    for (name, value) in &answer.headers {
        head = head.header(&**name, &**value);
    }
    head.body(()).unwrap_or_else(|_| {
        let mut bare = http::Response::new(());
        *bare.status_mut() = http::StatusCode::INTERNAL_SERVER_ERROR;
        bare
    })
}

/// Sends the body, up to where the ending strikes.
async fn pieces(
    stream: &mut SendStream<Bytes>,
    arrived: &Arrived,
    answer: &Answer<'_>,
    fill: Fill<'_>,
    then: End,
    left: &mut usize,
) -> Result<(), h2::Error> {
    let mut send = |bytes: &[u8]| {
        let bytes = &bytes[..bytes.len().min(*left)];
        if bytes.is_empty() {
            return Ok(());
        }
        *left -= bytes.len();
        arrived.progress.send_modify(|progress| {
            progress.first_body.get_or_insert_with(Instant::now);
            progress.body_bytes += bytes.len();
        });
        stream.send_data(Bytes::copy_from_slice(bytes), false)
    };
    match &answer.body {
        Body::Whole(bytes) => send(bytes),
        Body::Items(items) => {
            let mut encoder = answer.coding.map(Encoder::new);
            for item in items.iter() {
                for n in 0..item.repeat {
                    if !item.delay.is_zero() {
                        sleep(item.delay).await;
                    }
                    let mut bytes = item.bytes(Fill { n, ..fill });
                    if let Some(encoder) = &mut encoder {
                        bytes = encoder.piece(&bytes);
                    }
                    send(&bytes)?;
                }
            }
            match (&mut encoder, then) {
                (Some(encoder), End::Close) => send(&encoder.end()),
                _ => Ok(()),
            }
        }
    }
}

fn ended(arrived: &Arrived, ending: Ending, after: After) -> After {
    arrived.progress.send_modify(|progress| {
        progress.ended = Some(Instant::now());
        progress.ending = Some(ending);
    });
    after
}

fn left(arrived: &Arrived) {
    ended(arrived, Ending::PeerClosed, After::Keep);
}

/// A byte stream that can still be written to when the library is done with it.
struct Shared<I>(Arc<Mutex<I>>);

impl<I> Clone for Shared<I> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<I: Unpin> Shared<I> {
    fn with<T>(&self, work: impl FnOnce(Pin<&mut I>) -> T) -> T {
        let mut io = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        work(Pin::new(&mut *io))
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for Shared<I> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        space: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.with(|io| io.poll_read(cx, space))
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for Shared<I> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.with(|io| io.poll_write(cx, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.with(|io| io.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.with(|io| io.poll_shutdown(cx))
    }
}

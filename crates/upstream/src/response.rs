//! The provider's answer: its head, and a body read chunk by chunk.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use backstop_classifier::{Clock, Sent, Transport};
use backstop_units::ByteCount;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode, Version};
use http_body::Body;
use hyper::body::Incoming;
use tokio::time::timeout;

use crate::coding::{Broken, Codings, Given, Unknown};
use crate::failure::{self, Failure};
use crate::lanes::Place;

/// A response whose head has arrived. Dropping it before its body has ended closes the HTTP/1.1
/// connection, or resets the HTTP/2 stream, at once; reading the body to its end gives the
/// connection back to the pool.
#[derive(Debug)]
pub struct Response {
    /// The status as the provider sent it, 3xx included.
    pub status: StatusCode,
    /// The headers as the provider sent them. Trailers never join them.
    pub headers: HeaderMap,
    /// The version the connection spoke.
    pub version: Version,
    /// Whether the request was handed to a connection that had been in the pool before.
    pub reused: bool,
    /// How long the request waited for the new connection it got (name, TCP, TLS); `None` when it
    /// got a pooled one.
    pub connect: Option<Duration>,
    /// How long the head took, counted from the moment the connection had the request.
    pub head: Duration,
    pub(crate) body: Incoming,
    pub(crate) reading: Reading,
    pub(crate) _place: Place,
}

impl Response {
    /// The next piece of the body, never empty, its content codings undone; `None` after its end or
    /// after a failure. Trailers are read and thrown away. Cancel-safe: a dropped future loses
    /// nothing.
    pub async fn chunk(&mut self) -> Option<Result<Bytes, Failure>> {
        poll_fn(|cx| self.poll_chunk(cx)).await
    }

    /// [`chunk`](Self::chunk) for those who poll by hand.
    pub fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Failure>>> {
        loop {
            match &mut self.reading {
                Reading::Over => return Poll::Ready(None),
                Reading::Unknown => return self.fail(Transport::UnknownCoding),
                Reading::Plain => return self.poll_piece(cx),
                Reading::Coded(codings) => match codings.next() {
                    Ok(Given::Piece(bytes)) => return Poll::Ready(Some(Ok(bytes))),
                    Ok(Given::End) => self.reading = Reading::Over,
                    Err(Broken::Garbled) => return self.fail(Transport::BrokenCoding),
                    Err(Broken::Cut) => return self.fail(Transport::CutBody),
                    Ok(Given::Hungry) => {
                        let read = ready!(self.poll_piece(cx));
                        let Reading::Coded(codings) = &mut self.reading else {
                            return Poll::Ready(read);
                        };
                        match read {
                            Some(Ok(bytes)) => codings.put(bytes),
                            Some(Err(failure)) => return Poll::Ready(Some(Err(failure))),
                            None => codings.end(),
                        }
                    }
                },
            }
        }
    }

    /// The next piece as it arrived. A failure, or the end of a plain body, ends the reading.
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Failure>>> {
        loop {
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data()
                        && !data.is_empty()
                    {
                        return Poll::Ready(Some(Ok(data)));
                    }
                }
                Some(Err(error)) => return self.fail(failure::in_body(&error)),
                None => {
                    if matches!(self.reading, Reading::Plain) {
                        self.reading = Reading::Over;
                    }
                    return Poll::Ready(None);
                }
            }
        }
    }

    /// Ends the reading.
    fn fail(&mut self, transport: Transport) -> Poll<Option<Result<Bytes, Failure>>> {
        self.reading = Reading::Over;
        Poll::Ready(Some(Err(self.failure(transport))))
    }

    /// Reads the body whole, up to `limit` (of what it decodes to), with at most `idle` between two pieces (and before the
    /// first). What lies beyond the limit, or after the idle clock ran out, is not waited for: the
    /// exchange is cancelled. A slow trickle resets the idle clock; the caller's deadline, by
    /// dropping this future, ends that.
    pub async fn body_bounded(mut self, limit: ByteCount, idle: Duration) -> Collected {
        let limit = limit.as_len();
        let mut read = Gathered::Nothing;
        let end = loop {
            match timeout(idle, self.chunk()).await {
                Err(_) => {
                    break End::Cut(self.failure(Transport::Timeout(Clock::Idle)));
                }
                Ok(None) => break End::Whole,
                Ok(Some(Err(failure))) => break End::Cut(failure),
                Ok(Some(Ok(mut chunk))) => {
                    let room = limit - read.len();
                    if chunk.len() > room {
                        chunk.truncate(room);
                        read.add(chunk);
                        break End::OverLimit;
                    }
                    read.add(chunk);
                }
            }
        };
        Collected {
            bytes: read.into_bytes(),
            end,
        }
    }

    fn failure(&self, transport: Transport) -> Failure {
        Failure {
            transport,
            sent: Sent::Maybe,
            reused: self.reused,
            connect: self.connect,
        }
    }
}

/// How the body is read.
#[derive(Debug)]
pub(crate) enum Reading {
    /// As it arrives.
    Plain,
    /// Its codings are undone on the way.
    Coded(Box<Codings>),
    /// Not at all: it is in a coding that we do not know.
    Unknown,
    /// It has ended, in one way or another.
    Over,
}

impl Reading {
    /// How a body under these headers is read.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        match Codings::named(headers) {
            Ok(None) => Self::Plain,
            Ok(Some(codings)) => Self::Coded(Box::new(codings)),
            Err(Unknown) => Self::Unknown,
        }
    }
}

/// A body that was read whole, or as far as it went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collected {
    /// What was read, at most the limit.
    pub bytes: Bytes,
    /// How it ended.
    pub end: End,
}

/// How the reading of a body ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The provider finished it.
    Whole,
    /// It broke off, or its idle clock ran out.
    Cut(Failure),
    /// It is longer than the limit.
    OverLimit,
}

/// Pieces of a body. Most short bodies are one piece, which is kept without a copy.
enum Gathered {
    Nothing,
    One(Bytes),
    Many(BytesMut),
}

impl Gathered {
    fn len(&self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::One(bytes) => bytes.len(),
            Self::Many(bytes) => bytes.len(),
        }
    }

    fn add(&mut self, chunk: Bytes) {
        match self {
            Self::Nothing => *self = Self::One(chunk),
            Self::One(first) => {
                let mut all = BytesMut::with_capacity((first.len() + chunk.len()) * 2);
                all.extend_from_slice(first);
                all.extend_from_slice(&chunk);
                *self = Self::Many(all);
            }
            Self::Many(all) => all.extend_from_slice(&chunk),
        }
    }

    fn into_bytes(self) -> Bytes {
        match self {
            Self::Nothing => Bytes::new(),
            Self::One(bytes) => bytes,
            Self::Many(bytes) => bytes.freeze(),
        }
    }
}

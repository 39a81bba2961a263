//! One request, sent once: the pool, the two clocks before the head, and the reading of failures.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use backstop_classifier::{Clock, Sent, Transport};
use bytes::Bytes;
use http::{Extensions, Request};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::client::legacy::connect::{CaptureConnection, capture_connection};
use hyper_util::client::legacy::{self, Client};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::time::{Instant, sleep, timeout_at};

use crate::connect::{Connector, Lineage};
use crate::dial::{Dial, TcpDial};
use crate::failure::{Failure, before_response};
use crate::headers::outgoing;
use crate::lanes::{Lanes, Place};
use crate::options::{Error, Options};
use crate::response::{Reading, Response};
use crate::trust;

/// How many lanes there are, each [`Options::exchanges_per_lane`] wide. An empty lane costs a few
/// hundred bytes; with the default width, 6,400 exchanges are under way before one is overfilled.
const LANES: usize = 64;

/// What one HTTP/2 stream may have in flight towards us before we read it. A caller who stalls
/// holds at most this much of a provider's answer here.
const STREAM_WINDOW: u32 = 256 * 1024;

/// What all streams of an HTTP/2 connection may have in flight together. Wide enough for a hundred
/// stalled ones, so that they cannot stop the stream beside them.
const CONNECTION_WINDOW: u32 = 128 * STREAM_WINDOW;

/// How often an HTTP/2 connection with streams on it is pinged, and how long it may take to answer,
/// before a peer that vanished is given up. Our choice; well above any round trip.
const PING: Duration = Duration::from_secs(30);

type Http = Client<Connector, Full<Bytes>>;

/// The longest time for two steps of an attempt. The clocks of the steps after them (first output,
/// idle) run where the body is understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clocks {
    /// From asking for a connection to having one: name, TCP and TLS together.
    pub connect: Duration,
    /// From handing the request to the connection to the response head. Writing the request body
    /// is part of it.
    pub headers: Duration,
}

/// The client: pools of connections to all providers. Cheap to share by reference; one for the
/// process.
#[derive(Debug)]
pub struct Upstream {
    pooled: Lanes<Http>,
    fresh: Lanes<Http>,
    max_connection_age: Duration,
}

impl Upstream {
    /// A client over TCP.
    ///
    /// # Errors
    /// When the extra CA of the options cannot be used.
    pub fn new(options: Options) -> Result<Self, Error> {
        Self::with_dial(options, Arc::new(TcpDial::default()))
    }

    /// A client over streams that `dial` opens.
    ///
    /// # Errors
    /// When the extra CA of the options cannot be used.
    #[expect(clippy::needless_pass_by_value, reason = "options are given for good")]
    pub fn with_dial(options: Options, dial: Arc<dyn Dial>) -> Result<Self, Error> {
        let connector = Connector::new(dial, trust::client_config(&options)?);
        let pooled = (0..LANES).map(|_| {
            builder()
                .pool_idle_timeout(options.idle_timeout)
                .pool_max_idle_per_host(options.max_idle_per_host)
                .build(connector.clone())
        });
        let fresh = builder().pool_max_idle_per_host(0).build(connector.clone());
        Ok(Self {
            pooled: Lanes::new(pooled, options.exchanges_per_lane),
            fresh: Lanes::new([fresh], usize::MAX),
            max_connection_age: options.max_connection_age,
        })
    }

    /// Sends the request once and waits for the head of the answer. The URI must be absolute; the
    /// connection goes to its authority and nowhere else, and `host` says the same. Headers that
    /// belong to the connection are replaced, `accept-encoding` becomes `identity`.
    ///
    /// Dropping the future cancels the exchange.
    ///
    /// # Errors
    /// When no head arrived, see [`Failure`]. A status is never an error.
    pub async fn send(
        &self,
        request: Request<Bytes>,
        clocks: &Clocks,
    ) -> Result<Response, Failure> {
        self.open(request, clocks).await?.head().await
    }

    /// As [`send`](Self::send), on a connection opened for this request and closed after it: for
    /// the one repeat after a [stale connection](Failure::is_stale_connection), which must not
    /// meet the next stale one.
    ///
    /// # Errors
    /// As for [`send`](Self::send).
    pub async fn send_fresh(
        &self,
        request: Request<Bytes>,
        clocks: &Clocks,
    ) -> Result<Response, Failure> {
        self.open_fresh(request, clocks).await?.head().await
    }

    /// The first half of [`send`](Self::send), for those who want to know of the connection before
    /// the answer: returns when a connection has the request.
    ///
    /// # Errors
    /// When none could be had, see [`Failure`].
    pub async fn open(
        &self,
        request: Request<Bytes>,
        clocks: &Clocks,
    ) -> Result<Exchange, Failure> {
        let (http, place) = self.pooled.enter();
        self.exchange(http, place, request, clocks).await
    }

    /// The first half of [`send_fresh`](Self::send_fresh).
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub async fn open_fresh(
        &self,
        request: Request<Bytes>,
        clocks: &Clocks,
    ) -> Result<Exchange, Failure> {
        let (http, place) = self.fresh.enter();
        self.exchange(http, place, request, clocks).await
    }

    async fn exchange(
        &self,
        http: &Http,
        place: Place,
        request: Request<Bytes>,
        clocks: &Clocks,
    ) -> Result<Exchange, Failure> {
        let started = Instant::now();
        let mut request = outgoing(request);
        let mut captured = capture_connection(&mut request);
        let mut answer = http.request(request);
        let early = tokio::select! {
            biased;
            answered = &mut answer => Some(answered),
            () = handed_over(&mut captured) => None,
            () = sleep(clocks.connect) => {
                return Err(Failure::unsent(Transport::Timeout(Clock::Connect)));
            }
        };
        let handed = Handed::read(&captured, started, self.max_connection_age);
        drop(captured);
        match early {
            Some(Err(error)) => Err(handed.failed(&error)),
            early => Ok(Exchange {
                early: early.and_then(Result::ok),
                answer,
                handed,
                headers: clocks.headers,
                place,
            }),
        }
    }
}

/// A request that a connection has, and whose answer is still to come. Dropping it cancels it.
pub struct Exchange {
    /// The answer, where it was faster than we looked.
    early: Option<http::Response<Incoming>>,
    answer: legacy::ResponseFuture,
    handed: Handed,
    headers: Duration,
    place: Place,
}

impl Exchange {
    /// Whether the connection had been in the pool before.
    #[must_use]
    pub const fn reused(&self) -> bool {
        self.handed.reused
    }

    /// How long the request waited for the new connection it got; `None` when it got a pooled one.
    #[must_use]
    pub const fn connect(&self) -> Option<Duration> {
        self.handed.connect
    }

    /// Waits for the head of the answer, as long as the headers clock allows from the moment at
    /// which the connection got the request.
    ///
    /// # Errors
    /// When no head arrived, see [`Failure`]. A status is never an error.
    pub async fn head(self) -> Result<Response, Failure> {
        let Self {
            early,
            answer,
            handed,
            headers,
            place,
        } = self;
        let answered = match early {
            Some(response) => Ok(response),
            None => match timeout_at(handed.at + headers, answer).await {
                Ok(answered) => answered,
                Err(_) => return Err(handed.failure(Transport::Timeout(Clock::Headers))),
            },
        };
        match answered {
            Ok(response) => Ok(handed.response(response, place)),
            Err(error) => Err(handed.failed(&error)),
        }
    }
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange")
            .field("reused", &self.reused())
            .field("connect", &self.connect())
            .finish_non_exhaustive()
    }
}

fn builder() -> legacy::Builder {
    let mut builder = Client::builder(TokioExecutor::new());
    builder
        // A repeat is an attempt, and attempts are the policy's to decide and the ledger's to show.
        .retry_canceled_requests(false)
        .pool_timer(TokioTimer::new())
        .timer(TokioTimer::new())
        .http2_initial_stream_window_size(STREAM_WINDOW)
        .http2_initial_connection_window_size(CONNECTION_WINDOW)
        .http2_keep_alive_interval(PING)
        .http2_keep_alive_timeout(PING);
    builder
}

async fn handed_over(captured: &mut CaptureConnection) {
    drop(captured.wait_for_connection_metadata().await);
}

/// What is known about the connection that got the request.
struct Handed {
    lineage: Option<Arc<Lineage>>,
    at: Instant,
    is_h2: bool,
    reused: bool,
    connect: Option<Duration>,
}

impl Handed {
    /// Reads it at the moment of handing over, books the use, and lets an old connection retire.
    fn read(captured: &CaptureConnection, started: Instant, max_age: Duration) -> Self {
        let at = Instant::now();
        let metadata = captured.connection_metadata();
        let mut handed = Self {
            lineage: None,
            at,
            is_h2: false,
            reused: false,
            connect: None,
        };
        if let Some(connected) = metadata.as_ref() {
            let mut extras = Extensions::new();
            connected.get_extras(&mut extras);
            handed.lineage = extras.remove::<Arc<Lineage>>();
            handed.is_h2 = connected.is_negotiated_h2();
            if let Some(lineage) = &handed.lineage {
                handed.reused = !lineage.enter(started);
                if at.duration_since(lineage.opened()) >= max_age {
                    connected.poison();
                }
            }
            if !handed.reused {
                handed.connect = Some(at.duration_since(started));
            }
        }
        handed
    }

    fn response(self, response: http::Response<Incoming>, place: Place) -> Response {
        let (head, body) = response.into_parts();
        Response {
            status: head.status,
            reading: Reading::of(&head.headers),
            headers: head.headers,
            version: head.version,
            reused: self.reused,
            connect: self.connect,
            head: self.at.elapsed(),
            body,
            _place: place,
        }
    }

    fn failed(&self, error: &legacy::Error) -> Failure {
        // Several streams share an HTTP/2 connection: its bytes say nothing about this one.
        let own = self.lineage.as_ref().filter(|_| !self.is_h2);
        let answered = own.is_some_and(|lineage| lineage.answered());
        let (transport, sent) = before_response(error, answered);
        let untouched = match &self.lineage {
            None => true,
            Some(lineage) => !lineage.wrote(),
        };
        Failure {
            sent: if untouched { Sent::Never } else { sent },
            ..self.failure(transport)
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

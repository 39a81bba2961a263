//! A stream on its way to the caller: framed, read, held back until it may commit, passed on.

use backstop_classifier::{Clock, Evidence, Kind, Transport, Verdict, classify};
use backstop_dialects::{StreamReader, StreamWriter, told_by};
use backstop_policy::{CommitChoice, Event};
use backstop_providers::Provider;
use backstop_stream::{
    Cutter, Ending, Error as FrameError, Frame, Framing, InputEnd, Meaning, Passage, Progress,
    Relay, Step, Weight,
};
use backstop_units::Moment;
use backstop_upstream::Response;
use bytes::Bytes;
use std::time::Duration;
use tokio::time::timeout;

use super::tally::Tally;
use super::{Drive, KeptError};

/// How long the provider's end of body may lag behind its end marker. The caller has everything
/// by then; waiting a moment gives the connection back to the pool.
const AFTER_DONE: Duration = Duration::from_millis(50);

/// One attempt's stream.
struct Stream {
    cutter: Cutter,
    reader: StreamReader,
    /// Present where the caller speaks another dialect.
    writer: Option<StreamWriter>,
    progress: Progress,
    tally: Tally,
    output_seen: bool,
}

/// Whether the stream goes on.
enum Flow {
    On,
    /// Reported to the machine; nothing more is to be read.
    Over,
    /// The end marker has passed.
    Done,
}

impl Drive {
    /// Relays a stream until it ends, in whichever way.
    pub(super) async fn relay_stream(
        &mut self,
        mut response: Response,
        mut kept: KeptError,
        provider: &Provider,
        framing: Framing,
    ) {
        let upstream = self.request.spoken_by(provider, &kept.channel.model);
        let translate = upstream != self.request.dialect;
        let mut stream = Stream {
            cutter: Cutter::new(framing),
            reader: StreamReader::new(upstream, translate),
            writer: translate.then(|| {
                let stamp = self.stamp(kept.channel.model.as_str());
                let usage_asked = self.request.envelope.usage_asked;
                StreamWriter::new(self.request.dialect, &stamp, usage_asked)
            }),
            progress: Progress::new(upstream.sentinel()),
            tally: Tally::new(self.holds_by_tokens(), upstream, translate),
            output_seen: false,
        };
        let idle = kept.channel.clocks.idle;
        loop {
            let Some(read) = self.next_chunk(&mut response, idle).await else {
                return self.discard();
            };
            let input = match read {
                Ok(Some(chunk)) => {
                    stream.cutter.push(chunk);
                    None
                }
                Ok(None) => Some(InputEnd::Clean),
                Err(
                    transport @ (Transport::Timeout(_)
                    | Transport::UnknownCoding
                    | Transport::BrokenCoding),
                ) => {
                    let verdict = self.transport(provider, transport);
                    self.discard();
                    return self.fail(verdict);
                }
                Err(_) => Some(InputEnd::Broken),
            };
            let flow = self
                .pass_frames(&mut stream, &mut kept, provider, input.is_some())
                .await;
            match (flow, input) {
                (Flow::Over, _) => return self.discard(),
                (Flow::Done, None) => {
                    let _ = timeout(AFTER_DONE, response.chunk()).await;
                    return self
                        .end_stream(&mut stream, provider, InputEnd::Clean)
                        .await;
                }
                (_, Some(input)) => return self.end_stream(&mut stream, provider, input).await,
                (Flow::On, None) => {}
            }
        }
    }

    /// The next bytes: `None` when the machine's clocks ended the attempt.
    async fn next_chunk(
        &mut self,
        response: &mut Response,
        idle: Duration,
    ) -> Option<Result<Option<Bytes>, Transport>> {
        let idle_until = self.now() + idle;
        loop {
            let mut wake = self.journal.journey.next_wake()?.min(idle_until);
            if let Some(commit) = self.relay.next_wake() {
                wake = wake.min(commit);
            }
            tokio::select! {
                biased;
                chunk = response.chunk() => {
                    return Some(match chunk {
                        Some(Ok(bytes)) => Ok(Some(bytes)),
                        Some(Err(failure)) => Err(failure.transport),
                        None => Ok(None),
                    });
                }
                () = self.sleep_until(wake) => {}
            }
            self.report(Event::Time);
            if !self.journal.journey.in_attempt() {
                return None;
            }
            let now = self.now();
            if now >= idle_until {
                return Some(Err(Transport::Timeout(Clock::Idle)));
            }
            if let Some(held) = self.relay.on_wake(now) {
                self.commit(now, held);
            }
        }
    }

    /// Passes on every whole frame that has arrived; at the end of the input also the last one.
    async fn pass_frames(
        &mut self,
        stream: &mut Stream,
        kept: &mut KeptError,
        provider: &Provider,
        ended: bool,
    ) -> Flow {
        loop {
            let next = match stream.cutter.next() {
                Ok(None) if ended => stream.cutter.finish(),
                next => next,
            };
            let frame = match next {
                Ok(Some(frame)) => frame,
                Ok(None) => {
                    return if stream.progress.is_done() {
                        Flow::Done
                    } else {
                        Flow::On
                    };
                }
                Err(error) => {
                    let kind = match error {
                        FrameError::TooLong { .. } => Kind::OversizedAnswer,
                        _ => Kind::UnreadableAnswer,
                    };
                    self.fail(Verdict::malformed(kind, Some(200)));
                    return Flow::Over;
                }
            };
            if let Flow::Over = self.pass_frame(stream, frame, kept, provider).await {
                return Flow::Over;
            }
        }
    }

    async fn pass_frame(
        &mut self,
        stream: &mut Stream,
        frame: Frame,
        kept: &mut KeptError,
        provider: &Provider,
    ) -> Flow {
        let reading = match stream.reader.read(&frame) {
            Ok(reading) => reading,
            // The stump of a cut event: the end of the input says what happened.
            Err(_) if !frame.is_terminated() => return Flow::On,
            Err(_) => {
                self.fail(Verdict::malformed(Kind::UnreadableAnswer, Some(200)));
                return Flow::Over;
            }
        };
        if stream.writer.is_none() {
            self.remember(stream.reader.take_id(), kept);
        }
        if let Some(usage) = reading.usage {
            self.report(Event::Usage(usage));
        }
        let passage = stream.progress.observe(reading.meaning);
        if reading.meaning == Meaning::Error && passage == Passage::Pass {
            self.fail_inside(&frame, kept, provider);
            return Flow::Over;
        }
        if passage == Passage::Drop {
            return Flow::On;
        }
        if reading.meaning.is_output() && !stream.output_seen {
            stream.output_seen = true;
            self.report(Event::Output);
        }
        let unasked = reading.meaning == Meaning::Usage && !self.request.envelope.usage_asked;
        if !matches!(self.relay, Relay::Holding(_)) {
            stream.tally.stop();
        }
        let weight = Weight {
            tokens: stream.tally.count(&frame, &reading.events),
            ..Weight::of(&frame)
        };
        let bytes = match &mut stream.writer {
            Some(writer) => {
                let mut out = Vec::with_capacity(256);
                for event in &reading.events {
                    writer.write(event, &mut out);
                }
                Bytes::from(out)
            }
            None if unasked || is_blank(&frame) => Bytes::new(),
            None => frame.into_wire(),
        };
        let now = self.now();
        match self.relay.on_event(now, reading.meaning, weight, bytes) {
            Step::Held | Step::Failed(_) => {}
            Step::Release(held) => self.commit(now, held),
            Step::Pass(bytes) => return self.pass(bytes).await,
        }
        Flow::On
    }

    /// Hands bytes to the caller, as fast as it reads and no longer than the machine waits.
    async fn pass(&mut self, bytes: Bytes) -> Flow {
        if bytes.is_empty() {
            return Flow::On;
        }
        let outlet = self.outlet.clone();
        match self.within(outlet.send(bytes)).await {
            Some(()) => {
                self.journal.record.delivered_events += 1;
                Flow::On
            }
            None => Flow::Over,
        }
    }

    /// The commit point: the caller gets a status and what was held. Nothing can be replayed from
    /// here on.
    fn commit(&mut self, now: Moment, held: Vec<Bytes>) {
        self.journal.journey.on(now, Event::Committed);
        self.journal.first_output.get_or_insert(now);
        self.pulse = None;
        self.open_outlet();
        for bytes in held.into_iter().filter(|bytes| !bytes.is_empty()) {
            self.journal.record.delivered_events += 1;
            self.outlet.push(bytes);
        }
    }

    /// An error event inside a 200.
    fn fail_inside(&mut self, frame: &Frame, kept: &mut KeptError, provider: &Provider) {
        let data = told_by(self.request.spoken_by(provider, &kept.channel.model), frame);
        let wall = self.journal.gateway.clock.wall();
        let verdict = classify(&Evidence::event(provider.family(), &data, wall));
        let (channel, key) = (kept.channel.clone(), kept.key.clone());
        let kept = KeptError {
            attempt: kept.attempt,
            channel,
            key,
            own: kept.own.clone(),
            token: kept.token.clone(),
            body: Bytes::from(data.into_owned()),
            name: None,
        };
        self.fail_told(kept, provider, verdict);
    }

    /// The input is over: whole, or one of the ways of not being whole.
    async fn end_stream(&mut self, stream: &mut Stream, provider: &Provider, input: InputEnd) {
        let verdict = match stream.progress.end(input) {
            Ending::Whole => {
                let now = self.now();
                let first = matches!(self.relay, Relay::Holding(_));
                let held = self.relay.on_whole(now);
                if first {
                    self.commit(now, held);
                }
                if let Some(writer) = &mut stream.writer {
                    let mut out = Vec::new();
                    writer.write(&backstop_chat::Event::End, &mut out);
                    self.outlet.push(Bytes::from(out));
                }
                return self.report(Event::Whole);
            }
            Ending::Empty => Verdict::malformed(Kind::EmptyAnswer, Some(200)),
            Ending::StartupOnly => Verdict::malformed(Kind::StartupOnly, Some(200)),
            Ending::Cut { .. } | Ending::Failed { .. } => {
                let cut = self.transport(provider, Transport::CutBody);
                let kind = match input {
                    InputEnd::Clean => Some(Kind::IncompleteStream),
                    InputEnd::Broken => cut.kind,
                };
                Verdict {
                    kind,
                    status: Some(200),
                    ..cut
                }
            }
        };
        self.discard();
        self.fail(verdict);
    }

    /// Whether the hold wants to know how many tokens are in it.
    const fn holds_by_tokens(&self) -> bool {
        matches!(
            self.request.commit,
            CommitChoice::Window {
                tokens: Some(_),
                ..
            }
        )
    }

    /// What a failed attempt had sent is thrown away, if the caller has none of it.
    fn discard(&mut self) {
        if let Relay::Holding(hold) = &mut self.relay {
            let _ = hold.discard();
        }
    }
}

/// A block without data that is not a comment: official clients raise on one.
fn is_blank(frame: &Frame) -> bool {
    !frame.is_comment() && frame.has_data() && frame.data().is_empty()
}

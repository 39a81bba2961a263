//! One attempt: built from the original request, sent, and read as what it turns out to be.

use std::sync::Arc;
use std::time::SystemTime;

use backstop_chat::Need;
use backstop_classifier::{Evidence, Kind, Transport, Verdict, classify};
use backstop_dialects::{Edits, Stamp, error_header, splice_request};
use backstop_policy::{Channel, Event};
use backstop_providers::{Call, Provider};
use backstop_units::{ByteCount, KeyId};
use backstop_upstream::{Clocks, End, Failure, Response, Token, sign};
use bytes::Bytes;
use http::header;

use super::{Drive, KeptError};
use crate::answer::Answered;

/// The most that is read of an error body. Our choice: real ones are a few KiB, and what decides
/// stands at the front.
const ERROR_BYTES: ByteCount = ByteCount::kib(64);

impl Drive {
    /// Sends one attempt and reports to the machine until it is over.
    pub(super) async fn attempt(
        &mut self,
        attempt: u32,
        channel: &Arc<Channel>,
        key: Option<KeyId>,
        fresh: bool,
    ) {
        let Some(provider) = self
            .request
            .snapshot
            .providers
            .get(&channel.provider)
            .map(Arc::clone)
        else {
            return self.report(Event::Unbuildable {
                field: "provider".to_owned(),
            });
        };
        if !self.has_token(&provider, key.as_ref()).await {
            return;
        }
        let built = self.build(attempt, channel, &provider, key.as_ref());
        let request = match built {
            Ok(request) => request,
            Err(field) => return self.report(Event::Unbuildable { field }),
        };
        let clocks = Clocks {
            connect: channel.clocks.connect,
            headers: channel.clocks.headers,
        };
        let gateway = Arc::clone(&self.journal.gateway);
        // On record before its first byte leaves.
        let spoken = self.request.spoken_by(&provider, &channel.model).as_str();
        let position = self.journal.sending(spoken);
        if self
            .within(gateway.ledger.secured(position))
            .await
            .is_none()
        {
            return;
        }
        let opened = async {
            if fresh {
                gateway.upstream.open_fresh(request, &clocks).await
            } else {
                gateway.upstream.open(request, &clocks).await
            }
        };
        let exchange = match self.within(opened).await {
            None => return,
            Some(Err(failure)) => return self.fail_unopened(&provider, &failure),
            Some(Ok(exchange)) => exchange,
        };
        // On record before the answer: an attempt that is cut short had its connection, too.
        let (reused, connect) = (exchange.reused(), exchange.connect());
        self.report(Event::Connected { reused, connect });
        let response = match self.within(exchange.head()).await {
            None => return,
            Some(Err(failure)) => return self.fail_transport(&provider, &failure),
            Some(Ok(response)) => response,
        };
        let status = response.status.as_u16();
        self.report(Event::Headers { status });
        let kept = KeptError {
            attempt,
            channel: Arc::clone(channel),
            key,
            own: self
                .request
                .token_for(&provider)
                .map(|own| own.secret.clone()),
            token: self.token.clone(),
            body: Bytes::new(),
            name: None,
        };
        if !response.status.is_success() {
            self.read_failure(response, kept, &provider).await;
        } else {
            let framing = self
                .request
                .spoken_by(&provider, &channel.model)
                .framing(is_json(&response));
            match framing.filter(|_| self.request.envelope.stream) {
                Some(framing) => {
                    self.relay_stream(response, kept, &provider, framing).await;
                }
                None => self.read_whole(response, kept, &provider).await,
            }
        }
    }

    /// Builds the request of this attempt from the caller's original bytes. The error names the
    /// field that stands in the way.
    fn build(
        &mut self,
        attempt: u32,
        channel: &Channel,
        provider: &Provider,
        key: Option<&KeyId>,
    ) -> Result<http::Request<Bytes>, String> {
        let request = &self.request;
        let (from, to) = (request.dialect, request.spoken_by(provider, &channel.model));
        let model = provider.named(key, &channel.model);
        let to_sign = key.and_then(|key| provider.to_sign(key));
        let token = self.token.as_deref().map(Token::secret);
        let body = if request.asking.is_some() {
            Bytes::new()
        } else if from == to {
            let edits = Edits {
                model: Some(model.as_str()),
                ask_usage: true,
            };
            splice_request(from, &request.body, &request.envelope, &edits)
        } else {
            let written = request.carry(to, model, provider)?;
            self.dropped = written.dropped;
            Bytes::from(written.body)
        };
        let call = Call {
            model,
            body,
            dialect: Some(to),
            operation: request.operation,
            batch: if from == to {
                request.envelope.vectors.batch
            } else {
                request.envelope.needs.has(Need::ManyInputs)
            },
            kept: request.asking.as_ref().map(|asking| &asking.call),
            key: token.or_else(|| provider.secret(key?)),
            is_token: token.is_some(),
            callers_own: request
                .token_for(provider)
                .map(|own| (&own.name, &own.value)),
            signed_later: to_sign.is_some(),
            request_id: &self.journal.record.request_id,
            attempt,
            stream: request.envelope.stream,
            caller: (from == to).then_some(&request.headers),
        };
        let unfit = || "request".to_owned();
        let mut built = provider.build(&call).map_err(|_| unfit())?;
        if let Some(to_sign) = to_sign {
            let wall = self.journal.gateway.clock.wall();
            sign(&mut built, &to_sign, wall).map_err(|_| unfit())?;
        }
        Ok(built)
    }

    /// Reads a refusal and classifies it.
    async fn read_failure(&mut self, response: Response, mut kept: KeptError, provider: &Provider) {
        let (status, headers) = (response.status.as_u16(), response.headers.clone());
        let idle = kept.channel.clocks.idle;
        let Some(collected) = self.within(response.body_bounded(ERROR_BYTES, idle)).await else {
            return;
        };
        let wall = self.journal.gateway.clock.wall();
        let evidence = Evidence::response(provider.family(), status, &collected.bytes, wall);
        let verdict = classify(&evidence.with_headers(&headers));
        kept.body = collected.bytes;
        let spoken = self.request.spoken_by(provider, &kept.channel.model);
        kept.name = error_header(spoken)
            .and_then(|name| headers.get(name)?.to_str().ok())
            // An address may follow the name.
            .and_then(|value| value.split(':').next().map(str::to_owned));
        self.fail_told(kept, provider, verdict);
    }

    /// Reads an answer that is not streamed, and checks that it keeps its contract.
    async fn read_whole(&mut self, response: Response, mut kept: KeptError, provider: &Provider) {
        let (status, headers) = (response.status.as_u16(), response.headers.clone());
        let idle = kept.channel.clocks.idle;
        let limit = self.request.snapshot.limits.answer_bytes;
        let Some(collected) = self.within(response.body_bounded(limit, idle)).await else {
            return;
        };
        match collected.end {
            End::Whole => {}
            End::OverLimit => {
                return self.fail(Verdict::malformed(Kind::OversizedAnswer, Some(status)));
            }
            End::Cut(failure) => return self.fail_transport(provider, &failure),
        }
        if self.request.asking.is_some() && !self.request.envelope.stream {
            return self.pass_kept(status, headers, collected.bytes);
        }
        let upstream = self.request.spoken_by(provider, &kept.channel.model);
        let inspected = self
            .request
            .inspect(upstream, &kept.channel, &collected.bytes);
        // What an answer cost was spent, whatever the answer is worth.
        let usage = match &inspected {
            Ok(facts) => facts.usage,
            Err(malformed) => malformed.usage,
        };
        if let Some(usage) = usage {
            self.report(Event::Usage(usage));
        }
        match inspected {
            Ok(facts) if facts.error_inside || self.request.envelope.stream => {
                let wall = self.journal.gateway.clock.wall();
                let evidence =
                    Evidence::response(provider.family(), status, &collected.bytes, wall);
                let verdict = if facts.error_inside {
                    classify(&Evidence {
                        in_stream: true,
                        ..evidence.with_headers(&headers)
                    })
                } else {
                    // A whole answer where a stream was asked for.
                    Verdict::malformed(Kind::UnreadableAnswer, Some(status))
                };
                kept.body = collected.bytes;
                return self.fail_told(kept, provider, verdict);
            }
            Ok(facts) => self.remember(facts.id, &kept),
            Err(malformed) => {
                let kind = match malformed.truncated {
                    _ if collected.bytes.trim_ascii().is_empty() => Kind::EmptyAnswer,
                    true => Kind::TruncatedBody,
                    false => Kind::UnreadableAnswer,
                };
                return self.fail(Verdict::malformed(kind, Some(status)));
            }
        }
        let caller = self.request.dialect;
        let body = if upstream == caller {
            collected.bytes
        } else {
            let stamp = self.stamp(kept.channel.model.as_str());
            let carried =
                self.request
                    .carry_back(upstream, &kept.channel, &collected.bytes, &stamp);
            let Ok(body) = carried else {
                return self.fail(Verdict::malformed(Kind::UnreadableAnswer, Some(status)));
            };
            Bytes::from(body)
        };
        let same_dialect = upstream == caller;
        let dropped = std::mem::take(&mut self.dropped);
        self.answered = Some(Answered {
            dropped,
            status,
            headers,
            body,
            same_dialect,
        });
        self.report(Event::Whole);
    }

    /// What an answer in the caller's dialect says where the provider's left something out.
    pub(super) fn stamp<'a>(&'a self, model: &'a str) -> Stamp<'a> {
        let wall = self.journal.gateway.clock.wall();
        let created = wall
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_or(0, |age| age.as_secs());
        Stamp {
            id: self.journal.record.request_id.as_str(),
            model,
            created,
        }
    }

    /// Reports what the provider said, and keeps its words for the ending.
    pub(super) fn fail_told(&mut self, kept: KeptError, provider: &Provider, verdict: Verdict) {
        let verdict = kept.scrubber(provider).verdict(verdict);
        self.kept.push(kept);
        self.fail(verdict);
    }

    pub(super) fn fail(&mut self, verdict: Verdict) {
        self.report(Event::Failed {
            verdict,
            stale_connection: false,
        });
    }

    /// The request came no further than its connection, where it had one; the row says which.
    fn fail_unopened(&mut self, provider: &Provider, failure: &Failure) {
        let (reused, connect) = (failure.reused, failure.connect);
        if reused || connect.is_some() {
            self.report(Event::Connected { reused, connect });
        }
        self.fail_transport(provider, failure);
    }

    pub(super) fn fail_transport(&mut self, provider: &Provider, failure: &Failure) {
        let verdict = self.transport(provider, failure.transport);
        let stale_connection = failure.is_stale_connection();
        let verdict = Verdict {
            sent: failure.sent,
            ..verdict
        };
        self.report(Event::Failed {
            verdict,
            stale_connection,
        });
    }

    pub(super) fn transport(&self, provider: &Provider, transport: Transport) -> Verdict {
        let wall = self.journal.gateway.clock.wall();
        classify(&Evidence::transport(provider.family(), transport, wall))
    }
}

/// Whether the provider says that its answer is one JSON value. Some servers leave the type of a
/// stream out.
fn is_json(response: &Response) -> bool {
    response
        .headers
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| {
            let kind = kind.as_bytes();
            kind.len() >= 16 && kind[..16].eq_ignore_ascii_case(b"application/json")
        })
}

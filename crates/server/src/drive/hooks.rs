//! Asks the hooks, and carries out what they say.

use std::sync::Arc;

use backstop_chat::Answer;
use backstop_dialects::{Operation, StreamWriter, write_answer};
use backstop_policy::{Channel, Event, HookDecision, HookStage, Leg};
use bytes::Bytes;
use http::HeaderMap;

use super::Drive;
use crate::answer::Answered;
use crate::hook::{HookAsk, hear};

impl Drive {
    /// Asks the hooks for as long as the machine waits for them.
    pub(super) async fn run_hooks(&mut self, stage: HookStage, channel: &Arc<Channel>) {
        let ask = self.hook_ask(channel);
        let gateway = Arc::clone(&self.journal.gateway);
        let mut hearing = std::pin::pin!(hear(&gateway.hooks, &stage, &ask));
        let heard = loop {
            let Some(wake) = self.journal.journey.next_wake() else {
                return;
            };
            tokio::select! {
                biased;
                heard = &mut hearing => break heard,
                () = self.sleep_until(wake) => {}
            }
            self.report(Event::Time);
            if !self.journal.journey.in_hook() {
                return;
            }
        };
        let Some(heard) = heard else {
            return self.report(Event::HookPassed);
        };
        let hook = heard.hook;
        match heard.decision {
            HookDecision::Pass => self.report(Event::HookPassed),
            HookDecision::Answer(_) if self.request.operation != Operation::Generate => {
                tracing::warn!(
                    hook,
                    operation = self.request.operation.as_str(),
                    "a hook's answer is no answer to what was asked; it is taken for a pass"
                );
                self.report(Event::HookPassed);
            }
            HookDecision::Answer(answer) => {
                self.keep_answer(&answer);
                self.report(Event::HookAnswered { hook });
            }
            HookDecision::Stop {
                error,
                allow_fallbacks,
            } => {
                self.answered = None;
                self.report(Event::HookStopped {
                    hook,
                    error,
                    allow_fallbacks,
                });
            }
        }
    }

    fn hook_ask(&self, channel: &Arc<Channel>) -> HookAsk {
        let (request, journey) = (&self.request, &self.journal.journey);
        HookAsk {
            request_id: self.journal.record.request_id.clone(),
            route: self.journal.route.clone(),
            requested: request.envelope.model.clone(),
            dialect: request.dialect,
            operation: request.operation,
            streaming: request.envelope.stream,
            needs: request.envelope.needs,
            channel: Arc::clone(channel),
            leg: journey
                .candidate()
                .map_or(Leg::Primary, |candidate| candidate.leg.clone()),
            sends: journey.sends(),
            trail: journey.trail().to_vec(),
            left: journey.end().since(self.now()),
            body: request.body.clone(),
            answer: self.answered.as_ref().map(|answered| answered.body.clone()),
        }
    }

    /// Puts a hook's answer into the caller's dialect.
    fn keep_answer(&mut self, answer: &Answer) {
        let envelope = &self.request.envelope;
        let stamp = self.stamp(&envelope.model);
        let body = if envelope.stream {
            let mut writer = StreamWriter::new(self.request.dialect, &stamp, envelope.usage_asked);
            let mut out = Vec::with_capacity(1024);
            for step in answer.steps() {
                writer.write(&step, &mut out);
            }
            out
        } else {
            write_answer(self.request.dialect, answer, &stamp).body
        };
        self.answered = Some(Answered {
            status: 200,
            headers: HeaderMap::new(),
            body: Bytes::from(body),
            same_dialect: false,
            dropped: Vec::new(),
        });
    }
}

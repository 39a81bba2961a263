//! Answers that providers keep: who made each is remembered, and what they say of one later is passed
//! on.

use backstop_classifier::{Kind, Verdict};
use backstop_policy::Event;
use backstop_state::Keeper;
use bytes::Bytes;
use http::{HeaderMap, Method};
use serde_json::value::RawValue;

use super::{Drive, KeptError};
use crate::answer::Answered;

impl Drive {
    /// Remembers who made the answer that the provider keeps under `id`, and who therefore has what
    /// it goes on from.
    pub(super) fn remember(&self, id: Option<String>, made: &KeptError) {
        let Some(id) = id.filter(|_| self.request.envelope.is_kept()) else {
            return;
        };
        let keeper = Keeper {
            channel: made.channel.id.clone(),
            provider: made.channel.provider.clone(),
            model: made.channel.model.clone(),
            key: made.key.clone(),
            caller: self.journal.record.caller.clone(),
        };
        let state = &self.journal.gateway.state;
        if let Some(earlier) = &self.request.envelope.goes_on_from {
            state.keep(earlier, keeper.clone());
        }
        state.keep(&id, keeper);
    }

    /// Passes on what the provider says of an answer it keeps: the answer, whatever has become of it,
    /// its input, or that it is gone. A response that failed is an answer here, not a failure.
    pub(super) fn pass_kept(&mut self, status: u16, headers: HeaderMap, body: Bytes) {
        let is_object = serde_json::from_slice::<&RawValue>(&body)
            .is_ok_and(|value| value.get().starts_with('{'));
        if !is_object {
            return self.fail(Verdict::malformed(Kind::UnreadableAnswer, Some(status)));
        }
        if let Some(asking) = &self.request.asking
            && asking.call.method == Method::DELETE
        {
            self.journal.gateway.state.unkeep(&asking.id);
        }
        self.answered = Some(Answered {
            status,
            headers,
            body,
            same_dialect: true,
            dropped: Vec::new(),
        });
        self.report(Event::Whole);
    }
}

//! Keepalive events for a caller who waits for a stream's first output.
//!
//! The first of them fixes the status at 200 and nothing else: the choice of channel stays open,
//! and a failure from then on is told as an event instead of a status. Off by default.

use std::time::Duration;

use backstop_dialects::Dialect;
use backstop_units::Moment;
use bytes::Bytes;

/// The pulse of one waiting caller.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pulse {
    every: Duration,
    due: Moment,
}

impl Pulse {
    /// A pulse that first beats one interval after `now`.
    pub(crate) fn new(every: Duration, now: Moment) -> Self {
        Self {
            every,
            due: now + every,
        }
    }

    /// When it beats next.
    pub(crate) const fn due(&self) -> Moment {
        self.due
    }

    /// Whether it beats now; the next beat is an interval later.
    pub(crate) fn beats(&mut self, now: Moment) -> bool {
        let due = now >= self.due;
        if due {
            self.due = now + self.every;
        }
        due
    }
}

/// What a beat looks like. OpenAI's clients raise on an event without JSON, so they get a comment;
/// Anthropic's know `ping`. `None` where nothing can be said.
pub(crate) fn beat(dialect: Dialect) -> Option<Bytes> {
    let beat: &[u8] = match dialect {
        Dialect::OpenAiChat | Dialect::OpenAiResponses => b": keepalive\n\n",
        Dialect::CohereV2 => b": keepalive\n\n",
        // An event that says nothing: its clients are not known to read over comments.
        Dialect::Gemini => b"data: {\"candidates\": []}\n\n",
        Dialect::AnthropicMessages => b"event: ping\ndata: {\"type\": \"ping\"}\n\n",
        // Its clients know no frame that says nothing.
        Dialect::BedrockConverse => return None,
    };
    Some(Bytes::from_static(beat))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_beats_once_an_interval_however_late_one_looks() {
        let mut pulse = Pulse::new(Duration::from_millis(100), Moment::START);
        let beats: Vec<bool> = [50, 100, 101, 450, 500, 551]
            .map(|at| pulse.beats(Moment::from_millis(at)))
            .into();
        assert_eq!(beats, [false, true, false, true, false, true]);
    }
}

//! The routing log: what the gateway decided about a request, as sentences of fixed shape.

use std::fmt::Display;

use backstop_units::RequestId;
pub use tracing::Level;

/// Writes one sentence of a journey's routing log, with target `backstop::routing` and the fields
/// `request_id` and `sentence`.
///
/// The sentence is formatted only when the log wants it, so it may be handed over unformatted
/// (`format_args!`). It names categories and statuses, never a provider's message.
pub fn routing(level: Level, request_id: &RequestId, sentence: impl Display) {
    // An event's level is part of its static description: one call a level.
    macro_rules! at {
        ($level:expr) => {
            tracing::event!(
                target: "backstop::routing",
                $level,
                request_id = %request_id,
                sentence = %sentence,
            )
        };
    }
    match level {
        Level::ERROR => at!(Level::ERROR),
        Level::WARN => at!(Level::WARN),
        Level::INFO => at!(Level::INFO),
        Level::DEBUG => at!(Level::DEBUG),
        Level::TRACE => at!(Level::TRACE),
    }
}

//! What a frame means, in the words of every dialect.

/// What one frame does to its stream. The dialect reads it from the frame; one with several
/// meanings gets the strongest: error, then done, terminal, output, usage, startup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Meaning {
    /// Nothing for the caller: a comment, a block without data, a bare keep-alive.
    Comment,
    /// Recognised preparation without content: a role chunk, an empty delta, `message_start`.
    Startup,
    /// Text, reasoning, tool activity.
    Output,
    /// The answer's own end: a finish or stop reason. With several choices, that of the last one.
    Terminal,
    /// The stream's end marker: `[DONE]`, `message_stop`.
    Done,
    /// An error inside the stream. Nothing follows one.
    Error,
    /// The answer has failed, and an error that says why may follow: held back, and nothing but that
    /// error matters any more.
    Failing,
    /// Token counts and nothing else.
    Usage,
    /// Not understood. Might matter to the caller, so it is treated as output.
    Unrecognised,
}

impl Meaning {
    /// Whether the frame is something the caller may act on: it ends a hold for the first output,
    /// and what follows it comes after output.
    #[must_use]
    pub const fn is_output(self) -> bool {
        matches!(self, Self::Output | Self::Terminal | Self::Unrecognised)
    }
}

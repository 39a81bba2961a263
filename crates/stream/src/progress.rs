//! How far one attempt's stream has come, and what its end means.
//!
//! The rules, in order: an error event is the end, whatever comes after it. A stream whose answer
//! has ended (and whose end marker came, where the dialect always sends one) is whole. Anything
//! else is a failure: cut if output had come, otherwise startup alone, or empty. An end marker
//! without the answer's own end does not count: servers are known to send `[DONE]` on their way
//! out of a crash.

use crate::meaning::Meaning;

/// Whether a stream without its end marker can be whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sentinel {
    /// The dialect always sends it (Anthropic's `message_stop`): without it the stream was cut.
    Required,
    /// Some servers leave it out (`[DONE]`): the answer's own end is enough.
    Optional,
}

/// What to do with the frame just observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[must_use]
pub enum Passage {
    /// It is part of the stream.
    Pass,
    /// It must not reach the caller: it follows an error, or it would make a broken stream look
    /// finished.
    Drop,
}

/// How the input ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InputEnd {
    /// The body was complete as far as HTTP knows.
    Clean,
    /// The transport broke, a clock ran out, or the last frame is a stump.
    Broken,
}

/// What the end of an upstream's input means. `after_output` speaks of what the upstream sent;
/// whether the caller had been given it is the relay's knowledge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[must_use]
pub enum Ending {
    /// A complete answer.
    Whole,
    /// Nothing, or nothing but comments and an end marker: a failure, not an empty answer.
    Empty,
    /// Preparation and nothing else, then a clean end: a failure.
    StartupOnly,
    /// Ended before its answer did.
    Cut {
        /// Whether output had come before.
        after_output: bool,
    },
    /// Ended by an error event of its own, or said to have failed and nothing more.
    Failed {
        /// Whether output had come before.
        after_output: bool,
    },
}

/// Follows the meanings of one attempt's frames. A new attempt gets a new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    sentinel: Sentinel,
    startup: bool,
    output: bool,
    terminal: bool,
    done: bool,
    /// Said to fail, the reason yet to come.
    failing: bool,
    failed: bool,
}

impl Progress {
    /// A stream of which nothing was seen, in a dialect with this `sentinel`.
    #[must_use]
    pub const fn new(sentinel: Sentinel) -> Self {
        Self {
            sentinel,
            startup: false,
            output: false,
            terminal: false,
            done: false,
            failing: false,
            failed: false,
        }
    }

    /// Takes note of a frame and says whether it may be passed on.
    pub fn observe(&mut self, meaning: Meaning) -> Passage {
        if self.failed {
            return Passage::Drop;
        }
        if self.failing && meaning != Meaning::Error {
            return Passage::Drop;
        }
        self.output |= meaning.is_output();
        match meaning {
            Meaning::Startup | Meaning::Usage => self.startup = true,
            Meaning::Terminal => self.terminal = true,
            Meaning::Done if !self.terminal => return Passage::Drop,
            Meaning::Done => self.done = true,
            // The caller has a finished answer; an afterthought must not unmake it.
            Meaning::Error | Meaning::Failing if self.done => return Passage::Drop,
            Meaning::Failing => {
                self.failing = true;
                return Passage::Drop;
            }
            Meaning::Error => self.failed = true,
            Meaning::Comment | Meaning::Output | Meaning::Unrecognised => {}
        }
        Passage::Pass
    }

    /// What it means that the input ends here, in this way.
    pub const fn end(&self, input: InputEnd) -> Ending {
        let after_output = self.output;
        if self.failed || self.failing {
            return Ending::Failed { after_output };
        }
        if self.is_whole() {
            return Ending::Whole;
        }
        match input {
            InputEnd::Broken => Ending::Cut { after_output },
            InputEnd::Clean if self.output => Ending::Cut { after_output },
            InputEnd::Clean if self.startup => Ending::StartupOnly,
            InputEnd::Clean => Ending::Empty,
        }
    }

    /// Whether the answer is complete, should nothing more come.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        let marked = self.done || matches!(self.sentinel, Sentinel::Optional);
        self.terminal && marked && !self.failed && !self.failing
    }

    /// Whether the end marker of a finished answer was observed: nothing more is to come.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        self.done
    }

    /// Whether an error event was observed: the input need not be read further.
    #[must_use]
    pub const fn has_failed(&self) -> bool {
        self.failed
    }

    /// Whether output was observed.
    #[must_use]
    pub const fn has_output(&self) -> bool {
        self.output
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use InputEnd::{Broken, Clean};
    use Meaning::{Comment, Done, Error, Failing, Output, Startup, Terminal, Unrecognised, Usage};
    use Passage::{Drop, Pass};
    use Sentinel::{Optional, Required};

    #[test]
    fn endings_follow_the_rules() {
        let cut = Ending::Cut { after_output: true };
        let cut_early = Ending::Cut {
            after_output: false,
        };
        let failed = Ending::Failed { after_output: true };
        let failed_early = Ending::Failed {
            after_output: false,
        };
        let rows: &[(Sentinel, &[Meaning], InputEnd, Ending)] = &[
            (Optional, &[], Clean, Ending::Empty),
            (Optional, &[], Broken, cut_early),
            (Optional, &[Done], Clean, Ending::Empty),
            (Optional, &[Comment, Comment, Done], Clean, Ending::Empty),
            (Optional, &[Startup], Clean, Ending::StartupOnly),
            (Optional, &[Startup, Done], Clean, Ending::StartupOnly),
            (Optional, &[Usage], Clean, Ending::StartupOnly),
            (Optional, &[Startup], Broken, cut_early),
            (Optional, &[Startup, Output], Clean, cut),
            (Optional, &[Startup, Output], Broken, cut),
            (Optional, &[Unrecognised], Clean, cut),
            (Optional, &[Startup, Output, Done], Clean, cut),
            (Optional, &[Startup, Output, Terminal], Clean, Ending::Whole),
            (
                Optional,
                &[Startup, Output, Terminal],
                Broken,
                Ending::Whole,
            ),
            (
                Optional,
                &[Startup, Terminal, Usage, Done],
                Clean,
                Ending::Whole,
            ),
            (Optional, &[Terminal], Clean, Ending::Whole),
            (Required, &[Startup, Output, Terminal], Clean, cut),
            (
                Required,
                &[Startup, Output, Terminal, Done],
                Clean,
                Ending::Whole,
            ),
            (
                Required,
                &[Startup, Output, Terminal, Done],
                Broken,
                Ending::Whole,
            ),
            (Required, &[Startup, Output, Done], Clean, cut),
            (Required, &[Startup, Done], Clean, Ending::StartupOnly),
            (Optional, &[Error], Clean, failed_early),
            (Optional, &[Startup, Error, Done], Clean, failed_early),
            (Optional, &[Output, Error, Terminal, Done], Clean, failed),
            (Optional, &[Output, Terminal, Error], Clean, failed),
            (
                Optional,
                &[Output, Terminal, Done, Error],
                Clean,
                Ending::Whole,
            ),
            (Required, &[Output, Error], Broken, failed),
        ];
        for &(sentinel, meanings, input, ending) in rows {
            let mut progress = Progress::new(sentinel);
            for &meaning in meanings {
                let _ = progress.observe(meaning);
            }
            assert_eq!(
                progress.end(input),
                ending,
                "{sentinel:?} {meanings:?} {input:?}"
            );
            assert_eq!(progress.is_whole(), ending == Ending::Whole);
        }
    }

    #[test]
    fn nothing_passes_that_would_dress_up_a_broken_stream() {
        let rows: &[&[(Meaning, Passage)]] = &[
            &[
                (Output, Pass),
                (Error, Pass),
                (Output, Drop),
                (Terminal, Drop),
                (Done, Drop),
            ],
            &[(Error, Pass), (Error, Drop), (Comment, Drop)],
            &[(Startup, Pass), (Output, Pass), (Done, Drop)],
            &[(Done, Drop)],
            &[
                (Output, Pass),
                (Terminal, Pass),
                (Usage, Pass),
                (Done, Pass),
                (Comment, Pass),
            ],
            &[(Terminal, Pass), (Done, Pass), (Error, Drop)],
            &[
                (Output, Pass),
                (Failing, Drop),
                (Output, Drop),
                (Error, Pass),
            ],
            &[(Failing, Drop), (Done, Drop)],
            &[(Terminal, Pass), (Done, Pass), (Failing, Drop)],
        ];
        for row in rows {
            let mut progress = Progress::new(Optional);
            for &(meaning, passage) in *row {
                assert_eq!(progress.observe(meaning), passage, "{row:?} at {meaning:?}");
            }
        }
    }
}

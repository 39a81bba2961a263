//! What a provider does with one attempt, and what a caller may make of it.

use std::time::Duration;

use backstop_faultsim::{Dialect, End, Fault, Item, Step};
use bytes::Bytes;

use super::dice::{Dice, Part as Share};
use super::golden::{Golden, Part, Script};

/// How a stream is spoilt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spoilt {
    /// It ends too early, in this way.
    Ends(End),
    /// An error event in the middle; what should have come may follow it.
    Error { goes_on: bool },
    /// Bytes that are no event inside one; the rest may follow.
    Garbage { goes_on: bool },
}

impl Spoilt {
    /// Whether what was sent before may be lost on the way.
    pub(crate) const fn is_reset(self) -> bool {
        matches!(self, Self::Ends(End::Reset))
    }
}

/// What a provider does with one attempt.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    /// The whole answer.
    Whole(Script),
    /// A stream that breaks this far into it.
    Broken {
        script: Script,
        spoilt: Spoilt,
        at: Share,
    },
    /// A refusal with a status.
    Refused(Fault),
    /// No response.
    Silent(End),
}

/// What has gone over the wire of an attempt when it has gone this far, as a caller may know it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Known {
    /// What was said in whole events.
    pub(crate) said: String,
    /// The same with an event whose data is whole and whose blank line is not.
    pub(crate) said_at_most: String,
    /// Why it ends.
    pub(crate) reason: bool,
    /// The end marker.
    pub(crate) done: bool,
}

/// The bytes of one attempt.
pub(crate) struct Wire {
    pub(crate) bytes: Vec<u8>,
    pub(crate) end: End,
    golden: Option<Golden>,
    /// Up to here the bytes are those of a sound stream.
    sound: usize,
}

const FAULTS: [Fault; 6] = [
    Fault::ServerError,
    Fault::Unavailable,
    Fault::Overloaded,
    Fault::RateLimited,
    Fault::InvalidKey,
    Fault::InvalidRequest,
];

/// What never is an event of either dialect, nor a line that a reader may pass over.
const GARBAGE: [&[u8]; 4] = [
    b"\x00{]",
    b"<html>502 Bad Gateway</html>",
    b"\xff\xfe\xfd",
    b"data: {\"choices\": [",
];

impl Act {
    /// A stream that breaks somewhere.
    pub(crate) fn broken(dice: &mut Dice, tag: &str, tool: bool) -> Self {
        let spoilt = match dice.below(12) {
            0..=3 => Spoilt::Ends(End::Cut),
            4..=5 => Spoilt::Ends(End::Reset),
            6 => Spoilt::Ends(End::Hang),
            7 => Spoilt::Ends(End::Close),
            8..=9 => Spoilt::Error {
                goes_on: dice.one_in(2),
            },
            _ => Spoilt::Garbage {
                goes_on: dice.one_in(2),
            },
        };
        Self::Broken {
            script: Script::roll(dice, tag, tool),
            spoilt,
            at: dice.part(),
        }
    }

    /// Anything: mostly broken streams, now and then something else.
    pub(crate) fn any(dice: &mut Dice, tag: &str, tool: bool) -> Self {
        match dice.below(10) {
            0..=4 => Self::broken(dice, tag, tool),
            5 => Self::Refused(dice.pick(&FAULTS)),
            6 => Self::Silent(dice.pick(&[End::Cut, End::Reset, End::Hang])),
            _ => Self::Whole(Script::roll(dice, tag, tool)),
        }
    }

    /// The step that does it: for the attempt `number` of the request `id`, in `dialect`.
    pub(crate) fn step(&self, dice: &mut Dice, dialect: Dialect) -> Step {
        match self {
            Self::Refused(fault) => Step::fault(*fault),
            Self::Silent(end) => Step::silent(*end),
            Self::Whole(_) | Self::Broken { .. } => {
                let wire = self.wire(dialect);
                Step::sse(pieces(dice, &wire.bytes)).then(wire.end)
            }
        }
    }

    /// Its bytes, if it sends a stream.
    pub(crate) fn wire(&self, dialect: Dialect) -> Wire {
        match self {
            Self::Whole(script) => {
                let golden = script.stream(dialect);
                let bytes = golden.wire.clone();
                Wire {
                    sound: bytes.len(),
                    bytes,
                    end: End::Close,
                    golden: Some(golden),
                }
            }
            Self::Broken { script, spoilt, at } => {
                broken(script.stream(dialect), dialect, *spoilt, *at)
            }
            Self::Refused(_) | Self::Silent(_) => Wire {
                bytes: Vec::new(),
                end: End::Close,
                golden: None,
                sound: 0,
            },
        }
    }
}

fn broken(golden: Golden, dialect: Dialect, spoilt: Spoilt, at: Share) -> Wire {
    let near = at.of(golden.wire.len());
    let (bytes, end, sound) = match spoilt {
        Spoilt::Ends(end) => (golden.wire[..near].to_vec(), end, near),
        Spoilt::Error { goes_on } => {
            let place = &golden.events[event_at(&golden, near)];
            let mut bytes = golden.wire[..place.span.start].to_vec();
            let error = Fault::ServerError.body(dialect, "m");
            let event = match dialect {
                Dialect::OpenAi => format!("data: {error}\n\n"),
                Dialect::Anthropic => format!("event: error\ndata: {error}\n\n"),
                Dialect::Bedrock => unreachable!("the soak plays in the two dialects of lines"),
            };
            bytes.extend_from_slice(event.as_bytes());
            if goes_on {
                bytes.extend_from_slice(&golden.wire[place.span.start..]);
            }
            (bytes, End::Close, place.span.start)
        }
        Spoilt::Garbage { goes_on } => {
            // Inside the data of an event, so that no reader may take it for a line of no meaning.
            let place = &golden.events[event_at(&golden, near)];
            let cut = near.clamp(place.data.start, place.data.end - 1);
            let mut bytes = golden.wire[..cut].to_vec();
            bytes.extend_from_slice(GARBAGE[near % GARBAGE.len()]);
            bytes.extend_from_slice(b"\n\n");
            if goes_on {
                bytes.extend_from_slice(&golden.wire[place.span.end..]);
            }
            (bytes, End::Close, cut)
        }
    };
    Wire {
        bytes,
        end,
        golden: Some(golden),
        sound,
    }
}

/// The event that a place is in, or the first one after it.
fn event_at(golden: &Golden, place: usize) -> usize {
    let found = golden
        .events
        .iter()
        .position(|event| place < event.span.end);
    found.unwrap_or(golden.events.len() - 1)
}

impl Wire {
    /// What may be known once `sent` bytes have gone out.
    pub(crate) fn known(&self, sent: usize) -> Known {
        let mut known = Known::default();
        let upto = sent.min(self.sound);
        for event in self.golden.iter().flat_map(|golden| &golden.events) {
            if event.data.end > upto {
                break;
            }
            match &event.part {
                Part::Frame => {}
                Part::Said(piece) => {
                    known.said_at_most += piece;
                    if event.span.end <= upto {
                        known.said += piece;
                    }
                }
                Part::Reason => known.reason = true,
                Part::Done => known.done = true,
            }
        }
        known
    }
}

/// The bytes in pieces, cut without regard to events, with short waits between some of them.
fn pieces(dice: &mut Dice, bytes: &[u8]) -> Vec<Item> {
    let mut cuts: Vec<usize> = (0..dice.below(6))
        .map(|_| dice.below(bytes.len() + 1))
        .collect();
    cuts.push(bytes.len());
    cuts.sort_unstable();
    let mut from = 0;
    let mut items = Vec::new();
    for cut in cuts {
        if cut > from {
            let wait = dice.between(0, 3).saturating_sub(1);
            let item = Item::raw(Bytes::copy_from_slice(&bytes[from..cut]));
            items.push(item.after(Duration::from_millis(wait)));
            from = cut;
        }
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_of_a_broken_stream_is_no_more_than_went_out() {
        let mut dice = Dice::of(7, &[]);
        for number in 0..2_000 {
            let act = Act::broken(&mut dice, "t", number % 3 == 0);
            let Act::Broken { script, spoilt, .. } = &act else {
                panic!("not broken");
            };
            for dialect in [Dialect::OpenAi, Dialect::Anthropic] {
                let wire = act.wire(dialect);
                let known = wire.known(usize::MAX);
                assert!(script.said().starts_with(&known.said_at_most));
                assert!(known.said_at_most.starts_with(&known.said));
                assert_eq!(wire.known(0), Known::default());
                if matches!(spoilt, Spoilt::Garbage { .. }) {
                    assert!(!known.done, "garbage stands before the end marker or in it");
                }
            }
        }
    }
}

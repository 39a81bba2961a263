//! What a soak found: how many of what were played, and which promises broke where.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How many broken cases are told in full; all are counted.
const TOLD: usize = 20;

/// A promise that a case may break.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Promise {
    /// Nothing is sent or said again once output has reached the caller.
    NoReplay,
    /// A broken stream never looks finished.
    NoFalseFinish,
    /// What the caller hears is what the provider said, in order, and an end that is told.
    Faithful,
    /// The trail's attempts are those that providers saw, in the same order.
    TrailIsWire,
    /// No attempt starts once the caller's leaving was observed.
    NoLateAttempt,
    /// The upstream connection is closed within a second.
    UpstreamClosed,
    /// Permits, probes and connections come back.
    Settled,
}

impl Promise {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::NoReplay,
        Self::NoFalseFinish,
        Self::Faithful,
        Self::TrailIsWire,
        Self::NoLateAttempt,
        Self::UpstreamClosed,
        Self::Settled,
    ];
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoReplay => "replays after output",
            Self::NoFalseFinish => "broken streams that look finished",
            Self::Faithful => "answers that say other than the provider did",
            Self::TrailIsWire => "trails that differ from what providers saw",
            Self::NoLateAttempt => "attempts started after the close was observed",
            Self::UpstreamClosed => "upstream connections open for over 1 s",
            Self::Settled => "permits, probes, connections not given back",
        })
    }
}

/// A promise that broke.
#[derive(Debug, Clone)]
pub struct Finding {
    /// The case, as it is asked for again.
    pub case: String,
    /// Which promise.
    pub promise: Promise,
    /// What happened instead.
    pub what: String,
}

/// What a soak saw, so far or in the end.
#[derive(Debug, Clone, Default)]
pub struct Findings {
    /// How often each promise broke.
    pub broken: BTreeMap<Promise, u64>,
    /// The first of them.
    pub told: Vec<Finding>,
    /// What was played, by name.
    pub counts: BTreeMap<&'static str, u64>,
    /// From the caller's leaving to the end of its journey.
    pub observed: Vec<Duration>,
    /// From the caller's leaving to the end of the connection to the provider.
    pub closed: Vec<Duration>,
    /// Cases asked for by name, told in full.
    pub stories: Vec<String>,
}

impl Findings {
    /// Counts one of something.
    pub(crate) fn count(&mut self, what: &'static str) {
        self.add(what, 1);
    }

    pub(crate) fn add(&mut self, what: &'static str, number: u64) {
        *self.counts.entry(what).or_default() += number;
    }

    pub(crate) fn broke(&mut self, promise: Promise, case: &str, what: impl Into<String>) {
        *self.broken.entry(promise).or_default() += 1;
        if self.told.len() < TOLD {
            self.told.push(Finding {
                case: case.to_owned(),
                promise,
                what: what.into(),
            });
        }
    }

    /// Takes in what another part of the soak saw.
    pub fn merge(&mut self, other: Self) {
        for (promise, number) in other.broken {
            *self.broken.entry(promise).or_default() += number;
        }
        for (what, number) in other.counts {
            *self.counts.entry(what).or_default() += number;
        }
        let room = TOLD.saturating_sub(self.told.len());
        self.told.extend(other.told.into_iter().take(room));
        self.observed.extend(other.observed);
        self.closed.extend(other.closed);
        self.stories.extend(other.stories);
    }

    /// How often a promise broke.
    #[must_use]
    pub fn times(&self, promise: Promise) -> u64 {
        self.broken.get(&promise).copied().unwrap_or(0)
    }

    /// How many of something were played.
    #[must_use]
    pub fn played(&self, what: &str) -> u64 {
        self.counts.get(what).copied().unwrap_or(0)
    }
}

/// How far a soak has come, for who watches it.
#[derive(Debug, Default)]
pub struct Progress {
    done: AtomicU64,
}

impl Progress {
    /// Cases played.
    #[must_use]
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    pub(crate) fn step(&self, cases: u64) {
        self.done.fetch_add(cases, Ordering::Relaxed);
    }
}

/// The duration that so many of a thousand are not longer than; zero where there are none.
#[must_use]
pub fn percentile(durations: &[Duration], per_mille: usize) -> Duration {
    let mut sorted = durations.to_vec();
    sorted.sort_unstable();
    let place = (sorted.len() * per_mille).div_ceil(1000);
    let place = place.clamp(1, sorted.len().max(1)) - 1;
    sorted.get(place).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_one_of_the_values() {
        let hundred: Vec<Duration> = (1..=100).rev().map(Duration::from_millis).collect();
        for (per_mille, want) in [(500, 50), (990, 99), (1000, 100), (0, 1)] {
            assert_eq!(percentile(&hundred, per_mille), Duration::from_millis(want));
        }
        assert_eq!(percentile(&[], 990), Duration::ZERO);
    }
}
